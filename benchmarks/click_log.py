"""A log of 10⁶ and of 10⁸ clicks on 20,000 queries of about 23 documents: time and memory.

    python -m benchmarks.click_log

The plain simulation draws every examination of every session: for each session a query, for each of its documents a
random number, one click record where the document is relevant and examined.  It does so in blocks, as vectorised as
NumPy allows.  The package draws one Binomial count per document instead, which is the same law.

Compared first: the sessions of both (equal); the clicks on each document, whose differences make a chi-square with
mean 1 per document and must lie within 5 standard errors of it; and the IPS estimates, in the same way.  Memory is
the peak of what Python and NumPy allocated.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_of, peak_memory, table
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    PositionBasedUser,
    draw_sessions,
    ips,
    power_examination,
    rank_weights,
    simulate_clicks,
)
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.ranking.rank_weight import dcg

N_QUERIES, MEAN_LENGTH = 20_000, 23
CLICKS, MANY = 10**6, 10**8
BLOCK = 20_000


def per_click(
    offsets: np.ndarray, probability: np.ndarray, sessions: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Session and document of every single click, from one random number per session and document."""
    asked = rng.permutation(np.repeat(np.arange(len(sessions)), sessions))
    lengths = np.diff(offsets)
    session, document = [], []
    for start in range(0, len(asked), BLOCK):
        queries = asked[start : start + BLOCK]
        sizes = lengths[queries]
        of_session = np.repeat(np.arange(start, start + len(queries)), sizes)
        rows = np.arange(int(sizes.sum())) + np.repeat(offsets[queries] - (np.cumsum(sizes) - sizes), sizes)
        clicked = rng.random(len(rows)) < probability[rows]
        session.append(of_session[clicked])
        document.append(rows[clicked])
    return np.concatenate(session), np.concatenate(document)


def main() -> None:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(MEAN_LENGTH - 1, size=N_QUERIES) + 1)])
    n_docs = int(offsets[-1])
    policy = DeterministicPolicy.rank_by(rng.normal(size=n_docs), offsets, rng=rng)
    user = PositionBasedUser(power_examination(1.0))
    relevance = (rng.random(n_docs) < 0.1).astype(np.int64)
    probability = user.click_probability(policy.displayed_rank, relevance)
    lam = rank_weights(rng.normal(size=n_docs), offsets, metric=dcg()).lam
    print(f"{N_QUERIES:,} queries, {n_docs:,} documents")

    million = draw_sessions(sessions_for_clicks(policy, user, n_clicks=CLICKS, relevance=relevance), N_QUERIES, rng=rng)
    hundred = draw_sessions(sessions_for_clicks(policy, user, n_clicks=MANY, relevance=relevance), N_QUERIES, rng=rng)

    def simulate(sessions: np.ndarray) -> ClickLog:
        return simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=np.random.default_rng(1))

    def plain() -> tuple[np.ndarray, np.ndarray]:
        return per_click(offsets, probability, million, np.random.default_rng(1))

    log, (_, document) = simulate(million), plain()
    assert log.n_sessions == million.sum()
    counts = np.bincount(document, minlength=n_docs)
    # Two independent Binomial counts: E[(c₁ − c₂)²] = 2 n p (1 − p).
    expected = 2 * np.repeat(million, np.diff(offsets)) * probability * (1 - probability)
    busy = expected > 10
    statistic = (log.clicks[np.searchsorted(log.document, np.flatnonzero(busy))] - counts[busy]) ** 2 / expected[busy]
    z = (statistic.mean() - 1) / (statistic.std() / np.sqrt(busy.sum()))
    assert abs(z) < 5, z
    # Two independent estimates of one number: their difference has √2 standard errors.
    estimate = ips(log, lam=lam, unit="session")
    single = float((lam[document] / user.propensity(policy.displayed_rank[document])).sum()) / million.sum()
    assert abs(single - estimate.value) < 5 * np.sqrt(2) * estimate.standard_error

    small, _ = best_of(lambda: simulate(million), 3)
    large, result = best_of(lambda: simulate(hundred), 3)
    slow, _ = best_of(plain, 3)
    print(f"chi-square of the two logs, per document: {statistic.mean():.3f} (z = {z:+.2f})")
    print(
        table(
            [
                (f"simulate_clicks, {log.n_clicks:,} clicks", small, 1.0),
                (f"simulate_clicks, {result.n_clicks:,} clicks", large, large / small),
                (f"plain NumPy, {len(document):,} clicks", slow, slow / small),
            ]
        )
    )
    judge, _ = best_of(lambda: ips(result, lam=lam), 3)
    print(table([(f"ips with its error, {result.n_clicks:,} clicks", judge, judge / small)]))
    print(f"  peak memory: {peak_memory(lambda: simulate(million)):.0f} MB for {CLICKS:,} clicks, ", end="")
    print(
        f"{peak_memory(lambda: simulate(hundred)):.0f} MB for {MANY:,}, plain {peak_memory(plain):.0f} MB for the first"
    )


if __name__ == "__main__":
    main()
