"""What the validator of the W3C, the Nu HTML Checker, finds in the built pages.

It reads files, and asks no other machine.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from book_tools.book import Book
from book_tools.checks.judges import find_validator
from book_tools.errors import BookError, UsageError
from book_tools.site.html import built_pages

# Remarks that are none on these pages, each by words of its own, with the reason.
ALLOWED = {
    "Trailing slash on void elements": "a matter of style: docutils writes <br />, and every attribute in quotes",
    "Article lacks heading": "Sphinx puts the title of a page into a section, and that into the theme's article",
    "as a top-level heading only": "the same: the one title stands in a section, which is one of no other heading",
}


def check_markup(book: Book) -> None:
    """Validate every page of the built site; raise with every problem found."""
    if not (book.html / "index.html").is_file():
        raise UsageError("markup: no site to look at; build it with 'make book'")
    pages = built_pages(book.html)
    problems = list(markup_problems(book.html, pages))
    print(f"markup: {len(pages)} pages: {len(problems)} problems", flush=True)
    if problems:
        raise BookError(*problems, f"markup: {len(problems)} problems")


def markup_problems(site: Path, pages: list[Path]) -> Iterator[str]:
    """Yield what is wrong with ``pages`` below ``site``, as ``page, line n: reason``."""
    command = [*find_validator(), "--format", "json", "--exit-zero-always", *map(str, pages)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    try:
        messages = json.loads(done.stderr)["messages"]
    except (ValueError, KeyError):
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise BookError(f"markup: the validator failed with exit code {done.returncode}: {' '.join(said)}") from None
    for message in messages:
        text = message["message"]
        if any(words in text for words in ALLOWED):
            continue
        if message["type"] == "non-document-error":
            raise BookError(f"markup: the validator could not read a page: {text}")
        page = Path(unquote(urlsplit(message["url"]).path)).relative_to(site.resolve()).as_posix()
        extract = " ".join(str(message.get("extract", "")).split())[:80]
        yield f"{page}, line {message.get('lastLine', '?')}: {text} (at {extract!r})"
