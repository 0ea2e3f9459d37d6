"""The texts that have no source: pages, and what pages include, made from a run or from the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from book_tools.book import Book
from book_tools.parameters import Parameters
from book_tools.rendering import included
from book_tools.site.api import INDEX, api_pages
from book_tools.site.architecture import NAME, architecture
from book_tools.site.edition_links import INCLUDED as EDITIONS
from book_tools.site.edition_links import words
from book_tools.site.front import INCLUDED as FRONT
from book_tools.site.front import front, source_counts
from book_tools.site.map import INCLUDED as MAP
from book_tools.site.map import map_of
from book_tools.site.papers_size import papers_size
from book_tools.site.scoreboard import SOURCES_PAGE, numbers_files, scoreboard
from book_tools.site.status import status
from cfltr_book.reporting.wording import SOURCES
from cfltr_core.files import write_whole


def generated_pages(book: Book, parameters: Parameters) -> dict[str, str]:
    """Return the text of every generated page, by the name it has in the table of contents."""
    return {
        "chapters/papers_size": papers_size(book),
        "chapters/scoreboard": scoreboard(book, parameters),
        "chapters/status": status(book, parameters),
        **({NAME: architecture()} if NAME in book.pages() else {}),
        **(api_pages() if INDEX in book.pages() else {}),
    }


def write_accompanying(book: Book, parameters: Parameters, editions: Sequence[Path] = ()) -> None:
    """Lay the numbers of the scoreboard, and what pages include, beside them into the staged source.

    ``editions`` are those that the front page leads to.
    """
    for name, text in numbers_files(book, parameters).items():
        write_whole(book.stage / name, text)
    texts: dict[str, Callable[[], str]] = {
        FRONT: lambda: front(book, parameters),
        MAP: lambda: map_of(book),
        EDITIONS: lambda: words(editions),
        **{f"counts_{code.lower()}.md": partial(source_counts, book, parameters, code) for code in SOURCES},
    }
    for path in (book.stage / f"{page}.md" for page in (book.pages()[0], SOURCES_PAGE)):
        for name in texts.keys() & included(path):
            write_whole(path.parent / name, texts[name]())
