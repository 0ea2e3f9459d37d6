"""What the head of a page says to those who search for it or pass it on; beside the pages a map, and a page 404.

Addresses are written only where the address of the site is known.
"""

from __future__ import annotations

import re
import shutil
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

from bs4 import BeautifulSoup

from book_tools.book import Book
from book_tools.colab.copies import figures_of
from book_tools.colab.repository import Origin
from book_tools.execution.artefacts import figures_in
from book_tools.execution.execute import NOTEBOOK
from book_tools.messages import PARSER
from book_tools.notebooks import read_notebook
from book_tools.rendering import render
from book_tools.site.citations import BOOK
from book_tools.site.html import rewrite_pages
from cfltr_core.files import write_whole

# Of a description that is longer, search engines show no more.
LONGEST = 160
NOT_FOUND = "404.html"
CARDS = "cards"
# Pages that say nothing of their own.
UNLISTED = {NOT_FOUND, "genindex.html", "search.html", "prf-prf.html"}


def write_heads(book: Book, site: Path, origin: Origin) -> None:
    """Describe every page below ``site`` in its head, in place, and add the map of the site and the page 404."""
    address = origin.site
    cards = write_cards(book, site) if address else {}
    places: list[str] = []

    def described(page: str, path: Path) -> str:
        name = path.as_posix()
        place = f"{address}{quote(name)}" if address and name not in UNLISTED else None
        places.extend([place] if place else [])
        card = f"{address}{cards[name]}" if name in cards else None
        return page.replace("</head>", f"{head_of(page, place, card)}</head>", 1)

    rewrite_pages(site, described)
    # Whatever the wrong address is, the page itself is shown at it: its links are whole ones where they can be.
    write_whole(site / NOT_FOUND, render("404.html.jinja", book=BOOK, start=address or ""))
    if address:
        write_whole(site / "sitemap.xml", render("sitemap.xml.jinja", places=places))


def write_cards(book: Book, site: Path) -> dict[str, str]:
    """Copy below ``site`` the first figure of each chapter as a PNG for those who pass it on; return it by page."""
    cards = {}
    for chapter in book.chapters():
        folder = book.folder_of(chapter)
        pictures = {figure.id: figure.card for figure in figures_in(folder) if figure.card.is_file()}
        shown = (name for cell in read_notebook(folder / NOTEBOOK).cells for name in figures_of(cell))
        first = next((pictures[name] for name in shown if name in pictures), None)
        if first:
            (site / CARDS).mkdir(exist_ok=True)
            shutil.copy2(first, site / CARDS)
            cards[f"{book.page_of(chapter)}.html"] = f"{CARDS}/{first.name}"
    return cards


def head_of(page: str, address: str | None, card: str | None) -> str:
    """Return what the head of a page lacks: its description, its picture for those who pass it on, its address."""
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    text = description(page)
    meta = {
        "og:title": " ".join(unescape(title[1]).split()) if title else BOOK,
        "og:type": "article",
        "og:site_name": BOOK,
        "twitter:card": "summary_large_image" if card else "summary",
        "og:image": card,
        "description": text,
        "og:description": text,
        "og:url": address,
    }
    tags = [
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{escape(value)}" />'
        for name, value in meta.items()
        if value
    ]
    if address:
        tags.append(f'<link rel="canonical" href="{escape(address)}" />')
    return "".join(f"  {tag}\n" for tag in tags)


def description(page: str) -> str:
    """Return the first paragraph of a page without formulas as plain text, cut after a word."""
    begin = page.find("<h1")
    for paragraph in re.findall(r"<p>(.*?)</p>", page[begin:] if begin >= 0 else "", re.DOTALL):
        text = " ".join(BeautifulSoup(paragraph, PARSER).get_text().split()).removeprefix("In one sentence: ")
        if len(text) > 30 and "\\(" not in text[:LONGEST]:
            text = text[0].upper() + text[1:]
            return text if len(text) <= LONGEST else text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return ""
