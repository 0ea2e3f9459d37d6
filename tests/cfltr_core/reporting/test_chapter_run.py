"""The run of a chapter: seeds, settings, corpora, generators and logs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import oracles
import pytest

from cfltr_core import SCALES, DeterministicPolicy, PositionBasedUser, Run, load_corpus
from cfltr_core.data import memory
from cfltr_core.data.corpora import units_of
from cfltr_core.reporting import run as room
from cfltr_core.reporting.claim_registry import registry

RUN = Run("smoke", "digits", 3)
CAPTION = "Estimates of two methods; bands are 95 % intervals."
ALT = "Line plot of estimate against clicks: the line of IPS stays at 2.5, the naive one falls to 1.1."


@pytest.mark.parametrize("scale", SCALES)
def test_seeds_follow_from_the_scale_and_the_first_seed(scale: str) -> None:
    run = Run(scale, "yahoo-like", np.int64(4))  # type: ignore[arg-type]
    assert run.size is SCALES[scale]
    assert list(run.seeds) == oracles.seeds_of(4, SCALES[scale].light_seeds)
    assert list(run.learning_seeds) == oracles.seeds_of(4, SCALES[scale].seeds)
    assert pickle.loads(pickle.dumps(run)) == run
    assert type(run.seed) is int


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("medium", "digits", 0), "scale is 'medium': choose one of smoke, ci, paper"),
        (("ci", "yahoo", 0), "corpus is 'yahoo': choose"),
        (("ci", "digits", -1), "seed is -1: expected a whole number of at least 0"),
        (("ci", "digits", True), "seed is True"),
        (("ci", "digits", "0"), "seed is '0'"),
    ],
)
def test_arguments_are_checked_at_once(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Run(*arguments)


def test_the_setting_as_captions_say_it() -> None:
    words = "Corpus digits (relevant from grade 1), scale smoke, {}"
    assert RUN.setting == words.format(f"{len(oracles.seeds_of(3, 2))} seeds")
    assert RUN.setting_of([5]) == words.format("seed 5")
    assert RUN.setting_of(range(3)) == words.format("3 seeds")
    with pytest.raises(ValueError, match="seeds: there is none"):
        RUN.setting_of([])


def test_the_setting_counts_the_folds_that_seeds_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cfltr_core.reporting.run.units_of", lambda corpus, seeds: [seed % 5 for seed in seeds])
    assert "10 seeds on 5 folds (claims count folds" in RUN.setting_of(range(10))
    assert RUN.setting_of(range(5)).endswith("5 seeds")


def test_corpora_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    memory._kept.clear()
    loaded: list[int] = []

    def counted(corpus: str, scale: str, *, seed: int) -> Any:
        loaded.append(seed)
        return load_corpus(corpus, scale, seed=seed)

    monkeypatch.setattr(memory, "load_corpus", counted)
    first = RUN.load(3)
    assert RUN.load(3) is first
    assert Run("smoke", "digits", 9).load(3) is first
    assert memory.remembered_corpus("digits", "smoke", seed=3) is first
    np.testing.assert_array_equal(first.train.features, load_corpus("digits", "smoke", seed=3).train.features)
    one = sum(part.features.nbytes for part in (first.train, first.validation, first.test))
    monkeypatch.setattr(memory, "KEPT_BYTES", 2 * one)
    for seed in (4, 3, 5, 3, 4):
        RUN.load(seed)  # the one that was not asked for longest goes
    assert oracles.count_words([str(seed) for seed in loaded]) == {"3": 1, "4": 2, "5": 1}
    monkeypatch.setattr(memory, "KEPT_BYTES", 0)
    assert RUN.load(7) is RUN.load(7)  # the last stays, however large
    held: list[int] = []
    monkeypatch.setattr(memory, "load_corpus", lambda *_, seed: held.append(len(memory._kept)) or first)
    RUN.load(8)
    assert held == [0]  # … until another is made: both would be in memory
    with pytest.raises(ValueError, match="seed is -1"):
        RUN.load(-1)


def test_each_seed_and_stream_has_a_generator_of_its_own() -> None:
    assert RUN.rng(3, 7).random(4).tolist() == oracles.uniforms([3, 7], 4)
    assert RUN.rng(3, [7, 100]).random(4).tolist() == oracles.uniforms([3, 7, 100], 4)
    for arguments in ((3, -1), (-3, 1), (3, [1, 0.5]), (3, True)):
        with pytest.raises(ValueError, match=r"is -1|is -3|is 0\.5|is True"):
            RUN.rng(*arguments)  # type: ignore[arg-type]


CUTS = np.array([0, 3, 5])
POLICY = DeterministicPolicy(np.array([1, 2, 3, 1, 2]), CUTS)
USER = PositionBasedUser([1.0, 0.5, 0.25], epsilon_plus=0.9, epsilon_minus=0.1)
RELEVANCE = np.array([1, 0, 1, 0, 1])


def test_simulate_draws_sessions_then_clicks() -> None:
    chance = [1.0 * 0.9, 0.5 * 0.1, 0.25 * 0.9, 1.0 * 0.1, 0.5 * 0.9]
    sessions, clicks = oracles.run_log(3, 7, chance, CUTS.tolist(), 500.0)
    log = RUN.simulate(POLICY, USER, relevance=RELEVANCE, n_clicks=500, rng=RUN.rng(3, 7))
    assert log.sessions.tolist() == sessions
    assert log.clicks.tolist() == clicks
    same = RUN.simulate(POLICY, USER, relevance=RELEVANCE, n_sessions=sum(sessions), rng=RUN.rng(3, 7))
    assert same.clicks.tolist() == clicks
    for both in ({}, {"n_clicks": 5.0, "n_sessions": 3}):
        with pytest.raises(ValueError, match="n_clicks, n_sessions: say how large the log is by one of the two"):
            RUN.simulate(POLICY, USER, relevance=RELEVANCE, rng=RUN.rng(3, 7), **both)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"n_clicks is 0\.0: expected a finite number > 0"):
        RUN.simulate(POLICY, USER, relevance=RELEVANCE, rng=RUN.rng(3, 7), n_clicks=0)
    with pytest.raises(ValueError, match="n_sessions is 0"):
        RUN.simulate(POLICY, USER, relevance=RELEVANCE, rng=RUN.rng(3, 7), n_sessions=0)


def test_what_a_chapter_shows_knows_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    id = next(c.id for c in registry().values() if c.kind == "identity")
    result = RUN.claim(id, left=[1.0], right=[1.0])
    RUN.record("some-number", 0.5, form="{:.1f}")
    for name, seeds in (("fig-one", None), ("fig-two", RUN.seeds)):
        RUN.figure(plt.figure(), name, caption=CAPTION, alt=ALT, data={"x": [1]}, seeds=seeds)
    found = {name: json.loads(text) for name, text in oracles.texts(str(tmp_path)).items() if name.endswith(".json")}
    assert (found[f"{id}.json"]["scale"], found[f"{id}.json"]["corpus"]) == ("smoke", "digits")
    assert found["some-number.json"]["text"] == "0.5"
    assert found["fig-one.json"]["caption"] == CAPTION
    assert found["fig-two.json"]["caption"] == f"{CAPTION} {RUN.setting}."
    assert RUN.evidence(result).summary.startswith("Evidence: 1 claim, 1 supported")


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
