"""Tests of the position model whose laws hold for many queries, put right for the queries that a log has.

Each compares δ̂ᵀ Cov(δ̂)⁻¹ δ̂ with Hotelling's T² of Q queries.  Where a few queries hold most of the clicks, they are
worth fewer than Q.  How many they are worth, logs tell that are drawn anew from the position model: of T² with df
coefficients and Q queries the mean is m = df (Q − 1)/(Q − df − 2), so Q = ((df + 2) m − df)/(m − df).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.pages import PageCounts
from cfltr_core.propensity.clicks_above import clicks_above_test, page_displays
from cfltr_core.propensity.conditional_poisson import conditional_poisson, wald_tail
from cfltr_core.propensity.halves import same_curve
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.propensity.trust_bias import trust_bias

# Of the logs that are drawn anew so many per cent must allow the test.
ENOUGH = 50


@dataclass(frozen=True)
class ModelTest:
    """A test of the position model: its ``p_value``, the ``size`` of what breaks it, and the ``queries`` of its law."""

    p_value: float
    size: float
    queries: float


@dataclass(frozen=True, kw_only=True)
class Redraws:
    """How p values are put right: ``number`` logs drawn by ``rng``, where a p value is below ``alpha``."""

    number: int
    alpha: float
    rng: np.random.Generator


def calibrated_tail(
    statistic: float, df: int, queries: float, *, again: Callable[[], float], redraws: Redraws
) -> tuple[float, float]:
    """P(T² >= ``statistic``) and the number of queries in its law: that which logs drawn ``again`` show, if fewer.

    Nothing is drawn for a p value of α or more, which can only grow.

    Parameters
    ----------
    statistic : float
    df : int
        Coefficients that are tested.
    queries : float
        Q, that say something.
    again : callable
        Returns the statistic of another log, drawn from the position model; a ValueError is a log that has none.
    redraws : Redraws

    Raises
    ------
    ValueError
        If half of the logs that are drawn have no statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.logs.model_tests import Redraws, calibrated_tail
    >>> redraws = Redraws(number=2, alpha=0.05, rng=np.random.default_rng(0))
    >>> p_value, queries = calibrated_tail(12.0, 3, 900, again=lambda: 4.0, redraws=redraws)
    >>> round(p_value, 3), queries  # the mean 4 in place of 3 is that of 17 queries
    (0.044, 17.0)
    """
    p_value = wald_tail(statistic, df, queries)
    if p_value >= redraws.alpha:
        return p_value, queries
    values = []
    for _ in range(redraws.number):
        try:
            values.append(again())
        except ValueError:
            continue
    if 100 * len(values) < ENOUGH * redraws.number:
        raise ValueError("counts: the log is too small for this test: most logs like it would not allow it")
    mean = float(np.mean(values))
    if mean > df:
        queries = min(queries, ((df + 2) * mean - df) / (mean - df))
    return wald_tail(statistic, df, queries), queries


def trust_test(counts: DisplayCounts, *, redraws: Redraws) -> ModelTest:
    """Whether click probabilities need intercepts: a Wald test of α = 0.

    W = α̂ᵀ Cov(α̂)⁻¹ α̂ of :func:`~cfltr_core.propensity.trust_bias.trust_bias`, over the ranks linked with rank 1.
    ``size`` is the α̂ that is farthest from 0.

    Parameters
    ----------
    counts : DisplayCounts
    redraws : Redraws

    Raises
    ------
    ValueError
        As :func:`~cfltr_core.propensity.trust_bias.trust_bias`.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.logs.model_tests import Redraws, trust_test
    >>> rankers = [cf.DeterministicPolicy(rank * 200, range(0, 601, 3)) for rank in ([1, 2, 3], [2, 3, 1])]
    >>> policy, rng = cf.MixturePolicy(rankers, shares=[0.5, 0.5]), np.random.default_rng(0)
    >>> redraws = Redraws(number=20, alpha=0.003, rng=rng)
    >>> for trust in (0.0, 0.4):
    ...     user = cf.TrustUser([1, 1/2, 1/3], epsilon_plus=0.9, epsilon_minus=[0.1 + trust, 0.1 + trust / 2, 0.1])
    ...     given = {"relevance": rng.integers(2, size=600), "sessions": [900] * 200}
    ...     test = trust_test(cf.display_counts(cf.simulate_clicks(policy, user, rng=rng, **given)), redraws=redraws)
    ...     print(test.p_value < 0.003)
    False
    True
    """

    def wald(some: DisplayCounts) -> tuple[float, int, float]:
        curve = trust_bias(some)
        n = len(curve.slope)
        error = curve.intercept_error
        at = np.flatnonzero(np.isfinite(error) & (error > 0))
        if len(at) == 0:
            raise ValueError("counts: a single query is no sample, so nothing is known of the error; take more queries")
        alpha, spread = curve.intercept[at], curve.covariance[np.ix_(at + n, at + n)]
        return float(alpha @ np.linalg.solve(spread, alpha)), len(at), float(alpha[np.argmax(np.abs(alpha))])

    (statistic, df, size), queries = wald(counts), int(counts.cluster[-1]) + 1
    if queries <= df:
        raise ValueError(f"counts: {queries} queries are too few to test {df} ranks; take more queries")
    model = _Fitted(counts)
    p_value, worth = calibrated_tail(
        statistic, df, queries, again=lambda: wald(model.again(redraws.rng))[0], redraws=redraws
    )
    return ModelTest(p_value, size, worth)


def curves_test(counts: DisplayCounts, halves: Iterable[ArrayLike], *, redraws: Redraws) -> ModelTest:
    """Whether one curve serves all documents: a test on several ``halves``.

    Each is tested by :func:`~cfltr_core.propensity.halves.same_curve`; the p value is the smallest, times the number of
    halves that allow the test (Bonferroni).  ``size`` is the largest ratio of the two curves of that half.

    Parameters
    ----------
    counts : DisplayCounts
    halves : several of (n_terms,) True or False
    redraws : Redraws

    Raises
    ------
    ValueError
        When none of the halves allows the test, with the reason of the last.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.logs.model_tests import Redraws, curves_test
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    >>> policy, user = cf.MixturePolicy(rankers, shares=[0.4, 0.3, 0.3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> rng, relevance = np.random.default_rng(0), [1, 0, 1] * 40
    >>> log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=[99] * 40, rng=rng)
    >>> counts = cf.display_counts(log)
    >>> halves = [counts.document % 3 == 0, counts.document < 60]
    >>> round(curves_test(counts, halves, redraws=Redraws(number=20, alpha=0.003, rng=rng)).p_value, 2)
    0.72
    """
    tests, reason, given, model = [], "no halves were given", list(halves), _Fitted(counts)
    for half in given:
        try:
            test = same_curve(counts, half)
            p_value, worth = calibrated_tail(
                test.statistic,
                test.df,
                test.queries,
                again=partial(_halves_statistic, model, half, redraws.rng),
                redraws=replace(redraws, alpha=redraws.alpha / len(given)),
            )
        except ValueError as error:
            reason = str(error)
            continue
        shared = min(len(test.first.curve), len(test.second.curve))
        ratio = test.first.log_ratio[:shared] - test.second.log_ratio[:shared]
        tests.append(ModelTest(p_value, float(np.exp(np.nanmax(np.abs(ratio)))), worth))
    if not tests:
        raise ValueError(reason)
    best = min(tests, key=lambda test: test.p_value)
    return replace(best, p_value=min(1.0, len(tests) * best.p_value))


def stopping_test(pages: PageCounts | None, *, redraws: Redraws) -> ModelTest:
    """Whether clicks depend on clicks above, by :func:`~cfltr_core.propensity.clicks_above.clicks_above_test`.

    ``size`` is δ̂: with one click more above, a click comes e^δ times as often.

    Parameters
    ----------
    pages : PageCounts or None
        None where no page was shown twice.
    redraws : Redraws

    Raises
    ------
    ValueError
        For None, and as :func:`~cfltr_core.propensity.clicks_above.clicks_above_test`.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.other_users import CascadeUser
    >>> from cfltr_core.logs.model_tests import Redraws, stopping_test
    >>> rankers = [cf.DeterministicPolicy(rank * 40, range(0, 121, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    >>> policy, rng = cf.MixturePolicy(rankers, shares=[0.4, 0.3, 0.3]), np.random.default_rng(0)
    >>> user = CascadeUser(epsilon_plus=0.8, epsilon_minus=0.2)
    >>> pages = cf.simulate_pages(policy, user, relevance=[1, 0, 1] * 40, sessions=[60] * 40, rng=rng)
    >>> test = stopping_test(pages, redraws=Redraws(number=20, alpha=0.003, rng=rng))
    >>> bool(test.p_value < 0.003 and test.size < -1)
    True
    """
    if pages is None:
        raise ValueError("pages: no page was shown in two sessions; collect more of them")
    test = clicks_above_test(pages)
    if not np.isfinite(test.z):
        raise ValueError("pages: a single query is no sample, so nothing is known of the error; take more queries")
    model = _Fitted(page_displays(pages))

    def again() -> float:
        clicks = redraws.rng.binomial(pages.impressions, model.of(pages.document, pages.rank)[:, None])
        return clicks_above_test(replace(pages, clicks=clicks)).z ** 2

    p_value, worth = calibrated_tail(test.z**2, 1, test.queries, again=again, redraws=redraws)
    return ModelTest(p_value, test.slope, worth)


def _halves_statistic(model: _Fitted, half: ArrayLike, rng: np.random.Generator) -> float:
    """W of a log that is drawn anew."""
    return same_curve(model.again(rng), half).statistic


@dataclass(frozen=True)
class _Fitted:
    """The position model that fits best, estimated when it is first asked: γ̂_s = Σ c / Σ n θ̂ of each stratum.

    Ranks that cannot be compared with rank 1 have the examination that their group has with its first rank at 1.
    """

    counts: DisplayCounts

    @cached_property
    def mean(self) -> FloatArray:
        """P(click) of each term of the counts."""
        counts = self.counts
        theta = np.exp(conditional_poisson(counts).log_ratio)[counts.rank - 1]
        clicks, seen = (np.bincount(counts.stratum, values) for values in (counts.clicks, counts.impressions * theta))
        return np.minimum((clicks / seen)[counts.stratum] * theta, 1.0)

    def again(self, generator: np.random.Generator) -> DisplayCounts:
        """The same displays with clicks drawn anew."""
        names = ("query", "document", "rank", "impressions", "period")
        same = {name: getattr(self.counts, name) for name in names}
        return DisplayCounts(**same, clicks=generator.binomial(self.counts.impressions, self.mean))

    def of(self, document: IntArray, rank: IntArray) -> FloatArray:
        """P(click) by document and rank: in one period, documents of different queries having different numbers."""
        table = np.zeros((int(self.counts.document.max()) + 1, self.counts.n_ranks))
        table[self.counts.document, self.counts.rank - 1] = self.mean
        return np.asarray(table[document, rank - 1])
