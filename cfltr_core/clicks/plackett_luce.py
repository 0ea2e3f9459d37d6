"""A logging policy that draws the page from scores, place after place: Plackett–Luce.

It fills the page from the top, each place given what stands above it.  Its exposure is computed without sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import LoggingPolicy, every_page, place_values
from cfltr_core.clicks.users import User
from cfltr_core.ranking.ragged import length_groups
from cfltr_core.sampling import alias_tables

# Largest step, and start, of the quadrature of Plackett–Luce; the error is below 1e-12 (see ``_place_mean``).
STEP, START = 0.2, -4.2
# Documents × pages that are held at once when exposure is estimated.
CELLS = 1 << 20


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
        checks.fields(self)
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
        checks.keep(self, scores=scores, offsets=offsets, _weight=weight, _order=order, _up=up)
        checks.keep(self, _alias=alias_tables(weight[order], offsets))

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
        self, user: User, n_displays: int, *, rng: np.random.Generator
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
        checks.arguments(PlackettLucePolicy.estimate_exposure, locals())
        m = n_displays
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

        yield from every_page(list(range(low, high)), self.cutoff, law=law)


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
