"""Regret and its split, and when to look: against loops."""

import importlib
import math
from typing import Any

import numpy as np
import oracles
import pytest
from ragged_logs import OFFSETS, clicks_in

from cfltr_book.theory.regret import Regret, evaluation_steps, regret
from cfltr_core import RankingData, certified_optimum, click_sampler, label_log, train_sgd
from cfltr_core.learning.sgd import SGDPath

FEATURES = np.random.default_rng(1).normal(size=(17, 3))
LOG = clicks_in(OFFSETS)
GRADES = np.random.default_rng(2).integers(0, 5, size=17)
DATA = RankingData(FEATURES, GRADES, offsets=OFFSETS, threshold=3)
LABELS = certified_optimum(DATA.features, label_log(DATA))
BEST = certified_optimum(FEATURES, LOG)


def path_of(steps: int = 60, record: tuple[int, ...] = (0, 3, 20, 60), **more: Any) -> SGDPath:
    given = {"learning_rates": [0.001, 0.1], "runs": 2, "rng": np.random.default_rng(3), "record": record} | more
    return train_sgd(FEATURES, click_sampler(LOG, "ips"), steps=steps, **given)


@pytest.mark.oracle("regret.regret", "regret.Regret.log_part", "regret.Regret.training", "regret.Regret.total",
                    "regret.Regret.average")  # fmt: skip
@pytest.mark.parametrize("iterate", ["average", "last"])
def test_regret_and_its_split(iterate: str) -> None:
    path = path_of()
    cutoff = 3
    found = regret(path, DATA, label_optimum=LABELS, log_optimum=BEST, iterate=iterate, cutoff=cutoff)
    x = DATA.features.astype(float)

    def judged(w: np.ndarray) -> float:
        return oracles.ndcg((x @ w).tolist(), GRADES.tolist(), OFFSETS, cutoff, "exponential", "drop")[0]

    weights = path.average if iterate == "average" else path.last
    wanted = np.array([[[judged(w) for w in run] for run in record] for record in weights])
    np.testing.assert_allclose(found.ndcg, wanted, rtol=1e-12)
    assert math.isclose(found.of_labels, judged(LABELS.weights), rel_tol=1e-12)
    assert math.isclose(found.of_log, judged(BEST.weights), rel_tol=1e-12)
    np.testing.assert_allclose(found.total, judged(LABELS.weights) - wanted, atol=1e-12)
    np.testing.assert_allclose(found.training, judged(BEST.weights) - wanted, atol=1e-12)
    np.testing.assert_allclose(found.log_part + found.training, found.total, atol=1e-12)
    for part, values in (("total", found.total), ("training", found.training)):
        mean = found.average(part)
        assert mean.shape == (2, 2)
        for run, rate in np.ndindex(2, 2):
            one = oracles.time_average(path.steps.tolist(), values[:, run, rate].tolist())
            assert math.isclose(mean[run, rate], one, rel_tol=1e-9, abs_tol=1e-12)
    np.testing.assert_array_equal(found.average(), found.average("total"))
    assert repr(found).startswith("Regret(4 records, ")
    assert isinstance(found, Regret)


def test_many_rankers_and_many_documents_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("cfltr_book.theory.regret")  # the package holds the function under this name

    path = path_of(record=tuple(range(0, 61, 3)))
    given = {"label_optimum": LABELS, "log_optimum": BEST}
    whole = regret(path, DATA, **given)
    monkeypatch.setattr(module, "TOGETHER", 3)
    monkeypatch.setattr(module, "BLOCK", 5)
    np.testing.assert_allclose(regret(path, DATA, **given).ndcg, whole.ndcg, rtol=1e-12)


@pytest.mark.oracle("regret.evaluation_steps")
@pytest.mark.parametrize(
    ("n", "batch", "epochs", "every"), [(100, 1, 2, 10), (100, 7, 2, 10), (95, 4, 3, 20), (30, 50, 5, 10), (7, 1, 1, 9)]
)
def test_when_to_look(n: int, batch: int, epochs: int, every: int) -> None:
    found = evaluation_steps(n, batch=batch, epochs=epochs, every=every)
    assert found.tolist() == oracles.passed_marks(n, batch, epochs, every)
    assert found[-1] * batch >= n * epochs
    path = path_of(steps=int(found[-1]), record=tuple(found.tolist()), batch=batch)
    assert path.steps.tolist() == found.tolist()
