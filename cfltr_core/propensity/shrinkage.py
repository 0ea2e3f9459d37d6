"""A curve for small logs: ranks with few clicks are drawn towards a power of the rank, as far as the log allows.

    u_k = b − η log k + e_k,    e_k ~ Normal(0, τ²),

with flat b and η.  Given τ the posterior mode maximises ℓ(u) − ½ uᵀ M u / τ², where ℓ is the conditional Poisson
log-likelihood and M the projection onto what is orthogonal to the constants and to log k.  τ maximises Laplace's
approximation of the evidence,

    ℓ(û) − ½ ûᵀ M û / τ² − (K − 2) log τ − ½ log det(H + M / τ²),

the determinant being that of the matrix without its first row and column.  τ = 0 would be a power law; a large τ leaves
the estimate as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.propensity.conditional_poisson import by_rank
from cfltr_core.propensity.curves import PropensityCurve, curve_of
from cfltr_core.propensity.identifiability import rank_links, require_comparable, words_for
from cfltr_core.propensity.strata import DisplayCounts

# Spreads τ about the power law that are compared, in the logarithm of θ: from none to see, to a factor of 20.
SPREADS = np.geomspace(0.003, 3.0, 31)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ShrunkCurve(PropensityCurve):
    """A :class:`~cfltr_core.propensity.curves.PropensityCurve` that was drawn towards a power of the rank.

    ``eta`` is the exponent of the power law that lies nearest, ``tau`` the spread about it that the evidence prefers;
    ``covariance`` is the posterior one, given τ.  :func:`shrunk_power` makes it.
    """

    eta: float
    tau: float


def shrunk_power(counts: DisplayCounts, *, tau: float | None = None) -> ShrunkCurve:
    """Examination from few clicks: the conditional Poisson estimate, drawn towards a power of the rank.

    The design is that of :func:`~cfltr_core.propensity.conditional_poisson.conditional_poisson`, with the penalty M/τ².
    With ten clicks at a rank the log says little of it, and neighbouring ranks say more, if curves are smooth.  This
    adds that assumption, and lets the log say how far to trust it.  Ranks that no document links to the others get
    their place from the power law alone; ``notes`` names them.

    Parameters
    ----------
    counts : DisplayCounts
    tau : float, optional
        τ > 0, where it is known; else that of ``SPREADS`` with the largest evidence.

    Returns
    -------
    ShrunkCurve
        All ranks that were shown, in one group.

    Raises
    ------
    ValueError
        When no two ranks can be compared, or for a ``tau`` that is not positive.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import conditional_poisson
    >>> from cfltr_core.propensity.shrinkage import shrunk_power
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0] * 8, document=[0] * 4 + [1] * 4, rank=[1, 2, 3, 4] * 2, impressions=[9] * 8)
    >>> counts = DisplayCounts(**terms, clicks=[9, 4, 4, 1, 7, 4, 2, 2])
    >>> conditional_poisson(counts).curve.round(4)
    array([1.    , 0.5   , 0.375 , 0.1875])
    >>> curve = shrunk_power(counts)
    >>> curve.curve.round(2), round(curve.eta, 2), round(curve.tau, 3)
    (array([1.  , 0.48, 0.31, 0.23]), 1.05, 0.003)
    """
    checks.arguments(shrunk_power, locals())
    links = rank_links(counts)
    require_comparable(links, links.log)
    ranks = np.flatnonzero(links.impressions > 0) + 1
    regression, free = by_rank(counts, ranks), len(ranks) - 2
    line = np.linalg.qr(np.stack([np.ones(len(ranks)), np.log(ranks)], axis=1))[0]

    def fit(spread: float, start: FloatArray) -> tuple[float, FloatArray, FloatArray, float]:
        penalty = (np.eye(len(ranks)) - line @ line.T) / spread**2
        u, inverse = regression.fit(start, penalty)
        value = regression.likelihood(u, penalty)[0]
        evidence = value - free * np.log(spread) + 0.5 * float(np.linalg.slogdet(inverse[1:, 1:])[1])
        return evidence, u, inverse, spread

    fits = [fit(float(SPREADS[0]) if tau is None else tau, np.zeros(len(ranks)))]
    for spread in SPREADS[1:].tolist() if tau is None and free > 0 else []:
        fits.append(fit(spread, fits[-1][1]))
    _, u, inverse, chosen = max(fits, key=lambda each: each[0])
    x = np.log(ranks) - np.log(ranks).mean()
    eta = -float(x @ u / (x @ x))
    words_of_power = f"{-eta:.3g}".replace("-", "−")
    notes = [f"Drawn towards rank^({words_of_power}), with a spread of {chosen:.3g} about it."]
    first = int(ranks[0]) - 1
    alone = (np.flatnonzero((links.log != links.log[first]) & (links.impressions > 0)) + 1).tolist()
    if alone:
        notes.append(f"Placed by the power law, not by a comparison with rank {first + 1}: {words_for(alone)}.")
    curve = curve_of(
        "shrunk power",
        ranks,
        u,
        n_ranks=counts.n_ranks,
        covariance=inverse,
        clicks=regression.sums(regression.clicks)[0],
        notes=(*notes, *links.diagnosis),
        origin=counts.origin,
    )
    return ShrunkCurve(**vars(curve), eta=eta, tau=chosen)
