"""Pairs in flat tensors: sums and gradients against loops."""

import itertools

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import offsets

from cfltr_core import dcg
from cfltr_core.learning import torch_lists
from cfltr_core.learning.torch_lists import ListBatch, TorchLists, list_sums

# Multiples of 1/64 are exact, so that ties and kinks are what they are; some lie far away.
SCORES = st.integers(-200, 200).map(lambda i: i / 64) | st.sampled_from([-1e4, -0.5, 0.0, 0.5, 1e4])


@st.composite
def clicked(draw: st.DrawFn) -> tuple[list[int], list[float], list[int], list[float], tuple[str, float]]:
    """Ragged lists, some of one document, with ties and kinks, and any documents clicked."""
    cuts = draw(offsets())
    scores = draw(st.lists(SCORES, min_size=cuts[-1], max_size=cuts[-1]))
    documents = draw(st.lists(st.integers(0, cuts[-1] - 1), min_size=1, unique=True).map(sorted))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 1e3]), min_size=len(documents), max_size=len(documents)))
    return (
        cuts,
        scores,
        documents,
        weights,
        draw(st.sampled_from([("hinge", 1.0), ("logistic", 1.0), ("logistic", 3.0)])),
    )


def whole(cuts: list[int], documents: list[int]) -> tuple[TorchLists, ListBatch]:
    """All lists with a click, as one batch."""
    lists = TorchLists(np.array(cuts), np.array(documents))
    (batch,) = lists.batches(lists.queries, cuts[-1])
    return lists, batch


def loss(
    cuts: list[int], scores: list[float], documents: list[int], weights: list[float], form: tuple[str, float]
) -> tuple[np.ndarray, float, np.ndarray]:
    """The sums, Σ_t weights_t λ(1 + S_t) for DCG, and its gradient in all scores."""
    _, batch = whole(cuts, documents)
    c = np.array(weights)[batch.terms]
    sums, gradient = list_sums(
        torch.tensor(scores, dtype=torch.float64)[torch.from_numpy(batch.rows)],
        batch,
        lambda part, total: c[part] * dcg().slope(1 + total),
        surrogate=form[0],
        sigma=form[1],
    )
    everywhere = np.zeros(cuts[-1])
    everywhere[batch.rows] = gradient.numpy()
    return sums, float(c @ dcg()(1 + sums)), everywhere


@pytest.mark.oracle("torch_lists.list_sums")
@pytest.mark.parametrize(("pairs", "many"), [(1, 10**9), (7, 10**9), (1 << 20, 10**9), (1, 0)])
@given(problem=clicked())
def test_list_sums_are_those_of_the_loop(pairs: int, many: int, problem: tuple) -> None:
    cuts, scores, documents, weights, form = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_lists, "PAIRS", pairs)
        patch.setattr(torch_lists, "MANY_PAIRS", many)
        sums, value, gradient = loss(cuts, scores, documents, weights, form)
    assert list_sums.__name__ == "list_sums"
    expected = oracles.bound(scores, cuts, documents, weights, oracles.dcg, oracles.dcg_slope, *form)
    np.testing.assert_allclose(sums, oracles.surrogate_sums(scores, cuts, documents, *form), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-12 * max(weights))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("form", [("hinge", 1.0), ("logistic", 1.0), ("logistic", 50.0)])
def test_gaps_of_ten_thousand_are_finite_in_single_precision(form: tuple[str, float]) -> None:
    lists, batch = whole([0, 3], [0, 1, 2])
    scores = torch.tensor([1e4, 0.0, -1e4], dtype=torch.float32)
    sums, gradient = list_sums(
        scores, batch, lambda part, total: dcg().slope(1 + total), surrogate=form[0], sigma=form[1]
    )
    expected = oracles.bound(scores.tolist(), [0, 3], [0, 1, 2], [1.0] * 3, oracles.dcg, oracles.dcg_slope, *form)
    np.testing.assert_allclose(gradient.numpy(), expected[1], rtol=1e-9, atol=1e-15)
    assert gradient.dtype == torch.float64
    assert np.isfinite(sums).all()
    assert lists.queries.tolist() == [0]


@pytest.mark.oracle("torch_lists.TorchLists.batches")
@given(cuts=offsets(), data=st.data(), size=st.integers(1, 12))
def test_batches_are_whole_lists_in_their_order(cuts: list[int], data: st.DataObject, size: int) -> None:
    documents = data.draw(st.lists(st.integers(0, cuts[-1] - 1), min_size=1, unique=True).map(sorted))
    lists = TorchLists(np.array(cuts), np.array(documents))
    in_lists = oracles.lists(cuts)
    assert lists.queries.tolist() == [q for q, rows in enumerate(in_lists) if set(rows) & set(documents)]
    order = data.draw(st.permutations(lists.queries.tolist()))
    found = list(lists.batches(np.array(order), size))
    expected = oracles.batches_of(order, cuts, size)
    assert len(found) == len(expected)
    for batch, queries in zip(found, expected, strict=True):
        assert batch.rows.tolist() == [d for q in queries for d in in_lists[q]]
        assert [documents[t] for t in batch.terms] == [d for q in queries for d in in_lists[q] if d in documents]
        assert batch.rows[batch.own].tolist() == [documents[t] for t in batch.terms]
        for t, start, width in zip(batch.terms, batch.start, batch.width, strict=True):
            rows = next(rows for rows in in_lists if documents[t] in rows)
            assert batch.rows[start : start + width].tolist() == rows


def test_no_more_pairs_are_held_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of n documents, all clicked, has n² pairs, but never more than a block of them at once."""
    monkeypatch.setattr(torch_lists, "PAIRS", 2_000)
    monkeypatch.setattr(torch_lists, "MANY_PAIRS", 10**9)
    asked = []
    for n in (100, 400):
        _, batch = whole([0, n], list(range(n)))

        def price(part: slice, total: np.ndarray) -> np.ndarray:
            asked.append((part.stop - part.start, len(total)))
            return np.ones(len(total))

        list_sums(torch.zeros(n), batch, price)
    assert asked == [(20, 20)] * 5 + [(5, 5)] * 80
    parts = itertools.accumulate(size for size, _ in asked)
    assert list(parts)[-1] == 500
