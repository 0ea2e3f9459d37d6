"""What the validator of the W3C, the Nu HTML Checker, finds in the built pages.

It is a Java program, https://github.com/validator/validator, of which npm brings the archive.  It reads files, and asks
no other machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from book_tools.book import Book
from book_tools.checks.npm import npm_file
from book_tools.errors import BookError, UsageError
from book_tools.site.html import built_pages

# The archive itself, where it lies elsewhere.
VARIABLE = "VNU_JAR"
PLACE = Path("vnu-jar") / "build" / "dist" / "vnu.jar"
JAVA = "on Debian and Ubuntu: 'apt-get update && apt-get install default-jre-headless', as root"
# Remarks that are none on these pages, each by words of its own, with the reason.
ALLOWED = {
    "Trailing slash on void elements": "a matter of style: docutils writes <br />, and every attribute in quotes",
    "Article lacks heading": "Sphinx puts the title of a page into a section, and that into the theme's article",
    "as a top-level heading only": "the same: the one title stands in a section, which is one of no other heading",
}


def find_checker() -> list[str]:
    """Return the command that begins a check, or raise with what to install."""
    java = shutil.which("java")
    if java is None:
        raise UsageError(f"markup: Java, which the validator of pages needs, was not found; {JAVA}")
    archive = npm_file("markup: vnu.jar, the validator of pages", PLACE, VARIABLE, "vnu-jar@26")
    return [java, "-Xss4m", "-jar", str(archive)]


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
    command = [*find_checker(), "--format", "json", "--exit-zero-always", *map(str, pages)]
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
