"""Ranking corpora: generated, bundled (digits), or read from a LETOR folder; and the sizes of each scale."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.ragged import RankingData

if TYPE_CHECKING:
    from cfltr_letor import ReaderOptions


@dataclass(frozen=True)
class Scale:
    """Sizes of one scale: one code path, three sizes.

    ``generated`` (of yahoo-like), ``istella`` (of istella-like) and ``digits`` hold queries for train / validation /
    test, ``features`` and ``istella_features`` the widths; a profile does not change them.  ``clicks`` holds the
    expected numbers of clicks on a learning curve; ``seeds`` the number of populations (each with its own log)
    where rankers are learnt, ``light_seeds`` where they are only evaluated, which costs a second each;
    ``repetitions`` how often a log is drawn again to measure a spread; ``C_grid`` the strengths of the data against
    the regulariser that SVM PropRank chooses from.
    """

    name: str
    generated: tuple[int, int, int]
    features: int
    istella: tuple[int, int, int]
    istella_features: int
    digits: tuple[int, int, int]
    clicks: tuple[int, ...]
    seeds: int
    light_seeds: int
    repetitions: int
    C_grid: tuple[float, ...]


_CURVE = (1_700, 17_000, 170_000, 1_700_000)
_GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)


class _Scales(Mapping[str, Scale]):
    """Scales by name, read only; a name that does not exist is answered with those that do."""

    def __init__(self, scales: dict[str, Scale]) -> None:
        self._scales = scales

    def __getitem__(self, name: str) -> Scale:
        if name not in self._scales:
            raise KeyError(f"scale is {name!r}: choose one of {', '.join(self)}")
        return self._scales[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scales)

    def __len__(self) -> int:
        return len(self._scales)


SCALES: Mapping[str, Scale] = _Scales(
    {
        "smoke": Scale(
            name="smoke",
            generated=(200, 80, 120),
            features=20,
            istella=(60, 30, 40),
            istella_features=20,
            digits=(100, 50, 100),
            clicks=(500, 5_000),
            seeds=2,
            light_seeds=2,
            repetitions=40,
            C_grid=(1e-1, 1.0, 1e1),
        ),
        "ci": Scale(
            name="ci",
            generated=(3_000, 1_000, 1_000),
            features=60,
            istella=(800, 300, 300),
            istella_features=60,
            digits=(800, 250, 500),
            clicks=_CURVE,
            seeds=5,
            light_seeds=10,
            repetitions=400,
            C_grid=_GRID,
        ),
        "paper": Scale(
            name="paper",
            generated=(20_000, 3_000, 7_000),
            features=700,
            istella=(19_000, 7_000, 6_500),
            istella_features=220,
            digits=(890, 290, 590),
            clicks=_CURVE,
            seeds=10,
            light_seeds=20,
            repetitions=1_000,
            C_grid=_GRID,
        ),
    }
)


@dataclass(frozen=True)
class Corpus:
    """Train, validation and test queries of one corpus and seed."""

    name: str
    train: RankingData
    validation: RankingData
    test: RankingData


def check_scale(scale: str) -> Scale:
    """The :class:`Scale` of that name; ValueError for an unknown one."""
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}: choose one of {', '.join(SCALES)}")
    return SCALES[scale]


def check_corpus(corpus: str) -> str:
    """Return ``corpus`` if it can be loaded here; a ValueError that says what to do if not."""
    if corpus in GENERATED or corpus == "digits":
        return corpus
    if corpus.startswith("letor:"):
        letor_folder(corpus)
        return corpus
    raise ValueError(f"corpus is {corpus!r}: {_CHOICES}")


_CHOICES = (
    "choose yahoo-like, digits or letor:<folder>, a folder below the one that CFLTR_DATA names; "
    "or istella-like, yahoo-like:conflict, istella-like:conflict"
)
_OPTIONS = (
    "after the @ stand, with commas between them, the lowest relevant grade (a whole number from 1), normalise, log1p, "
    "drop=ID[+ID…] (features to leave out)"
)
_WHOLE = re.compile("0*[1-9][0-9]{0,5}")


def _parse_letor(corpus: str) -> tuple[str, dict[str, Any]]:
    """Folder and reader options that ``letor:<folder>[@<option>[,<option>…]]`` names.

    An option is a whole number (``threshold``, the lowest relevant grade), ``normalise``, ``log1p`` or
    ``drop=ID[+ID…]``, each at most once, in any order.

    Returns
    -------
    folder, fields
        ``fields`` are arguments of :class:`cfltr_letor.ReaderOptions`; what is not named is not among them.

    Raises
    ------
    ValueError
        Without a folder, or for an option that does not exist or stands twice.
    """
    folder, at, text = corpus.removeprefix("letor:").partition("@")
    if not corpus.startswith("letor:") or not folder:
        raise ValueError(f"corpus is {corpus!r}: {_CHOICES}")
    fields: dict[str, Any] = {}
    for option in text.split(",") if at else ():
        name, equals, value = option.partition("=")
        ids = value.split("+")
        meaning: Any
        if _WHOLE.fullmatch(option):
            field, meaning = "threshold", int(option)
        elif option in ("normalise", "log1p"):
            field, meaning = option, True
        elif name == "drop" and equals and all(map(_WHOLE.fullmatch, ids)):
            field, meaning = name, tuple(map(int, ids))
        else:
            raise ValueError(f"corpus is {corpus!r}: {option!r} is no option; {_OPTIONS}")
        if field in fields:
            raise ValueError(f"corpus is {corpus!r}: {option!r} names {field} a second time; keep one of the two")
        fields[field] = meaning
    return folder, fields


def letor_folder(corpus: str) -> Path:
    """The folder behind ``letor:<folder>``; ValueError when CFLTR_DATA is unset or the folder is missing."""
    name, _ = _parse_letor(corpus)
    setting = os.environ.get("CFLTR_DATA")
    if not setting:
        raise ValueError(
            f"corpus is {corpus!r}, but the environment variable CFLTR_DATA is not set: "
            "set it to the folder that holds your collections"
        )
    root = Path(setting).expanduser().resolve()
    folder = root / name
    if not root.is_dir():
        raise ValueError(
            f"corpus is {corpus!r}, but there is no folder {root}, which CFLTR_DATA names: "
            "set it to the folder that holds your collections"
        )
    if not folder.is_dir():
        there = ", ".join(sorted(path.name for path in root.iterdir() if path.is_dir())) or "no folder"
        raise ValueError(
            f"corpus is {corpus!r}, but there is no folder {folder}: CFLTR_DATA is {setting}, which holds {there}; "
            "name one of these, or set CFLTR_DATA to the folder that holds your collection"
        )
    return folder


def _check_relevant(corpus: str, seed: int, parts: tuple[RankingData, ...]) -> None:
    """Raise a ValueError for a split in which nothing is relevant: no click, no choice, no metric comes of it."""
    highest = {
        split: int(part.relevance.max()) for split, part in zip(("train", "validation", "test"), parts, strict=True)
    }
    threshold = parts[0].threshold  # the reader gives all parts the same
    for split, found in highest.items():
        if found >= threshold:
            continue
        lowest = min(highest.values())
        if lowest:
            name, _, text = corpus.partition("@")
            kept = [option for option in text.split(",") if option and not _WHOLE.fullmatch(option)]
            remedy = f"lower the threshold, as in {name}@{','.join([str(lowest), *kept])}"
        else:
            empty = next(other for other, grade in highest.items() if grade == 0)
            remedy = f"no threshold helps, since the {empty} split has grades of 0 only: it needs judged documents"
        raise ValueError(
            f"corpus is {corpus!r}, seed {seed}: the {split} split has no relevant document; its largest grade is "
            f"{found}, and a document is relevant from grade {threshold} on: {remedy}"
        )


def load_corpus(corpus: str, scale: str, seed: int, *, options: ReaderOptions | None = None) -> Corpus:
    """Load or generate a corpus.  Same arguments, same numbers; nothing is downloaded or written.

    Parameters
    ----------
    corpus : "yahoo-like", "istella-like", "digits" or "letor:<folder>"
        A generated name may carry the profile, as in "yahoo-like:conflict"; the plain name is the aligned profile.
        ``letor:`` ignores ``scale``; its ``seed`` chooses the fold or the random split.  After an @ stand options
        of the reader, as in "letor:mslr@2,normalise,drop=134+135+136" (:func:`parse_letor`): the lowest relevant
        grade, without which it is 3 when grades go beyond 2, else 1; and what is done to raw values.
    scale : "smoke", "ci" or "paper"
    seed : int >= 0
        Another seed is another population (generated) or another split of the same data (digits, letor).
    options : cfltr_letor.ReaderOptions, optional
        For ``letor:`` alone: how values are read, where the name of the corpus does not say otherwise.  Without
        either they are taken as they are, which suits collections that are scaled already; raw ones such as MSLR
        want ``normalise`` and ``drop=MSLR_LEAKS`` of ``cfltr_letor.archives``.

    Raises
    ------
    ValueError
        For an unknown corpus, option or scale, a folder that is missing or no collection, and a train, validation
        or test split of a collection that has no relevant document.
    """
    if options is not None and not corpus.startswith("letor:"):
        raise ValueError(f"options: {corpus} is not read from files; leave them out, or name letor:<folder>")
    size = check_scale(scale)
    check_corpus(corpus)
    checks.positive_int(seed, "seed", least=0)
    if corpus == "digits":
        return _digits(size, seed)
    if corpus in GENERATED:
        if corpus.startswith("istella-like"):
            return _generate(GENERATED[corpus], size.istella, size.istella_features, seed)
        return _generate(GENERATED[corpus], size.generated, size.features, seed)
    # Imported here because the reader stands above this package.
    import cfltr_letor

    _, fields = _parse_letor(corpus)
    chosen = replace(options or cfltr_letor.ReaderOptions(), **fields)
    parts = cfltr_letor.read_collection(letor_folder(corpus), seed, options=chosen)
    _check_relevant(corpus, seed, parts)
    return Corpus(corpus, *parts)


def units_of(corpus: str, seeds: Iterable[int]) -> IntArray:
    """For each seed the label of the unit that it belongs to, shape (n_seeds,): equal labels, the same data.

    A collection in five folds gives the fold, seed modulo 5: ten seeds visit every fold twice, with another log,
    and are five units.  Anywhere else a seed is a unit of its own, labelled by itself: a population (generated), a
    random split (digits, a single file), or another log of the one split that a collection was published with.
    Random splits of the same data overlap and are not quite independent; on a published split an interval over
    seeds speaks of other logs, not of other queries.

    :func:`cfltr_core.claims.mean_interval` and the statistical claims take these labels.

    Raises
    ------
    ValueError
        As :func:`load_corpus` does, for a corpus or a seed that it does not take.
    """
    check_corpus(corpus)
    asked = [checks.positive_int(seed, f"seeds[{i}]", least=0) for i, seed in enumerate(seeds)]
    if not corpus.startswith("letor:"):
        return np.array(asked, dtype=np.int64)
    from cfltr_letor.reader import fold_of

    folder = letor_folder(corpus)
    folds = [fold_of(folder, seed) for seed in asked]
    return np.array([seed if fold is None else fold for seed, fold in zip(asked, folds, strict=True)], dtype=np.int64)


# --- generated ----------------------------------------------------------------------------------------


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


def _conflict(aligned: Knobs) -> Knobs:
    """The profile *conflict*: one query in three wants something else, labels are noisier, lists twice as long."""
    return replace(
        aligned,
        name=f"{aligned.name}:conflict",
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
    {knobs.name: knobs for base in (YAHOO_LIKE, ISTELLA_LIKE) for knobs in (base, _conflict(base))}
)


@dataclass(frozen=True)
class _Population:
    utility: FloatArray
    pairs: IntArray
    loadings: FloatArray
    noise: FloatArray
    warp: IntArray
    query_level: np.ndarray
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


def _generate(knobs: Knobs, sizes: tuple[int, int, int], n_features: int, seed: int) -> Corpus:
    # One child stream per part: the training queries do not change when the test set grows.
    streams = [np.random.default_rng([seed, part]) for part in range(4)]
    population = _population(knobs, n_features, streams[0])
    parts = [_draw(knobs, population, n, rng) for n, rng in zip(sizes, streams[1:], strict=True)]
    cuts = np.quantile(parts[0][1], np.cumsum(knobs.shares)[:-1])
    train, validation, test = (
        RankingData(x, np.searchsorted(cuts, u).astype(np.int8), offsets, knobs.threshold, knobs.name)
        for x, u, offsets in parts
    )
    return Corpus(knobs.name, train, validation, test)


def _draw(
    knobs: Knobs, population: _Population, n_queries: int, rng: np.random.Generator
) -> tuple[np.ndarray, FloatArray, IntArray]:
    """Features, utilities and offsets of ``n_queries`` queries."""
    sizes = _lengths(knobs, n_queries, rng)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query = np.repeat(np.arange(n_queries), sizes)
    n_docs, total = len(query), knobs.factors + knobs.nuisance
    topic = 0.5 * rng.normal(size=(n_queries, total))
    factors = topic[query] + np.sqrt(0.75) * rng.normal(size=(n_docs, total))
    z = factors[:, : knobs.factors]
    left, right = population.pairs.T
    utility = (
        z @ population.utility
        + knobs.interaction * (z[:, left] * z[:, right]).sum(axis=1) / np.sqrt(len(left))
        + knobs.saturation * np.tanh(2.0 * z[:, left[0]])
        + knobs.noise * rng.standard_t(3, size=n_docs)
        + knobs.query_shift * rng.normal(size=n_queries)[query]
    )
    signal = factors @ population.loadings.T + population.noise * rng.normal(size=(n_docs, len(population.noise)))
    shared = topic @ population.loadings.T + rng.normal(size=(n_queries, len(population.noise)))
    signal[:, population.query_level] = shared[query][:, population.query_level]
    if knobs.minority:  # drawn last, so that the aligned profile does not depend on it
        turned = (rng.random(n_queries) < knobs.minority)[query]
        utility[turned] += z[turned] @ (population.other - population.utility)
    return _warp(signal, population.warp), utility, offsets


def _lengths(knobs: Knobs, n_queries: int, rng: np.random.Generator) -> IntArray:
    """Documents of each query, 1 … ``longest``, ``mean_length`` on average; the floor takes half a document."""
    mean = knobs.mean_length - 0.5
    if knobs.lengths == "beta":
        share = rng.beta(knobs.shape, knobs.shape * (knobs.longest / mean - 1.0), size=n_queries)
        return 1 + np.minimum(share * knobs.longest, knobs.longest - 1).astype(np.int64)
    return 1 + np.minimum(rng.gamma(knobs.shape, mean / knobs.shape, size=n_queries), knobs.longest - 1).astype(
        np.int64
    )


def _warp(signal: FloatArray, warp: IntArray) -> np.ndarray:
    """Map signals into [0, 1] as real features look: 0 smooth, 1 heavy-tailed, 2 counts, 3 binary."""
    grown = np.exp(np.minimum(signal, 5.0))
    shapes = (
        1.0 / (1.0 + np.exp(-1.5 * signal)),
        np.minimum(grown**1.2 / 20.0, 1.0),
        np.minimum(np.floor(grown), 10.0) / 10.0,
        (signal > 0.5).astype(np.float64),
    )
    return np.asarray(np.choose(warp, shapes), dtype=np.float32)


# --- digits -------------------------------------------------------------------------------------------


def _digits(scale: Scale, seed: int, candidates: int = 30) -> Corpus:
    """Retrieval of handwritten digits: the query is an image, relevant candidates show the same digit.

    Features are the absolute pixel differences of the pair (64, in [0, 1]).  Images are disjoint between
    train (half), validation (a sixth) and test (a third); all seeds split the same 1,797 images.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.data / 16.0, bunch.target
    rng = np.random.default_rng([seed, 10])
    order = rng.permutation(len(images))
    parts = np.split(order, [len(order) // 2, 2 * len(order) // 3])
    data = []
    for pool, n_queries in zip(parts, scale.digits, strict=True):
        queries = rng.choice(len(pool), size=n_queries, replace=False)
        # Any image of the pool but the query itself: draw among the others, then step over it.
        chosen = np.stack([rng.choice(len(pool) - 1, size=candidates, replace=False) for _ in queries])
        chosen += chosen >= queries[:, None]
        features = np.abs(images[pool[queries]][:, None, :] - images[pool[chosen]])
        same = labels[pool[queries]][:, None] == labels[pool[chosen]]
        data.append(
            RankingData(
                features.reshape(-1, images.shape[1]).astype(np.float32),
                same.ravel().astype(np.int8),
                np.arange(n_queries + 1) * candidates,
                threshold=1,
                name="digits",
            )
        )
    return Corpus("digits", *data)
