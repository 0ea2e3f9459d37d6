"""Users who click: the position-based model with any examination curve and click noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray

Examination = Callable[[FloatArray], FloatArray]


def power_examination(eta: float, shift: float = 0.0) -> Examination:
    """Examination curve θ_r = (1 / (shift + r))^eta.

    ``shift=0`` is the curve of Agarwal et al. 2018 §5.1 and Jagerman & de Rijke 2020 Eq. 28 (θ₁ = 1);
    ``shift=1`` is the one in the latter's released code (θ₁ = 2^−eta).  ``eta=0`` means no position bias.
    """
    if not (np.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta is {eta}: the exponent of position bias is a finite number >= 0")
    if not (np.isfinite(shift) and shift >= 0):
        raise ValueError(f"shift is {shift}: expected a finite number >= 0")
    return lambda rank: (shift + rank) ** -float(eta)


@dataclass(frozen=True)
class PositionBasedUser:
    """Position-based click model: a document at rank r is examined with probability θ_r, independently of
    all else; an examined document is clicked with probability ε₊ if relevant, ε₋ if not.

    P(click | r, relevance) = θ_r · (ε₊ · relevance + ε₋ · (1 − relevance))

    Parameters
    ----------
    examination : callable or sequence
        θ as a function of ranks (1-based array), or its values at ranks 1, 2, …; beyond the end of a
        sequence nothing is examined.
    epsilon_plus, epsilon_minus : float
        Click probability of an examined relevant / non-relevant document, 0 <= ε₋ <= ε₊ <= 1, ε₊ > 0.

    Source: Agarwal et al. 2018 §3.1–3.2.
    """

    examination: Examination | Sequence[float]
    epsilon_plus: float = field(default=1.0, kw_only=True)
    epsilon_minus: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if not (0.0 <= self.epsilon_minus <= self.epsilon_plus <= 1.0 and self.epsilon_plus > 0):
            raise ValueError(
                f"epsilon_plus={self.epsilon_plus}, epsilon_minus={self.epsilon_minus}: expected "
                "0 <= epsilon_minus <= epsilon_plus <= 1 and epsilon_plus > 0"
            )
        if not callable(self.examination):
            curve = np.asarray(self.examination, dtype=np.float64)
            if curve.ndim != 1 or curve.size == 0:
                raise ValueError("examination: expected one probability per rank, e.g. [1.0, 0.5, 0.3]")
            checks.within(curve, 0, 1, "examination", "examination is a probability")
            object.__setattr__(self, "examination", tuple(curve.tolist()))

    def propensity(self, displayed_rank: ArrayLike) -> FloatArray:
        """θ at each displayed rank; 0 where the rank is 0, which means *not shown*.  Same shape."""
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
        """P(click | examined) = ε₊ · relevance + ε₋ · (1 − relevance), relevance in [0, 1]."""
        rel = checks.within(relevance, 0, 1, "relevance", "the user model takes binary relevance")
        return np.asarray(self.epsilon_plus * rel + self.epsilon_minus * (1.0 - rel))

    def click_probability(self, displayed_rank: ArrayLike, relevance: ArrayLike) -> FloatArray:
        """P(click) of each document, given its displayed rank (0 = not shown) and its relevance in [0, 1]."""
        return np.asarray(self.propensity(displayed_rank) * self.attraction(relevance))
