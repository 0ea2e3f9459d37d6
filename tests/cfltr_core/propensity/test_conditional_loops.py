"""The conditional Poisson likelihood against loops over strata; its maximum against Zermelo's iteration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cfltr_core.propensity import conditional_poisson as conditional
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import (
    clustered_covariance,
    conditional_likelihood,
    conditional_poisson,
    curvature,
    fit_ranks,
    linked_terms,
    log_likelihood,
    query_gradients,
    shares,
)
from cfltr_core.propensity.contextual import contextual_curve, contextual_likelihood
from cfltr_core.propensity.halves import same_curve
from cfltr_core.propensity.shrinkage import SPREADS, power_projection, shrunk_power
from cfltr_core.propensity.strata import DisplayCounts

Groups = dict[tuple[int, int, int], oracles.Stratum]
CELL = st.tuples(st.integers(3, 9), st.integers(0, 3))
GROUPS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.just(0), st.integers(0, 2)),
    st.dictionaries(st.integers(1, 4), CELL, min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


def of_groups(groups: Groups) -> DisplayCounts:
    rows = [(*key, rank, n, c) for key, group in groups.items() for rank, (n, c) in group.items()]
    query, period, document, rank, impressions, clicks = zip(*rows, strict=True)
    return DisplayCounts(
        query=query, period=period, document=document, rank=rank, impressions=impressions, clicks=clicks
    )  # fmt: skip


def simulated(seed: int, n_queries: int = 12, n_ranks: int = 4, theta: list[float] | None = None) -> Groups:
    """Two documents a query, each seen at some of the ranks, with clicks of a position-based user."""
    rng, groups = np.random.default_rng(seed), {}
    curve = theta or [1 / k for k in range(1, n_ranks + 1)]
    for query, document in itertools.product(range(n_queries), range(2)):
        rho, group = rng.uniform(0.2, 1), {}
        for k in sorted(rng.choice(n_ranks, size=rng.integers(2, n_ranks + 1), replace=False) + 1):
            n = int(rng.integers(5, 60))
            group[int(k)] = (n, int(rng.binomial(n, curve[k - 1] * rho)))
        groups[query, 0, 2 * query + document] = group
    return groups


@pytest.mark.oracle("conditional_poisson.linked_terms", "conditional_poisson.conditional_likelihood",
                    "conditional_poisson.shares", "conditional_poisson.log_likelihood", "conditional_poisson.curvature",
                    "conditional_poisson.query_gradients")  # fmt: skip
@given(groups=GROUPS, ranks=st.sets(st.integers(1, 4), min_size=1).map(sorted), data=st.data())
def test_likelihood(groups: Groups, ranks: list[int], data: st.DataObject) -> None:
    counts = of_groups(groups)
    assume(max(ranks) <= counts.n_ranks)
    in_order = dict(sorted(groups.items()))
    speaking = oracles.speaking(list(in_order.values()), ranks)
    terms = linked_terms(counts, ranks)
    found = [
        {int(terms.ranks[terms.place[t]]): (terms.impressions[t], terms.clicks[t]) for t in range(low, high)}
        for low, high in itertools.pairwise(terms.start.tolist())
    ]
    assert found == [dict(sorted(group.items())) for group in speaking]
    assume(speaking)
    u = {k: data.draw(st.floats(-2, 2)) for k in ranks}
    value, gradient, minus_hessian = conditional_likelihood(terms, list(u.values()))
    assert value == pytest.approx(oracles.conditional_value(speaking, u), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(gradient, oracles.conditional_gradient(speaking, u, ranks), atol=1e-11)
    np.testing.assert_allclose(minus_hessian, oracles.conditional_curvature(speaking, u, ranks), atol=1e-11)
    numeric = oracles.differences(
        lambda at: oracles.conditional_value(speaking, dict(zip(ranks, at, strict=True))), list(u.values())
    )
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    log_theta = np.array(list(u.values()))[terms.place]
    pi = shares(terms, log_theta)
    expected = [share for group in speaking for _, share in sorted(oracles.stratum_shares(group, u).items())]
    np.testing.assert_allclose(pi, expected, rtol=1e-12)
    assert log_likelihood(terms, pi, log_theta) == pytest.approx(value)
    np.testing.assert_allclose(curvature(terms, pi, terms.total * pi), minus_hessian, rtol=1e-12)
    queries = sorted({key[0] for key in groups})
    by_query = [
        oracles.conditional_gradient(
            oracles.speaking([group for key, group in groups.items() if key[0] == q], ranks), u, ranks
        )
        for q in queries
    ]
    np.testing.assert_allclose(query_gradients(terms, pi, len(queries)), by_query, atol=1e-11)
    with pytest.raises(ValueError, match=r"^log_theta\[0\] is nan"):
        conditional_likelihood(terms, [math.nan] * len(ranks))
    with pytest.raises(ValueError, match=r"^log_theta: expected shape"):
        conditional_likelihood(terms, [0.0] * 9)


@pytest.mark.parametrize("cells", [1, 8, 1 << 17])
@pytest.mark.parametrize("empty", [0, 8])
def test_blocks_and_sparse_tables_make_no_difference(cells: int, empty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, ranks = simulated(4), [1, 2, 3, 4]
    monkeypatch.setattr(conditional, "CELLS", cells)
    monkeypatch.setattr(conditional, "MOST_EMPTY", empty)
    found = conditional_likelihood(linked_terms(of_groups(groups), ranks), np.zeros(4))[2]
    u = dict.fromkeys(ranks, 0.0)
    expected = oracles.conditional_curvature(oracles.speaking(list(groups.values()), ranks), u, ranks)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_ranks_of_the_log() -> None:
    with pytest.raises(ValueError, match=r"^ranks\[1\] is 9\.0, outside \[1, 4\]"):
        linked_terms(of_groups(simulated(0)), [1, 9])


@pytest.mark.oracle("conditional_poisson.conditional_poisson", "conditional_poisson.fit_ranks",
                    "conditional_poisson.clustered_covariance")  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_estimate_and_covariance(seed: int) -> None:
    groups, ranks = simulated(seed), [1, 2, 3, 4]
    curve = conditional_poisson(of_groups(groups))
    u = oracles.conditional_fit(oracles.speaking(list(groups.values()), ranks), ranks)
    np.testing.assert_allclose(curve.log_ratio, list(u.values()), atol=1e-9)
    expected = oracles.sandwich(groups, u, ranks)
    np.testing.assert_allclose(curve.covariance, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fit_ranks(linked_terms(of_groups(groups), ranks))[0], list(u.values()), atol=1e-9)
    rows = np.random.default_rng(seed).normal(size=(5, 3))
    np.testing.assert_allclose(clustered_covariance(rows, 5), oracles.outer_sum(rows.tolist(), 5), rtol=1e-12)
    assert np.isnan(clustered_covariance(rows, 1)).all()


def test_the_order_of_the_rows_does_not_matter() -> None:
    groups = simulated(0)
    shuffled = dict(sorted(groups.items(), key=lambda item: (item[0][2] * 7) % 11))
    one, other = (conditional_poisson(of_groups(each)) for each in (groups, shuffled))
    np.testing.assert_array_equal(one.log_ratio, other.log_ratio)
    np.testing.assert_array_equal(one.covariance, other.covariance)


def test_equal_shares_of_ranks_make_it_the_ratio_of_click_rates() -> None:
    """n_sk = n_s in every stratum: θ_k/θ_1 = Σ c_sk / Σ c_s1, by hand."""
    groups = {key: {k: (40, c) for k, (_, c) in group.items()} for key, group in simulated(1, theta=[0.5] * 4).items()}
    groups = {key: {k: group.get(k, (40, 7)) for k in range(1, 5)} for key, group in groups.items()}
    clicks = np.array([[group[k][1] for k in range(1, 5)] for group in groups.values()]).sum(axis=0)
    np.testing.assert_allclose(conditional_poisson(of_groups(groups)).curve, clicks / clicks[0], rtol=1e-12)


@pytest.mark.oracle("concave.maximise")
def test_newton_from_afar_and_when_there_is_no_maximum() -> None:
    a, b = np.array([3.0, 30.0, 0.5]), np.array([7.0, 1.0, 900.0])

    def rates(u: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        p = np.exp(-np.logaddexp(0, -u))
        return float(a @ np.log(p) + b @ np.log1p(-p)), a - (a + b) * p, np.diag((a + b) * p * (1 - p))

    for start in (0.0, 5.0, -8.0):
        u, inverse = maximise(rates, np.full(3, start), free=np.array([True, True, False]))
        roots = [oracles.bisect(lambda x, i=i: 1 / (1 + math.exp(-x)), a[i] / (a[i] + b[i]), -20, 20) for i in (0, 1)]
        np.testing.assert_allclose(u, [*roots, start], atol=1e-10)
        np.testing.assert_allclose(np.diag(inverse), [1 / a[0] + 1 / b[0], 1 / a[1] + 1 / b[1], 0], rtol=1e-9)
    with pytest.raises(ValueError, match=r"^function: Newton's method found no finite maximum"):
        maximise(lambda u: (float(-np.exp(-u[0])), np.exp(-u), np.diag(np.exp(-u))), np.zeros(1), free=np.array([True]))
    with pytest.raises(ValueError, match=r"^function: Newton's method found no finite maximum"):
        maximise(lambda u: (0.0, np.zeros(1), np.zeros((1, 1))), np.zeros(1), free=np.array([True]))


@pytest.mark.oracle("halves.same_curve")
@pytest.mark.parametrize("n_ranks", [3, 4])
def test_two_halves(n_ranks: int) -> None:
    groups, ranks = simulated(3, n_ranks=n_ranks), list(range(1, n_ranks + 1))
    counts = of_groups(groups)
    test = same_curve(counts, counts.document % 2 == 0)
    sides = [{key: group for key, group in groups.items() if key[2] % 2 == side} for side in (0, 1)]
    fits = [oracles.conditional_fit(oracles.speaking(list(side.values()), ranks), ranks) for side in sides]
    influence: dict[int, list[float]] = {}
    for sign, side, u in zip((1, -1), sides, fits, strict=True):
        h = oracles.conditional_curvature(oracles.speaking(list(side.values()), ranks), u, ranks)
        inverse = oracles.inverted([row[1:] for row in h[1:]])
        for key, group in side.items():
            g = oracles.conditional_gradient(oracles.speaking([group], ranks), u, ranks)[1:]
            moved = [sign * math.fsum(a * b for a, b in zip(row, g, strict=True)) for row in inverse]
            old = influence.setdefault(key[0], [0.0] * (n_ranks - 1))
            influence[key[0]] = [a + b for a, b in zip(old, moved, strict=True)]
    spread = oracles.outer_sum(list(influence.values()), len(influence))
    delta = [fits[0][k] - fits[1][k] for k in ranks[1:]]
    statistic = oracles.quadratic(delta, spread)
    assert test.statistic == pytest.approx(statistic, rel=1e-6)
    assert test.df == n_ranks - 1
    assert test.queries == len(influence)
    assert test.p_value == pytest.approx(oracles.hotelling_tail(statistic, test.df, len(influence)), rel=1e-6)
    np.testing.assert_allclose(test.first.log_ratio, list(fits[0].values()), atol=1e-8)
    np.testing.assert_allclose(test.second.log_ratio, list(fits[1].values()), atol=1e-8)
    split = np.zeros(len(counts.rank), dtype=bool)
    split[0] = True
    with pytest.raises(ValueError, match=r"^half: document 0 has terms in both halves"):
        same_curve(counts, split)
    with pytest.raises(ValueError, match=r"^half: expected True or False for each of \d+ terms, some of either kind"):
        same_curve(counts, np.ones(len(split), dtype=bool))
    two = {"query": [0] * 4, "document": [0, 0, 1, 1], "rank": [1, 2] * 2, "impressions": [9] * 4}
    few = DisplayCounts(**two, clicks=[6, 3, 4, 2])
    with pytest.raises(ValueError, match=r"^counts: 1 queries say something, too few to compare"):
        same_curve(few, few.document % 2 == 0)


@pytest.mark.oracle("shrinkage.power_projection")
@given(u=st.lists(st.floats(-3, 3), min_size=3, max_size=6))
def test_what_is_left_of_a_power(u: list[float]) -> None:
    ranks = [float(k) for k in range(2, 2 + len(u))]
    np.testing.assert_allclose(power_projection(ranks) @ u, oracles.left_of_power(ranks, u), atol=1e-12)
    for bad in ([1.0], [1.0, 1.0], [0.0, 1.0]):
        with pytest.raises(ValueError, match=r"^ranks is \["):
            power_projection(bad)


@pytest.mark.oracle("shrinkage.shrunk_power")
@pytest.mark.parametrize("theta", [[1, 1 / 2, 1 / 3, 1 / 4], [1.0, 0.9, 0.2, 0.1]], ids=["a power", "a fold"])
def test_shrunk(theta: list[float]) -> None:
    groups, ranks = simulated(5, theta=theta), [1, 2, 3, 4]
    counts, speaking = of_groups(groups), oracles.speaking(list(groups.values()), ranks)
    curve = shrunk_power(counts)
    assert curve.tau in SPREADS
    evidence = {}
    for tau in SPREADS[::5].tolist():
        one = shrunk_power(counts, tau=tau)
        u = one.log_ratio.tolist()
        slope = oracles.differences(lambda at, tau=tau: oracles.shrunk_value(speaking, ranks, at, tau), u)
        np.testing.assert_allclose(slope, 0, atol=1e-4 + 1e-9 / tau**2)
        evidence[tau] = oracles.shrunk_evidence(speaking, ranks, u, tau)
        assert one.eta == pytest.approx(-oracles.slope(ranks, [math.exp(v) for v in u]), rel=1e-9)
    best = oracles.shrunk_evidence(speaking, ranks, curve.log_ratio.tolist(), curve.tau)
    assert best >= max(evidence.values()) - 1e-9
    free = conditional_poisson(counts)
    np.testing.assert_allclose(shrunk_power(counts, tau=1e4).log_ratio, free.log_ratio, atol=1e-6)
    # Information is added, none taken away: the variances are at most those of the model without a prior.
    inverse = fit_ranks(linked_terms(counts, ranks))[1]
    assert (np.diag(curve.covariance) <= np.diag(inverse) * 1.1).all()
    with pytest.raises(ValueError, match=r"^tau is 0: expected a spread > 0"):
        shrunk_power(counts, tau=0)


@pytest.mark.oracle("contextual.contextual_likelihood", "contextual.contextual_curve", "contextual.ContextualCurve.at",
                    "contextual.ContextualCurve.depends")  # fmt: skip
def test_contextual() -> None:
    groups, ranks = simulated(7, n_queries=30), [1, 2, 3, 4]
    counts = of_groups(groups)
    rng = np.random.default_rng(1)
    context = rng.normal(size=(30, 2))
    terms = linked_terms(counts, ranks)
    beta = rng.normal(size=(4, 3)) / 3
    rows = context[np.unique(counts.query)[terms.cluster]]

    def value(flat: list[float]) -> float:
        return oracles.contextual_value(groups, ranks, context.tolist(), np.reshape(flat, (4, 3)).tolist())

    found, gradient, minus_hessian = contextual_likelihood(terms, rows, beta)
    flat = beta.ravel().tolist()
    assert found == pytest.approx(value(flat), rel=1e-10)
    np.testing.assert_allclose(gradient.ravel(), oracles.differences(value, flat), atol=1e-4)
    step = 1e-5
    for i in range(12):
        ends = [
            contextual_likelihood(terms, rows, beta + sign * step * np.eye(12)[i].reshape(4, 3))[1] for sign in (1, -1)
        ]
        np.testing.assert_allclose(-(ends[0] - ends[1]).ravel() / (2 * step), minus_hessian[i], atol=1e-5)
    fit = contextual_curve(counts, context)
    slope = oracles.differences(value, fit.coefficients.ravel().tolist())
    np.testing.assert_allclose(slope[3:], 0, atol=1e-5)
    assert fit.coefficients[0].tolist() == [0, 0, 0]
    # The sandwich by hand, from the gradients of single queries.
    inverse = np.zeros((12, 12))
    _, _, h = contextual_likelihood(terms, rows, fit.coefficients)
    inverse[3:, 3:] = oracles.inverted(h[3:, 3:].tolist())
    influence = []
    for query in range(30):
        mine = {key: group for key, group in groups.items() if key[0] == query}
        score = oracles.differences(
            lambda at, mine=mine: oracles.contextual_value(
                mine, ranks, context.tolist(), np.reshape(at, (4, 3)).tolist()
            ),
            fit.coefficients.ravel().tolist(),
        )
        influence.append((inverse @ score).tolist())
    np.testing.assert_allclose(fit.covariance, oracles.outer_sum(influence, 30), rtol=1e-3, atol=1e-8)
    x = np.array([0.5, -1.0])
    curve = fit.at(x)
    design = np.array([1.0, *x])
    np.testing.assert_allclose(curve.log_ratio, fit.coefficients @ design, rtol=1e-12)
    blocks = fit.covariance.reshape(4, 3, 4, 3)
    np.testing.assert_allclose(curve.covariance, np.einsum("f,kfjg,g->kj", design, blocks, design), atol=1e-12)
    v = fit.coefficients[1:, 1:].ravel()
    keep = [3 * k + f for k in (1, 2, 3) for f in (1, 2)]
    statistic, df, p_value = fit.depends()
    assert statistic == pytest.approx(oracles.quadratic(v.tolist(), fit.covariance[np.ix_(keep, keep)].tolist()))
    assert (df, p_value) == (6, pytest.approx(oracles.chi_square_tail(statistic, 6)))


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([[1.0]] * 30, r"^context: column 0 is constant"),
        ([[float(q), 2.0 * q] for q in range(30)], r"^context: column 1 is constant, or follows"),
        ([[0.0]] * 3, r"^context: expected a row for each query up to 29, and a column at least, got \(3, 1\)"),
        ([[math.nan]] * 30, r"^context\[0, 0\] is nan"),
        ([0.0] * 30, r"^context: expected a row"),
    ],
)
def test_contexts_that_are_refused(context: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        contextual_curve(of_groups(simulated(7, n_queries=30)), context)


def test_a_context_that_splits_the_clicks() -> None:
    groups: Groups = {(q, 0, q): {1: (9, 5), 2: (9, 4 if q % 2 else 0)} for q in range(6)}
    with pytest.raises(ValueError, match=r"^counts: the likelihood has no finite maximum: with this context"):
        contextual_curve(of_groups(groups), [[q % 2] for q in range(6)])
    fit = contextual_curve(of_groups(simulated(7, n_queries=30)), np.random.default_rng(0).normal(size=(30, 1)))
    with pytest.raises(ValueError, match=r"^context: expected 1 finite numbers"):
        fit.at([1.0, 2.0])
