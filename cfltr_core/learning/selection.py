"""Choosing the strength C of the data on validation clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.evaluation.estimators import self_normalised
from cfltr_core.learning.proprank import LinearFit, training_problem
from cfltr_core.ranking.metrics import rank_weights
from cfltr_core.ranking.rank_weight import RankWeight, dcg


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The chosen ``fit``, the ``estimates`` of the risk for each C that was tried, and if the choice is ``at_edge``.

    :func:`select_C` makes it.
    """

    fit: LinearFit
    estimates: dict[float, float]
    at_edge: bool

    def __repr__(self) -> str:
        end = "smallest" if min(self.estimates) == self.fit.C else "largest"
        edge = f", the {end} that was tried: the risk still falls there; give a wider grid, or a larger extend"
        return f"Selection(C={self.fit.C:g} of {len(self.estimates)} values{edge if self.at_edge else ''})"


def select_C(
    fit: Callable[[float, LinearFit | None], LinearFit],
    grid: Sequence[float],
    *,
    features: ArrayLike,
    log: ClickLog,
    metric: RankWeight | None = None,
    extend: int = 6,
) -> Selection:
    """The C with the least Σ clicks · λ / p divided by Σ clicks / p on *validation clicks*; true labels play no part.

    Source: Agarwal et al. 2018, §5.1: "based on the IPS estimate of the DCG [23]", which is the self-normalised one.

    Parameters
    ----------
    fit : callable
        ``fit(C, start)`` trains at one value, from a neighbouring solution or None:
        ``lambda C, start: fit_proprank(x, log, C=C, start=start)``.
    grid : increasing values of C, at least two
    features, log
        The validation queries and their clicks.
    metric : RankWeight
        λ of the risk; DCG if none is given.
    extend : int
        While the value at an edge is strictly the best, the grid grows there by the ratio of its two outermost
        values, at most this many times.  ``at_edge`` says if it still does.

    Raises
    ------
    ValueError
        For a grid that is not increasing and positive, features that do not match the log, a log without clicks.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> x = [[3.0, 0.0], [0.0, 0.0], [-1.0, 0.5]]  # a small C leaves document C behind: it needs feature 2
    >>> fit = lambda C, start: cf.fit_proprank(x, log, C=C, start=start)
    >>> chosen = cf.select_C(fit, [0.1, 10, 1000], features=x, log=log)
    >>> {C: round(risk, 3) for C, risk in chosen.estimates.items()}
    {0.1: -0.75, 10.0: -0.815, 1000.0: -0.815}
    >>> chosen.fit.C, chosen.at_edge
    (10.0, False)
    """
    checks.arguments(select_C, locals())
    values, lam = checks.increasing(grid, "grid", least=2), metric or dcg()
    x, _, _ = training_problem(features, log, C=1.0)
    fits: dict[float, LinearFit] = {}
    estimates: dict[float, float] = {}

    def try_value(c: float, start: LinearFit | None) -> None:
        fits[c] = fit(c, start)
        scores = fits[c].decision_function(x)
        estimates[c] = self_normalised(log, rank_weights(scores, log.offsets, metric=lam)).value

    start = None
    for c in values.tolist():
        try_value(c, start)
        start = fits[c]
    for _ in range(extend + 1):
        tried = sorted(fits)
        best = min(tried, key=estimates.__getitem__)
        # A tie with the neighbour is a plateau, not an edge; of equal values the smallest C is taken.
        ends = ((tried[0], tried[1]), (tried[-1], tried[-2]))
        edges = [(end, inner) for end, inner in ends if best == end and estimates[end] < estimates[inner]]
        if len(fits) < len(values) + extend:
            for end, inner in edges:
                try_value(end * end / inner, fits[end])
    return Selection(fits[best], dict(sorted(estimates.items())), bool(edges))
