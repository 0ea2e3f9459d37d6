"""Hinge sums of many clicked documents in the same lists, by sorting each list once instead of visiting every pair.

With τ_t = s_t − 1 the hinge of a pair is max(s_y − τ_t, 0): only the k_t documents with s_y > τ_t count.  In a sorted
list they stand at the end, so that

    S_t = Σ_{s_y > τ_t} (s_y − s_max) − k_t (τ_t − s_max) − (the own document's 1),

a sum from the end and a place found by bisection.  Turned round, the pull on y is the sum of the prices of all t whose
place lies at or before that of y.  A list of m documents of which n are clicked costs O(m log m + n log m) instead of
O(n m).

Scores are measured from the largest of their list: its own hinge, s_max − τ_t, is part of S_t, so that no sum is much
larger than the result, and S_t has nearly the precision of a sum over pairs however far apart scores are.  Which
documents count is decided by the same comparison of the same numbers, so that slopes are equal at ties and kinks too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.ranking.ragged import query_of

# Documents that are sorted at once; with as many terms they fit in the processor's cache.
CHUNK = 1 << 14


class SortedLists:
    """The lists of the clicked ``documents``, for :meth:`sums` of the hinge.

    Parameters
    ----------
    offsets : (n_queries + 1,) checked
    documents : (n_terms,) checked, in any order, repeated if need be
    """

    def __init__(self, offsets: IntArray, documents: IntArray) -> None:
        query = query_of(documents, offsets)
        self.documents = documents
        self._chunks = []
        order = np.argsort(query, kind="stable")
        clicked, first = np.unique(query[order], return_index=True)
        first = np.append(first, len(order))
        width = np.diff(offsets)[clicked]
        for m in np.unique(width):
            same = np.flatnonzero(width == m)
            step = max(1, CHUNK // int(m))
            for i in range(0, len(same), step):
                lists = same[i : i + step]
                n_terms = first[lists + 1] - first[lists]
                row = np.repeat(np.arange(len(lists)), n_terms)
                # The terms of a list are neighbours in ``order``.
                at = np.arange(len(row)) + np.repeat(first[lists] - (np.cumsum(n_terms) - n_terms), n_terms)
                self._chunks.append((order[at], row, offsets[clicked[lists]], int(m)))

    def sums(
        self, scores: FloatArray, price: Callable[[IntArray, FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """S_t of every term, and the force Σ_t price_t Σ_y [s_y > τ_t] (e_t − e_y) on every document, (n_docs,).

        As :meth:`cfltr_core.learning.bounds.ClickedLists.sums` of the hinge.
        """
        total = np.empty(len(self.documents))
        force = np.zeros(len(scores))
        for terms, row, start, m in self._chunks:
            n = len(start)
            flat = (start[:, None] + np.arange(m)).ravel()
            order = np.argsort(scores[flat].reshape(n, m), axis=1)
            order += m * np.arange(n)[:, None]
            high = scores[flat[order]]
            # Terms in the order of their scores: neighbouring bisections then take nearly the same way.
            rank = np.empty(n * m, dtype=np.int64)
            rank[order.ravel()] = np.arange(n * m)
            by_score = np.argsort(rank[self.documents[terms] - start[row] + m * row])
            terms, row = terms[by_score], row[by_score]
            mine = scores[self.documents[terms]]
            # Complex numbers are compared by their real parts first: one bisection serves all lists.
            key = np.empty(n * m, dtype=complex)
            key.real, key.imag = np.repeat(np.arange(n), m), high.ravel()
            tau = np.empty(len(terms), dtype=complex)
            tau.real, tau.imag = row, mine - 1
            place = np.searchsorted(key, tau, side="right")
            k = (row + 1) * m - place
            largest = high[:, -1:].copy()
            high -= largest
            above = np.zeros((n, m + 1))
            np.cumsum(high[:, ::-1], axis=1, out=above[:, -2::-1])
            sums = above.ravel()[place + row]
            sums -= k * (tau.imag - largest[row, 0])
            sums -= mine - tau.imag
            total[terms] = np.maximum(sums, 0, out=sums)
            cost = price(terms, sums)
            pull = np.bincount(place + row, cost, minlength=n * (m + 1)).reshape(n, m + 1)
            force[flat[order]] -= np.cumsum(pull[:, :-1], axis=1)
            np.add.at(force, self.documents[terms], cost * k)
        return total, force
