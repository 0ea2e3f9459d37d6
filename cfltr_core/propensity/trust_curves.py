"""What an estimate of trust returns: slope and intercept of the click probability at each rank.

Of a stratum s with attraction γ_s the click probability at rank k is taken to be the line β_k γ_s + α_k; which part of
it a log identifies is said in :mod:`cfltr_core.propensity.trust_bias`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.origins import Origin
from cfltr_core.clicks.other_users import TrustUser


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrustCurve:
    """Estimated line of each rank: P(click on s at rank k) = β_k γ_s + α_k, with β₁ = 1 and α₁ = 0.

    γ_s is the click probability of s at rank 1.  What trust does is in both: α_k/β_k is how far the clicks of rank k
    exceed, or lack, what a rank that is only looked at less often would have.
    :func:`~cfltr_core.propensity.trust_bias.trust_bias` makes one.

    Parameters
    ----------
    slope, intercept : (n_ranks,)
        β_k and α_k; NaN for ranks that are not linked with rank 1.
    covariance : (2 n_ranks, 2 n_ranks)
        Of slopes, then intercepts, clustered by query; 0 for rank 1, NaN where they are not known.
    strength : float
        The spread between the documents that link the ranks, where it is smallest, in standard errors; NaN for a
        single query.
    notes : tuple of str
        What the estimator found in the log, in sentences.
    origin : Origin, optional
        Of which sessions of a log that was read.

    Raises
    ------
    ValueError
        For shapes that disagree.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.trust_curves import TrustCurve
    >>> curve = TrustCurve(
    ...     slope=np.array([1.0, 0.6]), intercept=np.array([0.0, -0.1]), covariance=np.zeros((4, 4)), strength=9.0
    ... )
    >>> curve, curve.line([2, 1, 2])  # the ranks of three terms
    (TrustCurve(2 of 2 ranks linked with rank 1), (array([0.6, 1. , 0.6]), array([-0.1,  0. , -0.1])))
    >>> curve.slope_error, curve.intercept_error, curve.diagnosis
    (array([0., 0.]), array([0., 0.]), '')
    >>> curve.user(epsilon_plus=0.9, epsilon_minus=0.3).click_probability([1, 1, 2, 2], [1, 0, 1, 0]).round(2)
    array([0.9 , 0.3 , 0.44, 0.08])
    """

    slope: FloatArray
    intercept: FloatArray
    covariance: FloatArray
    strength: float
    notes: tuple[str, ...] = ()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        n = len(self.slope)
        checks.shapes(self, intercept=(n,), covariance=(2 * n, 2 * n))

    def __repr__(self) -> str:
        return f"TrustCurve({int(np.isfinite(self.slope).sum())} of {len(self.slope)} ranks linked with rank 1)"

    @property
    def slope_error(self) -> FloatArray:
        """Standard error of each slope, shape (n_ranks,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)[: len(self.slope)]))

    @property
    def intercept_error(self) -> FloatArray:
        """Standard error of each intercept, shape (n_ranks,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)[len(self.slope) :]))

    @property
    def diagnosis(self) -> str:
        """What the log can and cannot tell, one sentence a line."""
        return "\n".join(self.notes)

    def line(self, displayed_rank: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Slope and intercept at each ``displayed_rank`` (n,), from 1.

        ValueError for a rank that is not linked with rank 1, or below those of the log.
        """
        rank = checks.indices(displayed_rank, "displayed_rank")
        checks.within(rank, 1, len(self.slope), "displayed_rank", "ranks of the log that the curve was estimated from")
        unknown = ~np.isfinite(self.slope[rank - 1])
        checks.refuse(unknown, "displayed_rank", rank, f"it is not linked with rank 1. {self.diagnosis}")
        return self.slope[rank - 1], self.intercept[rank - 1]

    def user(self, *, epsilon_plus: float, epsilon_minus: float) -> TrustUser:
        """The click model to go on with, once the click probabilities at rank 1 are given.

        ``epsilon_plus`` is that of a relevant document at rank 1, ``epsilon_minus`` that of another: the two numbers
        which no log can tell, and some labels at rank 1 can.  At rank k they are clicked with β_k ε₊ + α_k and
        β_k ε₋ + α_k, put into [0, 1].  θ is 1 at every rank: what is looked at less often, and what is trusted less,
        cannot be told apart, and need not be.

        Raises
        ------
        ValueError
            For an ε out of order, or a rank that is not linked with rank 1.
        """
        checks.noise(epsilon_plus, epsilon_minus, apart=True)
        slope, intercept = self.line(np.arange(1, len(self.slope) + 1))
        plus, minus = (np.clip(slope * value + intercept, 0.0, 1.0).tolist() for value in (epsilon_plus, epsilon_minus))
        return TrustUser([1.0] * len(slope), epsilon_plus=plus, epsilon_minus=minus)
