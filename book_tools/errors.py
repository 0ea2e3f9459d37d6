"""Problems that a person can put right, as opposed to defects of the pipeline.

The command line prints the problems, one a line, without a traceback and exits with ``exit_code``.
"""

from __future__ import annotations


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
