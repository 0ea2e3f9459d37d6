"""Displays and logs of stochastic policies: time and memory.

    python -m benchmarks.policies

First a million top-5 displays of a Plackett–Luce policy on a list of 1,000 documents.  The package draws places with
replacement by the alias method, and a repeated document anew from the others.  Peers, in plain NumPy:
``Generator.choice(replace=False)`` session by session, which is the textbook way; and the Gumbel trick in blocks, once
with a partial and once with a full sort.  Peers are timed on a hundredth of the displays, and scaled.

Then logs of a hundred million sessions on 3,000 queries of about 23 documents, pages of five, for four policies, the
last so cold that almost every draw is a repetition.  The peer draws every display and every examination, in blocks,
with the same ``sample``, and is timed on a million sessions.

Compared first: how often each document stands at each of the five places, whose squared differences make a chi-square
with mean 1 per cell; and the policy-aware estimates.  All must agree within 5 standard errors.
"""

from __future__ import annotations

import resource

import numpy as np

from benchmarks.timing import best_of, peak_memory, table
from cfltr_core import (
    ClickLog,
    EpsilonGreedyPolicy,
    PlackettLucePolicy,
    PositionBasedUser,
    draw_sessions,
    ips,
    policy_aware,
    power_examination,
    rank_weights,
    simulate_clicks,
)
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.ranking.rank_weight import dcg

N_DISPLAYS, N_DOCS, K = 10**6, 1_000, 5
MANY, N_QUERIES = 10**8, 3_000
BLOCK = 2_000


def by_choice(weight: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(len(weight), size=K, replace=False, p=weight) for _ in range(n)])


def by_gumbel(logits: np.ndarray, n: int, rng: np.random.Generator, whole: bool) -> np.ndarray:
    """The K largest of score + Gumbel noise, block by block."""
    out = []
    for start in range(0, n, BLOCK):
        key = -(logits + rng.gumbel(size=(min(BLOCK, n - start), len(logits))))
        if whole:
            out.append(np.argsort(key, axis=1)[:, :K])
        else:
            best = np.argpartition(key, K, axis=1)[:, :K]
            order = np.argsort(np.take_along_axis(key, best, axis=1), axis=1)
            out.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(out)


def places_of(shown: np.ndarray, n_docs: int) -> np.ndarray:
    """How often each document stood at each place."""
    return np.array([np.bincount(shown[:, r][shown[:, r] >= 0], minlength=n_docs) for r in range(K)])


def agree(ours: np.ndarray, n_ours: np.ndarray | int, theirs: np.ndarray, n_theirs: np.ndarray | int) -> float:
    """Chi-square per cell of two tables of counts out of ``n``; fails beyond 5 standard errors of its mean 1."""
    p = (ours + theirs) / (n_ours + n_theirs)
    variance = p * (1 - p) * (1 / n_ours + 1 / n_theirs)
    busy = p * (1 - p) * np.minimum(n_ours, n_theirs) > 5
    statistic = (ours / n_ours - theirs / n_theirs)[busy] ** 2 / variance[busy]
    assert abs(statistic.mean() - 1) < 5 * np.sqrt(2 / busy.sum()), statistic.mean()
    return float(statistic.mean())


def displays() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=N_DOCS)
    policy = PlackettLucePolicy(scores, [0, N_DOCS], cutoff=K)
    weight = np.exp(scores) / np.exp(scores).sum()
    queries = np.zeros(N_DISPLAYS, dtype=np.int64)
    few = N_DISPLAYS // 100
    package, shown = best_of(lambda: policy.sample(queries, rng), 3)
    rows = [("PlackettLucePolicy.sample", package, 1.0)]
    ours = places_of(shown, N_DOCS)
    for name, call, n in (
        ("Generator.choice, session by session", lambda: by_choice(weight, few, rng), few),
        ("Gumbel trick, argpartition", lambda: by_gumbel(scores, few, rng, False), few),
        ("Gumbel trick, argsort of all", lambda: by_gumbel(scores, few, rng, True), few),
    ):
        seconds, drawn = best_of(call, 2)
        agree(ours, N_DISPLAYS, places_of(drawn, N_DOCS), n)
        seconds *= N_DISPLAYS / n
        rows.append((name, seconds, seconds / package))
    print(f"{N_DISPLAYS:,} top-{K} displays from {N_DOCS:,} documents; peers timed on {few:,} and scaled")
    print(table(rows, "s"))
    exact, _ = best_of(lambda: policy.exposure(PositionBasedUser(power_examination(1.0))), 3)
    print(f"  its exposure, exact: {exact * 1e3:.0f} ms")


def session_by_session(
    policy: LoggingPolicy,
    user: PositionBasedUser,
    relevance: np.ndarray,
    sessions: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Clicks on each document at each place from one random number per displayed document."""
    asked = np.repeat(np.arange(len(sessions)), sessions)
    clicks = np.zeros((len(relevance), K), dtype=np.int64)
    theta = user.propensity(np.arange(1, K + 1))
    for start in range(0, len(asked), 1 << 16):
        shown = policy.sample(asked[start : start + (1 << 16)], rng)
        clicked = (rng.random(shown.shape) < theta * relevance[shown]) & (shown >= 0)
        session, place = np.nonzero(clicked)
        np.add.at(clicks, (shown[session, place], place), 1)
    return clicks


def logs() -> None:
    rng = np.random.default_rng(0)
    n_queries = N_QUERIES
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(22, size=n_queries) + 1)])
    n_docs = int(offsets[-1])
    scores, relevance = rng.normal(size=n_docs), (rng.random(n_docs) < 0.1).astype(np.int64)
    user, lam = PositionBasedUser(power_examination(1.0)), rank_weights(rng.normal(size=n_docs), offsets, metric=dcg(K))
    small, large = draw_sessions(N_DISPLAYS, n_queries, rng=rng), draw_sessions(MANY, n_queries, rng=rng)
    print(f"logs on {n_queries:,} queries, {n_docs:,} documents, pages of {K}")
    for name, policy in (
        ("random last place", EpsilonGreedyPolicy.rank_by(scores, offsets, rng=rng, epsilon=[0.0] * (K - 1) + [1.0])),
        ("epsilon-greedy 0.1", EpsilonGreedyPolicy.rank_by(scores, offsets, rng=rng, epsilon=[0.1] * K)),
        ("Plackett-Luce", PlackettLucePolicy(scores, offsets, cutoff=K)),
        ("Plackett-Luce, T = 0.1", PlackettLucePolicy(scores, offsets, cutoff=K, temperature=0.1)),
    ):

        def simulate(sessions: np.ndarray, policy: LoggingPolicy = policy) -> ClickLog:
            return simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=np.random.default_rng(1))

        def plain(policy: LoggingPolicy = policy) -> np.ndarray:
            return session_by_session(policy, user, relevance, small, np.random.default_rng(2))

        peer, clicks = best_of(plain, 1)
        log = simulate(small)
        aware = policy_aware(log, policy.exposure(user))
        ours = np.zeros((n_docs, K), dtype=np.int64)
        ours[log.document, log.rank - 1] = log.clicks
        asked = np.repeat(small, np.diff(offsets))[:, None]
        agree(ours, asked, clicks, asked)
        weight = np.divide(lam, policy.exposure(user))[:, None]
        estimate = ips(aware, lam=lam)
        single = float((clicks * weight).sum()) / N_DISPLAYS
        # The standard error by query holds the spread between queries too, which both logs share: a wide allowance.
        assert abs(single - estimate.value) < 5 * np.sqrt(2) * estimate.standard_error
        few, _ = best_of(lambda: simulate(small), 2)
        many, result = best_of(lambda: simulate(large), 1)
        print(
            table(
                [
                    (f"{name}, 10⁸ sessions", many, 1.0),
                    (f"{name}, 10⁶ sessions", few, few / many),
                    ("  every session in turn, 10⁶", peer, peer / few),
                ]
            )
        )
        # Ten million sessions already fill every block; tracing allocations slows the draw down.
        peak = peak_memory(lambda: simulate(draw_sessions(MANY // 10, n_queries, rng=np.random.default_rng(3))))
        print(
            f"    {result.n_clicks:,} clicks, {len(result.document):,} terms; {peak:.0f} MB at the peak of 10⁷ sessions"
        )
    print(
        f"  largest resident size of the whole run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"
    )


def main() -> None:
    displays()
    logs()


if __name__ == "__main__":
    main()
