"""Surrogate bounds on arbitrary lists: they bound every kind of rank, and their gradients are right everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import oracles
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import SMOOTH, TIED, offsets

from cfltr_core import RankWeight, bound_loss, dcg, ranks, rbp, surrogate_ranks
from cfltr_core.learning import bounds

# Halves are exact, so that gaps of exactly 1 (the kink) and of 0 (a tie) both occur.
HALVES = st.integers(-4, 4).map(lambda i: i / 2)
FAR = st.sampled_from([-1e4, -0.5, 0.0, 0.5, 1e4])
LAMBDAS = {
    "average rank": (None, oracles.average_rank, lambda r: 1.0),
    "DCG": (dcg(), oracles.dcg, oracles.dcg_slope),
    "RBP": (rbp(0.5), oracles.rbp(0.5), lambda r: 0.5 * math.log(2) * 0.5 ** (r - 1)),
    "square": (
        RankWeight("r²", np.square, larger_is_better=False, derivative=lambda r: 2 * r),
        lambda r: r**2,
        lambda r: 2 * r,
    ),
}
LAMBDA = st.sampled_from(sorted(LAMBDAS))


@dataclass(frozen=True)
class Clicked:
    offsets: list[int]
    scores: list[float]
    documents: list[int]
    weights: list[float]
    form: tuple[str, float, float]


@st.composite
def clicked(draw: st.DrawFn, kinds: tuple[st.SearchStrategy[float], ...] = (TIED, HALVES, FAR, SMOOTH)) -> Clicked:
    cuts = draw(offsets())
    kind = draw(st.sampled_from(kinds))
    scores = draw(st.lists(kind, min_size=cuts[-1], max_size=cuts[-1]))
    # Any order, several of one list, one twice.
    documents = draw(st.lists(st.integers(0, cuts[-1] - 1), max_size=6))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1e4]), min_size=len(documents), max_size=len(documents)))
    hinges = st.sampled_from([0.0, 0.25, 1.0, 2.0]).map(lambda mu: ("hinge", 1.0, mu))
    logistics = st.sampled_from([0.5, 1.0, 4.0]).map(lambda sigma: ("logistic", sigma, 0.0))
    return Clicked(cuts, scores, documents, weights, draw(st.one_of(hinges, logistics)))


def form_of(form: tuple[str, float, float]) -> dict[str, object]:
    """The arguments that a form of the surrogate stands for."""
    return dict(zip(("surrogate", "sigma", "smoothing"), form, strict=True))


def terms(problem: Clicked) -> np.ndarray:
    return np.array(problem.documents, dtype=int)


@given(problem=clicked())
def test_the_bound_holds_for_every_kind_of_rank(problem: Clicked) -> None:
    found = surrogate_ranks(problem.scores, problem.offsets, documents=terms(problem), **form_of(problem.form))
    expected = oracles.surrogate_sums(problem.scores, problem.offsets, problem.documents, *problem.form)
    np.testing.assert_allclose(found, 1 + np.array(expected), rtol=1e-12, atol=1e-12)
    assert np.isfinite(found).all()
    worst = oracles.ranks(problem.scores, problem.offsets, "pessimistic")
    size = 1 + max(map(abs, problem.scores))
    for kind in ("optimistic", "average", "pessimistic", "random"):
        rank = ranks(problem.scores, problem.offsets, ties=kind, rng=np.random.default_rng(0))
        # A difference of scores is rounded by 2⁻⁵³ of their size.
        assert (rank[terms(problem)] <= found + 1e-14 * size).all()
    assert all(worst[d] <= b + 1e-14 * size for d, b in zip(problem.documents, found, strict=True))


@given(problem=clicked(), name=LAMBDA)
def test_the_bound_on_a_risk(problem: Clicked, name: str) -> None:
    """Σ weight · λ(rank) ≤ Σ weight · λ(1 + S), with the value and gradient of literal loops, all finite."""
    lam, literal, slope = LAMBDAS[name]
    found = bound_loss(
        problem.scores,
        problem.offsets,
        documents=terms(problem),
        weights=problem.weights,
        metric=lam,
        **form_of(problem.form),
    )
    value, gradient = oracles.bound(
        problem.scores, problem.offsets, problem.documents, problem.weights, literal, slope, *problem.form
    )
    # The pair of a document with itself is taken out again: rounding is relative to the weights.
    largest = 1 + max(map(abs, gradient)) + sum(problem.weights)
    np.testing.assert_allclose(found.value, value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11, atol=1e-13 * largest)
    assert np.isfinite(found.gradient).all()
    sums = oracles.segment_sum(found.gradient, problem.offsets)
    np.testing.assert_allclose(sums, 0, atol=1e-12 * largest)
    worst = oracles.ranks(problem.scores, problem.offsets, "pessimistic")
    risk = math.fsum(c * literal(worst[d]) for d, c in zip(problem.documents, problem.weights, strict=True))
    assert risk <= found.value + 1e-12 * (1 + abs(found.value) + sum(problem.weights))


@given(problem=clicked((SMOOTH,)), name=LAMBDA, seed=st.integers(0, 99))
def test_the_gradient_is_that_of_finite_differences(problem: Clicked, name: str, seed: int) -> None:
    lam = LAMBDAS[name][0]
    s = np.array(problem.scores)
    kind, _, smoothing = problem.form
    if kind == "hinge":
        # The hinge has its kink at a gap of 1, the smoothed one a jump of its second derivative at 1 ± μ/2.
        gaps = [s[d] - s[y] for d in problem.documents for y in oracles.rivals(problem.offsets, d)]
        assume(all(abs(abs(g - 1) - smoothing / 2) > 1e-4 for g in gaps))
    weights = np.minimum(problem.weights, 1.0)
    direction = np.random.default_rng(seed).normal(size=len(s))
    direction /= np.abs(direction).max()

    def at(step: float) -> float:
        return bound_loss(
            s + step * direction,
            problem.offsets,
            documents=terms(problem),
            weights=weights,
            metric=lam,
            **form_of(problem.form),
        ).value

    found = bound_loss(
        s, problem.offsets, documents=terms(problem), weights=weights, metric=lam, **form_of(problem.form)
    )
    expected = (4 * (at(1e-5) - at(-1e-5)) / 2e-5 - (at(2e-5) - at(-2e-5)) / 4e-5) / 3
    assert abs(float(found.gradient @ direction) - expected) <= 1e-6 * (1 + abs(found.value) + abs(expected))


@given(problem=clicked((HALVES, TIED, FAR)), seed=st.integers(0, 99))
def test_at_a_kink_the_gradient_is_a_subgradient(problem: Clicked, seed: int) -> None:
    """For λ(r) = r the bound is convex: F(s') ≥ F(s) + g·(s' − s) for every s'."""
    found = bound_loss(
        problem.scores, problem.offsets, documents=terms(problem), weights=problem.weights, **form_of(problem.form)
    )
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.5, 5.0, 1e4):
        step = size * rng.normal(size=len(problem.scores))
        there = bound_loss(
            np.add(problem.scores, step),
            problem.offsets,
            documents=terms(problem),
            weights=problem.weights,
            **form_of(problem.form),
        )
        below = found.value + float(found.gradient @ step)
        assert there.value >= below - 1e-12 * (1 + there.value + found.value + np.abs(found.gradient) @ np.abs(step))


@given(problem=clicked(), name=LAMBDA, block=st.integers(1, 30))
def test_blocks_change_nothing(problem: Clicked, name: str, block: int) -> None:
    lam = LAMBDAS[name][0]
    given = (problem.scores, problem.offsets)
    named = {"documents": terms(problem), "weights": problem.weights, "metric": lam, **form_of(problem.form)}
    whole, usual = bound_loss(*given, **named), bounds.BLOCK
    try:
        bounds.BLOCK = block
        parts = bound_loss(*given, **named)
    finally:
        bounds.BLOCK = usual
    np.testing.assert_array_equal(parts.ranks, whole.ranks)
    assert parts.value == whole.value
    np.testing.assert_allclose(parts.gradient, whole.gradient, rtol=1e-13, atol=1e-13 * (1 + abs(whole.value)))


@st.composite
def dense(draw: st.DrawFn) -> Clicked:
    """Up to 40 clicked documents in lists of up to 12, with ties, kinks, and gaps of 1e-9, 1 and 1e4 in one list."""
    cuts = draw(offsets(12))
    some = st.sampled_from([TIED, HALVES, FAR, SMOOTH, st.one_of(FAR, SMOOTH), st.one_of(FAR, st.just(1e-9), TIED)])
    scores = draw(st.lists(draw(some), min_size=cuts[-1], max_size=cuts[-1]))
    documents = draw(st.lists(st.integers(0, cuts[-1] - 1), min_size=1, max_size=40))
    weight = st.sampled_from([0.0, 0.5, 1.0, 1e4])
    weights = draw(st.lists(weight, min_size=len(documents), max_size=len(documents)))
    return Clicked(cuts, scores, documents, weights, ("hinge", 1.0, 0.0))


@given(problem=dense(), name=LAMBDA)
def test_sorting_changes_nothing(problem: Clicked, name: str) -> None:
    """Every list pair by pair, every list sorted, and as the package chooses: the numbers of the literal loop."""
    lam, literal, slope = LAMBDAS[name]
    usual = bounds.MANY
    value, gradient = oracles.bound(
        problem.scores, problem.offsets, problem.documents, problem.weights, literal, slope, *problem.form
    )
    sums = oracles.surrogate_sums(problem.scores, problem.offsets, problem.documents)
    largest = 1 + max(map(abs, gradient))
    for many in (10**9, 1, usual):
        try:
            bounds.MANY = many
            found = bound_loss(
                problem.scores,
                problem.offsets,
                documents=terms(problem),
                weights=problem.weights,
                metric=lam,
                **form_of(problem.form),
            )
        finally:
            bounds.MANY = usual
        np.testing.assert_allclose(found.ranks, 1 + np.array(sums), rtol=1e-11)
        np.testing.assert_allclose(found.value, value, rtol=1e-11)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-12 * largest)
        assert (found.ranks >= 1).all()
