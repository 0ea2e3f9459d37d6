"""SVM PropRank: the propensity-weighted ranking SVM with the exact hinge, and a certificate of its accuracy.

With one term t for each clicked document, c_t = (C/n) Σ clicks/p over the n clicks of the log, and S_t = Σ_y ξ_ty the
sum of the hinge losses ξ_ty = max(1 − w·(x_t − x_y), 0) against the other documents y of its list,

    primal  P(w) = ½‖w‖² + Σ_t c_t S_t
    dual    D(a) = Σ_ty a_ty − ½‖v‖²,   v = Σ_ty a_ty (x_t − x_y),   0 ≤ a_ty ≤ c_t
    gap     P(w) − D(a) = ½‖w − v‖² + Σ_ty (c_t ξ_ty − a_ty z_ty) ≥ 0,   z_ty = 1 − w·(x_t − x_y).

``hinge_solver`` has the method.  Source of the problem: Agarwal et al. 2018, §4.1; Joachims et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_examined
from cfltr_core.learning.bounds import ClickedLists
from cfltr_core.learning.enclosure import Solution
from cfltr_core.learning.hinge_solver import solve
from cfltr_core.learning.smoothed_hinge import HINGE_SUM, Cost
from cfltr_core.ranking.linear import names_of


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearFit(Solution):
    """A linear scorer f(x) = w · x with the certificate of its training problem, dual ≤ optimum ≤ primal.

    ``C`` is the weight of the data.  :func:`fit_proprank` makes it.
    """

    C: float
    FORMAT: ClassVar[str] = "cfltr linear fit 1"
    KEPT: ClassVar[tuple[str, ...]] = ("C", "primal", "dual", "at_zero", "least", "passes")

    def __repr__(self) -> str:
        return f"LinearFit({len(self.weights)} weights, C={self.C:g}, relative gap {self.gap:.1e})"


def fit_proprank(
    features: ArrayLike,
    log: ClickLog,
    *,
    C: float = 1.0,
    gap: float = 1e-3,
    start: LinearFit | None = None,
    max_passes: int = 5000,
) -> LinearFit:
    """SVM PropRank: minimise ½‖w‖² + (C/n) Σ clicks/p · Σ_y max(1 − w·(x_d − x_y), 0) to a certified gap.

    Parameters
    ----------
    features : (n_docs, n_features) finite; float32 is used as it is, without a copy
        The fit knows the names of the columns of a data frame.
    log : ClickLog
        Its lists are those of ``features``.
        Repeated clicks on a document count in one term, which is exact.  n is the number of clicks (as in the paper).
    C : float
        Weight of the data against ‖w‖², > 0.
    gap : float
        The certified gap at which to stop, between 0 and 1: at most this share of P, and of what can be gained over
        w = 0, is still missing.  :attr:`cfltr_core.learning.enclosure.Solution.gap` has the formula and why it has two
        parts.
    start : LinearFit
        A neighbouring solution to begin with: other C, or another log.  It changes the way, not what is certified.
    max_passes : int
        The most multiplications with the feature matrix that are tried.

    Returns
    -------
    LinearFit

    Raises
    ------
    TypeError
        For a log that is no ClickLog.
    ValueError
        For non-finite features, a log or a ``start`` that do not match, a log without clicks, or of which nobody said
        who examines its ranks, C not > 0, gap not between 0 and 1.
    RuntimeError
        When ``max_passes`` multiplications did not reach ``gap``; the message has the gap that was reached.  When the
        features leave double precision no digits, so that the bounds cross.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> fit = cf.fit_proprank([[1.0], [0.0], [1.0]], log, C=1, gap=1e-8)  # ½w² + 2 · .75 · (max(1 − w, 0) + 1)
    >>> fit.weights.round(2), round(fit.primal, 2), fit.gap <= 1e-8
    (array([1.]), 2.0, True)
    >>> fit.decision_function([[0.5], [3.0]]).round(2)
    array([0.5, 3. ])
    """
    checks.arguments(fit_proprank, locals())
    x, lists, mass = training_problem(features, log, C=C, start=start)
    return minimise(x, lists, mass, C, gap, start, max_passes).named(names_of(features))


def training_problem(
    features: ArrayLike, log: ClickLog, *, C: float, start: LinearFit | None = None
) -> tuple[NDArray[np.floating], ClickedLists, FloatArray]:
    """Check the arguments of a learner; return features, lists of the clicked documents, and c_t = (C/n) Σ clicks/p."""
    require_examined(log)
    x = checks.feature_matrix(features, n_docs=int(log.offsets[-1]))
    if start is not None and len(start.weights) != x.shape[1]:
        raise ValueError(f"start has {len(start.weights)} weights, but there are {x.shape[1]} features")
    if log.n_clicks == 0:
        raise ValueError("log: there is no click in the log, so nothing can be learnt")
    clicked = log.clicks > 0
    mass = np.bincount(log.document[clicked], log.clicks[clicked] / log.propensity[clicked])
    documents = np.flatnonzero(mass)
    return x, ClickedLists(log.offsets, documents), mass[documents].astype(np.float64) * (C / log.n_clicks)


def minimise(
    x: NDArray[np.floating],
    lists: ClickedLists,
    mass: FloatArray,
    C: float,
    gap: float,
    start: LinearFit | None = None,
    max_passes: int = 5000,
    cost: Cost = HINGE_SUM,
) -> LinearFit:
    """The fit of :func:`cfltr_core.learning.hinge_solver.solve`; checked arguments from :func:`training_problem`."""
    return LinearFit(**vars(solve(x, lists, mass, gap, max_passes, cost, start)), C=C)
