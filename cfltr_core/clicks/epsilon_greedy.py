"""A logging policy whose places explore: the best remaining document, or with probability ε_r any that remains.

It fills the page from the top, each place given what stands above it.  Its exposure is computed without sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.policies import (
    DeterministicPolicy,
    Impressions,
    LoggingPolicy,
    count_displays,
    every_page,
    nonzero_counts,
    place_values,
    shown_places,
)
from cfltr_core.ranking.ragged import length_groups


@dataclass(frozen=True, eq=False, repr=False)
class EpsilonGreedyPolicy(LoggingPolicy):
    """Fills place r with a uniformly drawn remaining document with probability ε_r, else with the best remaining one.

    ``epsilon`` has one entry per place, and so says how long the page is.  Equal entries are ε-greedy; (0, …, 0, 1) is
    a "random (remaining) item placed on position k"; all 1 is a uniformly random page; all 0 the deterministic page.

    Source: Oosterhuis & de Rijke 2020, "Experiments".

    Parameters
    ----------
    greedy_rank : (n_docs,)
        Place of each document in the greedy ranking: 1 … n in each query, all of them.
    offsets : (n_queries + 1,)
    epsilon : (cutoff,) probabilities

    Raises
    ------
    ValueError
        For ranks that are no permutation, or an ε that is no probability.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy = cf.EpsilonGreedyPolicy([1, 2, 3], [0, 3], epsilon=[0, 1])  # A, and B or C below it
    >>> policy.exposure(cf.PositionBasedUser([1, 1/2, 1/3]))
    array([1.  , 0.25, 0.25])
    >>> list(policy.displays(0))
    [(0.5, (0, 1)), (0.5, (0, 2))]
    >>> rng = np.random.default_rng(0)
    >>> policy.sample([0, 0, 0], rng).shape  # three pages of two places
    (3, 2)
    >>> cf.EpsilonGreedyPolicy.rank_by([0.1, 0.9, 0.5], [0, 3], rng=rng, epsilon=[0, 1]).greedy_rank
    array([3, 1, 2])
    """

    greedy_rank: IntArray
    offsets: IntArray
    epsilon: FloatArray = field(kw_only=True)
    cutoff: int = field(init=False)
    _order: IntArray = field(init=False)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        rank, _ = shown_places(self.greedy_rank, offsets, "greedy_rank")
        checks.refuse(rank == 0, "greedy_rank", rank, "rank every document, it can be explored")
        epsilon = checks.finite_vector(self.epsilon, None, "epsilon", low=0, high=1, why="a probability for each place")
        if epsilon.size == 0:
            raise ValueError("epsilon: expected one probability per place, got none")
        order = np.empty_like(rank)
        order[np.repeat(offsets[:-1], np.diff(offsets)) + rank - 1] = np.arange(len(rank))
        checks.keep(self, greedy_rank=rank, offsets=offsets, epsilon=epsilon, cutoff=len(epsilon), _order=order)

    @classmethod
    def rank_by(
        cls, scores: ArrayLike, offsets: ArrayLike, *, rng: np.random.Generator, epsilon: ArrayLike
    ) -> EpsilonGreedyPolicy:
        """The greedy ranking is by descending ``scores`` (n_docs,) in the lists of ``offsets``, ties broken by ``rng``.

        ``epsilon`` (cutoff,) holds the probability with which each place explores.
        """
        return cls(
            DeterministicPolicy.rank_by(scores, offsets, rng=rng).displayed_rank,
            np.asarray(offsets),
            epsilon=np.asarray(epsilon, dtype=np.float64),
        )

    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """Mean of ``value`` in closed form; it depends on the length of the list and on the greedy place alone."""
        values = place_values(value, np.arange(1.0, self.cutoff + 1))
        out = np.empty(len(self.greedy_rank))
        tables: dict[int, FloatArray] = {}
        for _, index in length_groups(self.offsets):
            n = index.shape[1]
            if n not in tables:
                law = _place_law(n, self.epsilon)
                tables[n] = law @ values[: law.shape[1]]
            out[index] = tables[n][self.greedy_rank[index] - 1]
        return out

    def impressions(self, sessions: ArrayLike, rng: np.random.Generator) -> Impressions:
        """Sessions are split by the first place that explores (Multinomial).  Returns (document, rank, count).

        Up to there the page is the greedy one.  If it is the last place, its document is counted by a second
        Multinomial; only pages that explore above the last place are drawn one by one.
        """
        per_query, k = self._check_sessions(sessions, rng), self.cutoff
        greedy_so_far = np.concatenate([[1.0], np.cumprod(1.0 - self.epsilon)])
        split = rng.multinomial(per_query, np.append(greedy_so_far[:-1] * self.epsilon, greedy_so_far[-1]))
        # Pages that are greedy above the last place.
        late = split[:, k - 1 :].sum(axis=1)
        counts = np.zeros((len(self.greedy_rank), k), dtype=np.int64)
        for queries, index in length_groups(self.offsets):
            ordered, n = self._order[index], index.shape[1]
            counts[ordered[:, : k - 1], np.arange(min(k - 1, n))] = late[queries][:, None]
            if n >= k:
                last = rng.multinomial(split[queries, k - 1], np.full(n - k + 1, 1.0 / (n - k + 1)))
                last[:, 0] += split[queries, k]
                counts[ordered[:, k - 1 :], k - 1] = last
        for place in range(k - 1):

            def explores_first_here(queries: IntArray, place: int = place) -> IntArray:
                coins = rng.random((k, len(queries))) < self.epsilon[:, None]
                coins[:place], coins[place] = False, True
                return self._fill(queries, coins, rng)

            if split[:, place].any():
                counts += count_displays(explores_first_here, split[:, place], self)
        return nonzero_counts(counts)

    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw each place in turn."""
        chosen = self._check_queries(queries, rng)
        return self._fill(chosen, rng.random((self.cutoff, len(chosen))) < self.epsilon[:, None], rng)

    def _fill(self, queries: IntArray, explores: BoolArray, rng: np.random.Generator) -> IntArray:
        """Pages of ``queries`` whose place r + 1 explores where ``explores[r]``, shape (n, cutoff)."""
        start, size = self.offsets[queries], np.diff(self.offsets)[queries]
        # Greedy places of the shown documents; 0 is nobody.
        shown = np.zeros((self.cutoff, len(queries)), dtype=np.int64)
        best = np.ones(len(queries), dtype=np.int64)
        for place in range(self.cutoff):
            while (taken := (shown[:place] == best).any(axis=0)).any():
                best += taken
            here = shown[place]
            here[:] = best
            todo = np.flatnonzero(explores[place] & (size > place))
            while len(todo):
                drawn = (rng.random(len(todo)) * size[todo]).astype(np.int64) + 1
                here[todo] = drawn
                todo = todo[(shown[:place, todo] == drawn).any(axis=0)]
            here[size <= place] = 0
        return np.where(shown > 0, self._order[np.where(shown > 0, start + shown - 1, 0)], -1).T

    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """By recursion over the places."""
        ordered = self._order[slice(*self._documents(query))].tolist()

        def law(remaining: list[int], place: int) -> list[float]:
            share = float(self.epsilon[place]) / len(remaining)
            return [share + (i == 0) * (1.0 - float(self.epsilon[place])) for i in range(len(remaining))]

        yield from every_page(ordered, self.cutoff, law=law)


def _place_law(n: int, epsilon: FloatArray) -> FloatArray:
    """P(greedy place j is shown at place r) of a list of n documents, shape (n, min(cutoff, n)).

    Follow one document j down the page.  What matters is b, how many better ones remain: b = 0 means that the greedy
    choice is j.  With m remaining documents an exploring place takes j with probability 1/m and a better one with b/m.
    Documents below the page are never a greedy choice, and all alike.
    """
    k = min(len(epsilon), n)
    tracked = min(k + 1, n)
    better = np.arange(tracked, dtype=np.float64)
    alive = np.eye(tracked)  # row: document, column: how many better ones remain
    law = np.empty((n, k))
    for place in range(k):
        m, eps = n - place, epsilon[place]
        law[:tracked, place] = alive.sum(axis=1) * eps / m + alive[:, 0] * (1.0 - eps)
        moved = alive * np.where(better > 0, eps * better / m + 1.0 - eps, 0.0)
        stays = alive * (eps * (m - 1 - better) / m)
        alive = stays
        alive[:, :-1] += moved[:, 1:]
    law[tracked:] = law[tracked - 1]
    return law
