"""Where a chapter stands: scale, corpus and seed, and what is loaded and drawn there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_book.data.corpora import check_corpus, units_of
from cfltr_book.data.memory import remembered_corpus
from cfltr_book.data.scales import Corpus, Scale, check_scale
from cfltr_core import checks
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.simulation import draw_sessions, sessions_for_clicks, simulate_clicks
from cfltr_core.clicks.users import User

Stream = int | Sequence[int]


@dataclass(frozen=True)
class Standing:
    """Where a chapter stands: ``scale``, ``corpus`` and ``seed``, as :class:`cfltr_book.reporting.run.Run` takes them.

    Examples
    --------
    >>> from cfltr_book.reporting.standing import Standing
    >>> here = Standing("smoke", "yahoo-like", 3)
    >>> here.seeds, here.learning_seeds, here.size.clicks
    (range(3, 5), range(3, 5), (500, 5000))
    >>> here.setting_of(here.seeds)
    'Corpus yahoo-like (relevant from grade 3), scale smoke, 2 seeds'
    >>> here.setting_of([3])
    'Corpus yahoo-like (relevant from grade 3), scale smoke, seed 3'
    >>> round(here.rng(3, 7).random(), 3), here.load(3).train.n_queries
    (0.682, 200)
    """

    scale: str
    corpus: str
    seed: int = 0

    def __post_init__(self) -> None:
        check_scale(self.scale)
        check_corpus(self.corpus)
        object.__setattr__(self, "seed", checks.positive_int(self.seed, "seed", least=0))

    @property
    def size(self) -> Scale:
        """The sizes of this scale: numbers of clicks, seeds and repetitions, the grid of C.

        A collection from disk has sizes of its own (:meth:`cfltr_book.data.scales.Scale.for_collection`).
        """
        size = check_scale(self.scale)
        return size.for_collection(self.load(self.seed).train) if self.corpus.startswith("letor:") else size

    @property
    def seeds(self) -> range:
        """Seeds of what is only evaluated: ``size.light_seeds`` of them, from ``seed`` on."""
        return range(self.seed, self.seed + self.size.light_seeds)

    @property
    def learning_seeds(self) -> range:
        """Seeds of what is learnt, which takes longer: the first ``size.seeds`` of them."""
        return range(self.seed, self.seed + self.size.seeds)

    def setting_of(self, seeds: Iterable[int]) -> str:
        """For captions: corpus, lowest relevant grade, scale and number of ``seeds``; of a single one the seed itself.

        Where seeds share the folds of a collection the folds are counted, too (:func:`units_of`), and where not all
        queries of a collection are run it says how many.
        """
        some = [checks.positive_int(s, f"seeds[{i}]", least=0) for i, s in enumerate(seeds)]
        if not some:
            raise ValueError("seeds: there is none; pass run.seeds, run.learning_seeds or [run.seed]")
        first = self.load(some[0])
        of_all = "" if first.share == 1 else f", {first.share:.0%} of the queries"
        number = f"seed {some[0]}" if len(some) == 1 else f"{len(some)} seeds"
        folds = len(np.unique(units_of(self.corpus, some)))
        if folds < len(some):
            number += f" on {folds} folds (claims count folds, bands count seeds)"
        corpus = f"Corpus {self.corpus} (relevant from grade {first.train.threshold}{of_all})"
        return f"{corpus}, scale {self.scale}, {number}"

    def load(self, seed: int) -> Corpus:
        """Train, validation and test queries of one seed (:func:`cfltr_book.data.corpora.load_corpus`).

        The corpora loaded last are kept in memory, all together up to 1 GiB, so that asking again costs nothing.
        They are shared: never write into them.
        """
        return remembered_corpus(self.corpus, self.scale, seed=seed)

    def rng(self, seed: int, stream: Stream) -> np.random.Generator:
        """The generator of one seed and stream: ``numpy.random.default_rng([seed, stream])``.

        Other streams of a seed are independent draws; a stream may also be several numbers.
        """
        return np.random.default_rng(list(entropy(seed, stream)))

    @staticmethod
    def simulate(
        policy: LoggingPolicy,
        user: User,
        *,
        relevance: ArrayLike,
        rng: np.random.Generator,
        n_clicks: float | None = None,
        n_sessions: int | None = None,
    ) -> ClickLog:
        """A log of about ``n_clicks`` clicks, or of exactly ``n_sessions`` sessions.

        S = n_sessions, or round(n_clicks / E[clicks per session]); each session draws its query uniformly, then
        what is shown and what is clicked (:func:`sessions_for_clicks`, :func:`draw_sessions`,
        :func:`simulate_clicks`).

        Parameters
        ----------
        relevance : (n_docs,) binary
        n_clicks, n_sessions
            One of the two.

        Raises
        ------
        ValueError
            For both or neither of the two, and as the three functions do.
        """
        if (n_clicks is None) == (n_sessions is None):
            raise ValueError("n_clicks, n_sessions: say how large the log is by one of the two")
        total = n_sessions
        if total is None:
            total = sessions_for_clicks(policy, user, relevance=relevance, n_clicks=float(n_clicks or 0))
        sessions = draw_sessions(total, len(policy.offsets) - 1, rng=rng)
        return simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=rng)


def entropy(seed: int, stream: Stream) -> tuple[int, ...]:
    """What a generator is made from: the seed, and the number or the numbers of its stream.

    ValueError for a seed or a stream that is no whole number >= 0, or for a stream without a number.

    Examples
    --------
    >>> from cfltr_book.reporting.standing import entropy
    >>> entropy(3, 7), entropy(3, [7, 100])
    ((3, 7), (3, 7, 100))
    """
    parts = list(stream) if isinstance(stream, Sequence) else [stream]
    if not parts:
        raise ValueError("stream is empty: give the experiment a number")
    return tuple(checks.positive_int(v, n, least=0) for v, n in [(seed, "seed"), *((p, "stream") for p in parts)])
