"""Users who click: the position-based model with any examination curve and click noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray

Examination = Callable[[FloatArray], FloatArray]


class User(Protocol):
    """A user whose click on a document depends on its displayed rank r and its relevance, and on no other document.

    That is all which policies, simulation and enumeration ask for: P(examined) and P(click).  The users of this package
    are :class:`PositionBasedUser` and :class:`~cfltr_core.clicks.other_users.TrustUser`.
    """

    def propensity(self, displayed_rank: ArrayLike) -> FloatArray:
        """P(examined) = θ_r at each ``displayed_rank`` r; 0 where it is 0, which means *not shown*.  Same shape."""

    def click_probability(self, displayed_rank: ArrayLike, relevance: ArrayLike) -> FloatArray:
        """P(click) at each ``displayed_rank``, affine in the ``relevance`` in [0, 1].  Same shape."""


def power_examination(eta: float, shift: float = 0.0) -> Examination:
    """Examination curve θ_r = (1 / (shift + r))^eta: how likely rank r is looked at.

    ``shift=0`` is the curve of the papers (θ₁ = 1); ``shift=1`` is the one in the released code of the second
    (θ₁ = 2^−eta).  ``eta=0`` means no position bias.

    Source: Agarwal et al. 2018, §5.1; Jagerman & de Rijke 2020, Eq. 28, where eta is γ.

    Returns
    -------
    callable
        Maps an array of ranks >= 1 to probabilities of the same shape.

    Raises
    ------
    ValueError
        For an ``eta`` or ``shift`` that is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> cf.power_examination(1.0)(np.array([1, 2, 3])).round(3)
    array([1.   , 0.5  , 0.333])
    """
    checks.arguments(power_examination, locals())
    return lambda rank: (shift + rank) ** -float(eta)


@dataclass(frozen=True, repr=False)
class PositionBasedUser:
    """Position-based click model: P(click at rank r) = θ_r · (ε₊ · relevance + ε₋ · (1 − relevance)).

    A document at rank r is examined with probability θ_r, independently of all else; an examined document is clicked
    with probability ε₊ if relevant, ε₋ if not.

    Source: Agarwal et al. 2018, §3.1–3.2.

    Parameters
    ----------
    examination : callable or sequence
        θ as a function of ranks (1-based array), or its values at ranks 1, 2, …; beyond the end of a
        sequence nothing is examined.
    epsilon_plus, epsilon_minus : float
        Click probability of an examined relevant / non-relevant document, 0 <= ε₋ <= ε₊ <= 1, ε₊ > 0.

    Raises
    ------
    ValueError
        For an ε out of order, or an examination that is no probability (of a callable: when it is asked).

    Examples
    --------
    >>> import cfltr_core as cf
    >>> user = cf.PositionBasedUser([1, 1/2, 1/3], epsilon_minus=0.1)
    >>> user.propensity([1, 2, 3]).round(3)
    array([1.   , 0.5  , 0.333])
    >>> user.attraction([1, 0, 1])  # A and C are relevant
    array([1. , 0.1, 1. ])
    >>> user.click_probability([1, 2, 3], [1, 0, 1]).round(3)
    array([1.   , 0.05 , 0.333])
    """

    examination: Examination | Sequence[float]
    epsilon_plus: float = field(default=1.0, kw_only=True)
    epsilon_minus: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        checks.noise(self.epsilon_plus, self.epsilon_minus)
        if not callable(self.examination):
            curve = checks.within(self.examination, 0, 1, "examination", "examination is a probability")
            if curve.ndim != 1 or curve.size == 0:
                raise ValueError("examination: expected one probability per rank, e.g. [1.0, 0.5, 0.3]")
            checks.keep(self, examination=tuple(curve.tolist()))

    def __repr__(self) -> str:
        return checks.one_line(self)

    def propensity(self, displayed_rank: ArrayLike) -> FloatArray:
        """θ_r at each ``displayed_rank`` r; 0 where the rank is 0, which means *not shown*.  Same shape."""
        rank = np.asarray(displayed_rank)
        shown = checks.within(rank, 0, np.inf, "displayed_rank", "ranks start at 1; 0 means not shown") > 0
        if callable(self.examination):
            # Ask the curve only about ranks that exist: 1/0 must not arise.
            values = np.asarray(self.examination(np.where(shown, rank, 1).astype(np.float64)))
            checks.within(values, 0, 1, "examination", "the curve must return probabilities")
        else:
            curve = np.asarray(self.examination)
            fraction = rank != np.floor(rank)
            if fraction.any():
                raise ValueError(f"displayed_rank is {rank[fraction][0]}: a table of examination has whole ranks only")
            within = rank <= len(curve)
            values = np.where(within, curve[np.where(shown & within, rank, 1).astype(np.int64) - 1], 0.0)
        return np.asarray(np.where(shown, values, 0.0))

    def attraction(self, relevance: ArrayLike) -> FloatArray:
        """P(click given examined) = ε₊ · relevance + ε₋ · (1 − relevance), ``relevance`` in [0, 1]; same shape."""
        rel = checks.within(relevance, 0, 1, "relevance", checks.BINARY)
        return np.asarray(self.epsilon_plus * rel + self.epsilon_minus * (1.0 - rel))

    def click_probability(self, displayed_rank: ArrayLike, relevance: ArrayLike) -> FloatArray:
        """P(click) = θ_r · P(click given examined), from the ``displayed_rank`` r and the ``relevance`` in [0, 1].

        Rank 0 means *not shown*; the two have one shape, and so has the result.
        """
        return np.asarray(self.propensity(displayed_rank) * self.attraction(relevance))
