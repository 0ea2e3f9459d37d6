"""Doubly robust gains and estimates against loops, over every page and click, and an example by hand."""

import math
from typing import Any

import numpy as np
import oracles
import pytest
from as_loops import table_of, terms_of
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import cfltr_core as cf
from cfltr_core.evaluation.doubly_robust import robust_gains

THETA = [1.0, 0.5, 0.2]
USER = cf.PositionBasedUser(THETA, epsilon_minus=0.2)


def world(seed: int, n_queries: int = 6, sessions: int = 20) -> tuple[cf.ClickLog, cf.DisplayShares, np.ndarray]:
    """Lists of one to four, two rankers with pages of three; and features, of which one is the relevance."""
    rng = np.random.default_rng(seed)
    cuts = np.append(0, np.cumsum(rng.integers(1, 5, size=n_queries)))
    relevance = rng.integers(2, size=cuts[-1])
    pages = [cf.DeterministicPolicy.rank_by(rng.random(cuts[-1]), cuts, rng=rng, cutoff=3) for _ in range(2)]
    policy = cf.MixturePolicy(pages, [0.5, 0.5])
    per_query = cf.draw_sessions(sessions, n_queries, rng=rng)
    log = cf.simulate_clicks(policy, USER, relevance=relevance, sessions=per_query, rng=rng)
    return log, cf.DisplayShares.of_policy(policy), np.column_stack([relevance, rng.normal(size=(cuts[-1], 2))])


@pytest.mark.oracle("doubly_robust.doubly_robust", "doubly_robust.robust_gains")
@given(seed=st.integers(0, 2**20), cap=st.sampled_from([1.0, 2.5, math.inf]))
def test_gains_and_estimate(seed: int, cap: float) -> None:
    log, shares, _ = world(seed)
    rng, cuts, n_docs = np.random.default_rng(seed + 1), log.offsets.tolist(), int(log.offsets[-1])
    guess = rng.random(n_docs)
    exposure = oracles.shared_exposure(table_of(shares), n_docs, THETA)
    loops = [
        oracles.robust_gain(d, terms_of(log), guess, exposure, THETA, cap, int(log.sessions[oracles.list_of(d, cuts)]))
        for d in range(n_docs)
    ]
    case = {"guess": guess, "shares": shares, "user": USER, "cap": cap}
    np.testing.assert_allclose(robust_gains(log, **case), loops, rtol=1e-10, atol=1e-10)
    scores = rng.permutation(n_docs).tolist()
    lam = oracles.rank_weights(scores, cuts, oracles.dcg)
    found = cf.doubly_robust(log, cf.rank_weights(scores, cuts, metric=cf.dcg()), **case)
    value = math.fsum(a * g for a, g in zip(lam, loops, strict=True)) / log.n_sessions
    assert found.value == pytest.approx(value, rel=1e-10, abs=1e-10)
    assert found.report() == pytest.approx(-value, rel=1e-10, abs=1e-10)
    assert (found.n_sessions, found.n_clicks) == (log.n_sessions, log.n_clicks)
    # Each document's gains stand for its clicks, with the weight 1.
    error = oracles.standard_error("query", loops, cuts, log.sessions.tolist(), lam, value, float(log.n_sessions))
    assert found.standard_error == pytest.approx(error, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.oracle("doubly_robust.cross_fitted")
@given(seed=st.integers(0, 2**20), folds=st.integers(2, 6), ridge=st.sampled_from([0.5, 10.0]))
def test_cross_fitted(seed: int, folds: int, ridge: float) -> None:
    log, _, features = world(seed, sessions=200)
    features = features.astype(np.float32)
    n_docs, cuts = int(log.offsets[-1]), log.offsets.tolist()
    clicks, looks = [0.0] * n_docs, [0.0] * n_docs
    for d, k, n, c in terms_of(log):
        clicks[d] += c
        looks[d] += n * oracles.examined(THETA, k)
    found = cf.cross_fitted(features, log, user=USER, folds=folds, ridge=ridge)
    for fold in range(folds):
        others = [d for d in range(n_docs) if oracles.list_of(d, cuts) % folds != fold]
        loops = oracles.ridge_by_looks(features.tolist(), clicks, looks, others, ridge)
        mine = [d for d in range(n_docs) if d not in others]
        np.testing.assert_allclose(found[mine], [loops[d] for d in mine], rtol=1e-5, atol=1e-5)


def test_any_scorer_by_fold_knows_nothing_of_its_own_clicks() -> None:
    log, _, features = world(3)
    seen: list[int] = []

    def fit(x: np.ndarray, clicks: np.ndarray, looks: np.ndarray) -> Any:
        assert len(x) == len(clicks) == len(looks)
        seen.append(len(x))
        return lambda other: np.full(len(other), 2.0 if len(seen) == 1 else 0.25)

    found = cf.cross_fitted(features, log, user=USER, folds=2, fit=fit)
    even = np.array([oracles.list_of(d, log.offsets.tolist()) % 2 == 0 for d in range(len(found))])
    assert seen == [int((~even).sum()), int(even.sum())]
    assert (found[even] == 1).all()
    assert (found[~even] == 0.25).all()


LOG, SHARES, FEATURES = world(5)
LAM = cf.rank_weights(np.arange(len(FEATURES)), LOG.offsets, metric=cf.dcg())
GOOD = {"guess": np.full(len(FEATURES), 0.5), "shares": SHARES, "user": USER, "cap": 2.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guess": np.full(len(FEATURES), 1.5)}, "guess[0] is 1.5, outside [0, 1]: clicks a look; clip what a model"),
        (
            {"shares": cf.DisplayShares(document=[0], rank=[1], share=[1.0], offsets=[0, 1])},
            "shares: its offsets are not",
        ),
        ({"user": cf.PositionBasedUser([0.0, 0.0, 0.0])}, "exposure of document"),
    ],
)
def test_messages(change: dict[str, Any], message: str) -> None:
    refuses(message, cf.doubly_robust, LOG, LAM, **{**GOOD, **change})


def test_more_messages() -> None:
    short = cf.rank_weights([1.0], [0, 1], metric=cf.dcg())
    refuses("rank_weights: it has 1 documents", cf.doubly_robust, LOG, short, **GOOD)
    silent = cf.ClickLog(
        document=[], rank=[], impressions=[], clicks=[], propensity=[], sessions=[0] * 6, offsets=LOG.offsets
    )
    refuses("log: there is no session in the log", cf.doubly_robust, silent, LAM, **GOOD)
    for change, message in (
        ({"folds": 7}, "folds is 7: the log has 6 queries"),
        ({"fit": lambda x, c, n: lambda other: [1.0, 2.0] * 99}, "guesses of fit: expected shape"),
    ):
        refuses(message, cf.cross_fitted, FEATURES, LOG, user=USER, **change)
    refuses("log: of the queries outside fold 0 nothing was examined", cf.cross_fitted, FEATURES, silent, user=USER)
