"""Problems that a person can put right, as opposed to defects of the pipeline.

The command line prints the problems, one a line, without a traceback and exits with ``exit_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


class BookError(Exception):
    """One or more problems of the book itself: a chapter that raises, a build or a check that fails."""

    exit_code = 1

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UsageError(BookError):
    """The request cannot be carried out as it stands; nothing was started and nothing was changed."""

    exit_code = 2


class Interrupted(BookError):
    """The run was stopped from outside (Ctrl-C or a termination signal)."""

    exit_code = 130


class Problems(list[str]):
    """Problems that are found one after the other, so that one error lists them all."""

    @contextmanager
    def collected(self, place: str = "", kind: type[Exception] = BookError) -> Iterator[None]:
        """Keep the problems of an error of this ``kind`` that is raised within, each behind its ``place``."""
        try:
            yield
        except kind as error:
            problems = error.problems if isinstance(error, BookError) else [str(error)]
            self.extend(f"{place}{problem}" for problem in problems)

    def raise_any(self, error: type[BookError] = BookError, *summary: str) -> None:
        """Raise one error with all problems and the ``summary`` behind them, if there are any."""
        if self:
            raise error(*self, *summary)


def for_each(items: Iterable[T], do: Callable[[T], U], error: type[BookError] = BookError, *summary: str) -> list[U]:
    """Return what ``do`` returns for each of ``items``; one error, with the ``summary``, lists the problems of all."""
    problems, results = Problems(), list[U]()
    for item in items:
        with problems.collected():
            results.append(do(item))
    problems.raise_any(error, *summary)
    return results
