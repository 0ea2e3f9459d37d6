"""Ranks, weights and metrics against literal loops, with ties, lists of one document and extreme scores."""

import math
from collections import Counter
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, problems

import cfltr_core as cf
from cfltr_core.ranking import metrics

WEIGHTS = {
    "average rank": (cf.average_rank(), oracles.average_rank),
    "DCG": (cf.dcg(), oracles.dcg),
    "DCG@3": (cf.dcg(3), oracles.dcg_at(3)),
    "Prec@2": (cf.precision(2), oracles.precision_at(2)),
    "RBP": (cf.rbp(0.8), oracles.rbp(0.8)),
    "own": (cf.RankWeight("own", np.sqrt), math.sqrt),
}
CLOSE = {"rtol": 0, "atol": 1e-12}


@pytest.mark.oracle("metrics.ranks")
@pytest.mark.parametrize("few", [0, metrics.FEW])
@given(problem=problems())
def test_ranks(few: int, problem: Problem) -> None:
    """Few documents are sorted in one go, many in rectangles; here either way takes all lists."""
    with mock.patch.object(metrics, "FEW", few):
        for ties in ("average", "optimistic", "pessimistic"):
            found = cf.ranks(problem.scores, problem.offsets, ties=ties)
            assert found.tolist() == oracles.ranks(problem.scores, problem.offsets, ties)


@pytest.mark.oracle("metrics.ranks")
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_random_ranks_are_permutations_that_respect_the_scores(problem: Problem, seed: int) -> None:
    found = cf.ranks(problem.scores, problem.offsets, ties="random", rng=np.random.default_rng(seed))
    for documents in oracles.lists(problem.offsets):
        assert oracles.is_order([problem.scores[d] for d in documents], [found[d] for d in documents])


def test_random_ranks_take_every_order_of_the_ties_equally_often() -> None:
    """A list of 5 with ties of 2 and 3: 12 orders.  20 000 lists, each frequency within 5 standard deviations."""
    scores, n = [1.0, 0.0, 1.0, 0.0, 0.0], 20_000
    found = cf.ranks(scores * n, np.arange(n + 1) * 5, ties="random", rng=np.random.default_rng(0)).reshape(n, 5)
    seen = Counter(tuple(int(r) for r in row) for row in found)
    orders = list(oracles.orders(scores))
    assert set(seen) == {tuple(order.index(d) + 1 for d in range(5)) for order in orders}
    p = 1 / len(orders)
    for count in seen.values():
        assert abs(count - n * p) <= 5 * math.sqrt(n * p * (1 - p))


def test_random_ranks_of_a_list_do_not_depend_on_its_neighbours() -> None:
    """One draw for the file, in file order: cutting other lists differently leaves the first one alone."""
    scores = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    first = [
        cf.ranks(scores, cuts, ties="random", rng=np.random.default_rng(7))[:3].tolist()
        for cuts in ([0, 3, 7], [0, 3, 5, 7])
    ]
    assert first[0] == first[1]


@pytest.mark.oracle("metrics.rank_weights", "rank_weight.RankWeights.gain")
@pytest.mark.parametrize("name", WEIGHTS)
@given(problem=problems())
def test_rank_weights(name: str, problem: Problem) -> None:
    weight, reference = WEIGHTS[name]
    loops = oracles.rank_weights(problem.scores, problem.offsets, reference)
    found = cf.rank_weights(problem.scores, problem.offsets, metric=weight)
    np.testing.assert_allclose(found, loops, **CLOSE)
    np.testing.assert_allclose(found.gain, [-value for value in loops], **CLOSE)
    for ties in ("optimistic", "pessimistic"):
        loops = oracles.rank_weights(problem.scores, problem.offsets, reference, ties)
        np.testing.assert_allclose(
            cf.rank_weights(problem.scores, problem.offsets, metric=weight, ties=ties), loops, **CLOSE
        )


def test_average_weight_is_not_the_weight_of_the_average_rank() -> None:
    found = cf.rank_weights([5.0, 5.0], [0, 2], metric=cf.dcg()).lam
    assert abs(found[0] - (oracles.dcg(1) + oracles.dcg(2)) / 2) <= 1e-15
    assert abs(found[0] - oracles.dcg(1.5)) > 0.01


@pytest.mark.oracle("metrics.additive_metric")
@pytest.mark.parametrize("name", WEIGHTS)
@given(problem=problems(), seed=st.integers(0, 99))
def test_additive_metric(name: str, problem: Problem, seed: int) -> None:
    weight, reference = WEIGHTS[name]
    relevance = [y - 1.5 for y in problem.grades]
    for ties in ("average", "optimistic", "pessimistic"):
        found = cf.additive_metric(problem.scores, problem.offsets, relevance=relevance, metric=weight, ties=ties)
        loops = oracles.additive_metric(problem.scores, relevance, problem.offsets, reference, ties)
        np.testing.assert_allclose(found, loops, **CLOSE)
    rank = cf.ranks(problem.scores, problem.offsets, ties="random", rng=np.random.default_rng(seed))
    found = cf.additive_metric(
        problem.scores, problem.offsets, relevance=relevance, metric=weight, ties="random",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    loops = oracles.segment_sum([reference(r) * y for r, y in zip(rank, relevance, strict=True)], problem.offsets)
    np.testing.assert_allclose(found, loops, **CLOSE)


@pytest.mark.oracle("metrics.ndcg")
@given(
    problem=problems(),
    k=st.sampled_from([1, 2, 3, 5, 10]),
    gain=st.sampled_from(["exponential", "linear"]),
    empty=st.sampled_from(["drop", "zero", "one"]),
)
def test_ndcg(problem: Problem, k: int, gain: str, empty: str) -> None:
    mean, per_query, share = oracles.ndcg(problem.scores, problem.grades, problem.offsets, k, gain, empty)
    found = cf.ndcg(problem.scores, problem.offsets, relevance=problem.grades, cutoff=k, gain=gain, empty=empty)
    np.testing.assert_allclose(found.per_query, per_query, **CLOSE)
    np.testing.assert_allclose(found.mean, mean, **CLOSE)
    np.testing.assert_allclose(found.share_dropped, share, **CLOSE)


def test_ndcg_of_long_lists_with_and_without_ties_in_one_call() -> None:
    """Rows take different paths in the code: ties above, at and below the cut-off, and none."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(40).astype(float) for _ in range(6)]
    rows[1][np.argsort(-rows[1])[:2]] = 100.0
    rows[2][np.argsort(-rows[2])[9:11]] = 20.0
    rows[3][np.argsort(-rows[3])[10:30]] = -1.0
    rows[4][:] = 0.0
    grades = rng.integers(0, 5, size=240).tolist()
    cuts = [40 * i for i in range(7)]
    scores = [s for row in rows for s in row.tolist()]
    mean, per_query, _ = oracles.ndcg(scores, grades, cuts, 10, "exponential", "drop")
    found = cf.ndcg(scores, cuts, relevance=grades)
    np.testing.assert_allclose(found.per_query, per_query, **CLOSE)
    np.testing.assert_allclose(found.mean, mean, **CLOSE)


@pytest.mark.oracle("rank_weight.RankWeight", "rank_weight.RankWeight.__call__", "rank_weight.RankWeight.report")
@pytest.mark.parametrize("name", WEIGHTS)
@given(rank=st.lists(st.floats(1, 1000), min_size=1, max_size=5))
def test_rank_weight(name: str, rank: list[float]) -> None:
    named, reference = WEIGHTS[name]
    weight = cf.RankWeight("again", named.function, larger_is_better=named.larger_is_better)
    np.testing.assert_allclose(weight(rank), [reference(r) for r in rank], rtol=1e-14, atol=0)
    np.testing.assert_allclose(weight(rank[0]), reference(rank[0]), rtol=1e-14, atol=0)
    gain = name != "average rank"
    assert weight.report([2.0, -1.0]).tolist() == [oracles.report(2.0, gain), oracles.report(-1.0, gain)]


@pytest.mark.oracle("rank_weight.average_rank", "rank_weight.dcg", "rank_weight.precision", "rank_weight.rbp")
def test_named_weights() -> None:
    r = np.arange(1.0, 200.0)
    for weight, name, reference in (
        (cf.average_rank(), "average rank", oracles.average_rank),
        (cf.dcg(), "DCG", oracles.dcg),
        (cf.dcg(10), "DCG@10", oracles.dcg_at(10)),
        (cf.precision(5), "Prec@5", oracles.precision_at(5)),
        (cf.rbp(0.5), "RBP(0.5)", oracles.rbp(0.5)),
    ):
        assert weight.name == name
        np.testing.assert_allclose(weight(r), [reference(x) for x in r], rtol=1e-14, atol=0)
        # Risk is minimised: no weight decreases with the rank.
        assert (np.diff(weight(r)) >= 0).all()
        assert weight.larger_is_better == (name != "average rank")
    assert abs(cf.rbp(0.5)(r).sum() + 1.0) <= 1e-12
