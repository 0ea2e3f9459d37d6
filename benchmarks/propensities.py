"""Where propensities come from: speed, error and coverage of the estimators of examination.

    python -m benchmarks.propensities   # speed, and errors by the number of sessions

Speed.  Ten million rows, one a displayed document, are counted into strata; the peer is a groupby of pandas.  AllPairs
is fitted to the first million of them; the peer is the published procedure, written again in plain torch: one weight a
document, sigmoids of free parameters, 5,000 epochs of Adam with rate 0.01.  Both see the same interventional sets; the
errors of both are printed, and once more those of the peer with its index k · k′, by which pairs such as (1, 6) and
(2, 3) share a parameter.  The conditional likelihood is fitted to a million and to ten million terms.

How often the intervals hold the truth is measured by :mod:`benchmarks.propensity_coverage`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.timing import best_of, peak_memory, table
from cfltr_book import load_corpus
from cfltr_core import (
    DeterministicPolicy,
    MixturePolicy,
    PositionBasedUser,
    draw_sessions,
    fit_linear_ranker,
    power_examination,
    simulate_clicks,
)
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.all_pairs import all_pairs, all_pairs_likelihood
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import conditional_poisson
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.harvesting import adjacent_chain, click_rates, pivot
from cfltr_core.propensity.identifiability import rank_links
from cfltr_core.propensity.interventional_sets import PairCounts, pair_counts
from cfltr_core.propensity.interventions import RandTopPolicy, SwapPolicy
from cfltr_core.propensity.shrinkage import shrunk_power
from cfltr_core.propensity.strata import DisplayCounts, count_rows, display_counts

K = 10
N_ROWS, N_SESSIONS, STRATA = 1_000_000, 1_160_000, (400_000, 4_000_000)
SESSIONS = (1_000, 3_000, 10_000, 100_000, 1_000_000)
TRUTH = 1.0 / np.arange(1, K + 1)
ROWS = ("query", "document", "rank", "clicked")


def error_of(curve: np.ndarray) -> float:
    """Mean |θ̂_k/θ_k − 1| of the ranks below the first."""
    return float(np.abs(curve / TRUTH - 1)[1:].mean())


def world() -> tuple[np.ndarray, PositionBasedUser, dict[str, LoggingPolicy]]:
    """Relevance, user and policies on the training queries of yahoo-like at scale ci."""
    data = load_corpus("yahoo-like", "ci", seed=0).train
    rng = np.random.default_rng(0)
    scores = [fit_linear_ranker(data, 0.01, rng=rng).decision_function(data.features) for _ in range(3)]
    rankers = [DeterministicPolicy.rank_by(s, data.offsets, rng=rng, cutoff=K) for s in scores]
    policies: dict[str, LoggingPolicy] = {
        "A/B of 3 rankers": MixturePolicy(rankers, [1 / 3] * 3),
        "RandTop-10": RandTopPolicy(rankers[0], n=K),
        "RandTop-10 on 10 %": MixturePolicy([rankers[0], RandTopPolicy(rankers[0], n=K)], [0.9, 0.1]),
        "swaps with rank 1": SwapPolicy.landmark(rankers[0], 1),
        "random pairs": SwapPolicy.random_pairs(rankers[0]),
        "adjacent swaps": SwapPolicy.adjacent(rankers[0]),
    }
    return data.binary, PositionBasedUser(power_examination(1.0), epsilon_minus=0.1), policies


def log_of(policy: LoggingPolicy, n_sessions: int, rng: np.random.Generator) -> DisplayCounts:
    sessions = draw_sessions(n_sessions, len(policy.offsets) - 1, rng=rng)
    return display_counts(simulate_clicks(policy, USER, relevance=RELEVANCE, sessions=sessions, rng=rng))


def rows_of(policy: LoggingPolicy, n_sessions: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A row for each displayed document of ``n_sessions``."""
    query = rng.integers(0, len(policy.offsets) - 1, n_sessions)
    shown = policy.sample(query, rng)
    chance = USER.click_probability(np.broadcast_to(np.arange(1, K + 1), shown.shape), RELEVANCE[shown])
    clicked = rng.random(shown.shape) < chance
    there = shown >= 0
    rank = np.broadcast_to(np.arange(1, K + 1), shown.shape)
    parts = (np.broadcast_to(query[:, None], shown.shape), shown, rank, clicked)
    return {name: part[there].astype(np.int64) for name, part in zip(ROWS, parts, strict=True)}


def adam(pairs: PairCounts, shared: bool) -> np.ndarray:
    """Examination as the published procedure finds it; ``shared``: relevance is indexed by k · k′."""
    import torch

    torch.manual_seed(0)
    n = len(pairs.clicks)
    k, j = np.nonzero(pairs.sets)
    index = (k + 1) * (j + 1) if shared else np.minimum(k, j) * n + np.maximum(k, j)
    place, pair = torch.tensor(k), torch.tensor(index)
    c, m = (torch.tensor(part[k, j], dtype=torch.float32) for part in (pairs.clicks, pairs.misses))
    seen, liked = torch.nn.Embedding(n, 1), torch.nn.Embedding((n + 1) ** 2, 1)
    optimizer = torch.optim.Adam([*seen.parameters(), *liked.parameters()], lr=0.01)
    for _ in range(5_000):
        optimizer.zero_grad()
        p = (torch.sigmoid(seen(place)) * torch.sigmoid(liked(pair))).squeeze(-1)
        loss = -(c * torch.log(p) + m * torch.log(1 - p)).sum()
        loss.backward()
        optimizer.step()
    theta = torch.sigmoid(seen.weight.detach()).squeeze(-1).numpy().astype(np.float64)
    return theta / theta[0]


def by_pandas(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    grouped = pd.DataFrame(rows).groupby(list(ROWS[:3]))["clicked"].agg(["size", "sum"])
    return grouped["size"].to_numpy(), grouped["sum"].to_numpy()


def random_terms(n_strata: int, rng: np.random.Generator) -> DisplayCounts:
    """Strata of two or three ranks, five displays at each."""
    theta, first = TRUTH, rng.integers(1, K - 1, n_strata)
    size, gap = rng.integers(2, 4, n_strata), rng.integers(1, 2, n_strata)
    rank = np.stack([first, first + gap, first + gap + 1], axis=1)
    there = np.arange(3) < size[:, None]
    document = np.broadcast_to(np.arange(n_strata)[:, None], rank.shape)[there]
    clicks = rng.binomial(5, 0.5 * theta[rank[there] - 1])
    return DisplayCounts(
        query=document // 20, document=document, rank=rank[there], impressions=np.full(len(document), 5), clicks=clicks
    )


def speed() -> None:
    rng = np.random.default_rng(1)
    policy = POLICIES["A/B of 3 rankers"]
    rows = rows_of(policy, N_SESSIONS, rng)
    n_rows = len(rows["rank"])
    counting, counts = best_of(lambda: count_rows(**rows), 1)
    grouping, peer = best_of(lambda: by_pandas(rows), 1)
    np.testing.assert_array_equal(counts.impressions, peer[0])
    np.testing.assert_array_equal(counts.clicks, peer[1])
    print(f"{n_rows:,} rows into {len(counts.rank):,} terms")
    print(table([("count_rows", counting, 1.0), ("pandas groupby", grouping, grouping / counting)], "s"))
    print(f"  {peak_memory(lambda: count_rows(**rows)):.0f} MB beside the rows, which hold {n_rows * 32 / 1e6:.0f} MB")

    million = {name: column[:N_ROWS] for name, column in rows.items()}
    small = count_rows(**million)
    pairs = pair_counts(small, weighting="documents")
    whole, _ = best_of(lambda: all_pairs(count_rows(**million), weighting="documents"), 3)
    ours, curve = best_of(lambda: all_pairs(small, weighting="documents"), 3)
    start = time.perf_counter()
    theirs = adam(pairs, shared=False)
    published = time.perf_counter() - start
    grouping, _ = best_of(lambda: by_pandas(million), 2)
    free = np.arange(K) > 0
    alone, _ = best_of(lambda: maximise(lambda u: all_pairs_likelihood(pairs, u), np.zeros(K), free=free), 5)
    shared = adam(pairs, shared=True)
    fitted = [
        ("the fit alone, from the interventional sets", alone, 1.0),
        ("Adam, from the interventional sets", published, published / alone),
        ("all_pairs, from the terms, with errors", ours, ours / alone),
        ("all_pairs, from the rows, with errors", whole, whole / alone),
        ("Adam, from the rows, counted by pandas", published + grouping, (published + grouping) / alone),
    ]
    print(f"AllPairs on 1,000,000 rows, {len(small.rank):,} terms")
    print(table(fitted))
    print(f"  Adam / all_pairs, both from the rows: {(published + grouping) / whole:.0f}")
    for name, found in (("all_pairs", curve.curve), ("Adam", theirs), ("Adam, indexed by k · k′", shared)):
        far = np.abs(found / TRUTH - 1).max()
        print(f"  {name:26s} error {error_of(found):.4f}, largest {far:.3f}, from all_pairs {_gap(found, curve):.1e}")
    for n_strata in STRATA:
        counts = random_terms(n_strata, rng)
        links, _ = best_of(lambda counts=counts: rank_links(counts), 1)
        fit, _ = best_of(lambda counts=counts: conditional_poisson(counts), 1)
        print(f"{len(counts.rank):,} terms: links {links:.2f} s, conditional Poisson {fit:.2f} s in all")


def _gap(found: np.ndarray, curve: PropensityCurve) -> float:
    return float(np.abs(found - curve.curve).max())


ESTIMATORS: dict[str, Callable[[DisplayCounts], PropensityCurve]] = {
    "conditional Poisson": conditional_poisson, "AllPairs": all_pairs, "pivot": pivot, "chain": adjacent_chain,
    "shrunk power": shrunk_power, "click rates": click_rates,
}  # fmt: skip


def errors() -> None:
    print("mean error over 5 logs, − where a rank of some log is not comparable")
    for design, policy in POLICIES.items():
        for n_sessions in SESSIONS:
            if design != "A/B of 3 rankers" and n_sessions != 100_000:
                continue
            logs = [log_of(policy, n_sessions, np.random.default_rng([seed, n_sessions])) for seed in range(5)]
            cells = []
            for name, estimate in ESTIMATORS.items():
                try:
                    value = float(np.mean([error_of(estimate(counts).curve) for counts in logs]))
                except ValueError:
                    value = float("nan")
                cells.append(f"{name} {value:.3f}" if np.isfinite(value) else f"{name} −")
            print(f"  {design}, {n_sessions:,}: {', '.join(cells)}", flush=True)


RELEVANCE, USER, POLICIES = world()

if __name__ == "__main__":
    speed()
    errors()
