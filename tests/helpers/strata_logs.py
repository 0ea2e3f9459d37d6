"""Small logs as counts by stratum, for the estimators of examination: from rows, from groups, and drawn."""

import itertools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cfltr_core import DisplayCounts

Stratum = dict[int, tuple[int, int]]


def of_rows(rows: Iterable[tuple]) -> DisplayCounts:
    """Counts of rows (query, document, rank, impressions, clicks), or with the period behind the query."""
    query, *period, document, rank, impressions, clicks = zip(*rows, strict=True)
    return DisplayCounts(
        query=query, document=document, rank=rank, impressions=impressions, clicks=clicks,
        period=period[0] if period else None,
    )  # fmt: skip


def of_groups(groups: Mapping[tuple[int, ...], Stratum]) -> DisplayCounts:
    """Counts of strata {rank: (impressions, clicks)} by (query, document), or by (query, period, document)."""
    return of_rows((*key, rank, n, c) for key, group in groups.items() for rank, (n, c) in group.items())


def drawn(
    seed: int,
    *,
    n_queries: int,
    n_ranks: int = 4,
    documents: int = 2,
    least: int = 5,
    most: int = 60,
    law: Callable[[int, float], float] = lambda rank, attraction: attraction / rank,
) -> dict[tuple[int, int, int], Stratum]:
    """Strata by (query, 0, document): documents of every query, each shown at two ranks or more, clicked by ``law``."""
    rng, groups = np.random.default_rng(seed), {}
    for query, document in itertools.product(range(n_queries), range(documents)):
        attraction, group = rng.uniform(0.2, 1), {}
        for k in sorted((rng.choice(n_ranks, size=rng.integers(2, n_ranks + 1), replace=False) + 1).tolist()):
            n = int(rng.integers(least, most))
            group[k] = (n, int(rng.binomial(n, law(k, attraction))))
        groups[query, 0, documents * query + document] = group
    return groups
