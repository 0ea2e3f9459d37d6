"""Two towers: a number for each rank beside a scorer of the documents, both up the likelihood of ``joint_models``.

The product has θ_k = σ(a_k) and γ_s = σ(f(x_s)); the additive form adds a_k and f(x_s) in the logit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links
from cfltr_core.propensity.joint_models import ClickLikelihood, Combine
from cfltr_core.propensity.score_models import climb, score_model
from cfltr_core.propensity.strata import DisplayCounts

# a_k of a rank without a click, for which the likelihood would have −∞.
NEVER = -700.0


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
    >>> from cfltr_core.propensity.towers import two_towers
    >>> terms = dict(query=[0] * 4, document=[0, 1, 2, 3], rank=[1, 2, 1, 2], impressions=[90] * 4)
    >>> counts = DisplayCounts(**terms, clicks=[60, 10, 20, 30])  # no document was shown at two ranks
    >>> fit = two_towers(counts, [[1.0], [0.0], [0.0], [1.0]])
    >>> fit.curve.round(3), fit.attraction.round(3)  # but two have the features of the other two
    (array([1. , 0.5]), array([0.667, 0.222, 0.222, 0.667]))
    >>> two_towers(counts, [[1.0], [0.0], [0.0], [1.0]], combine="additive").curve.round(3)  # a ratio of odds
    array([1.   , 0.303])
    """
    from scipy.special import expit, log_expit

    checks.arguments(two_towers, locals())
    links = joint_links(counts)
    documents, of = np.unique(counts.document[counts.start[:-1]], return_inverse=True)
    model = score_model(features, documents, module=module, seed=seed)
    likelihood, free = ClickLikelihood(counts, combine), np.flatnonzero(links.clicks)
    displays, product = float(counts.impressions.sum()), combine == "product"

    def parted(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        bias = np.full(counts.n_ranks, NEVER)
        bias[free] = x[: len(free)]
        return bias, x[len(free) :]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        bias, parameters = parted(x)
        scores = model.of(parameters)[of]
        if product:
            seen, liked = log_expit(bias), log_expit(scores)
            value, by_bias, by_score = likelihood(seen, liked)
            by_bias, by_score = by_bias * -np.expm1(seen), by_score * -np.expm1(liked)
        else:
            value, by_bias, by_score = likelihood(bias, scores)
        size, by_size = model.penalty(parameters)
        slope = model.pulled_back(np.bincount(of, by_score, minlength=len(documents)).astype(np.float64))
        gradient = np.concatenate([by_bias[free], slope - displays * decay * by_size])
        return (value - displays * decay * size) / displays, gradient / displays

    best, history, converged = climb(objective, np.concatenate([np.zeros(len(free)), model.start()]), steps=steps)
    bias, parameters = parted(best)
    scores, first = model.of(parameters)[of], 0.0 if product else bias[free[0]]
    notes = () if product else ("The curve is the odds ratio exp(a_k − a_1) of a click, not a ratio of examinations.",)
    if not converged:
        notes = (*notes, f"Not converged in {steps} steps: give more.")
    form = "σ(a_k) σ(f(x))" if product else "σ(a_k + f(x))"
    return joint_fit(
        f"{combine} two-tower",
        links,
        theta=expit(bias) if product else np.exp(bias - first),
        attraction=expit(scores + first),
        history=history * displays,
        assumption=f"a click has the chance {form}, with f {model.words}",
        notes=notes,
        ranker=model.finish(parameters),
    )
