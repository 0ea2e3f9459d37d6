"""Regression-EM: examination by expectation-maximisation, with attraction as a function of the features.

The M-step of :mod:`cfltr_core.propensity.expectation_maximisation` gives each document the share of its displays that
were attractive, as an attraction of its own.  Here a scorer is fitted to these shares, each document with the weight of
its displays: it maximises Σ_s n_s [r_s log γ(x_s) + (1 − r_s) log(1 − γ(x_s))].

Source: Wang et al. 2018, "Position Bias Estimation for Unbiased Learning to Rank in Personal Search".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.expectation_maximisation import (
    JointTerms,
    check_settings,
    ratio_move,
    unsettled,
)
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links, linked_by_model
from cfltr_core.propensity.score_models import LinearScores, shown_features
from cfltr_core.propensity.strata import DisplayCounts

# Attractions that a scorer of the user predicts are kept this far from 0 and 1, where no step could lead back.
EDGE = 1e-6
# Steps that the linear scorer takes up its concave bound in an iteration.
SCORER_STEPS = 3


def regression_em(
    counts: DisplayCounts,
    features: ArrayLike,
    *,
    scorer: Any = None,
    iterations: int = 200,
    tolerance: float = 0.0,
) -> JointFit:
    """EM for P(click) = θ_k γ(x_s), where a scorer gives the attraction γ of a document from its features x_s.

    The M-step for γ fits the scorer to the shares of attractive displays.  With the scorer of this package,
    γ(x) = σ(b + w·x), each M-step climbs a concave function, so the likelihood never falls, and the fit ends where that
    of :func:`~cfltr_core.propensity.two_towers.two_towers` does, after many more steps.  Any other scorer makes it a
    generalised EM only if its ``fit`` improves its own part: ``history`` shows whether the likelihood rose.

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
        As for :func:`~cfltr_core.propensity.expectation_maximisation.expectation_maximisation`.

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
    >>> from cfltr_core.propensity.regression_em import regression_em
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0] * 4, document=[0, 1, 2, 3], rank=[1, 2, 1, 2], impressions=[90] * 4)
    >>> counts = DisplayCounts(**terms, clicks=[60, 10, 20, 30])  # no document was shown at two ranks
    >>> fit = regression_em(counts, [[1.0], [0.0], [0.0], [1.0]], iterations=2_000)
    >>> fit.curve.round(2)  # but two have the features of the other two
    array([1. , 0.5])
    >>> fit.notes[0]  # doctest: +ELLIPSIS
    "Between the groups rank 1 | rank 2 these ratios are the model's, not the log's: no document was shown in two ..."
    """
    check_settings(iterations, tolerance)
    links = joint_links(counts)
    documents, of = np.unique(counts.document[counts.start[:-1]], return_inverse=True)
    x = shown_features(features, documents)
    terms, clicked = JointTerms(counts), links.clicks.astype(np.float64)
    weight = np.bincount(of, terms.of_stratum).astype(np.float64)
    model = _Linear(x, weight) if scorer is None else _Fitted(x, weight, scorer)
    theta = np.where(links.impressions > 0, 0.5, 0.0)
    liked = np.full(len(documents), 0.5)
    history, moved = [], np.inf
    for _ in range(iterations):
        value, new, share = terms.step(theta, liked[of])
        history.append(value)
        liked = model.fitted(np.bincount(of, share * terms.of_stratum) / weight)
        moved, theta = ratio_move(theta, new, clicked), new
        if tolerance > 0 and moved <= tolerance:
            break
    history.append(terms.step(theta, liked[of])[0])
    component, said = linked_by_model(links)
    falls = np.flatnonzero(np.diff(history) < -1e-9 * np.abs(history[:-1]))
    fell: tuple[str, ...] = ()
    if len(falls):
        fell = (f"The likelihood fell in {len(falls)} iterations, first in {falls[0] + 1}: this fit is no M-step.",)
    return joint_fit(
        "regression-EM",
        theta,
        attraction=liked[of],
        history=np.array(history),
        assumption=model.assumption,
        component=component,
        clicks=clicked,
        notes=(*said, *fell, *unsettled(moved, len(history) - 1, tolerance)),
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
        for _ in range(SCORER_STEPS):
            residual = self.weight * (share - _sigmoid(self.model.of(self.parameters)))
            self.parameters = self.parameters + self.inverse @ self.model.pulled_back(residual)
        return _sigmoid(self.model.of(self.parameters))

    def ranker(self) -> Any:
        return self.model.finish(self.parameters)


def _sigmoid(z: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.logaddexp(0.0, -z)))


class _Fitted:
    """A scorer of the user, as in scikit-learn."""

    def __init__(self, x: FloatArray, weight: FloatArray, scorer: Any) -> None:
        predicts = callable(getattr(scorer, "predict", None)) or callable(getattr(scorer, "predict_proba", None))
        if not (callable(getattr(scorer, "fit", None)) and predicts):
            raise TypeError(
                f"scorer is {type(scorer).__name__}: expected an object with fit(X, y, sample_weight=…) and predict(X) "
                "or predict_proba(X), as in scikit-learn"
            )
        self.x, self.weight, self.scorer = x, weight, scorer
        self.classes = callable(getattr(scorer, "predict_proba", None))
        self.assumption = f"attraction is what {type(scorer).__name__} can make of the features"

    def fitted(self, share: FloatArray) -> FloatArray:
        if self.classes:
            y = np.repeat([1, 0], len(self.x))
            weight = np.concatenate([self.weight * share, self.weight * (1 - share)])
            used: IntArray = np.flatnonzero(weight > 0)
            rows = np.concatenate([np.arange(len(self.x))] * 2)[used]
            self.scorer.fit(self.x[rows], y[used], sample_weight=weight[used])
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

    def ranker(self) -> Any:
        return None
