"""Scorers learnt by LambdaLoss: the course of Adam in a loop, exposure in every learner, files, trees, bad input."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from ragged_logs import TWO_RANKS
from refusals import refuses
from torch import nn

import cfltr_core as cf
from cfltr_core.learning.course import Plan, TrainingDiverged, validation_pair
from cfltr_core.learning.lambdaloss_fit import LambdaFit, lambda_objective
from cfltr_core.learning.module_training import train_module

CUTS = TWO_RANKS.offsets.tolist()
LOG = TWO_RANKS
X = np.random.default_rng(1).normal(size=(13, 3)) * [1.0, 10.0, 0.1]
MASSES = oracles.click_masses(LOG.document.tolist(), LOG.clicks.tolist(), LOG.propensity.tolist(), 1.0)
GAINS = [MASSES.get(d, 0.0) for d in range(13)]
COMMON: dict[str, Any] = {
    "steps": None, "weight_decay": 0.0, "batch_documents": 1000, "patience": None, "progress": False,
    "metric": cf.dcg(2),
}  # fmt: skip


def linear(start: list[float]) -> nn.Linear:
    net = nn.Linear(len(start), 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([start], dtype=torch.float64))
    return net


def problem(seed: int = 0, n_queries: int = 150, last: float = 1.0) -> tuple[np.ndarray, np.ndarray, Any, cf.ClickLog]:
    """Features, relevance, the policy and its log: pages of two whose second place is random."""
    rng = np.random.default_rng(seed)
    cuts = np.concatenate([[0], np.cumsum(rng.integers(3, 12, n_queries))])
    x = rng.normal(size=(int(cuts[-1]), 4))
    relevance = (x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=len(x)) > 1.2).astype(float)
    score = x[:, 0] - x[:, 2]
    rank = np.concatenate([np.argsort(np.argsort(-score[a:b])) + 1 for a, b in pairwise(cuts)])
    policy = cf.EpsilonGreedyPolicy(rank, cuts, epsilon=[0.0, last])
    log = cf.simulate_clicks(policy, USER, relevance=relevance, sessions=[200] * n_queries, rng=rng)
    return x, relevance, policy, log


USER = cf.PositionBasedUser([1.0, 0.5])


@pytest.mark.oracle("lambdaloss_fit.fit_lambdaloss", "lambdaloss_fit.LambdaFit")
@pytest.mark.parametrize(
    ("k", "truncation", "form", "decay"),
    [(None, "at_least_one", "linear", 0.0), (2, "at_least_one", "linear", 0.3), (2, "beyond", "linear", 0.0),
     (2, "both", "difference", 0.1)],
)  # fmt: skip
def test_the_course_is_that_of_the_loop(k: int | None, truncation: Any, form: Any, decay: float) -> None:
    schedule, other = [(3, 0.2), (2, 0.05)], replace(LOG, clicks=[1, 1, 3, 2, 0, 1, 1])
    rates = oracles.rates(schedule, 7)
    spread = [math.sqrt(oracles.moments([(1 / 13, v) for v in column])[1]) for column in X.T.tolist()]
    weights, values = oracles.lambda_adam(X.tolist(), CUTS, GAINS, [0.0] * 3, rates, decay, k, truncation, form, spread)
    fit = cf.fit_lambdaloss(
        X, LOG, cutoff=k, truncation=truncation, form=form, weight_decay=decay, learning_rate=schedule, epochs=7,
        validation=(X, other),
    )  # fmt: skip
    assert type(fit) is LambdaFit
    given = (other.document.tolist(), other.clicks.tolist(), other.propensity.tolist())
    weight = oracles.dcg if k is None else oracles.dcg_at(k)
    risks = [oracles.snips(oracles.linear_scores(X.tolist(), w), CUTS, *given, weight) for w in weights]
    best = int(np.argmin(risks))
    np.testing.assert_allclose(fit.history["objective"], values, rtol=1e-9)
    np.testing.assert_allclose(fit.history["validation"], risks, rtol=1e-12)
    assert fit.history["rate"].tolist() == rates
    assert fit.history["steps"].tolist() == list(range(1, 8))
    assert (fit.best_epoch, fit.risk) == (best + 1, fit.history["validation"][best])
    np.testing.assert_allclose(fit.weights, weights[best], rtol=1e-8)
    last = cf.fit_lambdaloss(
        X, LOG, cutoff=k, truncation=truncation, form=form, weight_decay=decay, learning_rate=schedule, epochs=7
    )
    np.testing.assert_allclose(last.weights, weights[-1], rtol=1e-8)
    assert math.isnan(last.risk)
    assert np.isnan(last.history["validation"]).all()
    assert last.best_epoch == 7


@pytest.mark.oracle("module_training.train_module")
def test_a_network_follows_the_same_gradient() -> None:
    start = [0.3, -0.02, 1.0]
    weights, values = oracles.lambda_adam(
        X.tolist(), CUTS, GAINS, start, [0.1] * 4, 0.2, 2, "at_least_one", "linear", [1.0] * 3
    )
    net = linear(start)
    fit = cf.fit_lambdaloss(X, LOG, cutoff=2, module=net, learning_rate=0.1, epochs=4, weight_decay=0.2)
    np.testing.assert_allclose(fit.weights["weight"][0], weights[-1], rtol=1e-9)
    np.testing.assert_allclose(fit.history["objective"], values, rtol=1e-12)
    # Any objective, in the scores of a batch: here one that pulls all scores up by as much.
    up = train_module(
        X, LOG, np.array(list(MASSES.values())), module=linear(start), validation=None,
        plan=Plan(learning_rate=0.1, epochs=3, **COMMON),
        objective=lambda batch, scores: (float(len(batch.rows)), -torch.ones_like(scores)),
    )  # fmt: skip
    assert up.history["objective"].tolist() == [10.0] * 3
    moved = up.weights["weight"][0] - start
    assert np.sign(moved).tolist() == np.sign(X[[*range(4), *range(7, 13)]].sum(axis=0)).tolist()


@pytest.mark.oracle("course.Plan", "course.validation_pair")
def test_lengths_and_validation_pairs() -> None:
    schedule = [(3, 0.2), (2, 0.05)]
    plan = Plan(learning_rate=schedule, epochs=None, **COMMON)
    assert [rate for n, rate in plan.rates for _ in range(n)] == oracles.rates(schedule, plan.length)
    plan = Plan(learning_rate=0.1, epochs=None, **{**COMMON, "steps": 7})
    assert (plan.length, plan.by_steps, plan.rates) == (7, True, ((math.inf, 0.1),))
    pair = validation_pair((X.tolist(), LOG), 3, 5)
    assert pair is not None
    x, log = pair
    assert validation_pair(None, 3) is None
    assert x.tolist() == X.tolist()
    assert log is LOG


@pytest.mark.oracle("lambdaloss_fit.lambda_objective")
@pytest.mark.parametrize("form", ["linear", "difference"])
def test_the_objective_of_trees(form: Any) -> None:
    scores = np.random.default_rng(2).integers(0, 3, 13) / 2
    gains = [0.0] * 13
    for d, count, p in zip(LOG.document, LOG.clicks, LOG.propensity, strict=True):
        gains[d] += count / p * 4 / 17  # queries over sessions
    _, gradient, hessian = oracles.lambda_loss(scores.tolist(), CUTS, gains, 2, "beyond", form, 0.7)
    objective = lambda_objective(LOG, cutoff=2, truncation="beyond", form=form, sigma=0.7)
    for found in (objective(scores, None), objective(scores.tolist(), "anything")):
        np.testing.assert_allclose(found[0], gradient, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[1], hessian, rtol=1e-12, atol=1e-14)
    refuses("scores: expected shape (13,)", objective, [0.0], None)


def test_lightgbm_learns_from_clicks() -> None:
    gbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    x, relevance, policy, log = problem()
    aware = cf.policy_aware(log, policy.exposure(USER))
    settings = {
        "objective": lambda_objective(aware, cutoff=2), "num_leaves": 7, "min_data_in_leaf": 20, "num_threads": 1,
        "deterministic": True, "verbose": -1, "seed": 0,
    }  # fmt: skip
    forest = gbm.train(settings, gbm.Dataset(x, np.zeros(len(x))), 30)
    found = cf.ndcg(forest.predict(x), log.offsets, relevance=relevance.astype(int), cutoff=2).mean
    shown = cf.ndcg(x[:, 0] - x[:, 2], log.offsets, relevance=relevance.astype(int), cutoff=2).mean
    assert found > shown + 0.1


def test_defaults_units_and_patience() -> None:
    fit = cf.fit_lambdaloss(X, LOG)
    assert fit.history["rate"].tolist() == [0.05] * 100
    assert cf.fit_lambdaloss(X, LOG, module=linear([0.1] * 3)).history["rate"].tolist() == [1e-3] * 50
    # Powers of two, so that nothing is rounded otherwise: the unit of a feature does not matter.
    scaled = cf.fit_lambdaloss(X * [4.0, 0.5, 1024.0], LOG)
    np.testing.assert_allclose(scaled.weights * [4.0, 0.5, 1024.0], fit.weights, rtol=1e-9)
    single = cf.fit_lambdaloss(X.astype(np.float32), LOG, epochs=3)
    np.testing.assert_allclose(single.weights, cf.fit_lambdaloss(X, LOG, epochs=3).weights, rtol=1e-4)
    early = cf.fit_lambdaloss(X, LOG, cutoff=1, validation=(X, LOG), patience=2)
    assert len(early.history["steps"]) == early.best_epoch + 2


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_constant_feature_keeps_its_weight_of_0(kind: type) -> None:
    x = np.column_stack([X, np.zeros(13), np.full(13, 7.3), np.full(13, -1e30)]).astype(kind)
    fit = cf.fit_lambdaloss(x, LOG, cutoff=2, epochs=9, weight_decay=0.1)
    assert fit.weights[3:].tolist() == [0.0, 0.0, 0.0]
    alone = cf.fit_lambdaloss(X.astype(kind), LOG, cutoff=2, epochs=9, weight_decay=0.1)
    np.testing.assert_allclose(fit.weights[:3], alone.weights, rtol=1e-4)


def test_a_training_that_diverges_keeps_what_was_good() -> None:
    with pytest.raises(TrainingDiverged, match=r"^scores are not finite in epoch 2, step 2: lower") as found:
        cf.fit_lambdaloss(X, LOG, learning_rate=1e308, epochs=9)
    assert found.value.fit.weights.tolist() == [0.0, 0.0, 0.0]
