"""What encloses the optimum of a ranking machine, and with what a later fit to the same pairs may begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfltr_core.checks import IntArray
from cfltr_core.learning.bounds import ClickedLists, Scores
from cfltr_core.ranking.linear import LinearRanker


@dataclass(frozen=True, eq=False, repr=False)
class Slopes:
    """The last μ and the slopes a/c of all pairs of some clicked lists: where another fit to the same pairs may begin.

    What stands for the own document in a row is no slope but a mark, so that they mean nothing for other pairs.
    """

    offsets: IntArray
    documents: IntArray
    smoothing: float
    centres: tuple[Scores, ...]

    def belong_to(self, lists: ClickedLists) -> bool:
        """Whether ``lists`` has the same clicked documents in the same lists: the same pairs in the same order."""
        return (
            np.array_equal(self.offsets, lists.offsets)
            and np.array_equal(self.documents, lists.documents)
            and [c.shape for c in self.centres] == lists.shapes
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(LinearRanker):
    """A linear scorer, what encloses the optimum, and what the width of that enclosure is measured against.

    ``primal`` and ``dual`` enclose the optimum.  ``at_zero`` is P(0), the objective at w = 0, and ``least`` =
    Σ_t mass_t κ(0) the loss that no weights undercut, 0 for PropRank.  ``passes`` counts the multiplications with the
    feature matrix, ``slopes`` are those of the dual, for a warm start on the same pairs.
    """

    primal: float
    dual: float
    at_zero: float
    least: float
    passes: float
    slopes: Slopes | None = None

    @property
    def gap(self) -> float:
        """The certified gap (P − D) / min(P − least, P(0) − D), between 0 and 1.

        No weights at all have an excess P − least that is lower by more than this share.  And of what weights can gain
        over w = 0, at least 1 − gap is gained, P(0) − P ≥ (1 − gap) (P(0) − P*): by P − D ≤ gap · (P(0) − D),

            P(0) − P = (P(0) − D) − (P − D) ≥ (1 − gap) (P(0) − D) ≥ (1 − gap) (P(0) − P*).

        With a small C nearly all of P is loss that no weights can remove, so that the first statement says nothing
        (w = 0 has a small gap by it), with a large C on separable lists nearly all of P(0) is removed by any sensible
        weights, so that the second does not.  The gap is 0 where P and D agree up to rounding.
        """
        if self.primal <= self.dual:
            return 0.0
        return (self.primal - self.dual) / gap_unit(self.primal, self.dual, self.at_zero, self.least)


def gap_unit(primal: float, dual: float, at_zero: float, least: float) -> float:
    """What P − D is measured against: the smaller of P − least and P(0) − D, see :attr:`Solution.gap`."""
    return min(primal - least, at_zero - dual)
