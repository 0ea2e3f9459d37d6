"""The map on the front page: which chapter answers which question, how long it takes, and what it builds on.

Every chapter says the last two itself, in the line below its title; ``chapters/questions.yml`` has its question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from book_tools.book import Book
from book_tools.colab.half_pages import BELOW_TITLE, LINK
from book_tools.errors import BookError
from book_tools.notebooks import read_notebook, title_of
from book_tools.rendering import included, render

# The front page includes this file.
INCLUDED = "map.md"
QUESTIONS = "questions.yml"
MINUTES = re.compile(r"Reading (\d+) minutes")


@dataclass(frozen=True)
class Entry:
    """A chapter on the map; ``about`` is the line below its title, with the chapters that it builds on as links."""

    name: str
    title: str
    question: str
    about: str

    @property
    def builds_on(self) -> list[str]:
        """The names of the chapters that the line links to."""
        return LINK.findall(self.about)

    @property
    def minutes(self) -> int:
        """How many minutes reading takes, as the line says; 0 where it says none."""
        found = MINUTES.match(self.about)
        return int(found[1]) if found else 0


def check_map(book: Book) -> None:
    """Raise before the chapters run where the front page wants a map that cannot be written."""
    if INCLUDED in included(book.root / f"{book.pages()[0]}.md"):
        map_entries(book)


def map_entries(book: Book) -> list[Entry]:
    """Return the chapters in the order of the contents.

    Raises
    ------
    BookError
        Where a chapter lacks its question or the line below its title, or builds on one that does not come before it;
        where there is a question without a chapter.
    """
    path = book.root / "chapters" / QUESTIONS
    questions: Mapping[str, str] = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None) or {}
    chapters = book.chapters()
    unknown = [name for name in questions if name not in {chapter.name for chapter in chapters}]
    problems = [f"{QUESTIONS}: {name}: there is no such chapter" for name in unknown]
    entries: list[Entry] = []
    for chapter in chapters:
        place, earlier = chapter.source.name, {entry.name for entry in entries}
        notebook = read_notebook(chapter.source)
        about = BELOW_TITLE.search("\n".join(cell.source for cell in notebook.cells[:1]))
        if about is None:
            problems.append(f"{place}: its first cell does not say '*Reading … Builds on ….*', which the map shows")
        if chapter.name not in questions:
            problems.append(f"{place}: has no question; write the one that it answers into chapters/{QUESTIONS}")
        entry = Entry(chapter.name, title_of(notebook), questions.get(chapter.name, ""), about[1] if about else "")
        later = [name for name in entry.builds_on if name not in earlier]
        problems += [f"{place}: builds on {name}, which does not come before it" for name in later]
        entries.append(entry)
    if problems:
        raise BookError(*problems)
    return entries


def map_of(book: Book) -> str:
    """Return the map: the parts of the contents, and a list of the chapters of each."""
    entries = {f"chapters/{entry.name}": entry for entry in map_entries(book)}
    contents = yaml.safe_load(book.toc.read_text(encoding="utf-8"))
    parts = [
        (
            group.get("caption"),
            [
                (entry, LINK.sub(r"](chapters/\1.ipynb)", entry.about))
                for page in group.get("chapters", [])
                if (entry := entries.get(page["file"]))
            ],
        )
        for group in [contents, *contents.get("parts", [])]
    ]
    hours = sum(entry.minutes for entry in entries.values()) / 60
    return render("map.md.jinja", entries=entries, hours=hours, parts=[part for part in parts if part[1]])
