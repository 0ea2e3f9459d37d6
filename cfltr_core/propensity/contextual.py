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

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import (
    LinkedTerms,
    clustered_covariance,
    curvature,
    linked_terms,
    log_likelihood,
    shares,
)
from cfltr_core.propensity.curves import PropensityCurve, grouped_curve
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
    """

    n_ranks: int
    ranks: IntArray
    coefficients: FloatArray
    covariance: FloatArray
    clicks: FloatArray
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"ContextualCurve({len(self.ranks)} ranks, {self.coefficients.shape[1] - 1} features of the query)"

    def at(self, context: ArrayLike) -> PropensityCurve:
        """The curve of a query with features ``context``, (n_features,)."""
        x = np.asarray(context, dtype=np.float64)
        if x.shape != (self.coefficients.shape[1] - 1,) or not np.isfinite(x).all():
            raise ValueError(f"context: expected {self.coefficients.shape[1] - 1} finite numbers, got shape {x.shape}")
        design = np.kron(np.eye(len(self.ranks)), np.append(1.0, x))
        log_theta, covariance, clicks = (
            np.zeros(self.n_ranks),
            np.full((self.n_ranks,) * 2, np.nan),
            np.zeros(self.n_ranks),
        )
        at = self.ranks - 1
        log_theta[at] = design @ self.coefficients.ravel()
        covariance[np.ix_(at, at)] = design @ self.covariance @ design.T
        clicks[at] = self.clicks
        group = np.arange(self.n_ranks)
        group[at] = 0
        return grouped_curve(
            "contextual",
            log_theta,
            covariance=covariance,
            component=np.unique(group, return_inverse=True)[1],
            clicks=clicks,
            notes=self.notes,
        )

    def depends(self) -> tuple[float, int, float]:
        """Wald test that no v_k differs from 0: (W, degrees of freedom, p-value)."""
        from scipy.special import gammaincc

        n, width = self.coefficients.shape
        slopes = np.delete(np.arange(n * width), np.arange(0, n * width, width))
        slopes = slopes[slopes >= width]
        v = self.coefficients.ravel()[slopes]
        statistic = float(v @ np.linalg.solve(self.covariance[np.ix_(slopes, slopes)], v))
        return statistic, len(slopes), float(gammaincc(len(slopes) / 2, statistic / 2))


def contextual_likelihood(
    terms: LinkedTerms, context: FloatArray, coefficients: ArrayLike
) -> tuple[float, FloatArray, FloatArray]:
    """ℓ at ``coefficients`` (u_k, v_k), with its gradient and minus its Hessian.

    With z = (1, x), the gradient of (u_k, v_k) is Σ_s z_s (c_sk − C_s π_sk), and minus the Hessian has the blocks
    Σ_s C_s z_s z_sᵀ (1[k = j] π_sk − π_sk π_sj).

    Parameters
    ----------
    terms : LinkedTerms
    context : (n_terms, n_features)
        x of each term's query.
    coefficients : (n, 1 + n_features)

    Returns
    -------
    value, gradient (n, 1 + n_features), minus_hessian (n · (1 + n_features), same)

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import linked_terms
    >>> from cfltr_core.propensity.contextual import contextual_likelihood
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0, 0, 1, 1], document=[0] * 4, rank=[1, 2] * 2, impressions=[9] * 4)
    >>> counts = DisplayCounts(**terms, clicks=[8, 4, 6, 6])
    >>> u_v = [[0, 0], [np.log(0.5), np.log(2)]]  # θ₂/θ₁ is 1/2 for the first query, 1 for the second
    >>> _, gradient, _ = contextual_likelihood(linked_terms(counts, [1, 2]), np.array([[0.0], [0], [1], [1]]), u_v)
    >>> abs(gradient).max() < 1e-12
    np.True_
    """
    beta = np.asarray(coefficients, dtype=np.float64)
    z = np.concatenate([np.ones((len(terms.place), 1)), context], axis=1)
    n, width = beta.shape
    log_theta = (beta[terms.place] * z).sum(axis=1)
    share = shares(terms, log_theta)
    value = log_likelihood(terms, share, log_theta)
    residual = terms.clicks - terms.total * share
    gradient = np.stack([np.bincount(terms.place, residual * z[:, f], minlength=n) for f in range(width)], axis=1)
    hessian = np.zeros((n, width, n, width))
    for f in range(width):
        for g in range(f, width):
            block = curvature(terms, share, terms.total * share * z[:, f] * z[:, g])
            hessian[:, f, :, g] = hessian[:, g, :, f] = block
    return value, gradient.astype(np.float64), hessian.reshape(n * width, n * width)


def contextual_curve(counts: DisplayCounts, context: ArrayLike) -> ContextualCurve:
    """Examination that depends on the query, log θ_k(q)/θ₁(q) = u_k + v_k · x_q, from the log of any intervention.

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
    x = np.asarray(context, dtype=np.float64)
    if x.ndim != 2 or len(x) <= counts.query[-1] or x.shape[1] == 0:
        raise ValueError(
            f"context: expected a row for each query up to {counts.query[-1]}, and a column at least, got {x.shape}"
        )
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise ValueError(f"context[{row}, {column}] is {x[row, column]}: replace or drop non-finite values first")
    terms = linked_terms(counts, ranks)
    queries = np.unique(counts.query)
    rows = x[queries[terms.cluster]]
    spread = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    for column in range(x.shape[1]):
        if np.linalg.matrix_rank(spread[:, : column + 2]) < column + 2:
            raise ValueError(
                f"context: column {column} is constant, or follows from those before it, in the queries with linked "
                "clicks; leave it out"
            )
    n, width = len(ranks), 1 + x.shape[1]

    def likelihood(beta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, minus_hessian = contextual_likelihood(terms, rows, beta.reshape(n, width))
        return value, gradient.ravel(), minus_hessian

    try:
        flat, inverse = maximise(likelihood, np.zeros(n * width), free=np.arange(n * width) >= width)
    except ValueError:
        raise ValueError(
            f"counts: the likelihood has no finite maximum: with this context {_one_sided(terms, spread)} has clicks "
            f"in one kind of query only; use fewer features, or collect more sessions. {' '.join(links.diagnosis)}"
        ) from None
    beta = flat.reshape(n, width)
    share = shares(terms, (beta[terms.place] * spread).sum(axis=1))
    residual = terms.clicks - terms.total * share
    cell = (terms.cluster * n + terms.place) * width
    size = len(queries) * n * width
    cells = np.sum([np.bincount(cell + f, residual * spread[:, f], minlength=size) for f in range(width)], axis=0)
    return ContextualCurve(
        n_ranks=counts.n_ranks,
        ranks=ranks,
        coefficients=beta,
        covariance=clustered_covariance(cells.reshape(len(queries), -1) @ inverse, len(np.unique(terms.cluster))),
        clicks=np.bincount(terms.place, terms.clicks, minlength=n).astype(np.float64),
        notes=links.diagnosis,
    )


def _one_sided(terms: LinkedTerms, spread: FloatArray) -> str:
    """The ranks with clicks only where a column of ``spread``, (n_terms, width), follows from the others."""
    width = spread.shape[1]
    told = [
        int(rank)
        for place, rank in enumerate(terms.ranks)
        if np.linalg.matrix_rank(spread[(terms.place == place) & (terms.clicks > 0)]) < width
    ]
    return words_for(told) if told else "some rank"
