"""The run of a chapter: what it claims, records and shows knows where it stands."""

import json
import pickle
from pathlib import Path

import matplotlib as mpl
import numpy as np
import oracles
import pytest

from cfltr_book import Run
from cfltr_book.data.corpora import units_of
from cfltr_book.reporting import run as room
from cfltr_book.reporting.claim_registry import registry

RUN = Run("smoke", "digits", 3)
CAPTION = "Estimates of two methods; bands are 95 % intervals."
ALT = "Line plot of estimate against clicks: the line of IPS stays at 2.5, the naive one falls to 1.1."


def test_a_run_is_its_three_parameters() -> None:
    assert repr(RUN) == "Run(scale='smoke', corpus='digits', seed=3)"
    assert pickle.loads(pickle.dumps(RUN)) == RUN != Run("smoke", "digits", 4)


def test_what_a_chapter_shows_knows_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    id = next(c.id for c in registry().values() if c.kind == "identity")
    result = RUN.claim(id, left=[1.0], right=[1.0])
    RUN.number("some-number", 0.5, form="{:.1f}")
    for name, seeds in (("fig-one", None), ("fig-two", RUN.seeds)):
        RUN.figure(plt.figure(), name, caption=CAPTION, alt=ALT, data={"x": [1]}, seeds=seeds)
    found = {name: json.loads(text) for name, text in oracles.texts(str(tmp_path)).items() if name.endswith(".json")}
    assert (found[f"{id}.json"]["scale"], found[f"{id}.json"]["corpus"]) == ("smoke", "digits")
    assert found["some-number.json"]["text"] == "0.5"
    assert found["fig-one.json"]["caption"] == CAPTION
    assert found["fig-two.json"]["caption"] == f"{CAPTION} {RUN.setting_of(RUN.seeds)}."
    assert RUN.evidence(result).summary == "Evidence: 1 claim: as on record"


def test_a_claim_is_told_which_seed_each_value_belongs_to(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run("ci", "digits")
    told = []
    monkeypatch.setattr(room, "claim", lambda id, **about: told.append(about.pop("units")))
    assert len(run.seeds) != len(run.learning_seeds)
    for seeds in (run.seeds, run.learning_seeds):
        run.claim("some", values=np.zeros(len(seeds)))
        run.claim("some", x=[1.0, 2.0, 3.0], errors=np.ones((len(seeds), 3)))
        for units in told[-2:]:
            assert units.tolist() == units_of("digits", seeds).tolist()
    run.claim("some", left=[1.0], right=[1.0])
    run.claim("some", left=np.zeros(len(run.seeds)), right=[1.0])
    assert told[-2:] == [None, None]
