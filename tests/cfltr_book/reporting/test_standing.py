"""Where a chapter stands: seeds, settings, corpora, generators and logs."""

import pickle
from typing import Any

import numpy as np
import oracles
import pytest

from cfltr_book import SCALES, load_corpus
from cfltr_book.data import memory
from cfltr_book.reporting.standing import Standing, entropy
from cfltr_core import ClickLog, DeterministicPolicy, PositionBasedUser

HERE = Standing("smoke", "digits", 3)


@pytest.mark.parametrize("scale", SCALES)
def test_seeds_follow_from_the_scale_and_the_first_seed(scale: str) -> None:
    here = Standing(scale, "yahoo-like", np.int64(4))  # type: ignore[arg-type]
    assert here.size is SCALES[scale]
    assert list(here.seeds) == oracles.seeds_of(4, SCALES[scale].light_seeds)
    assert list(here.learning_seeds) == oracles.seeds_of(4, SCALES[scale].seeds)
    assert pickle.loads(pickle.dumps(here)) == here
    assert type(here.seed) is int


def test_the_setting_as_captions_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Corpus digits (relevant from grade 1), scale smoke, {}"
    assert HERE.setting_of(HERE.seeds) == words.format("2 seeds")
    assert HERE.setting_of([5]) == words.format("seed 5")
    monkeypatch.setattr("cfltr_book.reporting.standing.units_of", lambda corpus, seeds: [seed % 5 for seed in seeds])
    assert "10 seeds on 5 folds (claims count folds" in HERE.setting_of(range(10))
    assert HERE.setting_of(range(5)).endswith("5 seeds")


def test_corpora_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    memory._kept.clear()
    loaded: list[int] = []

    def counted(corpus: str, scale: str, *, seed: int) -> Any:
        loaded.append(seed)
        return load_corpus(corpus, scale, seed=seed)

    monkeypatch.setattr(memory, "load_corpus", counted)
    first = HERE.load(3)
    assert HERE.load(3) is first
    assert Standing("smoke", "digits", 9).load(3) is first
    assert memory.remembered_corpus("digits", "smoke", seed=3) is first
    np.testing.assert_array_equal(first.train.features, load_corpus("digits", "smoke", seed=3).train.features)
    one = sum(part.features.nbytes for part in (first.train, first.validation, first.test))
    monkeypatch.setattr(memory, "KEPT_BYTES", 2 * one)
    for seed in (4, 3, 5, 3, 4):
        HERE.load(seed)  # the one that was not asked for longest goes
    assert oracles.count_words([str(seed) for seed in loaded]) == {"3": 1, "4": 2, "5": 1}
    monkeypatch.setattr(memory, "KEPT_BYTES", 0)
    assert HERE.load(7) is HERE.load(7)  # the last stays, however large
    held: list[int] = []
    monkeypatch.setattr(memory, "load_corpus", lambda *_, seed: held.append(len(memory._kept)) or first)
    HERE.load(8)
    assert held == [0]  # … until another is made: both would be in memory
    with pytest.raises(ValueError, match="seed is -1"):
        HERE.load(-1)


def test_each_seed_and_stream_has_a_generator_of_its_own() -> None:
    assert HERE.rng(3, 7).random(4).tolist() == oracles.uniforms([3, 7], 4)
    assert HERE.rng(3, [7, 100]).random(4).tolist() == oracles.uniforms([3, 7, 100], 4)
    assert list(entropy(3, np.int64(7))) == [3, 7]  # type: ignore[arg-type]


CUTS = np.array([0, 3, 5])
POLICY = DeterministicPolicy(np.array([1, 2, 3, 1, 2]), CUTS)
USER = PositionBasedUser([1.0, 0.5, 0.25], epsilon_plus=0.9, epsilon_minus=0.1)
RELEVANCE = np.array([1, 0, 1, 0, 1])


def test_simulate_draws_sessions_then_clicks() -> None:
    chance = [1.0 * 0.9, 0.5 * 0.1, 0.25 * 0.9, 1.0 * 0.1, 0.5 * 0.9]
    sessions, clicks = oracles.run_log(3, 7, chance, CUTS.tolist(), 500.0)

    def simulated(**size: float) -> ClickLog:
        return HERE.simulate(POLICY, USER, relevance=RELEVANCE, rng=HERE.rng(3, 7), **size)  # type: ignore[arg-type]

    log = simulated(n_clicks=500)
    assert (log.sessions.tolist(), log.clicks.tolist()) == (sessions, clicks)
    assert simulated(n_sessions=sum(sessions)).clicks.tolist() == clicks
    for wrong, message in (
        ({}, "n_clicks, n_sessions: say how large the log is by one of the two"),
        ({"n_clicks": 5.0, "n_sessions": 3}, "n_clicks, n_sessions: say how large the log is by one of the two"),
        ({"n_clicks": 0}, r"n_clicks is 0\.0"),
        ({"n_sessions": 0}, "n_sessions is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            simulated(**wrong)
