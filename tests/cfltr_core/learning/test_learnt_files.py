"""What a learnt ranker keeps in its file, by name and to the digit, and what a file of another kind is told."""

import inspect
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from ragged_logs import TWO_RANKS

from cfltr_core import LinearRanker, fit_lambdaloss, fit_proprank
from cfltr_core.learning import hinge_solver
from cfltr_core.learning.lambdaloss_fit import LambdaFit
from cfltr_core.learning.proprank import LinearFit, minimise

WEIGHTS = [0.1, -1e-300, 3e17, 1 / 3]
BESIDE = {"C": 0.7, "primal": 2.5, "dual": 2.25, "at_zero": 4.0, "least": 0.5, "passes": 17.0}
X = np.random.default_rng(0).normal(size=(13, 4))
KEPT: dict[str, LinearRanker] = {
    "cfltr linear ranker 1": LinearRanker(np.array(WEIGHTS)),
    "cfltr linear fit 1": LinearFit(np.array(WEIGHTS), **BESIDE),
    "cfltr lambda fit 1": fit_lambdaloss(X, TWO_RANKS, cutoff=2, epochs=3, validation=(X, TWO_RANKS)),
}


@pytest.mark.oracle("linear.LinearRanker.save", "linear.LinearRanker.load", "lambdaloss_fit.LambdaFit")
@pytest.mark.parametrize("name", KEPT)
def test_a_ranker_comes_back_from_its_file(tmp_path: Path, name: str) -> None:
    """As what it was, and as a scorer alone, which keeps no more than its weights."""
    kept, path = KEPT[name], tmp_path / "new" / "ranker.json"
    kept.save(path)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["format"], record["weights"]) == (name, kept.weights.tolist())
    for kind in (type(kept), LinearRanker):
        found = kind.load(str(path))
        assert type(found) is kind
        assert found.weights.tolist() == kept.weights.tolist()
        expected = oracles.linear_scores(X.tolist(), kept.weights.tolist())
        np.testing.assert_allclose(found.decision_function(X), expected, rtol=1e-12)
        assert (found.decision_function(X) == kept.decision_function(X)).all()
    assert repr(LinearRanker.load(path)) == "LinearRanker(4 weights)"
    again = type(kept).load(path)
    assert repr(again) == repr(kept)
    if isinstance(again, LambdaFit) and isinstance(kept, LambdaFit):
        assert (again.best_epoch, again.risk) == (kept.best_epoch, kept.risk)
        for field, values in kept.history.items():
            np.testing.assert_array_equal(again.history[field], values)
        assert repr(kept) == f"LambdaFit(4 weights, epoch {kept.best_epoch} of 3)"
    if isinstance(again, LinearFit):
        assert record == {"format": name, "weights": WEIGHTS, **BESIDE}
        assert {field: getattr(again, field) for field in BESIDE} == BESIDE
        assert again.slopes is None
        assert again.gap == (2.5 - 2.25) / min(2.5 - 0.5, 4.0 - 2.25)
        assert repr(again) == "LinearFit(4 weights, C=0.7, relative gap 1.4e-01)"


def test_without_validation_there_is_no_risk_to_keep(tmp_path: Path) -> None:
    fit_lambdaloss(X, TWO_RANKS, epochs=1).save(tmp_path / "fit.json")
    assert math.isnan(LambdaFit.load(tmp_path / "fit.json").risk)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "path: a.json is no JSON file (Expecting property name"),
        ("[1]", "path: a.json has the format None: expected one of cfltr lambda fit 1, cfltr linear fit 1, cfltr lin"),
        ({"format": "x"}, "path: a.json has the format 'x': expected one of"),
        ({"format": "cfltr linear ranker 1", "weights": [1.0]}, "path: a.json (cfltr linear ranker 1) lacks C, primal"),
        ({"format": "cfltr linear fit 1", **BESIDE}, "path: a.json (cfltr linear fit 1) lacks weights"),
    ],
)  # fmt: skip
def test_another_file_is_refused(tmp_path: Path, record: Any, message: str) -> None:
    (tmp_path / "a.json").write_text(record if isinstance(record, str) else json.dumps(record))
    with pytest.raises(ValueError) as found:  # noqa: PT011
        LinearFit.load(tmp_path / "a.json")
    assert str(found.value).startswith(message)
    with pytest.raises(FileNotFoundError):
        LinearRanker.load(tmp_path / "none.json")


def test_every_solver_gives_up_after_as_many_passes_unless_told() -> None:
    learners = (fit_proprank, minimise, hinge_solver.solve)
    defaults = [inspect.signature(one).parameters["max_passes"].default for one in learners]
    assert defaults == [5000] * 3
