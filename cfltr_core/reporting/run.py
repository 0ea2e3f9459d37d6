"""A chapter's run: one object that knows scale, corpus and seed, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.simulation import draw_sessions, sessions_for_clicks, simulate_clicks
from cfltr_core.clicks.users import User
from cfltr_core.data.corpora import check_corpus, units_of
from cfltr_core.data.memory import remembered_corpus
from cfltr_core.data.scales import Corpus, Scale, check_scale
from cfltr_core.reporting import figures, sweeps
from cfltr_core.reporting import kept as tables
from cfltr_core.reporting.claims import ClaimResult, claim
from cfltr_core.reporting.digests import NotWritten, describe, digest
from cfltr_core.reporting.evidence import Evidence
from cfltr_core.reporting.kept import Kept
from cfltr_core.reporting.kept_questions import Stream, question_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run:
    """Where a chapter stands: its scale, its corpus and the first of its seeds.

    Every number of a chapter follows from these three.  A seed is a population of queries with logs of its own;
    what is drawn for it comes from ``run.rng(seed, stream)``, where the *stream* is a number of the chapter's own
    for each experiment.

    Parameters
    ----------
    scale : "smoke", "ci" or "paper"
    corpus : str
        As :func:`cfltr_core.data.corpora.load_corpus` takes it.
    seed : int >= 0

    Raises
    ------
    ValueError
        For a scale or a corpus that does not exist, or a negative seed.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> run = cf.Run("smoke", "yahoo-like", 3)
    >>> run.seeds, run.learning_seeds, run.size.clicks
    (range(3, 5), range(3, 5), (500, 5000))
    >>> run.each_seed(lambda seed, rng: round(rng.random(), 3), stream=7)
    [0.682, 0.972]
    >>> run.setting
    'Corpus yahoo-like (relevant from grade 3), scale smoke, 2 seeds'
    >>> run.setting_of([3])
    'Corpus yahoo-like (relevant from grade 3), scale smoke, seed 3'

    A log of one seed, and what it says of the ranker that filled it:

    >>> train, rng = run.load(3).train, run.rng(3, 1)
    >>> ranker = cf.fit_linear_ranker(train, 0.1, rng=rng)
    >>> scores = ranker.decision_function(train.features)
    >>> policy = cf.DeterministicPolicy.rank_by(scores, train.offsets, rng=rng)
    >>> user = cf.PositionBasedUser(cf.power_examination(1.0))
    >>> log = run.simulate(policy, user, relevance=train.binary, rng=rng, n_sessions=500)
    >>> log.n_sessions
    500

    Claims, numbers and figures go to the page, and are kept when the book is being run:

    >>> same = run.claim("N-naive-expectation", left=[1 / 3], right=[2 / 6])
    >>> run.evidence(same).summary
    'Evidence: 1 claim, 1 supported'
    >>> run.record("sessions-of-the-example", log.n_sessions, form="{:d}")
    >>> ax = cf.curves([1, 2], {"ips": [0.5, 0.6]}, xlabel="clicks")
    >>> run.figure(
    ...     ax.figure, "fig-example", caption="Estimates of an example.", seeds=[3],
    ...     alt="Line chart of an estimate against clicks: it rises from 0.5 to 0.6.", data={"ips": [0.5, 0.6]},
    ... )
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
        """The sizes of this scale: numbers of clicks, seeds and repetitions, the grid of C."""
        return check_scale(self.scale)

    @property
    def seeds(self) -> range:
        """Seeds of what is only evaluated: ``size.light_seeds`` of them, from ``seed`` on."""
        return range(self.seed, self.seed + self.size.light_seeds)

    @property
    def learning_seeds(self) -> range:
        """Seeds of what is learnt, which takes longer: the first ``size.seeds`` of them."""
        return range(self.seed, self.seed + self.size.seeds)

    @property
    def setting(self) -> str:
        """For captions: corpus, lowest relevant grade, scale and number of :attr:`seeds`."""
        return self.setting_of(self.seeds)

    def setting_of(self, seeds: Iterable[int]) -> str:
        """As :attr:`setting`, for other ``seeds``; of a single one the seed itself is named.

        Where seeds share the folds of a collection the folds are counted, too (:func:`units_of`).
        """
        some = [checks.positive_int(s, f"seeds[{i}]", least=0) for i, s in enumerate(seeds)]
        if not some:
            raise ValueError("seeds: there is none; pass run.seeds, run.learning_seeds or [run.seed]")
        grade = self.load(some[0]).train.threshold
        number = f"seed {some[0]}" if len(some) == 1 else f"{len(some)} seeds"
        folds = len(np.unique(units_of(self.corpus, some)))
        if folds < len(some):
            number += f" on {folds} folds (claims count folds; bands, and intervals in the text, count seeds)"
        return f"Corpus {self.corpus} (relevant from grade {grade}), scale {self.scale}, {number}"

    def load(self, seed: int) -> Corpus:
        """Train, validation and test queries of one seed (:func:`cfltr_core.data.corpora.load_corpus`).

        The corpora loaded last are kept in memory, all together up to 1 GiB, so that asking again costs nothing.
        They are shared: never write into them.
        """
        return remembered_corpus(self.corpus, self.scale, seed=seed)

    def rng(self, seed: int, stream: Stream) -> np.random.Generator:
        """The generator of one seed and stream: ``numpy.random.default_rng([seed, stream])``.

        Other streams of a seed are independent draws; a stream may also be several numbers.
        """
        return np.random.default_rng(list(_entropy(seed, stream)))

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

    def each_seed(
        self,
        function: Callable[..., Any],
        settings: Iterable[Any] | None = None,
        *,
        stream: Stream,
        seeds: Iterable[int] | None = None,
        store: str | Path | None = None,
        by_seed: bool = False,
    ) -> list[Any]:
        """``function(seed, setting, rng)`` for every seed and setting; ``function(seed, rng)`` without settings.

        Each call has the generator ``run.rng(seed, stream)`` from its start: all settings of a seed see the same
        draws, so that differences between settings are paired.  The numbers do not depend on the number of workers,
        nor on whether a cell was computed now or found in ``store``.

        Parameters
        ----------
        function : callable
            Returns numbers, strings, lists, arrays, or dictionaries of these.  Tuples come back as lists, NumPy's
            scalars as Python's.
        settings : list, optional
            Any values; with a ``store`` those that can be written into a key: numbers, strings, arrays, lists,
            dictionaries, functions, and objects made of these.
        stream : int or sequence of int
            The number of this experiment in the chapter.
        seeds : optional
            :attr:`seeds` unless given.
        store : folder, optional
            Keeps every finished cell in a file of its own, whole or absent, so that an interrupted run resumes.  A
            cell is found again under the same corpus, scale, seed, setting and stream, while this package, the
            function with all that it calls and reads and, in a notebook, the cells executed so far are the same up to
            comments and docstrings.  A damaged file is computed again.
        by_seed : bool
            Whether one worker handles all settings of a seed, one after the other: a corpus that takes long to make
            is then made once for each seed and not by every worker.

        Returns
        -------
        list
            One result per seed, or one list per seed with a result per setting.

        Notes
        -----
        The calls run through joblib, which is not told how many workers to use: alone they run one after the
        other; inside ``joblib.parallel_config(backend="loky", n_jobs=8)``, or on a cluster with
        ``joblib.parallel_config(backend="dask")``, they run there.  The function travels with all that it
        reads, which must be picklable; a function under ``functools.cache`` that is defined in a notebook is not.

        Raises
        ------
        ValueError
            Before any call: without a seed or a setting, for one that stands twice, or when ``function`` reads a
            generator of random numbers that its calls would share.  After a call: when its result is none of the
            above.
        """
        chosen = list(self.seeds if seeds is None else seeds)
        variants = [None] if settings is None else list(settings)
        if not chosen or not variants:
            raise ValueError("seeds, settings: there is nothing to run; give at least one of each, or leave them out")
        keys = [_key(setting, f"settings[{i}]", kept=store is not None) for i, setting in enumerate(variants)]
        cells = []
        for seed in chosen:
            entropy = _entropy(seed, stream)
            for setting, key in zip(variants, keys, strict=True):
                about = {"corpus": self.corpus, "scale": self.scale, "seed": entropy[0], "stream": entropy[1:]}
                arguments = (entropy[0],) if settings is None else (entropy[0], setting)
                name = f"{self.corpus}, {self.scale}, seed {seed}" + ("" if settings is None else f", {setting!r:.60}")
                cells.append(sweeps.Cell(name, about | {"setting": key}, arguments=arguments, stream=entropy))
        results = sweeps.run_cells(function, cells, store=store, together=len(variants) if by_seed else None)
        if settings is None:
            return results
        return [results[i : i + len(variants)] for i in range(0, len(results), len(variants))]

    def kept(
        self,
        name: str,
        function: Callable[..., Mapping[str, Any]],
        *,
        settings: Iterable[Mapping[str, Any]],
        stream: Stream,
        seeds: Iterable[int] | None = None,
        live: int = 1,
        again: Iterable[tuple[int, int]] = ((0, 0),),
        rtol: float = tables.RTOL,
        atol: float = tables.ATOL,
    ) -> Kept:
        """``function(seed, setting, rng)`` for every seed and setting, of an experiment too long for each build.

        The results lie in the repository as a *kept table*, which ``make paper`` computes.  Where there is one for
        this scale, corpus and seed it is read, and the cells ``again`` are computed and compared with it; elsewhere,
        also in Colab, the first ``live`` seeds are computed here and now.  Each call has the generator
        ``run.rng(seed, stream)`` from its start, as in :meth:`each_seed`.

        Parameters
        ----------
        name : str
            Of the table, unique in the chapter: lower case, with hyphens.
        function : callable
            Returns a dictionary of numbers and words with the same keys for all settings, none of them a setting's.
        settings : list of dict
            Numbers, words, True, False or None, with the same keys in all.
        stream : int or sequence of int
            The number of this experiment in the chapter.
        seeds : optional
            Those of the kept table, :attr:`learning_seeds` unless given.
        live : int >= 1
            How many of the seeds are computed where no table is kept.
        again : list of (int, int)
            Cells of a kept table that are computed in each run: positions in ``seeds`` and in ``settings``.
        rtol, atol : float >= 0
            Numbers agree when |new - kept| <= atol + rtol |kept|; words and truth values are equal.

        Returns
        -------
        Kept
            Its ``frame`` has one row for each seed and setting, in this order.

        Raises
        ------
        ValueError
            For arguments that are none of the above.  With a kept table: when it is about other settings, seeds or
            another stream (a table whose seeds were cut holds the first of them, and says so), when a cell that is
            computed again differs, or when the table and the JSON beside it do not belong together.  Each names the
            table and how to compute it anew.

        Examples
        --------
        >>> import cfltr_core as cf
        >>> run = cf.Run("smoke", "digits")
        >>> def learn(seed, setting, rng):
        ...     return {"drawn": rng.integers(100), "sum": setting["n"] + seed}
        >>> table = run.kept("example", learn, settings=[{"n": 10}, {"n": 20}], stream=7)
        >>> table.frame
           seed   n  drawn  sum
        0     0  10     79   10
        1     0  20     79   20
        >>> table.words, table.kept
        ('computed in this run: 1 seed', False)
        """
        question = question_of(self, name, function, settings=settings, stream=stream, seeds=seeds)
        return tables.kept_table(question, live=live, again=again, rtol=rtol, atol=atol)

    def kept_elsewhere(self, name: str, *, scale: str | None = None, corpus: str | None = None) -> Kept | None:
        """The kept table of that name at another scale or on another corpus, to be shown beside; None without one.

        Only where a chapter of the repository is executed are there kept tables at all: elsewhere, as in Colab, and
        for what nobody has computed, there is None.

        Parameters
        ----------
        name : str
            Of the table, as in :meth:`kept`.
        scale, corpus : str, optional
            Those of this run unless given; the first seed is 0.

        Raises
        ------
        ValueError
            For a name, a scale or a corpus that cannot be, or when the table and its JSON do not belong together.

        Examples
        --------
        >>> import cfltr_core as cf
        >>> cf.Run("smoke", "digits").kept_elsewhere("example", scale="paper") is None
        True
        """
        return tables.kept_elsewhere(self, name, scale=scale, corpus=corpus)

    def claim(self, id: str, **arrays: ArrayLike) -> ClaimResult:
        """Judge a claim of ``claims.yml`` on this corpus and scale (:func:`cfltr_core.reporting.claims.claim`).

        Arrays with as many values as there are :attr:`seeds`, or :attr:`learning_seeds`, belong to these: on a
        collection where seeds share a fold, the values of a fold are averaged and count once.
        """
        return claim(id, scale=self.scale, corpus=self.corpus, units=self._units(arrays), **arrays)

    def _units(self, arrays: Mapping[str, ArrayLike]) -> IntArray | None:
        """The unit of each seed if the arrays hold a value, or a row, for each."""
        lengths = {len(np.atleast_1d(np.asarray(values))) for name, values in arrays.items() if name != "x"}
        for seeds in (self.seeds, self.learning_seeds):
            if lengths == {len(seeds)}:
                return units_of(self.corpus, seeds)
        return None

    def evidence(self, *results: ClaimResult) -> Evidence:
        """The ``results`` of claims as one small table under one line of summary.

        See :class:`cfltr_core.reporting.evidence.Evidence`.
        """
        return Evidence(results, corpus=self.corpus, scale=self.scale)

    def record(self, name: str, value: float | str, *, form: str = "{:.3g}") -> None:
        """Let prose quote a number or a phrase (:func:`cfltr_core.reporting.figures.record`)."""
        figures.record(name, value, form=form)

    def figure(
        self,
        fig: Figure,
        id: str,
        *,
        caption: str,
        alt: str,
        data: Any,
        dense: bool = False,
        seeds: Iterable[int] | None = None,
    ) -> None:
        """Show and keep a figure (:func:`cfltr_core.reporting.figures.figure`).

        With ``seeds``, those that the figure shows, the caption ends with corpus, scale and seeds
        (:meth:`setting_of`).
        """
        if seeds is not None:
            caption = f"{caption.rstrip()} {self.setting_of(seeds)}."
        figures.figure(fig, id, caption=caption, alt=alt, data=data, dense=dense)


def _key(setting: Any, name: str, *, kept: bool) -> str:
    try:
        return digest(describe(setting, name))
    except NotWritten:
        if kept:
            raise
        return name


def _entropy(seed: int, stream: Stream) -> tuple[int, ...]:
    parts = list(stream) if isinstance(stream, Sequence) else [stream]
    if not parts:
        raise ValueError("stream is empty: give the experiment a number")
    return tuple(checks.positive_int(v, n, least=0) for v, n in [(seed, "seed"), *((p, "stream") for p in parts)])
