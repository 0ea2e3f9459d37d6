"""Gradients of whole queries: their law, their mean over all queries, training with them, and what is refused."""

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import oracles
import pytest

from cfltr_core import ClickLog, click_sampler, query_sampler, train_sgd
from cfltr_core.learning import samplers, sgd
from cfltr_core.learning.samplers import ClickSampler, QuerySampler, matched

EXACT = 1e-12
OFFSETS = [0, 4, 5, 12, 17, 20]
X = np.random.default_rng(1).normal(size=(20, 6))
X[13] = X[12]  # two documents that nobody can tell apart
X[17:] = 0.5  # a list without any difference: it has clicks, and no gradient
# Document 6 was clicked at two ranks, document 5 was displayed and not clicked, the second list has one document.
DOCUMENT = [0, 2, 4, 5, 6, 6, 11, 12, 16, 18]
CLICKS = [3, 1, 2, 0, 4, 2, 1, 7, 2, 1]
PROPENSITY = [1.0, 0.25, 1.0, 0.5, 0.2, 0.5, 0.1, 0.5, 1 / 7, 0.5]
LOG = ClickLog(
    document=DOCUMENT, rank=[1, 4, 1, 2, 5, 2, 7, 2, 5, 2], impressions=[9] * 10, clicks=CLICKS, propensity=PROPENSITY,
    sessions=[9, 9, 9, 9, 9], offsets=OFFSETS,
)  # fmt: skip
MASS = [c / p / sum(CLICKS) for c, p in zip(CLICKS, PROPENSITY, strict=True)]


class Fixed:
    """Stands for an alias table whose draws are known."""

    sequence: Sequence[int] | np.ndarray = ()

    def __init__(self, law: Sequence[float]) -> None:
        self.keep = np.ones(len(law))

    @classmethod
    def build(cls, law):
        return cls(law)

    def draw(self, size, rng) -> np.ndarray:
        return np.resize(self.sequence, size)


def gradient_after(sampler: ClickSampler | QuerySampler, first: int, item: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a step with the item ``first`` leads from 0, and the gradient of a step with ``item`` there."""
    Fixed.sequence = [first, item]
    path = train_sgd(X, sampler, learning_rates=0.5, steps=2, rng=np.random.default_rng(0), record=[1, 2])
    before, after = path.last[:, 0, 0]
    return before, (before - after) / 0.5


@pytest.mark.oracle("samplers.query_sampler", "samplers.QuerySampler.probability", "samplers.QuerySampler.factor")
def test_a_query_is_drawn_by_the_weight_and_the_steepness_of_its_clicks() -> None:
    sampler = query_sampler(LOG, gradient_bounds_of=X)
    law = oracles.query_law(X.tolist(), OFFSETS, DOCUMENT, CLICKS, PROPENSITY)
    np.testing.assert_allclose(sampler.law, law, rtol=EXACT)
    np.testing.assert_allclose(sampler.probability, [v / math.fsum(law) for v in law], rtol=EXACT)
    assert (sampler.law > 0).tolist() == [True, False, True, True, False]
    mass = [math.fsum(m for m, d in zip(MASS, DOCUMENT, strict=True) if d == document) for document in range(20)]
    np.testing.assert_allclose(sampler.mass, mass, rtol=EXACT)
    np.testing.assert_allclose(sampler.factor, oracles.query_factor(mass, OFFSETS, law), rtol=EXACT)
    single = query_sampler(LOG, gradient_bounds_of=X.astype(np.float32))
    np.testing.assert_allclose(single.law, sampler.law, rtol=1e-5)


@pytest.mark.oracle("samplers.QuerySampler")
@pytest.mark.parametrize("pairs", [sgd.PAIRS, 0])
@pytest.mark.parametrize("case", ["weight × steepness", "own law"])
def test_the_gradient_is_unbiased_and_bounded(monkeypatch: pytest.MonkeyPatch, case: str, pairs: int) -> None:
    """The expectation over all queries, at the weights after one step, against a loop over single clicks."""
    monkeypatch.setattr(sgd, "PAIRS", pairs)
    sampler = query_sampler(LOG, gradient_bounds_of=X)
    if case == "own law":
        sampler = QuerySampler(sampler.mass, OFFSETS, law=[0.2, 0.1, 3.0, 0.4, 0.0])
    monkeypatch.setattr(samplers, "AliasTable", Fixed)
    drawable = [0, 2, 3]  # the other lists have no gradient
    for first in drawable:
        mean = np.zeros(6)
        for q in drawable:
            w, found = gradient_after(sampler, first, q)
            literal = oracles.query_gradient(X.tolist(), OFFSETS, DOCUMENT, MASS, q, w.tolist())
            share = sampler.law[q] / math.fsum(sampler.law)
            np.testing.assert_allclose(found, np.array(literal) / share, rtol=1e-10, atol=1e-12)
            if case == "weight × steepness":
                assert np.linalg.norm(found) <= math.fsum(sampler.law) * (1 + EXACT)
            mean += sampler.probability[q] * found
        risk = np.zeros(6)
        for d, m in zip(DOCUMENT, MASS, strict=True):
            risk += m * np.array(oracles.hinge_gradient(X.tolist(), OFFSETS, d, w.tolist()))
        np.testing.assert_allclose(mean, risk, rtol=0, atol=EXACT * max(1, np.abs(risk).max()))


@pytest.mark.oracle("sgd.train_sgd")
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
@pytest.mark.parametrize(("runs", "batch"), [(1, 1), (1, 3), (2, 1), (2, 2)])
@pytest.mark.parametrize("kind", ["clicks", "deck", "queries", "queries, sorted"])
@patch.object(samplers, "AliasTable", Fixed)
def test_training_follows_the_algorithm(kind: str, optimizer: str, runs: int, batch: int) -> None:
    """By single clicks, with and without replacement, and by whole queries: what is drawn, step by step, in a loop."""
    steps, rates, shape = 12, [0.001, 0.02, 0.3], (12, runs, batch)
    clicked = [t for t, c in enumerate(CLICKS) if c]
    if "queries" in kind:
        sampler = query_sampler(LOG, gradient_bounds_of=X)
        law = oracles.query_law(X.tolist(), OFFSETS, DOCUMENT, CLICKS, PROPENSITY)
        drawn = np.random.default_rng(7).choice([0, 2, 3], size=shape)
        lists, terms = range(len(law)), {
            q: [(d, m * math.fsum(law) / law[q]) for d, m in zip(DOCUMENT, MASS, strict=True) if low <= d < high]
            for q, (low, high) in enumerate(pairwise(OFFSETS)) if law[q]
        }  # fmt: skip
    else:
        sampler = click_sampler(LOG, "ips", replacement=kind == "clicks")
        drawn = np.random.default_rng(7).integers(len(clicked), size=shape)
        if kind == "deck":
            drawn = np.array(oracles.dealt([CLICKS[t] for t in clicked], runs, batch, steps, 9))
        lists = [oracles.list_of(DOCUMENT[t], OFFSETS) for t in clicked]
        terms = {i: [(DOCUMENT[t], 1 / PROPENSITY[t])] for i, t in enumerate(clicked)}
    pairs = 0 if "sorted" in kind else sgd.PAIRS
    with patch.object(Fixed, "sequence", drawn), patch.object(sgd, "PAIRS", pairs):
        path = train_sgd(X, sampler, learning_rates=rates, steps=steps, rng=np.random.default_rng(9), batch=batch,
                         runs=runs, optimizer=optimizer, record=[0, 5, 12])  # fmt: skip
    assert path.steps.tolist() == [0, 5, 12]
    for of_path in (path.last, path.average, path.documents):  # before the first step
        assert not of_path[0].any()
    for (k, stop), run in itertools.product(((1, 5), (2, 12)), range(runs)):
        # The oracle averages over the clicks of a step, the step over what it drew.
        batches = [[term for item in row for term in terms[item]] for row in drawn[:stop, run].tolist()]
        batches = [[(d, scale * len(row) / batch) for d, scale in row] for row in batches]
        items = drawn[:stop, run].ravel().tolist()
        assert path.documents[k, run] == sum(OFFSETS[lists[i] + 1] - OFFSETS[lists[i]] for i in items)
        for j, rate in enumerate(rates):
            last, average, _ = oracles.sgd(X.tolist(), OFFSETS, batches, rate, optimizer)
            np.testing.assert_allclose(path.last[k, run, j], last, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(path.average[k, run, j], average, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("runs", "batch"), [(1, 1), (3, 2)])
def test_a_longer_run_begins_as_a_shorter_and_single_precision_is_taken_to_double(runs: int, batch: int) -> None:
    for sampler in (click_sampler(LOG, "countersample"), click_sampler(LOG, "ips", replacement=False),
                    query_sampler(LOG, gradient_bounds_of=X)):  # fmt: skip

        def train(steps, features=X, sampler=sampler, **more):
            given = {"learning_rates": [0.01, 0.1], "runs": runs, "batch": batch, **more}
            return train_sgd(features, sampler, steps=steps, rng=np.random.default_rng(8), **given)

        whole = train(60, record=[15, 60])
        np.testing.assert_array_equal(train(15).last[0], whole.last[0])
        assert not np.allclose(whole.last[1, 0], whole.last[0, 0])
        short = X.astype(np.float32)
        np.testing.assert_array_equal(train(9, short).last, train(9, short.astype(float)).last)


def literal_step(w: list[float], cap: float) -> np.ndarray:
    """(1/n) Σ min(1/p, cap) ∇f over single clicks: the mean of a step, whatever it draws."""
    out = np.zeros(6)
    for d, c, p in zip(DOCUMENT, CLICKS, PROPENSITY, strict=True):
        for _ in range(c):
            out += min(1 / p, cap) * np.array(oracles.hinge_gradient(X.tolist(), OFFSETS, d, w)) / sum(CLICKS)
    return out


@pytest.mark.oracle("samplers.click_sampler", "samplers.query_sampler")
@pytest.mark.parametrize("cap", [math.inf, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method", ["ips", "countersample", "queries", "queries by length"])
def test_capped_and_mixed_steps_have_the_mean_gradient(
    monkeypatch: pytest.MonkeyPatch, method: str, share: float, cap: float
) -> None:
    """All draws of a step, at the weights where another step leads, with their probabilities."""
    options = {"cap": cap, "uniform_share": share}
    if "queries" in method:
        sampler = query_sampler(LOG, gradient_bounds_of=X if "length" in method else None, **options)
    else:
        sampler = click_sampler(LOG, method, **options)
    chance = sampler.draws.table.probabilities()
    n, weight = sum(CLICKS), [min(1 / p, cap) for p in PROPENSITY]
    if "queries" in method:
        law = [sum(c * w for d, c, w in zip(DOCUMENT, CLICKS, weight, strict=True) if low <= d < high)
               for low, high in pairwise(OFFSETS)]  # fmt: skip
        if "length" in method:
            law = oracles.query_law(X.tolist(), OFFSETS, DOCUMENT, CLICKS, [1 / w for w in weight])
        clicked = [any(low <= d < high for d, c in zip(DOCUMENT, CLICKS, strict=True) if c) for low, high in
                   pairwise(OFFSETS)]  # fmt: skip
        wanted = [
            (1 - share) * v / math.fsum(law) + share * k / sum(clicked) for v, k in zip(law, clicked, strict=True)
        ]
    else:
        total = math.fsum(c * w for c, w in zip(CLICKS, weight, strict=True))
        laws = [c * w / total if method == "countersample" else c / n for c, w in zip(CLICKS, weight, strict=True)]
        mixed = [(1 - share) * p + share * c / n for p, c in zip(laws, CLICKS, strict=True)]
        wanted = [p for p, c in zip(mixed, CLICKS, strict=True) if c]
        # No factor is larger than that of the law alone over 1 − u, nor than w / u.
        clicked_weight = np.array([w for w, c in zip(weight, CLICKS, strict=True) if c])
        most = clicked_weight if method == "ips" else np.full(len(wanted), total / n)
        with np.errstate(divide="ignore"):
            bound = np.minimum(most / (1 - share), clicked_weight / share)
        assert np.all(sampler.factor <= bound * (1 + EXACT))
    np.testing.assert_allclose(chance, wanted, rtol=0, atol=EXACT)
    monkeypatch.setattr(samplers, "AliasTable", Fixed)
    if "queries" not in method:
        object.__setattr__(sampler, "table", Fixed(sampler.factor))
    for first in (0, 2):
        mean = np.zeros(6)
        for item in np.flatnonzero(chance):
            w, found = gradient_after(sampler, first, int(item))
            mean += chance[item] * found
        risk = literal_step(w.tolist(), cap)
        np.testing.assert_allclose(mean, risk, rtol=0, atol=EXACT * max(1, np.abs(risk).max()))
        if cap < math.inf:  # the cap is no detail
            assert np.abs(mean - literal_step(w.tolist(), math.inf)).max() > 0.01


@pytest.mark.oracle("samplers.ClickSampler.draws", "samplers.QuerySampler.draws", "samplers.Draws.lists_of",
                    "samplers.matched")  # fmt: skip
def test_what_is_drawn_from() -> None:
    """Items with their lists and clicked documents, one click each or all of a query."""
    members = [list(range(low, high)) for low, high in pairwise(OFFSETS)]
    by_click, by_query = click_sampler(LOG, "ips"), query_sampler(LOG, gradient_bounds_of=X)
    of_items = {
        "clicks": (by_click.draws, [([d], next(part for part in members if d in part), [1 / p])
                   for d, c, p in zip(DOCUMENT, CLICKS, PROPENSITY, strict=True) if c]),
        "queries": (by_query.draws, [([d for d in part if by_query.factor[d]], part,
                    [f for f in by_query.factor[part].tolist() if f]) for part in members]),
    }  # fmt: skip
    for draws, wanted in of_items.values():
        assert len(draws.start) == len(wanted)
        for i, (documents, part, factors) in enumerate(wanted):
            assert [*range(draws.start[i], draws.stop[i])] == part
            here = slice(draws.first[i], draws.first[i + 1])
            assert (draws.own[here] + draws.start[i]).tolist() == documents
            np.testing.assert_allclose(draws.factor[here], factors, rtol=EXACT)
        items = np.array([3, 0, 3, 1])
        index, begin, width = draws.lists_of(items)
        cuts = [0, *np.cumsum([len(wanted[i][1]) for i in items]).tolist()]
        assert index.tolist() == [d for i in items for d in wanted[i][1]]
        assert (begin.tolist(), width.tolist()) == (cuts[:-1], np.diff(cuts).tolist())
    found = by_query.draws.lists_of(np.array([2, 0]))[0]
    assert found.tolist() == oracles.document_index([2, 0], OFFSETS)
    np.testing.assert_array_equal(matched(X.tolist(), np.array(OFFSETS), "offsets"), X)
