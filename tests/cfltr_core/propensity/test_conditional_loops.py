"""The stratified regression of any design against loops over strata; its maximum against Zermelo's iteration."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refuses
from strata_logs import drawn, of_groups

from cfltr_core.propensity import conditional_poisson as conditional
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import by_rank, conditional_poisson, stratified, wald_tail
from cfltr_core.propensity.contextual import contextual_curve
from cfltr_core.propensity.curves import clustered_covariance
from cfltr_core.propensity.halves import same_curve
from cfltr_core.propensity.shrinkage import SPREADS, shrunk_power
from cfltr_core.propensity.strata import DisplayCounts

Groups = dict[tuple[int, int, int], oracles.Stratum]
CELL = st.tuples(st.integers(3, 9), st.integers(0, 3))
GROUPS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.just(0), st.integers(0, 2)),
    st.dictionaries(st.integers(1, 4), CELL, min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


def simulated(seed: int, n_queries: int = 12, theta: tuple[float, ...] = (1, 1 / 2, 1 / 3, 1 / 4)) -> Groups:
    law = lambda k, attraction: attraction * theta[k - 1]  # noqa: E731
    return drawn(seed, n_queries=n_queries, n_ranks=len(theta), law=law)


@pytest.mark.oracle("conditional_poisson.by_rank", "conditional_poisson.StratifiedPoisson.sums",
                    "conditional_poisson.StratifiedPoisson.likelihood")  # fmt: skip
@given(groups=GROUPS, ranks=st.sets(st.integers(1, 4), min_size=1).map(sorted), data=st.data())
def test_likelihood(groups: Groups, ranks: list[int], data: st.DataObject) -> None:
    counts = of_groups(groups)
    assume(max(ranks) <= counts.n_ranks)
    speaking = oracles.speaking([group for _, group in sorted(groups.items())], ranks)
    terms = by_rank(counts, ranks)
    found = [
        {ranks[terms.column[t, 0]]: (terms.impressions[t], terms.clicks[t]) for t in range(low, high)}
        for low, high in itertools.pairwise(terms.start.tolist())
    ]
    assert found == [dict(sorted(group.items())) for group in speaking]
    clicks = [[group.get(k, (0, 0))[1] for k in ranks] for group in speaking]
    assert terms.sums(terms.clicks, terms.stratum, n_rows=len(speaking)).tolist() == clicks
    u = {k: data.draw(st.floats(-2, 2)) for k in ranks}
    value, gradient, minus_hessian = terms.likelihood(np.array(list(u.values())))
    assert value == pytest.approx(oracles.conditional_value(speaking, u), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(gradient, oracles.conditional_gradient(speaking, u, ranks), atol=1e-11)
    np.testing.assert_allclose(minus_hessian, oracles.conditional_curvature(speaking, u, ranks), atol=1e-11)


@pytest.mark.parametrize("cells", [1, 8, 1 << 17])
@pytest.mark.parametrize("empty", [0, 8])
def test_blocks_and_sparse_tables_make_no_difference(cells: int, empty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, ranks = simulated(4), [1, 2, 3, 4]
    terms, at = by_rank(of_groups(groups), ranks), (np.zeros(4), np.eye(4))
    noise = terms.noise(*at)
    monkeypatch.setattr(conditional, "CELLS", cells)
    monkeypatch.setattr(conditional, "MOST_EMPTY", empty)
    monkeypatch.setattr(conditional, "STRATA", cells)
    u = dict.fromkeys(ranks, 0.0)
    expected = oracles.conditional_curvature(oracles.speaking(list(groups.values()), ranks), u, ranks)
    np.testing.assert_allclose(terms.likelihood(at[0])[2], expected, atol=1e-10)
    np.testing.assert_allclose(terms.noise(*at), noise, rtol=1e-12)


# What `stratified` takes, and the value of one query, or of all.
Design = tuple[dict, Callable[[list[float], int | None], float]]


def by_context() -> Design:
    """log θ_k(q) = u_k + v_k · x_q of four ranks and two features."""
    groups, context = simulated(7, n_queries=15), np.random.default_rng(1).normal(size=(15, 2))
    counts = of_groups(groups)

    def value(flat: list[float], query: int | None) -> float:
        mine = {key: group for key, group in groups.items() if query in (key[0], None)}
        return oracles.contextual_value(mine, [1, 2, 3, 4], context.tolist(), np.reshape(flat, (4, 3)).tolist())

    columns = 3 * (counts.rank - 1)[:, None] + [0, 1, 2]
    values = np.concatenate([np.ones((len(counts.rank), 1)), context[counts.query]], axis=1)
    return {"counts": counts, "column": columns, "value": values, "size": 12, "held": 3}, value


def by_pages() -> Design:
    """u_k + δ z of three ranks: documents on six pages, at some ranks more than once."""
    rng = np.random.default_rng(2)
    query, document, page = np.indices((8, 2, 6)).reshape(3, -1)
    place, z, shown = rng.integers(0, 3, len(page)), rng.random(len(page)), rng.integers(5, 40, len(page))
    clicks = rng.binomial(shown, 0.6 / (1 + place))
    rows = list(zip(zip(query, document, strict=True), place + 1, z, shown, clicks, strict=True))

    def value(flat: list[float], which: int | None) -> float:
        return oracles.above_value([row for row in rows if which in (row[0][0], None)], flat[:3], flat[3])

    counts = DisplayCounts(query=query, document=document, rank=page + 1, impressions=shown, clicks=clicks)
    columns, values = np.stack([place, np.full_like(place, 3)], axis=1), np.stack([np.ones_like(z), z], axis=1)
    return {"counts": counts, "column": columns, "value": values, "size": 4, "held": 1}, value


@pytest.mark.oracle("conditional_poisson.stratified", "conditional_poisson.StratifiedPoisson.fit",
                    "conditional_poisson.StratifiedPoisson.covariance")  # fmt: skip
@pytest.mark.parametrize("design", [by_context, by_pages])
@pytest.mark.parametrize("weight", [0.0, 3.0], ids=["free", "penalised"])
def test_designs(design: Callable[[], Design], weight: float) -> None:
    """Of any design: derivatives by differences, the maximum where they vanish, the sandwich query by query."""
    given, value = design()
    terms = stratified(use=np.ones(len(given["column"]), dtype=bool), **given)
    p = terms.size
    penalty = weight * np.eye(p) if weight else None

    def penalised(flat: list[float]) -> float:
        return value(flat, None) - weight / 2 * math.fsum(b * b for b in flat)

    flat = np.random.default_rng(3).normal(size=p) / 3
    found, gradient, minus_hessian = terms.likelihood(flat, penalty)
    assert found == pytest.approx(penalised(flat.tolist()), rel=1e-10)
    np.testing.assert_allclose(gradient, oracles.differences(penalised, flat.tolist()), atol=1e-4)
    step = 1e-5 * np.eye(p)
    numeric = [terms.likelihood(flat - e, penalty)[1] - terms.likelihood(flat + e, penalty)[1] for e in step]
    np.testing.assert_allclose(minus_hessian, np.array(numeric) / 2e-5, atol=1e-5)
    beta, inverse = terms.fit(penalty=penalty)
    assert not beta[: terms.held].any()
    slope = oracles.differences(penalised, beta.tolist())
    np.testing.assert_allclose(slope[terms.held :], 0, atol=1e-5)
    free = slice(terms.held, None)
    expected = np.zeros((p, p))
    expected[free, free] = oracles.inverted(terms.likelihood(beta, penalty)[2][free, free].tolist())
    np.testing.assert_allclose(inverse, expected, rtol=1e-8, atol=1e-12)
    scores = [oracles.differences(lambda at, q=q: value(at, q), beta.tolist()) for q in range(terms.n_queries)]
    spread = oracles.outer_sum([(expected @ score).tolist() for score in scores], terms.n_queries)
    np.testing.assert_allclose(terms.covariance(beta, inverse), spread, rtol=1e-3, atol=1e-8)


@pytest.mark.oracle("conditional_poisson.conditional_poisson", "curves.clustered_covariance")
@pytest.mark.parametrize("seed", range(4))
def test_estimate_and_covariance(seed: int) -> None:
    groups, ranks = simulated(seed), [1, 2, 3, 4]
    curve = conditional_poisson(of_groups(groups))
    u = oracles.conditional_fit(oracles.speaking(list(groups.values()), ranks), ranks)
    np.testing.assert_allclose(curve.log_ratio, list(u.values()), atol=1e-9)
    expected = oracles.sandwich(groups, u, ranks)
    np.testing.assert_allclose(curve.covariance, expected, rtol=1e-6, atol=1e-12)
    rows = np.random.default_rng(seed).normal(size=(5, 3))
    np.testing.assert_allclose(clustered_covariance(rows, 5), oracles.outer_sum(rows.tolist(), 5), rtol=1e-12)
    assert np.isnan(clustered_covariance(rows, 1)).all()


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
    refuses("function:", maximise, lambda u: (0.0, np.zeros(1), np.zeros((1, 1))), np.zeros(1), free=np.array([True]))


@pytest.mark.oracle("halves.same_curve", "conditional_poisson.wald_tail")
@pytest.mark.parametrize("n_ranks", [3, 4])
def test_two_halves(n_ranks: int) -> None:
    groups, ranks = simulated(3, theta=tuple(1 / k for k in range(1, n_ranks + 1))), list(range(1, n_ranks + 1))
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
    noise = np.zeros((1 + max(influence), n_ranks))
    for side, u in zip(sides, fits, strict=True):
        # A document in two periods is two strata.
        rows = [(q, 100 * d + t, k, n, c) for (q, t, d), group in side.items() for k, (n, c) in group.items()]
        noise += np.array(oracles.query_noise(rows, [math.exp(x) for x in u.values()], len(noise)))
    worth = float(np.mean(oracles.effective_queries(noise[:, 1:].tolist())))
    assert test.queries == pytest.approx(worth, rel=1e-6)
    tail = oracles.hotelling_tail(statistic, test.df, worth)
    assert [test.p_value, wald_tail(statistic, test.df, worth)] == pytest.approx([tail] * 2, rel=1e-6)
    np.testing.assert_allclose(test.first.log_ratio, list(fits[0].values()), atol=1e-8)
    np.testing.assert_allclose(test.second.log_ratio, list(fits[1].values()), atol=1e-8)
    split = np.zeros(len(counts.rank), dtype=bool)
    split[0] = True
    refuses("half: document 0 has terms in both halves", same_curve, counts, split)
    refuses("half: expected True or False for each of", same_curve, counts, np.ones(len(split), dtype=bool))
    two = {"query": [0] * 4, "document": [0, 0, 1, 1], "rank": [1, 2] * 2, "impressions": [9] * 4}
    few = DisplayCounts(**two, clicks=[6, 3, 4, 2])
    refuses("counts: the log amounts to 1 queries of equal weight, too few to", same_curve, few, few.document % 2 == 0)


@pytest.mark.oracle("shrinkage.shrunk_power")
@pytest.mark.parametrize("theta", [(1, 1 / 2, 1 / 3, 1 / 4), (1.0, 0.9, 0.2, 0.1)], ids=["a power", "a fold"])
def test_shrunk(theta: tuple[float, ...]) -> None:
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
    inverse = by_rank(counts, ranks).fit()[1]
    assert (np.diag(curve.covariance) <= np.diag(inverse) * 1.1).all()


@pytest.mark.oracle("contextual.contextual_curve", "contextual.ContextualCurve.at",
                    "contextual.ContextualCurve.depends")  # fmt: skip
def test_contextual() -> None:
    groups, ranks = simulated(7, n_queries=30), [1, 2, 3, 4]
    counts, context = of_groups(groups), np.random.default_rng(1).normal(size=(30, 2))
    fit = contextual_curve(counts, context)
    terms = by_rank(counts, ranks, context[counts.query])
    beta, inverse = terms.fit()
    np.testing.assert_allclose(fit.coefficients.ravel(), beta, rtol=1e-12)
    slope = oracles.differences(
        lambda at: oracles.contextual_value(groups, ranks, context.tolist(), np.reshape(at, (4, 3)).tolist()),
        beta.tolist(),
    )
    np.testing.assert_allclose(slope[3:], 0, atol=1e-5)
    np.testing.assert_allclose(fit.covariance, terms.covariance(beta, inverse), rtol=1e-12)
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
    ("start", "context"),
    [
        ("context: column 0 is constant", [[1.0]] * 30),
        ("context: column 1 is constant, or follows", [[float(q), 2.0 * q] for q in range(30)]),
        ("context: expected a row for each query up to 29, got (3, 1)", [[0.0]] * 3),
        ("context[0, 0] is nan", [[math.nan]] * 30),
        ("context: expected shape (n_docs, n_features)", [0.0] * 30),
    ],
)
def test_contexts_that_are_refused(start: str, context: list) -> None:
    refuses(start, contextual_curve, of_groups(simulated(7, n_queries=30)), context)


def test_a_context_that_splits_the_clicks() -> None:
    groups: Groups = {(q, 0, q): {1: (9, 5), 2: (9, 4 if q % 2 else 0)} for q in range(6)}
    refuses("counts: the likelihood has no finite", contextual_curve, of_groups(groups), [[q % 2] for q in range(6)])
    fit = contextual_curve(of_groups(simulated(7, n_queries=30)), np.random.default_rng(0).normal(size=(30, 1)))
    refuses("context: expected shape (1,)", fit.at, [1.0, 2.0])
