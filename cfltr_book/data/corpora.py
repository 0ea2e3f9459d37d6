"""Ranking corpora: generated, bundled (digits), or read from a LETOR folder."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cfltr_book.data.generated import GENERATED, generate
from cfltr_book.data.letor import ReaderOptions, read_collection
from cfltr_book.data.letor.folders import fold_of, layout_of
from cfltr_book.data.scales import Corpus, Scale, check_scale
from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.ranking.ragged import RankingData

_CHOICES = (
    "choose yahoo-like, digits or letor:<folder>, a folder below the one that CFLTR_DATA names; "
    "or istella-like, yahoo-like:mixed, istella-like:mixed"
)
_OPTIONS = (
    "after the @ stand, with commas between them, the lowest relevant grade (a whole number from 1), normalise, log1p, "
    "drop=ID[+ID…] (features to leave out)"
)
_WHOLE = re.compile("0*[1-9][0-9]{0,5}")
Parts = tuple[RankingData, RankingData, RankingData]


def check_corpus(corpus: str) -> str:
    """Return ``corpus`` if it can be loaded here; a ValueError that says what to do if not."""
    if corpus in GENERATED or corpus == "digits":
        return corpus
    if corpus.startswith("letor:"):
        letor_folder(corpus)
        return corpus
    raise ValueError(f"corpus is {corpus!r}: {_CHOICES}")


def _parse_letor(corpus: str) -> tuple[str, dict[str, Any]]:
    """Folder and reader options that ``letor:<folder>[@<option>[,<option>…]]`` names.

    An option is a whole number (``threshold``, the lowest relevant grade), ``normalise``, ``log1p`` or
    ``drop=ID[+ID…]``, each at most once, in any order.

    Returns
    -------
    folder, fields
        ``fields`` are arguments of :class:`cfltr_book.data.letor.ReaderOptions`; what is not named is not among them.

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
        there = (
            ", ".join(sorted(path.name for path in root.iterdir() if path.is_dir() and path.name[0] != "."))
            or "no folder"
        )
        raise ValueError(
            f"corpus is {corpus!r}, but there is no folder {folder}: CFLTR_DATA is {setting}, which holds {there}; "
            "name one of these, or set CFLTR_DATA to the folder that holds your collection"
        )
    return folder


def _check_relevant(corpus: str, seed: int, parts: Parts, *, named: bool) -> None:
    """Raise a ValueError for a split in which too little is relevant: no click, no choice, no metric comes of it.

    A split needs a relevant document; and where the threshold was not ``named``, half of its queries need one, if half
    of them have any document of a grade above 0.
    """
    best = {
        split: np.maximum.reduceat(part.relevance, part.offsets[:-1])  # the highest grade of each query
        for split, part in zip(("train", "validation", "test"), parts, strict=True)
    }
    half = {split: int(np.quantile(grades, 0.5, method="higher")) for split, grades in best.items()}
    reached = {split: int(best[split].max()) if named or not grade else grade for split, grade in half.items()}
    threshold = parts[0].threshold  # the reader gives all parts the same
    for split, found in reached.items():
        if found >= threshold:
            continue
        lowest, highest = min(reached.values()), int(best[split].max())
        if lowest:
            name, _, text = corpus.partition("@")
            kept = [option for option in text.split(",") if option and not _WHOLE.fullmatch(option)]
            remedy = f"lower the threshold, as in {name}@{','.join([str(lowest), *kept])}"
        else:
            empty = next(other for other, grade in reached.items() if grade == 0)
            remedy = f"no threshold helps, since the {empty} split has grades of 0 only: it needs judged documents"
        lacks = (
            f"the {split} split has no relevant document; its largest grade is {highest}"
            if highest < threshold
            else f"more than half of the queries of the {split} split have no relevant document"
        )
        raise ValueError(
            f"corpus is {corpus!r}, seed {seed}: {lacks}, and a document is relevant from grade {threshold} on: "
            f"{remedy}"
        )


def load_corpus(corpus: str, scale: str, *, seed: int, options: ReaderOptions | None = None) -> Corpus:
    """Load or generate a corpus.  Same arguments, same numbers; nothing is downloaded or written.

    Parameters
    ----------
    corpus : "yahoo-like", "istella-like", "digits" or "letor:<folder>"
        A generated name may carry the profile, as in "yahoo-like:mixed"; the plain name is the aligned profile.
        Of ``letor:`` the ``seed`` chooses the fold or the random split; of a collection that is too large for the
        ``scale`` it also draws whole queries, the same share of each part (:class:`cfltr_book.data.scales.Scale`).
        After an @ stand options of the reader, as in "letor:mslr@2,normalise,drop=134+135+136": the lowest relevant
        grade, without which it is 3 when grades go beyond 2, else 1; and what is done to raw values.
    scale : "smoke", "ci" or "paper"
    seed : int >= 0
        Another seed is another population (generated) or another split of the same data (digits, letor).
    options : cfltr_book.data.letor.ReaderOptions, optional
        For ``letor:`` alone: how values are read, where the name of the corpus does not say otherwise.  Without
        either they are taken as they are, which suits collections that are scaled already; raw ones such as MSLR
        want ``normalise`` and ``drop=MSLR_LEAKS`` of ``cfltr_book.data.letor.archives``.

    Raises
    ------
    ValueError
        For an unknown corpus, option or scale, a folder that is missing or no collection, and a train, validation
        or test split of a collection that has no relevant document, or has some for fewer than half of its queries
        where a lower grade, which the message names, would give half of them one.

    Examples
    --------
    >>> import cfltr_book as book
    >>> corpus = book.load_corpus("yahoo-like", "smoke", seed=0)
    >>> corpus.train.n_queries, corpus.validation.n_queries, corpus.test.n_queries
    (200, 80, 120)
    >>> corpus.train.features.shape[1], corpus.train.threshold
    (20, 3)
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
            return generate(GENERATED[corpus], size.istella, n_features=size.istella_features, seed=seed)
        return generate(GENERATED[corpus], size.generated, n_features=size.features, seed=seed)
    _, fields = _parse_letor(corpus)
    chosen = replace(options or ReaderOptions(), **fields)
    share, parts = _kept_collection(letor_folder(corpus), seed, chosen, size)
    _check_relevant(corpus, seed, parts, named=chosen.threshold is not None)
    return Corpus(corpus, *parts, share=share)


def _kept_collection(folder: Path, seed: int, options: ReaderOptions, size: Scale) -> tuple[float, Parts]:
    """:func:`_drawn_collection`, from the folder that CFLTR_CACHE names where it is there and the files are as then."""
    place = os.environ.get("CFLTR_CACHE")
    files = [file for group in layout_of(folder, seed).groups for file in group]
    state = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    if not place:
        return _drawn_collection(folder, seed, options, size, state)
    from joblib import Memory

    kept = Memory(Path(place).expanduser(), verbose=0).cache(_drawn_collection)
    found: tuple[float, Parts] = kept(folder, seed, options, size, state)
    return found


def _drawn_collection(
    folder: Path, seed: int, options: ReaderOptions, size: Scale, state: list[tuple[str, int, int]]
) -> tuple[float, Parts]:
    """The share of queries that is run, and the parts, of which training at most fills the ``size``.

    ``state``, of the files, is what it is kept under.
    """
    parts = read_collection(folder, seed, options=options)
    share = 1 / max(1.0, size.fill(parts[0]))
    if share == 1.0:
        return share, parts
    rng = np.random.default_rng([seed, 30])
    train, validation, test = (
        part.subset(np.sort(rng.choice(part.n_queries, math.ceil(share * part.n_queries), replace=False)))
        for part in parts
    )
    return share, (train, validation, test)


def units_of(corpus: str, seeds: Iterable[int]) -> IntArray:
    """For each seed the label of the unit that it belongs to, shape (n_seeds,): equal labels, the same data.

    A collection in five folds gives the fold, seed modulo 5: ten seeds visit every fold twice, with another log,
    and are five units.  Anywhere else a seed is a unit of its own, labelled by itself: a population (generated), a
    random split (digits, a single file), or another log of the one split that a collection was published with.
    Random splits of the same data overlap and are not quite independent; on a published split an interval over
    seeds speaks of other logs, not of other queries.

    :func:`cfltr_book.reporting.intervals.mean_interval` and the statistical claims take these labels.

    Raises
    ------
    ValueError
        As :func:`load_corpus` does, for a corpus or a seed that it does not take.
    """
    check_corpus(corpus)
    asked = [checks.positive_int(seed, f"seeds[{i}]", least=0) for i, seed in enumerate(seeds)]
    if not corpus.startswith("letor:"):
        return np.array(asked, dtype=np.int64)
    folder = letor_folder(corpus)
    folds = [fold_of(folder, seed) for seed in asked]
    return np.array([seed if fold is None else fold for seed, fold in zip(asked, folds, strict=True)], dtype=np.int64)


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
                offsets=np.arange(n_queries + 1) * candidates,
                threshold=1,
                name="digits",
            )
        )
    return Corpus("digits", data[0], data[1], data[2])
