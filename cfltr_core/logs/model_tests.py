"""Tests of the position model whose laws hold for many queries, put right for the queries that a log has.

Each compares δ̂ᵀ Cov(δ̂)⁻¹ δ̂ with Hotelling's T² of Q queries.  Where a few queries hold most of the clicks, they are
worth fewer than Q.  How many they are worth, logs tell that are drawn anew from the position model: of T² with df
coefficients and Q queries the mean is m = df (Q − 1)/(Q − df − 2), so Q = ((df + 2) m − df)/(m − df).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.pages import PageCounts
from cfltr_core.propensity.clicks_above import clicks_above_test, page_displays
from cfltr_core.propensity.conditional_poisson import conditional_poisson, wald_tail
from cfltr_core.propensity.curves import clustered_covariance
from cfltr_core.propensity.halves import same_curve
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.propensity.trust_bias import trust_bias
from cfltr_core.propensity.trust_curves import TrustCurve

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


def curves_test(
    counts: DisplayCounts, halves: Iterable[BoolArray], *, redraws: Redraws, trust: bool = False
) -> ModelTest:
    """Whether one curve serves all documents: a test on several ``halves``.

    Each is tested by :func:`~cfltr_core.propensity.halves.same_curve`, or, where people trust high ranks, by
    :func:`line_residuals`; the p value is the smallest, times the number of halves that allow the test (Bonferroni).
    ``size`` is the largest ratio of the two curves of that half, or of its clicks at a rank to those of the line.

    Parameters
    ----------
    counts : DisplayCounts
    halves : several of (n_terms,) True or False
    redraws : Redraws
    trust : bool
        The model is the line β_k γ_s + α_k in place of θ_k γ_s.

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
    tests, reason, given, model = [], "no halves were given", list(halves), _Fitted(counts, trust)
    statistic_of = _line_statistic if trust else _curve_statistic
    for half in given:
        try:
            statistic, df, queries, size = statistic_of(counts, half)
            p_value, worth = calibrated_tail(
                statistic,
                df,
                queries,
                again=lambda: statistic_of(model.again(redraws.rng), half)[0],  # noqa: B023 - called in this turn
                redraws=replace(redraws, alpha=redraws.alpha / len(given)),
            )
        except ValueError as error:
            reason = str(error)
            continue
        tests.append(ModelTest(p_value, size, worth))
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


def line_residuals(counts: DisplayCounts, curve: TrustCurve) -> tuple[FloatArray, FloatArray]:
    """Clicks of each term less those of the line, and these: c_sk − n_sk μ_sk and n_sk μ_sk.

    μ_sk = α_k + β_k γ̂_s with γ̂_s = Σ_k (c_sk − n_sk α_k) / Σ_k n_sk β_k, over the ranks that are linked with rank 1; at
    the others both are 0.  The residuals of a stratum add up to 0.

    Parameters
    ----------
    counts : DisplayCounts
    curve : TrustCurve
        Of these ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.logs.model_tests import line_residuals
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> from cfltr_core.propensity.trust_curves import TrustCurve
    >>> line = TrustCurve(
    ...     slope=np.array([1, 0.5]), intercept=np.array([0, 0.1]), covariance=np.zeros((4, 4)), strength=9.0
    ... )
    >>> rows = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[10, 10], clicks=[8, 2])
    >>> np.round(line_residuals(rows, line), 6)  # γ̂ = 9/15
    array([[ 2., -2.],
           [ 6.,  4.]])
    """
    beta, alpha = curve.slope[counts.rank - 1], curve.intercept[counts.rank - 1]
    known = np.isfinite(beta)
    beta, alpha, n = np.where(known, beta, 0.0), np.where(known, alpha, 0.0), counts.impressions * known
    net, seen = (np.bincount(counts.stratum, values) for values in (counts.clicks * known - n * alpha, n * beta))
    gamma = np.divide(net, seen, out=np.zeros_like(net), where=seen > 0)
    expected = n * (alpha + beta * gamma[counts.stratum])
    return counts.clicks * known - expected, expected


def _curve_statistic(counts: DisplayCounts, half: BoolArray) -> tuple[float, int, float, float]:
    """W, its coefficients, the queries in its law, and how far the curves of the halves are apart."""
    test = same_curve(counts, half)
    shared = min(len(test.first.curve), len(test.second.curve))
    apart = np.abs(test.first.log_ratio[:shared] - test.second.log_ratio[:shared])
    return test.statistic, test.df, test.queries, float(np.exp(np.nanmax(apart)))


def _line_statistic(counts: DisplayCounts, half: BoolArray) -> tuple[float, int, float, float]:
    """The same for lines: W = Rᵀ V⁻¹ R, R the residuals of the half by rank, V their covariance, clustered by query.

    That the line is estimated from the same clicks makes R smaller than V says: W errs on the safe side.
    """
    curve = trust_bias(counts)
    residual, expected = line_residuals(counts, curve)
    linked = np.flatnonzero(np.isfinite(curve.slope))
    shape = int(counts.cluster[-1]) + 1, counts.n_ranks
    cell = counts.cluster * counts.n_ranks + counts.rank - 1
    table = np.bincount(cell, residual * half, minlength=shape[0] * shape[1]).reshape(shape)[:, linked]
    size = table.sum(axis=0) / np.bincount(counts.rank - 1, expected * half, minlength=shape[1])[linked]
    later, df = table[:, 1:], len(linked) - 1  # residuals of a stratum add up to 0: those of rank 1 say nothing new
    if shape[0] <= df:
        raise ValueError(f"counts: {shape[0]} queries are too few to test {df} ranks; take more queries")
    off = later.sum(axis=0)
    spread = clustered_covariance(later - later.mean(axis=0), shape[0])
    return float(off @ np.linalg.solve(spread, off)), df, shape[0], 1 + float(np.nanmax(np.abs(size)))


@dataclass(frozen=True)
class _Fitted:
    """The position model that fits best, estimated when it is first asked: γ̂_s = Σ c / Σ n θ̂ of each stratum.

    Ranks that cannot be compared with rank 1 have the examination that their group has with its first rank at 1; with
    ``trust``, where each rank has a line, nothing is clicked there.
    """

    counts: DisplayCounts
    trust: bool = False

    @cached_property
    def mean(self) -> FloatArray:
        """P(click) of each term of the counts."""
        counts = self.counts
        if self.trust:
            return np.clip(line_residuals(counts, trust_bias(counts))[1] / counts.impressions, 0.0, 1.0)
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
