"""Expectations by enumeration: every click log a small experiment can produce, with its probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.logs import ClickLog
from cfltr_core.policies import DeterministicPolicy
from cfltr_core.users import PositionBasedUser

LIMIT = 2_000_000


def enumerate_logs(
    policy: DeterministicPolicy, user: PositionBasedUser, relevance: ArrayLike, sessions: ArrayLike
) -> Iterator[tuple[float, ClickLog]]:
    """Yield ``(probability, log)`` for every possible outcome of the counts.

    Each shown document has a count 0 … sessions[q] with its Binomial probability; outcomes are the product.

    Raises
    ------
    ValueError
        When there are more than two million outcomes.
    """
    offsets = policy.offsets
    per_query = checks.counts(sessions, len(offsets) - 1, "sessions")
    rel = checks.finite_vector(relevance, int(offsets[-1]), "relevance")
    rho = user.click_probability(policy.displayed_rank, rel)
    impressions = np.repeat(per_query, np.diff(offsets)) * (policy.displayed_rank > 0)
    seen = np.flatnonzero(impressions)
    n_outcomes = prod(int(n) + 1 for n in impressions[seen])
    if n_outcomes > LIMIT:
        raise ValueError(
            f"sessions, relevance: {n_outcomes} outcomes are too many to enumerate (limit {LIMIT}); "
            "use fewer documents or sessions"
        )
    laws = [
        [(c, comb(n, c) * p**c * (1 - p) ** (n - c)) for c in range(n + 1)]
        for n, p in zip(impressions[seen].tolist(), rho[seen].tolist(), strict=True)
    ]
    propensity = user.propensity(policy.displayed_rank[seen])
    for outcome in product(*laws):
        probability = prod(p for _, p in outcome)
        if probability == 0.0:
            continue
        clicks = np.array([c for c, _ in outcome], dtype=np.int64)
        yield (
            probability,
            ClickLog(seen, policy.displayed_rank[seen], impressions[seen], clicks, propensity, per_query, offsets),
        )


def expectation(
    statistic: Callable[[ClickLog], ArrayLike],
    policy: DeterministicPolicy,
    user: PositionBasedUser,
    relevance: ArrayLike,
    sessions: ArrayLike,
) -> FloatArray:
    """Exact E[statistic(log)]: Σ over all outcomes of probability × statistic.  Scalars come back as 0-d arrays.

    Example: ``expectation(lambda log: ips(log, lam).value, policy, user, relevance, [1])``.
    """
    total: FloatArray | float = 0.0
    for probability, log in enumerate_logs(policy, user, relevance, sessions):
        total = total + probability * np.asarray(statistic(log), dtype=np.float64)
    return np.asarray(total)


def mean_and_variance(
    statistic: Callable[[ClickLog], ArrayLike],
    policy: DeterministicPolicy,
    user: PositionBasedUser,
    relevance: ArrayLike,
    sessions: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Exact mean and variance of ``statistic(log)``; the variance is E[(x − E x)²], not a difference."""
    outcomes = [
        (p, np.asarray(statistic(log), dtype=np.float64))
        for p, log in enumerate_logs(policy, user, relevance, sessions)
    ]
    mean = sum((p * x for p, x in outcomes), np.asarray(0.0))
    variance = sum((p * (x - mean) ** 2 for p, x in outcomes), np.asarray(0.0))
    return np.asarray(mean), np.asarray(variance)
