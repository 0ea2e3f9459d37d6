"""Are the intervals of the examination curve honest?  Coverage over 1,000 logs a cell, with exact binomial intervals.

    python -m benchmarks.propensity_coverage                # every cell; half an hour on one core
    python -m benchmarks.propensity_coverage "A/B" 100,000  # the cells whose name holds all these words
    python -m benchmarks.propensity_coverage "25 queries"

A cell is a design (shuffled pages, swaps, three rankers), a number of queries and a number of sessions.  Each log of a
cell is fitted by every estimator that the design serves; the lines below a cell tell, for ranks 2 to 10, in what share
of the logs the 95 % interval of θ_k/θ₁ holds the truth, with the interval of Clopper & Pearson 1934 for that share, and
the mean over the ranks, with twice the standard error between logs (the ranks of a log are not independent).  "within"
says that the mean is in [.93, .97] and no rank is below .92.  Last comes the mean with the normal quantile for any
number of queries, and the least of the ranks: what Student's quantile changes.

Few queries: forty sets of so many queries of the collection, each with its share of the logs.  Trust: lists of three,
two rankers, 5,000 sessions a list; the intervals are those of slopes and intercepts.

Joint models have no interval.  Their cells tell at what share of the ranks, over two hundred populations with their own
rankers and logs, the range from the lowest to the highest of the product of towers, the additive towers and dual
learning holds the truth, and how wide it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.stats import binomtest

from cfltr_book import load_corpus
from cfltr_core import (
    DeterministicPolicy,
    MixturePolicy,
    PositionBasedUser,
    TrustUser,
    draw_sessions,
    fit_linear_ranker,
    power_examination,
    simulate_clicks,
)
from cfltr_core.checks import BoolArray, FloatArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.all_pairs import all_pairs
from cfltr_core.propensity.conditional_poisson import conditional_poisson
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.dual_learning import dual_learning, pooled_counts
from cfltr_core.propensity.harvesting import adjacent_chain, click_rates, pivot
from cfltr_core.propensity.interventions import RandTopPolicy, SwapPolicy
from cfltr_core.propensity.strata import DisplayCounts, display_counts
from cfltr_core.propensity.towers import two_towers
from cfltr_core.propensity.trust_bias import trust_bias

LOGS, SETS, POPULATIONS = 1_000, 40, 200
K, NORMAL = 10, 1.959963984540054
TRUTH = 1.0 / np.arange(1, K + 1)
USER = PositionBasedUser(power_examination(1.0), epsilon_minus=0.1)
TRUSTING = TrustUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=lambda rank: 0.1 + 0.3 / rank)

Estimator = Callable[[DisplayCounts], PropensityCurve]
BOTH: dict[str, Estimator] = {"conditional Poisson": conditional_poisson, "AllPairs": all_pairs}
DESIGNS: dict[str, tuple[Callable[[list[DeterministicPolicy]], LoggingPolicy], dict[str, Estimator]]] = {
    "RandTop-10": (
        lambda pages: RandTopPolicy(pages[0], n=K),
        {"click rates": lambda counts: click_rates(counts, places=K), **BOTH},
    ),
    "swaps with rank 1": (lambda pages: SwapPolicy.landmark(pages[0], 1), {"pivot": pivot, **BOTH}),
    "random pairs": (lambda pages: SwapPolicy.random_pairs(pages[0]), BOTH),
    "adjacent swaps": (lambda pages: SwapPolicy.adjacent(pages[0]), {"chain": adjacent_chain, **BOTH}),
    "A/B of 3 rankers": (lambda pages: MixturePolicy(pages, [1 / 3] * 3), BOTH),
}


@dataclass(frozen=True)
class World:
    """Some queries of the collection: relevance, and three rankers with pages of ten."""

    relevance: FloatArray
    pages: list[DeterministicPolicy]


@cache
def _collection() -> tuple[FloatArray, np.ndarray, list[FloatArray]]:
    """Relevance, offsets and three rankers' scores: the training queries of yahoo-like at scale ci, seed 0."""
    data, rng = load_corpus("yahoo-like", "ci", seed=0).train, np.random.default_rng(0)
    rankers = [fit_linear_ranker(data, 0.01, rng=rng) for _ in range(3)]
    return data.binary, data.offsets, [ranker.decision_function(data.features) for ranker in rankers]


def world(n_queries: int | None, number: int) -> World:
    """The whole collection; or the ``number``-th set of ``n_queries`` queries that fill a page."""
    relevance, offsets, scores = _collection()
    queries = np.arange(len(offsets) - 1)
    if n_queries is not None:
        full = np.flatnonzero(np.diff(offsets) >= K)
        queries = np.random.default_rng([1, n_queries, number]).choice(full, n_queries, replace=False)
    rows = np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in queries])
    cuts, ties = np.append(0, np.cumsum(np.diff(offsets)[queries])), np.random.default_rng(2)
    pages = [DeterministicPolicy.rank_by(f[rows], cuts, rng=ties, cutoff=K) for f in scores]
    return World(relevance[rows], pages)


def logs(design: str, n_queries: int | None, n_sessions: int) -> Iterator[DisplayCounts]:
    n_sets = 1 if n_queries is None else SETS
    for number in range(n_sets):
        some = world(n_queries, number)
        policy = DESIGNS[design][0](some.pages)
        for seed in range(LOGS // n_sets):
            rng = np.random.default_rng([3, n_queries or 0, n_sessions, number, seed])
            sessions = draw_sessions(n_sessions, len(policy.offsets) - 1, rng=rng)
            log = simulate_clicks(policy, USER, relevance=some.relevance, sessions=sessions, rng=rng)
            yield display_counts(log)


def told(name: str, hits: list[BoolArray], *, asked: int, plain: list[BoolArray] | None = None) -> None:
    """Print the coverage of one estimator; ``hits`` has a row for each log in which all ranks have an interval."""
    if len(hits) < asked / 2:
        print(f"  {name}: all ranks linked in {len(hits):,} of {asked:,} logs only", flush=True)
        return
    table = np.array(hits)
    ranks, each = table.mean(axis=0), table.mean(axis=1)
    mean, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
    exact = [binomtest(int(n), len(table)).proportion_ci(method="exact") for n in table.sum(axis=0)]
    within = 0.93 <= mean <= 0.97 and ranks.min() >= 0.92
    gain = ""
    if plain is not None:
        normal = np.array(plain).mean(axis=0)
        gain = f"; normal {normal.mean():.3f}, least {normal.min():.3f}"
    print(
        f"  {name}: mean {mean:.3f} ± {2 * error:.3f}, least {ranks.min():.3f}, {len(table):,} logs: "
        f"{'within' if within else 'OUTSIDE'}{gain}\n    "
        + " ".join(f"{x:.3f} [{e.low:.3f}, {e.high:.3f}]" for x, e in zip(ranks, exact, strict=True)),
        flush=True,
    )


def coverage(design: str, n_queries: int | None, n_sessions: int) -> None:
    estimators = DESIGNS[design][1]
    hits: dict[str, tuple[list[BoolArray], list[BoolArray]]] = {name: ([], []) for name in estimators}
    for counts in logs(design, n_queries, n_sessions):
        for name, estimate in estimators.items():
            try:
                curve = estimate(counts)
            except ValueError:
                continue
            if len(curve.curve) == K and np.isfinite(curve.curve).all():
                low, high = curve.interval().T
                hits[name][0].append(((low <= TRUTH) & (high >= TRUTH))[1:])
                hits[name][1].append((np.abs(curve.log_ratio - np.log(TRUTH)) <= NORMAL * curve.standard_error)[1:])
    for name, (found, plain) in hits.items():
        told(name, found, asked=LOGS, plain=plain)


def trust(n_lists: int) -> None:
    """Slopes and intercepts of ranks 2 and 3, from two rankers that show lists of three in 5,000 sessions each."""
    cuts = np.arange(0, 3 * n_lists + 1, 3)
    policy = MixturePolicy([DeterministicPolicy(np.tile(r, n_lists), cuts) for r in ([1, 2, 3], [2, 3, 1])], [0.5, 0.5])
    slope, intercept = TRUSTING.line([1, 2, 3])
    truth = slope / slope[0], intercept - intercept[0] * slope / slope[0]
    hits: list[BoolArray] = []
    for seed in range(LOGS):
        rng = np.random.default_rng([4, n_lists, seed])
        relevance = rng.integers(2, size=3 * n_lists)
        log = simulate_clicks(policy, TRUSTING, relevance=relevance, sessions=[5_000] * n_lists, rng=rng)
        try:
            found = trust_bias(display_counts(log))
        except ValueError:
            continue
        far = [
            np.abs(x - true) <= NORMAL * error
            for x, true, error in zip(
                (found.slope, found.intercept), truth, (found.slope_error, found.intercept_error), strict=True
            )
        ]
        hits.append(np.concatenate([x[1:] for x in far]))
    told("slopes of ranks 2 and 3, then intercepts", hits, asked=LOGS)


def joint_range(n_rankers: int) -> None:
    """Where the range of three joint models holds the truth, from 100,000 sessions of ``n_rankers``."""
    hits, width = [], []
    for seed in range(POPULATIONS):
        data, rng = load_corpus("yahoo-like", "ci", seed=seed), np.random.default_rng([5, seed])
        queries, x = data.validation, data.validation.features
        made = []
        for _ in range(n_rankers):
            scores = fit_linear_ranker(data.train, 0.01, rng=rng).decision_function(x)
            page = DeterministicPolicy.rank_by(scores, queries.offsets, rng=rng, cutoff=K)
            sessions = draw_sessions(100_000 // n_rankers, queries.n_queries, rng=rng)
            made.append(simulate_clicks(page, USER, relevance=queries.binary, sessions=sessions, rng=rng))
        counts, curves = pooled_counts(made), []
        fits: list[Callable[[], PropensityCurve]] = [
            partial(two_towers, counts, x),
            partial(two_towers, counts, x, combine="additive"),
            partial(dual_learning, made, x, rng=rng),
        ]
        for fit in fits:
            try:
                curve = fit().curve
            except ValueError:
                continue
            curves.append(np.append(curve[:K], np.full(K - len(curve[:K]), np.nan)))
        low, high = np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
        hits.append(((low <= TRUTH) & (high >= TRUTH))[1:])
        width.append(float(((high - low) / TRUTH)[1:].mean()))
    print(f"  from lowest to highest {np.mean(width):.2f} of the truth on average")
    told("range of three joint models", hits, asked=POPULATIONS)


def cells() -> dict[str, Callable[[], None]]:
    """Every cell by its name, in the order in which they run."""
    made: dict[str, Callable[[], None]] = {}
    for design in DESIGNS:
        for n in (10_000, 100_000):
            made[f"{design}, {n:,} sessions, all queries"] = partial(coverage, design, None, n)
    made["A/B of 3 rankers, 3,000 sessions, all queries"] = partial(coverage, "A/B of 3 rankers", None, 3_000)
    for n_queries in (25, 100, 400):
        for design in ("RandTop-10", "swaps with rank 1", "A/B of 3 rankers"):
            n = 400 * n_queries
            made[f"{design}, {n:,} sessions, {n_queries} queries"] = partial(coverage, design, n_queries, n)
    for n_lists in (50, 200):
        made[f"trust, {n_lists} lists"] = partial(trust, n_lists)
    for n_rankers in (1, 3):
        made[f"joint models, rankers: {n_rankers}"] = partial(joint_range, n_rankers)
    return made


def main(words: list[str]) -> None:
    for name, measure in cells().items():
        if all(word in name for word in words):
            print(name, flush=True)
            start = time.perf_counter()
            measure()
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
