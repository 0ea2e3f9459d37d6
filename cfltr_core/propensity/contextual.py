"""Contextual position bias: examination that depends on the query, as u_k + v_k · x_q.

A navigational query is left after the first result, a broad one is read to the end.  With x_q what is known of query q,
log θ_k(q) = u_k + v_k · x_q enters the conditional Poisson likelihood as a regressor: it stays concave and free of
nuisance.

Source: the model of Fang et al. 2019, "Intervention Harvesting for Context-Dependent Examination-Bias Estimation",
which the notes cite, with a linear form; the likelihood is that of chapter 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.origins import Origin
from cfltr_core.propensity.conditional_poisson import by_rank
from cfltr_core.propensity.curves import PropensityCurve, curve_of
from cfltr_core.propensity.identifiability import rank_links, require_comparable, words_for
from cfltr_core.propensity.strata import DisplayCounts


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ContextualCurve:
    """log θ_k(x)/θ₁(x) = u_k + v_k · x at the ranks that the log can compare with rank 1.

    :func:`contextual_curve` makes it.

    Parameters
    ----------
    n_ranks : int
        Ranks of the log.
    ranks : (n,)
        Those that can be compared, from 1; the first is rank 1.
    coefficients : (n, 1 + n_features)
        Row k holds (u_k, v_k); the first row is 0.
    covariance : (n · (1 + n_features), same)
        Of the coefficients, row after row, clustered by query.
    clicks : (n,)
    notes : tuple of str
    origin : Origin, optional
        Of which sessions of a log that was read.
    """

    n_ranks: int
    ranks: IntArray
    coefficients: FloatArray
    covariance: FloatArray
    clicks: FloatArray
    notes: tuple[str, ...]
    origin: Origin | None = None

    def __repr__(self) -> str:
        return f"ContextualCurve({len(self.ranks)} ranks, {self.coefficients.shape[1] - 1} features of the query)"

    def at(self, context: ArrayLike) -> PropensityCurve:
        """The curve of a query with features ``context``, (n_features,)."""
        x = checks.finite_vector(context, self.coefficients.shape[1] - 1, "context")
        design = np.kron(np.eye(len(self.ranks)), np.append(1.0, x))
        return curve_of(
            "contextual",
            self.ranks,
            design @ self.coefficients.ravel(),
            n_ranks=self.n_ranks,
            covariance=design @ self.covariance @ design.T,
            clicks=self.clicks,
            notes=self.notes,
            origin=self.origin,
        )

    def depends(self) -> tuple[float, int, float]:
        """Wald test that no v_k differs from 0: (W, degrees of freedom, p-value)."""
        from scipy.special import gammaincc

        slopes = np.arange(self.coefficients.size).reshape(self.coefficients.shape)[1:, 1:].ravel()
        v = self.coefficients.ravel()[slopes]
        statistic = float(v @ np.linalg.solve(self.covariance[np.ix_(slopes, slopes)], v))
        return statistic, len(slopes), float(gammaincc(len(slopes) / 2, statistic / 2))


def contextual_curve(counts: DisplayCounts, context: ArrayLike) -> ContextualCurve:
    """Examination that depends on the query, log θ_k(q)/θ₁(q) = u_k + v_k · x_q, from the log of any intervention.

    The design has the columns of each rank times (1, x_q); it is fitted as that of
    :func:`~cfltr_core.propensity.conditional_poisson.conditional_poisson`.

    Parameters
    ----------
    counts : DisplayCounts
    context : (n_queries, n_features)
        x of each query, in the rows that ``counts.query`` numbers; of the order of 1.

    Returns
    -------
    ContextualCurve
        Of the ranks that the log can compare with rank 1, with a covariance clustered by query.

    Raises
    ------
    ValueError
        For numbers that are not finite, too few rows, features that do not vary or follow from each other among the
        queries with linked clicks, or a log in which nothing can be compared with rank 1.

    Examples
    --------
    >>> from cfltr_core.propensity.contextual import contextual_curve
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0, 0, 1, 1, 2, 2, 3, 3], document=[0] * 8, rank=[1, 2] * 4, impressions=[9] * 8)
    >>> fit = contextual_curve(DisplayCounts(**terms, clicks=[8, 4, 6, 6, 6, 4, 7, 7]), [[0], [1], [0], [1]])
    >>> fit, fit.at([0]).curve.round(2), fit.at([1]).curve.round(2)
    (ContextualCurve(2 ranks, 1 features of the query), array([1.  , 0.57]), array([1., 1.]))
    >>> [round(x, 2) for x in fit.depends()]  # W, degrees of freedom, p-value
    [23.02, 1, 0.0]
    """
    links = rank_links(counts)
    require_comparable(links, links.log)
    ranks = np.flatnonzero(links.log == links.log[0]) + 1
    if len(ranks) < 2:
        raise ValueError(f"counts: no rank can be compared with rank 1. {' '.join(links.diagnosis)}")
    x = checks.feature_matrix(context, name="context").astype(np.float64, copy=False)
    if len(x) <= counts.query[-1]:
        raise ValueError(f"context: expected a row for each query up to {counts.query[-1]}, got {x.shape}")
    regression, width = by_rank(counts, ranks, x[counts.query]), 1 + x.shape[1]
    for column in range(1, width):
        if np.linalg.matrix_rank(regression.value[:, : column + 1]) <= column:
            raise ValueError(
                f"context: column {column - 1} is constant, or follows from those before it, in the queries with "
                "linked clicks; leave it out"
            )
    try:
        beta, inverse = regression.fit()
    except ValueError:
        place = np.where(regression.clicks > 0, regression.column[:, 0] // width, -1)
        sides = [np.linalg.matrix_rank(regression.value[place == k]) for k in range(len(ranks))]
        told = (ranks[np.array(sides) < width]).tolist()
        where = words_for(told) if told else "some rank"
        raise ValueError(
            f"counts: the likelihood has no finite maximum: with this context {where} has clicks in one kind of query "
            f"only; use fewer features, or collect more sessions. {' '.join(links.diagnosis)}"
        ) from None
    return ContextualCurve(
        n_ranks=counts.n_ranks,
        ranks=ranks,
        coefficients=beta.reshape(-1, width),
        covariance=regression.covariance(beta, inverse),
        clicks=regression.sums(regression.clicks)[0, ::width],
        notes=links.diagnosis,
        origin=counts.origin,
    )
