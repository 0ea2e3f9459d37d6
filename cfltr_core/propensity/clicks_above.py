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
from cfltr_core.checks import BoolArray
from cfltr_core.clicks.pages import PageCounts, distinct_rows
from cfltr_core.propensity.conditional_poisson import conditional_poisson, stratified, wald_tail
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


def page_displays(pages: PageCounts) -> DisplayCounts:
    """Strata of ``pages``: impressions and clicks of each document at each rank, over all pages of both halves.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.clicks_above import page_displays
    >>> pages = cf.count_pages([0, 0, 0], [[4, 7], [7, 4], [4, 7]], clicked=[[1, 0], [0, 0], [1, 1]])
    >>> counts = page_displays(pages)
    >>> counts.document, counts.rank, counts.impressions, counts.clicks
    (array([4, 4, 7, 7]), array([1, 2, 1, 2]), array([2, 1, 1, 2]), array([2, 0, 0, 1]))
    """
    checks.arguments(page_displays, locals())
    return _displays(pages, np.asarray((pages.impressions > 0).any(axis=1)), [0, 1])


def clicks_above_test(pages: PageCounts) -> ClicksAboveTest:
    """Wald test of δ = 0 in the log rate u_k + δ z, z the mean clicks above on the page in the other half's sessions.

    Pages that only one half was shown are left out.  Then the maximum of the conditional Poisson likelihood

        ℓ(u, δ) = Σ_sP c_sP (u_k + δ z_P) − Σ_s C_s log Σ_P n_sP e^{u_k + δ z_P}

    over the documents s and the pages P, with s at rank k of P: the design of
    :mod:`~cfltr_core.propensity.conditional_poisson` has a column for each rank, and z.  Its covariance is clustered by
    query, and δ over its error is compared with Student's t of Q − 1 degrees of freedom for Q queries.  Under the
    position model the score is a sum of terms of mean 0 given z, so the test has its size with many queries; z is
    noisy, which takes power, not size.  It has power where documents stand below pages of different appeal: several
    rankers, or shuffled pages.  A user who stops makes δ negative.  Trust in high ranks, the same on every page,
    escapes it: :func:`~cfltr_core.propensity.halves.same_curve` looks for that.

    What must not be done is to take z from the sessions that are fitted.  A reader who leaves for reasons of his own
    makes the clicks of a session hang together without making one depend on another; they would be found.

    Parameters
    ----------
    pages : PageCounts
        The first half of the sessions gives the regressor z; the second is fitted.

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
    >>> from cfltr_core.clicks.other_users import CascadeUser
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    >>> policy = cf.MixturePolicy(rankers, shares=[0.4, 0.3, 0.3])
    >>> given = {"relevance": [1, 0, 1] * 40, "sessions": [60] * 40}
    >>> for user in (
    ...     cf.PositionBasedUser([1, 1/2, 1/3], epsilon_plus=0.8, epsilon_minus=0.2),
    ...     CascadeUser(epsilon_plus=0.8, epsilon_minus=0.2),
    ... ):
    ...     pages = cf.simulate_pages(policy, user, rng=np.random.default_rng(0), **given)
    ...     test = cf.clicks_above_test(pages)
    ...     print(f"{type(user).__name__}: δ = {test.slope:.2f}, z = {test.z:.1f}, p = {test.p_value:.2g}")
    PositionBasedUser: δ = 0.13, z = 1.2, p = 0.25
    CascadeUser: δ = -1.84, z = -9.9, p = 3.1e-12
    """
    checks.arguments(clicks_above_test, locals())
    half, fitted = 0, 1
    use = np.asarray((pages.impressions > 0).all(axis=1))
    if not use.any():
        raise ValueError("pages: no page was shown in both halves; show pages more than once, or take fewer queries")
    counts = _displays(pages, use, [fitted])
    curve = conditional_poisson(counts)
    part = np.array(max(curve.components, key=len))
    rows = np.flatnonzero(use & np.isin(pages.rank, part))
    rows = rows[np.lexsort((pages.page[rows], pages.document[rows], pages.query[rows]))]
    place = np.searchsorted(part, pages.rank[rows])
    # A stratum here is a document with all its pages: the number of the page stands in the place of the rank, so that
    # the terms are (document, page).  DisplayCounts sorts as the line above did, and `place` has their true ranks.
    each_page = DisplayCounts(
        query=pages.query[rows],
        document=pages.document[rows],
        rank=1 + pages.page[rows],
        impressions=pages.impressions[rows, fitted],
        clicks=pages.clicks[rows, fitted],
    )
    regression = stratified(
        each_page,
        np.ones(len(rows), dtype=np.bool_),
        column=np.column_stack([place, np.full(len(rows), len(part))]),
        value=np.column_stack([np.ones(len(rows)), pages.clicks_above[rows, half]]),
        size=len(part) + 1,
        held=1,
    )
    start = np.append(curve.log_ratio[part - 1], 0.0)
    information = regression.likelihood(start)[2][1:, 1:]
    left = information[-1, -1] - information[-1, :-1] @ np.linalg.solve(information[:-1, :-1], information[:-1, -1])
    if not left > 1e-9 * float(regression.total @ regression.value[:, 1] ** 2):
        raise ValueError(
            "pages: wherever a document stands at a rank, as much was clicked above it, so nothing can be said of what "
            "clicks above do; show pages in more than two orders"
        )
    beta, inverse = regression.fit(start)
    queries = regression.n_queries
    slope, error = float(beta[-1]), float(np.sqrt(regression.covariance(beta, inverse)[-1, -1]))
    z = slope / error if error > 0 else float("nan")
    return ClicksAboveTest(slope, error, z, queries, wald_tail(z * z, 1, queries), curve)


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
