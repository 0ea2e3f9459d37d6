"""Examination from any intervention: one regression, Poisson counts in strata, with a stratum for each document.

If the clicks c_t of term t, one of stratum s, were Poisson with mean n_t ρ_s e^{x_t·β} in n_t displays, then given
their sum C_s those of a stratum would be Multinomial with probabilities

    π_t = n_t e^{x_t·β} / Σ_{j ∈ s} n_j e^{x_j·β},

in which the attraction ρ_s of the document has cancelled: there is no nuisance parameter.  With
m_s = Σ_{t ∈ s} π_t x_t the log-likelihood, its gradient and minus its Hessian are

    ℓ(β) = Σ_t c_t x_t·β − Σ_s C_s log Σ_{t ∈ s} n_t e^{x_t·β},
    g = Σ_t (c_t − C_s π_t) x_t,        H = Σ_t C_s π_t x_t x_tᵀ − Σ_s C_s m_s m_sᵀ.

ℓ is concave, also less a penalty ½ βᵀ P β.  Clicks are Binomial, not Poisson; but g only needs their means, and has
mean zero at the true β whatever their law, as long as the displays did not react to the clicks inside the stratum and
relevance did not vary with the page inside it.  So its root is a consistent estimate, and what the wrong variance would
spoil is put right by the sandwich covariance Q/(Q − 1) H⁻¹ (Σ_q g_q g_qᵀ) H⁻¹, with g_q the part of query q in g, and
Q queries that say something.

The rows x_t are the *design*.  That of :func:`conditional_poisson` has one column for each rank k, with β_k = log θ_k;
:func:`~cfltr_core.propensity.shrinkage.shrunk_power` adds a penalty,
:func:`~cfltr_core.propensity.contextual.contextual_curve` multiplies the columns by features of the query,
:func:`~cfltr_core.propensity.halves.same_curve` by the half that a document is in, and
:func:`~cfltr_core.propensity.clicks_above.clicks_above_test` adds a column for the clicks above.

Source: Hausman, Hall & Griliches 1984; Wooldridge 1999.  Known to statistics for panels of counts; that it estimates
examination is derived in chapter 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.curves import PropensityCurve, clustered_covariance, effective_queries, grouped_curve
from cfltr_core.propensity.identifiability import parts_of, rank_links, require_comparable
from cfltr_core.propensity.strata import DisplayCounts

# Strata × columns are filled into tables, this many cells at once, unless that were many more cells than numbers.
CELLS, MOST_EMPTY = 1 << 17, 8
# Strata are taken this many at once where their terms have a number for each column.
STRATA = 1 << 15


@dataclass(frozen=True, eq=False)
class StratifiedPoisson:
    """The terms of the strata that say something: of two terms at least, and with a click.

    x_t has each ``value`` in its ``column`` of ``size``, both (n_terms, width), and 0 elsewhere; the first ``held``
    coefficients are 0.  ``impressions``, ``clicks`` and ``total``, the clicks of the whole stratum, are (n_terms,);
    ``start`` cuts the terms into strata, which ``stratum`` numbers, as ``cluster`` numbers the queries, of which there
    are ``n_queries``.  :func:`stratified` and :func:`by_rank` make it.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import by_rank
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> regression = by_rank(counts, [1, 2])
    >>> value, gradient, minus_hessian = regression.likelihood(np.log([1, 1/2]))
    >>> gradient, minus_hessian  # π = (3/4, 1/4): the estimate is 1/2
    (array([0., 0.]), array([[ 1.5, -1.5],
           [-1.5,  1.5]]))
    >>> beta, inverse = regression.fit()
    >>> np.exp(beta).round(3), inverse.round(3), regression.sums(regression.clicks)
    (array([1. , 0.5]), array([[0.   , 0.   ],
           [0.   , 0.667]]), array([[6., 2.]]))
    """

    column: IntArray
    value: FloatArray
    size: int
    held: int
    impressions: FloatArray
    clicks: FloatArray
    total: FloatArray
    start: IntArray
    stratum: IntArray
    cluster: IntArray
    n_queries: int

    def sums(self, weight: FloatArray, row: IntArray | int = 0, *, n_rows: int = 1) -> FloatArray:
        """Σ of ``weight`` · x_t over the terms of each ``row``, both (n_terms,): (n_rows, p)."""
        return self._table(np.reshape(row, (-1, 1)) * self.size + self.column, weight[:, None] * self.value, n_rows)

    def _table(self, cell: IntArray, weight: FloatArray, n_rows: int) -> FloatArray:
        """Σ of ``weight`` in each ``cell`` of a table of p columns, numbered row after row."""
        found = np.bincount(cell.ravel(), weight.ravel(), minlength=n_rows * self.size)
        return np.asarray(found.reshape(n_rows, self.size), dtype=np.float64)

    def _shares(self, beta: FloatArray) -> tuple[FloatArray, float]:
        """π of each term, and ℓ(β)."""
        log_rate = np.einsum("tw,tw->t", beta[self.column], self.value)
        mass, first = self.impressions * np.exp(log_rate), self.start[:-1]
        whole = np.add.reduceat(mass, first)
        return mass / whole[self.stratum], float(self.clicks @ log_rate - self.total[first] @ np.log(whole))

    def likelihood(self, beta: FloatArray, penalty: FloatArray | None = None) -> tuple[float, FloatArray, FloatArray]:
        """ℓ(β) − ½ βᵀ P β, g − P β and H + P, with P the ``penalty``: a number, (p,) and (p, p)."""
        share, value = self._shares(beta)
        mean, prior = self.total * share, np.zeros((self.size, self.size)) if penalty is None else penalty
        square = mean[:, None, None] * self.value[:, :, None] * self.value[:, None]
        within = self._table(self.column[:, :, None] * self.size + self.column[:, None], square, self.size)
        minus_hessian = within - self._between(np.sqrt(self.total) * share) + prior
        return value - 0.5 * float(beta @ prior @ beta), self.sums(self.clicks - mean)[0] - prior @ beta, minus_hessian

    def _between(self, weight: FloatArray) -> FloatArray:
        """Σ_s a_s a_sᵀ with a_s the sum of ``weight`` · x_t over a stratum."""
        n_strata, p, data = len(self.start) - 1, self.size, weight[:, None] * self.value
        if n_strata * p >= MOST_EMPTY * data.size:
            from scipy.sparse import csr_matrix

            sums = csr_matrix((data.ravel(), self.column.ravel(), self.start * data.shape[1]), shape=(n_strata, p))
            return np.asarray((sums.T @ sums).toarray())
        found, step = np.zeros((p, p)), max(1, min(CELLS // p, n_strata))
        for low in range(0, n_strata, step):
            part = self._strata(low, step)
            table = self._table((self.stratum[part, None] - low) * p + self.column[part], data[part], step)
            found += table.T @ table
        return found

    def _strata(self, low: int, step: int) -> slice:
        """The terms of ``step`` strata from ``low`` on."""
        return slice(self.start[low], self.start[min(low + step, len(self.start) - 1)])

    def fit(self, start: FloatArray | None = None, penalty: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """The maximum β̂ of ℓ(β) − ½ βᵀ P β, from ``start``, and (H + P)⁻¹ there, 0 for what is held.

        ValueError if there is no finite maximum.
        """
        origin = np.zeros(self.size) if start is None else start
        return maximise(lambda beta: self.likelihood(beta, penalty), origin, free=np.arange(self.size) >= self.held)

    def covariance(self, beta: FloatArray, inverse: FloatArray) -> FloatArray:
        """The sandwich at β̂ = ``beta``, with H⁻¹ = ``inverse``, clustered by query; NaN for a single query."""
        scores = self.sums(self.clicks - self.total * self._shares(beta)[0], self.cluster, n_rows=self.n_queries)
        return clustered_covariance(scores @ inverse, self.n_queries)

    def noise(self, beta: FloatArray, inverse: FloatArray) -> FloatArray:
        """v_qk = Σ_{t ∈ q} b_t ((x_t − m_s) H⁻¹)_k², the variance of query q's part in β̂_k: (n_queries, p).

        The clicks of a term are Binomial: with the fitted mean μ_t = C_s π_t their variance is b_t = μ_t (1 − μ_t/n_t),
        at least 0.  Clicks are no measure of it: a wanted document at rank 1 is clicked nearly always, so that its many
        clicks hardly vary, and a swap compares two documents, of which either may be the one that is seldom seen.  Σ_q
        of the squared parts, from which the sandwich is made, has about the law of χ² with
        (Σ_q v_qk)² / Σ_q v_qk² − 1 degrees of freedom.

        Source: Satterthwaite 1946; for clustered covariances Bell & McCaffrey 2002, here with the Binomial law.

        Examples
        --------
        >>> from cfltr_core.propensity.conditional_poisson import by_rank
        >>> from cfltr_core.propensity.strata import DisplayCounts
        >>> rows = dict(query=[0, 0, 1, 1], document=[0, 0, 1, 1], rank=[1, 2, 1, 2], impressions=[40, 40, 10, 10])
        >>> regression = by_rank(DisplayCounts(**rows, clicks=[20, 10, 5, 3]), [1, 2])
        >>> regression.noise(*regression.fit()).round(3)  # four times the sessions
        array([[0.   , 0.061],
               [0.   , 0.016]])
        """
        share = self._shares(beta)[0]
        mean = self.total * share
        binomial = np.maximum(mean * (1.0 - mean / self.impressions), 0.0)
        found = np.zeros((self.n_queries, self.size))
        for low in range(0, len(self.start) - 1, STRATA):
            part = self._strata(low, STRATA)
            stratum, cluster = self.stratum[part], self.cluster[part]
            slope = np.einsum("tw,twk->tk", self.value[part], inverse[self.column[part]])
            slope -= np.add.reduceat(slope * share[part, None], _firsts(stratum))[stratum - low]
            slope *= slope
            found[cluster[_firsts(cluster)]] += np.add.reduceat(slope * binomial[part, None], _firsts(cluster))
        return found


def _firsts(number: IntArray) -> IntArray:
    """Where a new number begins."""
    return np.flatnonzero(np.diff(number, prepend=-1))


def stratified(
    counts: DisplayCounts, use: BoolArray, *, column: IntArray, value: FloatArray, size: int, held: int
) -> StratifiedPoisson:
    """The regression on the terms of ``counts`` that one may ``use``, without strata of which too little is left.

    ``column``, ``value``, ``size`` and ``held`` are those of :class:`StratifiedPoisson`, of all terms.
    """
    kept = np.add.reduceat(use, counts.start[:-1], dtype=np.int64)
    total = np.add.reduceat(np.where(use, counts.clicks, 0), counts.start[:-1])
    says = (kept > 1) & (total > 0)
    use = use & np.repeat(says, np.diff(counts.start))
    kept, cluster = kept[says], np.cumsum(np.diff(counts.query[use], prepend=-1) != 0) - 1
    return StratifiedPoisson(
        column=column[use],
        value=value[use],
        size=size,
        held=held,
        impressions=counts.impressions[use].astype(np.float64),
        clicks=counts.clicks[use].astype(np.float64),
        total=np.repeat(total[says], kept).astype(np.float64),
        start=np.append(0, np.cumsum(kept)),
        stratum=np.repeat(np.arange(len(kept)), kept),
        cluster=cluster,
        n_queries=int(cluster.max(initial=-1)) + 1,
    )


def by_rank(counts: DisplayCounts, ranks: ArrayLike, features: FloatArray | None = None) -> StratifiedPoisson:
    """The regression that compares ``ranks`` (from 1) with the first of them: x_t = e_k ⊗ (1, z_t) at rank k.

    z_t are the ``features`` of the terms of ``counts``, (n_terms, n_features), by default none.  A stratum without
    these ranks is a stratum of the ranks that are left, so nothing is lost for them.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import by_rank
    >>> from cfltr_core.propensity.strata import count_rows
    >>> counts = count_rows(query=[0] * 4, document=[0, 0, 1, 1], rank=[1, 2, 2, 3], clicked=[1, 1, 1, 0])
    >>> by_rank(counts, [1, 2]).column.ravel()  # of the second document, rank 2 alone would be left
    array([0, 1])
    """
    chosen, one = np.asarray(ranks), np.ones((len(counts.rank), 1))
    number = np.full(counts.n_ranks + 1, -1)
    number[chosen] = np.arange(len(chosen))
    place, value = number[counts.rank], one if features is None else np.concatenate([one, features], axis=1)
    width = value.shape[1]
    column = place[:, None] * width + np.arange(width)
    return stratified(counts, place >= 0, column=column, value=value, size=len(chosen) * width, held=width)


def wald_tail(statistic: float, df: int, n_queries: float) -> float:
    """P(T² >= W), Hotelling's T² (1931), of the ``statistic`` W = δᵀ Cov(δ)⁻¹ δ of ``df`` coefficients δ.

    Cov(δ) is itself an estimate from Q = ``n_queries`` terms, so that W (Q − df) / (df (Q − 1)) is about F(df, Q − df),
    which goes over into χ²; with one coefficient W is the square of Student's t of Q − 1 degrees of freedom.
    """
    from scipy.special import betainc

    # The tail of F(df, Q − df), as an incomplete beta function.
    return float(betainc((n_queries - df) / 2, df / 2, (n_queries - 1) / (n_queries - 1 + statistic)))


def conditional_poisson(counts: DisplayCounts) -> PropensityCurve:
    """Examination from the log of any intervention: the maximum of the conditional Poisson likelihood.

    The design has one column for each rank: log θ_k is its coefficient.  There is one fit for each group of ranks that
    the log can compare, with a covariance that is clustered by query.  Shuffled
    pages, swaps and several rankers are all the same to it; with equal shares of the ranks in every stratum it is the
    ratio of click rates.

    It needs displays that do not depend on clicks of the same stratum, and a relevance that does not vary with the page
    inside the stratum.  A ranker that learns from its clicks, or pages that are made for a kind of user, call for
    shorter periods, or for queries that are split by the kind of user.

    Parameters
    ----------
    counts : DisplayCounts
        From :func:`~cfltr_core.propensity.strata.display_counts` or
        :func:`~cfltr_core.propensity.strata.count_rows`.

    Raises
    ------
    ValueError
        When no two ranks can be compared, with the reason and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.conditional_poisson import conditional_poisson
    >>> from cfltr_core.propensity.strata import display_counts
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1])]
    >>> policy, user = cf.MixturePolicy(rankers, shares=[0.5, 0.5]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> rng, relevance = np.random.default_rng(0), [1, 0, 1] * 40
    >>> log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=[1_000] * 40, rng=rng)
    >>> curve = conditional_poisson(display_counts(log))
    >>> curve.curve.round(2), curve.interval().round(2)
    (array([1.  , 0.5 , 0.34]), array([[1.  , 1.  ],
           [0.49, 0.51],
           [0.33, 0.34]]))
    """
    links = rank_links(counts)
    require_comparable(links, links.log)
    n = counts.n_ranks
    log_theta, covariance, clicks = np.zeros(n), np.full((n, n), np.nan), np.zeros(n)
    queries = np.full(n, np.inf)  # at the first rank of each group, which is fixed
    for part in parts_of(links.log):
        if len(part) == 1:
            continue
        regression, at = by_rank(counts, part), np.array(part) - 1
        u, inverse = regression.fit()
        log_theta[at], covariance[np.ix_(at, at)] = u, regression.covariance(u, inverse)
        clicks[at] = regression.sums(regression.clicks)[0]
        queries[at[1:]] = effective_queries(regression.noise(u, inverse))[1:]
    return grouped_curve(
        "conditional Poisson",
        log_theta,
        covariance=covariance,
        component=links.log,
        clicks=clicks,
        notes=links.diagnosis,
        queries=queries,
        origin=counts.origin,
    )
