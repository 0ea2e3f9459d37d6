"""What a reader must know of earlier chapters, folded below the title of a chapter that builds on them."""

from __future__ import annotations

import re

from nbformat import NotebookNode

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.execute import NOTEBOOK
from book_tools.notebooks import read_notebook

# The page that has half a page of each chapter: said there once, and folded into those that need it.
HALF_PAGES = "half_pages.md"
# The line of a chapter that says so, and the links in it to those that it builds on.
BELOW_TITLE = re.compile(r"^\*(Reading .*?Builds on .+\.)\*$", re.MULTILINE)
LINK = re.compile(r"\]\((\w+)\.ipynb\)")
SECTION = re.compile(r"^## \[(?P<title>[^\]]+)\]\((?P<chapter>\w+)\.ipynb\)\n+(?P<text>.*?)\s*(?=^## |\Z)", re.M | re.S)


def half_pages(book: Book) -> dict[str, str]:
    """Return the half page of each chapter by its name, headed by a link to it; none in a book without that page."""
    page = next((book.root / f"{name}.md" for name in book.pages() if f"{name}.md".endswith(HALF_PAGES)), None)
    text = page.read_text(encoding="utf-8") if page else ""
    return {
        each["chapter"]: f"**[{each['title']}]({each['chapter']}.ipynb).** {each['text']}"
        for each in SECTION.finditer(text)
    }


def executed_chapter(book: Book, chapter: Chapter) -> NotebookNode:
    """Return an executed chapter with the half pages of those it builds on, as the page and the copies show it.

    They stand folded in its first cell, behind what the reader will be able to do and before the first section.

    Raises
    ------
    BookError
        If the chapter builds on one that has no half page.
    """
    notebook, halves = read_notebook(book.folder_of(chapter) / NOTEBOOK), half_pages(book)
    first = notebook.cells[0]
    stated = BELOW_TITLE.search(first.source)
    needed = LINK.findall(stated[1]) if stated and halves else []
    if missing := [name for name in needed if name not in halves]:
        raise BookError(f"{HALF_PAGES} has no section for {', '.join(missing)}, on which {chapter.name} builds")
    if needed:
        before, heading, after = first.source.partition("\n## ")
        texts = "\n\n".join(halves[name] for name in needed)
        fold = f":::{{dropdown}} What you need to know\n{texts}\n\n:::\n"
        first["source"] = f"{before.rstrip()}\n\n{fold}{heading}{after}"
    return notebook
