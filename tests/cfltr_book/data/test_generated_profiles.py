"""Every generated corpus against loops; sizes, list lengths and labels; what the conflict profile is and is not."""

from __future__ import annotations

import dataclasses
import hashlib
import math

import numpy as np
import oracles
import profile_loops
import pytest

from cfltr_book import SCALES, load_corpus
from cfltr_book.data.corpora import check_corpus
from cfltr_book.data.generated import GENERATED, YAHOO_LIKE, _draw, _population, generate
from cfltr_book.reporting.claim_registry import registry

PARTS = ("train", "validation", "test")
CONFLICTS = ("yahoo-like:conflict", "istella-like:conflict")


@pytest.mark.parametrize("name", profile_loops.CORPORA)
@pytest.mark.parametrize("seed", [0, 4])
def test_against_loops(name: str, seed: int) -> None:
    """Offsets and grades of every document, and all features of two queries of each part."""
    assert check_corpus(name) == name
    corpus = load_corpus(name, "smoke", seed=seed)
    sizes, n_features = profile_loops.SIZES[name.partition(":")[0]]["smoke"]
    assert corpus.name == name
    loops = profile_loops.corpus(name, seed, sizes, n_features, n_checked=2)
    for part, (offsets, grades, features) in zip(PARTS, loops, strict=True):
        data = getattr(corpus, part)
        assert data.offsets.tolist() == offsets
        assert data.relevance.tolist() == grades
        np.testing.assert_allclose(data.features[: len(features)], features, rtol=0, atol=1e-6)
        assert (data.threshold, data.name) == (3, name)


def test_both_references_agree_on_yahoo_like() -> None:
    """The loops here and those in tests/oracles.py were written apart from the generator, and say the same."""
    scale = SCALES["smoke"]
    ours = profile_loops.corpus("yahoo-like", 2, scale.generated, scale.features, n_checked=1)
    theirs = oracles.yahoo_like(2, scale.generated, scale.features, n_checked=1)
    for (offsets, grades, features), (o, g, f) in zip(ours, theirs, strict=True):
        assert offsets == o
        assert grades == g
        np.testing.assert_allclose(features, f, rtol=0, atol=1e-12)


def test_the_sizes_of_the_design() -> None:
    assert set(GENERATED) == set(profile_loops.CORPORA)
    for scale, size in SCALES.items():
        assert (size.generated, size.features) == profile_loops.SIZES["yahoo-like"][scale]
        assert (size.istella, size.istella_features) == profile_loops.SIZES["istella-like"][scale]


@pytest.mark.parametrize("name", profile_loops.CORPORA)
def test_lists_and_labels(name: str) -> None:
    """Mean length within 5 standard errors; no list beyond the longest; label shares exact in training."""
    knobs = profile_loops.CORPORA[name]
    sizes, n_features = profile_loops.SIZES[name.partition(":")[0]]["ci"]
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


def test_the_frozen_corpus_is_still_itself() -> None:
    """Published numbers rest on yahoo-like: a digest of its grades and lists, which no rounding of features moves."""
    digest = hashlib.sha256()
    for seed in range(3):
        for part in PARTS:
            data = getattr(load_corpus("yahoo-like", "smoke", seed=seed), part)
            digest.update(data.offsets.astype("<i8").tobytes())
            digest.update(data.relevance.astype("i1").tobytes())
    assert digest.hexdigest() == "0e1820311f70f7ab55368e4283dafc2bead998d9ee104d759d075eb00edee73a"


@pytest.mark.parametrize("name", ["istella-like", *CONFLICTS])
def test_same_arguments_same_numbers_other_seed_other_numbers(name: str) -> None:
    once, again, other = (load_corpus(name, "smoke", seed=seed).train for seed in (5, 5, 6))
    np.testing.assert_array_equal(once.features, again.features)
    np.testing.assert_array_equal(once.relevance, again.relevance)
    np.testing.assert_array_equal(once.offsets, again.offsets)
    assert not np.array_equal(once.offsets, other.offsets)


def test_unknown_profiles_are_refused_with_the_names_that_exist() -> None:
    for name in ("yahoo-like:", "yahoo-like:aligned", "digits:conflict", "istella"):
        with pytest.raises(ValueError, match=r"choose .*istella-like, yahoo-like:conflict, istella-like:conflict"):
            check_corpus(name)


def test_no_claim_on_an_aligned_corpus_gates_the_conflict() -> None:
    """Another population with the same first name is another corpus: a claim must name it."""
    for spec in registry().values():
        for name in CONFLICTS:
            assert spec.gates("paper", name) == (name in spec.corpora)
