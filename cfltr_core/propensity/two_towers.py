"""Two towers: a number for each rank and a score for each document, put together to the chance of a click.

    product:   P(click) = σ(a_k) σ(f(x)),       additive:   P(click) = σ(a_k + f(x)),

with σ(z) = 1/(1 + e^{−z}).  The product is the position-based model with a scorer for the attraction, as in
regression-EM, and climbs the same likelihood by its gradient.  The additive form is a logistic regression: a_k shifts
the logit, and no examination in [0, 1] need be behind it.  Both log-likelihoods have their gradients by

    product:   ∂/∂a_k = Σ_s g_sk (1 − σ(a_k)),  ∂/∂f_s = Σ_k g_sk (1 − σ(f_s)),  g_sk = c_sk − (n_sk − c_sk) p/(1 − p),
    additive:  ∂/∂a_k = Σ_s g_sk,               ∂/∂f_s = Σ_k g_sk,                g_sk = c_sk − n_sk p.

Source: Guo et al. 2019, "PAL: a position-bias aware learning framework for CTR prediction in live recommender systems"
(product); Yan et al. 2022, "Revisiting Two-tower Models for Unbiased Learning to Rank" (additive).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links, linked_by_model
from cfltr_core.propensity.score_models import climb, score_model
from cfltr_core.propensity.strata import DisplayCounts

Combine = Literal["product", "additive"]
# a_k of a rank without a click, for which the likelihood would have −∞.
NEVER = -700.0


def _log_sigmoid(z: FloatArray) -> FloatArray:
    return np.asarray(-np.logaddexp(0.0, -z))


class _Towers:
    """The log-likelihood of the terms, at any number for each rank and score for each stratum."""

    def __init__(self, counts: DisplayCounts, combine: Combine) -> None:
        self.place, self.stratum, self.start = counts.rank - 1, counts.stratum, counts.start[:-1]
        self.clicks, self.shown = counts.clicks.astype(np.float64), counts.impressions.astype(np.float64)
        self.n_ranks, self.product = counts.n_ranks, combine == "product"

    def __call__(self, bias: FloatArray, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        if self.product:
            seen, liked = _log_sigmoid(bias), _log_sigmoid(scores)
            log_p = seen[self.place] + liked[self.stratum]
            left = np.maximum(-np.expm1(log_p), np.finfo(float).tiny)
            misses = self.shown - self.clicks
            value = float(self.clicks @ log_p + misses @ np.log(left))
            pull = self.clicks - misses * (np.exp(log_p) / left)
            at_rank, at_stratum = -np.expm1(seen), -np.expm1(liked)
        else:
            z = bias[self.place] + scores[self.stratum]
            above = np.logaddexp(0.0, z)
            value = float(self.clicks @ z - self.shown @ above)
            pull = self.clicks - self.shown * np.exp(z - above)
            at_rank, at_stratum = np.ones(len(bias)), np.ones(len(scores))
        return (
            value,
            np.bincount(self.place, pull, minlength=self.n_ranks).astype(np.float64) * at_rank,
            np.add.reduceat(pull, self.start) * at_stratum,
        )


def tower_likelihood(
    counts: DisplayCounts, scores: ArrayLike, *, bias: ArrayLike, combine: Combine = "product"
) -> tuple[float, FloatArray, FloatArray]:
    """Σ_sk c_sk log p_sk + (n_sk − c_sk) log(1 − p_sk), p = σ(a_k) σ(f_s) or σ(a_k + f_s), and its gradients.

    Parameters
    ----------
    counts : DisplayCounts
    scores : (n_strata,)
        f_s, in the order of the strata of ``counts``.
    bias : (n_ranks,)
        a_k.
    combine : "product" or "additive"

    Returns
    -------
    value, gradient by ``bias`` (n_ranks,), gradient by ``scores`` (n_strata,)

    Raises
    ------
    ValueError
        For numbers that are not finite or of another length, or an unknown ``combine``.

    Examples
    --------
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> from cfltr_core.propensity.two_towers import tower_likelihood
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[8, 8], clicks=[2, 2])
    >>> tower_likelihood(counts, [0.0], bias=[0.0, 0.0])[1]  # p = 1/2 · 1/2: the clicks agree
    array([0., 0.])
    >>> tower_likelihood(counts, [0.0], bias=[0.0, 0.0], combine="additive")[1]  # p = 1/2: too much
    array([-2., -2.])
    """
    checks.one_of(combine, "combine", ("product", "additive"))
    a = _finite(bias, counts.n_ranks, "bias")
    return _Towers(counts, combine)(a, _finite(scores, len(counts.start) - 1, "scores"))


def _finite(values: ArrayLike, size: int, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        what = "rank" if name == "bias" else "stratum"
        raise ValueError(f"{name}: expected shape ({size},), one number for each {what}, got {array.shape}")
    return checks.finite_vector(array, size, name)


def two_towers(
    counts: DisplayCounts,
    features: ArrayLike,
    *,
    combine: Combine = "product",
    module: Any = None,
    decay: float = 0.0,
    steps: int = 500,
    seed: int = 0,
) -> JointFit:
    """Examination and a scorer of documents at once, by L-BFGS on the mean log-likelihood of all displays.

    The maximum has one θ_k for each rank and one f for all documents, so that ranks are compared also where no document
    was shown at two of them: these ratios are right only if f can be, and a note says so.  ``curve`` is σ(a_k)/σ(a_1)
    for the product, and the *odds ratio* exp(a_k − a_1) for the additive form, which is not a ratio of examinations.
    ``attraction`` is the fitted chance of a click at rank 1, or at the first rank with a click.

    Source: Guo et al. 2019; Yan et al. 2022; here every step is taken on all the counts, not on batches of clicks.

    Parameters
    ----------
    counts : DisplayCounts
    features : (n_rows, n_features)
        Row d are the features of the documents with number d.
    combine : "product" or "additive"
    module : torch.nn.Module, or a function that makes one
        f, from (n_docs, n_features) to (n_docs,) or (n_docs, 1).  A module is trained where it is, in double precision
        and in ``eval`` mode; a function is called with torch's generator seeded by ``seed``.  None: f(x) = b + w·x.
    decay : float
        γ >= 0 of the penalty (γ/2)‖weights‖² per display: of the module's weights, or of w in units in which each
        feature has standard deviation 1.
    steps : int
        At most as many steps of L-BFGS.
    seed : int

    Raises
    ------
    ValueError
        For counts without clicks at two ranks, features without a row for each document or that are not finite, a
        module of another shape, or settings out of range.
    TypeError
        For a ``module`` that is no network.

    Examples
    --------
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> from cfltr_core.propensity.two_towers import two_towers
    >>> terms = dict(query=[0] * 4, document=[0, 1, 2, 3], rank=[1, 2, 1, 2], impressions=[90] * 4)
    >>> counts = DisplayCounts(**terms, clicks=[60, 10, 20, 30])  # no document was shown at two ranks
    >>> fit = two_towers(counts, [[1.0], [0.0], [0.0], [1.0]])
    >>> fit.curve.round(3), fit.attraction.round(3)  # but two have the features of the other two
    (array([1. , 0.5]), array([0.667, 0.222, 0.222, 0.667]))
    >>> two_towers(counts, [[1.0], [0.0], [0.0], [1.0]], combine="additive").curve.round(3)  # a ratio of odds
    array([1.   , 0.303])
    """
    checks.one_of(combine, "combine", ("product", "additive"))
    checks.within(decay, 0, np.finfo(float).max, "decay", "expected γ of the penalty (γ/2)‖weights‖², >= 0")
    checks.positive_int(steps, "steps")
    links = joint_links(counts)
    documents, of = np.unique(counts.document[counts.start[:-1]], return_inverse=True)
    model = score_model(features, documents, module=module, seed=seed)
    towers, clicked, n = _Towers(counts, combine), links.clicks.astype(np.float64), counts.n_ranks
    free: IntArray = np.flatnonzero(clicked)
    displays = float(counts.impressions.sum())

    def parted(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        bias = np.full(n, NEVER)
        bias[free] = x[: len(free)]
        return bias, x[len(free) :]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        bias, parameters = parted(x)
        value, by_bias, by_score = towers(bias, model.of(parameters)[of])
        size, by_size = model.penalty(parameters)
        slope = model.pulled_back(np.bincount(of, by_score, minlength=len(documents)).astype(np.float64))
        gradient = np.concatenate([by_bias[free], slope])
        gradient[len(free) :] -= displays * decay * by_size
        return (value - displays * decay * size) / displays, gradient / displays

    start = np.concatenate([np.zeros(len(free)), model.start()])
    best, history, converged = climb(objective, start, steps=steps)
    bias, parameters = parted(best)
    scores = model.of(parameters)[of]
    first = bias[free[0]]
    if combine == "product":
        theta = np.exp(_log_sigmoid(bias))
        chance = np.exp(_log_sigmoid(scores))
        told: tuple[str, ...] = ()
    else:
        theta = np.exp(bias - first)
        chance = np.exp(_log_sigmoid(scores + first))
        told = ("The curve is the odds ratio exp(a_k − a_1) of a click, not a ratio of examinations.",)
    component, said = linked_by_model(links)
    if not converged:
        told = (*told, f"Not converged in {steps} steps: give more.")
    what = "linear in the features" if module is None else f"what {type(module).__name__} can make of the features"
    form = "σ(a_k) σ(f(x))" if combine == "product" else "σ(a_k + f(x))"
    return joint_fit(
        f"{combine} two-tower",
        theta,
        attraction=chance,
        history=history * displays,
        assumption=f"a click has the chance {form}, with f {what}",
        component=component,
        clicks=clicked,
        notes=(*said, *told),
        ranker=model.finish(parameters),
    )
