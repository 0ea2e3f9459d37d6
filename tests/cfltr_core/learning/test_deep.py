"""Training networks on clicks: against plain gradient descent in a loop, the SVM, and what a seed must mean."""

import math
import tracemalloc
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from ragged_logs import TWO_RANKS
from refusals import refuses
from torch import nn

import cfltr_core as cf
from cfltr_core.learning.course import Plan
from cfltr_core.learning.module_training import train_module

SQUARE = cf.RankWeight("r²", np.square, larger_is_better=False, derivative=lambda r: 2 * r)
CUTS = TWO_RANKS.offsets.tolist()
LOG = TWO_RANKS
X = np.random.default_rng(1).normal(size=(13, 3))
MASSES = oracles.click_masses(LOG.document.tolist(), LOG.clicks.tolist(), LOG.propensity.tolist(), 1.0)
MASSES = {d: c for d, c in MASSES.items() if c > 0}
START = [0.3, -0.2, 0.1]


def linear(start: list[float] = START, dtype: torch.dtype = torch.float64) -> nn.Linear:
    net = nn.Linear(len(start), 1, bias=False, dtype=dtype)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([start], dtype=dtype))
    return net


def problem(n_queries: int, seed: int = 0, n_features: int = 5) -> tuple[np.ndarray, cf.ClickLog]:
    """Lists of 1 to 12 documents whose relevance is a crooked function of the features, and clicks on them."""
    rng = np.random.default_rng(seed)
    cuts = np.concatenate([[0], np.cumsum(rng.integers(1, 13, n_queries))])
    x = rng.normal(size=(int(cuts[-1]), n_features))
    relevance = (x[:, 0] + np.abs(x[:, 1]) > 1.0).astype(float)
    policy = cf.DeterministicPolicy.rank_by(x[:, 0] + rng.normal(size=len(x)), cuts, rng=rng)
    user = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
    return x, cf.simulate_clicks(policy, user, relevance=relevance, sessions=[20] * n_queries, rng=rng)


def objective(scores: np.ndarray, log: cf.ClickLog, metric: cf.RankWeight | None = None) -> float:
    return cf.bound_loss(scores, log.offsets, documents=log.document, weights=log.mass, metric=metric or cf.dcg()).value


@pytest.mark.oracle("deep.fit_deep")
@pytest.mark.parametrize("form", [("hinge", 1.0), ("logistic", 1.0), ("logistic", 2.5)])
@pytest.mark.parametrize("frozen", [None, 3])
@pytest.mark.parametrize(
    ("metric", "weight", "slope"),
    [(None, oracles.dcg, oracles.dcg_slope), (cf.average_rank(), oracles.average_rank, lambda r: 1.0)],
)
def test_descent_on_all_lists_at_once_is_that_of_the_loop(
    metric: cf.RankWeight | None, weight: Any, slope: Any, frozen: int | None, form: tuple[str, float]
) -> None:
    schedule = [(3, 0.05), (4, 0.02)]
    method = {"surrogate": form[0], "sigma": form[1]}
    method |= {} if frozen is None else {"method": "majorise", "round_epochs": frozen}
    net = linear()
    fit = cf.fit_deep(
        X, LOG, module=net, metric=metric, optimizer="sgd", learning_rate=schedule, weight_decay=0.1, epochs=9, **method
    )
    rates = oracles.rates(schedule, 9)
    w, values = oracles.descent(X.tolist(), CUTS, MASSES, START, rates, 0.1, weight, slope, frozen, form)
    np.testing.assert_allclose(fit.weights["weight"][0], w, rtol=1e-10)
    np.testing.assert_allclose(net.weight.detach()[0], w, rtol=1e-10)
    np.testing.assert_allclose(fit.history["objective"], values, rtol=1e-12)
    assert fit.history["rate"].tolist() == rates
    assert fit.history["steps"].tolist() == list(range(1, 10))
    assert np.isnan(fit.history["validation"]).all()
    assert (fit.steps, fit.best_epoch) == (9, 9)
    assert math.isnan(fit.risk)
    np.testing.assert_allclose(fit.decision_function(X), oracles.linear_scores(X.tolist(), w), rtol=1e-9)


def test_batches_have_the_mean_gradient_of_all() -> None:
    """The first step on a batch, averaged over seeds that begin with each list, is that on everything."""
    steps: dict[bytes, np.ndarray] = {}
    for seed in range(40):
        fit = cf.fit_deep(
            X, LOG, module=linear(), optimizer="sgd", learning_rate=1.0, steps=1, batch_documents=1, seed=seed
        )
        moved = fit.weights["weight"][0] - START
        steps[moved.round(9).tobytes()] = moved
    everything = cf.fit_deep(X, LOG, module=linear(), optimizer="sgd", learning_rate=1.0, steps=1).weights["weight"][0]
    assert len(steps) == 3, "three lists have a click"
    np.testing.assert_allclose(sum(steps.values()) / 3, everything - START, rtol=1e-9)


@pytest.mark.oracle("course.Plan.rate", "course.Plan.over", "course.Plan.by_steps", "course.Plan",
                    "module_training.train_module")  # fmt: skip
@pytest.mark.parametrize("by_steps", [False, True])
def test_a_plan_is_followed(by_steps: bool) -> None:
    schedule = ((2, 0.1), (1, 0.01), (3, 0.001))
    length = {"epochs": None, "steps": 8} if by_steps else {"epochs": 8, "steps": None}
    plan = Plan(
        learning_rate=schedule, **length, weight_decay=0.0, batch_documents=5, patience=None, progress=False,
        metric=cf.dcg(), optimizer="sgd",
    )  # fmt: skip
    assert (plan.length, plan.by_steps, plan.rates) == (8, by_steps, schedule)
    expected = oracles.rates(schedule, 8)
    other = 99  # what is not counted must not matter
    assert [plan.rate(*((other, i) if by_steps else (i, other))) for i in range(1, 9)] == expected
    assert [plan.over(*((other, i) if by_steps else (i, other))) for i in range(6, 10)] == [False, False, True, True]
    mass = np.array(list(MASSES.values()))
    fit = train_module(X, LOG, mass, module=linear(), plan=plan, validation=None)
    assert fit.steps == fit.history["steps"][-1]
    if by_steps:
        assert fit.steps == 8
    else:
        assert fit.history["rate"].tolist() == expected


def test_the_last_epoch_may_be_cut_short_by_steps() -> None:
    fit = cf.fit_deep(X, LOG, module=linear(), learning_rate=[(2, 1e-2), (1, 1e-3)], steps=5, batch_documents=1)
    assert fit.history["steps"].tolist() == [3, 5]
    assert fit.history["rate"].tolist() == [1e-3, 1e-3]
    assert cf.fit_deep(X, LOG, module=linear(), learning_rate=[(2, 1e-2), (1, 1e-3)]).history["rate"].tolist() == [
        1e-2, 1e-2, 1e-3
    ]  # fmt: skip
    assert len(cf.fit_deep(X, LOG, module=linear()).history["rate"]) == 50


@pytest.mark.oracle("deep.AGARWAL_DEEP")
def test_the_settings_of_the_paper() -> None:
    assert dict(cf.AGARWAL_DEEP) == {
        "optimizer": "adam",
        "learning_rate": ((300, 1e-6), (200, 1e-7), (250, 1e-8)),
        "weight_decay": 1e-6,
        "batch_documents": 1000,
    }
    assert oracles.rates(cf.AGARWAL_DEEP["learning_rate"], 750) == [1e-6] * 300 + [1e-7] * 200 + [1e-8] * 250
    fit = cf.fit_deep(X, LOG, module=lambda: cf.two_layer(3), **cf.AGARWAL_DEEP, epochs=2)
    assert fit.history["rate"].tolist() == [1e-6, 1e-6]
    assert {name: w.shape[0] for name, w in fit.weights.items()}["0.weight"] == 200


def test_weight_decay_is_that_of_the_penalty() -> None:
    """The direction of the first step: Adam's has length α in each weight, whatever the gradient's."""
    gradient = X.T @ cf.bound_loss(
        X @ START, CUTS, documents=list(MASSES), weights=list(MASSES.values()), metric=cf.dcg()
    ).gradient + 5.0 * np.array(START)
    fit = cf.fit_deep(X, LOG, module=linear(), learning_rate=1e-3, weight_decay=5.0, steps=1)
    np.testing.assert_allclose((START - fit.weights["weight"][0]) / 1e-3, np.sign(gradient), rtol=1e-5)


@pytest.mark.parametrize(("method", "surrogate"), [("direct", "logistic"), ("majorise", "hinge")])
def test_a_network_lowers_its_objective_below_that_of_every_line(method: str, surrogate: str) -> None:
    x, log = problem(60)
    svm = cf.fit_propdcg(x, log, C=1e3)
    fit = cf.fit_deep(
        x, log, module=lambda: cf.two_layer(5, 30), learning_rate=0.02, epochs=120, method=method, surrogate=surrogate,
        sigma=1.0,
    )  # fmt: skip
    assert fit.history["objective"][-1] < fit.history["objective"][0]
    assert objective(fit.decision_function(x), log) < objective(svm.decision_function(x), log)


def outcome(seed: Any, **changes: Any) -> list[np.ndarray]:
    x, log = problem(20)
    net = lambda: nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 1))  # noqa: E731
    given = {"module": net, "epochs": 3, "batch_documents": 30, "validation": problem(10, seed=5), **changes}
    fit = cf.fit_deep(x.astype(np.float32), log, seed=seed, **given)
    return [*fit.weights.values(), *fit.history.values()]


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


def test_a_generator_decides_as_a_seed_does_and_moves_on() -> None:
    for make in (lambda s: s, np.random.default_rng, lambda s: torch.Generator().manual_seed(s)):
        assert same(outcome(make(3)), outcome(make(3)))
        assert not same(outcome(make(3)), outcome(make(4)))
    one = np.random.default_rng(3)
    assert not same(outcome(one), outcome(one))


def test_the_precision_of_the_module_is_that_of_its_features() -> None:
    seen = []

    class Spy(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.dtype)
            return super().forward(x)

    for dtype in (torch.float32, torch.float64):
        for x in (X, X.astype(np.float32)):
            seen.clear()
            fit = cf.fit_deep(x, LOG, module=Spy(3, 1, dtype=dtype), epochs=1, validation=(x, LOG))
            fit.decision_function(x)
            assert set(seen) == {dtype}


def test_lists_without_a_click_are_left_out_and_scores_may_be_a_column_or_not() -> None:
    seen: list[int] = []

    class Spy(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training:
                seen.append(len(x))
            return super().forward(x)[:, 0]

    net = Spy(3, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([START], dtype=torch.float64))
    fit = cf.fit_deep(X, LOG, module=net, epochs=3, learning_rate=0.1)
    assert seen == [10] * 3
    column = cf.fit_deep(X, LOG, module=linear(), epochs=3, learning_rate=0.1)
    assert fit.weights["weight"].tolist() == column.weights["weight"].tolist()


def test_the_best_epoch_by_validation_clicks_is_kept_as_a_copy() -> None:
    x, log = problem(8, seed=1)
    judged = problem(60, seed=2)
    settings = {"learning_rate": 0.05, "epochs": 30, "batch_documents": 20}
    net = cf.two_layer(5, 30)
    start = {name: value.clone() for name, value in net.state_dict().items()}
    fit = cf.fit_deep(x, log, module=net, validation=judged, **settings)
    estimates = fit.history["validation"]
    assert fit.best_epoch == 1 + int(np.argmin(estimates)) < 30
    assert fit.risk == estimates.min()
    scores = fit.decision_function(judged[0])
    there = judged[1]
    again = oracles.snips(
        scores.tolist(), there.offsets.tolist(), there.document.tolist(), there.clicks.tolist(),
        there.propensity.tolist(), oracles.dcg,
    )  # fmt: skip
    np.testing.assert_allclose(fit.risk, again, rtol=1e-9)
    # The same training, ended at the best epoch, has these weights; the module has them, and is no alias of the fit.
    short = cf.two_layer(5, 30)
    short.load_state_dict(start)
    ended = cf.fit_deep(x, log, module=short, **{**settings, "epochs": fit.best_epoch})
    for name, value in fit.weights.items():
        assert value.tolist() == ended.weights[name].tolist() == net.state_dict()[name].tolist()
    cf.fit_deep(x, log, module=net, **settings)
    assert fit.decision_function(judged[0]).tolist() == scores.tolist()
    patient = cf.two_layer(5, 30)
    patient.load_state_dict(start)
    stopped = cf.fit_deep(x, log, module=patient, validation=judged, patience=3, **settings)
    assert len(stopped.history["rate"]) == stopped.best_epoch + 3 < 30
    seen = estimates[: len(stopped.history["validation"])]
    assert stopped.history["validation"].tolist() == seen.tolist()


def test_memory_grows_with_the_documents_not_with_their_squares() -> None:
    """What NumPy holds at most; torch's own share is that of a batch, and of ``PAIRS`` pairs."""
    peaks = []
    for n in (20_000, 40_000):
        cuts = [0, n // 2, n]
        log = cf.ClickLog(
            document=[0, n - 1], rank=[1, 1], impressions=[1, 1], clicks=[1, 1], propensity=[1.0, 1.0], sessions=[1, 1],
            offsets=cuts,
        )  # fmt: skip
        x = np.zeros((n, 2), dtype=np.float32)
        one = cf.ClickLog(
            document=[0], rank=[1], impressions=[1], clicks=[1], propensity=[1.0], sessions=[1], offsets=[0, 2]
        )
        cf.fit_deep(x[:2], one, module=linear([0.0, 0.0], torch.float32), epochs=1)
        tracemalloc.start()
        cf.fit_deep(x, log, module=linear([0.0, 0.0], torch.float32), epochs=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.2 * peaks[0]
    assert peaks[1] < 400 * 40_000


@pytest.mark.parametrize("metric", [cf.dcg(), cf.rbp(0.8), cf.average_rank()])
def test_concave_weights_can_be_majorised(metric: cf.RankWeight) -> None:
    fit = cf.fit_deep(X, LOG, module=linear(), metric=metric, method="majorise", epochs=2)
    assert np.isfinite(fit.history["objective"]).all()
    refuses("method is 'majorise', but rank", cf.fit_deep, X, LOG, module=linear(), metric=SQUARE, method="majorise")
