"""What chapter 11 simulates: estimates behind a page of five places, the price of chance, and who learns without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.ranking.rank_weight import RankWeights

Row = dict[str, Any]
# Places of a page, and how it is judged.
K = 5
METRIC = cf.dcg(K)
USER = cf.PositionBasedUser(cf.power_examination(1.0))
# Sessions of the logs from which a ranker is judged, over all queries.
SESSIONS = tuple(10**m for m in range(3, 9))
ESTIMATES = ("oblivious", "aware", "direct", "robust")
# Shares of the sessions with a random last place, six a decade, the smallest difference in DCG@5 that matters, and the
# sessions of an ordinary log from which they are planned.
SHARES = tuple(float(f"{10**m:.2g}") for m in np.linspace(-2, 0, 13))
MATTERS = 0.03
ORDINARY = 100_000
# Sessions per query from which rankers learn, three a decade, and the strengths of PropRank, times the mean weight.
COUNTS = (10, 20, 50, 100, 200, 500, 1000)
GRID = (0.1, 1.0, 10.0, 100.0)
# Which rankers learn, from pages whose last place is random in which share of the sessions; −1 stands for pages on
# which the five shown documents change places.
LEARNERS = (
    ("displayed", 0.0), ("displayed", 0.1), ("weighted", 0.1), ("oblivious", 0.0), ("compared", 0.0), ("aware", 0.1),
    ("aware", 1.0), ("oblivious", 1.0),
)  # fmt: skip
SOLD_OUT = 0.2
# On which rankers learn, where tables are kept.
CORPORA = ("yahoo-like", "istella-like", "digits")


def last_place(rank: IntArray, offsets: IntArray, epsilon: float) -> cf.EpsilonGreedyPolicy:
    """The deployed ranking; in a share ``epsilon`` of the sessions any document that is not above it stands last."""
    return cf.EpsilonGreedyPolicy(rank, offsets, epsilon=np.array([0.0] * (K - 1) + [epsilon]))


def ranked(scores: FloatArray, offsets: IntArray, rng: np.random.Generator) -> IntArray:
    """The rank of every document by descending scores; ties are broken at random."""
    return cf.DeterministicPolicy.rank_by(scores, offsets, rng=rng).displayed_rank


@dataclass(frozen=True, eq=False)
class World:
    """One population: its queries, the ranks of the deployed ranker and of a new one, and how these weigh documents."""

    queries: cf.RankingData
    rank: IntArray
    proposed: IntArray
    old: RankWeights
    new: RankWeights

    @property
    def relevance(self) -> FloatArray:
        """1 for each relevant document, 0 for the others."""
        return np.asarray(self.queries.binary)

    @property
    def change(self) -> FloatArray:
        """What the new ranker gives each document more in DCG@5 than the deployed one, if it is relevant."""
        return np.asarray((self.new - self.old).gain)

    def policy(self, epsilon: float) -> cf.EpsilonGreedyPolicy:
        """The deployed page with a random last place in a share of the sessions."""
        return last_place(self.rank, self.queries.offsets, epsilon)

    def per_query(self, gain: FloatArray) -> float:
        """The gain of the relevant documents, in the mean over queries."""
        return float(gain @ self.relevance / self.queries.n_queries)


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed: the deployed ranker learnt from the labels of few queries, the new of all."""
    rng, data = run.rng(seed, 1101), run.load(seed)
    queries = data.validation
    fits = [cf.fit_linear_ranker(data.train, share, rng=rng) for share in (0.01, 1)]
    rank = ranked(fits[0].decision_function(queries.features), queries.offsets, rng)
    proposed = ranked(fits[1].decision_function(queries.features), queries.offsets, rng)
    old, new = (cf.rank_weights(-r.astype(float), queries.offsets, metric=METRIC) for r in (rank, proposed))
    return World(queries, rank, proposed, old, new)


def estimates(w: World, log: cf.ClickLog, shares: cf.DisplayShares) -> FloatArray:
    """What the :data:`ESTIMATES` make of the new ranker's DCG@5; guesses are learnt from the log itself, by halves."""
    guess = cf.cross_fitted(w.queries.features, log, user=USER, folds=2)
    sessions = log.sessions[cf.query_index(log.offsets)]
    return np.array(
        [
            cf.ips(log, w.new).report(),
            cf.ips(cf.policy_aware(log, shares.exposure(USER)), w.new).report(),
            w.new.gain @ (sessions * guess) / log.n_sessions,
            cf.doubly_robust(log, w.new, guess=guess, shares=shares, user=USER).report(),
        ]
    )


def judge(run: book.Run, seed: int, setting: Row, rng: np.random.Generator) -> dict[str, float]:
    """The root mean squared error of each estimate over many logs, divided by the true DCG@5 of the new ranker."""
    w, repeats = world(run, seed), max(4, run.size.repetitions // 40)
    policy, truth = w.policy(setting["epsilon"]), w.per_query(w.new.gain)
    shares = cf.DisplayShares.of_policy(policy)
    found = [
        estimates(w, run.simulate(policy, USER, relevance=w.relevance, rng=rng, n_sessions=setting["sessions"]), shares)
        for _ in range(repeats)
    ]
    errors = np.sqrt(((np.array(found) / truth - 1) ** 2).mean(axis=0))
    return dict(zip(ESTIMATES, errors.tolist(), strict=True))


def variance_of_a_session(w: World, epsilon: float) -> float:
    """The variance of what one session adds to the policy-aware estimate of the new ranker's lead, in closed form.

    Of the documents above the last place each is clicked by itself; at the last place stands one document at a time.
    """
    policy, offsets = w.policy(epsilon), w.queries.offsets
    above, last = policy.display_mean(lambda r: r < K), policy.display_mean(lambda r: r == K)
    chance = USER.propensity(np.minimum(w.rank, K)) * w.relevance  # of a click, where it is displayed
    p = policy.exposure(USER)
    counts = np.divide(w.change, p, out=np.zeros(len(p)), where=p > 0)
    at_last = cf.segment_sum(last * chance * counts, offsets)
    within = cf.segment_sum((above * (1 - chance) + last) * chance * counts**2, offsets) - at_last**2
    mean = cf.segment_sum(above * chance * counts, offsets) + at_last
    return float(within.mean() + mean.var())


def halves(w: World) -> list[cf.DeterministicPolicy]:
    """The pages of an A/B test: that of the deployed ranker, and that of the new one."""
    offsets = w.queries.offsets
    return [cf.DeterministicPolicy(np.where(rank <= K, rank, 0), offsets) for rank in (w.rank, w.proposed)]


def what_a_click_adds(w: World, exposure: FloatArray) -> FloatArray:
    """The change of each document over its exposure: what a click adds to the lead of the new ranker."""
    return np.divide(w.change, exposure, out=np.zeros(len(exposure)), where=exposure > 0)


def variance_of_half(page: LoggingPolicy, wanted: FloatArray, adds: FloatArray) -> float:
    """The variance of what the clicks of one session on this page add: within queries, and between them.

    Wanted is a document as often as ``wanted`` says, which may be a guess.
    """
    chance = page.exposure(USER) * wanted
    means = cf.segment_sum(chance * adds, page.offsets)
    return float(cf.segment_sum(chance * (1 - chance) * adds**2, page.offsets).mean() + means.var())


def variance_of_ab_test(w: World, wanted: FloatArray) -> float:
    """What the variance of the lead takes of a session of an A/B test, whose halves are read by themselves."""
    pages = halves(w)
    adds = what_a_click_adds(w, np.mean([page.exposure(USER) for page in pages], axis=0))
    return float(np.mean([variance_of_half(page, wanted, adds) for page in pages]))


def by_clicks_alone(w: World) -> float:
    """How many sessions more it takes if both halves are compared by their clicks, for a lead in as many errors."""
    pages, one = halves(w), np.ones(len(w.rank))
    shown = [page.exposure(USER) for page in pages]
    clicks = 2 * sum(variance_of_half(page, w.relevance, one) for page in pages) / w.per_query(shown[1] - shown[0]) ** 2
    return clicks / (variance_of_ab_test(w, w.relevance) / w.per_query(w.change) ** 2)


def guesses(run: book.Run, w: World, wanted: FloatArray, rng: np.random.Generator) -> FloatArray:
    """What an ordinary log of the deployed page lets one guess of relevance."""
    log = run.simulate(w.policy(0.0), USER, relevance=wanted, rng=rng, n_sessions=ORDINARY)
    return cf.cross_fitted(w.queries.features, log, user=USER)


def planned(w: World, guess: FloatArray, epsilon: float) -> float:
    """The sessions that a plan from guesses asks for, so that the lead is known to a third of what matters."""
    second_moment = guess @ (w.change**2 / w.policy(epsilon).exposure(USER)) / w.queries.n_queries
    return float(second_moment / (MATTERS / 3) ** 2)


@cache
def prices(run: book.Run) -> pd.DataFrame:
    """What each of :data:`SHARES` costs, a row for each seed and ``epsilon``.

    ``sessions`` are those after which the lead of the new ranker is known to a third of what matters, ``planned`` what
    is planned from guesses of an ordinary log, ``loss`` is the DCG@5 that a session loses, and ``reached`` the standard
    error after the planned sessions, over the one that was asked for.
    """

    def priced(seed: int, rng: np.random.Generator) -> list[list[float]]:
        w = world(run, seed)
        guess, rows = guesses(run, w, w.relevance, rng), []
        for epsilon in SHARES:
            shown = w.policy(epsilon).display_mean(lambda r: -METRIC(r))
            sessions = variance_of_a_session(w, epsilon) / (MATTERS / 3) ** 2
            asked = planned(w, guess, epsilon)
            loss = w.per_query(w.old.gain - shown)
            rows.append([seed, epsilon, sessions, asked, loss, float(np.sqrt(sessions / asked))])
        return rows

    found = run.each_seed(priced, stream=1102)
    columns = ["seed", "epsilon", "sessions", "planned", "loss", "reached"]
    return pd.DataFrame([row for of_seed in found for row in of_seed], columns=columns)


@cache
def ab_tests(run: book.Run) -> pd.DataFrame:
    """What an A/B test of the new ranker takes, as in :func:`prices`, a row for each seed.

    ``by_clicks`` is how many times as many sessions it takes to compare the clicks of both halves.
    """

    def priced(seed: int, rng: np.random.Generator) -> list[float]:
        w = world(run, seed)
        known = (w.relevance, guesses(run, w, w.relevance, rng))
        sessions, asked = (variance_of_ab_test(w, wanted) / (MATTERS / 3) ** 2 for wanted in known)
        return [seed, sessions, asked, float(np.sqrt(sessions / asked)), by_clicks_alone(w)]

    columns = ["seed", "sessions", "planned", "reached", "by_clicks"]
    return pd.DataFrame(run.each_seed(priced, stream=1102), columns=columns)


def read_halves(w: World, logs: Sequence[cf.ClickLog], exposure: FloatArray) -> tuple[float, float]:
    """The lead of the new ranker and its standard error, from the logs of both halves of an A/B test."""
    read = [cf.ips(cf.policy_aware(log, exposure), w.new - w.old, unit="session") for log in logs]
    errors = [one.standard_error for one in read]
    return float(np.mean([one.report() for one in read])), math.hypot(*errors) / 2


def read_place(w: World, log: cf.ClickLog, exposure: FloatArray) -> tuple[float, float]:
    """The same from a random place: as it shows one hidden document at a time, clicks are taken one by one."""
    adds, clicks = what_a_click_adds(w, exposure), np.bincount(log.document, log.clicks, minlength=len(exposure))
    return float(clicks @ adds / log.n_sessions), float(np.sqrt(clicks @ adds**2) / log.n_sessions)


def tried(run: book.Run, seed: int, setting: Row, rng: np.random.Generator) -> dict[str, float]:
    """How often the interval of two errors holds the lead, and lies above 0, after the sessions that were planned.

    That is an A/B test, or a last place that is always random, with half of the planned sessions as a reserve.
    """
    w, repeats = world(run, seed), max(4, run.size.repetitions // 4)
    wanted = np.ones(len(w.rank)) if setting["all_wanted"] else w.relevance
    guess, pages = guesses(run, w, wanted, rng), halves(w)
    policies: list[LoggingPolicy] = [w.policy(1.0)] if setting["place"] else [*pages]
    exposure = np.mean([policy.exposure(USER) for policy in policies], axis=0)
    asked = planned(w, guess, 1.0) if setting["place"] else variance_of_ab_test(w, guess) / (MATTERS / 3) ** 2
    n, found = int(1.5 * asked / len(policies)), []
    for _ in range(repeats):
        logs = [run.simulate(one, USER, relevance=wanted, rng=rng, n_sessions=n) for one in policies]
        found.append(read_place(w, logs[0], exposure) if setting["place"] else read_halves(w, logs, exposure))
    lead, error = np.array(found).T
    truth = float(w.change @ wanted) / w.queries.n_queries
    covered, better = np.abs(lead - truth) <= 2 * error, lead > 2 * error
    return {"covered": float(covered.mean()), "better": float(better.mean())}


@dataclass(frozen=True, eq=False)
class Shop:
    """Queries to learn from, to choose by and to be judged on, and what the deployed ranker makes of them.

    ``ranks`` are those of the first two parts, ``before`` is its DCG@5 on the third.
    """

    train: cf.RankingData
    validation: cf.RankingData
    test: cf.RankingData
    ranks: tuple[IntArray, IntArray]
    before: float

    def gained(self, ranker: cf.LinearRanker) -> float:
        """The DCG@5 of a ranker on the test queries above that of the deployed one, by labels."""
        return dcg(ranker.decision_function(self.test.features), self.test) - self.before


def dcg(scores: ArrayLike, data: cf.RankingData) -> float:
    """The mean DCG@5 of a scorer over queries, by labels."""
    risks = cf.additive_metric(scores, data.offsets, relevance=data.binary, metric=METRIC)
    return float(-risks.mean())


def with_stock(data: cf.RankingData, rng: np.random.Generator) -> tuple[cf.RankingData, FloatArray]:
    """The data with one more feature: which documents are sold out, and so never wanted.

    They are about a fifth, drawn at random, but in each list as many others are left as a page has places.
    """
    drawn = rng.random(data.n_docs)
    length = np.diff(data.offsets)[cf.query_index(data.offsets)]
    sold = ((drawn < SOLD_OUT) & (cf.ranks(-drawn, data.offsets) <= length - K)).astype(np.float32)
    features = np.column_stack([data.features, sold])
    grades = np.where(sold > 0, 0, data.relevance)
    return cf.RankingData(features, grades, offsets=data.offsets, threshold=data.threshold), sold.astype(np.float64)


@lru_cache(maxsize=2)
def shop(run: book.Run, seed: int, sold_out: bool) -> Shop:
    """The shop of one seed; where documents are sold out the deployed ranker puts them last."""
    rng, data = run.rng(seed, 1105), run.load(seed)
    logger = cf.fit_linear_ranker(data.train, 0.01, rng=rng)
    parts, scores = [], []
    for part in (data.train, data.validation, data.test):
        by_logger = logger.decision_function(part.features)
        if sold_out:
            part, sold = with_stock(part, rng)
            by_logger = by_logger - 1e6 * sold
        parts.append(part)
        scores.append(by_logger)
    ranks = [ranked(s, part.offsets, rng) for s, part in zip(scores[:2], parts[:2], strict=True)]
    return Shop(parts[0], parts[1], parts[2], (ranks[0], ranks[1]), dcg(scores[2], parts[2]))


def page(rank: IntArray, offsets: IntArray, epsilon: float) -> LoggingPolicy:
    """The policy with this ε; below 0 the five shown documents change places, so that chance shows nothing new."""
    if epsilon >= 0:
        return last_place(rank, offsets, epsilon)
    width = np.repeat(np.minimum(np.diff(offsets), K), np.diff(offsets))
    turned = [np.where(rank <= K, (rank - 1 + i) % width + 1, 0) for i in range(K)]
    return cf.MixturePolicy([cf.DeterministicPolicy(places, offsets) for places in turned], [1 / K] * K)


def clicks_per_look(
    features: ArrayLike, log: cf.ClickLog, exposure: FloatArray | None = None, ridge: float = 10.0
) -> cf.LinearRanker:
    """Ridge regression of clicks per look, over the displayed documents alone, each weighted by its looks.

    With an ``exposure`` looks and clicks count one over it.  Features that do not vary among displayed documents get
    the weight 0.
    """
    x = np.asarray(features, dtype=np.float64)
    looks = np.bincount(log.document, log.impressions * USER.propensity(log.rank), len(x)).astype(np.float64)
    clicks = np.bincount(log.document, log.clicks, minlength=len(x)).astype(np.float64)
    seen = looks > 0
    counts = np.ones(len(x)) if exposure is None else 1 / np.where(seen, exposure, 1)
    x, looks, clicks = x[seen], (counts * looks)[seen], (counts * clicks)[seen]
    spread = x.std(axis=0)
    varies = spread > 1e-9 * np.abs(x).max(axis=0)
    z = np.where(varies, (x - np.average(x, axis=0, weights=looks)) / np.where(varies, spread, 1), 0)
    normal = z.T @ (looks[:, None] * z) + ridge * looks.mean() * np.eye(z.shape[1])
    weights = np.linalg.solve(normal, z.T @ (clicks - looks * clicks.sum() / looks.sum()))
    return cf.LinearRanker(np.where(varies, weights / np.where(varies, spread, 1), 0))


def dealt(log: cf.ClickLog, rng: np.random.Generator) -> cf.ClickLog:
    """The same number of clicks, dealt to displays in proportion to how often they are examined."""
    looks = log.impressions * log.propensity
    clicks = np.minimum(rng.multinomial(log.n_clicks, looks / looks.sum()), log.impressions)
    return cf.ClickLog(
        document=log.document, rank=log.rank, impressions=log.impressions, clicks=clicks, propensity=log.propensity,
        sessions=log.sessions, offsets=log.offsets,
    )  # fmt: skip


def among_displayed(features: ArrayLike, log: cf.ClickLog) -> tuple[FloatArray, cf.ClickLog]:
    """The features and the log as if there were no other queries and documents than those that were displayed."""
    shown = np.bincount(log.document, log.impressions, log.offsets[-1]) > 0
    before = np.concatenate([[0], np.cumsum(shown)])
    ends = before[log.offsets]
    asked = np.diff(ends) > 0
    among = cf.ClickLog(
        document=before[log.document], rank=log.rank, impressions=log.impressions, clicks=log.clicks,
        propensity=log.propensity, sessions=log.sessions[asked], offsets=np.concatenate([[0], ends[1:][asked]]),
    )  # fmt: skip
    return np.asarray(features)[shown], among


def proprank(views: Sequence[tuple[ArrayLike, cf.ClickLog]]) -> LinearFit:
    """SVM PropRank of the first features and log; the second choose C from :data:`GRID` over the mean weight."""
    (x, log), (others, chooses) = views

    def fit(C: float, start: LinearFit | None) -> LinearFit:
        return cf.fit_proprank(x, log, C=C, gap=0.03, start=start)

    grid = [strength / log.mass.sum() for strength in GRID]
    return cf.select_C(fit, grid, features=others, log=chooses, metric=METRIC, extend=1).fit


def learn(run: book.Run, seed: int, setting: Row, rng: np.random.Generator) -> dict[str, float]:
    """The DCG@5 that one ranker gains over the deployed one, on test queries."""
    s, arm = shop(run, seed, setting["sold_out"]), setting["arm"]
    if arm == "labels":
        return {"gained": s.gained(cf.fit_linear_ranker(s.train, 1, rng=rng))}
    logs, exposures = [], []
    for part, rank in zip((s.train, s.validation), s.ranks, strict=True):
        policy = page(rank, part.offsets, setting["epsilon"])
        n = setting["per_query"] * part.n_queries
        logs.append(run.simulate(policy, USER, relevance=part.binary, rng=rng, n_sessions=n))
        exposures.append(policy.exposure(USER))
    if arm == "dealt":
        logs[0] = dealt(logs[0], rng)
    if arm == "aware":
        logs = [cf.policy_aware(*pair) for pair in zip(logs, exposures, strict=True)]
    if arm in ("oblivious", "aware", "compared"):
        features = (s.train.features, s.validation.features)
        views: list[tuple[ArrayLike, cf.ClickLog]] = [*zip(features, logs, strict=True)]
        if arm == "compared":
            views = [among_displayed(*view) for view in views]
        return {"gained": s.gained(proprank(views))}
    weigh = exposures[0] if arm == "weighted" else None
    return {"gained": s.gained(clicks_per_look(s.train.features, logs[0], weigh))}


def learners(run: book.Run) -> list[Row]:
    """The settings of :data:`LEARNT`: eight rankers by sessions, two controls, and what they make of a shop's stock."""
    del run
    most = COUNTS[-1]
    asked = [(arm, epsilon, n, False) for n, (arm, epsilon) in product(COUNTS, LEARNERS)]
    asked += [("oblivious", -1.0, most, False), ("aware", -1.0, most, False), ("dealt", 0.0, most, False)]
    asked += [(arm, epsilon, most, True) for arm, epsilon in LEARNERS[:6]]
    asked += [("labels", 0.0, 0, False), ("labels", 0.0, 0, True)]
    return [dict(zip(("arm", "epsilon", "per_query", "sold_out"), one, strict=True)) for one in asked]


JUDGED = book.Experiment(
    "judged",
    judge,
    settings=lambda run: [{"epsilon": e, "sessions": n} for e in (0.0, 1.0) for n in SESSIONS],
    stream=1103,
    seeds=lambda run: run.seeds,
)
TESTED = book.Experiment(
    "tested",
    tried,
    settings=lambda run: [{"place": p, "all_wanted": a} for p, a in product((False, True), repeat=2)],
    stream=1113,
    seeds=lambda run: run.seeds,
)
# Where in the certified gap training stops depends on how a machine rounds.
LEARNT = book.Experiment(
    "learnt", learn, settings=learners, stream=1104, seeds=lambda run: run.seeds, at_once=lambda run: 5, rtol=1e-3
)


def everywhere(run: book.Run) -> pd.DataFrame:
    """The table :data:`LEARNT` of the run's corpus, and where it is kept those of other corpora.

    There is a row more for each seed, of the ``arm`` *deployed*, and columns for the ``corpus`` and for ``behind``, the
    DCG@5 of a ranker less that of the one that has learnt from all labels, on the same seed.
    """
    here = run.table(LEARNT)
    found = {run.corpus: here}
    if here.attrs["kept"]:
        others = {name: LEARNT.kept_table(run.scale, name) for name in CORPORA if name != run.corpus}
        found |= {name: table for name, table in others.items() if table is not None}
    rows = pd.concat([table.assign(corpus=name) for name, table in found.items()], ignore_index=True)
    labels = rows[rows["arm"] == "labels"]
    rows = pd.concat([rows, labels.assign(arm="deployed", gained=0.0)], ignore_index=True)
    unit = ["corpus", "seed", "sold_out"]
    return rows.merge(labels[unit].assign(behind=-labels["gained"]), on=unit).assign(
        behind=lambda table: table["gained"] + table["behind"]
    )


@dataclass(frozen=True, eq=False)
class Month:
    """Last month's clicks on pages that did not change: features (n_docs, n_features), and their log.

    ``before`` is the log of the month before it, ``deployed`` has the scores that made the pages, and ``relevance``
    is what the customers want.
    """

    features: NDArray[np.float32]
    log: cf.ClickLog
    before: cf.ClickLog
    deployed: FloatArray
    relevance: FloatArray


@cache
def month(run: book.Run) -> Month:
    """The first seed's population, seen through its deployed page in two ordinary logs."""
    w, rng = world(run, run.seed), run.rng(run.seed, 1107)
    log, before = (
        run.simulate(w.policy(0.0), USER, relevance=w.relevance, rng=rng, n_sessions=ORDINARY) for _ in range(2)
    )
    return Month(w.queries.features, log, before, -w.rank.astype(float), w.relevance)
