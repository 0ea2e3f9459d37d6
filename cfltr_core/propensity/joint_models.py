"""Joint models of clicks: one likelihood of examination and attraction, several scorers, and two ways up.

With a number a_k for each rank and f_s for each stratum the clicks c of n displays have the log-likelihood

    ℓ = Σ_sk c log p + (n − c) log(1 − p),    product: p = exp(a_k + f_s),    additive: p = σ(a_k + f_s),

with σ(z) = 1/(1 + e^{−z}).  The product is the position-based model, with a_k = log θ_k and f_s = log γ_s; in the
additive form a_k shifts the logit, and no examination need be behind it.  The slope of ℓ in z = a_k + f_s is

    product: g_sk = c − (n − c) p/(1 − p),    additive: g_sk = c − n p.

What differs between the models is where f comes from, and how ℓ is climbed:

* :func:`expectation_maximisation`: each stratum has a γ_s of its own.  A click was examined and attractive; whether a
  document without one was, is hidden.  Given θ and γ it was examined with probability θ_k (1 − γ_s)/(1 − θ_k γ_s).  The
  E-step takes these, the M-step the share of examined displays at each rank, and both together are a step along the
  slope of ℓ, whose length needs no choice.  ℓ does not fall.

      θ_k ← Σ_s [c + (n − c) θ_k (1 − γ_s)/(1 − θ_k γ_s)] / N_k = θ_k + (1 − θ_k) Σ_s g_sk / N_k,    N_k = Σ_s n_sk,

  The step of γ_s is alike, with the displays of the stratum.

* :func:`regression_em`: the same, but a scorer γ(x) is fitted to the shares of attractive displays of the documents.
* :func:`~cfltr_core.propensity.towers.two_towers`: a scorer f(x) again,
  with L-BFGS on ℓ; the product has θ_k = σ(a_k) and γ_s = σ(f(x_s)).

Source: Wang et al. 2018, "Position Bias Estimation for Unbiased Learning to Rank in Personal Search" (EM and
regression-EM); Guo et al. 2019, "PAL: a position-bias aware learning framework for CTR prediction in live recommender
systems" (product); Yan et al. 2022, "Revisiting Two-tower Models for Unbiased Learning to Rank" (additive).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.identifiability import RankLinks
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links
from cfltr_core.propensity.score_models import LinearScores, shown_features
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.ranking.linear import LinearRanker

Combine = Literal["product", "additive"]
TINY = np.finfo(float).tiny
# An iteration of EM that moves no log θ by more has settled.
SETTLED = 1e-7
# Attractions that a scorer of the user predicts are kept this far from 0 and 1, where no step could lead back.
EDGE = 1e-6
# Steps that the linear scorer takes up its concave bound in an iteration.
SCORER_STEPS = 3


class ClickLikelihood:
    """ℓ of ``counts`` at any number for each rank and stratum, for a ``combine`` of "product" or "additive".

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.joint_models import ClickLikelihood
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[3, 1])
    >>> value, by_rank, by_stratum = ClickLikelihood(counts)(np.log([1, 1/2]), np.log([1/2]))
    >>> round(value, 6), by_rank, by_stratum  # 3 log 1/2 + 3 log 1/2 + log 1/4 + 3 log 3/4
    (-6.408224, array([0., 0.]), array([0.]))
    """

    def __init__(self, counts: DisplayCounts, combine: Combine = "product") -> None:
        self.place, self.stratum, self.start = counts.rank - 1, counts.stratum, counts.start[:-1]
        self.clicks, self.shown = counts.clicks.astype(np.float64), counts.impressions.astype(np.float64)
        self.misses, self.n_ranks, self.product = self.shown - self.clicks, counts.n_ranks, combine == "product"

    def __call__(self, by_rank: FloatArray, by_stratum: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """ℓ at a = ``by_rank`` (n_ranks,) and f = ``by_stratum`` (n_strata,), and its slopes in both."""
        z = by_rank[self.place] + by_stratum[self.stratum]
        if self.product:
            left = np.maximum(-np.expm1(z), TINY)
            value = float(self.clicks @ z + self.misses @ np.log(left))
            pull = self.clicks - self.misses * (np.exp(z) / left)
        else:
            above = np.logaddexp(0.0, z)
            value = float(self.clicks @ z - self.shown @ above)
            pull = self.clicks - self.shown * np.exp(z - above)
        slope = np.bincount(self.place, pull, minlength=self.n_ranks).astype(np.float64)
        return value, slope, np.add.reduceat(pull, self.start)


def _log(p: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(p, TINY)))


def _displays(counts: DisplayCounts) -> FloatArray:
    """Displays of each stratum."""
    return np.add.reduceat(counts.impressions, counts.start[:-1]).astype(np.float64)


def _documents(counts: DisplayCounts) -> tuple[IntArray, IntArray]:
    """The documents that were shown, and which of them each stratum is."""
    return np.unique(counts.document[counts.start[:-1]], return_inverse=True)


def _em(
    counts: DisplayCounts,
    links: RankLinks,
    start: tuple[FloatArray, FloatArray],
    *,
    m_step: Callable[[FloatArray], FloatArray],
    iterations: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[str, ...]]:
    """θ, γ, the history of ℓ, and notes; ``m_step`` makes the next γ of the strata's shares of attractive displays."""
    likelihood, clicked, history, moved = ClickLikelihood(counts), links.clicks > 0, [0.0] * 0, np.inf
    at_rank, of_stratum = np.maximum(links.impressions, 1), _displays(counts)
    theta, gamma = np.where(links.impressions > 0, start[0], 0.0), start[1]  # a rank that was never shown keeps θ = 0
    while True:
        value, by_rank, by_stratum = likelihood(_log(theta), _log(gamma))
        history.append(value)
        if len(history) > iterations or moved <= tolerance > 0:
            break
        old, theta = theta, np.clip(theta + (1 - theta) * by_rank / at_rank, 0.0, 1.0)
        gamma = m_step(np.clip(gamma + (1 - gamma) * by_stratum / of_stratum, 0.0, 1.0))
        moved = float(np.ptp(np.log(theta[clicked]) - np.log(old[clicked])))
    if moved <= max(tolerance, SETTLED):
        return theta, gamma, np.array(history), ()
    unsettled = (
        f"Not converged: iteration {len(history) - 1} still moved a ratio by {moved:.2g} of itself, and EM's steps are "
        "short; give more iterations."
    )
    return theta, gamma, np.array(history), (unsettled,)


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
    >>> from cfltr_core.propensity.joint_models import expectation_maximisation
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
    checks.arguments(expectation_maximisation, locals())
    links = joint_links(counts)
    begin = _start(start, {"theta": counts.n_ranks, "attraction": len(counts.start) - 1})
    theta, gamma, history, unsettled = _em(
        counts, links, begin, m_step=lambda share: share, iterations=iterations, tolerance=tolerance
    )
    few = int(np.median(_displays(counts)))
    incidental = (
        f"An attraction for each of {len(gamma)} strata was estimated with the curve, from {few} displays in the "
        "middle one: where these are few the curve is off, however many strata there are."
    )
    return joint_fit(
        "EM",
        links,
        theta=theta,
        attraction=gamma,
        history=history,
        assumption="none: each document has an attraction of its own",
        component=links.log,
        notes=(*unsettled, incidental, *links.diagnosis),
    )


def _start(start: tuple[ArrayLike, ArrayLike] | None, sizes: dict[str, int]) -> tuple[FloatArray, FloatArray]:
    if start is None:
        start = tuple(np.full(size, 0.5) for size in sizes.values())  # type: ignore[assignment]
    if not (isinstance(start, tuple) and len(start) == 2):
        raise ValueError("start: expected a pair (theta, attraction), of the ranks and of the strata")
    theta, gamma = (np.asarray(values, dtype=np.float64) for values in start)
    for (name, size), array in zip(sizes.items(), (theta, gamma), strict=True):
        if array.shape != (size,):
            raise ValueError(f"start: {name} has shape {array.shape}, expected ({size},)")
        why = "expected a number strictly between 0 and 1, which EM never leaves"
        checks.refuse(~((array > 0) & (array < 1)), f"start: {name}", array, why)
    return theta, gamma


def regression_em(
    counts: DisplayCounts,
    features: ArrayLike,
    *,
    scorer: Any = None,
    iterations: int = 200,
    tolerance: float = 0.0,
) -> JointFit:
    """EM for P(click) = θ_k γ(x_s), where a scorer gives the attraction γ of a document from its features x_s.

    The M-step for γ fits the scorer to the shares r_s of attractive displays, each document with the weight of its
    displays: it maximises Σ_s n_s [r_s log γ(x_s) + (1 − r_s) log(1 − γ(x_s))].  With the scorer of this package,
    γ(x) = σ(b + w·x), each M-step climbs a concave function, so the likelihood never falls, and the fit ends where that
    of :func:`two_towers` does, after many more steps.  Any other scorer makes it a generalised EM only if its ``fit``
    improves its own part: ``history`` shows whether the likelihood rose.

    Because γ is a function of the features, ranks are compared also where no document was shown at two of them: these
    ratios are right only if the scorer can be, and a note says so.

    Source: Wang et al. 2018, who draw the labels and fit boosted trees; here the labels are weights, their mean.

    Parameters
    ----------
    counts : DisplayCounts
    features : (n_rows, n_features)
        Row d are the features of the documents with number d.
    scorer : object with ``fit(X, y, sample_weight=…)`` and ``predict(X)`` or ``predict_proba(X)``
        As in scikit-learn; it is fitted anew in every iteration.  With ``predict_proba`` it gets every document twice,
        as attractive and as not, with the weights of both; else a share to regress on.  None: a linear one.
    iterations, tolerance
        As for :func:`expectation_maximisation`.

    Raises
    ------
    ValueError
        For counts without clicks at two ranks, or settings out of range; for features without a row for each document,
        or that are not finite; for predictions that are no numbers.
    TypeError
        For a ``scorer`` that cannot be fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.joint_models import regression_em
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0] * 4, document=[0, 1, 2, 3], rank=[1, 2, 1, 2], impressions=[90] * 4)
    >>> counts = DisplayCounts(**terms, clicks=[60, 10, 20, 30])  # no document was shown at two ranks
    >>> fit = regression_em(counts, [[1.0], [0.0], [0.0], [1.0]], iterations=2_000)
    >>> fit.curve.round(2)  # but two have the features of the other two
    array([1. , 0.5])
    >>> fit.notes[0]  # doctest: +ELLIPSIS
    "Between the groups rank 1 | rank 2 these ratios are the model's, not the log's: no document was shown in two ..."
    """
    checks.arguments(regression_em, locals())
    links = joint_links(counts)
    documents, of = _documents(counts)
    x, displays = shown_features(features, documents), _displays(counts)
    weight = np.bincount(of, displays).astype(np.float64)
    model = _Linear(x, weight) if scorer is None else _Fitted(x, weight, scorer)
    theta, gamma, history, unsettled = _em(
        counts,
        links,
        (np.full(counts.n_ranks, 0.5), np.full(len(of), 0.5)),
        m_step=lambda share: model.fitted(np.bincount(of, share * displays) / weight)[of],
        iterations=iterations,
        tolerance=tolerance,
    )
    falls = np.flatnonzero(np.diff(history) < -1e-9 * np.abs(history[:-1]))
    if len(falls):
        fell = f"The likelihood fell in {len(falls)} iterations, first in {falls[0] + 1}: this fit is no M-step."
        unsettled = (fell, *unsettled)
    return joint_fit(
        "regression-EM",
        links,
        theta=theta,
        attraction=gamma,
        history=history,
        assumption=model.assumption,
        notes=unsettled,
        ranker=model.ranker(),
    )


class _Linear:
    """γ(x) = σ(b + w·x), improved by steps up a concave quadratic that lies below the weighted log-likelihood.

    The curvature of −log-likelihood is Σ N γ(1−γ) z zᵀ, at most ¼ Σ N z zᵀ, which is factored once (Böhning & Lindsay
    1988): each step raises the likelihood, and needs no length.
    """

    assumption = "attraction is σ(b + w·x), linear in the features but for the link"

    def __init__(self, x: FloatArray, weight: FloatArray) -> None:
        self.model, self.weight = LinearScores(x), weight
        design = self.model.design
        self.inverse = np.linalg.pinv(0.25 * (design * weight[:, None]).T @ design, hermitian=True)
        self.parameters = self.model.start()

    def fitted(self, share: FloatArray) -> FloatArray:
        from scipy.special import expit

        for _ in range(SCORER_STEPS):
            residual = self.weight * (share - expit(self.model.of(self.parameters)))
            self.parameters = self.parameters + self.inverse @ self.model.pulled_back(residual)
        return np.asarray(expit(self.model.of(self.parameters)))

    def ranker(self) -> LinearRanker | None:
        return self.model.finish(self.parameters)


class _Fitted:
    """A scorer of the user, as in scikit-learn."""

    def __init__(self, x: FloatArray, weight: FloatArray, scorer: Any) -> None:
        self.classes = callable(getattr(scorer, "predict_proba", None))
        predicts = self.classes or callable(getattr(scorer, "predict", None))
        if not (callable(getattr(scorer, "fit", None)) and predicts):
            raise TypeError(
                f"scorer is {type(scorer).__name__}: expected an object with fit(X, y, sample_weight=…) and predict(X) "
                "or predict_proba(X), as in scikit-learn"
            )
        self.x, self.weight, self.scorer = x, weight, scorer
        self.assumption = f"attraction is what {type(scorer).__name__} can make of the features"

    def fitted(self, share: FloatArray) -> FloatArray:
        if self.classes:
            weight = np.concatenate([self.weight * share, self.weight * (1 - share)])
            used = np.flatnonzero(weight > 0)
            y = (used < len(share)).astype(np.int64)
            self.scorer.fit(self.x[used % len(share)], y, sample_weight=weight[used])
            found = np.asarray(self.scorer.predict_proba(self.x), dtype=np.float64)
            found = found[:, -1] if found.ndim == 2 else found
        else:
            self.scorer.fit(self.x, share, sample_weight=self.weight)
            found = np.asarray(self.scorer.predict(self.x), dtype=np.float64)
        if found.shape != (len(self.x),) or not np.isfinite(found).all():
            raise ValueError(
                f"scorer: predicted {found.shape}, expected finite numbers, one for each of {len(self.x)} rows"
            )
        return np.clip(found, EDGE, 1 - EDGE)

    def ranker(self) -> LinearRanker | None:
        return None
