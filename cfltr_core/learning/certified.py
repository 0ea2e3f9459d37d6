"""The least of a surrogate risk, with a certificate: where stochastic gradient descent would end, given time.

Source: derived in chapters 13 and 14, from the duality gap of SVM PropRank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.bounds import bound_loss
from cfltr_core.learning.proprank import LinearFit, fit_proprank
from cfltr_core.ranking.ragged import RankingData


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CertifiedOptimum:
    """Weights w* whose R(w*) = ``risk`` is proved to be nearly the least: see :meth:`floor` for what is proved.

    ``fit`` is the SVM PropRank that found them, and ``mean_weight`` Σ_t mass_t, what R counts for the documents
    themselves.  :func:`certified_optimum` makes it.
    """

    fit: LinearFit
    risk: float
    mean_weight: float

    def __repr__(self) -> str:
        return f"CertifiedOptimum(R={self.risk:.6g}, at most {self.risk - self.floor():.1e} above the least)"

    @property
    def weights(self) -> FloatArray:
        """w*, (n_features,)."""
        return self.fit.weights

    def floor(self, radius: float | None = None) -> float:
        """A number that no R(w) with ‖w‖ ≤ ``radius`` is below; the radius is ‖w*‖ if none is given.

        For any w, ½‖w‖² + C (R(w) − Σ mass) is at least the dual D of the fit at its C, so that

            R(w) ≥ Σ mass + (D − ½ ‖w‖²) / C ≥ Σ mass + (D − ½ radius²) / C.

        At ‖w*‖ this is R(w*) less the fit's P − D over C.  A larger radius costs (radius² − ‖w*‖²) / 2C more.  It is
        rounded as the fit is.

        Raises
        ------
        ValueError
            For a radius that is not > 0.
        """
        checks.arguments(CertifiedOptimum.floor, locals())
        square = float(self.weights @ self.weights) if radius is None else radius**2
        return self.mean_weight + (self.fit.dual - square / 2) / self.fit.C


def certified_optimum(
    features: ArrayLike,
    log: ClickLog,
    *,
    strengths: Sequence[float] = (1.0, 1e1, 1e2, 1e3, 1e4),
    gap: float = 1e-3,
    max_passes: int = 3000,
) -> CertifiedOptimum:
    """The minimiser of R(w) = Σ_t mass_t (1 + Σ_{y ≠ d_t} max(0, 1 − ⟨w, x_{d_t} − x_y⟩)), with a certificate.

    R without a regulariser is what SGD minimises.  SVM PropRank is solved for one C after the other, each from the
    solution before; with a large C its ½‖w‖² / C hardly weighs.  A C whose certificate does not close ends the way, and
    the last that did is taken.  What is certified is R, not a metric: weights of the same R may rank differently.

    Source: derived in chapters 13 and 14, from the duality gap of :func:`cfltr_core.learning.proprank.fit_proprank`.

    Parameters
    ----------
    features : (n_docs, n_features) finite
    log : ClickLog
        Clicks for R_IPS; :func:`label_log` for the optimum of full information.
    strengths : increasing values of C
    gap : float
        The certified gap of each fit.
    max_passes : int
        The most multiplications with the feature matrix for each C.

    Returns
    -------
    CertifiedOptimum

    Raises
    ------
    ValueError
        For strengths that do not increase, and as ``fit_proprank``.
    RuntimeError
        When not even the certificate of the first C closed.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> best = cf.certified_optimum([[1.0], [0.0], [1.0]], log)
    >>> best.weights.round(2), round(best.risk, 2)  # A and C stand together, 1 above B: .75 · 2 + .75 · 2
    (array([1.]), 3.0)
    >>> bool(best.floor() > 2.99), bool(best.floor(radius=5.0) > 2.99)
    (True, True)
    """
    checks.arguments(certified_optimum, locals())
    values = checks.increasing(strengths, "strengths")
    fit = fit_proprank(features, log, C=float(values[0]), gap=gap, max_passes=max_passes)
    for c in values[1:].tolist():
        try:
            fit = fit_proprank(features, log, C=c, gap=gap, start=fit, max_passes=max_passes)
        except RuntimeError:  # its certificate stays open
            break
    return CertifiedOptimum(
        fit=fit, risk=surrogate_risk(fit.decision_function(features), log), mean_weight=float(log.mass.sum())
    )


def label_log(data: RankingData) -> ClickLog:
    """Full information as a log: each relevant document is clicked once, at propensity 1.

    Its R is the same surrogate as that of a click log, (1/n) Σ over the n relevant documents d of 1 + Σ_{y ≠ d} hinge.

    Source: the "full supervision" of Jagerman & de Rijke 2020, §6.4, with relevance as their clicks see it (§6.2).

    Parameters
    ----------
    data : RankingData
        Its ``binary`` relevance is used.

    Raises
    ------
    ValueError
        For data without a relevant document.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.label_log(cf.RankingData([[1.0], [0.0], [0.5]], [1, 0, 1], offsets=[0, 3])).mass
    array([0.5, 0. , 0.5])
    """
    relevant = np.asarray(data.binary).astype(np.int64)
    if not relevant.any():
        raise ValueError("data: no document is relevant, so that its labels have no optimum")
    once = np.ones(len(relevant), dtype=np.int64)
    return ClickLog(
        document=np.arange(len(relevant)),
        rank=once,
        impressions=once,
        clicks=relevant,
        propensity=np.ones(len(relevant)),
        sessions=np.ones(len(data.offsets) - 1, dtype=np.int64),
        offsets=data.offsets,
    )


def surrogate_risk(scores: FloatArray, log: ClickLog) -> float:
    """R = Σ_t mass_t (1 + Σ_{y ≠ d_t} max(0, 1 − (s_{d_t} − s_y))) of the ``scores`` of all documents, (n_docs,)."""
    return bound_loss(scores, log.offsets, documents=log.document, weights=log.mass).value
