"""Samplers, their draws, and the gradients of single clicks, against literal loops."""

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from ragged_logs import CLICKS, DOCUMENT, OFFSETS, PROPENSITY, clicks_in

from cfltr_core import click_sampler, weight_summary
from cfltr_core.learning.samplers import ClickSampler
from cfltr_core.learning.single_clicks import click_gradients, gradient_bounds
from cfltr_core.sampling import AliasTable, Deck, term_draws

EXACT = 1e-12
X = np.random.default_rng(1).normal(size=(17, 6))
X[13] = X[12]  # two documents that nobody can tell apart
LOG = clicks_in(OFFSETS)
RAGGED_WEIGHTS = [
    [1.0],
    [0.2, 0.0, 0.8],
    [5.0, 1.0, 1.0, 1.0, 1.0],
    [1.0] * 7,
    [1e-12, 1.0, 1e6],
    [0.1, 0.6, 0.9, 0.6, 0.8],  # by rounding, the last light column finds nothing left
    (1.0 / np.random.default_rng(2).random(1000)).tolist(),
    np.random.default_rng(3).exponential(size=20_000).tolist(),
]


@pytest.mark.oracle("single_clicks.weight_summary")
def test_weight_summary() -> None:
    found = weight_summary(LOG)
    mean, rms, largest = oracles.weight_constants(CLICKS, PROPENSITY)
    np.testing.assert_allclose((found.mean, found.rms, found.maximum), (mean, rms, largest), rtol=EXACT)
    assert found.n_clicks == sum(CLICKS)
    assert found.mean < found.rms < found.maximum


@pytest.mark.oracle("single_clicks.click_gradients", "single_clicks.gradient_bounds")
def test_gradients_of_single_clicks() -> None:
    rng = np.random.default_rng(5)
    bounds = gradient_bounds(X, OFFSETS, documents=DOCUMENT)
    np.testing.assert_allclose(bounds, [oracles.largest_gradient(X.tolist(), OFFSETS, d) for d in DOCUMENT], rtol=EXACT)
    for w in (np.zeros(6), rng.normal(size=6), 5 * rng.normal(size=6)):
        found = click_gradients(X, OFFSETS, documents=DOCUMENT, w=w)
        wanted = [oracles.hinge_gradient(X.tolist(), OFFSETS, d, w.tolist()) for d in DOCUMENT]
        np.testing.assert_allclose(found, wanted, rtol=EXACT, atol=EXACT)
        assert np.all(np.linalg.norm(found, axis=1) <= bounds + EXACT)


@pytest.mark.oracle("sampling.AliasTable.build", "sampling.AliasTable.probabilities")
@pytest.mark.parametrize("case", range(len(RAGGED_WEIGHTS)))
def test_an_alias_table_implies_its_weights(case: int) -> None:
    weights = np.array(RAGGED_WEIGHTS[case])
    table = AliasTable.build(weights)
    wanted = weights / math.fsum(weights)
    np.testing.assert_allclose(oracles.implied(table.keep.tolist(), table.alias.tolist()), wanted, rtol=0, atol=EXACT)
    np.testing.assert_allclose(table.probabilities(), wanted, rtol=0, atol=EXACT)
    assert np.all((table.probabilities() == 0) == (weights == 0))


def test_every_small_list_of_weights() -> None:
    """Columns that are exactly full, light and heavy ones in every order."""
    for weights in (w for n in range(1, 6) for w in itertools.product(range(4), repeat=n) if sum(w)):
        table, law = AliasTable.build(weights), [float(Fraction(weight, sum(weights))) for weight in weights]
        found = oracles.implied(table.keep.tolist(), table.alias.tolist())
        np.testing.assert_allclose([found, table.probabilities()], [law, law], rtol=0, atol=1e-15)


@pytest.mark.oracle("sampling.AliasTable", "sampling.AliasTable.draw")
def test_draws_follow_the_table() -> None:
    keep, alias = [0.25, 1.0, 0.5], [1, 1, 0]
    table = AliasTable(keep, alias)
    drawn = table.draw(2_000, np.random.default_rng(6))
    assert drawn.tolist() == oracles.alias_draws(keep, alias, 2_000, 6)
    share = np.bincount(drawn, minlength=3) / 2_000
    wanted = np.array(oracles.implied(keep, alias))
    assert np.all(np.abs(share - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / 2_000))
    for size in ((3, 4), (2, 3), 0):
        found = table.draw(size, np.random.default_rng(7))
        assert found.shape == np.empty(size).shape
        assert found.ravel().tolist() == oracles.alias_draws(keep, alias, found.size, 7)
    assert repr(table) == "AliasTable(3 categories)"


@pytest.mark.oracle("samplers.click_sampler", "samplers.ClickSampler")
@pytest.mark.parametrize("method", ["biased", "ips", "countersample"])
def test_samplers_have_their_laws_and_factors(method: str) -> None:
    sampler = click_sampler(LOG, method)
    assert isinstance(sampler, ClickSampler)
    law, factor = oracles.sgd_laws(CLICKS, PROPENSITY)[method]
    clicked = [t for t, c in enumerate(CLICKS) if c]
    assert sampler.document.tolist() == [DOCUMENT[t] for t in clicked]
    np.testing.assert_allclose(sampler.table.probabilities(), [law[t] for t in clicked], rtol=0, atol=EXACT)
    np.testing.assert_allclose(sampler.factor, [factor[t] for t in clicked], rtol=EXACT)
    # Unbiased for R, or not: P · scale against clicks · w / n.
    wanted = [CLICKS[t] / PROPENSITY[t] / sum(CLICKS) for t in clicked]
    assert np.allclose(sampler.table.probabilities() * sampler.factor, wanted, rtol=0, atol=EXACT) == (
        method != "biased"
    )


N = sum(CLICKS)


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
