"""Surrogate bounds on fixed random lists, against literal loops; the property tests draw stranger ones."""

from __future__ import annotations

import itertools
import math
from unittest.mock import patch

import numpy as np
import oracles
import pytest

from cfltr_core import RankWeight, bound_loss, dcg, rbp, surrogate_ranks
from cfltr_core.learning import bounds
from cfltr_core.learning.bounds import ClickedLists, SortedLists, hinge, logistic, smooth_hinge

CUTS = np.array([0, 1, 5, 8, 12, 13, 20])
# Lists of four stand in one rectangle; documents 2 and 6 occur twice, 0 and 12 have no rival.
DOCUMENTS = np.array([6, 2, 0, 3, 2, 19, 6, 9, 12, 10, 14])
SQUARE_ROOT = RankWeight("√r", np.sqrt, larger_is_better=False, derivative=lambda r: 0.5 / np.sqrt(r))
LAMBDAS = {
    "average rank": (None, oracles.average_rank, lambda r: 1.0),
    "DCG": (dcg(), oracles.dcg, oracles.dcg_slope),
    "RBP": (rbp(0.8), oracles.rbp(0.8), lambda r: 0.2 * math.log(1 / 0.8) * 0.8 ** (r - 1)),
    "root": (SQUARE_ROOT, math.sqrt, lambda r: 0.5 / math.sqrt(r)),
}
FORMS = (("hinge", 1.0, 0.0), ("hinge", 1.0, 0.3), ("hinge", 1.0, 2.0), ("logistic", 1.0, 0.0), ("logistic", 2.5, 0.0))


def scores(seed: int) -> np.ndarray:
    """Ties, kinks (differences of exactly 1) and ordinary numbers."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(CUTS[-1]) < 0.5, rng.integers(-1, 3, size=CUTS[-1]), rng.normal(size=CUTS[-1]))


def form_of(form: tuple[str, float, float]) -> dict[str, object]:
    """The arguments that a form of the surrogate stands for."""
    return dict(zip(("surrogate", "sigma", "smoothing"), form, strict=True))


def rectangles(block: int) -> ClickedLists:
    usual = bounds.BLOCK
    try:
        bounds.BLOCK = block
        return ClickedLists(CUTS, DOCUMENTS)
    finally:
        bounds.BLOCK = usual


@pytest.mark.oracle("bounds.surrogate_ranks", "bounds.bound_loss")
@pytest.mark.parametrize("form", FORMS)
def test_bound_and_gradient(form: tuple[str, float, float]) -> None:
    for seed, name in itertools.product(range(6), LAMBDAS):
        s, (lam, literal, slope) = scores(seed), LAMBDAS[name]
        weights = np.random.default_rng(seed).uniform(0, 3, size=len(DOCUMENTS))
        found = bound_loss(s, CUTS, documents=DOCUMENTS, weights=weights, metric=lam, **form_of(form))
        value, gradient = oracles.bound(s, CUTS, DOCUMENTS, weights, literal, slope, *form)
        np.testing.assert_allclose(found.value, value, rtol=1e-12)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-12, atol=1e-13)
        expected = 1 + np.array(oracles.surrogate_sums(s, CUTS, DOCUMENTS, *form))
        np.testing.assert_allclose(found.ranks, expected, rtol=1e-13)
        np.testing.assert_allclose(surrogate_ranks(s, CUTS, documents=DOCUMENTS, **form_of(form)), expected, rtol=1e-13)
        assert (expected >= np.array(oracles.ranks(s, CUTS, "pessimistic"))[DOCUMENTS] - 1e-12).all()
        one = bound_loss(s, CUTS, documents=DOCUMENTS, metric=lam, **form_of(form))
        ones = oracles.bound(s, CUTS, DOCUMENTS, [1.0] * len(DOCUMENTS), literal, slope, *form)
        np.testing.assert_allclose(one.value, ones[0], rtol=1e-12)


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


def test_the_smoothed_hinge_is_a_maximum_over_slopes() -> None:
    """The reference itself: max over a in [0, 1] of a z + (μ/2) a (1 − a), on a fine grid of a."""
    a = np.linspace(0, 1, 20_001)
    for mu, z in itertools.product((0.1, 1.0, 2.0), np.linspace(-2, 2, 41)):
        best = float((a * z + mu / 2 * a * (1 - a)).max())
        found = oracles.surrogate(1 - z, smoothing=mu)
        assert abs(found - best) <= 1e-8
        assert max(z, 0) - 1e-15 <= found <= max(z, 0) + mu / 8 + 1e-15


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


@pytest.mark.oracle("bounds.SortedLists.sums")
@pytest.mark.parametrize("chunk", [1, 5, 1 << 14])
def test_sorted_lists(chunk: int) -> None:
    with patch.object(bounds, "BLOCK", chunk):
        lists = SortedLists(CUTS, DOCUMENTS)
    for seed in range(6):
        s, price = scores(seed), np.random.default_rng(seed).uniform(0, 2, size=len(DOCUMENTS))
        total, force = lists.sums(s, lambda terms, sums, price=price: price[terms])
        np.testing.assert_allclose(total, oracles.surrogate_sums(s, CUTS, DOCUMENTS), rtol=1e-13, atol=1e-13)
        _, gradient = oracles.bound(s, CUTS, DOCUMENTS, price, lambda r: r, lambda r: 1.0)
        np.testing.assert_allclose(force, [-g for g in gradient], rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(s, scores(seed))


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


@pytest.mark.oracle("bounds.neighbours")
@pytest.mark.parametrize("sizes", [[], [3], [9, 1, 1, 9, 9], [1, 2, 3, 1, 1, 5, 1, 4, 12, 1]])
def test_neighbours_are_put_together(sizes: list[int]) -> None:
    for limit in (1, 4, 5, 30):
        found = [[*range(len(sizes))[part]] for part in bounds.neighbours(np.array(sizes, dtype=np.int64), limit)]
        assert found == oracles.neighbours(sizes, limit)
