"""Logging policies that randomise within a page: exploring places, and Plackett–Luce.

Both fill the page from the top, each place given what stands above it.  Their exposure is computed without sampling.
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
    nonzero_counts,
    place_values,
)
from cfltr_core.clicks.users import PositionBasedUser
from cfltr_core.ranking.ragged import length_groups
from cfltr_core.sampling import alias_tables

# Largest step, and start, of the quadrature of Plackett–Luce; the error is below 1e-12 (see ``_place_mean``).
STEP, START = 0.2, -4.2
# Documents × pages that are held at once when exposure is estimated.
CELLS = 1 << 20


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
        greedy = DeterministicPolicy(self.greedy_rank, self.offsets)
        rank, offsets = greedy.displayed_rank, greedy.offsets
        if (rank == 0).any():
            raise ValueError(f"greedy_rank[{int(np.argmin(rank))}] is 0: rank every document, it can be explored")
        epsilon = checks.within(self.epsilon, 0, 1, "epsilon", "a probability for each place")
        if epsilon.ndim != 1 or epsilon.size == 0:
            raise ValueError(f"epsilon: expected one probability per place, got shape {epsilon.shape}")
        order = np.empty_like(rank)
        order[np.repeat(offsets[:-1], np.diff(offsets)) + rank - 1] = np.arange(len(rank))
        for name, value in (("greedy_rank", rank), ("offsets", offsets), ("epsilon", epsilon), ("_order", order)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cutoff", len(epsilon))

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

        yield from _pages(ordered, self.cutoff, law)


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


@dataclass(frozen=True, eq=False, repr=False)
class PlackettLucePolicy(LoggingPolicy):
    """Fills each place with a remaining document d with probability ∝ exp(score_d / temperature).

    Source: Plackett 1975; Luce 1959.

    Parameters
    ----------
    scores : (n_docs,) finite
    offsets : (n_queries + 1,)
    cutoff : int
        Places of the page.
    temperature : float
        > 0; a high one is uniform, a low one ranks by score.

    Raises
    ------
    ValueError
        For a temperature so low that a document has less than 1e-260 of the weight of another.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy = cf.PlackettLucePolicy(np.log([2, 1, 1]), [0, 3], cutoff=2)  # A weighs as much as B and C
    >>> [(round(p, 3), page) for p, page in policy.displays(0)][:2]
    [(0.25, (0, 1)), (0.25, (0, 2))]
    >>> user = cf.PositionBasedUser([1, 1/2, 1/3])
    >>> policy.exposure(user).round(3)
    array([0.667, 0.417, 0.417])
    >>> estimate, error = policy.estimate_exposure(user, 1_000, rng=np.random.default_rng(0))
    >>> bool((abs(estimate - policy.exposure(user)) < 4 * error).all())
    True
    """

    scores: FloatArray
    offsets: IntArray
    cutoff: int = field(kw_only=True)
    temperature: float = field(default=1.0, kw_only=True)
    _weight: FloatArray = field(init=False)
    _order: IntArray = field(init=False)
    _up: FloatArray = field(init=False)
    _alias: tuple[FloatArray, IntArray] = field(init=False)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        scores = checks.finite_vector(self.scores, int(offsets[-1]), "scores")
        checks.positive_int(self.cutoff, "cutoff")
        checks.positive(self.temperature, "temperature")
        sizes = np.diff(offsets)
        logits = (scores - np.repeat(np.maximum.reduceat(scores, offsets[:-1]), sizes)) / self.temperature
        if logits.min() < -600:
            raise ValueError(
                f"temperature is {self.temperature}: document {int(np.argmin(logits))} would have a probability below "
                "1e-260; raise it, or show an (almost) deterministic page with EpsilonGreedyPolicy"
            )
        weight = np.exp(logits)
        weight /= np.repeat(np.add.reduceat(weight, offsets[:-1]), sizes)
        # Documents are drawn by their position in the order of ascending weight: there a cumulative sum is precise
        # next to every document, however small its weight.
        order = np.lexsort((weight, np.repeat(np.arange(len(sizes)), sizes)))
        up = np.concatenate([np.cumsum(part) for part in np.split(weight[order], offsets[1:-1])])
        for name, value in (("scores", scores), ("offsets", offsets), ("_weight", weight), ("_order", order)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_up", up)
        object.__setattr__(self, "_alias", alias_tables(weight[order], offsets))

    def display_mean(self, value: Callable[[FloatArray], ArrayLike]) -> FloatArray:
        """Mean of ``value`` by quadrature, exact to about 1e-12 for any list; O(cutoff) a document and node."""
        values = place_values(value, np.arange(1.0, self.cutoff + 1))
        out = np.empty(len(self._weight))
        # At most.  A group takes 16 MB, or one list: 8 · n · places · nodes bytes.
        nodes = (np.log(45.0 / self._weight.min()) - START) / _step(self.cutoff)
        for _, index in length_groups(self.offsets, block=1 + int((1 << 21) / (self.cutoff * nodes))):
            out[index] = _place_mean(self._weight[index], values)
        return out

    def estimate_exposure(
        self, user: PositionBasedUser, n_displays: int, *, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Exposure to a ``user`` from ``n_displays`` pages per query that ``rng`` draws, and its standard error.

        Rao–Blackwellised: a page contributes not the examination where d stood but its mean given the documents above
        each place, Σ_r θ_r · w_d / (weight that remains at place r), summed while d itself remains.  So the estimate is
        unbiased, its sum over a list is exact, and no document comes out as 0.  It checks ``exposure``, which is
        exact, and stands for policies that can only be sampled.

        What moves the estimate of d most are the pages that show d, after which it adds nothing more.  A document on
        none of a thousand pages would have a standard error that is many times too small.  So for documents on fewer
        than 30 of the pages this part of the variance is added from its expectation: a little too much, not too little.

        Returns
        -------
        exposure, standard_error : (n_docs,)
        """
        m = checks.positive_int(n_displays, "n_displays", least=2)
        checks.generator(rng)
        theta = user.propensity(np.arange(1.0, self.cutoff + 1))
        mean, square, loss, shown_on = np.zeros((4, len(self._weight)))
        for query, (low, high) in enumerate(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)):
            block = max(1, CELLS // (high - low))
            for done in range(0, m, block):
                pages = min(block, m - done)
                shown = self.sample(np.full(pages, query), rng) - low
                remains = np.tile(self._weight[low:high], (pages, 1))
                chance = np.zeros(remains.shape)
                weight_left, per_weight = np.empty((2, min(self.cutoff, high - low), pages))
                for place in range(len(weight_left)):
                    weight_left[place] = remains.sum(axis=1)
                    per_weight[place] = theta[place] / weight_left[place]
                    chance += per_weight[place][:, None] * remains
                    remains[np.arange(pages), shown[:, place]] = 0.0
                # Blocks are joined by their means and squares about them: nothing cancels.
                centre = chance.mean(axis=0)
                gap = centre - mean[low:high]
                square[low:high] += ((chance - centre) ** 2).sum(axis=0) + gap**2 * (done * pages / (done + pages))
                mean[low:high] += gap * pages / (done + pages)
                # Shown at place r (probability w / weight left), d loses w Σ_{s > r} θ_s / weight left at s: w times
                # the square of that, summed over the places.
                still = per_weight.sum(axis=0) - np.cumsum(per_weight, axis=0)
                loss[low:high] += self._weight[low:high] ** 3 * (still**2 / weight_left).sum()
                shown_on[low:high] += (remains == 0).sum(axis=0)
        return mean, np.sqrt((square / (m - 1) + np.where(shown_on < 30, loss / m, 0.0)) / m)

    def sample(self, queries: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw a document for each place by the alias method; if it stands above already, one of the others.

        That is sampling without replacement, at a cost that grows neither with the list nor with the temperature.
        """
        chosen = self._check_queries(queries, rng)
        start, size = self.offsets[chosen], np.diff(self.offsets)[chosen]
        shown = np.full((self.cutoff, len(chosen)), -1)
        for place in range(self.cutoff):
            here = shown[place]
            here[:] = self._draw(start, size, rng)
            clash = np.zeros(len(chosen), dtype=bool)
            for above in shown[:place]:
                clash |= above == here
            todo = np.flatnonzero(clash & (size > place))
            while len(todo):  # a second round only where rounding puts the top of the interval into a document above
                here[todo] = self._draw_other(np.sort(shown[:place, todo], axis=0), start[todo], size[todo], rng)
                todo = todo[(shown[:place, todo] == here[todo]).any(axis=0)]
            here[size <= place] = -1
        return np.where(shown >= 0, self._order[shown], -1).T

    def _draw(self, start: IntArray, size: IntArray, rng: np.random.Generator) -> IntArray:
        """One position ∝ weight for each session, with replacement."""
        u = rng.random(len(start)) * size
        column = u.astype(np.int64)
        u -= column
        column += start
        threshold, other = self._alias
        return np.where(u < threshold[column], column, other[column])

    def _draw_other(self, above: IntArray, start: IntArray, size: IntArray, rng: np.random.Generator) -> IntArray:
        """One position ∝ weight among those not in ``above``, (places, sessions), ascending.

        Inversion: the intervals of the others, put together, are hit at t; each one of ``above`` that begins below t
        shifts it up by its own weight.
        """
        low, high = start, start + size - 1
        up, below = self._up[above], np.where(above > start, self._up[above - 1], 0.0)
        # The gaps are added, not the weights of ``above`` subtracted: next to these the rest may be tiny.
        gaps = below[0] + (below[1:] - up[:-1]).sum(axis=0) + (self._up[high] - up[-1])
        t = gaps * rng.random(len(start))
        for begins, length in zip(below, up - below, strict=True):
            t += np.where(t >= begins, length, 0.0)
        while (low < high).any():
            middle = (low + high) >> 1
            beyond = self._up[middle] <= t
            low, high = np.where(beyond, np.minimum(middle + 1, high), low), np.where(beyond, high, middle)
        return low

    def displays(self, query: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """By recursion over the places."""
        low, high = self._documents(query)

        def law(remaining: list[int], place: int) -> list[float]:
            weight = self._weight[remaining]
            return list((weight / weight.sum()).tolist())

        yield from _pages(list(range(low, high)), self.cutoff, law)


def _pages(
    documents: list[int], cutoff: int, law: Callable[[list[int], int], list[float]], place: int = 0
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every page of ``documents``, place after place, with its probability; impossible ones left out."""
    if place == cutoff or not documents:
        yield 1.0, ()
        return
    for i, (document, probability) in enumerate(zip(documents, law(documents, place), strict=True)):
        if probability > 0:
            for rest, below in _pages(documents[:i] + documents[i + 1 :], cutoff, law, place + 1):
                yield probability * rest, (document, *below)


def _step(cutoff: int) -> float:
    """The arrival of place k is spread over about 1/√k in log t: long pages need a finer step."""
    return min(STEP, 0.5 / float(np.sqrt(cutoff)))


def _place_mean(weight: FloatArray, values: FloatArray) -> FloatArray:
    """Σ_r values[r] · P(rank(d) = r) under Plackett–Luce, for lists of one length: (queries, n) in and out.

    Let every document arrive after an exponential time of rate w_d: the order of arrival is Plackett–Luce.  So

        P(rank(d) = r) = ∫ w_d e^{−w_d t} · P(exactly r − 1 others have arrived by t) dt,

    and the number of others is a sum of independent coins with probabilities 1 − e^{−w t}.  A pass down the list
    carries the law of the coins so far, a pass up carries the mean value that the rest will add.  With
    t = exp(x − e^{−x}) the integrand falls off doubly exponentially to the left; the trapezium rule then converges
    exponentially, and ends where the best ``cutoff`` documents have surely arrived.
    """
    n = weight.shape[1]
    k = min(len(values), n)
    slowest = float(np.partition(weight, n - k, axis=1)[:, n - k].min())
    step = _step(k)
    x = np.arange(START, np.log(45.0 / slowest) + step, step)
    time = np.exp(x - np.exp(-x))
    mass = step * (1.0 + np.exp(-x)) * time
    law = np.zeros((n, k, len(weight), len(x)))
    law[0, 0] = 1.0
    for d in range(n - 1):
        absent = np.exp(-np.outer(weight[:, d], time))
        law[d + 1] = law[d] * absent
        law[d + 1, 1:] += law[d, :-1] * -np.expm1(-np.outer(weight[:, d], time))
    ahead = np.zeros((k, len(weight), len(x)))
    ahead += values[:k, None, None]
    out = np.empty(weight.shape)
    for d in range(n - 1, -1, -1):
        absent = np.exp(-np.outer(weight[:, d], time))
        out[:, d] = weight[:, d] * ((law[d] * ahead).sum(axis=0) * absent @ mass)
        later = ahead * absent
        later[:-1] += ahead[1:] * -np.expm1(-np.outer(weight[:, d], time))
        ahead = later
    return out
