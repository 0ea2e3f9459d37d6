"""The affine correction: what a ranker is worth, from clicks of users who trust high ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.other_users import TrustUser
from cfltr_core.evaluation.estimates import Estimate, Unit
from cfltr_core.evaluation.estimators import corrected_clicks
from cfltr_core.propensity.trust_curves import TrustCurve
from cfltr_core.ranking.rank_weight import RankWeights


def affine(
    log: ClickLog,
    rank_weights: RankWeights | None = None,
    *,
    trust: TrustUser | TrustCurve,
    lam: ArrayLike | None = None,
    unit: Unit = "query",
) -> Estimate:
    """Affine correction: (1/S) Σ λ (clicks − impressions · α_r) / β_r over S sessions.

    If P(click at rank r) = β_r · relevance + α_r, then what trust alone would give is taken off each term, and what is
    left is divided by the slope: the mean of (c − n α_r)/β_r is n · relevance.  So the estimate is unbiased for R(f)
    if every relevant document is shown in every session of its query, at whatever rank; a document that is shown in a
    share of the sessions counts that share.  No examination curve mends the same clicks: IPS adds λ α_r / θ_r for every
    document that is shown, relevant or not, which is more where trust is.

    From a :class:`~cfltr_core.propensity.trust_curves.TrustCurve`, which knows the line only up to one affine map,
    *relevance* is the click probability at the first rank: R(f) comes out as (ε₊ − ε₋) R(f) + ε₋ Σ λ, with ε± those of
    rank 1 (and θ₁ in them).  Two rankers that order the same documents keep their order.  The error of the curve
    itself is not in the standard error.

    Source: Vardasbi et al. 2020.

    Parameters
    ----------
    log : ClickLog
        Its propensities are not used.
    rank_weights, lam, unit
        As in :func:`~cfltr_core.evaluation.estimators.ips`.
    trust : TrustUser or TrustCurve
        Slope and intercept of each rank, by ``trust.line(rank)``.

    Raises
    ------
    TypeError
        As :func:`~cfltr_core.evaluation.estimators.ips` does, and for another ``trust``.
    ValueError
        For a rank of the log at which the slope is 0, so that clicks say nothing of relevance, or is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> page = cf.DeterministicPolicy([1, 2, 3], [0, 3])
    >>> user = cf.TrustUser([1, 1/2, 1/3], epsilon_plus=[0.98, 0.97, 0.96], epsilon_minus=[0.65, 0.33, 0.22])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> rng = np.random.default_rng(0)
    >>> log = cf.simulate_clicks(page, user=user, relevance=[1, 0, 1], sessions=[100_000_000], rng=rng)
    >>> round(cf.ips(log, proposed).report(), 3), round(cf.affine(log, proposed, trust=user).report(), 3)  # true: 1.631
    (1.743, 1.631)
    """
    checks.arguments(affine, locals())
    slope, intercept = trust.line(log.rank)
    usable = (slope != 0) | (log.impressions == 0)
    if not usable.all():
        rank = int(log.rank[np.argmin(usable)])
        raise ValueError(
            f"trust: its slope is 0 at rank {rank}, where the log has impressions: clicks there say nothing of "
            "relevance; keep the rows of the log above that rank"
        )
    inverse = np.divide(1.0, slope, out=np.zeros_like(slope), where=slope != 0)
    return corrected_clicks(log, rank_weights, factor=inverse, expected=intercept, lam=lam, unit=unit)
