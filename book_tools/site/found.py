"""What lets the book be found, cited and corrected: descriptions and addresses in pages, a map, a page for wrong links.

Addresses are written only where the address of the site is known.
"""

from __future__ import annotations

import html as html_text
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, urlencode

from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from book_tools.book import Chapter
from book_tools.colab.repository import Origin
from book_tools.messages import PARSER
from book_tools.notebooks import title_of
from book_tools.site.cards import HEIGHT, WIDTH, Card
from cfltr_core.files import write_whole

BOOK = "Counterfactual Learning to Rank, a book you can run"
AUTHOR = f"{{The authors of {BOOK}}}"
YEAR = 2026
# As much of a page as those who search are shown of it.
LONGEST = 160
NOT_FOUND = "404.html"
# Pages that say nothing of their own.
UNLISTED = {NOT_FOUND, "genindex.html", "search.html", "prf-prf.html"}
MISSING = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Page not found: {book}</title>
<style>
body {{font-family: system-ui, sans-serif; line-height: 1.5; margin: 3rem auto; max-width: 36rem; padding: 0 1rem;}}
body {{background: #ffffff; color: #222832;}}
a {{color: #0b5ac2;}}
@media (prefers-color-scheme: dark) {{
  body {{background: #121212; color: #ced6dd;}}
  a {{color: #79b8ff;}}
}}
</style>
</head>
<body>
<main>
<h1>There is no such page</h1>
<p>The book <em>{book}</em> is there, but not this page of it. It may have been renamed.</p>
<p><a href="{start}index.html">The first page</a> lists all chapters, and
<a href="{start}search.html">the search</a> looks through them.</p>
</main>
</body>
</html>
"""


def make_findable(site: Path, origin: Origin, cards: Mapping[str, Card] = MappingProxyType({})) -> None:
    """Describe every page below ``site`` in its head, in place, and add the map of the site and the page 404.

    ``cards`` are the pictures of pages, by page; the one without a name is that of all others.
    """
    address = origin.repository.site if origin.repository else None
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(site).as_posix()
        card = cards.get(name, cards.get("")) if name not in UNLISTED else None
        head = _head(text, address if name not in UNLISTED else None, name, card)
        write_whole(path, text.replace("</head>", f"{head}</head>", 1))
    # Whatever the wrong address is, the page itself is shown at it: its links are whole ones where they can be.
    write_whole(site / NOT_FOUND, MISSING.format(book=BOOK, start=address or ""))
    if address:
        listed = [path.relative_to(site).as_posix() for path in pages]
        places = "".join(
            f"<url><loc>{html_text.escape(address + quote(name))}</loc></url>\n"
            for name in listed
            if name not in UNLISTED
        )
        write_whole(
            site / "sitemap.xml",
            '<?xml version="1.0" encoding="utf-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n',
        )


def _head(page: str, site: str | None, place: str, card: Card | None) -> str:
    """Return what the head of a page lacks: its description, a card for those who pass it on, its address."""
    address = f"{site}{quote(place)}" if site else None
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    name = " ".join(html_text.unescape(title[1]).split()) if title else BOOK
    said = description(page)
    meta = [("property", "og:title", name), ("property", "og:type", "article"), ("property", "og:site_name", BOOK)]
    shown = card if site else None
    meta += [("name", "twitter:card", "summary_large_image" if shown else "summary")]
    if shown:
        meta += [("property", "og:image", f"{site}{quote(shown.place)}"), ("property", "og:image:alt", shown.alt)]
        meta += [("property", "og:image:width", str(WIDTH)), ("property", "og:image:height", str(HEIGHT))]
    if said:
        meta += [("name", "description", said), ("property", "og:description", said)]
    if address:
        meta += [("property", "og:url", address)]
    tags = [f'<meta {key}="{value}" content="{html_text.escape(text)}" />' for key, value, text in meta]
    if address:
        tags.append(f'<link rel="canonical" href="{html_text.escape(address)}" />')
    return "".join(f"  {tag}\n" for tag in tags)


def description(page: str) -> str:
    """Return the first paragraph of a page without formulas as plain text, cut after a word."""
    begin = page.find("<h1")
    for found in re.finditer(r"<p>(.*?)</p>", page[begin:] if begin >= 0 else "", re.DOTALL):
        text = " ".join(BeautifulSoup(found[1], PARSER).get_text().split()).removeprefix("In one sentence: ")
        if len(text) > 30 and "\\(" not in text[:LONGEST]:
            text = text[0].upper() + text[1:]
            return text if len(text) <= LONGEST else text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return ""


def bibtex(key: str, origin: Origin, place: str = "index.html", title: str = "", number: str = "") -> str:
    """Return how the book, or with a ``title`` one of its chapters, is cited."""
    address = origin.repository.site if origin.repository else None
    note = [f"Chapter {number}"] if number else []
    note += [f"revision {origin.revision[:12]}"] if origin.revision else []
    fields = {
        "author": AUTHOR,
        "title": f"{{{title or BOOK}}}",
        **({"booktitle": f"{{{BOOK}}}"} if title else {}),
        "year": f"{{{YEAR}}}",
        **({"note": f"{{{', '.join(note)}}}"} if note else {}),
        **({"url": f"{{{address}{place}}}"} if address else {}),
    }
    lines = "".join(f"  {name:<9} = {value},\n" for name, value in fields.items())
    return f"@{'incollection' if title else 'misc'}{{{key},\n{lines}}}\n"


def report_address(page: str, title: str, origin: Origin) -> str | None:
    """Return the address at which an error on ``page`` is reported, filled in, or None where that is not known."""
    if origin.repository is None or origin.repository.github is None:
        return None
    body = f"Page: {page}\nRevision: {origin.revision or 'not known'}\n\nWhat it says, and what it should say:\n"
    query = urlencode({"title": f"Error in {title}", "body": body}, quote_via=quote)
    return f"https://github.com/{'/'.join(origin.repository.github)}/issues/new?{query}"


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
    cell = new_markdown_cell(text)  # type: ignore[no-untyped-call]
    cell.pop("id", None)
    if notebook.get("nbformat_minor", 4) >= 5:
        cell["id"] = "closing"
    notebook.cells.append(cell)
