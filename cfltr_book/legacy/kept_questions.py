"""What a call of ``run.kept`` asks for: checked before any work, and in words for messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cfltr_book.legacy.kept_tables import NAME, Row, flat, kinds_of, place_of
from cfltr_core import checks

Stream = int | Sequence[int]

# The folder of the chapter's kept tables; without this variable there are none.
FOLDER = "CFLTR_KEPT"


class Host(Protocol):
    """What a question needs of a run (:class:`cfltr_book.reporting.run.Run`)."""

    @property
    def scale(self) -> str:
        """Its scale."""

    @property
    def corpus(self) -> str:
        """Its corpus."""

    @property
    def seed(self) -> int:
        """The first of its seeds."""

    @property
    def learning_seeds(self) -> Iterable[int]:
        """The seeds of a table unless others are given."""

    @property
    def each_seed(self) -> Callable[..., list[Any]]:
        """Calls a function for every seed and setting, as :meth:`cfltr_book.reporting.run.Run.each_seed` does."""


@dataclass(frozen=True)
class Question:
    """A call of ``run.kept``: table, function, and the cells it is about."""

    run: Host
    name: str
    function: Callable[..., Mapping[str, Any]]
    settings: list[Row]
    stream: Stream
    seeds: list[int]

    @property
    def columns(self) -> list[str]:
        """The columns that the seed and the settings take."""
        return ["seed", *self.settings[0]]

    def compute(self, function: Callable[..., Any], seeds: Sequence[int], **options: Any) -> list[list[Any]]:
        """``function`` for some seeds and all settings; ``options`` as :meth:`Run.each_seed` takes them."""
        return self.run.each_seed(function, self.settings, stream=self.stream, seeds=seeds, **options)

    def rows(self, seeds: Sequence[int], results: Sequence[Sequence[Any]]) -> list[Row]:
        """Seed, setting and result side by side; ValueError for a result that is no part of a table."""
        return [
            {"seed": seed, **setting, **flat_result(result, self.columns, cell_name(self.name, seed, setting))}
            for seed, some in zip(seeds, results, strict=True)
            for setting, result in zip(self.settings, some, strict=True)
        ]

    @property
    def remedy(self) -> str:
        """The command that computes the table anew."""
        return remedy(self.run.scale, self.run.corpus, self.run.seed, self.name)


def remedy(scale: str, corpus: str, seed: int, name: str) -> str:
    """The command that computes a table anew."""
    chapter = Path(os.environ.get(FOLDER, "NN")).name
    of_seed = f" SEED={seed}" if seed else ""
    return f"make paper CHAPTER={chapter} SCALE={scale} CORPUS={corpus}{of_seed} TABLES={name}"


def cell_name(name: str, seed: int, setting: Mapping[str, Any]) -> str:
    """A cell as messages call it: table, seed and setting."""
    return ", ".join([name, f"seed {seed}", *(f"{key}={value}" for key, value in setting.items())])


def flat_result(result: Any, taken: Sequence[str], name: str) -> Row:
    """The ``result`` of one cell (:func:`flat`); its keys are columns, of which some are ``taken``.

    Raises
    ------
    ValueError
        Naming the entry that cannot be part of a table.
    """
    row = flat(result, f"the result of {name}")
    for key in row:
        if key in taken:
            raise ValueError(f"the result of {name} has the key {key!r}, which the seed or the setting has; rename it")
    if not row:
        raise ValueError(f"the result of {name} is empty: give at least one number")
    return row


def question_of(
    run: Host,
    name: str,
    function: Callable[..., Mapping[str, Any]],
    *,
    settings: Iterable[Mapping[str, Any]],
    stream: Stream,
    seeds: Iterable[int] | None,
) -> Question:
    """The question of a call of ``run.kept``; ValueError for one that no table can answer."""
    check_name(name)
    chosen = list(run.learning_seeds if seeds is None else seeds)
    chosen = [checks.positive_int(seed, f"seeds[{i}]", least=0) for i, seed in enumerate(chosen)]
    rows = [flat(setting, f"settings[{i}]") for i, setting in enumerate(settings)]
    if not chosen or not rows:
        raise ValueError(f"{name}: seeds or settings are empty; give at least one of each")
    kinds_of(rows, f"{name}, settings")
    if "seed" in rows[0]:
        raise ValueError(f"{name}: settings[0] has the key 'seed', which is a column of every table; rename it")
    for values, what in ((chosen, "seeds"), (rows, "settings")):
        for index, value in enumerate(values):
            if value in values[:index]:
                raise ValueError(f"{name}: {what}[{index}], {value}, stands twice; name each once")
    return Question(run, name, function, rows, stream, chosen)


def check_name(name: str) -> None:
    """Raise a ValueError for what cannot be the name of a table."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"name is {name!r}: a table's name has lower-case letters, digits and hyphens between them")


def cells_of(again: Iterable[tuple[int, int]], question: Question) -> list[tuple[int, int]]:
    """The positions in ``again``, checked; ValueError for one that the table cannot have."""
    found = []
    for index, pair in enumerate(again):
        try:
            seed, setting = pair
        except (TypeError, ValueError):
            raise ValueError(f"again[{index}] is {pair!r}: give two positions, of a seed and of a setting") from None
        i = checks.positive_int(seed, f"again[{index}][0]", least=0)
        j = checks.positive_int(setting, f"again[{index}][1]", least=0)
        if i >= len(question.seeds) or j >= len(question.settings):
            raise ValueError(
                f"again[{index}] is {(i, j)}: there are {len(question.seeds)} seeds and {len(question.settings)} "
                "settings, and positions start at 0"
            )
        found.append((i, j))
    return found


def path_of(name: str, scale: str, corpus: str, seed: int) -> Path | None:
    """Where the kept table lies, if there is one."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    path = place_of(Path(folder), scale, corpus, seed=seed) / f"{name}.csv"
    return path if path.is_file() else None


def parts_of(stream: Stream) -> list[int]:
    """A stream as the list of its numbers."""
    return [int(part) for part in stream] if isinstance(stream, Sequence) else [int(stream)]


def number_of(number: int, thing: str) -> str:
    """A number of things in words: "1 seed", "2 seeds"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
