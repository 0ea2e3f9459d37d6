"""The sizes of each scale, and what a corpus is: train, validation and test queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cfltr_core.ranking.ragged import RankingData


@dataclass(frozen=True)
class Scale:
    """Sizes of one scale: one code path, three sizes.

    ``generated`` (of yahoo-like), ``istella`` (of istella-like) and ``digits`` hold queries for train / validation /
    test, ``features`` and ``istella_features`` the widths; a profile does not change them.  ``clicks`` holds the
    expected numbers of clicks on a learning curve, ``severity_clicks`` the two where position bias is made more
    severe, ``robust_clicks`` the one where noise and wrong propensities are; ``seeds`` the number of populations (each
    with its own log) where rankers are learnt, ``light_seeds`` where they are only evaluated, which costs a second
    each; ``repetitions`` how often a log is drawn again to measure a spread; ``C_grid`` the strengths of the data
    against the regulariser that SVM PropRank chooses from; of the values that a costly experiment varies it takes every
    ``stride``-th.  Where courses of SGD are compared, ``sgd_steps`` is the number of steps of one click, and of clicks
    in the log, ``sgd_severities`` the η, and ``sgd_seeds`` the number of populations: those on which every learning
    rate is tried, and further ones on which only those about the rate that the first one chose.
    A collection from disk is run within half an hour on two cores.  How far its training part *fills* the scale is
    documents × features / ``collection_values`` + Σ n² / ``collection_pairs``, with Σ n² over lists of n documents; of
    one that would more than fill it as many queries are drawn as fill it once.  A collection takes the sizes
    ``collection`` in place of those above, and one that fills more than a fifth, where a step of SGD or a comparison
    with all documents of a list costs more, takes ``large_collection``.  ``SCALES`` holds the scales by ``name``.

    Examples
    --------
    >>> import cfltr_book as book
    >>> list(book.SCALES)
    ['smoke', 'ci', 'paper']
    >>> book.SCALES["smoke"].clicks, book.SCALES["smoke"].seeds
    ((500, 5000), 2)
    >>> train = book.load_corpus("digits", "ci", seed=0).train
    >>> book.SCALES["ci"].fill(train), book.SCALES["ci"].for_collection(train).seeds
    (0.474, 3)
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
    severity_clicks: tuple[int, int]
    robust_clicks: int
    stride: int
    sgd_steps: int
    sgd_severities: tuple[float, ...]
    sgd_seeds: tuple[int, int]
    collection_values: float = math.inf
    collection_pairs: float = math.inf
    collection: Mapping[str, Any] = field(default_factory=dict)
    large_collection: Mapping[str, Any] = field(default_factory=dict)

    def fill(self, train: RankingData) -> float:
        """How far ``train``, the training part of a collection, fills this scale; above 1 it is drawn from."""
        pairs = float(np.sum(np.diff(train.offsets) ** 2))
        return train.features.size / self.collection_values + pairs / self.collection_pairs

    def for_collection(self, train: RankingData) -> Scale:
        """The sizes for a collection from disk with the training part ``train``."""
        return replace(self, **(self.large_collection if self.fill(train) > 0.2 else self.collection))


_CURVE = (1_700, 17_000, 170_000, 1_700_000)
# With the two at which Agarwal et al. (2018), Figure 4, vary η; the others are a decade apart.
_PAPER_CURVE = (1_700, 17_000, 45_000, 170_000, 225_000, 1_700_000)
_SMALL_LOGS: dict[str, Any] = {"clicks": (500, 5_000), "severity_clicks": (500, 2_500), "robust_clicks": 1_000}
_GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
# Those of Jagerman & de Rijke (2020), Table 5.
_SEVERITIES = (0.5, 0.75, 1.0, 1.25, 1.5)


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


#: The sizes at which the book runs, by name: smoke (everything runs), ci (as on the site), paper (as in the papers).
SCALES: Mapping[str, Scale] = _Scales(
    {
        "smoke": Scale(
            name="smoke",
            generated=(200, 80, 120),
            features=20,
            istella=(60, 30, 40),
            istella_features=20,
            digits=(100, 50, 100),
            seeds=2,
            light_seeds=2,
            repetitions=40,
            C_grid=(1e-1, 1.0, 1e1),
            stride=3,
            sgd_steps=1_000,
            sgd_severities=_SEVERITIES,
            sgd_seeds=(4, 0),
            collection_values=2e6,
            **_SMALL_LOGS,
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
            severity_clicks=(45_000, 225_000),
            robust_clicks=170_000,
            stride=1,
            sgd_steps=170_000,
            sgd_severities=_SEVERITIES,
            sgd_seeds=(20, 0),
            collection_values=4e6,
            collection_pairs=8e6,
            collection={"light_seeds": 5},
            large_collection={"seeds": 3, "light_seeds": 3, "sgd_steps": 34_000, **_SMALL_LOGS},
        ),
        "paper": Scale(
            name="paper",
            generated=(20_000, 3_000, 7_000),
            features=700,
            istella=(19_000, 7_000, 6_500),
            istella_features=220,
            digits=(890, 290, 590),
            clicks=_PAPER_CURVE,
            seeds=10,
            light_seeds=20,
            repetitions=1_000,
            C_grid=_GRID,
            severity_clicks=(45_000, 225_000),
            robust_clicks=170_000,
            stride=1,
            sgd_steps=1_000_000,
            sgd_severities=_SEVERITIES[::2],
            sgd_seeds=(1, 4),
        ),
    }
)


@dataclass(frozen=True)
class Corpus:
    """``train``, ``validation`` and ``test`` queries of one corpus, ``name``, and seed.

    ``share`` of the queries of a collection were drawn for them: 1 is all, as of everything that is no collection.
    :func:`cfltr_book.data.corpora.load_corpus` makes it.
    """

    name: str
    train: RankingData
    validation: RankingData
    test: RankingData
    share: float = 1.0


def check_scale(scale: str) -> Scale:
    """The :class:`Scale` of that name; ValueError for an unknown one."""
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}: choose one of {', '.join(SCALES)}")
    return SCALES[scale]
