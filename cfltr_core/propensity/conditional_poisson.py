"""Examination from any intervention: the conditional Poisson likelihood with a stratum for each document.

If the clicks c_sk of stratum s at rank k were Poisson with mean n_sk θ_k ρ_s, then given their sum C_s they would be
Multinomial with probabilities

    π_sk = n_sk e^{u_k} / Σ_j n_sj e^{u_j},    u_k = log θ_k,

in which the attraction ρ_s of the document has cancelled: there is no nuisance parameter.  The log-likelihood

    ℓ(u) = Σ_sk c_sk u_k − Σ_s C_s log Σ_k n_sk e^{u_k}

is concave.  Clicks are Binomial, not Poisson; but the gradient Σ_s (c_sk − C_s π_sk) only needs their means, and has
mean zero at the true u whatever their law, as long as the displays did not react to the clicks inside the stratum and
relevance did not vary with the page inside it.  So its root is a consistent estimate, and what the wrong variance would
spoil is put right by the sandwich covariance H⁻¹ (Σ_q g_q g_qᵀ) H⁻¹, with H minus the Hessian and g_q the gradient of
query q.

Source: Hausman, Hall & Griliches 1984; Wooldridge 1999.  Known to statistics for panels of counts; that it estimates
examination is derived in chapter 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.curves import PropensityCurve, effective_queries, grouped_curve
from cfltr_core.propensity.identifiability import parts_of, rank_links, require_comparable
from cfltr_core.propensity.strata import DisplayCounts

# Strata × ranks are filled into tables, this many cells at once, unless that were many more cells than terms.
CELLS, MOST_EMPTY = 1 << 17, 8
# Strata are taken this many at once where their terms have a number for each rank.
STRATA = 1 << 15


@dataclass(frozen=True, eq=False)
class LinkedTerms:
    """The terms of the strata that say something about ranks of ``ranks``: at least two of these, and a click.

    ``place`` is the rank's position in ``ranks``, which hold the ranks from 1; ``impressions``, ``clicks`` and
    ``total``, the clicks of the whole stratum, are as long; ``start`` cuts them into strata, which ``stratum`` numbers,
    as ``cluster`` numbers the queries.  :func:`linked_terms` makes it.
    """

    ranks: IntArray
    place: IntArray
    impressions: FloatArray
    clicks: FloatArray
    total: FloatArray
    start: IntArray
    stratum: IntArray
    cluster: IntArray


def linked_terms(counts: DisplayCounts, ranks: ArrayLike) -> LinkedTerms:
    """The part of ``counts`` that compares ``ranks`` (from 1) with each other; other ranks are left out of the strata.

    A stratum without these ranks is a stratum of the ranks that are left, so nothing is lost for them.

    Raises
    ------
    ValueError
        For ranks that are not among those of the log.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import linked_terms
    >>> from cfltr_core.propensity.strata import count_rows
    >>> counts = count_rows(query=[0] * 4, document=[0, 0, 1, 1], rank=[1, 2, 2, 3], clicked=[1, 1, 1, 0])
    >>> linked_terms(counts, [1, 2]).place  # of the second document, rank 2 alone would be left
    array([0, 1])
    """
    chosen = checks.indices(ranks, "ranks")
    checks.within(chosen, 1, counts.n_ranks, "ranks", "ranks of the log")
    number = np.full(counts.n_ranks + 1, -1)
    number[chosen] = np.arange(len(chosen))
    place, starts, sizes = number[counts.rank], counts.start[:-1], np.diff(counts.start)
    here = place >= 0
    kept = np.add.reduceat(here, starts, dtype=np.int64)
    total = np.add.reduceat(np.where(here, counts.clicks, 0), starts)
    says = (kept > 1) & (total > 0)
    use = here & np.repeat(says, sizes)
    return LinkedTerms(
        ranks=chosen,
        place=place[use],
        impressions=counts.impressions[use].astype(np.float64),
        clicks=counts.clicks[use].astype(np.float64),
        total=np.repeat(total, sizes)[use].astype(np.float64),
        start=np.concatenate([[0], np.cumsum(kept[says])]),
        stratum=np.repeat(np.arange(int(says.sum())), kept[says]),
        cluster=counts.cluster[use],
    )


def conditional_likelihood(terms: LinkedTerms, log_theta: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
    """ℓ(u) at ``log_theta`` = u, with its gradient and minus its Hessian H.

    Σ_s (c_sk − C_s π_sk) and H = diag(Σ_s C_s π_s) − Σ_s C_s π_s π_sᵀ.  All three are those of u + constant.

    Parameters
    ----------
    terms : LinkedTerms
    log_theta : (n,)
        One number for each of ``terms.ranks``.

    Returns
    -------
    value, gradient (n,), minus_hessian (n, n)

    Raises
    ------
    ValueError
        For numbers that are not finite, or not one for each rank.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import conditional_likelihood, linked_terms
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> terms = linked_terms(counts, [1, 2])
    >>> value, gradient, minus_hessian = conditional_likelihood(terms, np.log([1, 1/2]))
    >>> gradient, minus_hessian  # π = (3/4, 1/4): the estimate is 1/2
    (array([0., 0.]), array([[ 1.5, -1.5],
           [-1.5,  1.5]]))
    """
    u = checks.finite_vector(log_theta, len(terms.ranks), "log_theta")
    log_theta = u[terms.place]
    share = shares(terms, log_theta)
    gradient = np.bincount(terms.place, terms.clicks - terms.total * share, minlength=len(u)).astype(np.float64)
    return log_likelihood(terms, share, log_theta), gradient, curvature(terms, share, terms.total * share)


def shares(terms: LinkedTerms, log_theta: FloatArray) -> FloatArray:
    """π_sk = n_sk e^{u_sk} / Σ_j n_sj e^{u_sj} of each term, ``log_theta`` being the u_sk of each: (n_terms,).

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import linked_terms, shares
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> shares(linked_terms(counts, [1, 2]), np.log([1, 1/2]))
    array([0.75, 0.25])
    """
    mass = terms.impressions * np.exp(log_theta)
    mass /= np.add.reduceat(mass, terms.start[:-1])[terms.stratum]
    return mass


def log_likelihood(terms: LinkedTerms, share: FloatArray, log_theta: FloatArray) -> float:
    """ℓ = Σ_sk c_sk u_sk − Σ_s C_s log Σ_k n_sk e^{u_sk}, from the ``share`` π and ``log_theta`` u of each term.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import linked_terms, log_likelihood, shares
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> terms, u = linked_terms(counts, [1, 2]), np.log([1, 1/2])
    >>> round(log_likelihood(terms, shares(terms, u), u), 3), round(2 * np.log(1/2) - 8 * np.log(8), 3)
    (-18.022, np.float64(-18.022))
    """
    first = terms.start[:-1]
    # n e^u / π is the sum over the stratum: one logarithm a stratum, not one a term.
    log_sum = np.log(terms.impressions[first] / share[first]) + log_theta[first]
    return float(terms.clicks @ log_theta) - float(terms.total[first] @ log_sum)


def curvature(terms: LinkedTerms, share: FloatArray, weight: FloatArray) -> FloatArray:
    """diag(Σ_s w_sk) − Σ_s π_sk w_sj, shape (n, n), of ``share`` π and ``weight`` w, both (n_terms,).

    With w = C π this is minus the Hessian of ℓ(u).

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import curvature, linked_terms
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> curvature(linked_terms(counts, [1, 2]), np.array([0.75, 0.25]), np.array([6.0, 2.0]))
    array([[ 1.5, -1.5],
           [-1.5,  1.5]])
    """
    n, n_strata = len(terms.ranks), len(terms.start) - 1
    together = np.zeros((n, n))
    if n_strata * n > MOST_EMPTY * len(terms.place):
        from scipy.sparse import csr_matrix

        left, right = (csr_matrix((x, terms.place, terms.start), shape=(n_strata, n)) for x in (share, weight))
        together += (left.T @ right).toarray()
    else:
        step = max(1, min(CELLS // n, n_strata))
        for low in range(0, n_strata, step):
            first, last = terms.start[low], terms.start[min(low + step, n_strata)]
            cell = (terms.stratum[first:last] - low) * n + terms.place[first:last]
            filled = np.zeros((2, step * n))
            filled[0, cell], filled[1, cell] = share[first:last], weight[first:last]
            together += filled[0].reshape(-1, n).T @ filled[1].reshape(-1, n)
    return np.asarray(np.diag(np.bincount(terms.place, weight, minlength=n)) - together)


def fit_ranks(terms: LinkedTerms) -> tuple[FloatArray, FloatArray]:
    """The maximum of ℓ(u) with u = 0 at the first rank, and the inverse of H there, 0 for the first rank.

    Raises
    ------
    ValueError
        If there is no finite maximum.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import fit_ranks, linked_terms
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 4], clicks=[6, 2])
    >>> u, inverse = fit_ranks(linked_terms(counts, [1, 2]))
    >>> u.round(3), inverse.round(3)  # log 1/2
    (array([ 0.   , -0.693]), array([[0.   , 0.   ],
           [0.   , 0.667]]))
    """
    n = len(terms.ranks)
    return maximise(lambda u: conditional_likelihood(terms, u), np.zeros(n), free=np.arange(n) > 0)


def query_gradients(terms: LinkedTerms, share: FloatArray, n_clusters: int) -> FloatArray:
    """Gradient of the likelihood of each query, g_qk = Σ_{s ∈ q} (c_sk − C_s π_sk), shape (n_clusters, n).

    ``share`` is π_sk of each of ``terms``.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import linked_terms, query_gradients, shares
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> rows = dict(query=[0, 0, 1, 1], document=[0] * 4, rank=[1, 2, 1, 2], impressions=[5] * 4)
    >>> terms = linked_terms(DisplayCounts(**rows, clicks=[4, 2, 4, 2]), [1, 2])
    >>> query_gradients(terms, shares(terms, np.zeros(4)), n_clusters=2)  # as if both ranks were seen alike
    array([[ 1., -1.],
           [ 1., -1.]])
    """
    n = len(terms.ranks)
    residual = terms.clicks - terms.total * checks.finite_vector(share, len(terms.place), "share")
    cells = np.bincount(terms.cluster * n + terms.place, residual, minlength=n_clusters * n)
    return np.asarray(cells.reshape(n_clusters, n), dtype=np.float64)


def query_noise(terms: LinkedTerms, share: FloatArray, inverse: ArrayLike, *, n_clusters: int) -> FloatArray:
    """v_qk = Σ_{s ∈ q} Σ_j b_sj (A_jk − Σ_i π_si A_ik)², the variance of query q's part in log θ̂_k: (n_clusters, n).

    A is the ``inverse`` of minus the Hessian, (n, n), and π the ``share`` of each of ``terms``.  The clicks of a term
    are Binomial: with the fitted mean μ_sj = C_s π_sj their variance is b_sj = μ_sj (1 − μ_sj/n_sj), at least 0.

    Clicks are no measure of it: a wanted document at rank 1 is clicked nearly always, so that its many clicks hardly
    vary, and a swap compares two documents, of which either may be the one that is seldom seen.  Σ_q of the squared
    parts, from which the sandwich is made, has about the law of χ² with (Σ_q v_qk)² / Σ_q v_qk² − 1 degrees of freedom.

    Source: Satterthwaite 1946; for clustered covariances Bell & McCaffrey 2002, here with the Binomial law of clicks.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import fit_ranks, linked_terms, query_noise, shares
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> rows = dict(query=[0, 0, 1, 1], document=[0, 0, 1, 1], rank=[1, 2, 1, 2], impressions=[40, 40, 10, 10])
    >>> terms = linked_terms(DisplayCounts(**rows, clicks=[20, 10, 5, 3]), [1, 2])
    >>> u, inverse = fit_ranks(terms)
    >>> query_noise(terms, shares(terms, u[terms.place]), inverse, n_clusters=2).round(3)  # four times the sessions
    array([[0.   , 0.061],
           [0.   , 0.016]])
    """
    table = np.asarray(inverse, dtype=np.float64)
    pi = checks.finite_vector(share, len(terms.place), "share")
    mean = terms.total * pi
    noise = np.maximum(mean * (1.0 - mean / terms.impressions), 0.0)
    found = np.zeros((n_clusters, table.shape[1]))
    for low in range(0, len(terms.start) - 1, STRATA):
        cuts = terms.start[low : low + STRATA + 1]
        first, last = cuts[0], cuts[-1]
        slope = table[terms.place[first:last]]
        centre = np.add.reduceat(slope * pi[first:last, None], cuts[:-1] - first, axis=0)
        slope -= np.repeat(centre, np.diff(cuts), axis=0)
        slope *= slope
        slope *= noise[first:last, None]
        cluster = terms.cluster[first:last]
        begin = np.flatnonzero(np.append(True, cluster[1:] != cluster[:-1]))
        found[cluster[begin]] += np.add.reduceat(slope, begin, axis=0)
    return found


def clustered_covariance(influence: FloatArray, n_queries: int) -> FloatArray:
    """Covariance Q/(Q−1) Σ_q i_q i_qᵀ of an estimate whose error is Σ_q i_q; NaN for a single query.

    ``influence`` is (n_clusters, n); of the clusters, Q = ``n_queries`` say something, and the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.conditional_poisson import clustered_covariance
    >>> clustered_covariance(np.array([[0.1], [-0.1], [0.0]]), 2).round(3)
    array([[0.04]])
    """
    rows = np.asarray(influence, dtype=np.float64)
    if n_queries < 2:
        return np.full((rows.shape[1], rows.shape[1]), np.nan)
    return np.asarray(rows.T @ rows * (n_queries / (n_queries - 1)))


def conditional_poisson(counts: DisplayCounts) -> PropensityCurve:
    """Examination from the log of any intervention: the maximum of the conditional Poisson likelihood.

    One fit for each group of ranks that the log can compare, with a covariance that is clustered by query.  Shuffled
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
    n_clusters = 1 + int(np.count_nonzero(np.diff(counts.query)))
    log_theta, covariance, clicks = np.zeros(n), np.full((n, n), np.nan), np.zeros(n)
    queries = np.full(n, np.inf)  # at the first rank of each group, which is fixed
    for part in parts_of(links.log):
        if len(part) == 1:
            continue
        terms = linked_terms(counts, part)
        u, inverse = fit_ranks(terms)
        share = shares(terms, u[terms.place])
        at = np.array(part) - 1
        log_theta[at] = u
        influence = query_gradients(terms, share, n_clusters) @ inverse
        covariance[np.ix_(at, at)] = clustered_covariance(influence, 1 + int(np.count_nonzero(np.diff(terms.cluster))))
        clicks[at] = np.bincount(terms.place, terms.clicks, minlength=len(at))
        queries[at[1:]] = effective_queries(query_noise(terms, share, inverse, n_clusters=n_clusters))[1:]
    return grouped_curve(
        "conditional Poisson",
        log_theta,
        covariance=covariance,
        component=links.log,
        clicks=clicks,
        notes=links.diagnosis,
        queries=queries,
    )
