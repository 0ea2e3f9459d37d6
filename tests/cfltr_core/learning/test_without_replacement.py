"""Draws without replacement: decks, what an epoch is worth, and training with them."""

import itertools
import math

import numpy as np
import oracles
import pytest
from ragged_logs import CLICKS, OFFSETS, clicks_in

from cfltr_core import click_sampler
from cfltr_core.sampling import AliasTable, Deck, term_draws

EXACT = 1e-12
N = sum(CLICKS)
LOG = clicks_in(OFFSETS)


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


def test_a_deck_is_another_table_of_the_same_sampler() -> None:
    deck, table = (click_sampler(LOG, "ips", replacement=replacement) for replacement in (False, True))
    assert repr(deck.table) == "Deck(20 cards of 7 categories)"
    np.testing.assert_array_equal(deck.factor, table.factor)
    np.testing.assert_allclose(deck.table.probabilities(), table.table.probabilities(), rtol=0, atol=EXACT)
