"""Draws from discrete laws at a constant cost per draw: the alias method of Walker 1977."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray


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
        keep = np.asarray(self.keep, dtype=np.float64)
        if keep.ndim != 1 or keep.size == 0:
            raise ValueError(f"keep: expected one probability per category, got shape {keep.shape}")
        checks.within(keep, 0, 1, "keep", "the share of a column that is its own")
        alias = checks.counts(self.alias, len(keep), "alias")
        checks.within(alias, 0, len(keep) - 1, "alias", "no such category")
        object.__setattr__(self, "keep", keep)
        object.__setattr__(self, "alias", alias)

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
        array = np.asarray(weights, dtype=np.float64)
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"weights: expected one number per category, got shape {array.shape}")
        checks.within(array, 0, np.finfo(np.float64).max, "weights", "a weight is a finite number >= 0")
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
