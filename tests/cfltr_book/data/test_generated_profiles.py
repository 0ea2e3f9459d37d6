"""Every generated corpus against loops; sizes, list lengths and labels; what the conflict profile is and is not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import profile_loops
import pytest

from cfltr_book import load_corpus
from cfltr_book.data.corpora import check_corpus
from cfltr_book.data.generated import GENERATED, YAHOO_LIKE, _draw, _population, generate

PARTS = ("train", "validation", "test")
CONFLICTS = ("yahoo-like:conflict", "istella-like:conflict")


@pytest.mark.oracle("generated.generate")
@pytest.mark.parametrize("name", profile_loops.CORPORA)
@pytest.mark.parametrize("small", [False, True])
def test_against_loops(name: str, small: bool) -> None:
    """Offsets and grades of every document, and all features of two queries of each part; of any size."""
    assert check_corpus(name) == name
    sizes, width = ((7, 2, 3), 12) if small else profile_loops.size_of(name, "smoke")
    found = generate(GENERATED[name], sizes, n_features=width, seed=4) if small else load_corpus(name, "smoke", seed=4)
    assert found.name == name
    loops = profile_loops.corpus(name, 4, sizes, width, n_checked=2)
    for part, (offsets, grades, features) in zip(PARTS, loops, strict=True):
        data = getattr(found, part)
        assert np.diff(data.offsets).tolist() == oracles.lengths(offsets)
        assert data.relevance.tolist() == grades
        assert data.features.shape == (len(grades), width)
        np.testing.assert_allclose(data.features[: len(features)], features, rtol=0, atol=1e-6)
        assert (data.threshold, data.name) == (3, name)


def test_every_profile_has_its_loops() -> None:
    assert set(GENERATED) == set(profile_loops.CORPORA)


@pytest.mark.parametrize("name", profile_loops.CORPORA)
def test_lists_and_labels(name: str) -> None:
    """Mean length within 5 standard errors; no list beyond the longest; label shares exact in training."""
    knobs = profile_loops.CORPORA[name]
    sizes, n_features = profile_loops.size_of(name, "ci")
    corpus = load_corpus(name, "ci", seed=1)
    for part, n_queries in zip(PARTS, sizes, strict=True):
        data = getattr(corpus, part)
        assert data.n_queries == n_queries
        assert data.features.shape[1] == n_features
        assert data.features.min() >= 0
        assert data.features.max() <= 1
        lengths = np.array(oracles.lengths(data.offsets.tolist()))
        error = lengths.std() / math.sqrt(n_queries)
        assert abs(lengths.mean() - knobs["longer"] * knobs["mean"]) <= 5 * error
        assert lengths.min() >= 1
        assert lengths.max() <= knobs["longer"] * knobs["longest"]
    for grade, share in enumerate(knobs["shares"]):
        assert abs((corpus.train.relevance == grade).mean() - share) <= 1.5 / corpus.train.n_docs
    assert (corpus.train.features.std(axis=0) > 0.01).all()


@pytest.mark.parametrize("name", ["istella-like", "istella-like:conflict"])
def test_the_longest_list_is_reached_and_never_passed(name: str) -> None:
    knobs = GENERATED[name]
    rng = np.random.default_rng(0)
    _, _, offsets = _draw(dataclasses.replace(knobs, factors=2, nuisance=2), _small(knobs, rng), 30_000, rng)
    lengths = np.diff(offsets)
    assert lengths.max() == knobs.longest
    assert abs(lengths.mean() - knobs.mean_length) <= 5 * lengths.std() / math.sqrt(len(lengths))


def _small(knobs, rng):
    return _population(dataclasses.replace(knobs, factors=2, nuisance=2), 1, rng)


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_the_conflict_is(name: str) -> None:
    """70° between unit utilities, a third of the queries turned, labels noisier, lists longer; nothing else changed."""
    aligned, conflict = GENERATED[name.partition(":")[0]], GENERATED[name]
    before, after = dataclasses.asdict(aligned), dataclasses.asdict(conflict)
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    assert changed == {
        "name": (aligned.name, name),
        "mean_length": (aligned.mean_length, 2 * aligned.mean_length),
        "longest": (aligned.longest, 2 * aligned.longest),
        "noise": (0.7, pytest.approx(1.05)),
        "minority": (0.0, 1 / 3),
    }
    for seed in range(20):
        population = _population(conflict, 5, np.random.default_rng(seed))
        assert np.linalg.norm(population.other) == pytest.approx(1.0)
        assert math.degrees(math.acos(population.utility @ population.other)) == pytest.approx(70.0)
    # Without noise, interaction, saturation and shift the utility is linear: each query obeys one of two directions.
    plain = dataclasses.replace(conflict, noise=0.0, interaction=0.0, saturation=0.0, query_shift=0.0)
    straight = dataclasses.replace(plain, minority=0.0)
    population = _population(plain, 5, np.random.default_rng(0))
    _, turned, offsets = _draw(plain, population, 400, np.random.default_rng(1))
    _, same, _ = _draw(straight, population, 400, np.random.default_rng(1))
    moved = np.add.reduceat(turned != same, offsets[:-1])
    assert set(moved[moved > 0] == np.diff(offsets)[moved > 0]) == {True}
    # 400 draws with probability 1/3 have a standard deviation of 9.4.
    assert abs((moved > 0).sum() - 400 / 3) <= 5 * 9.4


def test_conflict_without_its_minority_is_the_aligned_law() -> None:
    """Drawing who is turned comes last: no other number depends on it."""
    back = dataclasses.replace(
        GENERATED["yahoo-like:conflict"],
        name="yahoo-like",
        mean_length=23,
        longest=139,
        noise=0.7,
        minority=0.0,
    )
    assert back == YAHOO_LIKE
    for minority in (0.0, 0.5):
        knobs = dataclasses.replace(YAHOO_LIKE, minority=minority)
        corpus = generate(knobs, (30, 10, 10), n_features=20, seed=3)
        np.testing.assert_array_equal(
            corpus.train.features, generate(YAHOO_LIKE, (30, 10, 10), n_features=20, seed=3).train.features
        )
