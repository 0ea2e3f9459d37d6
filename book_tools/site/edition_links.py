"""Which editions of the book the front page offers: those that lie beside the site and were made from the same run.

``make pdf`` needs a finished run, ``make offline`` a finished site.  Each notes the run that it was made from; the next
build of the site from that run copies them into it, and leads there.  A link is never to a file that is not
there, nor to one with other numbers.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from book_tools.book import Book
from book_tools.files import json_text, read_json
from cfltr_core.files import sha256_of, write_whole

NAME = "counterfactual-learning-to-rank"
# What the endings of the files stand for, with the command that makes one.
KINDS = {
    ".pdf": ("a PDF", "make pdf"),
    ".zip": ("this site as one archive", "make offline"),
}
# Where they lie below the site, and the box of the front page that leads there.
FOLDER = "editions"
BOX = '<div class="editions">'
# The front page includes this file.
INCLUDED = "editions.md"
# From which run each was made.
NOTES = "editions.json"


def note_edition(book: Book, made: Path) -> None:
    """Write down from which run an edition was made."""
    write_whole(book.build / NOTES, json_text({**read_json(book.build / NOTES), made.name: _run_of(book)}))


def current_editions(book: Book) -> list[Path]:
    """Return the editions that were made from the present run."""
    notes, run = read_json(book.build / NOTES), _run_of(book)
    paths = [book.build / f"{NAME}{ending}" for ending in KINDS]
    return [path for path in paths if path.is_file() and run is not None and notes.get(path.name) == run]


def copy_editions(editions: Sequence[Path], site: Path) -> None:
    """Copy the editions into the site."""
    for path in editions:
        (site / FOLDER).mkdir(exist_ok=True)
        shutil.copy2(path, site / FOLDER)


def words(editions: Sequence[Path]) -> str:
    """Return links to the editions that there are, and the commands for the others."""
    links = [
        f'<a href="{FOLDER}/{path.name}">{KINDS[path.suffix][0]}</a> ({path.stat().st_size / 1e6:.1f} MB)'
        for path in editions
    ]
    there = {path.suffix for path in editions}
    others = [f"{what} by `{command}`" for ending, (what, command) in KINDS.items() if ending not in there]
    if not links:
        return f"To take along, the repository makes copies of the book: {', '.join(others)}.\n"
    more = f" The repository makes {', '.join(others)}." if others else ""
    return f"{BOX}\n\nTo take along: {', '.join(links)}.{more}\n\n</div>\n"


def _run_of(book: Book) -> str | None:
    """Return what a run is known by, or None where there is none."""
    return sha256_of(book.manifest) if book.manifest.is_file() else None
