"""What a link leads to, seen where the link stands: theorems, equations, figures, terms, sources, names in code.

For every page one script is written that holds what its links lead to.  It is loaded when one of them is first pointed
at or focused; a script, because a page that was opened from a folder may load no other file.
"""

from __future__ import annotations

import json
import posixpath
import re
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag

from book_tools.messages import PARSER
from book_tools.site.html import rewrite_pages
from cfltr_core.files import write_whole

FOLDER = "previews"
LINK = re.compile(r'<a class="(?:reference internal|api-name)" href="([^"#]*)#([^"]+)"')
# What is shown; of a term and of a name in the package also what follows.
SHOWN = "div.proof, div.exercise, div.citation, div.math, figure, dt.sig, dt[id^=term-]"
# What is of no use there: links to the place itself, to data, and what holds a long proof.
LEFT_OUT = ".headerlink, .download, .viewcode-link, .fn-backref, script, style, button, details, .backrefs"


def write_previews(html: Path) -> None:
    """Mark every link that has a preview, and write the scripts that hold them, below ``html``."""

    @cache
    def places_on(path: Path) -> dict[str, Tag]:
        page = BeautifulSoup(path.read_text(encoding="utf-8"), PARSER)
        return {str(tag["id"]): tag for tag in page.select(SHOWN) if "id" in tag.attrs}

    @cache
    def preview(path: Path, anchor: str) -> str | None:
        place = places_on(path).get(anchor) if path.is_file() else None
        return preview_of(place, path.parent.relative_to(html).as_posix()) if place else None

    def marked(page: str, name: Path) -> str:
        path, found = html / name, dict[str, str]()

        def mark(match: re.Match[str]) -> str:
            target = (path.parent / unquote(match[1])).resolve() if match[1] else path.resolve()
            text = preview(target, unescape(unquote(match[2])))
            if text is None:
                return match[0]
            found[unescape(f"{match[1]}#{match[2]}")] = text
            return f"{match[0]} data-preview"

        page = LINK.sub(mark, page)
        if found:
            place = html / FOLDER / name.with_suffix(".js")
            place.parent.mkdir(parents=True, exist_ok=True)
            # Inside a script a "</" might end it, were it ever put into a page.
            content = json.dumps(found, sort_keys=True, ensure_ascii=False, indent=0).replace("</", "<\\/")
            write_whole(place, f"bookPreviews.take({content});\n")
        return page

    rewrite_pages(html, marked)


def preview_of(place: Tag, folder: str) -> str:
    """Return what is shown of a ``place`` on a page that lies in ``folder``."""
    text = str(place)
    if place.name == "dt":
        described = place.find_next_sibling()
        is_there = isinstance(described, Tag) and described.name == "dd"
        text = f"<dl>{text}{described if is_there else ''}</dl>"
    soup = BeautifulSoup(text, PARSER)
    for part in soup.select(LEFT_OUT):
        part.decompose()
    # Of a name in the package its signature, and what it is in a sentence.
    for part in soup.select("dl > dt.sig + dd > *")[1:]:
        part.decompose()
    for part in soup.find_all(True):
        for key in ("id", "href", "title", "role", "data-preview"):
            del part[key]
        if part.get("src"):
            # The page that shows it knows where the site begins.
            part["data-src"] = posixpath.normpath(posixpath.join(folder, str(part["src"])))
            del part["src"]
    for part in soup.find_all("a"):
        part.unwrap()
    return re.sub(r"\s*\n\s*\n\s*", "\n", str(soup)).strip()
