"""Look at the built pages as a browser without a network would.

Every picture has a real description, every link inside the site leads somewhere, nothing is loaded from
another host, no piece of markup was left unresolved, and a reader has not too much to load.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from book_tools.messages import PARSER
from cfltr_core.files import write_whole

# Relations by which a link in the head of a page fetches something as soon as the page is opened.
LOADING_RELATIONS = {"stylesheet", "icon", "shortcut", "preload", "prefetch", "modulepreload", "manifest"}
STYLE_URL = re.compile(r"""(?:url\(|@import)\s*['"]?\s*((?:https?:)?//[^'")\s]+)""")
# An image is not described in fewer characters.
SHORTEST_ALT = 20
FILE_NAME = re.compile(r"\S+\.(svg|png|jpe?g|gif|webp)", re.IGNORECASE)
# Of a page with its pictures, as a server sends it; scripts and styles, which all pages share, are not counted.
HEAVIEST_PAGE = 400_000
HEAVIEST_SITE = 60_000_000
# What typesets formulas comes in several combinations, each whole in itself, of which a page loads one.
MATHJAX = Path("_static") / "mathjax"
COMBINED = re.compile(r"(?:tex|mml)-[\w-]+\.js")
# For those who debug a script of the theme.
MAPS = re.compile(rb"\n?(?:/\*|//)# sourceMappingURL=\S+\.map(?: \*/)?\s*\Z")
# What is compressed on its way; pictures of the other kinds are already.
TEXT = {".svg", ".html"}
IMAGE = re.compile(r'<img\b[^>]*?\ssrc="([^"]+)"')
# A role that no extension took: its name in braces before a back-quoted text.
UNRESOLVED = re.compile(r"\{[a-z][a-z0-9:_-]*\}\s?`")


def built_pages(site: Path) -> list[Path]:
    """Return the pages below ``site``, without those that packages bring along with their scripts."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def rewrite_pages(site: Path, change: Callable[[str, Path], str]) -> None:
    """Write every page below ``site`` as ``change`` returns it for the page and its path below ``site``."""
    for path in built_pages(site):
        before = path.read_text(encoding="utf-8")
        after = change(before, path.relative_to(site))
        if after != before:
            write_whole(path, after)


def html_problems(site: Path) -> list[str]:
    """Return everything wrong with the pages below ``site``, one line each, in the order of the files."""
    pages = {path: BeautifulSoup(path.read_text(encoding="utf-8"), PARSER) for path in built_pages(site)}
    anchors = {path: _anchors(page) for path, page in pages.items()}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found = (*_images(page), *_links(page, path, site, anchors), *_styles(page), *_leftovers(page))
        problems += [f"{name}: {problem}" for problem in found]
    for sheet in sorted(site.rglob("*.css")):
        for address in STYLE_URL.findall(sheet.read_text(encoding="utf-8", errors="replace")):
            problems.append(f"{sheet.relative_to(site).as_posix()}: loads {address} from another host")
    return list(dict.fromkeys(problems))


def _content(page: BeautifulSoup) -> Tag | BeautifulSoup:
    """Return the part of a page that the book wrote, without the theme's bars."""
    return page.select_one("article") or page.select_one("main") or page


def _anchors(page: BeautifulSoup) -> set[str]:
    return {str(tag[key]) for key in ("id", "name") for tag in page.select(f"[{key}]")}


def alternative_text_problem(alt: str) -> str | None:
    """Return what is wrong with an image's alternative text, or None when it says something."""
    alt = alt.strip()
    if not alt or FILE_NAME.fullmatch(alt):
        return "has no alternative text"
    if len(alt) < SHORTEST_ALT:
        return f"has an alternative text, {alt!r}, that is shorter than {SHORTEST_ALT} characters"
    return None


def _images(page: BeautifulSoup) -> Iterator[str]:
    for image in _content(page).find_all("img"):
        problem = alternative_text_problem(str(image.get("alt") or ""))
        if problem:
            yield f"image {image.get('src')} {problem}"


def _links(page: BeautifulSoup, path: Path, site: Path, anchors: dict[Path, set[str]]) -> Iterator[str]:
    for tag in page.find_all(True):
        for key in ("href", "src", "srcset"):
            address = tag.get(key)
            # A bare "#" is a button of the theme, not a link.
            if not isinstance(address, str) or address in ("", "#"):
                continue
            parts = urlsplit(address)
            relations = {str(relation).lower() for relation in tag.get("rel") or []}
            if parts.netloc and (key != "href" or (tag.name == "link" and relations & LOADING_RELATIONS)):
                yield f"<{tag.name}> loads {address} from another host"
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.is_relative_to(site.resolve()) or not target.is_file():
                yield f"link to {address}, which does not exist"
            elif parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]:
                yield f"link to {address}, but that page has no such anchor"


def _styles(page: BeautifulSoup) -> Iterator[str]:
    styles = [tag.get_text() for tag in page.find_all("style")]
    styles += [str(tag["style"]) for tag in page.select("[style]")]
    for style in styles:
        for address in STYLE_URL.findall(style):
            yield f"a style loads {address} from another host"


def _leftovers(page: BeautifulSoup) -> Iterator[str]:
    for tag in _content(page).select(".problematic, .system-message"):
        yield f"unresolved markup {tag.get_text().strip()[:80]!r}"
    for text in _content(page).find_all(string=UNRESOLVED):
        if not text.find_parent(["code", "pre", "script", "style"]):
            yield f"unresolved markup {str(text).strip()[:80]!r}"


def drop_unused(site: Path) -> None:
    """Remove from ``site`` the scripts for formulas that no page loads, and the maps of scripts and styles."""
    used = {name for page in built_pages(site) for name in COMBINED.findall(page.read_text(encoding="utf-8"))}
    for path in sorted((site / MATHJAX).glob("*.js")):
        if COMBINED.fullmatch(path.name) and path.name not in used:
            path.unlink()
    for path in sorted((site / "_static").rglob("*.map")):
        path.unlink()
        script = path.with_suffix("")
        if script.is_file():
            write_whole(script, MAPS.sub(b"\n", script.read_bytes()))


def weight_problems(site: Path) -> list[str]:
    """Return which pages, with their pictures, and whether the site are heavier than they may be."""
    problems = []
    for path in built_pages(site):
        weight = page_weight(path)
        if weight > HEAVIEST_PAGE:
            name = path.relative_to(site).as_posix()
            problems.append(
                f"{name}: {weight / 1e3:.0f} kB with its pictures, compressed; at most {HEAVIEST_PAGE / 1e3:.0f} "
                "are wanted: show figures of thousands of marks with dense=True, or leave some marks out"
            )
    whole = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if whole > HEAVIEST_SITE:
        problems.append(f"the site has {whole / 1e6:.1f} MB; at most {HEAVIEST_SITE / 1e6:.0f} are wanted")
    return problems


def page_weight(page: Path) -> int:
    """Return how many bytes a server sends for ``page`` and the pictures in it."""
    return _sent(page) + sum(_sent(path) for path in set(_pictures(page)))


def _pictures(page: Path) -> Iterator[Path]:
    for address in IMAGE.findall(page.read_text(encoding="utf-8")):
        parts = urlsplit(unescape(address))
        path = (page.parent / unquote(parts.path)).resolve()
        if not parts.scheme and not parts.netloc and path.is_file():
            yield path


def _sent(path: Path) -> int:
    content = path.read_bytes()
    return len(gzip.compress(content, mtime=0)) if path.suffix in TEXT else len(content)
