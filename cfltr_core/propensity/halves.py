"""A test of the position model: do two halves of the documents show one curve of examination?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.propensity.conditional_poisson import by_rank, conditional_poisson, wald_tail
from cfltr_core.propensity.curves import PropensityCurve, effective_queries
from cfltr_core.propensity.strata import DisplayCounts


@dataclass(frozen=True)
class WaldTest:
    """Whether two halves of the documents show one curve; :func:`same_curve` makes it.

    ``statistic`` is W, ``df`` the number of ranks compared, ``queries`` those of equal weight that the log amounts to,
    and ``p_value`` the probability of such a W under one curve; ``first`` and ``second`` are the curves of the halves.
    """

    statistic: float
    df: int
    queries: float
    p_value: float
    first: PropensityCurve
    second: PropensityCurve


def same_curve(counts: DisplayCounts, half: ArrayLike) -> WaldTest:
    """Wald test of the position model: W = δᵀ Cov(δ)⁻¹ δ, δ = log θ̂ of one half of the documents less the other's.

    Under the position model all documents share one curve, so with many queries W is χ² with df degrees of freedom, as
    many as ranks that both halves can compare with rank 1, however the documents are split, if the split knows nothing
    of the clicks.  Cov(δ) is itself an estimate, from Q queries of equal weight, so W is compared with Hotelling's T²
    (1931): W (Q − df) / (df (Q − 1)) is about F(df, Q − df), which goes over into χ².  Q is the mean over the δ_k of
    (Σ_q v_qk)² / Σ_q v_qk², v_qk the variance of query q's part in δ_k: where a few queries hold most of the clicks, as
    under Zipf's law, the number of queries would reject several times too often (``benchmarks.answers`` measures it).
    It has power where the halves differ in what breaks the model: under trust bias, a half of documents that a ranker
    expects to be relevant, and the others.  A user who reads from the top and stops escapes it.

    The design of :mod:`~cfltr_core.propensity.conditional_poisson` has the columns of each rank times (1, h), h = 1 in
    the first half, so that δ are coefficients.  The two estimates come from the same queries; their covariance is part
    of Cov(δ).

    Parameters
    ----------
    counts : DisplayCounts
    half : (n_terms,) True or False
        Which terms are of the first half; all terms of a document are of one half.

    Raises
    ------
    ValueError
        For a document in both halves, when fewer than two ranks can be compared in both, or for df or fewer queries of
        equal weight.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.halves import same_curve
    >>> from cfltr_core.propensity.strata import display_counts
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    >>> policy, user = cf.MixturePolicy(rankers, shares=[0.4, 0.3, 0.3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> rng, relevance = np.random.default_rng(0), [1, 0, 1] * 40
    >>> counts = display_counts(cf.simulate_clicks(policy, user, relevance=relevance, sessions=[99] * 40, rng=rng))
    >>> test = same_curve(counts, counts.document % 3 == 0)  # the first documents against the third ones
    >>> test.df, round(test.statistic, 2), round(test.p_value, 2)
    (2, 2.16, 0.36)
    """
    chosen = np.asarray(half)
    if chosen.shape != counts.rank.shape or chosen.dtype != np.bool_ or chosen.all() or not chosen.any():
        raise ValueError(
            f"half: expected True or False for each of {len(counts.rank)} terms, some of either kind, "
            f"got shape {chosen.shape}, {int(np.count_nonzero(chosen))} of them True"
        )
    parts = [counts.subset(chosen), counts.subset(~chosen)]
    mixed = np.add.reduceat(chosen, counts.start[:-1], dtype=np.int64) % np.diff(counts.start) != 0
    if mixed.any():
        document = int(counts.document[counts.start[int(np.argmax(mixed))]])
        raise ValueError(f"half: document {document} has terms in both halves; put all terms of a document into one")
    curves = [conditional_poisson(part) for part in parts]
    shared = min(len(curve.curve) for curve in curves)
    known = np.isfinite(curves[0].curve[:shared]) & np.isfinite(curves[1].curve[:shared])
    ranks = np.flatnonzero(known) + 1
    if len(ranks) < 2 or not known[0]:
        raise ValueError(
            "half: no rank can be compared with rank 1 in both halves; take halves that both have clicks at several "
            f"ranks. First half: {curves[0].diagnosis} Second half: {curves[1].diagnosis}"
        )
    regression, df = by_rank(counts, ranks, chosen[:, None].astype(np.float64)), len(ranks) - 1
    first, second = (curve.log_ratio[:shared][known] for curve in curves)
    beta, inverse = regression.fit(np.column_stack([second, first - second]).ravel())
    worth = float(effective_queries(regression.noise(beta, inverse)[:, 3::2]).mean())
    if worth <= df:
        raise ValueError(
            f"counts: the log amounts to {worth:.3g} queries of equal weight, too few to compare {df} ranks with rank "
            "1; take more queries, or a log of fewer ranks"
        )
    # The coefficients of rank k are (log θ_k of the second half, δ_k); those of rank 1 are 0.
    delta, spread = beta[3::2], regression.covariance(beta, inverse)[3::2, 3::2]
    statistic = float(delta @ np.linalg.solve(spread, delta))
    return WaldTest(statistic, df, worth, wald_tail(statistic, df, worth), *curves)
