"""SVM PropRank against an independent quadratic program and against literal loops over pairs."""

import re
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import oracles
import pytest
from ranking_problems import PROBLEMS, Machine, interesting, log_of, machine, optimum, solve

import cfltr_core as cf
from cfltr_core.learning import hinge_solver
from cfltr_core.learning.enclosure import Slopes, gap_unit
from cfltr_core.learning.proprank import LinearFit, minimise, training_problem
from cfltr_core.learning.smoothed_hinge import Cost, Matrix

# Among the problems, those that the program itself cannot enclose to 1e-7: weights of 1e9 on an optimum that double
# precision then cannot express.  There the enclosure is all that can be asked for.
MOST_UNDECIDED = 3
# No problem here needs as many at a gap of 1e-8; a solver that does not close its gap ends with an error.
MOST_PASSES = 500


def fit(problem: Machine, tol: float = 1e-8, start: LinearFit | None = None, **changes) -> LinearFit:
    arguments = {"features": problem.features, "C": problem.C, **changes}
    return cf.fit_proprank(
        arguments["features"], log_of(problem), C=arguments["C"], gap=tol, start=start, max_passes=MOST_PASSES
    )


def squares(problem: Machine) -> float:
    """min ½‖w‖² + Σ_t c_t (S_t² / 2 + S_t), by cvxpy, stated in w times the size of the differences."""
    pairs = oracles.svm_pairs(problem.features, problem.offsets, problem.masses)
    d, term = np.array([x for x, _, _ in pairs]), np.array([t for _, _, t in pairs])
    c = np.array(list(problem.masses.values()))
    scale = 1 / np.abs(d).max()
    unit = max(1.0, float(c.max()) / scale**2)
    u, xi, total = cp.Variable(d.shape[1]), cp.Variable(len(term), nonneg=True), cp.Variable(len(c))
    gather = np.equal.outer(np.arange(len(c)), term).astype(float)
    root = np.sqrt(c / scale**2 / unit)
    objective = cp.sum_squares(u) / (2 * unit) + cp.sum_squares(cp.multiply(root, total)) / 2 + root**2 @ total
    program = cp.Problem(cp.Minimize(objective), [scale * d @ u >= 1 - xi, total == gather @ xi])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    literal = oracles.machine(
        problem.features,
        problem.offsets,
        problem.masses,
        scale * u.value,
        lambda r: (r - 1) ** 2 / 2 + (r - 1),
    )
    return literal


@pytest.mark.oracle("enclosure.Solution.gap", "enclosure.gap_unit")
def test_primal_and_dual_are_what_literal_loops_give() -> None:
    relative = 0
    for seed in range(40):
        problem = machine(seed)
        found = fit(problem)
        literal = oracles.machine(problem.features, problem.offsets, problem.masses, found.weights)
        np.testing.assert_allclose(found.primal, literal, rtol=1e-10, atol=0)
        at_zero = oracles.machine(problem.features, problem.offsets, problem.masses, 0 * found.weights)
        np.testing.assert_allclose(found.at_zero, at_zero, rtol=1e-12, atol=0)
        unit = min(literal, at_zero - found.dual)
        np.testing.assert_allclose(gap_unit(literal, found.dual, at_zero, 0.0), unit, rtol=1e-12)
        # Where no weights lower the machine's objective, the unit is as small as rounding: the difference is compared.
        np.testing.assert_allclose(found.gap * unit, max(literal - found.dual, 0), rtol=0, atol=1e-12 * at_zero)
        if unit > 1e-6 * at_zero:
            relative += 1
            assert abs(found.gap - max(literal - found.dual, 0) / unit) <= 1e-10
        assert found.gap <= 1e-8
        assert found.least == 0
        assert found.C == problem.C
    assert relative > 20  # the others are best at w = 0
    # P = 2, D = 1.5; P(0) = 9 or 1.75, and 1 of P that no weights remove.
    assert LinearFit(np.zeros(1), primal=2.0, dual=1.5, at_zero=9.0, least=0.0, passes=0.0, C=1.0).gap == 0.25
    assert LinearFit(np.zeros(1), primal=2.0, dual=1.5, at_zero=9.0, least=1.0, passes=0.0, C=1.0).gap == 0.5
    assert LinearFit(np.zeros(1), primal=2.0, dual=1.5, at_zero=2.5, least=0.0, passes=0.0, C=1.0).gap == 0.5
    assert LinearFit(np.zeros(1), primal=2.0, dual=2.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0).gap == 0.0


def nth_of_its_kind(row: np.ndarray) -> list[int]:
    """1 for the first of equal numbers, 2 for the second, …: a rank for each, as a log has no term twice."""
    return [int((row[: i + 1] == document).sum()) for i, document in enumerate(row)]


@pytest.mark.oracle("proprank.training_problem")
def test_repeated_clicks_count_in_one_term() -> None:
    """Every click a row of its own, at another rank with another propensity, against one row per document."""
    for seed in interesting(12):
        problem = machine(seed)
        n_queries = len(problem.offsets) - 1
        row = np.repeat(problem.document, problem.clicks)
        rng = np.random.default_rng(seed)
        rng.shuffle(row)
        propensity = rng.uniform(0.1, 1, size=len(row))
        single = cf.ClickLog(
            document=row, rank=nth_of_its_kind(row), impressions=np.ones(len(row)), clicks=np.ones(len(row)),
            propensity=propensity, sessions=np.full(n_queries, 999), offsets=problem.offsets,
        )  # fmt: skip
        masses = oracles.click_masses(row, [1] * len(row), propensity, problem.C)
        x, lists, mass = training_problem(problem.features, single, C=problem.C)
        assert lists.documents.tolist() == list(masses)
        np.testing.assert_allclose(mass, list(masses.values()), rtol=1e-13)
        np.testing.assert_array_equal(x, problem.features)
        found = cf.fit_proprank(problem.features, single, C=problem.C, gap=1e-8)
        best = solve(problem.features, problem.offsets, masses)
        assert abs(found.primal - best.upper) <= 1e-6 * best.upper


@pytest.mark.oracle("linear.LinearRanker", "linear.LinearRanker.decision_function")
def test_scores() -> None:
    rng = np.random.default_rng(0)
    for kind in (np.float64, np.float32, np.int64):
        x = (10 * rng.normal(size=(50, 4))).astype(kind)
        found = LinearFit(rng.normal(size=4), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
        assert isinstance(found, cf.LinearRanker)
        scores = found.decision_function(x)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, oracles.linear_scores(x.tolist(), found.weights), rtol=1e-13, atol=1e-13)
    assert repr(found) == "LinearFit(4 weights, C=1, relative gap 0.0e+00)"
    assert found.decision_function(np.zeros((0, 4))).shape == (0,)


@pytest.mark.oracle("smoothed_hinge.Matrix.largest", "smoothed_hinge.Matrix.times", "smoothed_hinge.Matrix.transposed")
def test_products_block_by_block() -> None:
    """Single precision features in double precision: never a copy of all, whatever the number of rows in a block."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 1 << 18)).astype(np.float32)
    w, rho = rng.normal(size=1 << 18), rng.normal(size=7)
    matrix = Matrix(x, double=True)
    assert 1 < matrix.rows < 7
    assert matrix.largest() == max(abs(float(value)) for value in x.ravel())
    np.testing.assert_allclose(matrix.times(w), oracles.linear_scores(x, w), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(matrix.transposed(rho), oracles.linear_scores(x.T, rho), rtol=1e-10, atol=1e-12)


def test_single_precision_features() -> None:
    """Single precision goes as far as its rounding is small against the gap; from there double, on the same numbers."""
    apart = 0
    for seed in interesting(20):
        problem = machine(seed)
        x = problem.features.astype(np.float32)
        best = solve(x.astype(np.float64), problem.offsets, problem.masses)
        fine = fit(problem, features=x)
        assert abs(fine.primal - best.upper) <= 1e-6 * best.upper
        coarse = fit(problem, 1e-3, features=x)
        literal = oracles.machine(x, problem.offsets, problem.masses, coarse.weights)
        assert best.lower * (1 - 1e-9) <= literal <= best.upper * (1 + 2e-3)
        close = 0.1 * 1e-3 * min(literal, coarse.at_zero - coarse.dual)
        apart += 0 < coarse.primal - coarse.dual < 8 * float(np.finfo(np.float32).eps) * coarse.primal
        assert abs(coarse.primal - literal) <= close
        assert coarse.dual <= best.upper + close
        whole = fit(problem, 1e-3, features=np.round(problem.features).astype(int))
        assert whole.primal == fit(problem, 1e-3, features=np.round(problem.features)).primal
    assert apart > 0  # bounds so near each other are one number in double precision only


@pytest.mark.oracle("proprank.minimise", "hinge_solver.solve")
def test_any_convex_cost_of_the_hinge_sum() -> None:
    """κ(S) = S² / 2 + S against a second-order cone program."""
    for seed in interesting(12):
        problem = machine(seed)
        x, lists, mass = training_problem(problem.features, log_of(problem), C=problem.C)
        cost = Cost(lambda s: s**2 / 2 + s, lambda s: s + 1)
        found = minimise(x, lists, mass, problem.C, 1e-7, None, 4 * MOST_PASSES, cost)
        literal = oracles.machine(
            x, problem.offsets, problem.masses, found.weights, lambda r: (r - 1) ** 2 / 2 + (r - 1)
        )
        np.testing.assert_allclose(found.primal, literal, rtol=1e-9)
        assert found.gap <= 1e-7
        np.testing.assert_array_equal(hinge_solver.solve(x, lists, mass, 1e-7, cost=cost).weights, found.weights)
        best = squares(problem)
        assert abs(found.primal - best) <= 1e-5 * best
        assert found.dual <= best * (1 + 1e-5)


def test_a_loose_gap_encloses_the_optimum_too() -> None:
    for seed in range(0, 120, 2):
        problem, best = machine(seed), optimum(seed)
        for tol in (0.3, 0.01, 1e-3, 1e-5):
            found = fit(problem, tol)
            assert found.dual <= best.upper * (1 + 1e-9)
            assert best.lower * (1 - 1e-9) <= found.primal
            at_zero = problem.primal(0 * found.weights)
            assert 0 <= found.primal - found.dual <= tol * found.primal
            assert found.primal - found.dual <= tol * (at_zero - found.dual) + 1e-13 * at_zero
            # Of what any weights can gain over w = 0, all but the tolerance is gained.
            assert at_zero - found.primal >= (1 - tol) * (at_zero - best.upper) - 1e-9 * at_zero
            np.testing.assert_allclose(found.primal, problem.primal(found.weights), rtol=1e-9)


@pytest.mark.oracle("proprank.fit_proprank")
def test_the_optimum_is_that_of_a_quadratic_program() -> None:
    undecided = []
    for seed in PROBLEMS:
        problem, best = machine(seed), optimum(seed)
        found = cf.fit_proprank(
            problem.features, log_of(problem), C=problem.C, gap=1e-8, start=None, max_passes=MOST_PASSES
        )
        literal = oracles.machine(problem.features, problem.offsets, problem.masses, found.weights)
        where = f"problem {seed}, {problem.kind}, C={problem.C:g}"
        # Any weights are above every lower bound, whoever found them.
        assert found.dual <= best.upper * (1 + 1e-6), where
        assert best.lower <= literal * (1 + 1e-6), where
        assert found.primal - found.dual <= 1e-8 * found.primal, where
        if best.upper - best.lower > 1e-7 * best.upper:
            undecided.append(seed)
            continue
        assert abs(found.primal - best.upper) <= 1e-6 * max(best.upper, 1e-12), where
        assert abs(literal - best.upper) <= 1e-6 * max(best.upper, 1e-12), where
    assert len(undecided) <= MOST_UNDECIDED, undecided


def test_a_warm_start_changes_the_way_and_not_the_end() -> None:
    for seed in interesting(25):
        problem, best = machine(seed), optimum(seed)
        cold = fit(problem)
        none = np.zeros(0, dtype=int)
        elsewhere = replace(cold, weights=10 * np.ones_like(cold.weights), slopes=Slopes(none, none, 1e-3, ()))
        for start in (cold, elsewhere, fit(problem, 1e-3, C=3 * problem.C)):
            warm = fit(problem, start=start)
            assert abs(warm.primal - best.upper) <= 1e-6 * best.upper
            np.testing.assert_allclose(warm.primal, problem.primal(warm.weights), rtol=1e-10)
        # Never worse than where it began, however loose the gap.
        loose = fit(problem, 0.9, start=cold)
        assert loose.primal <= cold.primal * (1 + 1e-12)


def test_with_a_small_c_cold_and_warm_agree() -> None:
    """Both have learnt, and rank alike as far as their certificates reach.

    ½‖w − w*‖² ≤ P(w) − P* ≤ P − D, as P is strongly convex: two fits are at most √(2 gap₁) + √(2 gap₂) apart.
    """
    decided = pairs = 0
    for seed in interesting(25):
        problem = machine(seed)
        for C, kind in ((1e-4, np.float64), (1e-9, np.float64), (1e-4, np.float32)):
            x = (problem.features / np.abs(problem.features).max()).astype(kind)
            masses = {d: c * C / problem.C for d, c in problem.masses.items()}
            best = solve(x.astype(np.float64), problem.offsets, masses)
            above = fit(problem, 1e-3, C=10 * C, features=x)
            cold, warm = (fit(problem, 1e-3, start, C=C, features=x) for start in (None, above))
            at_zero = oracles.machine(x, problem.offsets, masses, 0 * cold.weights)
            for found in (cold, warm):
                literal = oracles.machine(x, problem.offsets, masses, found.weights)
                assert at_zero - literal >= 0.998 * (at_zero - best.upper), (seed, C)
                assert found.gap <= 1e-3
            # Both bounds are right up to a few units of rounding of their size.
            digits = 16 * float(np.finfo(kind).eps) * at_zero
            reach = sum(np.sqrt(2 * (found.primal - found.dual + digits)) for found in (cold, warm))
            assert np.linalg.norm(cold.weights - warm.weights) <= reach
            for d, _, _ in oracles.svm_pairs(x, problem.offsets, masses):
                one, other = float(np.dot(d, cold.weights)), float(np.dot(d, warm.weights))
                pairs += 1
                if abs(one) > reach * float(np.linalg.norm(d)):
                    decided += 1
                    assert one * other > 0
    assert decided > 0.5 * pairs


def test_where_nothing_can_be_gained_the_gap_is_0() -> None:
    problem = machine(2)
    assert problem.kind == "all equal"
    for kind in (np.float64, np.float32):
        for C in (1e-4, 1.0, 1e4):
            found = fit(problem, 1e-3, C=C, features=problem.features.astype(kind))
            assert found.gap == 0
            assert found.passes < 20
            np.testing.assert_allclose(found.primal, found.at_zero, rtol=1e-12)
    # Clicks on documents without a rival.
    alone = machine(5)
    assert alone.kind == "only candidates"
    assert (fit(alone).gap, fit(alone).primal, fit(alone).dual) == (0, 0, 0)


def test_too_few_passes_are_an_error_with_the_gap_reached() -> None:
    problem = machine(PROBLEMS[0])
    told = r"relative gap (.*) after 1. passes, not the 1\.0e-12 asked for: raise gap"
    with pytest.raises(RuntimeError, match=told) as found:
        cf.fit_proprank(problem.features, log_of(problem), C=problem.C, gap=1e-12, max_passes=14)
    # Two digits are printed; asked for that much, as many passes are enough.
    reached = float(re.match(told, str(found.value))[1])
    enough = cf.fit_proprank(problem.features, log_of(problem), C=problem.C, gap=1.1 * reached, max_passes=14)
    assert 0.9 * reached <= enough.gap <= 1.1 * reached


@pytest.mark.parametrize("seed", [1, 6, 13])
def test_a_huge_c_in_single_precision_ends_in_double(seed: int) -> None:
    # Where the way down is hidden by the rounding of single precision, the search finds no step that helps: these three
    # went on to the last of 5,000 passes.  Here C weighs 1e9 times as much as ‖w‖², on 150 clicks that contradict.
    rng = np.random.default_rng(seed)
    queries, length, features = 60, 20, 8
    x = rng.normal(size=(queries * length, features)).astype(np.float32)
    rng.normal(size=features + queries * length)  # drawn once for labels; these logs were found with it
    document = np.sort(rng.choice(len(x), 150, replace=False))
    rank = rng.integers(1, length + 1, 150)
    log = cf.ClickLog(
        document=document, rank=rank, impressions=np.full(150, 4), clicks=rng.integers(1, 4, 150), propensity=1 / rank,
        sessions=np.full(queries, 4), offsets=np.arange(0, len(x) + 1, length),
    )  # fmt: skip
    found = cf.fit_proprank(x, log, C=1e9, gap=1e-3, max_passes=MOST_PASSES)
    masses = dict(zip(document.tolist(), (1e9 * log.mass).tolist(), strict=True))
    literal = oracles.machine(x.astype(float), log.offsets, masses, found.weights)
    np.testing.assert_allclose(found.primal, literal, rtol=1e-10)
    assert 0 < found.dual <= literal * (1 + 1e-12)
    assert found.gap <= 1e-3
