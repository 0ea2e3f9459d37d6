"""Minimise ½‖w‖² + Σ_t c_t κ(S_t(w)) over the weights of a linear scorer, S_t the hinge sum of a clicked document.

The solver is an augmented Lagrangian method.  It smooths each hinge around a *centre* ā in [0, 1],

    max_{0 ≤ a ≤ 1} a z − (μ/2) (a − ā)²,   with maximiser a = clip(ā + z/μ, 0, 1).

The slopes, c_t times those a, are feasible in the dual, and w − v is the gradient: every gradient carries its own
certificate.  Once the gradient is small against the gap, the slopes become the new centres, and μ shrinks if that did
not narrow the gap enough.  All this happens in the space of scores, s = Xw and v = Xᵀρ; no pair of feature vectors is
formed, except the few with 0 < a < 1 when a Newton step on them is cheap.  Primal, dual and gap: see ``proprank``.

Source of the method: Rockafellar 1976; L-BFGS after Nocedal 1980.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.bounds import ClickedLists, Scores, hinge
from cfltr_core.learning.enclosure import Slopes, Solution, gap_unit
from cfltr_core.learning.strips import strips

# Below this gap double precision is used from the start.
SINGLE = 1e-4
# In units of rounding (2e-7 of P in single precision): where a gap of less than SPARE is asked for, double precision
# takes over.  There bounds that are less than ROUNDING apart are one number.
SPARE, ROUNDING = 64, 16
# Steps that L-BFGS remembers.
MEMORY = 50
# μ is multiplied by SHRINK when new centres left more than this share of the gap.
SHRINK, SHARE = 0.5, 0.25


@dataclass(frozen=True)
class Cost:
    """A convex increasing cost κ(S) of one term, and its slope; PropRank's is S itself."""

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    linear: bool = False


HINGE_SUM = Cost(lambda s: s, np.ones_like, linear=True)


def solve(
    x: NDArray[np.floating],
    lists: ClickedLists,
    mass: FloatArray,
    gap: float,
    max_passes: int = 5000,
    cost: Cost = HINGE_SUM,
    start: Solution | None = None,
) -> Solution:
    """Minimise ½‖w‖² + Σ_t mass_t κ(S_t(w)) to a :attr:`Solution.gap` of ``gap``; all arguments are checked already.

    For any w, the prices u_t = κ′(S_t) and slopes a of the smoothed hinge give the lower bound
    D = Σ u_t mass_t a_ty − ½‖v‖² + Σ mass_t (κ(S_t) − u_t S_t) with the *smoothed* S_t, by κ's tangent at S_t.

    Raises
    ------
    RuntimeError
        When ``max_passes`` multiplications with the features did not reach ``gap``.
    """
    return _Solver(x, lists, mass, gap, cost, start).run(max_passes)


class Matrix:
    """Multiplication with the feature matrix, in its own precision or, block by block, in double precision."""

    def __init__(self, x: NDArray[np.floating], double: bool) -> None:
        self.x = x
        self.double = double and x.dtype != np.float64
        self.dtype = np.float64 if double else x.dtype
        self.rows = max(1, (1 << 20) // x.shape[1])

    def largest(self) -> float:
        """The largest absolute value of a feature."""
        return max(float(self.x.max()), -float(self.x.min()))

    def times(self, w: FloatArray) -> Scores:
        """Xw, of shape (n_docs,)."""
        if not self.double:
            return np.asarray(self.x @ w.astype(self.x.dtype))
        out = np.empty(len(self.x))
        for i in range(0, len(self.x), self.rows):
            out[i : i + self.rows] = self.x[i : i + self.rows].astype(np.float64) @ w
        return out

    def transposed(self, rho: FloatArray) -> FloatArray:
        """Xᵀρ in float64, of shape (n_features,)."""
        if not self.double:
            return np.asarray(rho.astype(self.x.dtype) @ self.x, dtype=np.float64)
        out = np.zeros(self.x.shape[1])
        for i in range(0, len(self.x), self.rows):
            out += rho[i : i + self.rows] @ self.x[i : i + self.rows].astype(np.float64)
        return out


@dataclass(frozen=True, eq=False)
class _Point:
    """What one sweep over the pairs yields at given scores and μ."""

    exact: float  # Σ mass κ(S), with the hinge itself
    smooth: float  # the same with the smoothed hinge around the centres
    dual: float  # the dual objective without −½‖v‖²
    force: FloatArray  # ρ, one number per document: v = Xᵀρ


class _Solver:
    """A solution on its way: weights ``w``, the smoothing ``mu``, the scores ``s`` = Xw, what a sweep yields there.

    ``fresh`` says that ``s`` was computed anew and not added up along the way, so that the primal is that of ``w``;
    ``stalled`` that rounding hid the end of the last search.
    """

    def __init__(
        self,
        x: NDArray[np.floating],
        lists: ClickedLists,
        mass: FloatArray,
        gap: float,
        cost: Cost,
        start: Solution | None,
    ) -> None:
        self.lists, self.mass, self.gap, self.cost = lists, mass, gap, cost
        self.matrix = Matrix(x, double=gap < SINGLE)
        self.n_docs, self.n_features = x.shape
        self.passes = self.newton_at = 0.0
        self.strips = strips(lists)
        self.centres = [strip.centres() for strip in self.strips]
        # The centres once more, as views with a row for each term.
        pairs = zip(self.strips, self.centres, strict=True)
        self.rectangles = [z for strip, centre in pairs for z in strip.rectangles(centre)]
        self.w, self.mu = np.zeros(self.n_features), 1.0
        if start is not None:
            self.w = start.weights.copy()
            if start.slopes is not None:
                self.mu = start.slopes.smoothing
                if start.slopes.belong_to(lists):
                    for ours, theirs in zip(self.rectangles, start.slopes.centres, strict=True):
                        ours[:] = theirs
        # Where the data weigh 1e14 times as much as ‖w‖², a smaller μ would only lose digits.
        self.floor = min(1.0, 1e-14 * float(mass.max(initial=0.0)) * self.matrix.largest() ** 2)
        nothing = np.zeros(len(mass))
        self.at_zero = float(mass @ cost.value(nothing + lists.rivals))
        self.least = float(mass @ cost.value(nothing))
        self.steps: list[tuple[FloatArray, FloatArray]] = []
        self.error_before = self.gap_before = np.inf
        self.moved = False
        self.begin()

    def begin(self) -> None:
        """Look at the weights in the present precision, with bounds of which nothing is known yet."""
        # The best weights so far, their objective, and the best lower bound on the objective of all weights.
        self.best, self.lowest, self.bound = self.w, np.inf, -np.inf
        self.fresh, self.stalled = True, False
        self.s = self.scores(self.w)
        self.sweep()

    def sweep(self) -> None:
        """What the pairs yield at the present scores, centres and μ."""
        self.point = self.at(self.s, self.mu)
        self.v = self.pull(self.point.force)

    def unit(self, primal: float) -> float:
        """What a gap above the lower bound is measured against, see :attr:`Solution.gap`."""
        return gap_unit(primal, self.bound, self.at_zero, self.least)

    def run(self, max_passes: int) -> Solution:
        """Search until the gap is closed; new centres wherever the smoothing keeps it open."""
        while True:
            primal, dual, gradient = self.bounds()
            error = float(0.5 * gradient @ gradient)
            best, bound, rounding = self.lowest, self.bound, self.rounding()
            wanted = self.gap * self.unit(best)
            crossed = bound - best > ROUNDING * rounding
            if (crossed or self.stalled or wanted < SPARE * rounding) and self.matrix.dtype != np.float64:
                self.matrix = Matrix(self.matrix.x, double=True)
                self.begin()
                continue
            if crossed:
                raise RuntimeError(
                    f"the lower bound {bound!r} is above the objective {best!r}: such features leave "
                    "double precision no digits; subtract their means and scale them"
                )
            # With a tiny C rounding hides what can be gained; w = 0 ranks nothing, and one step from it does.
            if best - bound <= max(wanted, ROUNDING * rounding) and (self.w.any() or self.moved):
                return self.solution(rounding)
            if self.passes >= max_passes:
                raise RuntimeError(
                    f"relative gap {(best - bound) / self.unit(best):.1e} after {self.passes:.0f} "
                    f"passes, not the {self.gap:.1e} asked for: raise gap or max_passes, or lower C"
                )
            if self.held_open(primal, dual, error):
                self.recentre(primal - dual)
            else:
                self.descend(gradient, error)

    def bounds(self) -> tuple[float, float, FloatArray]:
        """Primal, dual and gradient at the present weights; the best bounds are kept."""
        w, v, point = self.w, self.v, self.point
        primal = float(0.5 * w @ w + point.exact)
        dual = float(point.dual - 0.5 * v @ v)
        self.bound = max(self.bound, dual)
        if self.fresh and primal < self.lowest:
            self.best, self.lowest = w, primal
        return primal, dual, w - v

    def held_open(self, primal: float, dual: float, error: float) -> bool:
        """Whether the smoothing, not the search, is what keeps the gap open."""
        closed = primal - self.bound <= self.gap * self.unit(primal)
        return not self.fresh and (closed or error < 0.5 * (primal - dual - error))

    def recentre(self, gap: float) -> None:
        """Settle the slopes as new centres, and shrink μ if the centres before did not narrow the gap enough.

        Scores that were added up along the way are computed anew, so that the certificate is not theirs.
        """
        self.s, self.fresh = self.scores(self.w), True
        self.settle()
        if gap > SHARE * self.gap_before:
            self.mu = max(self.mu * SHRINK, self.floor)
        self.gap_before = gap
        self.sweep()

    def descend(self, gradient: FloatArray, error: float) -> None:
        """A Newton step where few pairs are in between, else one of L-BFGS."""
        direction = self.newton(gradient, budget=self.passes - self.newton_at)
        if direction is None:
            direction = -_two_loops(gradient, self.steps)
        elif error > 0.1 * self.error_before:
            self.newton_at = self.passes
        self.error_before = error
        before = self.w
        self.search(direction, gradient)
        self.v = self.pull(self.point.force)
        self.steps.append((self.w - before, (self.w - self.v) - gradient))
        del self.steps[:-MEMORY]
        self.fresh, self.moved = False, True

    def solution(self, rounding: float) -> Solution:
        """The best weights with their bounds, and the slopes for a warm start."""
        self.settle()
        slopes = Slopes(self.lists.offsets, self.lists.documents, self.mu, tuple(self.rectangles))
        double = self.matrix.dtype == np.float64
        same = self.lowest - self.bound <= (ROUNDING * rounding if double else 0.0)
        return Solution(
            self.best,
            primal=self.lowest,
            dual=self.lowest if same else self.bound,
            at_zero=self.at_zero,
            least=self.least,
            passes=self.passes,
            slopes=slopes,
        )

    def rounding(self) -> float:
        """One unit of rounding of the bounds: of ½‖w‖² and of the hinges, and of the scores times the force on each."""
        w, point = self.w, self.point
        size = 0.5 * float(w @ w) + abs(point.exact) + float(np.abs(point.force) @ np.abs(self.s))
        return float(np.finfo(self.s.dtype).eps) * size

    def scores(self, w: FloatArray) -> Scores:
        self.passes += 1
        return self.matrix.times(w)

    def pull(self, rho: FloatArray) -> FloatArray:
        self.passes += 1
        return self.matrix.transposed(rho)

    def settle(self) -> None:
        """Make the slopes at the present scores the new centres."""
        for strip, centre in zip(self.strips, self.centres, strict=True):
            centre[:] = np.where(centre < 0, centre, _slopes(strip.gaps(self.s), centre, self.mu))

    def at(self, s: Scores, mu: float) -> _Point:
        """Sweep over all pairs."""
        own = self.lists.own(s, hinge)
        force = np.zeros(self.n_docs)
        exact = smooth = dual = 0.0
        for strip, centre in zip(self.strips, self.centres, strict=True):
            # Short lists make small strips: here NumPy's wrappers would cost as much as the numbers.
            z, mass = strip.gaps(s), self.mass[strip.terms]
            a = _slopes(z, centre, mu)
            total = strip.sums(np.maximum(z, 0)) - own[strip.terms]
            exact += float(mass @ self.cost.value(total))
            # Row sums of a (z + μ (centre − a/2)).
            with_z, with_centre, with_itself = strip.products(a, (z, centre, a))
            total = with_z + mu * (with_centre - 0.5 * with_itself)
            value = float(mass @ self.cost.value(total))
            smooth += value
            price = mass
            if not self.cost.linear:
                price = mass * self.cost.slope(total)
                dual += value - float(price @ total)
            dual += float(price @ strip.sums(a, np.float64))
            strip.push(force, a, price)
        return _Point(exact, smooth, dual, force)

    def search(self, direction: FloatArray, gradient: FloatArray) -> None:
        """Step to where the slope along ``direction`` has almost vanished, or ``stalled`` where rounding hides that.

        The smoothed objective is convex along the line and its slope piecewise linear, so that a bracketed secant
        needs a few sweeps over the pairs, and no pass over the features.
        """
        w, s, point = self.w, self.s, self.point
        ds = self.scores(direction)
        along, across = float(w @ direction), float(direction @ direction)
        initial = float(gradient @ direction)
        low, low_slope, high, high_slope = 0.0, initial, np.inf, 0.0
        half = float(0.5 * w @ w)
        before = half + point.smooth
        tau, side, stalled = 1.0, 0, True
        for _ in range(40):
            s_tau = s + s.dtype.type(tau) * ds
            point = self.at(s_tau, self.mu)
            slope = along + tau * across - float(point.force @ ds)
            reached = tau
            rise = half + tau * along + 0.5 * tau**2 * across + point.smooth - before
            # Before the minimum the objective has fallen; behind it that must be seen, up to rounding.
            if abs(slope) <= 0.1 * abs(initial) and (slope <= 0 or rise <= 1e-12 * abs(before)):
                stalled = False
                break
            # Illinois: the end that stays put twice counts half, so that the other one moves too.
            if slope < 0:
                high_slope *= 0.5 if side < 0 else 1.0
                low, low_slope, side = tau, slope, -1
            else:
                low_slope *= 0.5 if side > 0 else 1.0
                high, high_slope, side = tau, slope, 1
            if high < np.inf:
                tau = low - low_slope * (high - low) / (high_slope - low_slope)
            else:
                tau = min(10.0, max(1.5, initial / (initial - slope))) * tau if slope > initial else 10 * tau
        self.w, self.s, self.point, self.stalled = w + reached * direction, s_tau, point, stalled

    def newton(self, gradient: FloatArray, budget: float) -> FloatArray | None:
        """−H⁻¹ gradient for H = I + (1/μ) Σ_zone price · x̃ x̃ᵀ when the zone is small, else None."""
        if not self.cost.linear:
            return None
        s, mu = self.s, self.mu
        limit = (4 + budget) * 8 * self.n_docs
        clicked: list[IntArray] = []
        other: list[IntArray] = []
        size = 0
        for strip, centre in zip(self.strips, self.centres, strict=True):
            z = strip.gaps(s)
            z *= s.dtype.type(1 / mu)
            z += centre
            terms, rivals = strip.chosen((z > 0) & (z < 1))
            clicked.append(terms)
            other.append(rivals)
            size += len(terms)
            if size * min(size, self.n_features) > limit:
                return None
        if size == 0:
            return -gradient
        term, y = np.concatenate(clicked), np.concatenate(other)
        x, dtype = self.matrix.x, self.matrix.dtype
        self.passes += 2 * size / self.n_docs
        b = x[self.lists.documents[term]].astype(dtype)
        b -= x[y]
        b *= np.sqrt(self.mass[term] / mu).astype(dtype)[:, None]
        if size < self.n_features:
            inner = (b @ b.T).astype(np.float64)
            inner[np.diag_indices(size)] += 1
            direction = b.T @ np.linalg.solve(inner, b @ gradient) - gradient
        else:
            hessian = (b.T @ b).astype(np.float64)
            hessian[np.diag_indices(self.n_features)] += 1
            direction = -np.linalg.solve(hessian, gradient)
        return direction.astype(np.float64) if gradient @ direction < 0 else None


def _two_loops(gradient: FloatArray, steps: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """L-BFGS: the inverse Hessian that the last steps suggest, times the gradient."""
    out = gradient.copy()
    kept = [(ds, dg, 1.0 / (ds @ dg)) for ds, dg in steps if ds @ dg > 0]
    alphas = []
    for ds, dg, rho in reversed(kept):
        alphas.append(rho * (ds @ out))
        out -= alphas[-1] * dg
    if kept:
        ds, dg, rho = kept[-1]
        out /= rho * (dg @ dg)
    for (ds, dg, rho), alpha in zip(kept, reversed(alphas), strict=True):
        out += (alpha - rho * (dg @ out)) * ds
    return out


def _slopes(z: Scores, centre: Scores, mu: float) -> Scores:
    """The slopes clip(ā + z/μ, 0, 1) of the smoothed hinge."""
    a = z * z.dtype.type(1 / mu)
    a += centre
    np.maximum(a, 0, out=a)
    return np.minimum(a, 1, out=a)
