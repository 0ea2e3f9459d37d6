"""Draws from discrete laws at a constant cost per draw: the alias method of Walker 1977, and decks of cards.

An :class:`AliasTable` draws with replacement, a :class:`Deck` without; :func:`term_draws` deals either out in steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray

# Draws that are made at once.  A run must not depend on when it is looked at, so neither does this.
CHUNK = 4096


@dataclass(frozen=True, eq=False, repr=False)
class AliasTable:
    """Draws from P(i) = (keep_i + Σ_{j: alias_j = i} (1 − keep_j)) / n at a cost that does not depend on n.

    Column j of n equally likely columns gives j with probability ``keep[j]``, else ``alias[j]``.

    Source: Walker 1977; Jagerman & de Rijke 2020, §5.4.

    Parameters
    ----------
    keep : (n,) in [0, 1]
    alias : (n,) indices

    Raises
    ------
    ValueError
        For a ``keep`` that is no probability, or an alias that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.sampling import AliasTable
    >>> table = AliasTable.build([3, 0, 1])
    >>> table.probabilities()
    array([0.75, 0.  , 0.25])
    >>> draws = table.draw(10_000, np.random.default_rng(0))
    >>> (np.bincount(draws) / 10_000).round(2)
    array([0.75, 0.  , 0.25])
    """

    keep: FloatArray
    alias: IntArray

    def __post_init__(self) -> None:
        keep = checks.finite_vector(self.keep, None, "keep", low=0, high=1, why="the share of a column that is its own")
        if keep.size == 0:
            raise ValueError("keep: expected one probability per category, got none")
        alias = checks.counts(self.alias, len(keep), "alias", high=len(keep) - 1, why="no such category")
        checks.keep(self, keep=keep, alias=alias)

    def __repr__(self) -> str:
        return f"AliasTable({len(self.keep)} categories)"

    @classmethod
    def build(cls, weights: ArrayLike) -> AliasTable:
        """A table for P(i) = weights_i / Σ_j weights_j, ``weights`` (n,), in O(n).  :func:`alias_tables` has the steps.

        Raises
        ------
        ValueError
            For weights that are negative, not finite, or all 0.
        """
        array = checks.finite_vector(weights, None, "weights", low=0, why="a weight is a finite number >= 0")
        total = float(array.sum())
        if not (np.isfinite(total) and total > 0):
            raise ValueError(f"weights sum to {total}: expected a finite sum > 0")
        return cls(*alias_tables(array / total, np.array([0, len(array)])))

    def probabilities(self) -> FloatArray:
        """The law that the table implies: P(i) = (keep_i + Σ_{j: alias_j = i} (1 − keep_j)) / n, (n,)."""
        given = np.bincount(self.alias, weights=1.0 - self.keep, minlength=len(self.keep))
        return np.asarray((self.keep + given) / len(self.keep))

    def draw(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Independent draws by ``rng``, shape ``size``: a column, then one comparison."""
        column = checks.generator(rng).integers(len(self.keep), size=size)
        np.copyto(column, self.alias.take(column), where=rng.random(size) >= self.keep.take(column))
        return column


@dataclass(frozen=True, eq=False, repr=False)
class Deck:
    """Draws without replacement: a deck with ``counts[i]`` cards of each category i is dealt to its last card.

    Then all cards are shuffled and dealt anew.  Of every n = Σ counts draws that make up an *epoch* exactly counts_i
    are i, in an order that is uniform over all orders; each single draw has P(i) = counts_i / n.

    Source: the epochs of a shuffled data set, as in the released code of Jagerman & de Rijke 2020; their Algorithm 1
    draws with replacement.

    Parameters
    ----------
    counts : (n_categories,) whole numbers >= 0

    Raises
    ------
    ValueError
        For counts that are no whole numbers >= 0, or all 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.sampling import Deck
    >>> deck = Deck([3, 0, 1])
    >>> deck.probabilities()
    array([0.75, 0.  , 0.25])
    >>> epoch = next(deck.epochs(1, np.random.default_rng(0)))
    >>> epoch.shape, np.bincount(epoch[0])
    ((1, 4), array([3, 0, 1]))
    """

    counts: IntArray

    def __post_init__(self) -> None:
        counts = checks.counts(self.counts, np.size(self.counts), "counts")
        if not counts.any():
            raise ValueError("counts: there is no card of any category, so that nothing can be drawn")
        checks.keep(self, counts=counts)

    def __repr__(self) -> str:
        return f"Deck({self.counts.sum()} cards of {len(self.counts)} categories)"

    def probabilities(self) -> FloatArray:
        """The law of each single draw: P(i) = counts_i / Σ_j counts_j, (n_categories,)."""
        return np.asarray(self.counts / self.counts.sum())

    def epochs(self, runs: int, rng: np.random.Generator) -> Iterator[NDArray[np.int32]]:
        """Yield epoch after epoch: the categories of all cards, shuffled by ``rng`` for each of ``runs``, (runs, n).

        A card is an index of four bytes.
        """
        checks.generator(rng)
        cards = np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts)
        while True:
            order = np.tile(cards, (runs, 1))
            for run in order:
                rng.shuffle(run)
            yield order


def term_draws(
    table: AliasTable | Deck, shape: tuple[int, int], rng: np.random.Generator
) -> Iterator[IntArray | NDArray[np.int32]]:
    """Yield the draws of some steps at a time, without end, (steps, runs · batch), for ``shape`` = (runs, batch).

    A deck is dealt on where a batch does not divide it: the first cards of a new epoch fill the last batch of the one
    before, so that every step has as many cards.  A longer course begins as a shorter one did.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.sampling import AliasTable, Deck, term_draws
    >>> next(term_draws(AliasTable.build([3, 0, 1]), (2, 5), np.random.default_rng(0))).shape
    (409, 10)
    >>> dealt = term_draws(Deck([3, 0, 1]), (1, 3), np.random.default_rng(0))
    >>> steps = np.concatenate([next(dealt) for _ in range(3)])
    >>> np.bincount(steps.ravel()[:4]), np.bincount(steps.ravel()[4:8])  # two epochs
    (array([3, 0, 1]), array([3, 0, 1]))
    """
    runs, batch = shape
    each = runs * batch
    steps = max(1, CHUNK // each)
    if not isinstance(table, Deck):
        while True:
            yield table.draw((steps, each), rng)
    left = np.empty((runs, 0), dtype=np.int32)
    for epoch in table.epochs(runs, rng):
        cards = np.concatenate([left, epoch], axis=1)
        whole = cards.shape[1] // batch * batch
        left = cards[:, whole:].copy()
        for begin in range(0, whole, steps * batch):
            part = cards[:, begin : min(begin + steps * batch, whole)]
            yield part.reshape(runs, -1, batch).swapaxes(0, 1).reshape(-1, each)


def alias_tables(weight: FloatArray, offsets: IntArray) -> tuple[FloatArray, IntArray]:
    """Threshold and other document of each column of the alias method (Walker 1977), for each list.

    Light columns (n · w < 1) are filled up, in order, by the heavy ones.  Light column i goes to the first heavy one
    whose surplus, with those before it, exceeds the deficit before i; a heavy column that has given too much is itself
    filled by the next.  Cumulative sums find both without a loop over documents.  Both searches compare the same two
    sums, so that they agree where a surplus ends exactly with a deficit, and where rounding decides.
    """
    threshold, other = np.ones(len(weight)), np.arange(len(weight))
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        load = weight[start:end] * (end - start)
        light, heavy = np.flatnonzero(load < 1.0), np.flatnonzero(load >= 1.0)
        if not len(light) or not len(heavy):  # all equal, up to rounding
            continue
        deficit, surplus = np.cumsum(1.0 - load[light]), np.cumsum(load[heavy] - 1.0)
        giver = np.searchsorted(surplus, np.append(0.0, deficit[:-1]), side="right")
        threshold[start + light] = load[light]
        other[start + light] = start + heavy[np.minimum(giver, len(heavy) - 1)]
        # The light column during which a heavy one gives its last; the final heavy one keeps what is left.
        until = np.searchsorted(deficit, surplus[:-1], side="left")
        until = np.minimum(until, len(deficit) - 1)
        # The first heavy columns may have nothing to give: they keep all of themselves.
        kept = np.where(surplus[:-1] > 0, 1.0 + surplus[:-1] - deficit[until], 1.0)
        threshold[start + heavy[:-1]] = np.clip(kept, 0.0, 1.0)
        other[start + heavy[:-1]] = start + heavy[1:]
    return threshold, other
