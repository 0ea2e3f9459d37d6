"""Ranking corpora: generated, bundled (digits), or read from a LETOR folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from cfltr_core import checks
from cfltr_core.data.generated import GENERATED, generate
from cfltr_core.data.letor import ReaderOptions, read_collection
from cfltr_core.data.scales import Corpus, Scale, check_scale
from cfltr_core.ranking.ragged import RankingData


def check_corpus(corpus: str) -> str:
    """Return ``corpus`` if it can be loaded here; a ValueError that says what to do if not."""
    if corpus in GENERATED or corpus == "digits":
        return corpus
    if corpus.startswith("letor:") and len(corpus) > len("letor:"):
        letor_folder(corpus)
        _letor_threshold(corpus)
        return corpus
    raise ValueError(
        f"corpus is {corpus!r}: choose yahoo-like, digits or letor:<folder>, "
        "a folder below the one that CFLTR_DATA names; "
        "or istella-like, yahoo-like:conflict, istella-like:conflict"
    )


def letor_folder(corpus: str) -> Path:
    """The folder behind ``letor:<folder>``; ValueError when CFLTR_DATA is unset or the folder is missing."""
    root = os.environ.get("CFLTR_DATA")
    if not root:
        raise ValueError(
            f"corpus is {corpus!r}, but the environment variable CFLTR_DATA is not set: "
            "set it to the folder that holds your collections"
        )
    folder = Path(root).expanduser().resolve() / corpus.removeprefix("letor:").partition("@")[0]
    if not folder.is_dir():
        raise ValueError(f"corpus is {corpus!r}, but there is no folder {folder.name!r} in CFLTR_DATA")
    return folder


def _letor_threshold(corpus: str) -> int | None:
    """The grade after the @ in ``letor:<folder>@<grade>``, from which on a document counts as relevant."""
    text = corpus.partition("@")[2]
    if "@" in corpus and not (text.isdecimal() and int(text) >= 1):
        raise ValueError(f"corpus is {corpus!r}: after the @ stands the lowest relevant grade, a whole number from 1")
    return int(text) if text else None


def load_corpus(corpus: str, scale: str, *, seed: int, options: ReaderOptions | None = None) -> Corpus:
    """Load or generate a corpus.  Same arguments, same numbers; nothing is downloaded or written.

    Parameters
    ----------
    corpus : "yahoo-like", "istella-like", "digits" or "letor:<folder>"
        A generated name may carry the profile, as in "yahoo-like:conflict"; the plain name is the aligned profile.
        ``letor:`` ignores ``scale``; its ``seed`` chooses the fold or the random split.  ``letor:<folder>@<grade>``
        names the lowest relevant grade; without it that is 3 when grades go beyond 2, else 1.
    scale : "smoke", "ci" or "paper"
    seed : int >= 0
        Another seed is another population (generated) or another split of the same data (digits, letor).
    options : cfltr_core.data.letor.ReaderOptions, optional
        For ``letor:`` alone: how values are read.  Without it they are taken as they are, which suits collections
        that are scaled already; raw ones such as MSLR want ``normalise`` and ``drop=MSLR_LEAKS`` of
        ``cfltr_core.data.letor.archives``.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> corpus = cf.load_corpus("yahoo-like", "smoke", seed=0)
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
    threshold = _letor_threshold(corpus)
    if threshold is not None:
        options = replace(options or ReaderOptions(), threshold=threshold)
    train, validation, test = read_collection(letor_folder(corpus), seed, options=options)
    return Corpus(corpus, train, validation, test)


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
    return Corpus("digits", *data)
