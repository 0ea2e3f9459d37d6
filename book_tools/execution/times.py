"""How long chapters take: as long as last time here, or else as long as ``seconds.csv`` says; and on what machine."""

from __future__ import annotations

import csv
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from joblib import cpu_count

from book_tools.book import Book, Chapter
from book_tools.files import read_json
from book_tools.parameters import Parameters

# Seconds of each chapter, two at a time on two cores: a generated corpus at scale smoke and at ci, and at ci a
# collection as large as may be (:class:`cfltr_book.data.scales.Scale`), for which no table of results is kept: the
# longer of the times of one with as many numbers, and of one with as many pairs of documents.
SECONDS = Path(__file__).with_name("seconds.csv")
CPUINFO = Path("/proc/cpuinfo")


def expected_seconds(book: Book, chapters: Iterable[Chapter], parameters: Parameters) -> dict[str, float]:
    """Return how long each chapter should take, as far as that is known; at scale paper only from a run before."""
    column = "collection" if (parameters.corpus.startswith("letor:") and parameters.scale == "ci") else parameters.scale
    with SECONDS.open(encoding="utf-8", newline="") as stream:
        known = {row["chapter"]: float(row[column]) for row in csv.DictReader(stream) if column in row}
    last = read_json(book.manifest)
    if (last.get("scale"), last.get("corpus")) == (parameters.scale, parameters.corpus):
        known |= {name: about["seconds"] for name, about in read_json(book.times).items()}
    return {chapter.name: known[chapter.name] for chapter in chapters if chapter.name in known}


def expected_minutes(seconds: dict[str, float], n_chapters: int, jobs: int) -> float | None:
    """Return how many minutes ``n_chapters`` take, ``jobs`` at a time; None where that is not known of all of them."""
    return max(sum(seconds.values()) / jobs, *seconds.values(), 0.0) / 60 if len(seconds) == n_chapters else None


def announcement(seconds: dict[str, float], n_chapters: int, jobs: int, most: str = "") -> str:
    """Say how long ``n_chapters`` take, ``jobs`` at a time; ``most`` stands before it, where it is a bound."""
    minutes = expected_minutes(seconds, n_chapters, jobs)
    if minutes is None:
        return f"how long {n_chapters - len(seconds)} of them take is not known; finished ones are kept"
    return f"{most}about {minutes:.0f} minutes, if nothing else computes here" if minutes >= 1.5 else "about a minute"


def time_so_far(minutes: float, expected: float | None) -> str:
    """Say how many ``minutes`` have passed of those ``expected``, or that they are more."""
    if expected is None:
        return f"{minutes:.0f} min so far"
    expected = max(expected, 1.0)
    if minutes > expected + 1:
        return f"{minutes:.0f} min so far, longer than the {expected:.0f} expected"
    return f"{minutes:.0f} of about {expected:.0f} min"


def machine() -> str:
    """Return this machine in words: system, processor, cores that it gives to this process, memory; and no name."""
    # The model as Linux names it, or what Python knows.
    found = re.search(r"^model name\s*:\s*(.+)$", CPUINFO.read_text("utf-8") if CPUINFO.is_file() else "", re.MULTILINE)
    processor = " ".join((found[1] if found else platform.processor()).split())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} ({platform.machine()})"
    return ", ".join(filter(None, (system, processor, f"{cpu_count()} cores", f"{memory:.0f} GiB of memory")))
