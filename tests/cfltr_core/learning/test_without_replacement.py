"""Draws without replacement: decks, what an epoch is worth, and training with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import oracles
import pytest
from ragged_logs import CLICKS, DOCUMENT, OFFSETS, PROPENSITY, clicks_in

from cfltr_core import click_sampler, train_sgd
from cfltr_core.learning.samplers import ClickSampler
from cfltr_core.sampling import AliasTable, Deck, term_draws

EXACT = 1e-12
X = np.random.default_rng(1).normal(size=(17, 6))
N = sum(CLICKS)
LOG = clicks_in(OFFSETS)
WEIGHTS = {"ips": [1 / p for p in PROPENSITY], "biased": [1.0] * 8}


def gradient_of(weights: list[float], w: list[float]) -> np.ndarray:
    """(1/n) Σ clicks · weight · ∇f, over single clicks."""
    out = np.zeros(6)
    for d, c, weight in zip(DOCUMENT, CLICKS, weights, strict=True):
        for _ in range(c):
            out += weight * np.array(oracles.hinge_gradient(X.tolist(), OFFSETS, d, w)) / N
    return out


@pytest.mark.oracle("sampling.Deck", "sampling.Deck.epochs", "sampling.Deck.probabilities", "sampling.term_draws")
@pytest.mark.parametrize(("runs", "batch"), [(1, 1), (1, 3), (2, 1), (3, 4), (2, 45), (1, 5000)])
def test_a_deck_is_dealt_to_its_last_card(runs: int, batch: int) -> None:
    deck = Deck(CLICKS)
    steps = math.ceil(4 * N / batch) + 1
    found: list[np.ndarray] = []
    for part in term_draws(deck, (runs, batch), np.random.default_rng(5)):
        found += [*part.reshape(-1, runs, batch)]
        if len(found) >= steps:
            break
    dealt = np.array(found[:steps])
    assert dealt.tolist() == oracles.dealt(CLICKS, runs, batch, steps, 5)
    streams = dealt.swapaxes(0, 1).reshape(runs, -1)
    for stream in streams:
        for epoch in range(streams.shape[1] // N):
            assert np.bincount(stream[epoch * N : (epoch + 1) * N], minlength=8).tolist() == CLICKS
    assert not np.array_equal(streams[0][:N], streams[0][N : 2 * N])
    epochs = deck.epochs(runs, np.random.default_rng(5))
    first = next(epochs)
    assert first.dtype == np.int32
    assert first.shape == (runs, N)
    np.testing.assert_allclose(deck.probabilities(), [c / N for c in CLICKS], rtol=EXACT)


def test_all_orders_are_equally_likely() -> None:
    orders: dict[tuple[int, ...], int] = dict.fromkeys(itertools.permutations(range(3)), 0)
    epochs = Deck([1, 1, 1]).epochs(1, np.random.default_rng(11))
    for _ in range(6_000):
        orders[tuple(next(epochs)[0].tolist())] += 1
    spread = math.sqrt(6_000 * 1 / 6 * 5 / 6)
    assert all(abs(count - 1_000) < 4 * spread for count in orders.values())


def test_draws_with_replacement_do_not_depend_on_how_they_are_asked_for() -> None:
    table = AliasTable.build([1.0, 2.0, 5.0])
    chunk = next(term_draws(table, (2, 3), np.random.default_rng(3)))
    np.testing.assert_array_equal(chunk, table.draw((4096 // 6, 6), np.random.default_rng(3)))
    assert next(term_draws(table, (3, 3000), np.random.default_rng(3))).shape == (1, 9000)


class Ordered(Deck):
    """A deck whose epochs have one known order."""

    order: tuple[int, ...] = ()

    def epochs(self, runs: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        while True:
            yield np.tile(np.array(self.order, dtype=np.int32), (runs, 1))


@pytest.mark.parametrize("method", ["ips", "biased"])
def test_an_epoch_is_unbiased_in_every_order_and_each_of_its_steps_is_on_average(method: str) -> None:
    """All orders of five clicks.  The rate is so small that no hinge changes: the weights are fixed."""
    terms, rate = [0, 1, 4, 5, 7], 1e-6
    counts = [1, 2, 1, 1]  # the second and third click are on one document
    documents = [DOCUMENT[t] for t in (0, 1, 5, 7)]
    weights = [WEIGHTS[method][t] for t in (0, 1, 5, 7)]
    single = [
        w * np.array(oracles.hinge_gradient(X.tolist(), OFFSETS, d, [0.0] * 6))
        for d, w in zip(documents, weights, strict=True)
    ]
    risk = sum(c * g for c, g in zip(counts, single, strict=True)) / len(terms)
    deck = Ordered(counts)
    sampler = ClickSampler(documents, deck, factor=weights, offsets=OFFSETS)
    cards = [i for i, c in enumerate(counts) for _ in range(c)]
    by_step = np.zeros((5, 6))
    orders = list(itertools.permutations(cards))
    for order in orders:
        object.__setattr__(deck, "order", order)
        path = train_sgd(
            X, sampler, learning_rates=rate, steps=5, rng=np.random.default_rng(0), record=[0, 1, 2, 3, 4, 5]
        )
        moved = -np.diff(path.last[:, 0, 0], axis=0) / rate
        np.testing.assert_allclose(moved.sum(axis=0) / 5, risk, rtol=1e-9, atol=1e-9)
        by_step += moved / len(orders)
    for step in by_step:  # of all orders, each step has the gradient of the objective
        np.testing.assert_allclose(step, risk, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["ips", "biased"])
@pytest.mark.parametrize(("runs", "batch"), [(1, 1), (3, 1), (2, 4)])
def test_whole_epochs_of_a_log(method: str, runs: int, batch: int) -> None:
    sampler, rate = click_sampler(LOG, method, replacement=False), 1e-6
    gradient = gradient_of(WEIGHTS[method], [0.0] * 6)
    given = {"learning_rates": rate, "runs": runs, "batch": batch}
    epoch = N // batch
    path = train_sgd(X, sampler, steps=2 * epoch, rng=np.random.default_rng(1), record=[epoch, 2 * epoch], **given)
    for k, run in itertools.product(range(2), range(runs)):
        np.testing.assert_allclose(path.last[k, run, 0], -rate * (k + 1) * epoch * gradient, rtol=1e-9)
    assert (path.documents[0] == path.documents[0, 0]).all()
    with_replacement = train_sgd(X, click_sampler(LOG, method), steps=epoch, rng=np.random.default_rng(1), **given)
    assert not np.allclose(with_replacement.last[0, 0, 0], -rate * epoch * gradient, rtol=1e-3)


def test_a_deck_is_another_table_of_the_same_sampler() -> None:
    deck, table = (click_sampler(LOG, "ips", replacement=replacement) for replacement in (False, True))
    assert repr(deck.table) == "Deck(20 cards of 7 categories)"
    np.testing.assert_array_equal(deck.factor, table.factor)
    np.testing.assert_allclose(deck.table.probabilities(), table.table.probabilities(), rtol=0, atol=EXACT)
