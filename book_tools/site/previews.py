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

from bs4 import BeautifulSoup

from book_tools.messages import PARSER
from book_tools.site.html import built_pages
from cfltr_core.files import write_whole

FOLDER = "previews"
LINK = re.compile(r'<a class="(?:reference internal|api-name)" href="([^"#]*)#([^"]+)"')
# What begins with such a tag is shown; of a term and of a name in the package also what follows.
SHOWN = re.compile(
    r'<div class="(?:proof|exercise|citation)\b|<div class="math\b|<figure\b|<dt class="sig\b|<dt id="term-', re.ASCII
)
# What is of no use there: links to the place itself, to data, and what holds a long proof.
LEFT_OUT = ".headerlink, .download, .viewcode-link, .fn-backref, script, style, button, details, .backrefs"


def write_previews(html: Path) -> None:
    """Mark every link that has a preview, and write the scripts that hold them, below ``html``."""

    @cache
    def text_of(path: Path) -> str:
        return path.read_text(encoding="utf-8")

    @cache
    def preview(path: Path, anchor: str) -> str | None:
        return preview_of(text_of(path), anchor, path.parent.relative_to(html).as_posix()) if path.is_file() else None

    for path in built_pages(html):
        found: dict[str, str] = {}

        def mark(match: re.Match[str], path: Path = path, found: dict[str, str] = found) -> str:
            target = (path.parent / unquote(match[1])).resolve() if match[1] else path.resolve()
            text = preview(target, unescape(unquote(match[2])))
            if text is None:
                return match[0]
            found[unescape(f"{match[1]}#{match[2]}")] = text
            return f"{match[0]} data-preview"

        marked = LINK.sub(mark, text_of(path))
        if found:
            place = html / FOLDER / path.relative_to(html).with_suffix(".js")
            place.parent.mkdir(parents=True, exist_ok=True)
            # Inside a script a "</" might end it, were it ever put into a page.
            content = json.dumps(found, sort_keys=True, ensure_ascii=False, indent=0).replace("</", "<\\/")
            write_whole(place, f"bookPreviews.take({content});\n")
            write_whole(path, marked)


def preview_of(page: str, anchor: str, folder: str) -> str | None:
    """Return what is shown of the place ``anchor`` of a page that lies in ``folder``, or None for any other place."""
    start = re.search(rf'<[a-z]+\b[^>]*\bid="{re.escape(anchor)}"[^>]*>', page)
    if start is None or not SHOWN.match(start[0]):
        return None
    text = element_at(page, start.start())
    if start[0].startswith("<dt"):
        described = page.find("<dd>", start.end())
        if described >= 0 and not page[start.start() + len(text) : described].strip():
            text += element_at(page, described)
        text = f"<dl>{text}</dl>"
    soup = BeautifulSoup(text, PARSER)
    for part in soup.select(LEFT_OUT):
        part.decompose()
    if start[0].startswith('<dt class="sig'):
        # Of a name in the package its signature, and what it is in a sentence.
        for part in soup.select("dl > dd > *")[1:]:
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


def element_at(page: str, start: int) -> str:
    """Return the element whose first tag begins at ``start``."""
    name = re.match(r"<([a-z]+)", page[start:])
    if name is None:
        raise ValueError(f"no tag begins at {start}")
    depth = 0
    for tag in re.compile(rf"<(/?){name[1]}\b[^>]*>").finditer(page, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return page[start : tag.end()]
    raise ValueError(f"<{name[1]}> at {start} has no end")
