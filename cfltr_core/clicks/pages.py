"""Clicks counted page by page: what a user does who looks at the other documents of the page.

A *page* is a ranking R that some sessions of a query were shown.  Counts per document and rank forget which documents
stood above; counts per page keep it.  Sessions are dealt to two halves, so that what was clicked above can be taken
from other sessions than the clicks that it is to explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.users import User

# Sessions whose clicks are drawn at once.
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PageCounts:
    """Impressions and clicks of each document of each page, in two halves of the sessions.

    One row for each place of each page, in the order of page and rank.  :func:`simulate_pages` draws them,
    :func:`count_pages` makes them from single sessions.

    Parameters
    ----------
    page : (n_rows,)
        Number of the page, 0, 0, …, 1, …; the places of a page stand together, in order; some may be left out.
    query, document, rank : (n_rows,)
        Whole numbers >= 0; ranks from 1.
    impressions, clicks : (n_rows, 2)
        Of the first and of the second half of the sessions, 0 <= clicks <= impressions.

    Raises
    ------
    ValueError
        Naming the argument and the row: for places that do not ascend, a page of two queries or with a document twice,
        impressions that differ on one page, or more clicks than impressions.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.pages import PageCounts
    >>> pages = PageCounts(  # A above B in six sessions, B above A in four
    ...     page=[0, 0, 1, 1], query=[0] * 4, document=[0, 1, 1, 0], rank=[1, 2, 1, 2],
    ...     impressions=[[3, 3], [3, 3], [2, 2], [2, 2]], clicks=[[3, 2], [1, 0], [1, 1], [1, 0]],
    ... )
    >>> pages, pages.n_pages
    (PageCounts(9 clicks, 10 sessions, 2 pages), 2)
    >>> pages.clicks_above  # what stands at rank 2 had one click a session above it, or fewer
    array([[0.        , 0.        ],
           [1.        , 0.66666667],
           [0.        , 0.        ],
           [0.5       , 0.5       ]])
    """

    page: IntArray
    query: IntArray
    document: IntArray
    rank: IntArray
    impressions: IntArray
    clicks: IntArray

    def __post_init__(self) -> None:
        n_rows = len(np.asarray(self.rank))
        if n_rows == 0:
            raise ValueError("rank: there is no row, so nothing can be counted")
        columns = {n: checks.counts(getattr(self, n), n_rows, n) for n in ("page", "query", "document", "rank")}
        for name in ("impressions", "clicks"):
            table = np.asarray(getattr(self, name))
            if table.shape != (n_rows, 2):
                raise ValueError(f"{name}: expected shape ({n_rows}, 2), the two halves, got {table.shape}")
            columns[name] = checks.counts(table.ravel(), 2 * n_rows, name).reshape(n_rows, 2)
        page, query, rank = columns["page"], columns["query"], columns["rank"]
        first = np.append(True, page[1:] != page[:-1])
        start = np.flatnonzero(first)
        number = np.cumsum(first) - 1
        order = np.lexsort((columns["document"], number))
        twice = np.zeros(n_rows, dtype=bool)
        twice[order[1:]] = ~np.diff(number[order]).astype(bool) & ~np.diff(columns["document"][order]).astype(bool)
        other = np.append([[False, False]], np.diff(columns["impressions"], axis=0) != 0, axis=0)
        for bad, name, why in (
            (page != number, "page", "number pages 0, 1, 2, … and keep the rows of a page together"),
            (~first & (np.diff(rank, prepend=0) <= 0) | (rank < 1), "rank", "the ranks of a page ascend from 1"),
            (query != query[start][number], "query", "a page is of one query"),
            (twice, "document", "the document stands on its page already; keep one of its places"),
            (
                other & ~first[:, None],
                "impressions",
                "places of a page are shown alike; a page that was cut is another",
            ),
            (columns["clicks"] > columns["impressions"], "clicks", checks.ONCE),
        ):
            checks.refuse(bad, name, columns[name], why)
        checks.keep(self, **columns)

    def __repr__(self) -> str:
        sessions = int(self.impressions[np.diff(self.page, prepend=-1) > 0].sum())
        return f"PageCounts({int(self.clicks.sum())} clicks, {sessions} sessions, {self.n_pages} pages)"

    @property
    def n_pages(self) -> int:
        """Number of different pages."""
        return int(self.page[-1]) + 1

    @property
    def clicks_above(self) -> FloatArray:
        """Mean clicks a session above each row on its page, in each half, (n_rows, 2); NaN in a half without sessions.

        z_Pr = Σ_{r' < r} clicks_Pr' / impressions_P.
        """
        before = np.cumsum(self.clicks, axis=0) - self.clicks
        above = before - before[np.diff(self.page, prepend=-1) > 0][self.page]
        shown = self.impressions > 0
        return np.asarray(np.divide(above, self.impressions, out=np.full(above.shape, np.nan), where=shown))


def count_pages(query: ArrayLike, shown: ArrayLike, *, clicked: ArrayLike) -> PageCounts:
    """Pages of single sessions: equal rankings of a query are one page, and its sessions go to the halves in turn.

    The first session of a page counts for the first half, its second for the second half, and so on.

    Parameters
    ----------
    query : (n_sessions,)
        Whole numbers >= 0.
    shown : (n_sessions, places)
        Documents from place 1 on, whole numbers >= 0, and −1 where a page ends.
    clicked : (n_sessions, places)
        1 or 0; 0 where nothing is shown.

    Raises
    ------
    ValueError
        For shapes that disagree, no session, a document twice on a page, a gap in a page, or a click that is not 0 or
        1 or on no document.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> pages = cf.count_pages([0, 0, 0], [[4, 7], [7, 4], [4, 7]], clicked=[[1, 0], [0, 0], [1, 1]])
    >>> pages.document, pages.impressions.tolist(), pages.clicks.tolist()
    (array([4, 7, 7, 4]), [[1, 1], [1, 1], [1, 0], [1, 0]], [[1, 1], [0, 1], [0, 0], [0, 0]])
    """
    ranking, clicks = _table(shown, "shown"), _table(clicked, "clicked")
    if ranking.ndim != 2 or not np.issubdtype(ranking.dtype, np.integer) or ranking.size == 0:
        raise ValueError(
            "shown: expected a row of whole numbers for each session, as pandas.factorize gives for names, "
            f"got shape {ranking.shape} and dtype {ranking.dtype}"
        )
    asked = checks.counts(query, len(ranking), "query")
    if clicks.shape != ranking.shape:
        raise ValueError(f"clicked: expected shape {ranking.shape}, as shown, got {clicks.shape}")
    there = ranking >= 0
    for bad, name, why in (
        (ranking < -1, "shown", "expected the number of a document, or −1 where the page has ended"),
        (there & ~np.logical_and.accumulate(there, axis=1), "shown", "it stands below an empty place; close the gap"),
        (_again(ranking) & there, "shown", "the document stands on this page already; keep one of its places"),
        (~np.isin(clicks, (0, 1)), "clicked", checks.CLICK),
        ((clicks != 0) & ~there, "clicked", "nothing is shown there"),
    ):
        checks.refuse(bad, name, ranking if name == "shown" else clicks, why)
    full = there.any(axis=1)
    if not full.any():
        raise ValueError("shown: no session was shown anything")
    asked, ranking, clicks, there = asked[full], ranking[full], clicks[full].astype(np.int64), there[full]
    pages, page = distinct_rows(np.column_stack([asked, ranking]))
    # How many sessions of the same page came before decides the half.
    order = np.argsort(page, kind="stable")
    sizes = np.bincount(page)
    turn = np.empty(len(page), dtype=np.int64)
    turn[order] = np.arange(len(page)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    half = turn % 2
    impressions = np.stack([np.bincount(page[half == h], minlength=len(pages)) for h in (0, 1)], axis=1)
    places = ranking.shape[1]
    cell = (page[:, None] * places + np.arange(places)) * 2 + half[:, None]
    table = np.bincount(cell.ravel(), clicks.ravel(), minlength=len(pages) * places * 2).reshape(-1, places, 2)
    rows = pages[:, 1:] >= 0
    number = np.nonzero(rows)[0]
    return PageCounts(
        page=number,
        query=pages[number, 0],
        document=pages[:, 1:][rows],
        rank=np.nonzero(rows)[1] + 1,
        impressions=impressions[number],
        clicks=table[rows].astype(np.int64),
    )


def _table(values: ArrayLike, name: str) -> np.ndarray:
    """``values`` as an array; rows of different lengths are told how pages of different lengths are written."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name}: the rows have different lengths; fill shorter pages up, with −1 in shown and 0 in clicked"
        ) from None


def _again(ranking: IntArray) -> BoolArray:
    """Whether a document stood further up in its row already, (n_sessions, places)."""
    order = np.argsort(ranking, axis=1, kind="stable")
    ascending = np.take_along_axis(ranking, order, axis=1)
    again = np.zeros(ranking.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return again


def distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The different rows of a table, in ascending order, and which of them each row is.

    What ``np.unique(rows, axis=0, return_inverse=True)`` gives, several times as fast.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.clicks.pages import distinct_rows
    >>> distinct_rows(np.array([[1, 0], [0, 2], [1, 0]]))
    (array([[0, 2],
           [1, 0]]), array([1, 0, 1]))
    """
    order = np.lexsort(rows.T[::-1])
    new = np.append(True, (rows[order][1:] != rows[order][:-1]).any(axis=1))
    which = np.empty(len(rows), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return rows[order][new], which


def simulate_pages(
    policy: LoggingPolicy,
    user: User | CascadeUser,
    *,
    relevance: ArrayLike,
    sessions: ArrayLike,
    rng: np.random.Generator,
) -> PageCounts:
    """Draw sessions one by one, display and clicks, and count them by page.

    A :class:`~cfltr_core.clicks.other_users.CascadeUser` reads each page from the top; of any other user the clicks on
    a page are independent, with P(click | r, d).  Time and memory grow with sessions × places.

    Parameters
    ----------
    policy : LoggingPolicy
    user : CascadeUser, PositionBasedUser or TrustUser
    relevance : (n_docs,) in [0, 1]
    sessions : (n_queries,)
        Sessions per query.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        For a relevance outside [0, 1], numbers of sessions that are not whole or do not match the lists, or none.
    TypeError
        For an ``rng`` that is no numpy.random.Generator.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.other_users import CascadeUser
    >>> policy, rng = cf.DeterministicPolicy([1, 2, 3], [0, 3]), np.random.default_rng(0)
    >>> user = CascadeUser(epsilon_plus=0.8, epsilon_minus=0.2)
    >>> pages = cf.simulate_pages(policy, user, relevance=[1, 0, 1], sessions=[8_000], rng=rng)
    >>> rates = pages.clicks / pages.impressions
    >>> rates.mean(axis=1).round(2), user.page_click_probability([1, 0, 1]).round(2)
    (array([0.8 , 0.04, 0.13]), array([0.8 , 0.04, 0.13]))
    """
    checks.arguments(simulate_pages, locals())
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance", low=0, high=1, why=checks.BINARY)
    per_query = checks.counts(sessions, len(policy.offsets) - 1, "sessions")
    query = np.repeat(np.arange(len(per_query)), per_query)
    if len(query) == 0:
        raise ValueError("sessions: there is no session, so nothing can be counted")
    shown, clicked = [], []
    for low in range(0, len(query), BLOCK):
        pages = policy.sample(query[low : low + BLOCK], rng)
        there = pages >= 0
        attraction = np.where(there, rel[pages], 0.0)
        if isinstance(user, CascadeUser):
            clicks = user.draw_page_clicks(attraction, rng)
        else:
            rank = np.broadcast_to(np.arange(1, pages.shape[1] + 1), pages.shape)
            clicks = rng.random(pages.shape) < user.click_probability(rank, attraction)
        shown.append(pages)
        # Whoever reads on below the last document finds nothing to click.
        clicked.append(clicks & there)
    return count_pages(query, np.concatenate(shown), clicked=np.concatenate(clicked))
