"""Logging policies: which ranking a session is shown, and the exposure that follows from it.

Here stand what all policies have in common, the deterministic one and mixtures; the policies that randomise within a
page are :mod:`cfltr_core.clicks.epsilon_greedy` and :mod:`cfltr_core.clicks.plackett_luce`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.users import User
from cfltr_core.ranking.metrics import ranks
from cfltr_core.ranking.ragged import query_of

# Sessions whose displays are drawn at once: small enough for the processor's cache, large enough for NumPy.
BLOCK = 1 << 16
# From so many lists on, of different lengths, it is no accident that each of them hides one document.
MANY_LISTS = 10
# Displayed documents: the flat document, its displayed rank, and how many sessions showed it there.
Impressions = tuple[IntArray, IntArray, IntArray]


class LoggingPolicy(ABC):
    """A distribution π(R | q) over the rankings R that a session of query q is shown.

    At most ``cutoff`` documents are shown, in the places 1, 2, … without a gap; a list that is shorter is shown whole.
    The policies of this package are :class:`DeterministicPolicy`, :class:`MixturePolicy` and those of
    :mod:`cfltr_core.clicks.epsilon_greedy` and :mod:`cfltr_core.clicks.plackett_luce`; a policy of your own gives
    ``offsets``, ``cutoff`` and the three abstract methods.

    Source: Oosterhuis & de Rijke 2020, Eq. 4.
    """

    offsets: IntArray
    cutoff: int

    @abstractmethod
    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """Σ_r P(rank(d | R) = r) · value(r) of each document d, shape (n_docs,): the mean of ``value`` where d stands.

        ``value`` maps an array of ranks to numbers; documents that are not shown count 0.  With λ it gives the risk
        that users meet now: ``policy.display_mean(dcg()) @ relevance / n_queries``.
        """

    @abstractmethod
    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw by ``rng`` one display R ~ π(R | q) for each q of ``queries``.

        The result holds flat documents, shape (len(queries), cutoff), −1 where a page is longer than its list.
        """

    @abstractmethod
    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Every display R of a ``query`` with its probability π(R | q) > 0: flat documents, place 1 first.

        There can be n! / (n − cutoff)! of them: for short lists only.
        """

    def exposure(self, user: User) -> FloatArray:
        """P(E = 1 | π, d) = Σ_R π(R | q) · P(E = 1 | R, d) of each document, shape (n_docs,); 0 if never shown.

        P(E = 1 | R, d) is what the ``user`` examines at the place of d.

        Source: Oosterhuis & de Rijke 2020, the denominator of Eq. 5.
        """
        return self.display_mean(user.propensity)

    def impressions(self, sessions: ArrayLike, rng: np.random.Generator) -> Impressions:
        """Draw by ``rng`` the displays of ``sessions[q]`` sessions of each query q and count who stood where.

        The three arrays (document, rank, count) have one entry for each document and rank that occurred, in that
        order.  Counts have the joint law of independent displays.  Memory is bounded by documents × cutoff, whatever
        the number of sessions.
        """
        per_query = self._check_sessions(sessions, rng)
        return nonzero_counts(count_displays(lambda queries: self.sample(queries, rng), per_query, self))

    def _check_sessions(self, sessions: ArrayLike, rng: np.random.Generator) -> IntArray:
        checks.generator(rng)
        return checks.counts(sessions, len(self.offsets) - 1, "sessions")

    def _check_queries(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        checks.generator(rng)
        return checks.indices(queries, "queries", len(self.offsets) - 1, "no such query")

    def _documents(self, query: int) -> tuple[int, int]:
        """First flat document of a query, and the first of the next one."""
        chosen = checks.positive_int(query, "query", least=0)
        checks.within(chosen, 0, len(self.offsets) - 2, "query", "no such query")
        return int(self.offsets[chosen]), int(self.offsets[chosen + 1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.offsets) - 1} queries, {self.cutoff} places)"


def place_values(value: Callable[[FloatArray], ArrayLike], rank: FloatArray) -> FloatArray:
    """``value`` at each of ``rank``, one finite number each."""
    values = np.asarray(value(rank), dtype=np.float64)
    if values.ndim == 0:
        values = np.full(rank.shape, values)
    return checks.finite_vector(values, rank.size, "value of the ranks")


def count_displays(sample: Callable[[IntArray], IntArray], sessions: IntArray, policy: LoggingPolicy) -> IntArray:
    """Counts (n_docs, cutoff) of the displays that ``sample`` draws for ``sessions`` of each query, block by block."""
    offsets, cutoff = policy.offsets, policy.cutoff
    counts = np.zeros(int(offsets[-1]) * cutoff, dtype=np.int64)
    ends = np.cumsum(sessions)
    for start in range(0, int(ends[-1]), BLOCK):
        stop = min(start + BLOCK, int(ends[-1]))
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        # Sessions of the queries first … last that fall into this block.
        share = np.minimum(ends[first : last + 1], stop) - np.maximum(
            ends[first : last + 1] - sessions[first : last + 1], start
        )
        shown = sample(np.repeat(np.arange(first, last + 1), share))
        low, high = offsets[first] * cutoff, offsets[last + 1] * cutoff
        code = (shown * cutoff + np.arange(cutoff) - low)[shown >= 0]
        counts[low:high] += np.bincount(code, minlength=high - low)
    return counts.reshape(-1, cutoff)


def nonzero_counts(counts: IntArray) -> Impressions:
    """The positive entries of a table (n_docs, cutoff) as (document, rank, count), in document order."""
    flat = counts.ravel()
    # Of a flat table of truth values NumPy finds the true ones several times as fast as of a table of numbers.
    cell = np.flatnonzero(flat > 0)
    document, place = np.divmod(cell, counts.shape[1])
    return document, place + 1, flat[cell]


def every_page(
    documents: list[int], cutoff: int, *, law: Callable[[list[int], int], list[float]], place: int = 0
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every page of ``documents``, place after place, with its probability; impossible ones left out.

    ``law(remaining, place)`` gives the probability of each of the remaining documents at that place, counted from 0;
    the page has ``cutoff`` places, and is filled from ``place`` on.

    Examples
    --------
    >>> from cfltr_core.clicks.policies import every_page
    >>> list(every_page([4, 7], 1, law=lambda remaining, place: [0.75, 0.25]))
    [(0.75, (4,)), (0.25, (7,))]
    """
    if place == cutoff or not documents:
        yield 1.0, ()
        return
    for i, (document, probability) in enumerate(zip(documents, law(documents, place), strict=True)):
        if probability > 0:
            for rest, below in every_page(documents[:i] + documents[i + 1 :], cutoff, law=law, place=place + 1):
                yield probability * rest, (document, *below)


def shown_places(ranks: ArrayLike, offsets: IntArray, name: str) -> tuple[IntArray, IntArray]:
    """Places, and how many are shown of each query, after a check that the shown ones of a query are 1, 2, … once.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.clicks.policies import shown_places
    >>> shown_places([2, 0, 1, 1], np.array([0, 3, 4]), "displayed_rank")
    (array([2, 0, 1, 1]), array([2, 1]))
    """
    rank = checks.counts(ranks, int(offsets[-1]), name)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    shown = rank > 0
    order = np.lexsort((rank[shown], query[shown]))
    sizes = np.bincount(query[shown], minlength=len(offsets) - 1)
    expected = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    if not np.array_equal(rank[shown][order], expected):
        bad = int(query[shown][order][np.argmax(rank[shown][order] != expected)])
        raise ValueError(
            f"{name} of query {bad} is {rank[offsets[bad] : offsets[bad + 1]].tolist()}: "
            "the shown documents must hold the places 1, 2, … once each (0 = not shown)"
        )
    return rank, sizes


@dataclass(frozen=True, eq=False, repr=False)
class DeterministicPolicy(LoggingPolicy):
    """Shows every session of a query the same ranking: π(R | q) = 1 for one R.

    Source: the setting of Agarwal et al. 2018, §3.

    Parameters
    ----------
    displayed_rank : (n_docs,)
        1-based place of each document; 0 = not shown.  The shown documents of a query hold the places
        1, 2, …, m, each once.
    offsets : (n_queries + 1,)

    Raises
    ------
    ValueError
        Naming the query whose places are not 1, 2, …, m.

    Warns
    -----
    UserWarning
        For ranks that seem to start at 0: ten lists or more, of different lengths, each without one of its documents.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy = cf.DeterministicPolicy([1, 2, 3], [0, 3])  # the page A B C
    >>> policy.exposure(cf.PositionBasedUser([1, 1/2, 1/3])).round(3)
    array([1.   , 0.5  , 0.333])
    >>> policy.display_mean(cf.dcg()).round(3)
    array([-1.   , -0.631, -0.5  ])
    >>> rng = np.random.default_rng(0)
    >>> policy.impressions([6], rng)  # documents, their ranks, and how often they were shown there
    (array([0, 1, 2]), array([1, 2, 3]), array([6, 6, 6]))
    >>> top_two = cf.DeterministicPolicy.rank_by([0.1, 0.9, 0.5], [0, 3], rng=rng, cutoff=2)
    >>> top_two.displayed_rank, top_two.sample([0], rng), list(top_two.displays(0))
    (array([0, 1, 2]), array([[1, 2]]), [(1.0, (1, 2))])
    >>> top_two.pages
    array([[1, 2]])
    """

    displayed_rank: IntArray
    offsets: IntArray
    cutoff: int = field(init=False)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        rank, sizes = shown_places(self.displayed_rank, offsets, "displayed_rank")
        lengths = np.diff(offsets)
        # A page that is cut off at place m hides one document of lists of m + 1 only, and none of shorter ones.
        if lengths.size >= MANY_LISTS and lengths.max() > lengths.min() and np.array_equal(sizes, lengths - 1):
            warnings.warn(
                f"displayed_rank is 0 for one document of each of {lengths.size} lists, the longest of which shows "
                f"{sizes.max()} documents and the shortest {sizes.min()}: 0 means not shown; if these ranks start at "
                "0, add 1 to them",
                stacklevel=3,
            )
        checks.keep(self, offsets=offsets, displayed_rank=rank, cutoff=int(rank.max()))

    def __repr__(self) -> str:
        shown = int((self.displayed_rank > 0).sum())
        of = f"{shown} of {len(self.displayed_rank)} documents shown"
        return f"DeterministicPolicy({len(self.offsets) - 1} queries, {of})"

    @classmethod
    def rank_by(
        cls, scores: ArrayLike, offsets: ArrayLike, *, rng: np.random.Generator, cutoff: int | None = None
    ) -> DeterministicPolicy:
        """Show documents by descending ``scores`` (n_docs,), ties broken once by ``rng``, the first ``cutoff`` of them.

        ``offsets`` (n_queries + 1,) are the lists; without a ``cutoff`` all are shown.
        """
        checks.arguments(DeterministicPolicy.rank_by, locals())
        place = ranks(scores, offsets, ties="random", rng=rng).astype(np.int64)
        return cls(place if cutoff is None else np.where(place <= cutoff, place, 0), np.asarray(offsets))

    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """``value`` at the displayed rank of each document, 0 if it is not shown, shape (n_docs,)."""
        shown = self.displayed_rank > 0
        rank = np.where(shown, self.displayed_rank, 1).astype(np.float64)
        return np.where(shown, place_values(value, rank), 0.0)

    def impressions(self, sessions: ArrayLike, rng: np.random.Generator) -> Impressions:
        """Every session shows the same ranking; nothing is drawn."""
        counts = np.repeat(self._check_sessions(sessions, rng), np.diff(self.offsets)) * (self.displayed_rank > 0)
        seen = np.flatnonzero(counts)
        return seen, self.displayed_rank[seen], counts[seen]

    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """The one display of each query, −1 where the page is longer than the list."""
        return self.pages[self._check_queries(queries, rng)]

    @property
    def pages(self) -> IntArray:
        """The page of each query, (n_queries, cutoff): the flat document at each place, −1 below the last one."""
        shown = np.flatnonzero(self.displayed_rank)
        table = np.full((len(self.offsets) - 1, self.cutoff), -1)
        table[query_of(shown, self.offsets), self.displayed_rank[shown] - 1] = shown
        return table

    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The one display of the query."""
        low, high = self._documents(query)
        rank = self.displayed_rank[low:high]
        best = np.argsort(rank, kind="stable")[np.count_nonzero(rank == 0) :] + low
        yield 1.0, tuple(best.tolist())


@dataclass(frozen=True, eq=False, repr=False)
class MixturePolicy(LoggingPolicy):
    """π(R | q) = Σ_i shares[i] · π_i(R | q): each session meets one of several policies, as in an A/B test.

    Source: a policy as in Oosterhuis & de Rijke 2020, Eq. 4.

    Parameters
    ----------
    policies : sequence of policies on the same lists
    shares : one number >= 0 per policy, together 1

    Raises
    ------
    ValueError
        For no policy, policies on different lists, or shares that are no probabilities.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> a_b_c, c_a_b = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.DeterministicPolicy([2, 3, 1], [0, 3])
    >>> policy = cf.MixturePolicy([a_b_c, c_a_b], shares=[0.5, 0.5])
    >>> policy.exposure(cf.PositionBasedUser([1, 1/2, 1/3])).round(3)  # of A: (1 + 1/2) / 2
    array([0.75 , 0.417, 0.667])
    >>> list(policy.displays(0))
    [(0.5, (0, 1, 2)), (0.5, (2, 0, 1))]
    """

    policies: Sequence[LoggingPolicy]
    shares: Sequence[float]
    cutoff: int = field(init=False)

    def __post_init__(self) -> None:
        policies = tuple(self.policies)
        shares = checks.within(self.shares, 0, 1, "shares", "each share is a probability")
        if not policies or shares.shape != (len(policies),):
            raise ValueError(f"shares: expected one number for each of {len(policies)} policies, got {shares.shape}")
        if abs(shares.sum() - 1.0) > 1e-9:
            raise ValueError(f"shares add up to {shares.sum():g}: divide them by their sum")
        for i, policy in enumerate(policies):
            if not np.array_equal(policy.offsets, policies[0].offsets):
                raise ValueError(f"policies[{i}] has other offsets than policies[0]: mix policies on the same lists")
        checks.keep(self, policies=policies, shares=tuple((shares / shares.sum()).tolist()))
        checks.keep(self, offsets=policies[0].offsets, cutoff=max(policy.cutoff for policy in policies))

    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """Σ_i shares[i] · (display mean of ``value`` under policy i), shape (n_docs,)."""
        means = [share * policy.display_mean(value) for share, policy in zip(self.shares, self.policies, strict=True)]
        return np.asarray(np.sum(means, axis=0))

    def impressions(self, sessions: ArrayLike, rng: np.random.Generator) -> Impressions:
        """Sessions are dealt out to the policies (Multinomial), then each policy draws its own."""
        dealt = rng.multinomial(self._check_sessions(sessions, rng), self.shares)
        counts = np.zeros((int(self.offsets[-1]), self.cutoff), dtype=np.int64)
        for i, policy in enumerate(self.policies):
            document, rank, count = policy.impressions(dealt[:, i], rng)
            counts[document, rank - 1] += count
        return nonzero_counts(counts)

    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw a policy for each session, then a display of that policy."""
        chosen = self._check_queries(queries, rng)
        policy_of = rng.choice(len(self.policies), size=len(chosen), p=self.shares)
        out = np.full((len(chosen), self.cutoff), -1)
        for i, policy in enumerate(self.policies):
            mine = np.flatnonzero(policy_of == i)
            out[mine, : policy.cutoff] = policy.sample(chosen[mine], rng)
        return out

    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The displays of all policies; those that several can show come once."""
        merged: dict[tuple[int, ...], float] = {}
        for share, policy in zip(self.shares, self.policies, strict=True):
            for probability, shown in policy.displays(query):
                merged[shown] = merged.get(shown, 0.0) + share * probability
        for shown, probability in merged.items():
            if probability > 0:
                yield probability, shown
