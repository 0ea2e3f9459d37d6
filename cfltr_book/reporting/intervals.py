"""What several seeds say together: means with Student intervals, and slopes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import FloatArray

# That so many units agree may be chance where their values are counts and shares of a few queries; scale ci has at
# least five, and if two of them agree half the time, five do so once in sixteen.
FEW_UNITS = 5
# What rounding may leave: an effect below this is 0, and numbers that differ by less of the larger one are equal.
ROUNDING = 1e-12


class Look(NamedTuple):
    """A mean with its interval, the number of units that it rests on, and why a few of them allow no interval."""

    mean: float
    low: float
    high: float
    units: int
    reason: str


def mean_interval(
    values: ArrayLike, level: float = 0.95, *, units: ArrayLike | None = None
) -> tuple[float, float, float]:
    """Mean over seeds with its two-sided Student interval: ``(mean, low, high)``; infinite for one seed.

    x̄ ± t_{n−1}(½ + level/2) · s/√n, over n values or, where ``units`` are given, over the n means of the values
    that share a unit.  Two seeds that read the same fold are two looks at the same queries: taken as two values
    they promise too narrow an interval.

    Parameters
    ----------
    values : (n_seeds,)
    level : float
        Probability with which the interval covers the mean.
    units : (n_seeds,), optional
        A label for each seed, equal where seeds share their data (:func:`cfltr_book.data.corpora.units_of`).  Without
        labels every seed is a unit of its own.

    Raises
    ------
    ValueError
        For values that are not finite, a level outside (0, 1), or labels that are not one per seed.

    Examples
    --------
    >>> import cfltr_book as book
    >>> mean, low, high = book.mean_interval([0.61, 0.63, 0.65])
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.63, 0.58, 0.68)
    """
    from scipy.special import stdtrit

    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values: expected one number per seed, got shape {x.shape}")
    if not np.isfinite(x).all():
        index = int(np.argmin(np.isfinite(x)))
        raise ValueError(f"values[{index}] is {x[index]}: a seed without a number has no place in an interval")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: expected a probability strictly between 0 and 1")
    if units is not None:
        x = _unit_means(x, units)
    mean = float(x.mean())
    if x.size == 1:
        return mean, -np.inf, np.inf
    half = float(stdtrit(x.size - 1, 0.5 + level / 2) * x.std(ddof=1) / np.sqrt(x.size))
    return mean, mean - half, mean + half


def look(values: FloatArray, level: float, *, units: ArrayLike | None = None) -> Look:
    """What a verdict may rest on: :func:`mean_interval`, but unbounded where a few units all gave the same value.

    The interval of equal values has no width, however few they are.  Fewer than :data:`FEW_UNITS` of them are taken
    for one, with the ``reason``; more stand as they are.  What rounding has left of nothing is 0.

    Parameters
    ----------
    values : (n_seeds,)
    level : float
    units : (n_seeds,), optional
        All three as for :func:`mean_interval`, and refused with the same ValueError.

    Examples
    --------
    >>> look(np.array([0.5, 0.5]), 0.95)[1:4]
    (-inf, inf, 2)
    >>> look(np.array([0.5] * 5), 0.95)
    Look(mean=0.5, low=0.5, high=0.5, units=5, reason='')
    """
    ends = mean_interval(values, level, units=units)
    x = values if units is None else _unit_means(values, units)
    reason = ""
    if 1 < x.size < FEW_UNITS and np.ptp(x) <= ROUNDING * max(1.0, float(np.abs(x).max())):
        all_of = "both" if x.size == 2 else f"all {x.size}"
        called = "seeds" if x.size == values.size else "folds"
        reason = f"{all_of} {called} gave the same value, so that their spread says nothing"
        ends = ends[0], -math.inf, math.inf
    mean, low, high = (0.0 if abs(end) < ROUNDING else end for end in ends)
    return Look(mean, low, high, x.size, reason)


def below(lower: float, upper: float) -> bool:
    """True where ``lower`` is below ``upper`` by more than rounding.

    Examples
    --------
    >>> below(0.2, 0.3), below(1 - 0.8, 0.2)
    (True, False)
    """
    return lower < upper and not math.isclose(lower, upper, rel_tol=ROUNDING)


def _unit_means(values: FloatArray, units: ArrayLike) -> FloatArray:
    """Mean of the values of each unit, in the order in which the units first appear."""
    labels = np.asarray(units)
    if labels.shape != values.shape:
        raise ValueError(f"units: expected one label per seed, shape {values.shape}, got {labels.shape}")
    _, first, member = np.unique(labels, return_index=True, return_inverse=True)
    means = np.bincount(member, weights=values) / np.bincount(member)
    return np.asarray(means[np.argsort(first)])


def log_slopes(x: FloatArray, errors: FloatArray) -> FloatArray:
    """Least-squares slope of log(errors) on log(x), one per seed."""
    u = np.log(x) - np.log(x).mean()
    return np.asarray(np.log(errors) @ u / (u @ u))
