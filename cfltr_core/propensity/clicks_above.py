"""A test of the position model on pages: do clicks depend on what was clicked above?

In the likelihood of :mod:`cfltr_core.propensity.conditional_poisson` a document at rank k has the log rate u_k,
whatever stands above it.  Here it has u_k + δ z, with z the mean number of clicks above it on its page: a user who
stops after a click makes δ negative.  Under the position model δ = 0.

The clicks on a page are noisy, and a session's own clicks above must not explain its clicks below.  So z comes from one
half of the sessions, and the likelihood from the other: given z, the score of the other half has mean 0 under the
position model, as without z.

Source: derived in chapter 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.pages import PageCounts, distinct_rows
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import clustered_covariance, conditional_poisson, fit_ranks, linked_terms
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.strata import DisplayCounts


@dataclass(frozen=True)
class ClicksAboveTest:
    """What one click more above does to the log rate of a click; :func:`clicks_above_test` makes it.

    ``slope`` is δ, with its ``standard_error``, clustered by query; ``z`` their ratio, ``queries`` the number of
    queries that say something, ``p_value`` the probability of such a z, on either side, under the position model, and
    ``curve`` the examination from the clicks that were fitted, without the regressor.
    """

    slope: float
    standard_error: float
    z: float
    queries: int
    p_value: float
    curve: PropensityCurve


def page_displays(pages: PageCounts, *, half: int | None = None) -> DisplayCounts:
    """Strata of pages: impressions and clicks of each document at each rank, over all pages.

    Parameters
    ----------
    pages : PageCounts
    half : 0, 1 or None
        Of the sessions of one half, or of all.

    Raises
    ------
    ValueError
        For another ``half``, or one without sessions.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> pages = cf.count_pages([0, 0, 0], [[4, 7], [7, 4], [4, 7]], clicked=[[1, 0], [0, 0], [1, 1]])
    >>> counts = cf.page_displays(pages)
    >>> counts.document, counts.rank, counts.impressions, counts.clicks
    (array([4, 4, 7, 7]), array([1, 2, 1, 2]), array([2, 1, 1, 2]), array([2, 0, 0, 1]))
    """
    halves = [0, 1] if half is None else [int(checks.one_of(half, "half", (0, 1)))]
    seen = pages.impressions[:, halves].sum(axis=1) > 0
    if not seen.any():
        raise ValueError(f"half is {half}: there is no session in it; show pages more than once")
    return _displays(pages, seen, halves)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Documents on pages: place among the n ranks, clicks above, counts, stratum and its clicks, query."""

    n: int
    place: IntArray
    above: FloatArray
    impressions: FloatArray
    clicks: FloatArray
    stratum: IntArray
    total: FloatArray
    cluster: IntArray

    def shares(self, beta: FloatArray) -> tuple[FloatArray, float]:
        """π of each row, n e^{x·β} over the sum of its stratum, and ℓ = Σ c x·β − Σ_s C_s log of that sum."""
        log_rate = beta[self.place] + beta[self.n] * self.above
        mass = self.impressions * np.exp(log_rate)
        of_stratum = np.bincount(self.stratum, mass)[self.stratum]
        # The clicks of a stratum are those of its rows: Σ_s C_s log = Σ_rows c log.
        return mass / of_stratum, float(self.clicks @ (log_rate - np.log(of_stratum)))

    def likelihood(self, beta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """ℓ(β), its gradient, and minus its Hessian, β = (u, δ) and x = (1 at the place, z): (n + 1,)."""
        from scipy.sparse import csr_matrix

        share, value = self.shares(beta)
        row, z, n = np.arange(len(self.place)), self.above, self.n
        x = csr_matrix(
            (np.append(np.ones(len(row)), z), (np.tile(row, 2), np.append(self.place, np.full(len(row), n))))
        )
        x.resize(len(row), n + 1)
        weight = self.total * share
        mean = csr_matrix((share, (self.stratum, row))) @ x
        of_stratum = np.zeros(mean.shape[0])
        of_stratum[self.stratum] = self.total
        hessian = x.T @ x.multiply(weight[:, None]) - mean.T @ mean.multiply(of_stratum[:, None])
        return value, np.asarray(x.T @ (self.clicks - weight)), np.asarray(hessian.todense())

    def query_gradients(self, beta: FloatArray) -> FloatArray:
        """The gradient of each query, (n_queries, n + 1)."""
        residual = self.clicks - self.total * self.shares(beta)[0]
        queries = int(self.cluster.max()) + 1
        u = np.bincount(self.cluster * self.n + self.place, residual, minlength=queries * self.n)
        delta = np.bincount(self.cluster, residual * self.above, minlength=queries)
        return np.column_stack([u.reshape(queries, self.n), delta])


def clicks_above_test(pages: PageCounts, *, half: int = 0) -> ClicksAboveTest:
    """Wald test of δ = 0 in the log rate u_k + δ z, z the mean clicks above on the page in the other half's sessions.

    Pages that only one half was shown are left out.  Then the maximum of the conditional Poisson likelihood

        ℓ(u, δ) = Σ_sP c_sP (u_k + δ z_P) − Σ_s C_s log Σ_P n_sP e^{u_k + δ z_P}

    over the documents s and the pages P, with s at rank k of P; its covariance is clustered by query, and δ over its
    error is compared with Student's t of Q − 1 degrees of freedom for Q queries.  Under the position model the score is
    a sum of terms of mean 0 given z, so the test has its size with many queries; z is noisy, which takes power, not
    size.  It has power where documents stand below pages of different appeal: several rankers, or shuffled pages.  A
    user who stops makes δ negative.  Trust in high ranks, the same on every page, escapes it:
    :func:`~cfltr_core.propensity.halves.same_curve` looks for that.

    What must not be done is to take z from the sessions that are fitted.  A reader who leaves for reasons of his own
    makes the clicks of a session hang together without making one depend on another; they would be found.

    Parameters
    ----------
    pages : PageCounts
    half : 0 or 1
        The half of the sessions that gives the regressor z; the other is fitted.

    Raises
    ------
    TypeError
        For ``pages`` of another type.
    ValueError
        When no page was shown in both halves, no two ranks can be compared, or documents stand below equal clicks
        wherever they are, with the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    >>> policy = cf.MixturePolicy(rankers, shares=[0.4, 0.3, 0.3])
    >>> given = {"relevance": [1, 0, 1] * 40, "sessions": [60] * 40}
    >>> for user in (
    ...     cf.PositionBasedUser([1, 1/2, 1/3], epsilon_plus=0.8, epsilon_minus=0.2),
    ...     cf.CascadeUser(epsilon_plus=0.8, epsilon_minus=0.2),
    ... ):
    ...     pages = cf.simulate_pages(policy, user, rng=np.random.default_rng(0), **given)
    ...     test = cf.clicks_above_test(pages)
    ...     print(f"{type(user).__name__}: δ = {test.slope:.2f}, z = {test.z:.1f}, p = {test.p_value:.2g}")
    PositionBasedUser: δ = 0.13, z = 1.2, p = 0.25
    CascadeUser: δ = -1.84, z = -9.9, p = 3.1e-12
    """
    from scipy.special import betainc

    if not isinstance(pages, PageCounts):
        raise TypeError(f"pages is {type(pages).__name__}: expected PageCounts, from simulate_pages or count_pages")
    fitted = 1 - int(checks.one_of(half, "half", (0, 1)))
    use = np.asarray((pages.impressions > 0).all(axis=1))
    if not use.any():
        raise ValueError("pages: no page was shown in both halves; show pages more than once, or take fewer queries")
    counts = _displays(pages, use, [fitted])
    curve = conditional_poisson(counts)
    part = np.array(max(curve.components, key=len))
    rows = _rows(pages, use, part, half)
    free = np.arange(len(part) + 1) > 0
    start = np.append(fit_ranks(linked_terms(counts, part))[0], 0.0)
    information = rows.likelihood(start)[2][1:, 1:]
    of_u = information[:-1, :-1]
    left = information[-1, -1] - information[-1, :-1] @ np.linalg.solve(of_u, information[:-1, -1])
    if not left > 1e-9 * float(rows.total @ rows.above**2):
        raise ValueError(
            "pages: wherever a document stands at a rank, as much was clicked above it, so nothing can be said of what "
            "clicks above do; show pages in more than two orders"
        )
    beta, inverse = maximise(rows.likelihood, start, free=free)
    queries = len(np.unique(rows.cluster))
    influence = rows.query_gradients(beta) @ inverse
    slope, error = float(beta[-1]), float(np.sqrt(clustered_covariance(influence, queries)[-1, -1]))
    z = slope / error if error > 0 else float("nan")
    # Both tails of Student's t, as an incomplete beta function.
    p_value = float(betainc((queries - 1) / 2, 0.5, (queries - 1) / (queries - 1 + z * z))) if queries > 1 else z
    return ClicksAboveTest(slope, error, z, queries, p_value, curve)


def _displays(pages: PageCounts, use: BoolArray, halves: list[int]) -> DisplayCounts:
    """Strata of the rows that are used, over the sessions of some halves."""
    found, which = distinct_rows(np.column_stack([pages.query, pages.document, pages.rank])[use])
    impressions, clicks = (
        np.bincount(which, table[use][:, halves].sum(axis=1)).astype(np.int64)
        for table in (pages.impressions, pages.clicks)
    )
    return DisplayCounts(
        query=found[:, 0], document=found[:, 1], rank=found[:, 2], impressions=impressions, clicks=clicks
    )


def _rows(pages: PageCounts, use: BoolArray, ranks: IntArray, half: int) -> _Rows:
    """The rows at ``ranks`` (from 1) of documents that were clicked there and stand on two pages, or more."""
    fitted = 1 - half
    use = use & np.isin(pages.rank, ranks)
    stratum = distinct_rows(np.column_stack([pages.query, pages.document])[use])[1]
    clicks = pages.clicks[use, fitted].astype(np.float64)
    says = ((np.bincount(stratum) > 1) & (np.bincount(stratum, clicks) > 0))[stratum]
    index = np.flatnonzero(use)[says]
    stratum = np.unique(stratum[says], return_inverse=True)[1]
    clicks = clicks[says]
    return _Rows(
        n=len(ranks),
        place=np.searchsorted(ranks, pages.rank[index]),
        above=pages.clicks_above[index, half],
        impressions=pages.impressions[index, fitted].astype(np.float64),
        clicks=clicks,
        stratum=stratum,
        total=np.asarray(np.bincount(stratum, clicks)[stratum], dtype=np.float64),
        cluster=np.unique(pages.query[index], return_inverse=True)[1],
    )
