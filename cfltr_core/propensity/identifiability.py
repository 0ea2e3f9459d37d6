"""Which ranks can be compared at all: what the design can reveal, and whether the log has an answer.

Two ranks are compared by the documents that were shown at both.  Draw an edge between them: in a connected part of this
graph every ratio θ_k/θ_j can be estimated, between two parts none can, for the clicks of one part may be multiplied by
any factor, and the attraction of its documents divided by it, without changing any click probability.

That is what the *design* can reveal.  A *log* may hold no click where it would be needed.  Draw an arc k → j if a
stratum that was shown at both k and j was clicked at k.  The likelihoods of
:mod:`cfltr_core.propensity.conditional_poisson` and of AllPairs have one finite maximum exactly if this graph is
strongly connected: else there is a set of ranks without a click in the strata that link it to the others, and its θ
may go to 0 for ever.

Source: the condition for a log to have an answer is that of Ford 1957 for paired comparisons, and of Hunter 2004.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.origins import Origin
from cfltr_core.propensity.strata import DisplayCounts

# Fewer clicks than these across a cut are worth a warning.
FEW = 10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankLinks:
    """The ranks of a log and what links them; :func:`rank_links` makes it.

    Parameters
    ----------
    impressions, clicks : (n_ranks,)
        How often any document was shown, and clicked, at each rank.
    shown, clicked : (n_ranks, n_ranks)
        ``shown[k, j]`` is the number of strata that were shown at both ranks, ``clicked[k, j]`` how many clicks these
        had at rank k; counted from 0.
    design : (n_ranks,)
        Number of the group of each rank that the design can compare: connected components.
    log : (n_ranks,)
        The same for what the log can compare: strongly connected components.
    cut : tuple of int
        The ranks, from 1, that hang on the fewest clicks within the group of rank 1, and ``cut_clicks`` that number.
    cut_clicks : int
    origin : Origin, optional
        Of which sessions of a log that was read.

    ``impressions`` is 0 for a rank that was never shown.
    """

    impressions: IntArray
    clicks: IntArray
    shown: IntArray
    clicked: IntArray
    design: IntArray
    log: IntArray
    cut: tuple[int, ...]
    cut_clicks: int
    origin: Origin | None = None

    def __repr__(self) -> str:
        groups = " | ".join(words_for(part) for part in parts_of(self.log))
        return f"RankLinks(ranks that the log can compare: {groups})"

    @property
    def gaps(self) -> tuple[str, ...]:
        """A sentence on ranks that were never shown, and one on ranks that were never clicked."""
        lines, shown = [], self.impressions > 0
        if not shown.all():
            never = words_for(np.flatnonzero(~shown) + 1)
            lines.append(f"Never shown: {never}; check that ranks are numbered 1, 2, … without a gap.")
        silent = np.flatnonzero(shown & (self.clicks == 0)) + 1
        if len(silent):
            lines.append(f"Shown but never clicked: {words_for(silent)}; cut the page above, or collect more sessions.")
        return tuple(lines)

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """What can be compared, what cannot, and what to do, in sentences."""
        lines = []
        parts = [part for part in parts_of(self.log) if self.impressions[part[0] - 1] > 0]
        first, last = parts[0][0], parts[0][-1]
        if len(parts) > 1:
            groups = "; ".join(words_for(part) for part in parts)
            lines.append(f"Only ranks of one group can be compared with each other: {groups}.")
        elif last - first + 1 > len(parts[0]):
            lines.append(f"All shown ranks are linked: {words_for(parts[0])}.")
        elif last > first:
            lines.append(f"All ranks from {first} to {last} are linked.")
        # Neighbouring groups that no document links, and those without a click where it would be needed.
        apart: dict[str, str] = {}
        silent: list[str] = []
        for above, below in pairwise(parts):
            k, j = min(product(above, below), key=lambda pair: (abs(pair[0] - pair[1]), pair))
            words = f"{words_for(above)} with {words_for(below)}"
            if self.design[k - 1] == self.design[j - 1]:
                silent.append(words)
            else:
                apart[words] = f"{min(k, j)} and {max(k, j)}"
        if apart:
            lines.append(
                f"No document links {', '.join(apart)}: to join them, show one per cent of the sessions their page "
                f"with ranks {', or '.join(apart.values())} swapped."
            )
        if silent:
            lines.append(
                f"Documents link {', '.join(silent)}, directly or over other ranks, but clicks are missing on one "
                "side: collect more sessions."
            )
        lines += self.gaps
        if self.cut and self.cut_clicks < FEW:
            lines.append(
                f"Only {self.cut_clicks} clicks tie {words_for(self.cut)} to the other ranks: do not rely on their "
                "intervals, collect more sessions or shrink the curve."
            )
        return tuple(lines)


def words_for(ranks: Iterable[int]) -> str:
    """``rank 7`` or ``ranks 1–3, 5``: numbers from 1 in ascending order, runs joined.

    Raises
    ------
    ValueError
        For no rank.

    Examples
    --------
    >>> from cfltr_core.propensity.identifiability import words_for
    >>> words_for([1, 2, 3, 5]), words_for([7])
    ('ranks 1–3, 5', 'rank 7')
    """
    values = list(ranks)
    if not values:
        raise ValueError("ranks: expected at least one rank, got none")
    runs = np.split(values, np.flatnonzero(np.diff(values) != 1) + 1)
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return f"rank {text}" if len(values) == 1 else f"ranks {text}"


def parts_of(component: IntArray) -> list[list[int]]:
    """Ranks, from 1, of each number in ``component``, (n_ranks,); parts in the order of their first ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.identifiability import parts_of
    >>> parts_of(np.array([0, 1, 0]))
    [[1, 3], [2]]
    """
    label = np.asarray(component)
    return [(np.flatnonzero(label == group) + 1).tolist() for group in dict.fromkeys(label.tolist())]


def components_of(arcs: IntArray | FloatArray, strong: bool) -> IntArray:
    """Connected components of the graph with an arc k → j where ``arcs[k, j] > 0``, numbered by their first node.

    Two nodes are in one ``strong`` component if each can be reached from the other; else arcs count in both directions.

    Raises
    ------
    ValueError
        For a table that is not square.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.identifiability import components_of
    >>> arcs = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])  # 1 ⇄ 2 → 3
    >>> components_of(arcs, strong=True), components_of(arcs, strong=False)
    (array([0, 0, 1]), array([0, 0, 0]))
    """
    from scipy.sparse.csgraph import connected_components

    table = np.asarray(arcs)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"arcs: expected a square table, got shape {table.shape}")
    return numbered(connected_components(table > 0, directed=True, connection="strong" if strong else "weak")[1])


def numbered(label: IntArray) -> IntArray:
    """Groups of equal ``label`` (n,), numbered from 0 in the order of their first members.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.identifiability import numbered
    >>> numbered(np.array([7, 2, 7, 3]))
    array([0, 1, 0, 2])
    """
    _, first, which = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[which], dtype=np.int64)


def link_table(place: IntArray, start: IntArray, values: IntArray, *, n_ranks: int) -> IntArray:
    """Σ of ``values`` at rank k of the strata that were shown at k and j, (n_ranks, n_ranks), with 0 where k = j.

    ``place`` (n_terms,) are the ranks from 0 of terms with ``values``, and ``start`` (n_strata + 1,) cuts them into
    strata: with ones it counts strata, with clicks the clicks at k.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.identifiability import link_table
    >>> link_table(np.array([0, 1, 1]), np.array([0, 2, 3]), np.array([5, 3, 9]), n_ranks=2)  # ranks 1 and 2, rank 2
    array([[0, 5],
           [3, 0]])
    """
    from scipy.sparse import csr_matrix

    here, table = (
        csr_matrix((data, place, start), shape=(len(start) - 1, n_ranks)) for data in (np.ones_like(place), values)
    )
    found = np.asarray((table.T @ here).toarray())
    np.fill_diagonal(found, 0)
    return found


def rank_links(counts: DisplayCounts) -> RankLinks:
    """Which ranks the design can compare, and which the log.

    Design: connected components of the graph with an edge between two ranks at which one stratum was shown.  Log:
    strong components of the arcs k → j where a stratum that was shown at k and j was clicked at k.  The weakest cut is
    sought among single ranks and among the cuts of the tree of strongest links: of a set of ranks, it counts the clicks
    inside, and those outside, in the strata that were shown on both sides, and takes the smaller number.

    Parameters
    ----------
    counts : DisplayCounts

    Returns
    -------
    RankLinks

    Examples
    --------
    >>> from cfltr_core.propensity.identifiability import rank_links
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> pairs = dict(query=[0] * 6, document=[0, 0, 1, 1, 2, 2], rank=[1, 2, 3, 4, 2, 3], impressions=[9] * 6)
    >>> links = rank_links(DisplayCounts(**pairs, clicks=[5, 3, 4, 2, 3, 0]))
    >>> links  # linked, a click at every rank, and yet no answer: θ₃ and θ₄ might be 0
    RankLinks(ranks that the log can compare: ranks 1–2 | ranks 3–4)
    >>> links.design, links.log, links.cut, links.cut_clicks
    (array([0, 0, 0, 0]), array([0, 0, 1, 1]), (1,), 3)
    >>> print(links.diagnosis[0])
    Only ranks of one group can be compared with each other: ranks 1–2; ranks 3–4.
    >>> rank_links(DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 3], impressions=[9, 9], clicks=[5, 3])).gaps
    ('Never shown: rank 2; check that ranks are numbered 1, 2, … without a gap.',)
    """
    checks.arguments(rank_links, locals())
    patterns = _patterns(counts)
    shown, clicked = (
        link_table(patterns.place, patterns.start, values, n_ranks=counts.n_ranks)
        for values in (patterns.strata, patterns.clicks)
    )
    design, log = components_of(shown, strong=False), components_of(clicked, strong=True)
    cut, cut_clicks = _weakest_cut(patterns, clicked, np.flatnonzero(log == log[0]))
    n = counts.n_ranks
    return RankLinks(
        impressions=np.bincount(counts.rank - 1, counts.impressions, minlength=n).astype(np.int64),
        clicks=np.bincount(counts.rank - 1, counts.clicks, minlength=n).astype(np.int64),
        shown=shown,
        clicked=clicked,
        design=design,
        log=log,
        cut=cut,
        cut_clicks=cut_clicks,
        origin=counts.origin,
    )


@dataclass(frozen=True)
class _Patterns:
    """Strata that were shown at the same ranks, put together: their number, and clicks at each of these ranks.

    ``place``, ``clicks`` and ``strata`` have an entry for each pattern and rank (from 0), ``start`` cuts them.
    """

    place: IntArray
    clicks: IntArray
    strata: IntArray
    start: IntArray


def _patterns(counts: DisplayCounts) -> _Patterns:
    place, sizes = counts.rank - 1, np.diff(counts.start)
    # Up to 62 ranks the sum of powers of two names a set of ranks; beyond, powers of a large odd number, modulo 2⁶⁴.
    base = np.uint64(2 if counts.n_ranks <= 62 else 6364136223846793005)
    name = np.cumprod(np.full(counts.n_ranks, base))
    shown_at = np.add.reduceat(name[place], counts.start[:-1])
    # Sixteen bits, of which the last is never used, are sorted by their digits, in a fraction of the time.
    shown_at = shown_at.astype(np.uint16) if counts.n_ranks < 16 else shown_at
    _, first, which = np.unique(shown_at, return_index=True, return_inverse=True)
    length = sizes[first]
    start = np.concatenate([[0], np.cumsum(length)])
    within = np.arange(len(place)) - np.repeat(counts.start[:-1], sizes)
    entry = np.repeat(start[which], sizes) + within
    rows = np.arange(start[-1]) - np.repeat(start[:-1], length) + np.repeat(counts.start[first], length)
    return _Patterns(
        place=place[rows],
        clicks=np.bincount(entry, counts.clicks, minlength=int(start[-1])).astype(np.int64),
        strata=np.repeat(np.bincount(which), length),
        start=start,
    )


def _weakest_cut(patterns: _Patterns, clicked: IntArray, ranks: IntArray) -> tuple[tuple[int, ...], int]:
    """The side of a cut of ``ranks`` (from 0) with the fewest clicks that count, and how many."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    if len(ranks) < 2:
        return (), 0
    sides = [np.array([k]) for k in ranks]
    # A pair is as strong as the weaker of its two directions; the tree of the strongest links has no stronger cut-edge.
    strength = np.minimum(clicked, clicked.T)[np.ix_(ranks, ranks)].astype(np.float64)
    tree = minimum_spanning_tree(np.where(strength > 0, -strength, 0.0)).toarray()
    joined = [np.flatnonzero(row).tolist() for row in tree + tree.T]
    for k, j in np.argwhere(tree).tolist():
        # What hangs on j when the edge to k is cut; in a tree no other way leads there.
        beyond = [j]
        for node in beyond:
            beyond += [other for other in joined[node] if other != k and other not in beyond]
        if 1 < len(beyond) < len(ranks) - 1:
            sides.append(ranks[np.sort(beyond)])
    best: tuple[int, ...] = ()
    fewest = np.iinfo(np.int64).max
    starts, sizes = patterns.start[:-1], np.diff(patterns.start)
    for side in sides:
        # 1 on the side, −1 on the other, 0 for a rank that is on neither.
        where = np.zeros(len(clicked), dtype=np.int8)
        where[ranks], where[side] = -1, 1
        inside, outside = where[patterns.place] > 0, where[patterns.place] < 0
        both = np.logical_or.reduceat(inside, starts) & np.logical_or.reduceat(outside, starts)
        counted = np.where(np.repeat(both, sizes), patterns.clicks, 0)
        number = int(min(counted[inside].sum(), counted[outside].sum()))
        if number < fewest:
            best, fewest = tuple((side + 1).tolist()), number
    return best, int(fewest)


def require_comparable(links: RankLinks, component: IntArray) -> None:
    """Raise a ValueError, with what to do, unless two ranks of one ``component`` (n_ranks,) can be compared.

    ``links`` gives the sentences; an estimator that uses only some of them may have other components.

    Examples
    --------
    >>> from cfltr_core.propensity.identifiability import rank_links, require_comparable
    >>> from cfltr_core.propensity.strata import count_rows
    >>> links = rank_links(count_rows(query=[0, 0], document=[0, 1], rank=[1, 2], clicked=[1, 1]))
    >>> require_comparable(links, links.log)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: counts: no two ranks can be compared, because every document was shown at one rank only. ...
    """
    checks.counts(component, len(links.log), "component")
    if len(np.unique(component)) < len(component):
        return
    if len(np.unique(links.log)) < len(links.log):
        why = "this estimate uses only some of the links, and these lack clicks; all_pairs uses them all"
    else:
        why = "clicks are missing" if links.shown.any() else "every document was shown at one rank only"
    raise ValueError(f"counts: no two ranks can be compared, because {why}. {' '.join(links.diagnosis)}")
