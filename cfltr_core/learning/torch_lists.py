"""Surrogate sums of clicked documents, and their gradient, on a torch device: ragged lists, nothing padded.

The formulas are those of ``bounds``; here they serve a network, batch by batch.  The pairs (clicked document, other
document of its list) of a batch stand one after the other in flat tensors, and are added up by term and by document.
What is held at once is ``PAIRS`` pairs, or one list: memory grows with the documents, not with their squares.  Where
lists of one length have many pairs, a CPU has them in the rectangles of ``bounds``, which need no index.
The gradient is written out, so that automatic differentiation begins at the scores and never sees a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.bounds import ClickedLists, Surrogate, hinge, logistic, neighbours
from cfltr_core.ranking.ragged import document_index, query_of

if TYPE_CHECKING:
    import torch

# Pairs that are held at once.
PAIRS = 1 << 20
# Pairs for each length of list from which rectangles are faster: a pair costs 3 ns there and 30 to 40 ns in flat
# tensors, but each length takes some 50 µs.
MANY_PAIRS = 2_000
# What one unit of the sums of some terms of a batch costs.
Price = Callable[[slice | IntArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ListBatch:
    """Whole lists with their clicked documents.

    ``rows`` are the documents of the batch, list after list, and ``terms`` the places of its clicked documents among
    all of them.  For each of ``terms``, ``own`` is its place in ``rows``, ``start`` where its list begins there, and
    ``width`` how many documents the list has.  :meth:`TorchLists.batches` makes it.
    """

    rows: IntArray
    terms: IntArray
    own: IntArray
    start: IntArray
    width: IntArray


class TorchLists:
    """The lists in which something was clicked.

    Parameters
    ----------
    offsets : (n_queries + 1,) checked
    documents : (n_terms,) checked, increasing: the clicked documents
    """

    def __init__(self, offsets: IntArray, documents: IntArray) -> None:
        self.offsets = offsets
        self.documents = documents
        counts = np.bincount(query_of(documents, offsets), minlength=len(offsets) - 1)
        self.queries = np.flatnonzero(counts)
        self._first = np.concatenate([[0], np.cumsum(counts)])

    def batches(self, queries: IntArray, batch_documents: int) -> Iterator[ListBatch]:
        """Yield ``queries``, which all have a click, in their order, as batches of about ``batch_documents`` documents.

        The b-th batch has the lists that begin at document b · ``batch_documents`` to (b + 1) · ``batch_documents`` − 1
        of all; where a list is so long that none begins there, there is no such batch.
        """
        size = np.diff(self.offsets)[queries]
        begin = np.cumsum(size) - size
        cuts = np.append(np.flatnonzero(np.diff(begin // batch_documents, prepend=-1)), len(queries))
        for low, high in pairwise(cuts.tolist()):
            chosen = queries[low:high]
            n_terms = self._first[chosen + 1] - self._first[chosen]
            terms = document_index(chosen, self._first)
            start = np.repeat(begin[low:high] - begin[low], n_terms)
            own = start + self.documents[terms] - np.repeat(self.offsets[chosen], n_terms)
            width = np.repeat(size[low:high], n_terms)
            yield ListBatch(document_index(chosen, self.offsets), terms, own, start, width)


def list_sums(
    scores: torch.Tensor, batch: ListBatch, price: Price, *, surrogate: Surrogate = "hinge", sigma: float = 1.0
) -> tuple[FloatArray, torch.Tensor]:
    """S_t of every term of ``batch``, and the gradient of Σ_t cost(S_t) in ``scores``, (n_rows,) in double precision.

    ``price(terms, sums)`` is what one unit of S_t costs, cost′(S_t), for some of the terms; ``surrogate`` and
    ``sigma`` are those of :func:`cfltr_core.learning.bounds.bound_loss`, kinks included.
    """
    import torch

    s = scores.detach().double()
    if s.device.type == "cpu" and batch.width.sum() >= MANY_PAIRS * len(np.unique(batch.width)):
        lists = ClickedLists(np.append(np.unique(batch.start), len(s)), batch.own)
        sums, force = lists.sums(s.numpy(), hinge if surrogate == "hinge" else logistic(sigma), price)
        return sums, torch.from_numpy(-force)
    total, gradient = np.empty(len(batch.terms)), torch.zeros_like(s)

    def on_device(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(s.device)

    for part in neighbours(batch.width, PAIRS):
        width, n_terms = batch.width[part], part.stop - part.start
        first = np.cumsum(width) - width
        n_pairs = int(width.sum())
        term = torch.repeat_interleave(torch.arange(n_terms, device=s.device), on_device(width), output_size=n_pairs)
        other = torch.arange(n_pairs, device=s.device)
        other += on_device(batch.start[part] - first).index_select(0, term)
        own = on_device(batch.own[part])
        # z = 1 − (s_d − s_y), rounded as in ``bounds``; the own document must not count.
        z = s.index_select(0, other)
        z += (1 - s.index_select(0, own)).index_select(0, term)
        z[on_device(first + batch.own[part] - batch.start[part])] = -math.inf
        value, slope = _step(z, surrogate, sigma)
        by_term = torch.zeros(n_terms, dtype=s.dtype, device=s.device)
        total[part] = by_term.scatter_add(0, term, value).cpu().numpy()
        cost = on_device(price(part, total[part]))
        slope *= cost.index_select(0, term)
        gradient.scatter_add_(0, other, slope)
        gradient.scatter_add_(0, own, -by_term.scatter_add(0, term, slope))
    return total, gradient


def _step(z: torch.Tensor, surrogate: Surrogate, sigma: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The surrogate and its slope in z; z may be −∞, where both are 0."""
    if surrogate == "hinge":
        return z.clamp(min=0), (z > 0).to(z.dtype)
    import torch

    x = sigma * (z - 1)
    value = (x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))) / math.log(2)
    return value, torch.sigmoid(x) * (sigma / math.log(2))
