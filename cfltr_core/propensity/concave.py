"""The maximum of a concave function with known derivatives, by Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfltr_core.checks import BoolArray, FloatArray

# A function of (n,): its value, its gradient (n,), and minus its Hessian (n, n).
Concave = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
# It has converged when no step is larger; it converges quadratically, so the error left is of the order of its square.
SMALL_STEP = 1e-9
MOST_STEPS = 200
# No step moves a logarithm further than this: far from the maximum the quadratic model means little.
LONGEST_STEP = 4.0


def maximise(function: Concave, start: FloatArray, *, free: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The maximum of a concave ``function`` over its ``free`` (n,) arguments; the others stay as they ``start``.

    Each step solves H s = g, is cut to ``LONGEST_STEP``, and halved until the function has not fallen.

    Returns
    -------
    argument : (n,)
    inverse : (n, n)
        H⁻¹ of the free arguments at the maximum, 0 elsewhere.

    Raises
    ------
    ValueError
        When no maximum is found: it lies at infinity, or is not unique.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.concave import maximise
    >>> def clicks(u):  # 3 clicks in 10 displays, probability e^u
    ...     p = np.exp(u)
    ...     return float(3 * u[0] + 7 * np.log(1 - p[0])), 3 - 7 * p / (1 - p), np.diag(7 * p / (1 - p) ** 2)
    >>> u, inverse = maximise(clicks, np.log([0.5]), free=np.array([True]))
    >>> np.exp(u).round(6), inverse.round(6)  # (1 − p)/(10 p)
    (array([0.3]), array([[0.233333]]))
    """
    u = np.array(start, dtype=np.float64)
    value, gradient, curvature = function(u)
    inside = np.ix_(free, free)
    for _ in range(MOST_STEPS):
        step = np.zeros_like(u)
        try:
            step[free] = np.linalg.solve(curvature[inside], gradient[free])
        except np.linalg.LinAlgError:
            break
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        small = bool(np.abs(step).max() < SMALL_STEP)
        new = function(u + step)
        # The last digits of the value are rounding: a small step is taken whatever it says.
        while not small and not new[0] >= value - 1e-12 * abs(value) and np.abs(step).max() > SMALL_STEP:
            step = step / 2
            new = function(u + step)
        u = u + step
        value, gradient, curvature = new
        if small:
            inverse = np.zeros_like(curvature)
            inverse[inside] = np.linalg.inv(curvature[inside])
            return u, inverse
    raise ValueError("function: Newton's method found no finite maximum")
