"""The pairs of LambdaLoss: lists laid out by rank, tied documents, and what all pairs add up to.

``lambda_loss`` has the formulas.  A document of rank i meets all below it at once, in every list: the loop runs over i,
and each step has one number for each document below.  So that these stand together, the documents of some lists are
laid out by rank, longer lists first.

**Ties.**  All orders of documents with equal scores count alike.  A pair of two groups A, B has the mean ω̄ of ω over
A × B, or over the pairs of two documents if A = B.  ℓ and its slopes are the same for all pairs of A × B.  So in the
linear form any order of A gives the value if each of its gains is replaced by their mean Ḡ.  The gradient of d is a
part G_d R that d has as the document whose gain counts, and a part that it has as the other one; both are averaged over
A.  The second part still has Ḡ for each other document of A, where they have (|A| Ḡ − G_d) / (|A| − 1) on average: for
ℓ′(0) = −σ / (2 ln 2) this adds (Ḡ − G_d) ω̄ σ / (2 ln 2).  The Hessian's diagonal is alike, with ℓ″(0) = σ² / (4 ln 2).
The difference form is not linear, and where gains of a group differ its list goes pair by pair with ω̄.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.bounds import neighbours
from cfltr_core.ranking.ragged import document_index, length_groups

Truncation = Literal["at_least_one", "both", "beyond"]
Form = Literal["linear", "difference"]
# Documents whose lists are held at once: so few stay in the processor's cache.
BLOCK = 1 << 13
LOG_2 = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class LambdaLoss:
    """The ``value`` of a loss, its ``gradient`` in the scores, and the diagonal of its ``hessian`` or None.

    :func:`cfltr_core.learning.lambda_loss.lambda_loss` makes it.  The last two have the shape (n_docs,);
    the gradient sums to 0 in each list.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray | None = None


class LambdaLists:
    """Lists with their gains, for the loss at many scores: what does not depend on scores is laid out once.

    The arguments are those of :func:`cfltr_core.learning.lambda_loss.lambda_loss`; ``offsets`` are checked already.
    """

    def __init__(
        self,
        offsets: IntArray,
        gains: ArrayLike,
        *,
        cutoff: int | None = None,
        truncation: Truncation = "at_least_one",
        form: Form = "linear",
        sigma: float = 1.0,
    ) -> None:
        checks.arguments(LambdaLists.__init__, locals())
        why = "a negative gain would turn the bound round"
        self.gains = checks.finite_vector(gains, int(offsets[-1]), "gains", low=0, why=why)
        self.linear, self.sigma, k = form == "linear", sigma, cutoff
        chosen = np.flatnonzero(np.maximum.reduceat(self.gains, offsets[:-1]) > 0)
        self.rows = document_index(chosen, offsets)
        self.offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])])
        self.by_length = [index for _, index in length_groups(self.offsets)] if len(chosen) else []
        longest = int(np.diff(self.offsets).max(initial=1))
        # By the difference of two ranks, and by the worse of them, from 0.
        discount = 1.0 / np.log2(np.arange(1.0, longest + 2)[1:] + 1.0)
        self.delta = np.concatenate([[0.0], 1.0 / np.log2(np.arange(2.0, longest + 2)) - discount])
        self.worse = np.ones(longest)
        self.top = self.last = longest
        if k is not None and truncation == "beyond":
            self.worse[k:] = 1.0 / (1.0 - 1.0 / np.log2(np.arange(k + 2.0, longest + 2)))
        elif k is not None:
            self.top = min(k, longest)
            self.last = self.top if truncation == "both" else longest
        self.parts = [*_parts(self.offsets)]

    def loss(self, scores: FloatArray, *, hessian: bool = False) -> LambdaLoss:
        """The loss at the ``scores`` of all documents; of those only how far they are apart is checked."""
        if not far_apart(scores, self.sigma) < np.inf:
            raise ValueError("scores: are so far apart that their difference, times sigma, is not finite; rescale them")
        s, order = scores[self.rows], np.arange(len(self.rows))
        for index in self.by_length:
            order[index] = np.take_along_axis(index, np.argsort(-s[index], axis=1), axis=1)
        ties = _Ties(s[order], self.gains[self.rows[order]], self.offsets)
        sums = _Sums(len(order), hessian, alone=self.linear and len(ties.mixed) > 0)
        for part in self.parts:
            self._sweep(part, ties.scores, ties.mean if self.linear else ties.apart, sums)
        exact = sums.like(len(order))
        if not self.linear:
            for own in ties.lists_of_mixed():
                self._all_orders(own, ties, exact)
        out = np.zeros((2, len(scores)))
        for row in range(len(sums.total)):
            found = ties.average(sums.total[row]) + exact.total[row]
            if len(sums.same):  # A document whose gain is not the mean of those it is tied with: it pushes not itself.
                by_itself = ties.average(sums.alone[row]) - (0.5, 0.25)[row] * ties.per_pair(sums.same)
                found += (ties.gains - ties.mean) * by_itself
            out[row, self.rows[order]] = found
        scale = self.sigma / LOG_2
        bends = scale * self.sigma * out[1] if hessian else None
        return LambdaLoss((sums.value + exact.value) / LOG_2, scale * out[0], bends)

    def _sweep(self, part: _Part, scores: FloatArray, gains: FloatArray, sums: _Sums) -> None:
        """Add all pairs of the lists of a part, rank by rank of the upper document."""
        s, g = scores[part.place], gains[part.place]
        local = sums.like(len(s))
        end = int(part.begin[min(self.last, len(part.begin) - 1)])
        for i in range(min(self.top, len(part.begin) - 2)):
            below = slice(int(part.begin[i + 1]), end)
            above = slice(int(part.begin[i]), int(part.begin[i] + part.begin[i + 2] - part.begin[i + 1]))
            if below.start >= end:
                break
            rank, lists, n = part.rank[below], part.list[below], above.stop - above.start
            w = self.delta[rank - i] * self.worse[rank]
            gap = s[above][lists] - s[below]
            x = self.sigma * gap
            high, low = g[above][lists], g[below]
            if not self.linear:
                high, low = np.maximum(high - low, 0), np.maximum(low - high, 0)
            both = high + low
            small = np.exp(-x)
            p = small / (1.0 + small)
            # ℓ(x) for the upper document and ℓ(−x) = ℓ(x) + x for the lower one, in natural logarithms.
            sums.value += float((w * (np.log1p(small) * both + x * low)).sum())
            # Their slopes are −p and 1 − p, on the upper one and with the other sign on the lower one.
            slope = w * (low - p * both)
            local.total[0, above] += np.bincount(lists, slope, n)
            local.total[0, below] -= slope
            wp = w * p
            bend = wp * (1.0 - p) if len(local.total) == 2 else wp
            if len(local.total) == 2:
                local.total[1, above] += np.bincount(lists, bend * both, n)
                local.total[1, below] += bend * both
            if len(local.same):
                same = np.where(gap == 0, w, 0.0)
                local.same[above] += np.bincount(lists, same, n)
                local.same[below] += same
                for row, (up, down) in zip(local.alone, ((-wp, wp - w), (bend, bend)), strict=False):
                    row[above] += np.bincount(lists, up, n)
                    row[below] += down
        sums.place(local, part.place)

    def _all_orders(self, own: slice, ties: _Ties, sums: _Sums) -> None:
        """Add all pairs of a list for the difference form, each with the mean of its weight over all tied orders."""
        s, g = self.sigma * ties.scores[own], ties.gains[own]
        rank = np.arange(len(s))
        starts = np.flatnonzero(ties.first[own])
        size = np.diff(starts, append=len(s))
        group = np.repeat(np.arange(len(starts)), size)
        bounds = [*starts[np.flatnonzero(np.diff(starts // max(1, BLOCK // len(s)), prepend=-1))].tolist(), len(s)]
        for begin, end in pairwise(bounds):
            rows = slice(begin, end)
            w = self.delta[np.abs(rank[rows, None] - rank)] * self.worse[np.maximum(rank[rows, None], rank)]
            w *= (np.minimum(rank[rows, None], rank) < self.top) & (np.maximum(rank[rows, None], rank) < self.last)
            here = np.arange(group[begin], group[end - 1] + 1)
            total = np.add.reduceat(np.add.reduceat(w, starts[here] - begin, axis=0), starts, axis=1)
            total /= np.maximum(size[here, None] * size - np.where(here[:, None] == group[starts], size, 0), 1)
            w = total[group[rows] - group[begin]][:, group]
            w *= np.maximum(g[rows, None] - g, 0.0)
            x = s[rows, None] - s
            small = np.exp(-np.abs(x))
            p = np.where(x < 0, 1.0, small) / (1.0 + small)
            sums.value += float((w * (np.log1p(small) + np.maximum(-x, 0.0))).sum())
            w *= p
            for row, sign in zip(sums.total, (-1.0, 1.0), strict=False):
                row[own][rows] += sign * w.sum(axis=1)
                row[own] += w.sum(axis=0)
                w = w * (1.0 - p)


def far_apart(scores: FloatArray, sigma: float) -> float:
    """How far two scores can be apart, times σ: twice the largest |s|; ∞ or NaN where that is no finite number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(2 * sigma * np.abs(scores).max())


class _Part:
    """Some lists with their documents by rank: those of rank r + 1 stand from ``begin[r]`` on, longer lists first."""

    def __init__(self, starts: IntArray, size: IntArray) -> None:
        longest = int(size[0])
        lists_with = np.searchsorted(-size, -np.arange(1, longest + 2), side="right")
        self.begin = np.concatenate([[0], np.cumsum(lists_with)])
        self.rank = np.repeat(np.arange(longest), lists_with[:-1])
        self.list = np.arange(len(self.rank)) - self.begin[self.rank]
        self.place = starts[self.list] + self.rank


def _parts(offsets: IntArray) -> Iterator[_Part]:
    """Lists in parts of at most ``BLOCK`` documents, or of one list, longest first."""
    size = np.diff(offsets)
    longest_first = np.argsort(-size, kind="stable")
    for part in neighbours(size[longest_first], BLOCK):
        chosen = longest_first[part]
        yield _Part(offsets[chosen], size[chosen])


class _Ties:
    """Documents by rank, list after list, with those of equal scores as groups; ``mean`` is the group's mean gain."""

    def __init__(self, scores: FloatArray, gains: FloatArray, offsets: IntArray) -> None:
        self.scores, self.gains, self.offsets = scores, gains, offsets
        self.first = np.ones(len(scores), dtype=bool)
        self.first[1:] = scores[1:] != scores[:-1]
        self.first[offsets[:-1]] = True
        self.mean = gains
        self.mixed: IntArray = np.empty(0, dtype=np.int64)
        if self.first.all():
            return
        self.starts = np.flatnonzero(self.first)
        self.size = np.diff(self.starts, append=len(scores))
        varied = np.maximum.reduceat(gains, self.starts) > np.minimum.reduceat(gains, self.starts)
        self.mixed = self.starts[varied]
        self.mean = np.where(np.repeat(varied, self.size), self.average(gains), gains)

    @property
    def apart(self) -> FloatArray:
        """The gains, all 0 in lists where documents of a group differ in gain."""
        gains = self.gains.copy()
        for own in self.lists_of_mixed():
            gains[own] = 0.0
        return gains

    def lists_of_mixed(self) -> list[slice]:
        """The lists where documents of a group differ in gain."""
        lists = np.unique(np.searchsorted(self.offsets, self.mixed, side="right")) - 1
        return [slice(int(self.offsets[q]), int(self.offsets[q + 1])) for q in lists]

    def average(self, values: FloatArray) -> FloatArray:
        """The mean of each group, for each of its documents."""
        if self.first.all():
            return values
        means: FloatArray = np.add.reduceat(values, self.starts) / self.size
        return np.repeat(means, self.size)

    def per_pair(self, same: FloatArray) -> FloatArray:
        """The mean weight of a pair within the group, from the sums of each document."""
        others = np.maximum(np.repeat(self.size, self.size) - 1, 1)
        return np.asarray(self.average(same) / others)


class _Sums:
    """What pairs add up to: the value, gradient and, if wanted, Hessian of each document.

    ``alone`` has what a gain of 1 of the document itself would have of both, ``same`` the weights of the pairs with
    equal scores; both are empty unless documents of equal scores differ in gain.
    """

    def __init__(self, n: int, hessian: bool, alone: bool) -> None:
        self.value = 0.0
        self.total = np.zeros((1 + hessian, n))
        self.alone = np.zeros((1 + hessian, n if alone else 0))
        self.same = np.zeros(n if alone else 0)

    def like(self, n: int) -> _Sums:
        """Such sums for ``n`` documents."""
        return _Sums(n, len(self.total) == 2, len(self.same) > 0)

    def place(self, part: _Sums, place: IntArray) -> None:
        """Put the sums of some documents where they belong."""
        self.total[:, place] += part.total
        if len(self.same):
            self.alone[:, place] += part.alone
            self.same[place] += part.same
