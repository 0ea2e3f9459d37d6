"""Scores by name: in the order of the lists, of what a ranker showed, and what is wrong with them."""

import numpy as np
import oracles
import pandas as pd
import pytest
from event_damage import frame_of
from hypothesis import given
from hypothesis import strategies as st
from oracles import Event
from refusals import refuses

import cfltr_core as cf

LISTS = {query: [10 * query + d for d in range(4)] for query in range(3)}
PAIRS = [(query, document) for query, documents in LISTS.items() for document in documents]
FEATURES = pd.DataFrame(PAIRS, columns=["query", "document"]).assign(x=1.0)


def some_events(seed: int) -> list[Event]:
    """Pages of two or three of four documents; ranker B never serves the last query."""
    rng, out = np.random.default_rng(seed), []
    for session in range(60):
        query = int(rng.integers(3))
        ranker = "A" if query == 2 else "AB"[rng.integers(2)]
        page = rng.permutation(LISTS[query])[: rng.integers(2, 4)]
        out += [(session, query, int(d), float(k), float(k == session % 3), ranker, 0) for k, d in enumerate(page, 1)]
    return out


@pytest.mark.oracle("event_counts.Events.shown_scores")
@pytest.mark.parametrize("seed", range(4))
def test_shown_scores_are_mean_places(seed: int) -> None:
    log = some_events(seed)
    events = cf.read_events(frame_of(log), FEATURES, split=None)
    for rankers in (["A"], ["B", "A"]):
        found = events.shown_scores(rankers[0], otherwise=rankers[1] if rankers[1:] else None)
        np.testing.assert_allclose(found, list(oracles.mean_places(log, rankers, LISTS).values()), rtol=1e-12)
    message = "ranker: 'B' never served 1 of 3 queries, 2 the first: leave their sessions out, by events.subset("
    refuses(message, events.shown_scores, "B")
    refuses("ranker is 'C': the rankers of the log are 'A', 'B'", events.shown_scores, "B", otherwise="C")
    # Where only queries with sessions of B are left, nothing is missing.
    some = events.subset(queries=[0, 1])
    np.testing.assert_array_equal(some.shown_scores("B")[:8], events.shown_scores("B", otherwise="A")[:8])


EVENTS = cf.read_events(frame_of(some_events(0)), FEATURES, split=None)


@pytest.mark.oracle("event_counts.Events.scores")
@given(order=st.permutations(range(len(FEATURES))), frame=st.booleans())
def test_named_scores_do_not_depend_on_their_order(order: list[int], frame: bool) -> None:
    scores = {(q, d): 7.0 * q - d for q, d in PAIRS}
    table = FEATURES.assign(score=list(scores.values())).iloc[order]
    named = table if frame else table.set_index(["query", "document"])["score"]
    found = EVENTS.scores(named).tolist()
    assert found == list(scores.values())
    lists = EVENTS.offsets.tolist()
    weights = cf.rank_weights(EVENTS.scores(named), EVENTS.offsets, metric=cf.dcg())
    np.testing.assert_allclose(weights.lam, oracles.rank_weights(found, lists, oracles.dcg), rtol=1e-12)


NAMED = FEATURES.assign(score=1.0)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (np.ones(12), "named is ndarray, without names of query and document: give a data frame"),
        (NAMED["score"], "named is Series, without names"),
        (FEATURES, "named: there is no column 'score'; give query, document and score"),
        (NAMED.iloc[[0, *range(12)]], "named: query 0, document 0 has two scores; keep one"),
        (NAMED.iloc[2:], "named: the score of query 0, document 0 is missing, and so are 1 others"),
        (NAMED.assign(score=[1.0] * 11 + [np.nan]), "named: the score of query 2, document 23 is no"),
    ],
)
def test_messages(named: object, message: str) -> None:
    refuses(message, EVENTS.scores, named)


def test_a_series_that_was_moved_is_refused() -> None:
    scores = pd.Series(np.arange(12.0))
    cf.rank_weights(scores, EVENTS.offsets, metric=cf.dcg())
    for moved in (scores[::-1], scores.sample(frac=1, random_state=0), NAMED.set_index(["query", "document"])["score"]):
        refuses("scores: a Series whose index is not 0, 1, 2", cf.rank_weights, moved, EVENTS.offsets, metric=cf.dcg())
