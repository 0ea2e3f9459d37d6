"""Minimise ½‖w‖² + Σ_t c_t κ(S_t(w)) over the weights of a linear scorer, S_t the hinge sum of a clicked document.

The solver is an augmented Lagrangian method: it minimises an objective whose hinges are smoothed around *centres* ā by
a width μ (:mod:`~cfltr_core.learning.smoothed_hinge`).  The slopes of that objective are feasible in the dual, and
w − v is its gradient: every gradient carries its own certificate.  Once the gradient is small against the gap, the
slopes become the new centres, and μ shrinks if that did not narrow the gap enough.  All this happens in the space of
scores, s = Xw and v = Xᵀρ; no pair of feature vectors is formed, except the few with 0 < a < 1 when a Newton step on
them is cheap.  Primal, dual and gap: see ``proprank``.

Source of the method: Rockafellar 1976; L-BFGS after Nocedal 1980.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray
from cfltr_core.learning.bounds import ClickedLists
from cfltr_core.learning.enclosure import Solution, gap_unit
from cfltr_core.learning.smoothed_hinge import HINGE_SUM, Cost, Matrix, SmoothedHinges

# Below this gap double precision is used from the start.
SINGLE = 1e-4
# In units of rounding (2e-7 of P in single precision): where a gap of less than SPARE is asked for, double precision
# takes over.  There bounds that are less than ROUNDING apart are one number.
SPARE, ROUNDING = 64, 16
# Steps that L-BFGS remembers.
MEMORY = 50
# μ is multiplied by SHRINK when new centres left more than this share of the gap.
SHRINK, SHARE = 0.5, 0.25
# Sweeps of a line search.
MOST_SWEEPS = 40


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


class _Solver:
    """A solution on its way: weights ``w``, the scores ``s`` = Xw, and what a sweep over the pairs yields there.

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
        self.gap, self.matrix = gap, Matrix(x, double=gap < SINGLE)
        self.hinges = SmoothedHinges(lists, mass, cost, None if start is None else start.slopes)
        self.w = np.zeros(x.shape[1]) if start is None else start.weights.copy()
        # Where the data weigh 1e14 times as much as ‖w‖², a smaller μ would only lose digits.
        self.floor = min(1.0, 1e-14 * float(mass.max(initial=0.0)) * self.matrix.largest() ** 2)
        nothing = np.zeros(len(mass))
        self.at_zero = float(mass @ cost.value(nothing + lists.rivals))
        self.least = float(mass @ cost.value(nothing))
        self.steps: list[tuple[FloatArray, FloatArray]] = []
        self.newton_at, self.error_before, self.gap_before, self.moved = 0.0, np.inf, np.inf, False
        self.begin()

    def begin(self) -> None:
        """Look at the weights in the present precision, with bounds of which nothing is known yet."""
        # The best weights so far, their objective, and the best lower bound on the objective of all weights.
        self.best, self.lowest, self.bound = self.w, np.inf, -np.inf
        self.fresh, self.stalled = True, False
        self.s = self.matrix.times(self.w)
        self.sweep()

    def sweep(self) -> None:
        """What the pairs yield at the present scores, centres and μ."""
        self.point = self.hinges.sweep(self.s)
        self.v = self.matrix.transposed(self.point.force)

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
                self.matrix.dtype = np.dtype(np.float64)
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
            if self.matrix.passes >= max_passes:
                raise RuntimeError(
                    f"relative gap {(best - bound) / self.unit(best):.1e} after {self.matrix.passes:.0f} "
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
        self.s, self.fresh = self.matrix.times(self.w), True
        self.hinges.settle(self.s)
        if gap > SHARE * self.gap_before:
            self.hinges.mu = max(self.hinges.mu * SHRINK, self.floor)
        self.gap_before = gap
        self.sweep()

    def descend(self, gradient: FloatArray, error: float) -> None:
        """A Newton step where few pairs are in between, else one of L-BFGS."""
        direction = self.newton(gradient, budget=self.matrix.passes - self.newton_at)
        if direction is None:
            direction = -_two_loops(gradient, self.steps)
        elif error > 0.1 * self.error_before:
            self.newton_at = self.matrix.passes
        self.error_before = error
        before = self.w
        self.search(direction, gradient)
        self.v = self.matrix.transposed(self.point.force)
        self.steps.append((self.w - before, (self.w - self.v) - gradient))
        del self.steps[:-MEMORY]
        self.fresh, self.moved = False, True

    def solution(self, rounding: float) -> Solution:
        """The best weights with their bounds, and the slopes for a warm start."""
        self.hinges.settle(self.s)
        double = self.matrix.dtype == np.float64
        same = self.lowest - self.bound <= (ROUNDING * rounding if double else 0.0)
        return Solution(
            self.best,
            primal=self.lowest,
            dual=self.lowest if same else self.bound,
            at_zero=self.at_zero,
            least=self.least,
            passes=self.matrix.passes,
            slopes=self.hinges.slopes(),
        )

    def rounding(self) -> float:
        """One unit of rounding of the bounds: of ½‖w‖² and of the hinges, and of the scores times the force on each."""
        w, point = self.w, self.point
        size = 0.5 * float(w @ w) + abs(point.exact) + float(np.abs(point.force) @ np.abs(self.s))
        return float(np.finfo(self.s.dtype).eps) * size

    def search(self, direction: FloatArray, gradient: FloatArray) -> None:
        """Step to where the slope along ``direction`` has almost vanished, or ``stalled`` where rounding hides that.

        The smoothed objective is convex along the line and its slope piecewise linear, so that a bracketed secant
        needs a few sweeps over the pairs, and no pass over the features.
        """
        w, s, point = self.w, self.s, self.point
        ds = self.matrix.times(direction)
        along, across = float(w @ direction), float(direction @ direction)
        initial = float(gradient @ direction)
        low, low_slope, high, high_slope = 0.0, initial, np.inf, 0.0
        half = float(0.5 * w @ w)
        before = half + point.smooth
        tau, side, stalled = 1.0, 0, True
        for _ in range(MOST_SWEEPS):
            s_tau = s + s.dtype.type(tau) * ds
            point = self.hinges.sweep(s_tau)
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
        """−H⁻¹ gradient for H = I + (1/μ) Σ_bent price · x̃ x̃ᵀ when few pairs are bent, else None."""
        hinges, matrix = self.hinges, self.matrix
        n_docs, n_features = matrix.x.shape
        limit = (4 + budget) * 8 * n_docs
        bent = hinges.bent(self.s, lambda n: n * min(n, n_features) <= limit) if hinges.cost.linear else None
        if bent is None:
            return None
        term, rival = bent
        size = len(term)
        if size == 0:
            return -gradient
        matrix.passes += 2 * size / n_docs
        b = matrix.x[hinges.lists.documents[term]].astype(matrix.dtype)
        b -= matrix.x[rival]
        b *= np.sqrt(hinges.mass[term] / hinges.mu).astype(matrix.dtype)[:, None]
        if size < n_features:
            inner = (b @ b.T).astype(np.float64)
            inner[np.diag_indices(size)] += 1
            direction = b.T @ np.linalg.solve(inner, b @ gradient) - gradient
        else:
            hessian = (b.T @ b).astype(np.float64)
            hessian[np.diag_indices(n_features)] += 1
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
