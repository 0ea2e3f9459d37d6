"""How much a reader has to load: of a page, and of the whole site, which is also kept as one archive."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from book_tools.site.html import built_pages
from cfltr_core.files import write_whole

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
