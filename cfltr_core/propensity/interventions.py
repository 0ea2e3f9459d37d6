"""Interventions: pages that are changed on purpose, so that documents are seen at several ranks; and what that costs.

Each takes the page of a deterministic ranker and moves *places*, whatever stands there: RandTop-n shuffles the first n,
a swap exchanges two.  Show it to a part of the sessions with :class:`~cfltr_core.clicks.policies.MixturePolicy`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import DeterministicPolicy, Impressions, LoggingPolicy, nonzero_counts, place_values
from cfltr_core.clicks.users import PositionBasedUser
from cfltr_core.ranking.ragged import query_of


@dataclass(frozen=True, eq=False)
class InterventionCost:
    """What an intervention costs the users now; :func:`intervention_cost` makes it.

    All are expected clicks a session, the queries being equally frequent: ``before``, on the pages of the ranker;
    ``after``, under the intervention; ``worst``, if every session were shown the page of its query that is worst.
    """

    before: float
    after: float
    worst: float

    @property
    def change(self) -> float:
        """(after − before) / before: −0.1 is a loss of one click in ten."""
        return self.after / self.before - 1

    @property
    def worst_change(self) -> float:
        """(worst − before) / before, of the worst pages."""
        return self.worst / self.before - 1


class PlacePolicy(LoggingPolicy):
    """A policy that takes the page of ``base`` and moves places: :class:`RandTopPolicy` or :class:`SwapPolicy`.

    What it does depends on the number m of places that the base shows for the query, and on nothing else.
    """

    base: DeterministicPolicy

    @abstractmethod
    def arrangements(self, size: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Every arrangement of ``size`` = m places with its probability: the old places, from 0, of what is shown."""

    @abstractmethod
    def draw_places(self, size: IntArray, rng: np.random.Generator) -> IntArray:
        """One arrangement drawn by ``rng`` for each of the ``size`` of some pages: (len(size), cutoff) old places."""

    def place_law(self, size: int) -> FloatArray:
        """P(what stood at place k is shown at place j) on pages of ``size`` = m places, (m, m), both from 0."""
        law, new = np.zeros((size, size)), np.arange(size)
        for probability, places in self.arrangements(size):
            law[list(places), new] += probability
        return law

    def worst_clicks(self, theta: FloatArray, attraction: FloatArray) -> FloatArray:
        """Σ_j θ_j a_σ(j) of the worst arrangement σ of each page: ``theta`` (m,), ``attraction`` (n, m) → (n,)."""
        each = [attraction[:, list(places)] @ theta for _, places in self.arrangements(len(theta))]
        return np.asarray(np.min(each, axis=0))

    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """Σ_j P(rank(d) = j) · ``value(j)`` of each document, (n_docs,), from the law of its place."""
        values = place_values(value, np.arange(1.0, self.cutoff + 1))
        rank, size = self.base.displayed_rank, self._sizes()
        shown = np.flatnonzero(rank)
        of_page = size[query_of(shown, self.offsets)]
        out = np.zeros(len(rank))
        for m in np.unique(of_page).tolist():
            mine = shown[of_page == m]
            out[mine] = (self.place_law(m) @ values[:m])[rank[mine] - 1]
        return out

    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """The page of the base, with its places rearranged anew for each session."""
        chosen = self._check_queries(queries, rng)
        page = self.base.sample(chosen, rng)
        return np.take_along_axis(page, self.draw_places(self._sizes()[chosen], rng), axis=1)

    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Every page that some arrangement gives, once each."""
        ((_, page),) = self.base.displays(query)
        for probability, places in self.arrangements(len(page)):
            yield probability, tuple(page[place] for place in places)

    def _sizes(self) -> IntArray:
        """Places that the base shows of each query."""
        return np.add.reduceat(self.base.displayed_rank > 0, self.offsets[:-1], dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class RandTopPolicy(PlacePolicy):
    """RandTop-n: the first n places are shuffled uniformly, those below stay.

    Every document of the first n stands at each of these ranks equally often, so that click rates by rank are
    proportional to examination.  On a page of m < n places the m are shuffled: the ranks below m then miss this query,
    and click rates by rank mix different queries.  Beyond place n nothing is learnt.

    Source: the notes on counterfactual evaluation, "Rand Top-n Algorithm".

    Parameters
    ----------
    base : DeterministicPolicy
        Whose page is shuffled.
    n : int
        At least 2, at most the places of the longest page.

    Raises
    ------
    ValueError
        For another n.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.interventions import RandTopPolicy
    >>> policy = RandTopPolicy(cf.DeterministicPolicy([1, 2, 3], [0, 3]), n=2)  # A B C or B A C
    >>> list(policy.displays(0))
    [(0.5, (0, 1, 2)), (0.5, (1, 0, 2))]
    >>> policy.exposure(cf.PositionBasedUser([1, 1/2, 1/3])).round(3)
    array([0.75 , 0.75 , 0.333])
    >>> policy.place_law(3), list(policy.arrangements(2)), policy.sample([0, 0], np.random.default_rng(0)).shape
    (array([[0.5, 0.5, 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0. , 1. ]]), [(0.5, (0, 1)), (0.5, (1, 0))], (2, 3))
    >>> policy.worst_clicks(np.array([1, 1/2, 1/3]), np.array([[1.0, 0.0, 1.0]])).round(3)  # B A C
    array([0.833])
    >>> bool((np.sort(policy.draw_places(np.array([3, 3]), np.random.default_rng(0))) == [0, 1, 2]).all())
    True
    """

    base: DeterministicPolicy
    n: int = field(kw_only=True)
    offsets: IntArray = field(init=False)
    cutoff: int = field(init=False)

    def __post_init__(self) -> None:
        _take_over(self, self.base)
        if self.n > self.cutoff:
            raise ValueError(f"n is {self.n}: the longest page has {self.cutoff} places; take at most these")

    def place_law(self, size: int) -> FloatArray:
        """1/n among the first n places of ``size``; the others stay."""
        n = min(self.n, size)
        law = np.eye(size)
        law[:n, :n] = 1.0 / n
        return law

    def arrangements(self, size: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """All n! shuffles of the first n of ``size`` places."""
        n = min(self.n, size)
        shuffles = list(permutations(range(n)))
        for places in shuffles:
            yield 1.0 / len(shuffles), (*places, *range(n, size))

    def draw_places(self, size: IntArray, rng: np.random.Generator) -> IntArray:
        """The order of n random keys drawn by ``rng``; places beyond the ``size`` of a page keep the last ones."""
        key = np.tile(np.arange(1.0, self.cutoff + 1), (len(size), 1))
        key[:, : self.n] = rng.random((len(size), self.n))
        key[np.arange(self.cutoff) >= size[:, None]] += self.cutoff
        return np.argsort(key, axis=1, kind="stable")

    def worst_clicks(self, theta: FloatArray, attraction: FloatArray) -> FloatArray:
        """The most attractive documents where ``theta`` is least; ``attraction`` is sorted against it."""
        n = min(self.n, len(theta))
        best_first = np.sort(attraction[:, :n], axis=1)[:, ::-1] @ np.sort(theta[:n])
        return np.asarray(best_first + attraction[:, n:] @ theta[n:])


@dataclass(frozen=True, eq=False, repr=False)
class SwapPolicy(PlacePolicy):
    """Exchanges two places in a share of the sessions: π = 1 − ``swap`` for the page as it is, the rest over pairs.

    A session that swaps draws one of the ``pairs``, uniformly among those that its page has.  :meth:`landmark` pairs
    one rank with all others, :meth:`adjacent` each rank with the next, :meth:`random_pairs` any two.

    Source: the swap experiment of Joachims et al. 2017, to which Agarwal et al. 2018, §3.1, and the notes (*RandPair*)
    refer.

    Parameters
    ----------
    base : DeterministicPolicy
    pairs : sequence of (rank, rank)
        Different ranks from 1 to the places of the longest page; each pair once.
    swap : float in (0, 1]
        Share of the sessions that swap; 1/2 balances a single pair.

    Raises
    ------
    ValueError
        For no pair, ranks outside the page, a rank paired with itself, a pair given twice, or a share outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.interventions import SwapPolicy
    >>> page = cf.DeterministicPolicy([1, 2, 3], [0, 3])
    >>> list(SwapPolicy.landmark(page, 1).displays(0))  # A B C, and A changes places with B or C
    [(0.5, (0, 1, 2)), (0.25, (1, 0, 2)), (0.25, (2, 1, 0))]
    >>> SwapPolicy.adjacent(page).pairs, SwapPolicy.random_pairs(page).pairs
    (((1, 2), (2, 3)), ((1, 2), (1, 3), (2, 3)))
    >>> policy = SwapPolicy(page, pairs=[(2, 3)], swap=0.1)
    >>> policy.exposure(cf.PositionBasedUser([1, 1/2, 1/3])).round(3)
    array([1.   , 0.483, 0.35 ])
    >>> policy.impressions([1_000], np.random.default_rng(0))[2]  # A at 1, B at 2 and 3, C at 2 and 3
    array([1000,  908,   92,   92,  908])
    """

    base: DeterministicPolicy
    pairs: tuple[tuple[int, int], ...] = field(kw_only=True)
    swap: float = field(default=0.5, kw_only=True)
    offsets: IntArray = field(init=False)
    cutoff: int = field(init=False)

    def __post_init__(self) -> None:
        _take_over(self, self.base)
        pairs = [tuple(pair) for pair in self.pairs]
        if not pairs:
            raise ValueError("pairs: expected at least one pair of ranks, got none")
        for i, pair in enumerate(pairs):
            whole = len(pair) == 2 and all(isinstance(rank, (int, np.integer)) for rank in pair)
            if not whole or not all(1 <= rank <= self.cutoff for rank in pair) or pair[0] == pair[1]:
                raise ValueError(
                    f"pairs[{i}] is {pair}: expected two different ranks from 1 to {self.cutoff}, the longest page"
                )
            if sorted(pair) in [sorted(other) for other in pairs[:i]]:
                raise ValueError(f"pairs[{i}] is {pair}, which was given before: give every pair once")
        ordered = tuple((int(min(pair)), int(max(pair))) for pair in pairs)
        checks.keep(self, pairs=ordered)

    @classmethod
    def landmark(cls, base: DeterministicPolicy, rank: int, *, swap: float = 0.5) -> SwapPolicy:
        """The landmark ``rank`` with every other rank of the longest page of ``base``; ``swap`` as in the class."""
        checks.arguments(SwapPolicy.landmark, locals())
        checks.within(rank, 1, base.cutoff, "rank", "the landmark is a rank of the page")
        return cls(base, pairs=tuple((rank, k) for k in range(1, base.cutoff + 1) if k != rank), swap=swap)

    @classmethod
    def adjacent(cls, base: DeterministicPolicy, *, swap: float = 0.5) -> SwapPolicy:
        """Each rank of ``base`` with the next one; ``swap`` as in the class."""
        return cls(base, pairs=tuple((k, k + 1) for k in range(1, base.cutoff)), swap=swap)

    @classmethod
    def random_pairs(cls, base: DeterministicPolicy, *, swap: float = 0.5) -> SwapPolicy:
        """Any two ranks of ``base``; ``swap`` as in the class."""
        return cls(base, pairs=tuple(combinations(range(1, base.cutoff + 1), 2)), swap=swap)

    def _fitting(self, size: int) -> list[tuple[int, int]]:
        """The pairs of a page of ``size`` places, from 0."""
        return [(k - 1, j - 1) for k, j in self.pairs if j <= size]

    def arrangements(self, size: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The ``size`` places as they are, and each pair exchanged."""
        pairs, whole = self._fitting(size), tuple(range(size))
        if not pairs or self.swap < 1:
            yield 1.0 - self.swap if pairs else 1.0, whole
        for k, j in pairs:
            yield self.swap / len(pairs), tuple({k: j, j: k}.get(place, place) for place in whole)

    def draw_places(self, size: IntArray, rng: np.random.Generator) -> IntArray:
        """A coin for each page, then one of the pairs that fit its ``size``, both from ``rng``."""
        places = np.tile(np.arange(self.cutoff), (len(size), 1))
        coin, which = rng.random(len(size)) < self.swap, rng.random(len(size))
        for m in np.unique(size).tolist():
            pairs = np.array(self._fitting(m), dtype=np.int64).reshape(-1, 2)
            mine = np.flatnonzero(coin & (size == m)) if len(pairs) else np.empty(0, dtype=np.int64)
            k, j = pairs[(which[mine] * len(pairs)).astype(np.int64)].T
            places[mine, k], places[mine, j] = j, k
        return places

    def impressions(self, sessions: ArrayLike, rng: np.random.Generator) -> Impressions:
        """``sessions`` are dealt out to the arrangements of their page (Multinomial): no display is drawn singly."""
        per_query, sizes = self._check_sessions(sessions, rng), self._sizes()
        counts = np.zeros((int(self.offsets[-1]), self.cutoff), dtype=np.int64)
        for m in np.unique(sizes[sizes > 0]).tolist():
            queries = np.flatnonzero(sizes == m)
            page = self.base.pages[queries, :m]
            law, arranged = zip(*self.arrangements(m), strict=True)
            dealt = rng.multinomial(per_query[queries], np.array(law) / sum(law))
            for column, places in enumerate(arranged):
                counts[page[:, list(places)], np.arange(m)] += dealt[:, [column]]
        return nonzero_counts(counts)


def _take_over(policy: PlacePolicy, base: DeterministicPolicy) -> None:
    """Lists and length of page are those of the base."""
    checks.fields(policy)
    if base.cutoff < 2:
        raise ValueError(f"base shows {base.cutoff} places: with fewer than 2 there is nothing to exchange")
    checks.keep(policy, offsets=base.offsets, cutoff=base.cutoff)


def intervention_cost(policy: PlacePolicy, user: PositionBasedUser, *, relevance: ArrayLike) -> InterventionCost:
    """Expected clicks a session before, under and at worst under an intervention: Σ_d exposure_d · P(click | seen, d).

    Parameters
    ----------
    policy : PlacePolicy
        :class:`RandTopPolicy` or :class:`SwapPolicy`; shown to a share s of the sessions it costs s times ``change``.
    user : PositionBasedUser
    relevance : (n_docs,) in [0, 1]

    Returns
    -------
    InterventionCost

    Raises
    ------
    ValueError
        For a relevance outside [0, 1], or if no page of the base can be clicked.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.interventions import RandTopPolicy, SwapPolicy, intervention_cost
    >>> page, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> for policy in (RandTopPolicy(page, n=3), SwapPolicy.adjacent(page)):
    ...     cost = intervention_cost(policy, user, relevance=[1, 0, 0])  # A stands on top, as it should
    ...     print(f"{cost.change:.2f} {cost.worst_change:.2f}")
    -0.39 -0.67
    -0.12 -0.50
    """
    checks.arguments(intervention_cost, locals())
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance", low=0, high=1, why=checks.BINARY)
    attraction = user.attraction(rel)
    n_queries = len(policy.offsets) - 1
    before = float(policy.base.exposure(user) @ attraction) / n_queries
    if before == 0:
        raise ValueError("relevance: no document can be clicked under this policy and user")
    page = policy.base.pages
    sizes, worst = (page >= 0).sum(axis=1), 0.0
    for m in np.unique(sizes[sizes > 0]).tolist():
        shown = page[sizes == m][:, :m]
        worst += float(policy.worst_clicks(user.propensity(np.arange(1, m + 1)), attraction[shown]).sum())
    return InterventionCost(before, float(policy.exposure(user) @ attraction) / n_queries, worst / n_queries)
