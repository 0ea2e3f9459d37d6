"""What the solver of ``hinge_solver`` minimises: hinges that are smoothed around centres, and the bounds they give.

Each hinge is smoothed around a *centre* ā in [0, 1],

    max_{0 ≤ a ≤ 1} a z − (μ/2) (a − ā)² + (μ/2) ā²,   with maximiser a = clip(ā + z/μ, 0, 1).

The slopes, c_t times those a, are feasible in the dual, so that every sweep over the pairs carries a lower bound.  A
sweep takes scores only; the features are multiplied by :class:`Matrix`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.bounds import ClickedLists, Scores, hinge
from cfltr_core.learning.enclosure import Slopes
from cfltr_core.learning.strips import strips


@dataclass(frozen=True)
class Cost:
    """A convex increasing cost κ(S) of one term, and its slope; PropRank's is S itself."""

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    linear: bool = False


HINGE_SUM = Cost(lambda s: s, np.ones_like, linear=True)


class Matrix:
    """Multiplication with the feature matrix, in its own precision or, block by block, in double precision.

    ``passes`` counts the multiplications.
    """

    def __init__(self, x: NDArray[np.floating], double: bool) -> None:
        self.x, self.passes = x, 0.0
        self.dtype = np.dtype(np.float64) if double else x.dtype
        self.rows = max(1, (1 << 20) // x.shape[1])

    def largest(self) -> float:
        """The largest absolute value of a feature."""
        return max(float(self.x.max()), -float(self.x.min()))

    def times(self, w: FloatArray) -> Scores:
        """Xw, of shape (n_docs,)."""
        self.passes += 1
        if self.dtype == self.x.dtype:
            return np.asarray(self.x @ w.astype(self.x.dtype))
        out = np.empty(len(self.x))
        for i in range(0, len(self.x), self.rows):
            out[i : i + self.rows] = self.x[i : i + self.rows].astype(np.float64) @ w
        return out

    def transposed(self, rho: FloatArray) -> FloatArray:
        """Xᵀρ in float64, of shape (n_features,)."""
        self.passes += 1
        if self.dtype == self.x.dtype:
            return np.asarray(rho.astype(self.x.dtype) @ self.x, dtype=np.float64)
        out = np.zeros(self.x.shape[1])
        for i in range(0, len(self.x), self.rows):
            out += rho[i : i + self.rows] @ self.x[i : i + self.rows].astype(np.float64)
        return out


@dataclass(frozen=True, eq=False)
class Sweep:
    """What one sweep over the pairs yields at given scores.

    ``exact`` is Σ mass κ(S) with the hinge itself, ``smooth`` the same with the smoothed one, ``dual`` the dual
    objective without −½‖v‖², and ``force`` ρ, one number per document, with v = Xᵀρ.
    """

    exact: float
    smooth: float
    dual: float
    force: FloatArray


class SmoothedHinges:
    """Σ_t mass_t κ(S_t), each hinge smoothed by ``mu`` around its centre: ½ at first, or as ``slopes`` has them."""

    def __init__(self, lists: ClickedLists, mass: FloatArray, cost: Cost, slopes: Slopes | None = None) -> None:
        self.lists, self.mass, self.cost = lists, mass, cost
        self.mu = 1.0 if slopes is None else slopes.smoothing
        self._strips = strips(lists)
        self._centres = [strip.centres() for strip in self._strips]
        # The centres once more, as views with a row for each term.
        pairs = zip(self._strips, self._centres, strict=True)
        self._rectangles = [z for strip, centre in pairs for z in strip.rectangles(centre)]
        if slopes is not None and slopes.belong_to(lists):
            for ours, theirs in zip(self._rectangles, slopes.centres, strict=True):
                ours[:] = theirs

    def sweep(self, s: Scores) -> Sweep:
        """What the pairs yield at scores ``s``, (n_docs,)."""
        own, mu, cost = self.lists.own(s, hinge), self.mu, self.cost
        force = np.zeros(len(s))
        exact = smooth = dual = 0.0
        for strip, centre in zip(self._strips, self._centres, strict=True):
            # Short lists make small strips: here NumPy's wrappers would cost as much as the numbers.
            z, mass = strip.gaps(s), self.mass[strip.terms]
            a = _slopes(z, centre, mu)
            total = strip.sums(np.maximum(z, 0)) - own[strip.terms]
            exact += float(mass @ cost.value(total))
            # Row sums of a (z + μ (centre − a/2)).
            with_z, with_centre, with_itself = strip.products(a, (z, centre, a))
            total = with_z + mu * (with_centre - 0.5 * with_itself)
            value = float(mass @ cost.value(total))
            smooth += value
            price = mass
            if not cost.linear:
                price = mass * cost.slope(total)
                dual += value - float(price @ total)
            dual += float(price @ strip.sums(a, np.float64))
            strip.push(force, a, price)
        return Sweep(exact, smooth, dual, force)

    def settle(self, s: Scores) -> None:
        """Make the slopes at scores ``s`` the new centres."""
        for strip, centre in zip(self._strips, self._centres, strict=True):
            centre[:] = np.where(centre < 0, centre, _slopes(strip.gaps(s), centre, self.mu))

    def slopes(self) -> Slopes:
        """The centres, for a warm start."""
        return Slopes(self.lists.offsets, self.lists.documents, self.mu, tuple(self._rectangles))

    def bent(self, s: Scores, few: Callable[[int], bool]) -> tuple[IntArray, IntArray] | None:
        """Terms and rivals of the pairs with 0 < a < 1 at scores ``s``; None once there are not ``few`` of them."""
        terms, rivals = [], []
        size = 0
        for strip, centre in zip(self._strips, self._centres, strict=True):
            z = strip.gaps(s)
            z *= s.dtype.type(1 / self.mu)
            z += centre
            term, rival = strip.chosen((z > 0) & (z < 1))
            terms.append(term)
            rivals.append(rival)
            size += len(term)
            if not few(size):
                return None
        return np.concatenate(terms), np.concatenate(rivals)


def _slopes(z: Scores, centre: Scores, mu: float) -> Scores:
    """The slopes clip(ā + z/μ, 0, 1) of the smoothed hinge."""
    a = z * z.dtype.type(1 / mu)
    a += centre
    np.maximum(a, 0, out=a)
    return np.minimum(a, 1, out=a)
