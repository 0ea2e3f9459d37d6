"""Generated corpora: lists, features and grades drawn from a seed, at any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cfltr_book.data.scales import Corpus
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.ranking.ragged import RankingData


@dataclass(frozen=True)
class Knobs:
    """What a generated population looks like.

    List lengths are 1 + Gamma cut at ``longest``, or 1 + Beta times ``longest``.  A document has ``factors`` latent
    factors that matter and ``nuisance`` ones that do not but show up in the same features, ``redundancy`` times as
    strongly.  Its utility is linear in the factors, plus pairwise interactions, plus a saturating term, plus
    Student-t(3) noise and a shift shared by the query; grades cut the utility at fixed global ``shares``.  Each
    feature is, with probability ``query_level``, the same for all documents of a query.  A ``minority`` share of the
    queries has another linear utility, at ``angle`` degrees from that of the others; no feature tells which.

    The values are frozen: on seeds 0-9 they leave a logger room to improve, and a network room above a linear
    ranker (``benchmarks/corpus_usefulness.py`` measures both).
    """

    name: str
    mean_length: float
    shape: float
    longest: int
    shares: tuple[float, ...]
    factors: int = 8
    nuisance: int = 12
    interaction: float = 1.0
    saturation: float = 0.4
    noise: float = 0.7
    query_shift: float = 0.35
    feature_noise: float = 0.8
    query_level: float = 0.15
    redundancy: float = 2.0
    threshold: int = 3
    lengths: Literal["gamma", "beta"] = "gamma"
    minority: float = 0.0
    angle: float = 70.0


def _mixed(aligned: Knobs) -> Knobs:
    """The profile *mixed*: one query in three wants something else, labels are noisier, lists twice as long."""
    return replace(
        aligned,
        name=f"{aligned.name}:mixed",
        mean_length=2 * aligned.mean_length,
        longest=2 * aligned.longest,
        noise=1.5 * aligned.noise,
        minority=1 / 3,
    )


YAHOO_LIKE = Knobs("yahoo-like", mean_length=23, shape=2.0, longest=139, shares=(0.26, 0.36, 0.28, 0.08, 0.02))
ISTELLA_LIKE = Knobs(
    "istella-like", mean_length=103, shape=2.0, longest=182, shares=(0.89, 0.02, 0.04, 0.03, 0.02), lengths="beta"
)
GENERATED: Mapping[str, Knobs] = MappingProxyType(
    {knobs.name: knobs for base in (YAHOO_LIKE, ISTELLA_LIKE) for knobs in (base, _mixed(base))}
)


@dataclass(frozen=True)
class _Population:
    utility: FloatArray
    pairs: IntArray
    loadings: FloatArray
    noise: FloatArray
    warp: IntArray
    query_level: BoolArray
    other: FloatArray


def _population(knobs: Knobs, n_features: int, rng: np.random.Generator) -> _Population:
    total = knobs.factors + knobs.nuisance
    utility = rng.normal(size=knobs.factors)
    utility /= np.linalg.norm(utility)
    pairs = rng.permutation(knobs.factors)[: 2 * (knobs.factors // 2)].reshape(-1, 2)
    # Each feature mixes two factors that matter with two that do not: no single feature gives the utility
    # away, and it takes data to cancel the nuisance.
    loadings = np.zeros((n_features, total))
    for row in loadings:
        row[rng.choice(knobs.factors, size=2, replace=False)] = rng.normal(size=2)
        row[knobs.factors + rng.choice(knobs.nuisance, size=2, replace=False)] = knobs.redundancy * rng.normal(size=2)
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    return _Population(
        utility=utility,
        pairs=pairs,
        loadings=loadings,
        noise=knobs.feature_noise * rng.uniform(0.3, 1.7, size=n_features),
        warp=rng.choice(4, size=n_features, p=(0.4, 0.25, 0.2, 0.15)),
        query_level=rng.random(n_features) < knobs.query_level,
        other=_turned(utility, knobs.angle, rng),
    )


def _turned(utility: FloatArray, angle: float, rng: np.random.Generator) -> FloatArray:
    """A unit vector at ``angle`` degrees from the unit vector ``utility``, otherwise in a random direction."""
    away = rng.normal(size=len(utility))
    away -= (away @ utility) * utility
    away /= np.linalg.norm(away)
    return np.asarray(np.cos(np.radians(angle)) * utility + np.sin(np.radians(angle)) * away)


def generate(knobs: Knobs, sizes: tuple[int, int, int], *, n_features: int, seed: int) -> Corpus:
    """A population drawn from ``seed`` and lists of ``sizes`` (train, validation, test) queries from it."""
    # One child stream per part: the training queries do not change when the test set grows.
    streams = [np.random.default_rng([seed, part]) for part in range(4)]
    population = _population(knobs, n_features, streams[0])
    parts = [_draw(knobs, population, n, rng) for n, rng in zip(sizes, streams[1:], strict=True)]
    cuts = np.quantile(parts[0][1], np.cumsum(knobs.shares)[:-1])
    train, validation, test = (
        RankingData(
            x, np.searchsorted(cuts, u).astype(np.int8), offsets=offsets, threshold=knobs.threshold, name=knobs.name
        )
        for x, u, offsets in parts
    )
    return Corpus(knobs.name, train, validation, test)


def _draw(
    knobs: Knobs, population: _Population, n_queries: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], FloatArray, IntArray]:
    """Features, utilities and offsets of ``n_queries`` queries.

    Features are computed block by block and written into the array that is returned: of what has the size of the
    features, nothing else is held.
    """
    sizes = _lengths(knobs, n_queries, rng)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query = np.repeat(np.arange(n_queries), sizes)
    n_docs, total, n_features = len(query), knobs.factors + knobs.nuisance, len(population.noise)
    topic = 0.5 * rng.normal(size=(n_queries, total))
    factors = rng.normal(size=(n_docs, total))
    factors *= np.sqrt(0.75)
    for rows in _blocks(n_docs, total):
        factors[rows] += topic[query[rows]]
    z = factors[:, : knobs.factors]
    left, right = population.pairs.T
    utility = (
        z @ population.utility
        + knobs.interaction * (z[:, left] * z[:, right]).sum(axis=1) / np.sqrt(len(left))
        + knobs.saturation * np.tanh(2.0 * z[:, left[0]])
        + knobs.noise * rng.standard_t(3, size=n_docs)
        + knobs.query_shift * rng.normal(size=n_queries)[query]
    )
    features = np.empty((n_docs, n_features), dtype=np.float32)
    own = _columns(population.warp, ~population.query_level)
    for rows in _blocks(n_docs, n_features):
        # Drawn row after row, as a single draw would be, also for columns that all documents of a query share.
        signal = rng.standard_normal((rows.stop - rows.start, n_features))
        signal *= population.noise
        signal += factors[rows] @ population.loadings.T
        _warp(signal, own, features[rows])
    shared, level = _columns(population.warp, population.query_level), np.flatnonzero(population.query_level)
    for rows in _blocks(n_queries, n_features):
        signal = rng.standard_normal((rows.stop - rows.start, n_features))
        signal += topic[rows] @ population.loadings.T
        warped = np.empty(signal.shape, dtype=np.float32)
        _warp(signal, shared, warped)
        features[offsets[rows.start] : offsets[rows.stop], level] = np.repeat(warped[:, level], sizes[rows], axis=0)
    if knobs.minority:  # drawn last, so that the aligned profile does not depend on it
        turned = (rng.random(n_queries) < knobs.minority)[query]
        utility[turned] += z[turned] @ (population.other - population.utility)
    return features, utility, offsets


def _blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut ``n_rows`` rows of ``width`` values into blocks of about 2¹⁷ values, which stay in the processor's cache.

    Blocks start at multiples of 192 rows, and a remainder joins the block before it.  A matrix product takes its rows
    in strips of up to 24, some libraries take 16 or 4, and may round the rows of a strip that is not full otherwise
    in the last digit, a single row always: with other cuts the product would depend on them.
    """
    step = 192 * max(1, (1 << 17) // (192 * max(1, width)))
    last = step * max(0, n_rows // step - 1)
    for start in range(0, last, step):
        yield slice(start, start + step)
    yield slice(last, n_rows)


def _lengths(knobs: Knobs, n_queries: int, rng: np.random.Generator) -> IntArray:
    """Documents of each query, 1 … ``longest``, ``mean_length`` on average; the floor takes half a document."""
    mean = knobs.mean_length - 0.5
    if knobs.lengths == "beta":
        share = rng.beta(knobs.shape, knobs.shape * (knobs.longest / mean - 1.0), size=n_queries)
        return 1 + np.minimum(share * knobs.longest, knobs.longest - 1).astype(np.int64)
    return 1 + np.minimum(rng.gamma(knobs.shape, mean / knobs.shape, size=n_queries), knobs.longest - 1).astype(
        np.int64
    )


def _columns(warp: IntArray, chosen: BoolArray) -> list[IntArray]:
    """The ``chosen`` columns of each shape of :func:`_warp`."""
    return [np.flatnonzero(chosen & (warp == shape)) for shape in range(4)]


def _warp(signal: FloatArray, columns: Sequence[IntArray], into: NDArray[np.float32]) -> None:
    """Map signals into [0, 1] as real features look: 0 smooth, 1 heavy-tailed, 2 counts, 3 binary."""
    smooth, heavy, counts, binary = (np.take(signal, of_shape, axis=1) for of_shape in columns)
    into[:, columns[0]] = 1.0 / (1.0 + np.exp(-1.5 * smooth))
    grown = np.exp(np.minimum(heavy, 5.0))
    into[:, columns[1]] = np.minimum(grown**1.2 / 20.0, 1.0)
    into[:, columns[2]] = np.minimum(np.floor(np.exp(np.minimum(counts, 5.0))), 10.0) / 10.0
    into[:, columns[3]] = binary > 0.5
