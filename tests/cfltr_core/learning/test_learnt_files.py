"""What a learnt ranker keeps in its file, by name and to the digit, and what a file of another kind is told."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfltr_core import LinearRanker, fit_proprank
from cfltr_core.learning import hinge_solver
from cfltr_core.learning.proprank import LinearFit, minimise

WEIGHTS = [0.1, -2.0, 1 / 3]
BESIDE = {"C": 0.7, "primal": 2.5, "dual": 2.25, "at_zero": 4.0, "least": 0.5, "passes": 17.0}


def test_a_fit_keeps_its_certificate(tmp_path: Path) -> None:
    path = tmp_path / "new" / "fit.json"
    LinearFit(np.array(WEIGHTS), **BESIDE).save(path)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "format": "cfltr linear fit 1", "weights": WEIGHTS, **BESIDE
    }  # fmt: skip
    again = LinearFit.load(str(path))
    assert type(again) is LinearFit
    assert again.weights.tolist() == WEIGHTS
    assert {name: getattr(again, name) for name in BESIDE} == BESIDE
    assert again.slopes is None
    assert again.gap == (2.5 - 2.25) / min(2.5 - 0.5, 4.0 - 2.25)
    assert repr(again) == "LinearFit(3 weights, C=0.7, relative gap 1.4e-01)"


def test_any_learnt_ranker_can_be_read_as_a_scorer(tmp_path: Path) -> None:
    LinearFit(np.array(WEIGHTS), **BESIDE).save(tmp_path / "fit.json")
    found = LinearRanker.load(tmp_path / "fit.json")
    assert type(found) is LinearRanker
    assert found.weights.tolist() == WEIGHTS
    assert repr(found) == "LinearRanker(3 weights)"
    found.save(tmp_path / "ranker.json")
    assert json.loads((tmp_path / "ranker.json").read_text()) == {"format": "cfltr linear ranker 1", "weights": WEIGHTS}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "path: a.json is no JSON file (Expecting property name"),
        (
            "[1]",
            "path: a.json has the format None: expected one of cfltr lambda fit 1, cfltr linear fit 1, "
            "cfltr linear ranker 1",
        ),
        (
            {"weights": [1.0]},
            "path: a.json has the format None: expected one of cfltr lambda fit 1, cfltr linear fit 1, ",
        ),
        (
            {"format": "x"},
            "path: a.json has the format 'x': expected one of cfltr lambda fit 1, cfltr linear fit 1, "
            "cfltr linear ranker 1",
        ),
        (
            {"format": "cfltr linear ranker 1", "weights": [1.0]},
            "path: a.json (cfltr linear ranker 1) lacks C, primal, dual, at_zero, least, passes, which LinearFit needs",
        ),
        (
            {"format": "cfltr linear fit 1", **BESIDE},
            "path: a.json (cfltr linear fit 1) lacks weights, which LinearFit needs",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, record: Any, message: str) -> None:
    (tmp_path / "a.json").write_text(record if isinstance(record, str) else json.dumps(record))
    with pytest.raises(ValueError) as found:  # noqa: PT011
        LinearFit.load(tmp_path / "a.json")
    assert str(found.value).startswith(message)


def test_every_solver_gives_up_after_as_many_passes_unless_told() -> None:
    learners = (fit_proprank, minimise, hinge_solver.solve)
    defaults = [inspect.signature(one).parameters["max_passes"].default for one in learners]
    assert defaults == [5000] * 3
