"""A fit may begin with one of another log: what encloses the optimum is then that of the new log, whatever the old."""

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_problems import Machine, Optimum, log_of, solve

from cfltr_core import fit_propdcg, fit_proprank
from cfltr_core.learning.bounds import ClickedLists
from cfltr_core.learning.enclosure import Slopes
from cfltr_core.learning.proprank import LinearFit


def one_click_each(clicked: np.ndarray, n_lists: int, C: float) -> Machine:
    """Lists of ten, five features, one click on one document of each list."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10 * n_lists, 5))
    clicks = np.zeros(len(x), dtype=int)
    clicks[10 * np.arange(n_lists) + clicked] = 1
    return Machine("one click each", x, 10 * np.arange(n_lists + 1), clicks, np.full(len(x), 0.5), C)


def fit(problem: Machine, tol: float = 1e-3, start: LinearFit | None = None) -> LinearFit:
    return fit_proprank(problem.features, log_of(problem), C=problem.C, gap=tol, start=start)


def enclosed(problem: Machine, found: LinearFit, best: Optimum) -> bool:
    """P of the weights ≥ optimum ≥ D, and P is what literal loops give; ``best`` encloses the optimum by a program."""
    np.testing.assert_allclose(found.primal, problem.primal(found.weights), rtol=1e-9, atol=1e-12)
    return best.lower * (1 - 1e-9) <= found.primal and found.dual <= best.upper * (1 + 1e-9)


def test_the_same_shapes_but_other_documents() -> None:
    """Slopes of the first log, taken as they stand, gave a lower bound of 439.7 on an optimum of 432.94."""
    for seed in range(10):
        first, second = np.random.default_rng(seed).integers(10, size=(2, 40))
        yesterday, today = (one_click_each(clicked, 40, 10.0) for clicked in (first, second))
        start, best = fit(yesterday), solve(today.features, today.offsets, today.masses)
        assert best.upper - best.lower <= 1e-6 * best.upper
        warm = fit(today, start=start)
        assert enclosed(today, warm, best)
        assert warm.primal >= warm.dual
        # Were slopes of the first log to come under the name of the second, the bounds would cross, and that is seen.
        assert start.slopes is not None
        forged = replace(start, slopes=replace(start.slopes, documents=np.flatnonzero(today.clicks)))
        with pytest.raises(RuntimeError, match="is above the objective"):
            fit(today, 1e-9, forged)


def test_within_one_log_the_slopes_are_taken_over() -> None:
    problem = one_click_each(np.random.default_rng(0).integers(10, size=40), 40, 10.0)
    cold = fit(problem, 1e-6)
    # Weights alone do not have the certificate.
    weights_alone = fit(problem, 1e-6, replace(cold, slopes=None))
    again = fit(problem, 1e-6, cold)
    assert again.passes < 0.5 * weights_alone.passes
    assert again.primal <= cold.primal
    # Where slopes are no longer cut into the same blocks they are left.
    assert isinstance(cold.slopes, Slopes)
    parts = replace(cold.slopes, centres=cold.slopes.centres[:-1])
    assert fit(problem, 1e-6, replace(cold, slopes=parts)).gap <= 1e-6


@pytest.mark.oracle("enclosure.Slopes.belong_to")
def test_slopes_belong_to_the_lists_with_the_same_pairs() -> None:
    """Six documents, cut and clicked in every one of several ways."""
    cuts = [[0, 3, 6], [0, 2, 6], [0, 6], [0, 1, 2, 6]]
    clicked = [[1, 4], [1, 3], [1, 2], [1, 2, 4], [0, 5]]
    ways = [(c, d) for c in cuts for d in clicked]
    pairs = [[(d, y) for d in documents for y in oracles.rivals(offsets, d)] for offsets, documents in ways]
    for (offsets, documents), ours in zip(ways, pairs, strict=True):
        lists = ClickedLists(np.array(offsets), np.array(documents))
        centres = tuple(np.zeros(shape, np.float32) for shape in lists.shapes)
        slopes = Slopes(lists.offsets, lists.documents, 1.0, centres)
        for (other_offsets, other_documents), theirs in zip(ways, pairs, strict=True):
            other = ClickedLists(np.array(other_offsets), np.array(other_documents))
            if slopes.belong_to(other):
                assert ours == theirs
        assert slopes.belong_to(ClickedLists(np.array(offsets), np.array(documents)))


@dataclass(frozen=True)
class Pair:
    """Two logs over the same documents."""

    first: Machine
    second: Machine
    tol: float
    rounds: bool


@st.composite
def pairs_of_logs(draw: st.DrawFn) -> Pair:
    """Repeated clicks, ties, equal documents; often logs whose lists and numbers of clicked documents are the same."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    n = sum(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(n, draw(st.integers(1, 4))))
    x = draw(st.sampled_from([x, np.round(x), np.round(x / 4), 10 * x, 0.1 * x]))
    logs = []
    clicks = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=n, max_size=n))
    clicks[0] += sum(clicks) == 0
    for other in (False, True):
        if other and draw(st.booleans()):
            sizes = draw(st.permutations(sizes))
        offsets = np.array([0, *accumulate(sizes)])
        if other and draw(st.booleans()):
            clicks = [c for a, b in pairwise(offsets) for c in draw(st.permutations(clicks[a:b]))]
        elif other:
            clicks = draw(st.permutations(clicks))
        propensity = rng.choice([1e-3, 0.1, 0.5, 1.0], size=n)
        C = draw(st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3]))
        logs.append(Machine("pair", x, offsets, np.array(clicks), propensity, C))
    return Pair(*logs, draw(st.sampled_from([0.1, 1e-3, 1e-6])), draw(st.booleans()))


@settings(max_examples=100)
@given(pair=pairs_of_logs())
def test_any_fit_of_any_log_is_a_start(pair: Pair) -> None:
    learn = fit_propdcg if pair.rounds else fit_proprank
    first, second = pair.first, pair.second
    start = learn(first.features, log_of(first), C=first.C)
    best = solve(second.features, second.offsets, second.masses)
    warm, cold = fit(second, pair.tol, start), fit(second, pair.tol)
    for found in (warm, cold):
        assert enclosed(second, found, best)
        assert found.primal >= found.dual
        assert 0 <= found.gap <= pair.tol
