"""Ranks, weights and metrics on *every* list of up to four documents with scores 0, 1, 2."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest

from cfltr_core import additive_metric, average_rank, dcg, ndcg, precision, rank_weights, ranks, rbp

LISTS = [scores for n in (1, 2, 3, 4) for scores in itertools.product((0.0, 1.0, 2.0), repeat=n)]
OFFSETS = [0, *itertools.accumulate(map(len, LISTS))]
SCORES = [s for scores in LISTS for s in scores]
# Grades 0 … 3 in a pattern that runs through all combinations with the scores; every fifth list has none.
GRADES = [0 if q % 5 == 0 else (7 * d + 3 * q) % 4 for q, docs in enumerate(oracles.lists(OFFSETS)) for d in docs]
WEIGHTS = [
    (average_rank(), oracles.average_rank),
    (dcg(), oracles.dcg),
    (dcg(2), oracles.dcg_at(2)),
    (precision(3), oracles.precision_at(3)),
    (rbp(0.7), oracles.rbp(0.7)),
]


@pytest.mark.oracle("metrics.ranks")
def test_ranks() -> None:
    for ties in ("average", "optimistic", "pessimistic"):
        assert ranks(SCORES, OFFSETS, ties=ties).tolist() == oracles.ranks(SCORES, OFFSETS, ties)
    drawn = ranks(SCORES, OFFSETS, ties="random", rng=np.random.default_rng(0))
    for documents in oracles.lists(OFFSETS):
        assert oracles.is_order([SCORES[d] for d in documents], [drawn[d] for d in documents])


@pytest.mark.oracle(
    "metrics.rank_weights", "rank_weight.average_rank", "rank_weight.dcg", "rank_weight.precision", "rank_weight.rbp"
)
def test_average_weights_over_every_order() -> None:
    for weight, reference in WEIGHTS:
        loops = [w for scores in LISTS for w in oracles.weights_over_orders(scores, reference)]
        np.testing.assert_allclose(rank_weights(SCORES, OFFSETS, metric=weight), loops, rtol=0, atol=1e-14)
    for weight, reference in (
        (average_rank(), oracles.average_rank),
        (dcg(), oracles.dcg),
        (precision(3), oracles.precision_at(3)),
        (rbp(0.7), oracles.rbp(0.7)),
    ):
        for ties in ("optimistic", "pessimistic"):
            loops = oracles.rank_weights(SCORES, OFFSETS, reference, ties)
            np.testing.assert_allclose(
                rank_weights(SCORES, OFFSETS, metric=weight, ties=ties), loops, rtol=0, atol=1e-14
            )


@pytest.mark.oracle("metrics.additive_metric")
def test_additive_metrics() -> None:
    binary = [float(y >= 2) for y in GRADES]
    for weight, reference in WEIGHTS:
        loops = oracles.additive_metric(SCORES, binary, OFFSETS, reference)
        np.testing.assert_allclose(
            additive_metric(SCORES, OFFSETS, relevance=binary, metric=weight), loops, rtol=0, atol=1e-13
        )


@pytest.mark.oracle("metrics.ndcg")
def test_ndcg() -> None:
    for k, gain, empty in itertools.product((1, 2, 3, 10), ("exponential", "linear"), ("drop", "zero", "one")):
        mean, per_query, share = oracles.ndcg(SCORES, GRADES, OFFSETS, k, gain, empty)
        found = ndcg(SCORES, OFFSETS, relevance=GRADES, cutoff=k, gain=gain, empty=empty)
        np.testing.assert_allclose(found.per_query, per_query, rtol=0, atol=1e-13)
        assert math.isclose(found.mean, mean, abs_tol=1e-13)
        assert math.isclose(found.share_dropped, share, abs_tol=1e-13)
        assert (share > 0.2) == (empty == "drop")
