"""How much an estimate varies from log to log, by formula: what a standard error estimates from one log."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks


def ips_variance(
    lam: ArrayLike,
    click_probability: ArrayLike,
    *,
    weights: ArrayLike,
    offsets: ArrayLike,
    sessions: ArrayLike,
) -> float:
    """Exact variance of (1/S) Σ clicks · λ · weights under a position-based user, with one display per query.

    Under a stochastic policy documents are displayed together or not, which adds terms that are not counted here.

    With ρ the click probability, a = λ · weights, and S_q sessions of query q,

        Var = (1/S²) Σ_q S_q Σ_{d ∈ q} ρ_d (1 − ρ_d) a_d²                        (``sessions`` an array)
        Var = (1/S) { mean_q Σ_d ρ_d (1 − ρ_d) a_d² + Var_q(Σ_d ρ_d a_d) }       (``sessions`` a number)

    The second is for sessions that draw their query uniformly: it adds the variance between queries.

    Source: derived in chapter 2.

    Parameters
    ----------
    lam : (n_docs,)
        λ(rank(d)) under the ranker that is judged.
    click_probability : (n_docs,) in [0, 1]
        ρ, as :meth:`~cfltr_core.clicks.users.PositionBasedUser.click_probability` gives it.
    weights : (n_docs,)
        1/propensity for IPS, 1 for the naive estimate; give 0 to documents never shown.
    offsets : (n_queries + 1,)
    sessions : (n_queries,) or int
        S_q of each query, or S in all.

    Raises
    ------
    ValueError
        For shapes that disagree, a ρ that is no probability, or no session.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_book.theory.variances import ips_variance
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> rho = cf.PositionBasedUser([1, 1/2, 1/3]).click_probability([1, 2, 3], [1, 0, 1])
    >>> variance = ips_variance(proposed, rho, weights=[1, 2, 3], offsets=[0, 3], sessions=[6])
    >>> round(variance, 3)  # only C is uncertain: (1/6) · 1/3 · 2/3 · 3²
    0.333
    """
    cuts = checks.offsets_of(offsets)
    n_docs = int(cuts[-1])
    values = checks.finite_vector(lam, n_docs, "lam")
    w = checks.finite_vector(weights, n_docs, "weights")
    rho = checks.finite_vector(click_probability, n_docs, "click_probability", low=0, high=1, why="a probability")
    within = np.add.reduceat(rho * (1 - rho) * (values * w) ** 2, cuts[:-1])
    if np.ndim(sessions) == 0:
        total = checks.positive_int(np.asarray(sessions).item(), "sessions")
        between = np.add.reduceat(rho * values * w, cuts[:-1]).var()
        return float((within.mean() + between) / total)
    per_query = checks.counts(sessions, len(cuts) - 1, "sessions")
    checks.positive_int(int(per_query.sum()), "the sum of sessions")
    return float((per_query * within).sum() / per_query.sum() ** 2)
