"""Users beyond the position model: one who trusts high ranks, and one who reads from the top and stops.

:class:`TrustUser` clicks on each document by its rank and relevance alone, so that policies, simulation and enumeration
take it like a :class:`~cfltr_core.clicks.users.PositionBasedUser`.  :class:`CascadeUser` looks at what stands above:
its clicks are drawn page by page, by :func:`~cfltr_core.clicks.pages.simulate_pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.users import Examination, PositionBasedUser

# A click probability: the same everywhere, one a rank from 1, or a function of ranks.
ByRank = float | Sequence[float] | Examination


@dataclass(frozen=True, repr=False)
class TrustUser:
    """Click model with trust bias: P(click at rank r) = θ_r · (ε₋(r) + (ε₊(r) − ε₋(r)) · relevance).

    A document at rank r is examined with probability θ_r; an examined document is clicked with probability ε₊(r) if
    relevant, ε₋(r) if not.  Users who trust the ranker click high ranks also where nothing relevant stands: ε₋ falls
    with the rank.  P(click) = β_r · relevance + α_r with the slope β_r = θ_r (ε₊(r) − ε₋(r)) and the intercept
    α_r = θ_r ε₋(r), see :meth:`line`.  Constant ε are the position-based model.

    Source: Agarwal et al. 2019, "Addressing Trust Bias for Unbiased Learning-to-Rank"; the line is that of Vardasbi et
    al. 2020.

    Parameters
    ----------
    examination : callable or sequence
        θ, as in :class:`~cfltr_core.clicks.users.PositionBasedUser`.
    epsilon_plus, epsilon_minus : float, sequence or callable
        ε₊ and ε₋ at every rank: one number for all, the values at ranks 1, 2, …, or a function of ranks (1-based
        array); 0 <= ε₋(r) <= ε₊(r) <= 1.

    Raises
    ------
    ValueError
        For an ε that is no probability or out of order, or a table that ends above a rank that is examined (of a
        callable: when it is asked).

    Examples
    --------
    >>> import cfltr_core as cf
    >>> user = cf.TrustUser([1, 1/2, 1/3], epsilon_plus=[0.98, 0.97, 0.96], epsilon_minus=[0.65, 0.33, 0.22])
    >>> user.click_probability([1, 2, 3], [1, 0, 1]).round(3)  # A and C are relevant
    array([0.98 , 0.165, 0.32 ])
    >>> slope, intercept = user.line([1, 2, 3])
    >>> slope.round(3), intercept.round(3)
    (array([0.33 , 0.32 , 0.247]), array([0.65 , 0.165, 0.073]))
    >>> user.propensity([1, 2, 3]).round(3)
    array([1.   , 0.5  , 0.333])
    """

    examination: Examination | Sequence[float]
    epsilon_plus: ByRank = field(default=1.0, kw_only=True)
    epsilon_minus: ByRank = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        checks.keep(self, examination=PositionBasedUser(self.examination).examination)
        sizes = []
        for name in ("epsilon_plus", "epsilon_minus"):
            value = getattr(self, name)
            if callable(value):
                continue
            table = np.asarray(value, dtype=np.float64)
            if table.ndim > 1 or table.size == 0:
                raise ValueError(f"{name}: expected a number, or one for each rank, e.g. [0.6, 0.3, 0.2]")
            checks.within(table, 0, 1, name, "it is a probability")
            checks.keep(self, **{name: tuple(table.tolist()) if table.ndim else float(table)})
            sizes += [table.size] * table.ndim
        if not (callable(self.epsilon_plus) or callable(self.epsilon_minus)):
            self._noise(np.arange(1.0, min(sizes, default=1) + 1))

    def __repr__(self) -> str:
        return checks.one_line(self)

    def _noise(self, rank: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ε₊ and ε₋ at ranks that exist."""
        plus, minus = (self._at(name, rank) for name in ("epsilon_plus", "epsilon_minus"))
        wrong = minus > plus
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"epsilon_minus is {minus.ravel()[i]:g} at rank {rank.ravel()[i]:g}, above epsilon_plus, which is "
                f"{plus.ravel()[i]:g} there: a relevant document is clicked at least as often"
            )
        return plus, minus

    def _at(self, name: str, rank: FloatArray) -> FloatArray:
        value = getattr(self, name)
        if callable(value):
            asked = np.asarray(value(rank.astype(np.float64)), dtype=np.float64)
            return np.broadcast_to(checks.within(asked, 0, 1, name, "the curve must return probabilities"), rank.shape)
        if not isinstance(value, tuple):
            return np.full(rank.shape, value)
        if (rank > len(value)).any():
            raise ValueError(f"{name} ends at rank {len(value)}, but rank {rank.max():g} is examined: give it a value")
        return np.asarray(value)[rank.astype(np.int64) - 1]

    def propensity(self, displayed_rank: ArrayLike) -> FloatArray:
        """θ_r at each ``displayed_rank`` r; 0 where the rank is 0, which means *not shown*.  Same shape."""
        return PositionBasedUser(self.examination).propensity(displayed_rank)

    def line(self, displayed_rank: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Slope β_r = θ_r (ε₊(r) − ε₋(r)) and intercept α_r = θ_r ε₋(r) at each ``displayed_rank`` r, same shape.

        P(click) = β_r · relevance + α_r.  Both are 0 where nothing is examined.
        """
        theta = self.propensity(displayed_rank)
        seen = theta > 0
        # A table of ε may end where examination does.
        plus, minus = self._noise(np.where(seen, np.asarray(displayed_rank), 1))
        return np.asarray(theta * (plus - minus)), np.asarray(theta * minus)

    def click_probability(self, displayed_rank: ArrayLike, relevance: ArrayLike) -> FloatArray:
        """P(click) = β_r · relevance + α_r, from the ``displayed_rank`` r and the ``relevance`` in [0, 1].

        Rank 0 means *not shown*; the two have one shape, and so has the result.
        """
        rel = checks.within(relevance, 0, 1, "relevance", checks.BINARY)
        slope, intercept = self.line(displayed_rank)
        return np.asarray(slope * rel + intercept)


@dataclass(frozen=True, kw_only=True)
class CascadeUser:
    """A user who reads from the top, clicks by relevance, and may stop after each document.

    The first document is read.  A document that is read is clicked with probability a = ε₊ · relevance + ε₋ · (1 −
    relevance); the next one is read with probability 1 − ``stop`` after a click, 1 − ``give_up`` without.  So whether
    rank r is read depends on what stands above it: no θ_r describes it, and the position model fails.  ``stop=1``,
    ``give_up=0`` is the cascade model, in which a page has one click at most.  With ``stop`` equal to ``give_up`` it
    does not matter what stands above, and the click rates are those of θ_r = (1 − stop)^(r − 1).

    Source: Craswell et al. 2008 for the cascade; the two probabilities to stop are those of Guo, Liu & Wang 2009 and
    of Chapelle & Zhang 2009, the same at every rank.

    Parameters
    ----------
    stop, give_up : float in [0, 1]
        P(stop reading) after a click, and after a document that was read and not clicked.
    epsilon_plus, epsilon_minus : float
        P(click) of a relevant / non-relevant document that is read, 0 <= ε₋ <= ε₊ <= 1.

    Raises
    ------
    ValueError
        For what is no probability, or an ε out of order.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.other_users import CascadeUser
    >>> user = CascadeUser(epsilon_plus=0.8, epsilon_minus=0.2)  # stops at the first click
    >>> user.page_click_probability([1, 0, 1]).round(3)  # 0.8, then 0.2 of the rest, then 0.8 of what is left
    array([0.8  , 0.04 , 0.128])
    >>> user.draw_page_clicks(np.array([[1, 0, 1]] * 3), np.random.default_rng(0))
    array([[ True, False, False],
           [ True, False, False],
           [ True, False, False]])
    """

    stop: float = 1.0
    give_up: float = 0.0
    epsilon_plus: float = 1.0
    epsilon_minus: float = 0.0

    def __post_init__(self) -> None:
        checks.fields(self)
        checks.noise(self.epsilon_plus, self.epsilon_minus)

    def _attraction(self, relevance: ArrayLike) -> FloatArray:
        rel = np.asarray(relevance, dtype=np.float64)
        if rel.ndim == 0:
            raise ValueError("relevance: expected the relevances of a page, place 1 first, got a single number")
        checks.within(rel, 0, 1, "relevance", checks.BINARY)
        return np.asarray(self.epsilon_minus * (1.0 - rel) + self.epsilon_plus * rel)

    def page_click_probability(self, relevance: ArrayLike) -> FloatArray:
        """P(click at rank r | page) = P(r is read) · a_r, of pages of the ``relevance`` (…, places); same shape.

        P(1 is read) = 1, P(r + 1 is read) = P(r is read) · (a_r (1 − stop) + (1 − a_r)(1 − give_up)).
        """
        a = self._attraction(relevance)
        onward = a * (1.0 - self.stop) + (1.0 - a) * (1.0 - self.give_up)
        read = np.concatenate([np.ones_like(a[..., :1]), np.cumprod(onward, axis=-1)[..., :-1]], axis=-1)
        return np.asarray(read * a)

    def draw_page_clicks(self, relevance: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Clicks of one session on each page of the ``relevance`` (…, places), drawn by ``rng``: True or False."""
        checks.generator(rng)
        a = self._attraction(relevance)
        clicks = np.zeros(a.shape, dtype=bool)
        reading = np.ones(a.shape[:-1], dtype=bool)
        for place in range(a.shape[-1]):
            clicks[..., place] = reading & (rng.random(reading.shape) < a[..., place])
            leave = np.where(clicks[..., place], self.stop, self.give_up)
            reading &= rng.random(reading.shape) >= leave
        return clicks
