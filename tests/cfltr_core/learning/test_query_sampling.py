"""Gradients of whole queries: their law, their mean over all queries, training with them, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import oracles
import pytest

from cfltr_core import ClickLog, query_sampler, train_sgd
from cfltr_core.learning import query_sampling
from cfltr_core.learning.query_sampling import QuerySampler, Step, query_steps

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
    document=DOCUMENT,
    rank=[1, 4, 1, 2, 5, 2, 7, 2, 5, 2],
    impressions=[9] * 10,
    clicks=CLICKS,
    propensity=PROPENSITY,
    sessions=[9, 9, 9, 9, 9],
    offsets=OFFSETS,
)
MASS = [c / p / sum(CLICKS) for c, p in zip(CLICKS, PROPENSITY, strict=True)]


def gradient_at(begin: Callable[..., Step], w: np.ndarray, sampler: QuerySampler, query: int) -> np.ndarray:
    """The gradient that a step with this query takes, found by drawing until it is drawn."""
    steps = begin(X, np.array(OFFSETS), sampler, (1, 1), w[None, :, None], np.random.default_rng(0))
    wanted = OFFSETS[query + 1] - OFFSETS[query]
    for gradient, scored in steps:
        if scored[0] == wanted:  # all lists that can be drawn have lengths of their own
            return gradient[0, :, 0].copy()
    raise AssertionError


@pytest.mark.oracle(
    "query_sampling.query_sampler", "query_sampling.QuerySampler.probability", "query_sampling.QuerySampler.factor"
)
def test_a_query_is_drawn_by_the_weight_and_the_steepness_of_its_clicks() -> None:
    sampler = query_sampler(X, LOG)
    law = oracles.query_law(X.tolist(), OFFSETS, DOCUMENT, CLICKS, PROPENSITY)
    np.testing.assert_allclose(sampler.law, law, rtol=EXACT)
    np.testing.assert_allclose(sampler.probability, [v / math.fsum(law) for v in law], rtol=EXACT)
    assert (sampler.law > 0).tolist() == [True, False, True, True, False]
    mass = [math.fsum(m for m, d in zip(MASS, DOCUMENT, strict=True) if d == document) for document in range(20)]
    np.testing.assert_allclose(sampler.mass, mass, rtol=EXACT)
    np.testing.assert_allclose(sampler.factor, oracles.query_factor(mass, OFFSETS, law), rtol=EXACT)
    single = query_sampler(X.astype(np.float32), LOG)
    np.testing.assert_allclose(single.law, sampler.law, rtol=1e-5)


@pytest.mark.oracle("query_sampling.query_steps", "query_sampling.QuerySampler")
@pytest.mark.parametrize("pairs", [query_sampling.PAIRS, 0])
@pytest.mark.parametrize("case", ["weight × steepness", "own law"])
def test_the_gradient_is_unbiased_and_bounded(monkeypatch: pytest.MonkeyPatch, case: str, pairs: int) -> None:
    """The expectation over all queries, at several weights, against a loop over single clicks."""
    monkeypatch.setattr(query_sampling, "PAIRS", pairs)
    sampler = query_sampler(X, LOG)
    if case == "own law":
        sampler = QuerySampler(sampler.mass, OFFSETS, law=[0.2, 0.1, 3.0, 0.4, 0.0])
    rng = np.random.default_rng(2)
    drawable = [0, 2, 3]  # the other lists have no gradient
    for w in (np.zeros(6), rng.normal(size=6), 10 * rng.normal(size=6)):
        found = {q: gradient_at(query_steps, w, sampler, q) for q in drawable}
        for q in drawable:
            literal = oracles.query_gradient(X.tolist(), OFFSETS, DOCUMENT, MASS, q, w.tolist())
            share = sampler.law[q] / math.fsum(sampler.law)
            np.testing.assert_allclose(found[q], np.array(literal) / share, rtol=1e-10, atol=1e-12)
            if case == "weight × steepness":
                assert np.linalg.norm(found[q]) <= math.fsum(sampler.law) * (1 + EXACT)
        mean = sum(sampler.probability[q] * found[q] for q in drawable)
        risk = np.zeros(6)
        for d, m in zip(DOCUMENT, MASS, strict=True):
            risk += m * np.array(oracles.hinge_gradient(X.tolist(), OFFSETS, d, w.tolist()))
        np.testing.assert_allclose(mean, risk, rtol=0, atol=EXACT * max(1, np.abs(risk).max()))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
@pytest.mark.parametrize(("runs", "batch", "pairs"), [(1, 1, query_sampling.PAIRS), (1, 3, 0), (2, 2, 0)])
def test_training_follows_the_algorithm(
    monkeypatch: pytest.MonkeyPatch, optimizer: str, runs: int, batch: int, pairs: int
) -> None:
    monkeypatch.setattr(query_sampling, "PAIRS", pairs)
    steps, rates = 12, [0.001, 0.02, 0.3]
    sequence = np.random.default_rng(7).choice([0, 2, 3], size=(steps, runs, batch))

    class Fixed:
        """Stands for an alias table whose draws are known."""

        @classmethod
        def build(cls, law):
            return cls()

        def draw(self, size, rng) -> np.ndarray:
            return np.resize(sequence, size)

    monkeypatch.setattr(query_sampling, "AliasTable", Fixed)
    sampler = query_sampler(X, LOG)
    path = train_sgd(
        X,
        sampler,
        learning_rates=rates,
        steps=steps,
        rng=np.random.default_rng(0),
        batch=batch,
        runs=runs,
        optimizer=optimizer,
        record=[5, 12],
    )
    law = oracles.query_law(X.tolist(), OFFSETS, DOCUMENT, CLICKS, PROPENSITY)

    def terms(query: int) -> list[tuple[int, float]]:
        members = range(OFFSETS[query], OFFSETS[query + 1])
        scale = math.fsum(law) / law[query]
        return [(d, m * scale) for d, m in zip(DOCUMENT, MASS, strict=True) if d in members]

    for k, stop in enumerate((5, 12)):
        for run in range(runs):
            batches = [[term for q in row for term in terms(q)] for row in sequence[:stop, run].tolist()]
            # The oracle averages over the clicks of a step, the step over its queries.
            batches = [[(d, scale * len(row) / batch) for d, scale in row] for row in batches]
            scored = sum(OFFSETS[q + 1] - OFFSETS[q] for q in sequence[:stop, run].ravel().tolist())
            assert path.documents[k, run] == scored
            for j, rate in enumerate(rates):
                last, average, _ = oracles.sgd(X.tolist(), OFFSETS, batches, rate, optimizer)
                np.testing.assert_allclose(path.last[k, run, j], last, rtol=1e-9, atol=1e-11)
                np.testing.assert_allclose(path.average[k, run, j], average, rtol=1e-9, atol=1e-11)


def test_a_longer_run_begins_as_a_shorter_and_draws_follow_the_law() -> None:
    sampler = query_sampler(X, LOG)

    def train(steps, **more):
        rng = np.random.default_rng(8)
        return train_sgd(X, sampler, learning_rates=[0.01, 0.1], steps=steps, rng=rng, **more)

    for batch in (1, 3):
        np.testing.assert_array_equal(train(20, batch=batch).last[0], train(100, batch=batch, record=[20, 100]).last[0])
    steps = 20_000
    mean = train(steps).documents[0, 0] / steps
    width = np.diff(OFFSETS)
    wanted = sampler.probability @ width
    spread = math.sqrt(sampler.probability @ (width - wanted) ** 2 / steps)
    assert abs(mean - wanted) < 4 * spread
    assert repr(sampler) == "QuerySampler(5 queries)"


SILENT = ClickLog(document=[0], rank=[1], impressions=[4], clicks=[0], propensity=[1.0], sessions=[4], offsets=[0, 2])
CLICKED = ClickLog(document=[0], rank=[1], impressions=[4], clicks=[1], propensity=[1.0], sessions=[4], offsets=[0, 2])
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "features": (lambda: query_sampler([1.0, 2.0], CLICKED), r"features: expected shape \(n_docs, n_features\)"),
    "NaN": (lambda: query_sampler([[1.0], [math.nan]], CLICKED), "features: .*finite numbers"),
    "lists": (lambda: query_sampler([[1.0]], CLICKED), r"log.offsets\[-1\] is 2 but there are 1 documents"),
    "no clicks": (lambda: query_sampler([[1.0], [2.0]], SILENT), "log: there is no click in the log"),
    "all alike": (
        lambda: query_sampler([[1.0], [1.0]], CLICKED),
        "features: no clicked document differs from the rest",
    ),
    "mass": (lambda: QuerySampler([1.0], [0, 2], law=[1.0]), r"mass: expected shape \(2,\)"),
    "negative mass": (lambda: QuerySampler([1.0, -1.0], [0, 2], law=[1.0]), r"mass\[1\] is -1\.0, outside \[0, inf\]"),
    "law": (lambda: QuerySampler([1.0, 0.0], [0, 2], law=[1.0, 1.0]), r"law: expected shape \(1,\)"),
    "negative law": (lambda: QuerySampler([1.0, 0.0], [0, 2], law=[-1.0]), r"law\[0\] is -1\.0, outside \[0, inf\]"),
    "law of 0": (lambda: QuerySampler([1.0, 0.0], [0, 2], law=[0.0]), "law: it is 0 for every query"),
    "offsets": (
        lambda: train_sgd(
            [[1.0]],
            QuerySampler([1.0, 0.0], [0, 2], law=[1.0]),
            learning_rates=0.1,
            steps=1,
            rng=np.random.default_rng(0),
        ),
        r"sampler.offsets\[-1\] is 2 but there are 1 documents",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()
