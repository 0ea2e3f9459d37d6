"""Surrogate bounds against literal loops, on arbitrary lists and on fixed ones: values, gradients, forms of sums."""

import math
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SMOOTH, TIED, offsets

from cfltr_core import RankWeight, bound_loss, dcg, ranks, rbp, surrogate_ranks
from cfltr_core.learning import bounds
from cfltr_core.learning.bounds import ClickedLists, SortedLists, hinge, logistic, smooth_hinge

# Halves are exact, so that gaps of exactly 1 (the kink) and of 0 (a tie) both occur.
HALVES = st.integers(-4, 4).map(lambda i: i / 2)
FAR = st.sampled_from([-1e4, -0.5, 0.0, 0.5, 1e4])
LAMBDAS = {
    "average rank": (None, oracles.average_rank, lambda r: 1.0),
    "DCG": (dcg(), oracles.dcg, oracles.dcg_slope),
    "RBP": (rbp(0.5), oracles.rbp(0.5), lambda r: 0.5 * math.log(2) * 0.5 ** (r - 1)),
    "root": (
        RankWeight("√r", np.sqrt, larger_is_better=False, derivative=lambda r: 0.5 / np.sqrt(r)),
        math.sqrt,
        lambda r: 0.5 / math.sqrt(r),
    ),
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


def bound_of(problem: Clicked, name: str, scores: object = None, **changes: object) -> bounds.Bound:
    given = {"documents": terms(problem), "weights": problem.weights, "metric": LAMBDAS[name][0], **changes}
    return bound_loss(problem.scores if scores is None else scores, problem.offsets, **given, **form_of(problem.form))


@pytest.mark.oracle("bounds.surrogate_ranks")
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


@pytest.mark.oracle("bounds.bound_loss")
@given(problem=clicked(), name=LAMBDA, block=st.sampled_from([1, 7, 1 << 14]))
def test_the_bound_on_a_risk(problem: Clicked, name: str, block: int) -> None:
    """Σ weight · λ(rank) ≤ Σ weight · λ(1 + S), with the value and gradient of literal loops, all finite."""
    lam, literal, slope = LAMBDAS[name]
    given = {"documents": terms(problem), "weights": problem.weights, "metric": lam}
    with patch.object(bounds, "BLOCK", block):
        found = bound_loss(problem.scores, problem.offsets, **given, **form_of(problem.form))
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


@pytest.mark.oracle("bounds.SortedLists.sums")
@given(problem=dense(), name=LAMBDA, block=st.sampled_from([1, 5, 1 << 14]))
def test_sorting_changes_nothing(problem: Clicked, name: str, block: int) -> None:
    """Every list pair by pair, every list sorted, and as the package chooses: the numbers of the literal loop."""
    _, literal, slope = LAMBDAS[name]
    value, gradient = oracles.bound(
        problem.scores, problem.offsets, problem.documents, problem.weights, literal, slope, *problem.form
    )
    sums = oracles.surrogate_sums(problem.scores, problem.offsets, problem.documents)
    largest = 1 + max(map(abs, gradient))
    for many in (10**9, 1, bounds.MANY):
        with patch.object(bounds, "MANY", many), patch.object(bounds, "BLOCK", block):
            found = bound_of(problem, name)
        np.testing.assert_allclose(found.ranks, 1 + np.array(sums), rtol=1e-11)
        np.testing.assert_allclose(found.value, value, rtol=1e-11)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-12 * largest)
        assert (found.ranks >= 1).all()


# --- fixed lists ---


CUTS = np.array([0, 1, 5, 8, 12, 13, 20])
# Lists of four stand in one rectangle; documents 2 and 6 occur twice, 0 and 12 have no rival.
DOCUMENTS = np.array([6, 2, 0, 3, 2, 19, 6, 9, 12, 10, 14])
FORMS = (("hinge", 1.0, 0.0), ("hinge", 1.0, 0.3), ("hinge", 1.0, 2.0), ("logistic", 1.0, 0.0), ("logistic", 2.5, 0.0))


def scores(seed: int) -> np.ndarray:
    """Ties, kinks (differences of exactly 1) and ordinary numbers."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(CUTS[-1]) < 0.5, rng.integers(-1, 3, size=CUTS[-1]), rng.normal(size=CUTS[-1]))


def rectangles(block: int) -> ClickedLists:
    with patch.object(bounds, "BLOCK", block):
        return ClickedLists(CUTS, DOCUMENTS)


@pytest.mark.oracle("bounds.hinge", "bounds.smooth_hinge", "bounds.logistic")
def test_steps_and_their_slopes() -> None:
    z = np.concatenate([np.linspace(-3, 3, 61), [-1e4, 1e4]])
    steps = {("hinge", 1.0, 0.0): hinge}
    steps |= {("hinge", 1.0, mu): smooth_hinge(mu) for mu in (0.1, 1.0, 2.0)}
    steps |= {("logistic", sigma, 0.0): logistic(sigma) for sigma in (0.5, 1.0, 3.0)}
    for form, step in steps.items():
        for kind, close in ((np.float64, 1e-12), (np.float32, 1e-5)):
            given = z.astype(kind)
            value, slope = step(given.copy())
            assert value.dtype == slope.dtype == kind
            expected = [oracles.surrogate(1 - float(a), *form) for a in given]
            np.testing.assert_allclose(value, expected, rtol=close, atol=close)
            expected = [oracles.surrogate_slope(1 - float(a), *form) for a in given]
            np.testing.assert_allclose(slope, expected, rtol=close, atol=close)


@pytest.mark.oracle("bounds.ClickedLists.gaps", "bounds.ClickedLists.own", "bounds.ClickedLists.shapes")
@pytest.mark.parametrize("block", [1, 5, 1 << 14])
def test_rectangles_hold_every_pair_once(block: int) -> None:
    s = scores(1)
    lists = rectangles(block)
    seen = []
    for terms, start, first, z in lists.gaps(s):
        query = [oracles.query_index(CUTS)[d] for d in DOCUMENTS[terms]]
        assert start.tolist() == [CUTS[q] for q in query]
        assert first.tolist() == [i for i, q in enumerate(query) if i == 0 or q != query[i - 1]]
        assert len(set(query)) == len(first), "the terms of a query stand together"
        assert z.size <= max(block, z.shape[1])
        for t, begin, row in zip(terms, start, z, strict=True):
            d = DOCUMENTS[t]
            assert sorted([*oracles.rivals(CUTS, d), d]) == list(range(begin, begin + len(row)))
            np.testing.assert_allclose(row, [1 - (s[d] - s[y]) for y in range(begin, begin + len(row))], atol=1e-14)
            seen.append(t)
    assert sorted(seen) == list(range(len(DOCUMENTS)))
    assert lists.shapes == [z.shape for _, _, _, z in lists.gaps(s)]
    assert lists.rivals.tolist() == [len(oracles.rivals(CUTS, d)) for d in DOCUMENTS]
    assert lists.n_pairs == sum(len(oracles.rivals(CUTS, d)) for d in DOCUMENTS)
    np.testing.assert_allclose(lists.own(s, hinge), oracles.surrogate(0.0), atol=1e-14)
    np.testing.assert_allclose(lists.own(s, logistic(2.0)), oracles.surrogate(0.0, "logistic"), atol=1e-14)
    list(lists.gaps(s))
    np.testing.assert_array_equal(s, scores(1))


@pytest.mark.oracle("bounds.ClickedLists.sums", "bounds.ClickedLists.push")
@pytest.mark.parametrize("block", [1, 5, 1 << 14])
def test_forces(block: int) -> None:
    """Minus the gradient of Σ price · S; ``push`` alone adds the part of one rectangle."""
    s, price = scores(2), np.random.default_rng(2).uniform(0, 2, size=len(DOCUMENTS))
    lists = rectangles(block)
    total, force = lists.sums(s, hinge, lambda terms, sums: price[terms])
    np.testing.assert_allclose(total, oracles.surrogate_sums(s, CUTS, DOCUMENTS), rtol=1e-13, atol=1e-13)
    _, gradient = oracles.bound(s, CUTS, DOCUMENTS, price, lambda r: r, lambda r: 1.0)
    np.testing.assert_allclose(force, [-g for g in gradient], rtol=1e-13, atol=1e-13)
    for terms, start, first, z in lists.gaps(s):
        part = np.zeros(len(s))
        lists.push(part, terms, start, first, (z > 0).astype(float), price[terms])
        _, gradient = oracles.bound(s, CUTS, DOCUMENTS[terms], price[terms], lambda r: r, lambda r: 1.0)
        np.testing.assert_allclose(part, [-g for g in gradient], rtol=1e-13, atol=1e-13)


def test_lists_are_sorted_where_many_are_clicked() -> None:
    """Both forms in one call, the sorted one for the hinge alone; the same numbers as pair by pair."""
    rng = np.random.default_rng(0)
    offsets, clicked = np.array([0, 300, 700, 703]), np.array([1, 250, 2])
    documents = rng.permutation(np.concatenate([a + np.arange(n) for a, n in zip(offsets, clicked, strict=False)]))
    s, weights = rng.normal(size=703), rng.uniform(0, 3, size=len(documents))
    for form in FORMS:
        with patch.object(bounds, "SortedLists", side_effect=SortedLists) as asked:
            found = bound_loss(s, offsets, documents=documents, weights=weights, metric=dcg(), **form_of(form))
        assert sorted(d for call in asked.call_args_list for d in call.args[1]) == (
            list(range(300, 550)) if form == FORMS[0] else []
        )
        with patch.object(bounds, "MANY", 10**9):
            pairs = bound_loss(s, offsets, documents=documents, weights=weights, metric=dcg(), **form_of(form))
        np.testing.assert_allclose(found.value, pairs.value, rtol=1e-12)
        np.testing.assert_allclose(found.ranks, pairs.ranks, rtol=1e-12)
        np.testing.assert_allclose(found.gradient, pairs.gradient, rtol=1e-11, atol=1e-13)


@pytest.mark.oracle("rank_weight.RankWeight.slope")
@pytest.mark.parametrize("name", LAMBDAS)
def test_slope_of_a_rank_weight(name: str) -> None:
    lam, literal, slope = LAMBDAS[name]
    if lam is not None:
        for r in (1.0, 1.5, 2.0, 7.0, 30.25):
            assert abs(float(lam.slope(r)) - oracles.derivative(literal, r)) <= 1e-9
            assert abs(float(lam.slope(r)) - slope(r)) <= 1e-14
        assert lam.slope([[1, 2, 3]]).shape == (1, 3)


def test_slope_beyond_a_cut_off_is_0() -> None:
    assert dcg(3).slope([1.0, 3.0, 3.5]).tolist() == [dcg().slope(1.0), dcg().slope(3.0), 0.0]


def test_no_document_at_all() -> None:
    found = bound_loss(scores(0), CUTS, documents=np.array([], dtype=int), weights=[])
    assert (found.value, found.ranks.shape) == (0.0, (0,))
    np.testing.assert_array_equal(found.gradient, np.zeros(CUTS[-1]))
    one, ones = (bound_loss(scores(0), CUTS, documents=DOCUMENTS, weights=w) for w in (None, np.ones(11)))
    assert (one.value, one.gradient.tolist()) == (ones.value, ones.gradient.tolist())


@pytest.mark.oracle("bounds.neighbours")
@pytest.mark.parametrize("sizes", [[], [3], [9, 1, 1, 9, 9], [1, 2, 3, 1, 1, 5, 1, 4, 12, 1]])
def test_neighbours_are_put_together(sizes: list[int]) -> None:
    for limit in (1, 4, 5, 30):
        found = [[*range(len(sizes))[part]] for part in bounds.neighbours(np.array(sizes, dtype=np.int64), limit)]
        assert found == oracles.neighbours(sizes, limit)


def test_a_price_is_asked_of_sums_that_are_not_negative() -> None:
    """Where a document wins by far the sum is 0, and rounding must not leave less: a price may be a root."""
    rng = np.random.default_rng(0)
    exact = 0
    for size in (1.0, 1e3, 1e6):
        cuts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, size=30))])
        scores = rng.normal(size=int(cuts[-1])) * size
        documents = rng.integers(0, int(cuts[-1]), size=80)
        asked: dict[int, float] = {}

        def price(terms: np.ndarray, sums: np.ndarray, asked: dict[int, float] = asked) -> np.ndarray:
            asked.update(zip(terms.tolist(), sums.tolist(), strict=True))
            return 2.0 + np.sqrt(sums)

        total, force = SortedLists(cuts, documents).sums(scores, price)
        assert min(asked.values()) >= 0
        assert [asked[term] for term in range(80)] == total.tolist()
        expected = oracles.surrogate_sums(scores.tolist(), cuts.tolist(), documents.tolist())
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-8 * size)
        exact += expected.count(0.0)
        prices = 2 + np.sqrt(total)
        pull = oracles.bound(scores, cuts, documents, prices, lambda r: r, lambda r: 1.0)[1]
        np.testing.assert_allclose(force, np.negative(pull), rtol=1e-7, atol=1e-7 * size)
    assert exact > 20
