"""Small rectangles of clicked lists side by side, so that what is done to every pair is one call for many lists.

Lists of nearly every length occur, and with few clicks each length makes a rectangle of a few hundred pairs: NumPy's
calls then cost more than its numbers.  A *strip* holds neighbouring rectangles in one vector, up to ``BLOCK`` pairs.

No digit depends on how rectangles are put together: sums are taken in the order in which NumPy sums the rows of a
rectangle.  For that each row of a strip begins with a slot that is no pair and holds a zero: ``reduceat`` adds to the
first number of a row the sum of all others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.learning import bounds
from cfltr_core.learning.bounds import ClickedLists, Scores

# The centre of what is no pair: from there its slope is 0 whatever its score.
MARK = -1e30


class Strip:
    """Neighbouring rectangles of ``lists``, those at the positions ``blocks``.

    What belongs to pairs is a vector, row by row, each begun by a slot; of a single rectangle, which may be large, it
    keeps the two axes and has no slots, so that no index of a pair is stored.  ``terms`` holds the rows' terms.
    """

    def __init__(self, lists: ClickedLists, blocks: range) -> None:
        self.lists, self.blocks = lists, blocks
        parts = [lists.rectangle(i) for i in blocks]
        self.terms = np.concatenate([terms for terms, _, _, _ in parts])
        self.single = len(blocks) == 1
        if self.single:
            return
        counts, columns = np.array([(len(terms), m) for terms, m, _, _ in parts]).T
        self._own = lists.documents[self.terms]
        self._width = np.repeat(columns + 1, counts)
        self._slots = np.cumsum(self._width) - self._width
        ends = np.cumsum(counts)
        cells = np.append(self._slots, self._width.sum())
        self._places = [
            (slice(low, high), slice(cells[low], cells[high]), m + 1)
            for low, high, m in zip(ends - counts, ends, columns, strict=True)
        ]
        start = np.concatenate([start for _, _, start, _ in parts])
        self._document = np.arange(cells[-1]) + np.repeat(start - 1 - self._slots, self._width)
        self._document[self._slots] = self._own
        # Pairs with the same rival, in the order of their rows.
        pairs = np.delete(np.arange(cells[-1]), self._slots)
        self._by_rival = pairs[np.argsort(self._document[pairs], kind="stable")]
        rival = self._document[self._by_rival]
        self._first = np.flatnonzero(np.diff(rival, prepend=-1))
        self._rivals = rival[self._first]

    def rectangles(self, pairs: Scores) -> Iterator[Scores]:
        """Views of ``pairs`` with a row for each term and a column for each document of its list."""
        if self.single:
            yield pairs
            return
        for _, place, width in self._places:
            yield pairs[place].reshape(-1, width)[:, 1:]

    def centres(self) -> Scores:
        """½ for every pair, in single precision; the own document and the slots have a mark, far below any z."""
        out = np.full_like(self.gaps(np.zeros(self.lists.offsets[-1], np.float32)), 0.5)
        if not self.single:
            out[self._slots] = MARK
        for block, rows in zip(self.blocks, self.rectangles(out), strict=True):
            terms, _, start, _ = self.lists.rectangle(block)
            rows[np.arange(len(terms)), self.lists.documents[terms] - start] = MARK
        return out

    def gaps(self, scores: Scores) -> Scores:
        """z = 1 − (s_d − s_y) of all pairs, the own document included."""
        if self.single:
            return self.lists.gaps_of(self.blocks[0], scores)
        z: Scores = scores[self._document]
        z += np.repeat(1 - scores[self._own], self._width)
        z[self._slots] = 0
        return z

    def chosen(self, mask: BoolArray) -> tuple[IntArray, IntArray]:
        """Term and rival of the pairs where ``mask`` is true."""
        if self.single:
            row, column = np.nonzero(mask)
            terms, _, start, _ = self.lists.rectangle(self.blocks[0])
            return terms[row], start[row] + column
        pair = np.flatnonzero(mask)
        return self.terms[np.searchsorted(self._slots, pair, side="right") - 1], self._document[pair]

    def sums(self, pairs: Scores, dtype: type[np.floating] | None = None) -> FloatArray:
        """The sum of each row; slots hold zeros."""
        if self.single:
            return np.asarray(np.add.reduce(pairs, axis=1, dtype=dtype))
        return np.asarray(np.add.reduceat(pairs if dtype is None else pairs.astype(dtype), self._slots))

    def products(self, a: Scores, others: tuple[Scores, ...]) -> FloatArray:
        """Row sums of ``a`` times each of ``others``, (len(others), n_rows)."""
        if self.single:
            return np.array([np.einsum("ij,ij->i", a, other) for other in others], dtype=np.float64)
        out, stack = np.empty((len(others), len(self.terms)), a.dtype), np.stack(others)
        for rows, place, width in self._places:
            right = stack[:, place].reshape(len(others), -1, width)[:, :, 1:]
            np.einsum("ij,kij->ki", a[place].reshape(-1, width)[:, 1:], right, out=out[:, rows])
        return out.astype(np.float64)

    def push(self, force: FloatArray, slope: Scores, cost: FloatArray) -> None:
        """Add Σ_t cost_t Σ_y slope_ty (e_t − e_y) to ``force``; overwrites ``slope``, of which slots hold zeros."""
        if self.single:
            terms, _, start, first = self.lists.rectangle(self.blocks[0])
            self.lists.push(force, terms, start, first, slope, cost)
            return
        np.add.at(force, self._own, cost * self.sums(slope))
        slope *= np.repeat(cost.astype(slope.dtype), self._width)
        force[self._rivals] -= np.add.reduceat(slope[self._by_rival], self._first)


def strips(lists: ClickedLists) -> list[Strip]:
    """All rectangles of ``lists``, in their order, in strips of at most ``BLOCK`` pairs or one rectangle."""
    pairs = np.array([n * m for n, m in lists.shapes], dtype=np.int64)
    return [Strip(lists, range(part.start, part.stop)) for part in bounds.neighbours(pairs, bounds.BLOCK)]
