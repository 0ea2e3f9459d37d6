"""How the book and its chapters are cited, and where an error in them is reported.

Addresses are written only where the address of the site is known.
"""

from __future__ import annotations

import html as html_text
import re
from urllib.parse import quote, urlencode

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from book_tools.book import Chapter
from book_tools.colab.repository import Origin
from book_tools.notebooks import title_of

BOOK = "Counterfactual Learning to Rank, a book you can run"
AUTHOR = f"{{The authors of {BOOK}}}"
YEAR = 2026


def bibtex(key: str, origin: Origin, place: str = "index.html", title: str = "", number: str = "") -> str:
    """Return how the book, or with a ``title`` one of its chapters, is cited."""
    note = [f"Chapter {number}"] if number else []
    note += [f"revision {origin.revision[:12]}"] if origin.revision else []
    fields = {
        "author": AUTHOR,
        "title": f"{{{title or BOOK}}}",
        **({"booktitle": f"{{{BOOK}}}"} if title else {}),
        "year": f"{{{YEAR}}}",
        **({"note": f"{{{', '.join(note)}}}"} if note else {}),
        **({"url": f"{{{origin.site}{place}}}"} if origin.site else {}),
    }
    lines = "".join(f"  {name:<9} = {value},\n" for name, value in fields.items())
    return f"@{'incollection' if title else 'misc'}{{{key},\n{lines}}}\n"


def report_address(page: str, title: str, origin: Origin) -> str | None:
    """Return the address at which an error on ``page`` is reported, filled in, or None where that is not known."""
    if origin.github is None:
        return None
    body = f"Page: {page}\nRevision: {origin.revision or 'not known'}\n\nWhat it says, and what it should say:\n"
    query = urlencode({"title": f"Error in {title}", "body": body}, quote_via=quote)
    return f"https://github.com/{origin.github}/issues/new?{query}"


def closing(page: str, title: str, entry: str, origin: Origin) -> str:
    """Return the fold at the end of a page that says how it is cited, and where an error is reported."""
    what = "this chapter" if "incollection" in entry else "this book"
    report = report_address(page, title, origin)
    label = f"Cite {what}, or report an error" if report else f"Cite {what}"
    link = f'\n<a href="{html_text.escape(report)}">Report an error on this page</a>\n' if report else ""
    return f":::{{dropdown}} {label}\n\n```bibtex\n{entry}```\n{link}\n:::\n"


def add_closing(notebook: NotebookNode, chapter: Chapter, page: str, origin: Origin) -> None:
    """Put the fold that closes a chapter after its last cell, in place."""
    title = re.sub(r"^\d+\.\s+", "", title_of(notebook))
    number = str(int(chapter.number)) if chapter.number.isdigit() else ""
    entry = bibtex(f"cfltr-{chapter.number}", origin, f"{page}.html", title, number)
    text = closing(page, title, entry, origin)
    notebook.cells.append(new_markdown_cell(text, id="closing"))  # type: ignore[no-untyped-call]
