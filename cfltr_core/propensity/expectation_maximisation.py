"""Examination and attraction from clicks by expectation-maximisation: free, or with a model of relevance.

A click is an examined document that attracts: P(click on s at rank k) = θ_k γ_s.  Whether a document without a click
was examined, or attractive, is hidden; given the current θ and γ it is likely to degree

    P(examined | no click) = θ_k (1 − γ_s) / (1 − θ_k γ_s),    P(attractive | no click) = γ_s (1 − θ_k) / (1 − θ_k γ_s).

The E-step takes these, the M-step the shares that they make up,

    θ_k ← Σ_s [c_sk + (n_sk − c_sk) P(examined | no click)] / Σ_s n_sk,
    γ_s ← Σ_k [c_sk + (n_sk − c_sk) P(attractive | no click)] / Σ_k n_sk,

and the log-likelihood Σ_sk c_sk log(θ_k γ_s) + (n_sk − c_sk) log(1 − θ_k γ_s) does not fall.
:mod:`cfltr_core.propensity.regression_em` fits a scorer to the shares of the second line instead, so that γ is a
function of the features.

Source: Wang et al. 2018, "Position Bias Estimation for Unbiased Learning to Rank in Personal Search".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links
from cfltr_core.propensity.strata import DisplayCounts

# An iteration that moves no log θ by more has settled.
SETTLED = 1e-7


class JointTerms:
    """The arrays of ``counts`` that every iteration of EM needs.

    ``of_stratum`` are the impressions of each stratum, ``clicks`` and ``misses`` those of each term.
    """

    def __init__(self, counts: DisplayCounts) -> None:
        self.place, self.stratum, self.start = counts.rank - 1, counts.stratum, counts.start[:-1]
        self.clicks = counts.clicks.astype(np.float64)
        self.misses = (counts.impressions - counts.clicks).astype(np.float64)
        self.n_ranks = counts.n_ranks
        at_rank = np.bincount(self.place, counts.impressions, minlength=self.n_ranks)
        self.at_rank = np.maximum(at_rank, 1.0)  # a rank that was never shown keeps θ = 0
        self.of_stratum = np.add.reduceat(counts.impressions, self.start).astype(np.float64)

    def step(self, theta: FloatArray, attraction: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood at ``theta`` and ``attraction`` (n_strata,), and the shares of the E-step there.

        These are the shares of examined displays of each rank, (n_ranks,), and of attractive ones of each stratum,
        (n_strata,): the next θ and γ of free EM.

        Examples
        --------
        >>> import numpy as np
        >>> from cfltr_core.propensity.expectation_maximisation import JointTerms
        >>> from cfltr_core.propensity.strata import DisplayCounts
        >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 6], clicks=[3, 2])
        >>> JointTerms(counts).step(np.array([0.5, 0.5]), np.array([0.5]))[1]  # (3 + 3 · 1/3) / 6, (2 + 4 · 1/3) / 6
        array([0.66666667, 0.55555556])
        """
        here, liked = theta[self.place], attraction[self.stratum]
        chance = here * liked
        left = np.maximum(1.0 - chance, np.finfo(float).tiny)
        value = _log_likelihood(self.clicks, self.misses, chance=chance, left=left)
        hidden = self.misses / left
        examined = self.clicks + hidden * (here - chance)
        attractive = self.clicks + hidden * (liked - chance)
        return (
            value,
            np.bincount(self.place, examined, minlength=self.n_ranks) / self.at_rank,
            np.add.reduceat(attractive, self.start) / self.of_stratum,
        )


def _log_likelihood(clicks: FloatArray, misses: FloatArray, *, chance: FloatArray, left: FloatArray) -> float:
    """Σ c log p + (n − c) log(1 − p), with 0 · log 0 = 0."""
    with np.errstate(divide="ignore"):
        hit = clicks * np.log(np.where(clicks > 0, chance, 1.0))
        return float(hit.sum() + (misses * np.log(np.where(misses > 0, left, 1.0))).sum())


def joint_likelihood(counts: DisplayCounts, theta: ArrayLike, *, attraction: ArrayLike) -> float:
    """Σ_sk c_sk log(θ_k γ_s) + (n_sk − c_sk) log(1 − θ_k γ_s): the log-likelihood of the position-based model.

    Terms that do not depend on θ or γ are left out.  −∞ for clicks that cannot be.

    Parameters
    ----------
    counts : DisplayCounts
    theta : (n_ranks,)
        θ_k >= 0.
    attraction : (n_strata,)
        γ_s >= 0, in the order of the strata of ``counts``; only the products θ_k γ_s need to be probabilities.

    Raises
    ------
    ValueError
        For numbers that are negative or not finite, of another length, or a product above 1.

    Examples
    --------
    >>> from cfltr_core.propensity.expectation_maximisation import joint_likelihood
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[3, 1])
    >>> value = joint_likelihood(counts, [1, 1/2], attraction=[0.5])
    >>> round(value, 6)  # 3 log 1/2 + 3 log 1/2 + log 1/4 + 3 log 3/4
    -6.408224
    >>> joint_likelihood(counts, [0.5, 1/4], attraction=[1.0]) == value  # a factor may change sides
    True
    """
    n_strata = len(counts.start) - 1
    examined = _not_negative(theta, counts.n_ranks, "theta")
    liked = _not_negative(attraction, n_strata, "attraction")
    chance = examined[counts.rank - 1] * liked[counts.stratum]
    if (chance > 1 + 1e-9).any():
        term = int(np.argmax(chance > 1 + 1e-9))
        raise ValueError(
            f"attraction[{counts.stratum[term]}] times theta[{counts.rank[term] - 1}] is {chance[term]}: a chance of a "
            "click is at most 1; rescale one of the two"
        )
    clicks, misses = counts.clicks.astype(np.float64), (counts.impressions - counts.clicks).astype(np.float64)
    return _log_likelihood(clicks, misses, chance=chance, left=np.maximum(1.0 - chance, 0.0))


def _not_negative(values: ArrayLike, size: int, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        what = "rank" if name == "theta" else "stratum"
        raise ValueError(f"{name}: expected shape ({size},), one number for each {what}, got {array.shape}")
    checks.within(array, 0, np.finfo(float).max, name, "expected a finite number >= 0")
    return array


def check_settings(iterations: int, tolerance: float) -> None:
    """Raise a ValueError unless ``iterations`` is a whole number from 1 and ``tolerance`` a number from 0.

    Examples
    --------
    >>> from cfltr_core.propensity.expectation_maximisation import check_settings
    >>> check_settings(200, tolerance=0.0)
    """
    checks.positive_int(iterations, "iterations")
    checks.within(tolerance, 0, np.finfo(float).max, "tolerance", "expected the move at which to stop, >= 0")


def ratio_move(old: FloatArray, new: FloatArray, clicked: FloatArray) -> float:
    """The largest move of a log ratio θ_k/θ_j between ranks that were ``clicked``, from the ``old`` θ to the ``new``.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.expectation_maximisation import ratio_move
    >>> round(ratio_move(np.array([0.4, 0.2]), np.array([0.8, 0.2]), np.array([9.0, 3.0])), 3)  # log 2
    0.693
    """
    move = np.log(new[clicked > 0]) - np.log(old[clicked > 0])
    return float(np.ptp(move))


def unsettled(moved: float, iterations: int, tolerance: float) -> tuple[str, ...]:
    """A sentence if the last of the ``iterations`` still ``moved`` a ratio by more than the ``tolerance``.

    Examples
    --------
    >>> from cfltr_core.propensity.expectation_maximisation import unsettled
    >>> unsettled(1e-9, 200, 0.0), len(unsettled(0.01, 200, 0.0))
    ((), 1)
    """
    if moved <= max(tolerance, SETTLED):
        return ()
    return (
        f"Not converged: iteration {iterations} still moved a ratio by {moved:.2g} of itself, and EM's steps are "
        "short; give more iterations.",
    )


def expectation_maximisation(
    counts: DisplayCounts,
    *,
    iterations: int = 200,
    tolerance: float = 0.0,
    start: tuple[ArrayLike, ArrayLike] | None = None,
) -> JointFit:
    """EM for P(click) = θ_k γ_s with an attraction γ_s of its own for each stratum: nothing is assumed of relevance.

    Its likelihood never falls, and its fixed points are stationary points of the likelihood.  Ranks are compared as far
    as the log compares them, no further: of pages that never change, ``curve`` knows nothing, while ``examination``
    shows where the iterations ended, which is where they were started from.  Each γ_s rests on the few displays of one
    document (*incidental parameters*), so that with two displays a document the curve is off however many documents
    there are; :func:`~cfltr_core.propensity.conditional_poisson.conditional_poisson` needs no γ_s.

    Source: Wang et al. 2018.

    Parameters
    ----------
    counts : DisplayCounts
    iterations : int
        At most as many.
    tolerance : float
        Stop when an iteration moves no ratio θ_k/θ_j by more than this part of itself; 0 never stops early.
    start : (theta, attraction)
        Probabilities (n_ranks,) and (n_strata,) to begin with, strictly between 0 and 1; one half of each by default.

    Raises
    ------
    ValueError
        For counts without clicks at two ranks, a ``start`` that is no probability, or settings out of range.

    Examples
    --------
    >>> from cfltr_core.propensity.expectation_maximisation import expectation_maximisation
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(  # A stood at ranks 1 and 2, B below or above it
    ...     query=[0, 0, 0, 0], document=[0, 0, 1, 1], rank=[1, 2, 2, 1], impressions=[60] * 4, clicks=[48, 24, 6, 12],
    ... )
    >>> fit = expectation_maximisation(counts, iterations=2_000, tolerance=1e-9)
    >>> fit.curve.round(3), fit.attraction.round(3)
    (array([1. , 0.5]), array([0.8, 0.2]))
    >>> same_page = counts.subset(counts.rank == counts.document + 1)  # A at rank 1, B at rank 2, always
    >>> alone = expectation_maximisation(same_page)
    >>> alone.curve, alone.components
    (array([ 1., nan]), ((1,), (2,)))
    """
    check_settings(iterations, tolerance)
    links = joint_links(counts)
    terms, clicked = JointTerms(counts), links.clicks.astype(np.float64)
    theta, attraction = _start(start, counts)
    theta = np.where(links.impressions > 0, theta, 0.0)
    history, moved = [], np.inf
    for _ in range(iterations):
        value, new, liked = terms.step(theta, attraction)
        history.append(value)
        moved, theta, attraction = ratio_move(theta, new, clicked), new, liked
        if tolerance > 0 and moved <= tolerance:
            break
    history.append(terms.step(theta, attraction)[0])
    few = int(np.median(terms.of_stratum))
    notes = (
        *unsettled(moved, len(history) - 1, tolerance),
        f"An attraction for each of {len(attraction)} strata was estimated with the curve, from {few} displays in the "
        "middle one: where these are few the curve is off, however many strata there are.",
        *links.diagnosis,
    )
    return joint_fit(
        "EM",
        theta,
        attraction=attraction,
        history=np.array(history),
        assumption="none: each document has an attraction of its own",
        component=links.log,
        clicks=clicked,
        notes=notes,
    )


def _start(start: tuple[ArrayLike, ArrayLike] | None, counts: DisplayCounts) -> tuple[FloatArray, FloatArray]:
    sizes = {"theta": counts.n_ranks, "attraction": len(counts.start) - 1}
    if start is None:
        return np.full(sizes["theta"], 0.5), np.full(sizes["attraction"], 0.5)
    if not (isinstance(start, tuple) and len(start) == 2):
        raise ValueError("start: expected a pair (theta, attraction), of the ranks and of the strata")
    found = []
    for (name, size), values in zip(sizes.items(), start, strict=True):
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (size,):
            raise ValueError(f"start: {name} has shape {array.shape}, expected ({size},)")
        bad = ~((array > 0) & (array < 1))
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"start: {name}[{i}] is {array[i]}, expected strictly between 0 and 1: EM never leaves these two"
            )
        found.append(array)
    return found[0], found[1]
