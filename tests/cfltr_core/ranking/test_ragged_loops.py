"""Ragged data and segment operations, against loops over the lists."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TIED, Problem, offsets, problems

from cfltr_core import RankingData, query_index, segment_sum
from cfltr_core.ranking.ragged import (
    document_index,
    equal_blocks,
    length_groups,
    lengths,
)


@pytest.mark.oracle("ragged.lengths", "ragged.query_index")
@given(cuts=offsets())
def test_lengths_and_query_index(cuts: list[int]) -> None:
    assert lengths(cuts).tolist() == oracles.lengths(cuts)
    assert query_index(cuts).tolist() == oracles.query_index(cuts)


@pytest.mark.oracle("ragged.document_index")
@given(cuts=offsets(), data=st.data())
def test_document_index(cuts: list[int], data: st.DataObject) -> None:
    queries = data.draw(st.lists(st.integers(0, len(cuts) - 2), min_size=1, max_size=7))
    found = document_index(np.array(queries), np.array(cuts))
    assert found.tolist() == oracles.document_index(queries, cuts)


@pytest.mark.oracle("ragged.segment_sum")
@given(cuts=offsets(), data=st.data())
def test_segment_operations(cuts: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(TIED, min_size=cuts[-1], max_size=cuts[-1]))
    assert segment_sum(values, cuts).tolist() == oracles.segment_sum(values, cuts)
    pair = segment_sum(np.stack([values, np.square(values)], axis=1), cuts)
    assert pair[:, 0].tolist() == oracles.segment_sum(values, cuts)
    assert pair[:, 1].tolist() == oracles.segment_sum([v * v for v in values], cuts)


@pytest.mark.oracle("ragged.equal_blocks")
@given(sizes=st.lists(st.integers(1, 5), max_size=12), cells=st.integers(1, 12))
def test_equal_blocks(sizes: list[int], cells: int) -> None:
    found = [block.tolist() for block in equal_blocks(np.array(sizes, dtype=int), cells)]
    assert found == oracles.equal_blocks(sizes, cells)


@pytest.mark.oracle("ragged.length_groups")
@given(cuts=offsets(), block=st.integers(1, 12))
def test_length_groups(cuts: list[int], block: int) -> None:
    documents = oracles.lists(cuts)
    found: dict[int, list[int]] = {}
    for queries, index in length_groups(np.array(cuts), block):
        assert index.shape[0] == len(queries)
        assert index.size <= max(block, index.shape[1])
        assert index.tolist() == [documents[q] for q in queries]
        found.setdefault(index.shape[1], []).extend(queries.tolist())
    assert found == oracles.length_groups(cuts)
    assert list(found) == sorted(found)


@pytest.mark.oracle("ragged.RankingData", "ragged.RankingData.n_queries", "ragged.RankingData.n_docs",
                    "ragged.RankingData.binary", "ragged.RankingData.subset")  # fmt: skip
@given(problem=problems(), threshold=st.integers(1, 4), data=st.data())
def test_ranking_data(problem: Problem, threshold: int, data: st.DataObject) -> None:
    features = [[float(d), float(d % 3)] for d in range(problem.offsets[-1])]
    whole = RankingData(np.array(features), problem.grades, offsets=problem.offsets, threshold=threshold, name="toy")
    assert (whole.features.dtype, whole.relevance.dtype, whole.offsets.dtype) == (np.float32, np.int8, np.int64)
    assert whole.n_queries == len(oracles.lists(problem.offsets))
    assert whole.n_docs == len(oracles.query_index(problem.offsets))
    assert whole.binary.tolist() == [1.0 if y >= threshold else 0.0 for y in problem.grades]
    queries = data.draw(st.lists(st.integers(0, whole.n_queries - 1), min_size=1, max_size=6))
    part = whole.subset(queries)
    rows = oracles.document_index(queries, problem.offsets)
    assert part.features.tolist() == [features[d] for d in rows]
    assert part.relevance.tolist() == [problem.grades[d] for d in rows]
    assert np.diff(part.offsets).tolist() == [oracles.lengths(problem.offsets)[q] for q in queries]
    assert (part.threshold, part.name) == (threshold, "toy")
