"""What a training refuses before any work, and what is left when it fails on the way."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses
from torch import nn

import cfltr_core as cf
from cfltr_core.learning.course import TrainingDiverged

CUTS = [0, 2, 5]
FIELDS: dict[str, Any] = {
    "document": [0, 1, 3], "rank": [1, 2, 1], "impressions": [4, 4, 2], "clicks": [3, 1, 2],
    "propensity": [1.0, 0.5, 1.0], "sessions": [4, 2], "offsets": CUTS,
}  # fmt: skip
LOG = cf.ClickLog(**FIELDS)
SILENT = cf.ClickLog(**{**FIELDS, "clicks": [0, 0, 0]})
X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 0.5], [1.0, 3.0]])


class Refusing(nn.Linear):
    """Any forward pass is work."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("work before the check")


class Returning(nn.Linear):
    """Scores that ``change`` has changed."""

    def __init__(self, change: Any) -> None:
        super().__init__(2, 1)
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(super().forward(x))


def broken(row: int, column: int, value: float) -> np.ndarray:
    x = X.copy()
    x[row, column] = value
    return x


# What the message begins with; what fit_deep alone refuses, and what every training refuses that takes such a course.
DEEP: list[tuple[dict[str, Any], str]] = [
    ({"metric": cf.RankWeight("log", np.log)}, "rank weight 'log' has no derivative"),
    ({"method": "majorise", "metric": cf.RankWeight("s", np.sin, derivative=np.cos)}, "rank weight 's' decr"),
    ({"steps": 3, "epochs": 2}, "epochs is 2 and steps is 3: give one of the two"),
    ({"module": 3}, "module is int"),
]
COURSE: list[tuple[dict[str, Any], str]] = [
    ({"learning_rate": -1.0}, "learning_rate is -1.0"),
    ({"learning_rate": [(2, 0.1), (1, 0.0)]}, "learning_rate[1][1] is 0.0"),
    ({"learning_rate": [(0, 0.1)]}, "learning_rate[0][0] is 0"),
    ({"learning_rate": [0.1, 0.01]}, "learning_rate[0] is 0.1: expected (length, rate)"),
    ({"learning_rate": []}, "learning_rate: expected a rate, or (length, rate)"),
    ({"patience": 3}, "patience: there is no validation to watch"),
    ({"validation": LOG}, "validation: expected (features, log)"),
    ({"validation": (X, SILENT)}, "validation: log: there is no click in"),
    ({"validation": (X[1:], LOG)}, "validation: features: expected shape (5,"),
    ({"validation": (X[:, :1], LOG)}, "validation: has 1 features, those to learn from are 2"),
    ({"device": "cuda:7"}, "device is 'cuda:7': what this machine has is 'cpu'"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": "one"}, "seed is str"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("learner", "changes", "message"),
    [*((cf.fit_deep, *row) for row in DEEP + COURSE), *((cf.fit_lambdaloss, *row) for row in COURSE)],
)
def test_message_before_any_work(learner: Any, changes: dict[str, Any], message: str) -> None:
    refuses(message, learner, X, LOG, **{"module": Refusing(2, 1), **changes})


# Between ranks 2 and 3 its rise is 2.5 times its derivative.
STEP = cf.RankWeight("step@2", lambda r: r + 1.5 * (r > 2), derivative=np.ones_like)


@pytest.mark.parametrize("metric", [cf.precision(2), cf.dcg(2), cf.dcg(19), STEP])
def test_a_metric_that_jumps_is_refused_with_the_remedy(metric: cf.RankWeight) -> None:
    k = int(metric.name.partition("@")[2])
    message = rf"^metric: {metric.name} jumps between ranks {k} and {k + 1}, .*fit_lambdaloss\(…, cutoff={k}\)"
    with pytest.raises(ValueError, match=message):
        cf.fit_deep(X, LOG, module=Refusing(2, 1), metric=metric)
    with pytest.raises(ValueError, match="or fit_lambdaloss for DCG with one"):
        cf.fit_propdcg(X, LOG, metric=metric)


@pytest.mark.parametrize("metric", [cf.rbp(1e-3), cf.rbp(0.999), cf.average_rank(), cf.dcg()])
def test_a_metric_that_only_bends_is_learnt(metric: cf.RankWeight) -> None:
    assert cf.fit_deep(X, LOG, module=cf.two_layer(2), epochs=1, metric=metric).steps == 1


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Returning(lambda s: s.sum()), "module: returned shape () for 5 documents: it must map"),
        (Returning(lambda s: s / 0), "module: the score of document 0 is "),
        (nn.Linear(3, 1), "module: could not score features of shape (5, 2) ("),
        (nn.ReLU(), "module: has no weights that could be learnt"),
        (nn.Linear(2, 1).requires_grad_(False), "module: has no weights that could be learnt"),
    ],
)
def test_a_module_that_cannot_be_trained(module: nn.Module, message: str) -> None:
    refuses(message, cf.fit_deep, X, LOG, module=module)


def test_features_beyond_the_precision_of_the_module() -> None:
    for value in (1e300, -1e300):
        refuses("features: 1e+300 is too large for the", cf.fit_deep, broken(4, 1, value), LOG, module=cf.two_layer(2))


class Failing(nn.Linear):
    """Scores that are infinite from the n-th training batch on; ``before`` are the weights it had then."""

    def __init__(self, n: int) -> None:
        super().__init__(2, 1)
        self.n, self.calls = n, 0
        self.before: list[list[float]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = super().forward(x)
        if self.training:
            self.calls += 1
            self.before.append(self.weight.detach()[0].tolist())
            if self.calls >= self.n:
                return out * torch.nan
        return out


@pytest.mark.parametrize("n", [1, 2, 5])
def test_scores_that_are_not_finite_name_the_step_and_leave_the_last_good_weights(n: int) -> None:
    net = Failing(n)
    with pytest.raises(TrainingDiverged) as found:
        cf.fit_deep(X, LOG, module=net, batch_documents=1, learning_rate=0.1)
    epoch = (n + 1) // 2
    assert str(found.value).startswith(f"scores are not finite in epoch {epoch}, step {n}: lower learning_rate")
    assert isinstance(found.value, RuntimeError)
    good = net.before[max(0, n - 2)]
    assert found.value.fit.weights["weight"][0].tolist() == good == net.weight.detach()[0].tolist()
    assert found.value.fit.steps == max(0, n - 2)
    assert found.value.fit.best_epoch == len(found.value.fit.history["rate"]) == epoch - 1
    assert np.isfinite(found.value.fit.decision_function(X)).all()


@pytest.mark.parametrize("validation", [None, (X, LOG)])
@pytest.mark.parametrize("rate", [1e30, 3e38])
def test_a_rate_that_is_far_too_large(rate: float, validation: Any) -> None:
    net = cf.two_layer(2, activation="relu")
    with pytest.raises(TrainingDiverged, match=r"^(weights|scores|scores of the validation) are not finite in epoch "):
        cf.fit_deep(X, LOG, module=net, optimizer="sgd", learning_rate=rate, validation=validation)
    assert all(bool(torch.isfinite(p).all()) for p in net.parameters())


TWO_LAYERS = {"module": lambda: cf.two_layer(2)}


@pytest.mark.parametrize(
    "fit", [cf.fit_lambdaloss, *(partial(each, **TWO_LAYERS) for each in (cf.fit_deep, cf.fit_lambdaloss))]
)
def test_progress_is_one_line_and_none_where_nobody_looks(fit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fit(X, LOG, epochs=2)
    assert capsys.readouterr() == ("", "")
    fit(X, LOG, epochs=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"(\repoch \d, step \d: objective \S+ ){2}\n", err)
