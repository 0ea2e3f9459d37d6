"""How much of an estimate's noise comes from each query: what decides how far a clustered covariance can be trusted.

A covariance that is clustered by query is estimated from as many terms as there are queries, but not all weigh alike.
If the part of query q in the error of log θ̂_k has variance v_qk, Σ_q of the squared parts has about the law of χ² with

    (Σ_q v_qk)² / Σ_q v_qk² − 1

degrees of freedom.  Clicks are no measure of v_qk: a wanted document at rank 1 is clicked nearly always, so that its
many clicks hardly vary, and a swap compares two documents, of which either may be the one that is seldom seen.

Source: Satterthwaite 1946; for clustered covariances Bell & McCaffrey 2002, here with the Binomial law of clicks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray

if TYPE_CHECKING:
    from cfltr_core.propensity.conditional_poisson import LinkedTerms

# Strata are taken this many at once, so that memory stays bounded.
STRATA = 1 << 15


def query_noise(terms: LinkedTerms, share: FloatArray, inverse: ArrayLike, *, n_clusters: int) -> FloatArray:
    """v_qk = Σ_{s ∈ q} Σ_j b_sj (A_jk − Σ_i π_si A_ik)², the variance of query q's part in log θ̂_k: (n_clusters, n).

    A is the ``inverse`` of minus the Hessian, (n, n), and π the ``share`` of each of ``terms``.  The clicks of a term
    are Binomial: with the fitted mean μ_sj = C_s π_sj their variance is b_sj = μ_sj (1 − μ_sj/n_sj), at least 0.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import fit_ranks, linked_terms, shares
    >>> from cfltr_core.propensity.query_noise import query_noise
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> rows = dict(query=[0, 0, 1, 1], document=[0, 0, 1, 1], rank=[1, 2, 1, 2], impressions=[40, 40, 10, 10])
    >>> terms = linked_terms(DisplayCounts(**rows, clicks=[20, 10, 5, 3]), [1, 2])
    >>> u, inverse = fit_ranks(terms)
    >>> query_noise(terms, shares(terms, u[terms.place]), inverse, n_clusters=2).round(3)  # four times the sessions
    array([[0.   , 0.083],
           [0.   , 0.021]])
    """
    table = np.asarray(inverse, dtype=np.float64)
    pi = checks.finite_vector(share, len(terms.place), "share")
    mean = terms.total * pi
    noise = np.maximum(mean * (1.0 - mean / terms.impressions), 0.0)
    found = np.zeros((n_clusters, table.shape[1]))
    for low in range(0, len(terms.start) - 1, STRATA):
        cuts = terms.start[low : low + STRATA + 1]
        first, last = cuts[0], cuts[-1]
        slope = table[terms.place[first:last]]
        centre = np.add.reduceat(slope * pi[first:last, None], cuts[:-1] - first, axis=0)
        slope -= np.repeat(centre, np.diff(cuts), axis=0)
        slope *= slope
        slope *= noise[first:last, None]
        cluster = terms.cluster[first:last]
        begin = np.flatnonzero(np.append(True, cluster[1:] != cluster[:-1]))
        found[cluster[begin]] += np.add.reduceat(slope, begin, axis=0)
    return found
