"""Ragged ranking data: flat arrays cut into query lists by ``offsets``, and operations on the cuts.

Query ``q`` owns the documents ``offsets[q] … offsets[q + 1] - 1`` of every flat array.  Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class RankingData:
    """Queries with their candidate documents.

    Query q owns the documents offsets[q] … offsets[q + 1] − 1 of every flat array; nothing is padded.

    Parameters
    ----------
    features : (n_docs, n_features) float32
        One row per query-document pair; finite.
    relevance : (n_docs,) int8
        Grades, 0 = not relevant.
    offsets : (n_queries + 1,) int64
        ``offsets[0] == 0``, strictly increasing, ``offsets[-1] == n_docs``.
    threshold : int
        A document is *relevant* in the binary sense when its grade is at least this.
    name : str
        Shown in messages.

    Raises
    ------
    ValueError
        For shapes that disagree, non-finite features, grades outside 0…30, or a threshold below 1.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> features, grades = [[3.0], [2.0], [1.0], [5.0], [4.0]], [1, 0, 2, 0, 1]
    >>> data = cf.RankingData(features, grades, offsets=[0, 3, 5])
    >>> data.n_queries, data.n_docs
    (2, 5)
    >>> data.binary
    array([1., 0., 1., 0., 1.])
    >>> data.subset([1]).relevance
    array([0, 1], dtype=int8)
    """

    features: NDArray[np.float32]
    relevance: NDArray[np.int8]
    offsets: IntArray = field(kw_only=True)
    threshold: int = field(default=1, kw_only=True)
    name: str = field(default="data", kw_only=True)

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes inf and is named below
            features = np.ascontiguousarray(self.features, dtype=np.float32)
        checks.fields(self)
        checks.feature_matrix(features)
        offsets, why = checks.offsets_of(self.offsets, len(features)), "expected a grade from 0, not relevant, to 30"
        grades = checks.counts(self.relevance, len(features), "relevance", high=30, why=why)
        checks.keep(self, features=features, relevance=grades.astype(np.int8), offsets=offsets)

    def __repr__(self) -> str:
        return (
            f"RankingData({self.name!r}: {self.n_queries} queries, {self.n_docs} documents, "
            f"{self.features.shape[1]} features, relevant from grade {self.threshold})"
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def n_docs(self) -> int:
        """Number of query-document pairs."""
        return int(self.offsets[-1])

    @property
    def binary(self) -> FloatArray:
        """Binary relevance ``1[relevance >= threshold]``, shape (n_docs,), float64."""
        return (self.relevance >= self.threshold).astype(np.float64)

    def subset(self, queries: ArrayLike) -> RankingData:
        """The data of the given ``queries`` (indices from 0), in the given order.

        Raises
        ------
        ValueError
            For no query, or an index that does not exist.
        """
        chosen = checks.indices(queries, "queries", self.n_queries, "no such query")
        if chosen.size == 0:
            raise ValueError("queries: no query was chosen; a collection has at least one")
        rows = document_index(chosen, self.offsets)
        sizes = lengths(self.offsets)[chosen]
        return RankingData(
            self.features[rows],
            self.relevance[rows],
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            threshold=self.threshold,
            name=self.name,
        )


def lengths(offsets: ArrayLike) -> IntArray:
    """Number of documents of each query, shape (n_queries,)."""
    return np.diff(checks.offsets_of(offsets))


def query_index(offsets: ArrayLike) -> IntArray:
    """Query q of each document d, offsets[q] <= d < offsets[q + 1], shape (n_docs,): 0, 0, …, 1, 1, …

    Raises
    ------
    ValueError
        For ``offsets`` that do not start at 0 or do not increase.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.query_index([0, 3, 5])
    array([0, 0, 0, 1, 1])
    """
    sizes = lengths(offsets)
    return np.repeat(np.arange(len(sizes)), sizes)


def query_of(documents: IntArray, offsets: IntArray) -> IntArray:
    """Query of each of ``documents``, which are flat indices: the list q with offsets[q] <= d < offsets[q + 1]."""
    return np.searchsorted(offsets, documents, side="right") - 1


def document_index(queries: IntArray, offsets: IntArray) -> IntArray:
    """Flat indices of all documents of ``queries``, list after list."""
    sizes = np.diff(offsets)[queries]
    starts = np.cumsum(sizes) - sizes
    rows: IntArray = np.arange(int(sizes.sum())) + np.repeat(offsets[queries] - starts, sizes)
    return rows


def segment_sum(values: ArrayLike, offsets: ArrayLike) -> FloatArray:
    """Sum of ``values`` inside each query: out[q] = Σ_{i=offsets[q]}^{offsets[q+1]-1} values[i].

    ``values`` has shape (n_docs,) or (n_docs, m); the result (n_queries,) or (n_queries, m), float64.

    Raises
    ------
    ValueError
        For ``offsets`` that do not cut the values into non-empty lists.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.segment_sum([1, 0, 1, 0, 1], [0, 3, 5])  # relevant documents of each query
    array([2., 1.])
    """
    array = np.asarray(values, dtype=np.float64)
    cuts = checks.offsets_of(offsets, len(array))
    return np.add.reduceat(array, cuts[:-1], axis=0)


def length_groups(offsets: IntArray, block: int = 1 << 16) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield ``(queries, index)`` for groups of equally long lists, ``index`` of shape (len(queries), length).

    Lists of equal length form a rectangle without any padding, so that a sort along axis 1 serves
    thousands of queries in one call.  A group has at most ``block`` documents (or one list), so that the
    work on it stays in the processor's cache.
    """
    sizes = np.diff(offsets)
    for queries in equal_blocks(sizes, block):
        yield queries, offsets[queries][:, None] + np.arange(sizes[queries[0]])


def equal_blocks(sizes: IntArray, cells: int) -> Iterator[IntArray]:
    """Yield positions of equal ``sizes``, smaller sizes first: in order, at most ``cells`` // size at once, or one."""
    by_size = np.argsort(sizes, kind="stable")
    for same in np.split(by_size, np.flatnonzero(np.diff(sizes[by_size])) + 1) if len(sizes) else []:
        step = max(1, cells // int(sizes[same[0]]))
        for start in range(0, len(same), step):
            yield same[start : start + step]
