"""Every generated corpus against loops; what the mixed profile is; bit for bit what one block gives, in little more
memory than the features.
"""

import dataclasses
import hashlib
import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import oracles
import profile_loops
import pytest
from threadpoolctl import threadpool_limits

from cfltr_book import load_corpus
from cfltr_book.data import generated
from cfltr_book.data.corpora import check_corpus
from cfltr_book.data.generated import GENERATED, YAHOO_LIKE, _draw, _population, generate
from cfltr_book.data.scales import Corpus
from cfltr_core import RankingData

PARTS = ("train", "validation", "test")


def parts_of(corpus: Corpus) -> list[RankingData]:
    return [getattr(corpus, name) for name in PARTS]


@pytest.mark.oracle("generated.generate")
@pytest.mark.parametrize("name", profile_loops.CORPORA)
@pytest.mark.parametrize("small", [False, True])
def test_against_loops(name: str, small: bool) -> None:
    """Offsets and grades of every document, and all features of two queries of each part; of any size."""
    assert check_corpus(name) == name
    sizes, width = ((7, 2, 3), 12) if small else profile_loops.size_of(name)
    found = generate(GENERATED[name], sizes, n_features=width, seed=4) if small else load_corpus(name, "smoke", seed=4)
    assert found.name == name
    loops = profile_loops.corpus(name, 4, sizes, width, n_checked=2)
    for data, (offsets, grades, features) in zip(parts_of(found), loops, strict=True):
        assert np.diff(data.offsets).tolist() == oracles.lengths(offsets)
        assert data.relevance.tolist() == grades
        assert data.features.shape == (len(grades), width)
        np.testing.assert_allclose(data.features[: len(features)], features, rtol=0, atol=1e-6)
        assert (data.threshold, data.name) == (3, name)


def test_every_profile_has_its_loops() -> None:
    assert set(GENERATED) == set(profile_loops.CORPORA)


@pytest.mark.parametrize("name", ["istella-like", "istella-like:mixed"])
def test_the_longest_list_is_reached_and_never_passed(name: str) -> None:
    knobs = GENERATED[name]
    small, rng = dataclasses.replace(knobs, factors=2, nuisance=2), np.random.default_rng(0)
    _, _, offsets = _draw(small, _population(small, 1, rng), 30_000, rng)
    lengths = np.diff(offsets)
    assert lengths.max() == knobs.longest
    assert abs(lengths.mean() - knobs.mean_length) <= 5 * lengths.std() / math.sqrt(len(lengths))


# A SHA-256 of the offsets (int64) of train, validation and test, and one of the grades (int8), for seeds 0 and 1; here
# stands one of these four, written in hexadecimal.  Taken from the generator while it computed whole arrays.  There is
# no digest of features: another libm may round an exponential otherwise.
DIGESTS = {
    ("smoke", "yahoo-like"): "29d1a225cbfffd50a643de3d0c145420d821f896cf88d434179aeb54be0bddb0",
    ("smoke", "yahoo-like:mixed"): "0be4d3db5aad27da86fade3303b41ddb7388c113da9d216170c88b8ee92744fc",
    ("smoke", "istella-like"): "60b272abf2cb9b1bd6c5c5d6e681988ccd614cabbd33e165040906a44b687027",
    ("smoke", "istella-like:mixed"): "2b26d0a46f51efbdcd9eb1a6828f2faad6d2524d675f0e960c23de94bd94bf85",
    ("ci", "yahoo-like"): "bd4ee13a543745b09e6462bdf197f13e20cc460c03d119bc1f251eaf5ab0c78c",
    ("ci", "istella-like"): "dc82f282d9bf0a0e1da3f72219382406c16308e482b9f74957ec9eb111d7396f",
}


SMOKE = [(name, *profile_loops.size_of(name)) for name in profile_loops.CORPORA]


@pytest.mark.parametrize(
    ("name", "sizes", "n_features"), [*SMOKE, *(("yahoo-like", (400, 1, 40), n) for n in (1, 2, 7, 97, 700))]
)
def test_the_same_bits_as_in_one_block(
    name: str, sizes: tuple[int, int, int], n_features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one block of documents to many; one query to two blocks of them."""
    # More threads cut a product in places of their own.
    with threadpool_limits(1):
        found = generate(GENERATED[name], sizes, n_features=n_features, seed=5)
        monkeypatch.setattr(generated, "_blocks", lambda n_rows, width: [slice(0, n_rows)])
        whole = generate(GENERATED[name], sizes, n_features=n_features, seed=5)
    for part, other in zip(parts_of(found), parts_of(whole), strict=True):
        assert part.features.dtype == np.float32
        assert part.features.flags.c_contiguous
        # As bits, so that 0 and −0 differ.
        np.testing.assert_array_equal(part.features.view(np.uint32), other.features.view(np.uint32))
        np.testing.assert_array_equal(part.relevance, other.relevance)
        np.testing.assert_array_equal(part.offsets, other.offsets)


@pytest.mark.parametrize(("scale", "name"), DIGESTS)
def test_grades_and_lists_are_those_that_were_published(scale: str, name: str) -> None:
    digest = hashlib.sha256()
    for seed in range(2):
        parts = parts_of(load_corpus(name, scale, seed=seed))
        for arrays in ([part.offsets.astype("<i8") for part in parts], [part.relevance for part in parts]):
            digest.update(hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest().encode())
    assert digest.hexdigest() == DIGESTS[scale, name]


@contextmanager
def most_held() -> Iterator[list[int]]:
    """The most bytes that were held inside, in a list that is filled at the end."""
    held: list[int] = []
    tracemalloc.start()
    try:
        yield held
        held.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("sizes", "n_features"), [((3000, 700, 1500), 60), ((500, 60, 140), 700)])
def test_memory_at_the_peak(sizes: tuple[int, int, int], n_features: int) -> None:
    """At most 8 bytes a feature value, 4 of which are the features that are returned; whole arrays took 36 to 44."""
    with most_held() as held:
        corpus = generate(YAHOO_LIKE, sizes, n_features=n_features, seed=0)
    values = sum(part.features.size for part in parts_of(corpus))
    assert values > 3e6
    assert 4 * values < held[0] <= 8 * values


def test_checks_of_ranking_data_hold_no_second_copy() -> None:
    """Features in float32 are taken as they are and checked in pieces."""
    features = np.zeros((40_000, 100), dtype=np.float32)
    grades, offsets = np.zeros(len(features), dtype=np.int8), np.arange(0, len(features) + 1, 10)
    with most_held() as held:
        data = RankingData(features, grades, offsets=offsets)
    assert data.features is features
    # A mask of all values has a quarter of their bytes, 4 MB; what is made of grades takes some numbers a document.
    assert held[0] < features.nbytes // 8


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (2620, 99), (2621, 0), (2622, 3), (7999, 99)])
def test_a_value_that_is_not_finite_is_found_in_any_piece(value: float, row: int, column: int) -> None:
    features = np.zeros((8000, 100), dtype=np.float32)
    features[row, column] = value
    features[-1, -1] = value  # the first is named
    with pytest.raises(
        ValueError, match=rf"^features\[{row}, {column}\] is {value}: replace or drop non-finite values"
    ):
        RankingData(features, np.zeros(8000, dtype=np.int8), offsets=[0, 8000])
