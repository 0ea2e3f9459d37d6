"""SVM PropDCG: the propensity-weighted SVM for any rank weight λ, by the convex-concave procedure where λ is concave.

The objective, with S_t(w) the hinge sum of the clicked document t and c_t = (C/n) Σ clicks/p, is

    F(w) = ½‖w‖² + Σ_t c_t λ(1 + S_t(w)).

A concave λ lies below its tangent at the present sums S⁰: λ(1 + S) ≤ λ(1 + S⁰) + λ′(1 + S⁰) (S − S⁰).  So
½‖w‖² + Σ c′_t S_t(w) with c′_t = c_t λ′(1 + S⁰_t), an SVM PropRank problem, lies above F up to a constant, and
touches it at the present point.  Weights that are not worse in the surrogate are not worse in F: the objective never
increases, at whatever accuracy the surrogate is solved.  A convex λ makes F convex, and it is minimised directly.
Source: Agarwal et al. 2018, §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.bounds import hinge
from cfltr_core.learning.proprank import LinearFit, minimise, training_problem
from cfltr_core.learning.smoothed_hinge import Cost
from cfltr_core.ranking.linear import names_of
from cfltr_core.ranking.rank_weight import RankWeight, dcg

Curvature = Literal["linear", "convex", "concave"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CCPFit(LinearFit):
    """A :class:`LinearFit` of the last convex problem, with the course of the objective.

    ``objective`` holds F at the start and after each round, ``round_passes`` the multiplications with the feature
    matrix of each round, ``effective_weights`` the c′_t / c_t of the last round, one per clicked document in
    ``documents``.  ``primal`` and ``dual`` certify the last *surrogate*, not F, which has no certificate unless λ is
    convex.  :func:`fit_propdcg` makes it.
    """

    objective: FloatArray
    round_passes: FloatArray
    documents: IntArray
    effective_weights: FloatArray


def curvature(metric: RankWeight, longest: int) -> Curvature:
    """Whether λ is linear, convex or concave on ranks from 1 to 4 · ``longest``, and increasing.

    Found by comparing λ with its chords.  Raises ValueError naming the ranks when λ decreases somewhere, or is convex
    in one place and concave in another, as Prec@k and cut-off metrics are: neither the convex-concave procedure nor a
    convex solver applies then.
    """
    r = np.concatenate([np.arange(1.0, 64.0, 0.5), np.geomspace(64, 4 * max(17, longest), 200)])
    value = metric(r)
    scale = float(np.ptp(value)) or 1.0
    fall = np.flatnonzero(np.diff(value) < -1e-9 * scale)
    if len(fall):
        i = fall[0]
        raise ValueError(
            f"rank weight {metric.name!r} decreases between ranks {r[i]:g} and {r[i + 1]:g}: a bound on the rank "
            "bounds the risk only if λ increases"
        )
    above = metric((r[2:] + r[:-2]) / 2) - (value[2:] + value[:-2]) / 2
    over, under = above > 1e-9 * scale, above < -1e-9 * scale
    if over.any() and under.any():
        i, j = int(np.argmax(over)), int(np.argmax(under))
        raise ValueError(
            f"rank weight {metric.name!r} is neither convex nor concave: it lies above its chord between ranks "
            f"{r[i]:g} and {r[i + 2]:g}, and below it between {r[j]:g} and {r[j + 2]:g}. "
            "Use a weight of one curvature, such as DCG without a cut-off, or fit_lambdaloss for DCG with one"
        )
    return "concave" if over.any() else "convex" if under.any() else "linear"


def fit_propdcg(
    features: ArrayLike,
    log: ClickLog,
    *,
    C: float = 1.0,
    metric: RankWeight | None = None,
    decrease: float = 1e-3,
    gap: float = 1e-3,
    start: LinearFit | None = None,
    max_rounds: int = 50,
) -> CCPFit:
    """SVM PropDCG: minimise F(w) = ½‖w‖² + (C/n) Σ clicks/p · λ(1 + Σ_y max(1 − w·(x_d − x_y), 0)).

    Source: Agarwal et al. 2018, §4.1.

    Parameters
    ----------
    features, log, C
        As for :func:`cfltr_core.learning.proprank.fit_proprank`.
    metric : RankWeight
        λ with a derivative; DCG, −1/log₂(1 + r), if none is given.  A C meant for natural logarithms is C / ln 2 here.
    decrease : float
        Stop when a round lowers F by at most this share of what all rounds have gained over w = 0, F(0) − F, or over
        ``start`` if that was worse than w = 0.  F itself would be no measure: with a small C no weights can change most
        of it, and a constant added to λ changes all of it.
    gap : float
        Certified gap of every convex problem, as in ``fit_proprank``.  For the problem of a round, with the
        objective P′ and the optimum P′*, its two parts are both right here.  P′ ≤ F − Σ c λ(1), as concavity gives
        λ′(1 + S) S ≤ λ(1 + S) − λ(1): never more is missing than this share of what F could lose at all.  And
        P′(0) − P′* is about F(0) − F* where C is small and S hardly changes; elsewhere it may be far larger, since
        λ′(1 + S) is large where S is small now, and would be no measure alone.
    start : LinearFit
        Where to begin; w = 0 without one.  With a concave λ, F may have many stationary points, and the start
        decides which is found.
    max_rounds : int
        The most convex problems that are solved.

    Returns
    -------
    CCPFit

    Raises
    ------
    ValueError
        As ``fit_proprank``; also when λ is neither convex nor concave, or decreases.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> fit = cf.fit_propdcg([[1.0], [0.0], [1.0]], log, C=10)
    >>> fit.weights.round(1), bool((np.diff(fit.objective) <= 0).all())  # no round raises the objective
    (array([1.]), True)
    >>> fit.effective_weights.round(2), cf.dcg().slope([2, 2]).round(2)  # at w = 1 the bounds on the ranks are 2
    (array([0.19, 0.19]), array([0.19, 0.19]))
    """
    checks.arguments(fit_propdcg, locals())
    lam = metric or dcg()
    x, lists, mass = training_problem(features, log, C=C, start=start)
    shape = curvature(lam, int(np.diff(lists.offsets).max()))

    def at(fit: LinearFit) -> tuple[float, FloatArray]:
        """F and the sums S_t at the weights of ``fit``, in double precision."""
        s, _ = lists.sums(fit.decision_function(x), hinge, lambda terms, _: np.zeros(len(terms)))
        return float(0.5 * fit.weights @ fit.weights + mass @ lam(1 + s)), s

    nothing = LinearFit(np.zeros(x.shape[1]), primal=np.inf, dual=-np.inf, at_zero=np.inf, least=0.0, passes=0.0, C=C)
    best = nothing if start is None else start
    value, s = at(best)
    objective, passes = [value], []
    worst = max(value, float(mass @ lam(1 + lists.rivals)))
    accuracy = max(gap, 0.03) if shape == "concave" else gap
    used = slope = lam.slope(1 + s)
    while True:
        if shape == "convex":
            cost = Cost(lambda t: lam(1 + t), lambda t: lam.slope(1 + t))
            fit = minimise(x, lists, mass, C, gap, start, cost=cost)
        else:
            fit = minimise(x, lists, mass * slope, C, accuracy, best)
        passes.append(fit.passes + 1)
        value, s_fit = at(fit)
        # Single precision may have solved the surrogate: weights that do not lower F itself are not taken.
        if value < objective[-1] or np.isinf(best.primal):
            best, s, used, slope = fit, s_fit, slope, lam.slope(1 + s_fit)
        elif best is start:
            primal = float(0.5 * start.weights @ start.weights + mass @ (slope * s))
            best = replace(fit, weights=start.weights, primal=primal)
        fall = (objective[-1] - value) / (worst - value) if value < objective[-1] else 0.0
        objective.append(min(value, objective[-1]))
        if shape != "concave" or (fall <= decrease and accuracy == gap) or len(passes) == max_rounds:
            break
        # An early surrogate is replaced soon: it need not be solved more closely than a tenth of the last fall.
        accuracy = max(gap, min(accuracy, 0.1 * fall))
    return CCPFit(
        **{**vars(best), "passes": float(sum(passes))},
        objective=np.array(objective),
        round_passes=np.array(passes),
        documents=lists.documents,
        effective_weights=used,
    ).named(names_of(features))
