"""Are the answers of ``cf.decide`` honest in a shop?  Coverage, false answers and power, over 1,000 logs a cell.

    python -m benchmarks.answers                # every cell
    python -m benchmarks.answers trust          # the cells whose name holds all these words
    python -m benchmarks.answers --logs 200

Queries are drawn anew for each log from a population of 20,000, with twelve products each, a quarter of them wanted,
and pages of six; three rankers have 60, 25 and 15 % of the sessions.  A wanted product is clicked with .8 at rank 1,
another with .1, and rank r is seen with r^−.8.  The curve is estimated from sessions of its own, as many as are judged,
and shares are counted over both.  The new ranker scores like production, with noise, and with as much of what is wanted
as makes the true difference 0, δ/2, δ or 2δ: it changes most pages, or pages of some queries only, which chance chose,
whatever their traffic.

Cells: *shown*, the new ranker reorders what production shows; *unseen*, it puts products on the page that no ranker
showed; *trust*, an irrelevant product is clicked with .1 + .2/r where it is seen, and the curve is that of
``cf.trust_bias``; *zipf*, query number q has traffic in proportion to 1/q; *periods*, taste and the rankers' traffic
change from one quarter to the next; *looks*, one at the sessions and one at twice as many; *more*, how often a log of
as many sessions as an undecided one asks for, of as many more queries, shows the difference.  "Halves differ" is how
often ``cf.same_curve`` rejects the position model, which holds.  All shares with the limits of Clopper & Pearson 1934.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import cfltr_core as cf
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_report import EventReport
from cfltr_core.ranking.rank_weight import RankWeights

QUERIES, PRODUCTS, PLACES, SHARES = 20_000, 12, 6, np.array([0.6, 0.25, 0.15])
GAIN = np.array([*1 / np.log2(1.0 + np.arange(1, PLACES + 1)), 0.0])  # by place from 0; the last is no place
SEEN = np.arange(1.0, PLACES + 1) ** -0.8
TRUTHS = {"0": 0.0, "δ/2": 0.5, "δ": 1.0, "2δ": 2.0}
PARTS, COUNTS = ("train", "test"), ("impressions", "clicks", "tops")
# Where the position model is tested on two halves of the documents, and at which levels.
HALVES, LEVELS = ("shown", "zipf"), (0.003, 0.05)


@dataclass(frozen=True)
class Cell:
    """How many sessions of how many queries are judged, as many make the curve, and what is special."""

    kind: str
    sessions: int
    queries: int
    delta: float = 0.03
    for_curve: int = 1
    truths: tuple[str, ...] = ("0", "δ/2", "δ", "2δ")
    logs: int = 1_000
    changed: float = 1.0

    @property
    def name(self) -> str:
        some = "" if self.changed == 1 else f", {self.changed:.0%} of them changed"
        return f"{self.kind}, {self.sessions:,} sessions of {self.queries:,} queries{some}, δ = {self.delta:g}"


CELLS = [
    Cell("shown", 20_000, 1_000),
    Cell("unseen", 20_000, 1_000),
    Cell("trust", 20_000, 1_000, for_curve=2),
    Cell("zipf", 20_000, 1_000),
    Cell("zipf", 20_000, 1_000, delta=0.015, changed=0.2),
    Cell("zipf", 20_000, 1_000, delta=0.004, changed=0.05),
    Cell("zipf", 20_000, 1_000, delta=0.0015, changed=0.02),
    Cell("shown", 20_000, 1_000, delta=0.004, changed=0.05),
    Cell("periods", 40_000, 1_000, truths=("0", "δ")),
    Cell("looks", 5_000, 500, truths=("0", "δ")),
    Cell("more", 2_000, 500, truths=("δ",)),
]


@dataclass(frozen=True)
class Population:
    """Click probabilities at rank 1, pages, and places of production and of the new ranker by truth.

    ``wants`` is (periods, queries, products), ``pages`` (rankers, queries, places) have the product at each place,
    ``places`` (rankers, queries, products) and ``new`` the place of each product.
    """

    wants: FloatArray
    intercept: FloatArray
    slope: FloatArray
    pages: IntArray
    places: IntArray
    new: dict[str, IntArray]
    traffic: FloatArray

    @property
    def old(self) -> IntArray:
        return np.asarray(self.places[0])

    def gains(self, name: str) -> FloatArray:
        """What the new ranker gains in each query, on average over the periods."""
        return ((GAIN[self.new[name]] - GAIN[self.old]) * self.wants.mean(axis=0)).sum(axis=1)


def population(cell: Cell, seed: int = 0) -> Population:
    rng = np.random.default_rng([20, seed])
    periods = 4 if cell.kind == "periods" else 1
    wanted = np.repeat((rng.random((QUERIES, PRODUCTS)) < 0.25)[None], periods, axis=0)
    for period in range(1, periods):
        other = rng.random((QUERIES, PRODUCTS)) < 0.2
        wanted[period] = np.where(other, rng.random((QUERIES, PRODUCTS)) < 0.25, wanted[period - 1])
    scores = rng.normal(size=(4, QUERIES, PRODUCTS)) + np.array([0.5, 1.5, 1.0, 2.0])[:, None, None] * wanted[0]
    if cell.kind == "unseen":
        # No ranker of the log knows the last product; the new one does.
        scores[:3, :, -1] = -9.0
    places = np.array([placed(score) for score in scores])
    none = np.where(wanted, 0.8, 0.1)
    slope, intercept = SEEN, 0 * SEEN
    if cell.kind == "trust":
        # Seen, an unwanted product is clicked with .1 + .2/r, a wanted one with .9.
        unwanted = 0.1 + 0.2 / np.arange(1, PLACES + 1)
        none = np.where(wanted, 0.9, unwanted[0])
        slope = SEEN * (0.9 - unwanted) / (0.9 - unwanted[0])
        intercept = SEEN * unwanted - slope * unwanted[0]
    traffic = np.tile(SHARES, (periods, 1))
    if cell.kind == "periods":
        traffic = np.array([[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    known = places[0] < PLACES if cell.kind != "unseen" else np.ones(places[0].shape, dtype=bool)
    start, noise = np.where(known, scores[0], -9.0 - places[0]), known * rng.normal(size=places[0].shape)
    moved = known & (rng.random((QUERIES, 1)) < cell.changed)

    def truth(push: float) -> float:
        page = placed(start + moved * (noise + push * wanted[0]))
        return float(((GAIN[page] - GAIN[places[0]]) * none).sum(axis=2).mean())

    new = {}
    for name, multiple in TRUTHS.items():
        low, high = -2.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if truth(middle) < multiple * cell.delta else (low, middle)
        new[name] = placed(start + moved * (noise + low * wanted[0]))
    pages = np.argsort(places[:3], axis=-1, kind="stable")[..., :PLACES]
    return Population(none, intercept, slope, pages, places[:3], new, traffic)


def placed(score: FloatArray) -> IntArray:
    """Place of each product, from 0; ``PLACES`` if it is not on the page."""
    return np.minimum(np.argsort(np.argsort(-score, axis=-1), axis=-1), PLACES)


def draw(some: Population, cell: Cell, rows: IntArray, sessions: tuple[int, int], rng: np.random.Generator) -> Events:
    """Events of ``sessions`` in each part, which ask the queries of these ``rows``."""
    weight = 1 / np.arange(1.0, len(rows) + 1) if cell.kind == "zipf" else np.ones(len(rows))
    n_periods = len(some.traffic)
    law = (weight / weight.sum())[:, None, None] * some.traffic / n_periods  # (queries, periods, rankers)
    pages = some.pages[:, rows].transpose(1, 0, 2)  # (queries, rankers, places)
    wants = np.stack([np.take_along_axis(one[rows][:, None], pages, axis=2) for one in some.wants], axis=1)
    chance = wants * some.slope + some.intercept  # (queries, periods, rankers, places)
    shown = np.stack([rng.multinomial(n, law.ravel()).reshape(law.shape) for n in sessions], axis=-1)
    clicks = rng.binomial(shown[..., None, :], np.clip(chance, 0, 1)[..., None])
    at = np.nonzero(np.broadcast_to(shown[..., None, :], clicks.shape))
    query, period, ranker, place, part = at
    lists = np.indices((len(rows), PRODUCTS)).reshape(2, -1)
    return Events(
        features=np.zeros((len(rows) * PRODUCTS, 1), dtype=np.float32),
        feature_names=("x",),
        offsets=np.arange(0, len(rows) * PRODUCTS + 1, PRODUCTS),
        index=pd.DataFrame({"query": lists[0], "document": lists[1]}),
        rankers=("production", "second", "third"),
        periods=tuple(range(n_periods)),
        parts=PARTS,
        document=query * PRODUCTS + pages[query, ranker, place],
        rank=place + 1,
        ranker=ranker,
        period=period,
        part_number=part,
        impressions=shown[query, period, ranker, part],
        clicks=clicks[at],
        report=REPORT,
    )


REPORT = EventReport(lines={"split": "simulated"}, dropped_sessions=0)


def weights(place: IntArray, rows: IntArray) -> RankWeights:
    return RankWeights(-GAIN[place[rows]].ravel(), cf.dcg(PLACES))


def curve_of(cell: Cell, events: Events) -> Any:
    counts = cf.display_counts(events.part("train"))
    return cf.trust_bias(counts) if cell.kind == "trust" else cf.conditional_poisson(counts)


def share(name: str, times: int, of: int) -> str:
    ends = binomtest(times, of).proportion_ci(method="exact")
    return f"{name} {times / of:.3f} [{ends.low:.3f}, {ends.high:.3f}]"


def measure(cell: Cell, logs: int) -> None:
    some = population(cell)
    told = {name: Counter[str]() for name in cell.truths}
    between = float(((GAIN[some.places[1]] - GAIN[some.old]) * some.wants).sum(axis=2).mean())
    without, asked, seen, rejected = 0, 0, 0, Counter[float]()
    for seed in range(logs):
        rng = np.random.default_rng([21, *cell.name.encode(), seed])
        rows = rng.integers(QUERIES, size=cell.queries)
        parts = draw(some, cell, rows, (cell.for_curve * cell.sessions, cell.sessions), rng)
        try:
            curve = curve_of(cell, parts)
        except ValueError:
            without += 1
            continue
        if cell.kind in HALVES:
            counts = cf.display_counts(parts.part("train"))
            place = some.old[rows].ravel()[counts.document]
            test = cf.same_curve(counts, place <= np.median(place))
            rejected.update(level for level in LEVELS if test.p_value < level)
        judge, old = parts.part("test"), weights(some.old, rows)
        if cell.kind == "looks":
            further = draw(some, cell, rows, (0, cell.sessions), rng)
            later, displays = together(judge, further), together(parts, further)
        for name in cell.truths:
            truth, here, new = float(some.gains(name).mean()), told[name], weights(some.new[name], rows)
            case: dict[str, Any] = {"smallest": cell.delta, "curve": curve}
            if cell.kind == "periods":
                case["by"] = "period"
            if cell.kind == "shown":
                case["ab_test"] = ("second", "production")
            made = cf.decide(new, old, log=judge, shares=parts, **case)
            here[made.answer] += 1
            here["covers"] += covers(made.interval, truth)
            here["covers by chance alone"] += covers(made.sampling, truth)
            here["width"] += made.interval[1] - made.interval[0]
            here["unseen"] += made.unseen[1] - made.unseen[0]
            here["of θ̂"] += made.share_of_theta
            if made.ab_test:
                here["A/B test covers"] += covers(made.ab_test.interval, between)
            if made.periods:
                gap = (GAIN[some.new[name]] - GAIN[some.old]) * some.wants
                each = gap.sum(axis=2).mean(axis=1)
                here["all periods cover"] += all(covers(one.interval, each[at]) for at, one in made.periods.items())
            for spend in (1.0, 0.5) if cell.kind == "looks" else ():
                looks = [cf.decide(new, old, log=one, shares=displays, spend=spend, **case) for one in (judge, later)]
                said = f"in two looks, spend {spend:g}: "
                here[said + "one misses"] += not all(covers(one.interval, truth) for one in looks)
                here[said + "by at least δ"] += any(one.answer == "better by at least δ" for one in looks)
            if cell.kind == "more" and made.answer == "undecided" and np.isfinite(made.sessions_more):
                # As many sessions as it takes, of as many more queries, as many for the shares, and a curve as good as
                # the first.
                n = cell.sessions + int(made.sessions_more)
                wider = rng.integers(QUERIES, size=round(cell.queries * n / cell.sessions))
                fresh = draw(some, cell, wider, (n, n), rng)
                ranked = (weights(place, wider) for place in (some.new[name], some.old))
                others = draw(some, cell, rng.integers(QUERIES, size=cell.queries), (cell.sessions, 0), rng)
                again = {**case, "curve": curve_of(cell, others)}
                found = cf.decide(*ranked, log=fresh.part("test"), shares=fresh, **again)
                asked, seen = asked + 1, seen + (found.interval[0] > 0)
    of = logs - without
    print(f"  {of:,} of {logs:,} logs have a curve")
    if cell.kind in HALVES:
        print("  " + "; ".join(share(f"halves differ at {level:g}", rejected[level], of) for level in LEVELS))
    for name, here in told.items():
        of_theta, width, unseen = (here.pop(word) / of for word in ("of θ̂", "width", "unseen"))
        print(f"  true difference {name} ({some.gains(name).mean():+.4f})")
        print(f"    width {width:.4f}, of it never shown {unseen:.4f}; θ̂ brings {of_theta:.0%} of the variance")
        print("    " + "\n    ".join(share(word, times, of) for word, times in here.items()), flush=True)
    if asked:
        print("  " + share("seen with as many sessions as it takes", seen, asked))


def covers(interval: tuple[float, float], truth: float) -> bool:
    return bool(interval[0] <= truth <= interval[1])


def together(first: Events, second: Events) -> Events:
    """Sessions of both, which are on the same lists."""
    keys = ("document", "rank", "ranker", "period", "part_number")
    frames = [pd.DataFrame({name: getattr(one, name) for name in (*keys, *COUNTS)}) for one in (first, second)]
    added = pd.concat(frames).groupby([*keys], as_index=False).sum()
    return replace(first, user_group=None, **{name: added[name].to_numpy() for name in (*keys, *COUNTS)})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--logs", type=int, default=None)
    given = parser.parse_args()
    for cell in CELLS:
        if all(word in cell.name for word in given.words):
            print(cell.name, flush=True)
            start = time.perf_counter()
            measure(cell, given.logs or cell.logs)
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
