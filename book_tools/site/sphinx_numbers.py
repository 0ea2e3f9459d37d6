"""A Sphinx extension: theorems, figures, equations and exercises are numbered by chapter (Theorem 11.2, Fig. 11.4).

The number of a chapter is that of its file, ``NN_name``, so that a new chapter shifts no other's numbers, and gaps
are fine.  Pages without such a name are numbered as before, through the book.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector

CHAPTER = re.compile(r"(?:.*/)?(\d+)_[^/]*")

_assign_figure_numbers = TocTreeCollector.assign_figure_numbers


def chapter_of(page: str) -> int | None:
    """Return the number of the chapter on ``page``, or None for any other page."""
    match = CHAPTER.fullmatch(page)
    return int(match[1]) if match else None


def assign_figure_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number everything as Sphinx does where each chapter is a numbered section of its own.

    Only while they are assigned: afterwards a section number would be put in front of every heading, where the
    titles have theirs already.
    """
    kept = env.toc_secnumbers
    chapters = {page: chapter_of(page) for page in env.found_docs}
    env.toc_secnumbers = {page: {"": (number,)} for page, number in chapters.items() if number is not None}
    try:
        return _assign_figure_numbers(self, env)
    finally:
        env.toc_secnumbers = kept


def setup(app: Sphinx) -> dict[str, Any]:
    """Put this numbering in the place of Sphinx's, which has no setting for it."""
    TocTreeCollector.assign_figure_numbers = assign_figure_numbers  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
