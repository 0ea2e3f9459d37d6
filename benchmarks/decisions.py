"""Are decisions honest?  How often each answer comes, and coverage, over 1,000 logs a cell (400 for the last two).

    python -m benchmarks.decisions              # every cell
    python -m benchmarks.decisions trust        # the cells whose name holds all these words
    python -m benchmarks.decisions --logs 200 "1,000 sessions"

The population is the 3,000 training queries of yahoo-like.  Three rankers filled the log, with 60, 30 and 10 % of the
sessions and pages of ten; users look at rank r with probability 1/r.  Every log asks queries drawn from the population
anew, and θ̂ is the conditional Poisson estimate from sessions of its own.  The new ranker is production's order with
that of a better ranker on some queries: as many as make the true difference of DCG@10 a session, which is known from
the generated relevance, 0, δ/2, δ or 2δ.  Both order what was shown before the rest, and exposures are those of the
exact shares, so that nothing is lost to what was never shown: in a shop's log something is (chapter 16).
Differences are those of clicks if all places of the page were seen; the noise of clicks cancels.

For each truth: the share of each answer, of significant differences with the wrong sign (a truth of 0 has none), and of
intervals that hold the truth, with θ̂ and its error, with θ̂ as if it were known, and with the true θ; then the control,
IPS that weighs a click by the place where it happened.  All shares with the interval of Clopper & Pearson 1934.

Trust: users click irrelevant documents at rank r with .1 + .2/r; trust is no want, so the truth is the same as without
(the unit of chapter 16).  "Warned" is how often the test on two halves of the documents rejects the position model at
.05 on the sessions of θ̂.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from cfltr_book import load_corpus
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    DisplayShares,
    MixturePolicy,
    PositionBasedUser,
    TrustUser,
    conditional_poisson,
    dcg,
    decide,
    display_counts,
    draw_sessions,
    fit_linear_ranker,
    ips,
    power_examination,
    rank_weights,
    same_curve,
    segment_sum,
    simulate_clicks,
)
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.ranking.rank_weight import RankWeights

K, DELTA, SHARES = 10, 0.03, [0.6, 0.3, 0.1]
PLAIN = PositionBasedUser(power_examination(1.0), epsilon_minus=0.1)
# Of the relevance, of which clicks see ε₊ − ε₋ = .9.
TRUTHS = {"0": 0.0, "δ/2": DELTA / 1.8, "δ": DELTA / 0.9, "2δ": DELTA / 0.45}
TRUSTING = TrustUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=lambda rank: 0.1 + 0.2 / rank)


@dataclass(frozen=True)
class Cell:
    """How many sessions of how many queries are judged, and how many θ̂ is made from."""

    sessions: int
    queries: int
    for_theta: int
    trust: bool = False
    logs: int = 1_000

    @property
    def name(self) -> str:
        users = "trust, " if self.trust else ""
        return f"{users}{self.sessions:,} sessions of {self.queries:,} queries, θ̂ from {self.for_theta:,}"


CELLS = [
    Cell(20_000, 1_000, 20_000),
    Cell(100_000, 3_000, 5_000),
    Cell(3_000, 1_000, 20_000),
    Cell(600, 300, 20_000, logs=400),
    Cell(20_000, 1_000, 20_000, trust=True, logs=400),
]


@dataclass(frozen=True)
class Population:
    """Relevance, the places of three rankers, the shares of displays by rank, and λ of production and of each truth."""

    relevance: FloatArray
    offsets: IntArray
    places: list[IntArray]
    table: FloatArray
    production: FloatArray
    new: dict[str, FloatArray]
    exact: dict[str, float]
    likely: BoolArray

    def rows(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Documents of these queries, in order, and the lists that they make."""
        sizes = np.diff(self.offsets)[queries]
        cuts = np.append(0, np.cumsum(sizes))
        return np.arange(cuts[-1]) - np.repeat(cuts[:-1] - self.offsets[queries], sizes), cuts


def population() -> Population:
    data, rng = load_corpus("yahoo-like", "ci", seed=0).train, np.random.default_rng(0)
    cuts = data.offsets
    scores = [fit_linear_ranker(data, 0.01, rng=rng).decision_function(data.features) for _ in SHARES]
    best = fit_linear_ranker(data, 0.5, rng=rng).decision_function(data.features)
    pages = [DeterministicPolicy.rank_by(f, cuts, rng=rng, cutoff=K) for f in scores]
    shares = DisplayShares.of_policy(MixturePolicy(pages, SHARES))
    table = np.zeros((len(best), K))
    table[shares.document, shares.rank - 1] = shares.share
    shown = table.any(axis=1)
    weights = [rank_weights(np.where(shown, 0, -1e6) + f - f.min(), cuts, metric=dcg(K)).lam for f in (scores[0], best)]
    gains = -segment_sum((weights[1] - weights[0]) * data.binary, cuts)
    query = np.repeat(np.arange(len(gains)), np.diff(cuts))
    new, exact = {}, {}
    for name, truth in TRUTHS.items():
        # In the order of a shuffle, queries change to the better ranker as long as the sum stays next to the target.
        chosen, total = np.zeros(len(gains), dtype=bool), 0.0
        half = rng.permutation(len(gains))[: len(gains) // 2]
        for q in half:
            if abs(total + gains[q] - truth * len(gains)) <= max(abs(total - truth * len(gains)), 3.0):
                chosen[q], total = True, total + float(gains[q])
        for q in rng.permutation(np.setdiff1d(np.arange(len(gains)), half)):
            if abs(total + gains[q] - truth * len(gains)) < abs(total - truth * len(gains)):
                chosen[q], total = True, total + float(gains[q])
        new[name] = np.where(chosen[query], weights[1], weights[0])
        exact[name] = total / len(gains)
    likely = scores[0] > np.repeat(np.add.reduceat(scores[0], cuts[:-1]) / np.diff(cuts), np.diff(cuts))
    return Population(data.binary, cuts, [p.displayed_rank for p in pages], table, weights[0], new, exact, likely)


def draw(
    some: Population, user: PositionBasedUser | TrustUser, n: int, queries: IntArray, rng: np.random.Generator
) -> tuple[ClickLog, IntArray]:
    """``n`` sessions that ask ``queries``, and the rows of the population that the documents of the log are."""
    rows, cuts = some.rows(queries)
    policy = MixturePolicy([DeterministicPolicy(place[rows], cuts) for place in some.places], SHARES)
    sessions = draw_sessions(n, len(queries), rng=rng)
    return simulate_clicks(policy, user, relevance=some.relevance[rows], sessions=sessions, rng=rng), rows


def share(name: str, times: int, of: int) -> str:
    ends = binomtest(times, of).proportion_ci(method="exact")
    return f"{name} {times / of:.3f} [{ends.low:.3f}, {ends.high:.3f}]"


def fitted(some: Population, cell: Cell, rng: np.random.Generator) -> tuple[PropensityCurve, float] | None:
    """θ̂ from sessions on the whole population, and the p value of the test on halves for cells with trust."""
    user = TRUSTING if cell.trust else PLAIN
    log, _ = draw(some, user, cell.for_theta, np.arange(len(some.offsets) - 1), rng)
    counts = display_counts(log)
    try:
        curve = conditional_poisson(counts)
    except ValueError:
        return None
    if len(curve.curve) < K or not np.isfinite(curve.curve).all():
        return None
    return curve, same_curve(counts, some.likely[counts.document]).p_value if cell.trust else 1.0


def measure(some: Population, cell: Cell, logs: int) -> None:
    user = TRUSTING if cell.trust else PLAIN
    ways = ("with the error of θ̂", "θ̂ as known", "θ known", "by the place of the click")
    told = {(name, way): Counter[str]() for name in TRUTHS for way in ways}
    of_theta, more, warned, n_logs = [], [], 0, 0
    for seed in range(logs):
        rng = np.random.default_rng([7, cell.sessions, cell.queries, cell.for_theta, cell.trust, seed])
        found = fitted(some, cell, rng)
        if found is None:
            continue
        curve, p_value = found
        n_logs, warned = n_logs + 1, warned + (p_value < 0.05)
        log, rows = draw(some, user, cell.sessions, rng.integers(len(some.offsets) - 1, size=cell.queries), rng)
        document, place = np.nonzero(some.table[rows])
        shares = DisplayShares(
            document=document, rank=place + 1, share=some.table[rows][document, place], offsets=log.offsets
        )
        metric = dcg(K)
        production = RankWeights(some.production[rows], metric)
        for name in TRUTHS:
            truth, new = 0.9 * some.exact[name], RankWeights(some.new[name][rows], metric)
            results: dict[str, tuple[str, float, float]] = {}
            for way, theta, known in zip(ways, (curve, None, None), (None, curve.user(), PLAIN), strict=False):
                made = decide(new, production, log=log, shares=shares, smallest=DELTA, curve=theta, user=known)
                results[way] = (made.answer, *made.interval)
                if way == ways[0]:
                    of_theta.append(made.share_of_theta)
                    more += [made.sessions_more] if made.answer == "undecided" else []
            low, high = ips(log, new - production).report_interval()
            results[ways[3]] = ("better" if low > 0 else "worse" if high < 0 else "neither", low, high)
            for way, (answer, low, high) in results.items():
                here = told[name, way]
                here[answer] += 1
                here["covers"] += low <= truth <= high
                here["wrong"] += name != "0" and high < 0
    print(f"  {n_logs:,} of {logs:,} logs link all ranks; θ̂ brings {np.mean(of_theta):.0%} of the variance", flush=True)
    if more:
        print(f"  undecided: {np.median(more):,.0f} sessions more, by the median of {len(more):,}")
    if cell.trust:
        print("  " + share("warned", warned, n_logs))
    for (name, way), here in told.items():
        if way == ways[0]:
            print(f"  true difference {name}: {0.9 * some.exact[name]:+.4f}, δ = {DELTA}")
        answers = ", ".join(share(a, here[a], n_logs) for a in ("better by at least δ", "better", "worse"))
        rest = ", ".join(f"{a} {here[a] / n_logs:.3f}" for a in ("no difference that matters", "undecided") if here[a])
        cover = here["covers"] / n_logs
        within = "" if way != ways[0] or cell.trust else " within" if 0.93 <= cover <= 0.97 else " OUTSIDE"
        print(
            f"    {way}: {answers}{', ' + rest if rest else ''}; {share('wrong sign', here['wrong'], n_logs)}; "
            f"{share('covers', here['covers'], n_logs)}{within}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--logs", type=int, default=None)
    given = parser.parse_args()
    some = population()
    for cell in CELLS:
        if all(word in cell.name for word in given.words):
            print(cell.name, flush=True)
            start = time.perf_counter()
            measure(some, cell, given.logs or cell.logs)
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
