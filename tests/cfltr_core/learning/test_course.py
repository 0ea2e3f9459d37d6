"""The course that every training takes: steps, the best weights by validation, patience, and the last good weights."""

import math
from typing import Any

import numpy as np
import oracles
import pytest
from ragged_logs import OFFSETS, clicks_in

from cfltr_core import dcg
from cfltr_core.learning.course import Course, Plan, TrainingDiverged
from cfltr_core.learning.sgd import optimizer_of

X = np.random.default_rng(1).normal(size=(17, 6))
LOG = clicks_in(OFFSETS)
CLICKED, RATE = 6, 0.05


@pytest.mark.oracle(
    "course.Course.run", "course.Course.diverged", "course.Course.one_epoch", "course.Course.copied",
    "course.Course.scored", "course.Course.fit_of", "sgd.optimizer_of",
)  # fmt: skip
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_a_course_keeps_the_weights_that_it_should(optimizer: str) -> None:
    class OneClick(Course):
        """Steps on the hinge of a single click, one an epoch; ``broken`` is the step whose scores are not finite."""

        def __init__(self, broken: int = 0, validation: Any = None, patience: int | None = None) -> None:
            self.w, self.broken = np.zeros(6), broken
            self.move = optimizer_of(optimizer, self.w)
            plan = Plan(
                learning_rate=RATE, epochs=10, steps=None, weight_decay=0.0, batch_documents=1, patience=patience,
                progress=False, metric=dcg(),
            )  # fmt: skip
            super().__init__(plan, validation)

        def one_epoch(self) -> float:
            self.step += 1
            if self.step == self.broken:
                raise self.diverged("scores")
            self.good, self.good_steps = self.copied(), self.step - 1
            gradient = oracles.hinge_gradient(X.tolist(), OFFSETS, CLICKED, self.w.tolist())
            value = oracles.hinge_risk(X.tolist(), OFFSETS, CLICKED, self.w.tolist())
            self.move(np.array(gradient), self.step, self.plan.rate(self.epoch, self.step))
            return value

        def copied(self) -> np.ndarray:
            return self.w.copy()

        def scored(self, x: np.ndarray) -> np.ndarray:
            return x @ self.w

        def fit_of(self, weights: Any, *, history: Any, steps: int, best_epoch: int, risk: float) -> Any:
            return weights, history, steps, best_epoch, risk

    after = [[0.0] * 6]
    after += [oracles.sgd(X.tolist(), OFFSETS, [[(CLICKED, 1.0)]] * n, RATE, optimizer)[0] for n in range(1, 11)]
    values = [oracles.hinge_risk(X.tolist(), OFFSETS, CLICKED, w) for w in after]
    log = (LOG.document.tolist(), LOG.clicks.tolist(), LOG.propensity.tolist())
    risks = [oracles.snips(oracles.linear_scores(X.tolist(), w), OFFSETS, *log, oracles.dcg) for w in after[1:]]

    course = OneClick()
    assert math.isclose(course.one_epoch(), values[0], rel_tol=1e-12)
    np.testing.assert_allclose(course.scored(X), oracles.linear_scores(X.tolist(), after[1]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        course.fit_of(course.copied(), history={}, steps=1, best_epoch=1, risk=0.0)[0], after[1], rtol=1e-10, atol=1e-12
    )

    weights, history, steps, best_epoch, risk = OneClick().run()
    np.testing.assert_allclose(weights, after[10], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(history["objective"], values[:10], rtol=1e-10)
    assert (steps, best_epoch, history["steps"].tolist()) == (10, 10, list(range(1, 11)))
    assert math.isnan(risk)

    weights, history, steps, best_epoch, risk = OneClick(validation=(X, LOG)).run()
    best = int(np.argmin(risks))
    assert best < 9, "the last weights would be the best"
    np.testing.assert_allclose(weights, after[best + 1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(history["validation"], risks, rtol=1e-12)
    assert (steps, best_epoch, risk) == (10, best + 1, history["validation"].min())
    assert (
        len(OneClick(validation=(X, LOG), patience=1).run()[1]["steps"])
        == next(n for n in range(1, 10) if risks[n] >= min(risks[:n])) + 1
    )

    with pytest.raises(TrainingDiverged, match=r"^scores are not finite in epoch 4, step 4: lower") as found:
        OneClick(broken=4).run()
    weights, history, steps, best_epoch, _ = found.value.fit
    np.testing.assert_allclose(weights, after[2], rtol=1e-10, atol=1e-12)
    assert (steps, best_epoch, len(history["steps"])) == (2, 3, 3)
