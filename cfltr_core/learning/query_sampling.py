"""Stochastic gradients of whole queries: a query is drawn by the weight of its clicks, and all of them are used.

To score one click its whole list must be scored.  A step that draws a query has the gradients of all its clicks for
the same documents.  Source: derived in chapter 14, from Jagerman & de Rijke 2020, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.convergence import gradient_bounds, weight_summary
from cfltr_core.learning.sorted_lists import SortedLists
from cfltr_core.ranking.ragged import lengths, segment_sum
from cfltr_core.sampling import AliasTable, term_draws

# A list with more pairs of a clicked document and another is sorted, for each rate; the others go pair by pair.  With
# 20 rates and every document clicked sorting takes a third of the time in lists of 120, an eighth in lists of 440.
PAIRS = 1 << 16
# What a step of SGD needs to go on: the gradient, (runs, features, rates), and how many documents each run has scored.
Step = Iterator[tuple[FloatArray, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class QuerySampler:
    """How one step of SGD picks a query and scales the gradient of its clicks:

        P(q) = law_q / Σ_k law_k,     g = Σ_{d in q} mass_d ∇f_d / P(q).

    E[g] = Σ_d mass_d ∇f_d whatever the law, if every query whose gradient is not 0 can be drawn.

    Source: derived in chapter 14.

    Parameters
    ----------
    mass : (n_docs,) >= 0
        What the loss of each document counts for in the objective, (1/n) Σ clicks/p over its terms; 0 for a document
        without clicks.
    offsets : (n_queries + 1,)
        The lists of the documents.
    law : (n_queries,) >= 0
        Proportional to the probability of each query; a query with 0 is left out.

    Raises
    ------
    ValueError
        For arrays that disagree with ``offsets``, a negative number, or a law that is 0 everywhere.

    Examples
    --------
    A sampler of one's own: both queries equally often.

    >>> from cfltr_core.learning.query_sampling import QuerySampler
    >>> sampler = QuerySampler([0.5, 0, 0.5, 0, 1], [0, 3, 5], law=[1, 1])
    >>> sampler.probability, sampler.factor
    (array([0.5, 0.5]), array([1., 0., 1., 0., 2.]))
    """

    mass: FloatArray
    offsets: IntArray
    law: FloatArray = field(kw_only=True)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        mass = checks.finite_vector(self.mass, int(offsets[-1]), "mass")
        checks.within(mass, 0, np.inf, "mass", "what a document counts for")
        law = checks.finite_vector(self.law, len(offsets) - 1, "law")
        checks.within(law, 0, np.inf, "law", "proportional to a probability")
        if not law.any():
            raise ValueError("law: it is 0 for every query, so that none can be drawn")
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "law", law)

    def __repr__(self) -> str:
        return f"QuerySampler({len(self.law)} queries)"

    @property
    def probability(self) -> FloatArray:
        """P(q), (n_queries,)."""
        return np.asarray(self.law / self.law.sum())

    @property
    def factor(self) -> FloatArray:
        """mass_d / P(q) of each document, (n_docs,): what its gradient is multiplied by if q is drawn; 0 if P(q) is."""
        width = lengths(self.offsets)
        drawable = np.repeat(self.law > 0, width)
        return np.divide(self.mass, np.repeat(self.probability, width), out=np.zeros(len(self.mass)), where=drawable)


def query_sampler(features: ArrayLike, log: ClickLog) -> QuerySampler:
    """Draws query q with P(q) ∝ Σ_{i in q} w_i G_i, and takes the gradient of all its clicks i, with w = 1/p:

        g = (1/n) Σ_{i in q} w_i ∇f_i / P(q),     G_i = Σ_{y ≠ d_i} ‖x_y − x_{d_i}‖ ≥ ‖∇f_i‖.

    The mean of g is the gradient of R = (1/n) Σ_i w_i f_i, and ‖g‖ ≤ (1/n) Σ_i w_i G_i in every step: no more than the
    M̄ · max G of CounterSample.  A step scores one list, as a step with a single click does.

    Source: derived in chapter 14; Needell, Srebro & Ward 2014 and Zhao & Zhang 2015 draw single terms by w_i G_i.

    Parameters
    ----------
    features : (n_docs, n_features) finite
    log : ClickLog
        Its lists are those of ``features``.

    Returns
    -------
    QuerySampler
        For :func:`train_sgd`.

    Raises
    ------
    ValueError
        For features that are not finite or do not match the lists of the log, a log without clicks, or one in which
        no clicked document differs from the rest of its list.

    Examples
    --------
    Two queries with three and two documents; A, C and the first document of the other query were clicked.

    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3, 1, 2], [0, 3, 5]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0, 0, 2, 3], policy, user=user, sessions=[6, 3])
    >>> features = np.array([[1.0], [0.0], [0.5], [1.0], [0.5]])
    >>> sampler = cf.query_sampler(features, log)
    >>> sampler.law  # (2 · 1 · 1.5 + 1 · 3 · 1) / 4 and (1 · 1 · 0.5) / 4
    array([1.5  , 0.125])
    >>> rng = np.random.default_rng(0)
    >>> path = cf.train_sgd(features, sampler, learning_rates=[0.1], steps=50, rng=rng)
    >>> bool(path.last[-1, 0, 0, 0] > 0)  # the feature speaks for what was clicked
    True
    """
    x = np.asarray(features)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise ValueError(f"features: expected shape (n_docs, n_features) and finite numbers, got shape {x.shape}")
    weight_summary(log)  # which says so if there is no click
    checks.offsets_of(log.offsets, len(x), "log.offsets")
    mass: FloatArray = np.bincount(log.document, log.mass, minlength=len(x)).astype(np.float64)
    clicked = np.flatnonzero(mass)
    steepness = np.zeros(len(x))
    steepness[clicked] = mass[clicked] * gradient_bounds(x, log.offsets, documents=clicked)
    if not steepness.any():
        raise ValueError(
            "features: no clicked document differs from the rest of its list, so that nothing can be learnt"
        )
    return QuerySampler(mass, log.offsets, law=segment_sum(steepness, log.offsets))


def query_steps(
    x: NDArray[Any], cuts: IntArray, sampler: QuerySampler, shape: tuple[int, int], w: FloatArray, rng: Any
) -> Step:
    """Gradients of ``shape`` (runs, queries) a step, at weights ``w`` (runs, features, rates) that change in between.

    The gradients of the queries of a step are averaged.  Used by :func:`cfltr_core.learning.countersample.train_sgd`.
    """
    runs, batch = shape
    table, width = AliasTable.build(sampler.law), lengths(cuts)
    scaled = sampler.factor
    clicked = np.flatnonzero(scaled)
    first = np.searchsorted(clicked, cuts)
    out = np.empty_like(w)
    for chunk in term_draws(table, shape, rng):
        for drawn in chunk.reshape(-1, runs, batch):
            out[:] = 0.0
            for run, queries in enumerate(drawn.tolist()):
                for q in queries:
                    rows = x[cuts[q] : cuts[q + 1]].astype(np.float64, copy=False)
                    terms = clicked[first[q] : first[q + 1]]
                    own, scale = terms - cuts[q], scaled[terms] / batch
                    out[run] += rows.T @ _push(rows @ w[run], own, scale)
            yield out, width[drawn].sum(axis=1)


def _push(scores: FloatArray, own: IntArray, scale: FloatArray) -> FloatArray:
    """Σ_d scale_d Σ_y [s_y > s_d − 1] (e_y − e_d) over the clicked documents ``own`` of a list, for each rate."""
    size, rates = scores.shape
    if len(own) * size > PAIRS:
        first = size * np.arange(rates + 1)
        lists = SortedLists(first, (first[:-1, None] + own).ravel())
        _, pull = lists.sums(scores.T.ravel(), lambda terms, _: np.tile(scale, rates)[terms])
        return -pull.reshape(rates, size).T
    active = (scores > scores[own][:, None] - 1.0) * scale[:, None, None]  # clicked × list × rates
    force: FloatArray = active.sum(axis=0)
    force[own] -= active.sum(axis=1)  # the own document cancels
    return force
