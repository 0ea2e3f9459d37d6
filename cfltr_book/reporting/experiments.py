"""What a chapter computes for every seed and setting: at once, or kept in the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfltr_book.legacy import kept as tables
from cfltr_book.legacy import sweeps
from cfltr_book.legacy.digests import NotWritten, describe, digest
from cfltr_book.legacy.kept import Kept
from cfltr_book.legacy.kept_questions import question_of
from cfltr_book.reporting.standing import Standing, Stream, entropy


@dataclass(frozen=True)
class Experiments(Standing):
    """The experiments of a chapter, run where it stands.

    Examples
    --------
    >>> from cfltr_book.reporting.experiments import Experiments
    >>> Experiments("smoke", "digits", 3).each_seed(lambda seed, x, rng: seed + x, [10, 20], stream=7)
    [[13, 23], [14, 24]]
    """

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
            numbers = entropy(seed, stream)
            for setting, key in zip(variants, keys, strict=True):
                about = {"corpus": self.corpus, "scale": self.scale, "seed": numbers[0], "stream": numbers[1:]}
                arguments = (numbers[0],) if settings is None else (numbers[0], setting)
                name = f"{self.corpus}, {self.scale}, seed {seed}" + ("" if settings is None else f", {setting!r:.60}")
                cells.append(sweeps.Cell(name, about | {"setting": key}, arguments=arguments, stream=numbers))
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
        >>> import cfltr_book as book
        >>> run = book.Run("smoke", "digits")
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
        >>> import cfltr_book as book
        >>> book.Run("smoke", "digits").kept_elsewhere("example", scale="paper") is None
        True
        """
        return tables.kept_elsewhere(self, name, scale=scale, corpus=corpus)


def _key(setting: Any, name: str, *, kept: bool) -> str:
    try:
        return digest(describe(setting, name))
    except NotWritten:
        if kept:
            raise
        return name
