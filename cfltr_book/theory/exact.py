"""Expectations by enumeration: every click log a small experiment can produce, with its probability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, islice, product
from math import comb, factorial, prod

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.users import User

LIMIT = 2_000_000


def enumerate_logs(
    policy: LoggingPolicy, user: User, *, relevance: ArrayLike, sessions: ArrayLike
) -> Iterator[tuple[float, ClickLog]]:
    """Yield ``(probability, log)`` for every possible outcome of the counts: P(log) = P(displays) · Π Binomial(clicks).

    First every table of impressions that the displays of the sessions can add up to, then the clicks: each document
    and rank has a count 0 … impressions with its Binomial probability; outcomes are the product.

    Parameters
    ----------
    policy : LoggingPolicy
    user : User
    relevance : (n_docs,) in [0, 1]
    sessions : (n_queries,)
        Whole numbers; few, for the outcomes grow exponentially.

    Raises
    ------
    ValueError
        When there are more than two million outcomes.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_book.theory.exact import enumerate_logs
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> for probability, log in enumerate_logs(policy, user, relevance=[1, 0, 1], sessions=[1]):
    ...     print(round(probability, 3), log.clicks)
    0.667 [1 0 0]
    0.333 [1 0 1]
    """
    offsets = policy.offsets
    per_query = checks.counts(sessions, len(offsets) - 1, "sessions")
    rel = checks.finite_vector(relevance, int(offsets[-1]), "relevance")
    tables = _impression_tables(policy, per_query)
    _require_few(sum(prod(n + 1 for n in impressions.tolist()) for *_, impressions in tables))
    for chance, document, rank, impressions in tables:
        rho = user.click_probability(rank, rel[document])
        propensity = user.propensity(rank)
        laws = [
            [(c, comb(n, c) * p**c * (1 - p) ** (n - c)) for c in range(n + 1)]
            for n, p in zip(impressions.tolist(), rho.tolist(), strict=True)
        ]
        for outcome in product(*laws):
            probability = chance * prod(p for _, p in outcome)
            if probability == 0.0:
                continue
            clicks = np.array([c for c, _ in outcome], dtype=np.int64)
            yield (
                probability,
                ClickLog(
                    document=document,
                    rank=rank,
                    impressions=impressions,
                    clicks=clicks,
                    propensity=propensity,
                    sessions=per_query,
                    offsets=offsets,
                ),
            )


def _require_few(n_outcomes: int) -> None:
    if n_outcomes > LIMIT:
        raise ValueError(
            f"sessions, relevance: {n_outcomes} outcomes are too many to enumerate (limit {LIMIT}); "
            "use fewer documents or sessions"
        )


def _impression_tables(policy: LoggingPolicy, sessions: IntArray) -> list[tuple[float, IntArray, IntArray, IntArray]]:
    """Every ``(probability, document, rank, impressions)`` that the displays of all sessions can add up to.

    The order of the sessions does not matter: of n sessions each *multiset* of displays has a Multinomial probability.
    """
    asked = np.flatnonzero(sessions).tolist()
    pages = [list(islice(policy.displays(q), LIMIT + 1)) for q in asked]
    _require_few(
        prod(comb(len(shown) + int(sessions[q]) - 1, int(sessions[q])) for q, shown in zip(asked, pages, strict=True))
    )
    per_query = []
    for q, shown in zip(asked, pages, strict=True):
        n, tables = int(sessions[q]), dict[tuple[tuple[tuple[int, int], int], ...], float]()
        for chosen in combinations_with_replacement(range(len(shown)), n):
            times = Counter(chosen)
            ways = factorial(n) // prod(map(factorial, times.values()))
            places: Counter[tuple[int, int]] = Counter()
            for i, count in times.items():
                for place, document in enumerate(shown[i][1], start=1):
                    places[document, place] += count
            table = tuple(sorted(places.items()))
            tables[table] = tables.get(table, 0.0) + ways * prod(shown[i][0] ** c for i, c in times.items())
        per_query.append(tables)
    out = []
    for parts in product(*(tables.items() for tables in per_query)):
        terms = [term for table, _ in parts for term in table]
        columns = np.array([(d, r, n) for (d, r), n in terms], dtype=np.int64).reshape(-1, 3).T
        out.append((float(prod(p for _, p in parts)), columns[0], columns[1], columns[2]))
    return out


def expectation(
    statistic: Callable[[ClickLog], ArrayLike],
    policy: LoggingPolicy,
    *,
    user: User,
    relevance: ArrayLike,
    sessions: ArrayLike,
) -> FloatArray:
    """Exact E[statistic(log)] = Σ over all outcomes of P(log) · ``statistic(log)``.  Scalars come back as 0-d arrays.

    The other arguments and errors are those of :func:`enumerate_logs`.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_book.theory.exact import expectation
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> experiment = {"user": user, "relevance": [1, 0, 1], "sessions": [2]}
    >>> mean = expectation(lambda log: cf.ips(log, proposed).report(), policy, **experiment)
    >>> round(float(mean), 3)  # the true DCG: IPS is unbiased
    1.631
    """
    total: FloatArray | float = 0.0
    for probability, log in enumerate_logs(policy, user, relevance=relevance, sessions=sessions):
        total = total + probability * np.asarray(statistic(log), dtype=np.float64)
    return np.asarray(total)


def mean_and_variance(
    statistic: Callable[[ClickLog], ArrayLike],
    policy: LoggingPolicy,
    *,
    user: User,
    relevance: ArrayLike,
    sessions: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Exact mean E[x] and variance E[(x − E x)²], which is no difference, of x = ``statistic(log)``.

    The other arguments and errors are those of :func:`enumerate_logs`; both results have the shape of the statistic.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_book.theory.exact import mean_and_variance
    >>> from cfltr_book.theory.variances import ips_variance
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> experiment = {"user": user, "relevance": [1, 0, 1], "sessions": [6]}
    >>> mean, variance = mean_and_variance(lambda log: cf.ips(log, proposed).report(), policy, **experiment)
    >>> round(float(mean), 3), round(float(variance), 3)  # ips_variance has the second in closed form
    (1.631, 0.333)
    """
    outcomes = [
        (p, np.asarray(statistic(log), dtype=np.float64))
        for p, log in enumerate_logs(policy, user, relevance=relevance, sessions=sessions)
    ]
    mean = sum((p * x for p, x in outcomes), np.asarray(0.0))
    variance = sum((p * (x - mean) ** 2 for p, x in outcomes), np.asarray(0.0))
    return np.asarray(mean), np.asarray(variance)
