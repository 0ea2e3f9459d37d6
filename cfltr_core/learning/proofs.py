"""Exact expectations over all sequences of draws of stochastic gradient descent: runs and their probabilities.

The proofs of :mod:`cfltr_core.learning.convergence` are followed along them.
Source: Jagerman & de Rijke 2020, §4 and §5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray

# Sequences of clicks that are followed at once.
LIMIT = 2_000_000

Gradients = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of SGD, w_{t+1} = w_t − α g_t: their ``probability`` (runs,), and what happened on the way.

    ``iterates`` w_1 … w_T and ``gradients`` g_1 … g_T have shape (runs, T, features); ``learning_rate`` is α.
    :func:`exact_runs` makes them.
    """

    probability: FloatArray
    iterates: FloatArray
    gradients: FloatArray
    learning_rate: float

    @property
    def average(self) -> FloatArray:
        """w̄ = (1/T) Σ_t w_t of each run, (runs, features)."""
        return np.asarray(self.iterates.mean(axis=1))


def exact_runs(
    gradients: Gradients,
    probability: ArrayLike,
    *,
    factor: ArrayLike,
    learning_rate: float,
    steps: int,
    n_features: int,
) -> Runs:
    """SGD w_{t+1} = w_t − α · factor_i · ∇f_i(w_t) from w_1 = 0 along all nᵀ sequences of draws, with probabilities.

    Source: the expectations of Jagerman & de Rijke 2020, Theorems 1 and 3, as sums over sequences.

    Parameters
    ----------
    gradients : callable
        Takes states (m, n_features), returns ∇f_i at each of them for all i, (m, n, n_features).
    probability, factor : (n,)
        P(i) of each draw, and the factor of its gradient: (1/n, w_i) for IPS-SGD, (w_i / (n M̄), M̄) for
        CounterSample.
    learning_rate : float
        α > 0.
    steps : int
        T.
    n_features : int

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        For probabilities that do not sum to 1, or more than two million sequences.

    Examples
    --------
    Two clicks with weights 1 and 3, and f_i(w) = abs(w − b_i):

    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> weights, b = np.array([1, 3]), np.array([1, -1])
    >>> gradients = lambda w: np.sign(w - b)[:, :, None]
    >>> runs = cf.exact_runs(gradients, [1/2, 1/2], factor=weights, learning_rate=0.1, steps=3, n_features=1)
    >>> runs.iterates.shape, (runs.probability @ runs.average).round(3)  # 2³ runs of 3 steps with 1 feature
    ((8, 3, 1), array([-0.1]))
    """
    checks.arguments(exact_runs, locals())
    why = "the chance that a click is drawn"
    chance = checks.finite_vector(probability, None, "probability", low=0, high=1, why=why)
    if abs(chance.sum() - 1) > 1e-9:
        raise ValueError(f"probability sums to {chance.sum()}: one click is drawn in each step")
    n, t, d, rate = len(chance), steps, n_features, learning_rate
    multiplier = checks.finite_vector(factor, n, "factor")
    if n**t > LIMIT:
        raise ValueError(f"steps is {t}: {n}^{t} sequences are too many (limit {LIMIT}); take fewer steps or clicks")
    iterates, sampled = np.empty((n**t, t, d)), np.empty((n**t, t, d))
    state, weight = np.zeros((1, d)), np.ones(1)
    for step in range(t):
        repeats = n ** (t - step)
        iterates[:, step] = np.repeat(state, repeats, axis=0)
        g = multiplier[:, None] * np.asarray(gradients(state), dtype=np.float64)
        if g.shape != (len(state), n, d):
            raise ValueError(f"gradients returned shape {g.shape}, expected {(len(state), n, d)}")
        state = (state[:, None] - rate * g).reshape(-1, d)
        weight = (weight[:, None] * chance).ravel()
        sampled[:, step] = np.repeat(g.reshape(-1, d), repeats // n, axis=0)
    return Runs(weight, iterates, sampled, rate)
