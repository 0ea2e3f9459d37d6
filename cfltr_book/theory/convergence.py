"""How fast stochastic gradient descent with inverse propensity weights converges: bounds of its risk and of one step.

The objective R and its f_i are those of :mod:`cfltr_core.learning.single_clicks`, and the stochastic gradients are
g_t = (scale of i_t) · ∇f_{i_t}(w_t).  :mod:`cfltr_book.theory.proofs` follows such runs along every sequence of draws.
Source: Jagerman & de Rijke 2020, §4 and §5; the sharper forms are derived in chapters 13 and 14.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray


def convergence_bound(radius: float, gradient_bound: float, *, weight: float, steps: ArrayLike) -> FloatArray:
    """Bound B · (weight · G) / √T on E[R(w̄) − R(w*)] after T = ``steps`` iterations at :func:`learning_rate_for`.

    Source: Jagerman & de Rijke 2020, Theorem 1 (Eq. 9) and Theorem 3 (Eq. 24).

    Parameters
    ----------
    radius : float
        B ≥ ‖w*‖, > 0.
    gradient_bound : float
        G ≥ ‖∇f_i(w_t)‖, > 0.
    weight : float
        M in Theorem 1 (IPS-SGD) and M̄ in Theorem 3 (CounterSample); RMS(1/p) in place of M is the sharper form of
        Theorem 1.
    steps : any shape, >= 1
        T.

    Returns
    -------
    Bounds of the shape of ``steps``

    Raises
    ------
    ValueError
        For an argument that is not > 0, or a T below 1.

    Examples
    --------
    >>> from cfltr_book.theory.convergence import convergence_bound
    >>> convergence_bound(1.0, 2.0, weight=3.0, steps=[1, 100])
    array([6. , 0.6])
    """
    checks.arguments(convergence_bound, locals())
    t = checks.within(steps, 1, np.inf, "steps", "a number of iterations")
    return np.asarray(radius * gradient_bound * weight / np.sqrt(t))


def learning_rate_for(radius: float, gradient_bound: float, *, weight: float, steps: int) -> float:
    """Learning rate α = B / (weight · G · √T) of Theorems 1 and 3; arguments as in :func:`convergence_bound`.

    Source: Jagerman & de Rijke 2020, Theorems 1 and 3, where α is η.

    Examples
    --------
    >>> from cfltr_book.theory.convergence import learning_rate_for
    >>> round(learning_rate_for(1.0, 2.0, weight=3.0, steps=100), 4)
    0.0167
    """
    checks.arguments(learning_rate_for, locals())
    return float(radius / (gradient_bound * weight * np.sqrt(steps)))


def steps_for_accuracy(radius: float, gradient_bound: float, *, weight: float, accuracy: float) -> float:
    """T = B² (weight · G)² / ε²: iterations that suffice for an error of at most ε = ``accuracy``, not rounded.

    The other arguments are those of :func:`convergence_bound`.

    Source: Jagerman & de Rijke 2020, Eq. 18 and Eq. 26.

    Examples
    --------
    >>> from cfltr_book.theory.convergence import steps_for_accuracy
    >>> steps_for_accuracy(1.0, 2.0, weight=3.0, accuracy=0.5)
    144.0
    """
    checks.arguments(steps_for_accuracy, locals())
    return (radius * gradient_bound * weight / accuracy) ** 2


def second_moment(
    weights: ArrayLike, gradient_norms: ArrayLike, *, counts: ArrayLike, sampling: Literal["uniform", "weighted"]
) -> float:
    """Exact E‖g‖² of one step.

    ``uniform``   (IPS-SGD)        (1/n) Σ w_i² ‖∇f_i‖²
    ``weighted``  (CounterSample)  M̄ · (1/n) Σ w_i ‖∇f_i‖²

    The second minus the first is −Cov(w, w ‖∇f‖²), the covariance over the n clicks.

    Source: derived in chapter 14; Jagerman & de Rijke 2020 bound both, by (M G)² (Eq. 15) and (M̄ G)² (Eq. 25).

    Parameters
    ----------
    weights, gradient_norms, counts : (n_terms,)
        w = 1/p > 0, ‖∇f‖ ≥ 0, and the number of clicks of each term.
    sampling : "uniform" or "weighted"

    Raises
    ------
    ValueError
        For shapes that disagree, a weight that is not > 0, a negative norm, or no click.

    Examples
    --------
    >>> from cfltr_book.theory.convergence import second_moment
    >>> log = {"weights": [1, 10], "gradient_norms": [10, 0.5**0.5], "counts": [1, 1]}
    >>> [round(second_moment(**log, sampling=s), 1) for s in ("uniform", "weighted")]  # the second is not always less
    [75.0, 288.8]
    """
    checks.arguments(second_moment, locals())
    least = float(np.finfo(np.float64).tiny)
    w = checks.finite_vector(weights, None, "weights", low=least, why="a weight is one over a propensity")
    norms = checks.finite_vector(gradient_norms, len(w), "gradient_norms", low=0, why="a norm")
    n = checks.counts(counts, len(w), "counts")
    checks.positive_int(int(n.sum()), "the sum of counts")
    factor = w if sampling == "uniform" else np.average(w, weights=n)
    return float(np.average(factor * w * norms**2, weights=n))
