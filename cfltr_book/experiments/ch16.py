"""What chapter 16 simulates: a shop with a year of events, written row by row, and what its log says and misses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_report import EventReport
from cfltr_core.evaluation.answers import Decision
from cfltr_core.ranking.rank_weight import RankWeights

PLACES, QUARTERS = 10, 4
RANKERS = ("production", "rival", "shuffled")
# Of the sessions of each ranker; the last shows ten of production's first so many in an order drawn anew each time.
SHARES, DEPTH = (0.75, 0.2, 0.05), 20
SESSIONS = 30  # of each query, on average
PARTS, SPLIT = ("train", "validation", "test"), (0.6, 0.2, 0.2)
# The smallest difference that matters, set before anything was looked at.
DELTA = 0.03
# On a phone people want half as often what they see; the share of sessions on phones, of the rival and of the others.
WANTED_ON_PHONES, PHONES, BALANCED = 0.5, (0.8, 0.2), (0.32, 0.32)
PEOPLE = cf.TrustUser(cf.power_examination(1.0), epsilon_minus=0.1)


@dataclass(frozen=True, eq=False)
class Shop:
    """Queries with their products, what two rankers think of them, and how often each query is asked.

    ``names`` are query and document of each row, ``candidates`` the products of each query with their features and
    labels, ``scores`` those of production and of the rival, by name, and ``popular`` is the share of the sessions that
    ask each query.
    """

    names: pd.DataFrame
    candidates: cf.RankingData
    scores: Mapping[str, FloatArray]
    popular: FloatArray

    @property
    def n_sessions(self) -> int:
        """Of a year."""
        return max(12_000, SESSIONS * self.candidates.n_queries)

    def products(self) -> pd.DataFrame:
        """Query, document and features of every candidate."""
        return self.names.join(pd.DataFrame(self.candidates.features).add_prefix("x"))

    def named_scores(self, ranker: str) -> pd.DataFrame:
        """Query, document and score of every candidate, by a ranker."""
        return self.names.assign(score=self.scores[ranker])

    def weights(self, ranker: str) -> RankWeights:
        """The rank weights of one of the two rankers, for DCG on the page."""
        return cf.rank_weights(self.scores[ranker], self.candidates.offsets, metric=cf.dcg(PLACES))

    def truth(
        self,
        new: RankWeights | None = None,
        *,
        asked: ArrayLike | None = None,
        phones: tuple[float, float] | None = None,
    ) -> float:
        """The true gain over production of the ``new`` ranker, else of the rival, in DCG a session.

        Queries count as they are ``popular``, or by the sessions in which they were ``asked``.  With ``phones``, as
        :meth:`rows` takes them, it is over both kinds of customers.
        """
        share = self.popular if asked is None else np.asarray(asked) / np.sum(asked)
        worth = (0.1 + 0.9 * self.candidates.binary) * share[cf.query_index(self.candidates.offsets)]
        gain = float(((new or self.weights("rival")) - self.weights("production")).gain @ worth)
        if phones is None:
            return gain
        on_phones = float(np.dot(SHARES, [phones[at] for at in (1, 0, 1)]))
        return gain * (1 - on_phones * (1 - WANTED_ON_PHONES))

    def rows(
        self, n: int, rng: np.random.Generator, *, depth: int = DEPTH, phones: tuple[float, float] | None = None
    ) -> dict[str, Any]:
        """A row for each displayed product of ``n`` sessions, by numbers: the columns of the log."""
        query = np.sort(rng.choice(len(self.popular), size=n, p=self.popular))
        ranker, period = rng.choice(len(RANKERS), size=n, p=SHARES), rng.integers(QUARTERS, size=n)
        page = np.full((n, PLACES), -1)
        for at, (name, deep) in enumerate((("production", PLACES), ("rival", PLACES), ("production", depth))):
            mine = ranker == at
            page[mine] = self._pages(name, query[mine], deep, rng if RANKERS[at] == "shuffled" else None)
        place = np.broadcast_to(np.arange(1, PLACES + 1), page.shape)
        chance = PEOPLE.click_probability(place, self.candidates.binary[page])
        by_session = {"session": rng.permutation(n), "period": period, "ranker": ranker, "query": query}
        if phones is not None:
            by_session["device"] = (rng.random(n) < np.where(ranker == 1, *phones)).astype(np.int64)
            chance = chance * np.where(by_session["device"] == 1, WANTED_ON_PHONES, 1.0)[:, None]
        clicked, there = rng.random(page.shape) < chance, page >= 0
        rows = {name: np.broadcast_to(values[:, None], page.shape)[there] for name, values in by_session.items()}
        return rows | {"document": page[there], "position": place[there], "clicked": clicked[there].astype(np.int64)}

    def _pages(self, ranker: str, query: IntArray, depth: int, rng: np.random.Generator | None) -> IntArray:
        """The page of each session, -1 where the list ends; with an ``rng`` the first ``depth`` products shuffled."""
        offsets = np.asarray(self.candidates.offsets)
        order = np.lexsort([-self.scores[ranker], cf.query_index(offsets)])
        length = np.minimum(np.diff(offsets), depth)[query][:, None]
        place = np.broadcast_to(np.arange(depth), (len(query), depth))
        if rng is not None:
            place = np.argsort(np.where(place < length, rng.random(place.shape), 2.0), axis=1, kind="stable")
        row = np.minimum(offsets[query][:, None] + place[:, :PLACES], len(order) - 1)
        return np.where(np.arange(PLACES) < length, order[row], -1)

    def named(self, rows: Mapping[str, Any]) -> pd.DataFrame:
        """The rows as a shop would export them: queries, documents, rankers and devices by name."""
        names = {
            "query": _named("q", np.arange(self.candidates.n_queries)),
            "document": self.names["document"],
            "ranker": RANKERS,
            "device": ("desktop", "phone"),
        }
        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(values, list(names[name])) if name in names else values
                for name, values in rows.items()
            }
        )

    def events(self, rows: Mapping[str, Any], part: IntArray, *, period: str = "period") -> Events:
        """The same rows counted, with the ``part`` of each row; what tells the periods is the column ``period``."""
        keys = np.column_stack([rows["document"], rows["position"], rows["ranker"], rows[period], part])
        frame = pd.DataFrame(keys, columns=["document", "rank", "ranker", "period", "part_number"])
        counts = (
            frame.assign(clicks=rows["clicked"]).groupby(list(frame), as_index=False)["clicks"].agg(["size", "sum"])
        )
        return Events(
            features=np.zeros((len(self.candidates.binary), 1), dtype=np.float32),
            feature_names=("x",),
            offsets=self.candidates.offsets,
            index=self.names,
            rankers=RANKERS,
            periods=tuple(range(QUARTERS)),
            parts=PARTS,
            **{name: counts[name].to_numpy() for name in frame},
            impressions=counts["size"].to_numpy(),
            clicks=counts["sum"].to_numpy(),
            report=EventReport(lines={"split": "simulated"}, dropped_sessions=0),
        )


def _named(letter: str, numbers: Any) -> list[str]:
    return [f"{letter}{number:06d}" for number in numbers]


@cache
def shop(run: book.Run, seed: int) -> Shop:
    """The population of one seed: production learnt from 1 % of the labels, the rival from 10 %."""
    rng, train = run.rng(seed, 1601), run.load(seed).train
    fits = [cf.fit_linear_ranker(train, share, rng=rng) for share in (0.01, 0.1)]
    scores = {name: fit.decision_function(train.features) for name, fit in zip(RANKERS, fits, strict=False)}
    popular = rng.gamma(2.0, size=train.n_queries)
    query = cf.query_index(train.offsets)
    names = pd.DataFrame({"query": _named("q", query), "document": _named("d", np.arange(len(query)))})
    return Shop(names, train, scores, popular / popular.sum())


def open_shop(run: book.Run, folder: str) -> tuple[Shop, pd.DataFrame]:
    """The shop of the run's own seed and its products; a year of its events is written, a Parquet file a quarter."""
    one = shop(run, run.seed)
    rows = one.named(one.rows(one.n_sessions, run.rng(run.seed, 1602)))
    for quarter, part in rows.groupby("period"):
        part.to_parquet(f"{folder}/quarter-{quarter}.parquet", index=False)
    return one, one.products()


def phone_quarter(run: book.Run) -> tuple[pd.DataFrame, float]:
    """A quarter of the run's own shop whose rival met phones: its rows, with devices, and the rival's true gain."""
    one = shop(run, run.seed)
    rows = one.rows(one.n_sessions // 4, run.rng(run.seed, 1609), phones=PHONES)
    return one.named(rows).drop(columns="period"), one.truth(phones=PHONES)


def halves(n: int, rng: np.random.Generator) -> IntArray:
    """The part of each of ``n`` sessions or queries: half train, half test."""
    return np.where(rng.random(n) < 0.5, PARTS.index("train"), PARTS.index("test"))


def _decided(decision: Decision) -> tuple[float, ...]:
    return (decision.difference, *decision.interval, *decision.sampling, 1 - decision.support)


@cache
def backtest(run: book.Run) -> pd.DataFrame:
    """What the log of a year says of the rival, without its sessions and with them: a row for each seed and ``log``.

    A random fifth of the sessions of all queries judges; each log has a curve from its own training sessions.  The A/B
    test is read of that fifth, and of all sessions: neither ranker learnt from the log, so no part must be held out for
    it; θ̂ is then taken as known, for want of sessions of its own.  Of the fifth alone it is low in the ten logs of the
    site's run, by chance: given the displays its mean is the gain over queries weighted by their pairs, which differs
    from the truth by less than 0.003 there, and over 300 further logs of the same shops it was 0.0013 (± 0.0017) low.

    ``difference`` is the estimate, ``low`` … ``high`` its interval, ``chance_low`` … ``chance_high`` what chance
    makes of it, ``never_shown`` the rival's weight on products that the log never shows, ``truth`` the true gain.
    """

    def judge(seed: int, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        one = shop(run, seed)
        rows = one.rows(one.n_sessions, rng)
        events = one.events(rows, rng.choice(len(PARTS), size=one.n_sessions, p=SPLIT)[rows["session"]])

        new, old, names = one.weights("rival"), one.weights("production"), ("rival", "production")

        def decided(log: Events, **options: Any) -> Decision:
            curve = cf.conditional_poisson(cf.display_counts(log.part("train")))
            return cf.decide(new, old, log=log.part("test"), shares=log, smallest=DELTA, curve=curve, **options)

        without = decided(events.subset(rankers=["production", "shuffled"]))
        whole = decided(events, ab_test=names)
        known = cf.conditional_poisson(cf.display_counts(events.part("train"))).user()
        every = cf.decide(new, old, log=events, shares=events, smallest=DELTA, user=known, ab_test=names)
        assert whole.ab_test is not None
        assert every.ab_test is not None
        found = {
            "without the rival's sessions": without,
            "with the rival's sessions": whole,
            "A/B test of the judging fifth": whole.ab_test,
            "A/B test of all sessions": every.ab_test,
        }
        return [(seed, name, *_decided(decision), one.truth()) for name, decision in found.items()]

    columns = ["seed", "log", "difference", "low", "high", "chance_low", "chance_high", "never_shown", "truth"]
    return pd.DataFrame(chain.from_iterable(run.each_seed(judge, stream=1603)), columns=columns)


@cache
def remembered(run: book.Run) -> pd.DataFrame:
    """How good a ranker that remembers its clicks looks, and the rival, which learnt from none.

    A row for each seed, ``ranker`` and ``judged`` on: sessions of the queries that memory knows, or other queries.
    ``difference`` is the estimate against production.
    """

    def judge(seed: int, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        one, found = shop(run, seed), []
        rows, old = one.rows(one.n_sessions // 2, rng), one.weights("production")
        for judged, n in (("session", one.n_sessions // 2), ("query", one.candidates.n_queries)):
            events = one.events(rows, halves(n, rng)[rows[judged]])
            curve = cf.conditional_poisson(cf.display_counts(events.part("train")))
            log, exposure = events.part("train").log(), events.displays().exposure(curve.user())
            clicks = np.bincount(log.document, log.clicks, minlength=len(exposure))
            attraction = np.divide(clicks, exposure, out=np.zeros(len(exposure)), where=exposure > 0)
            memory = cf.rank_weights(attraction, log.offsets, metric=cf.dcg(PLACES))
            for ranker, new in (("memory", memory), ("rival", one.weights("rival"))):
                decision = cf.decide(new, old, log=events.part("test"), shares=events, smallest=DELTA, curve=curve)
                found.append((seed, ranker, judged, decision.difference))
        return found

    columns = ["seed", "ranker", "judged", "difference"]
    return pd.DataFrame(chain.from_iterable(run.each_seed(judge, stream=1604)), columns=columns)


WORLDS = {"rival on phones": PHONES, "alike": BALANCED}


@cache
def phones(run: book.Run) -> pd.DataFrame:
    """What a log says of the rival where customers on phones, who want less, met it more often than others, or not.

    A row for each seed, ``world`` and how sessions were ``counted``: as one, or by device.  ``ab`` is what the rival's
    own sessions say; all differences, and the ``truth``, are over both kinds of customers.
    """

    def judge(seed: int, world: str, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        one, found = shop(run, seed), []
        new, old = one.weights("rival"), one.weights("production")
        rows = one.rows(one.n_sessions // 2, rng, phones=WORLDS[world])
        part = halves(one.n_sessions // 2, rng)[rows["session"]]
        for counted, period in (("as one", "period"), ("by device", "device")):
            events = one.events(rows, part, period=period)
            curve = cf.conditional_poisson(cf.display_counts(events.part("train")))
            by: Any = "period" if period == "device" else None
            decision = cf.decide(
                new, old, log=events.part("test"), shares=events, smallest=DELTA, curve=curve, by=by,
                ab_test=("rival", "production"),
            )  # fmt: skip
            assert decision.ab_test is not None
            ab, truth = decision.ab_test.difference, one.truth(phones=WORLDS[world])
            found.append((seed, world, counted, *_decided(decision)[:3], ab, truth))
        return found

    found = run.each_seed(judge, list(WORLDS), stream=1605, by_seed=True)
    columns = ["seed", "world", "counted", "difference", "low", "high", "ab", "truth"]
    return pd.DataFrame(chain.from_iterable(chain.from_iterable(found)), columns=columns)
