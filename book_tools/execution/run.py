"""Execute the chapters that need it, each once, and write down what was done."""

from __future__ import annotations

import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.errors import BookError, Interrupted
from book_tools.execution.artefacts import check_artefacts
from book_tools.execution.execute import CACHE_VARIABLE, KEPT_VARIABLE, REVISION_VARIABLE, Kernels, execute
from book_tools.execution.preflight import check_chapters, check_claims, check_packages, check_parameters
from book_tools.execution.state import exclusive, fingerprints, is_current, provenance, write_stamp
from book_tools.execution.times import announcement, expected_minutes, expected_seconds, machine, time_so_far
from book_tools.files import json_text, read_json, remove_tree, replace_tree
from book_tools.git import git_state
from book_tools.parameters import Parameters
from cfltr_core.files import write_whole

# After so many seconds without a finished chapter a line says how far those under way are.
PROGRESS_SECONDS = 60.0


def run(
    book: Book, parameters: Parameters, wanted: list[str] | None = None, jobs: int = 1, force: bool = False
) -> None:
    """Execute the ``wanted`` chapters (all when empty) unless they are kept, ``jobs`` at a time.

    Everything is checked before anything starts.  A chapter that fails does not stop the others; the error
    raised at the end lists every failure.
    """
    check_packages()
    check_parameters(parameters)
    check_claims()
    everything = book.chapters()
    chapters = book.select(wanted or [])
    check_chapters(chapters)
    # Before execution: a chapter edited while it runs must not count as run.
    prints = fingerprints(book, parameters)
    with exclusive(book):
        _tidy(book, everything)
        print(f"running {len(chapters)} of {len(everything)} chapters: {parameters}", flush=True)
        kept = [each for each in chapters if not force and is_current(book.folder_of(each), prints[each.name])]
        for chapter in kept:
            print(f"  kept  {chapter.name}", flush=True)
        missing = [chapter for chapter in chapters if chapter not in kept]
        expected = expected_seconds(book, missing, parameters)
        if missing:
            most = "at most " if parameters.corpus.startswith("letor:") else ""
            print(f"  {announcement(expected, len(missing), jobs, most)}", flush=True)
            # The longest first, so that no worker is left alone with one in the end; where no time is known, the later
            # ones, which tend to be longer.
            missing.sort(key=lambda chapter: (expected.get(chapter.name, math.inf), chapter.name), reverse=True)
        try:
            minutes = expected_minutes(expected, len(missing), jobs)
            failures = _execute_all(book, parameters, missing, prints, jobs, minutes)
        finally:
            # Also after an interruption: what is finished is finished, and the manifest says so.
            write_manifest(book, parameters, prints)
    if failures:
        raise BookError(*failures, f"{len(failures)} of {len(chapters)} chapters failed")


def write_manifest(book: Book, parameters: Parameters, prints: Mapping[str, str]) -> None:
    """Write what was run and with what: no times and no paths, so that equal runs give equal manifests."""
    entries = {
        name: {"fingerprint": fingerprint, "complete": is_current(book.executed / name, fingerprint)}
        for name, fingerprint in prints.items()
    }
    manifest = {
        **parameters.as_dict(),
        **provenance(book),
        "chapters": entries,
        "complete": all(entry["complete"] for entry in entries.values()),
    }
    write_whole(book.manifest, json_text(manifest))


def _tidy(book: Book, chapters: list[Chapter]) -> None:
    """Remove what an interrupted run left, and the folders of chapters that are no longer in the book."""
    # An orphan of a killed run may still be writing there; its folder is nobody else's.
    shutil.rmtree(book.partial, ignore_errors=True)
    names = {chapter.name for chapter in chapters}
    for folder in book.executed.glob("*"):
        if folder.name not in names:
            remove_tree(folder)


def _execute_all(
    book: Book,
    parameters: Parameters,
    chapters: list[Chapter],
    prints: Mapping[str, str],
    jobs: int,
    expected: float | None,
) -> list[str]:
    """Execute the chapters, which should take the minutes ``expected``; return the problems of those that failed."""
    failures: list[str] = []
    started = time.monotonic()
    book.partial.mkdir(parents=True, exist_ok=True)
    times = {name: about for name, about in read_json(book.times).items() if name in prints}
    with interruptible("chapters"), Kernels(jobs) as kernels:
        futures = {
            kernels.submit(_execute_one, book, parameters, chapter, prints[chapter.name], kernels): chapter.name
            for chapter in chapters
        }
        under_way = set(futures)
        while under_way:
            finished, under_way = wait(under_way, PROGRESS_SECONDS, FIRST_COMPLETED)
            if not finished:
                at = (f"{name.partition('_')[0]} at cell {cell}" for name, cell in sorted(kernels.cells_done.items()))
                passed = time_so_far((time.monotonic() - started) / 60, expected)
                print(f"  … {', '.join(at)}; {len(under_way)} to go; {passed}", flush=True)
            for future in finished:
                name = futures[future]
                try:
                    seconds = round(future.result(), 2)
                except BookError as error:
                    failures.extend(error.problems)
                    print(f"  FAILED {name}", flush=True)
                else:
                    times[name] = {"seconds": seconds, "machine": machine(), "jobs": jobs}
                    write_whole(book.times, json_text(times))
                    print(f"  ran   {name}  {seconds:.1f} s", flush=True)
    shutil.rmtree(book.partial, ignore_errors=True)
    return failures


def _execute_one(book: Book, parameters: Parameters, chapter: Chapter, fingerprint: str, kernels: Kernels) -> float:
    # A name of its own for every attempt: an orphan of a killed run cannot write into this one.
    scratch = Path(tempfile.mkdtemp(prefix=f"{chapter.name}.", dir=book.partial))
    scratch.chmod(0o755)
    variables = {
        KEPT_VARIABLE: str(book.kept(chapter)),
        REVISION_VARIABLE: git_state(book.root)[0] or "",
        # The text of a collection is read once for all chapters.
        CACHE_VARIABLE: os.environ.get(CACHE_VARIABLE) or str(book.build / "cache"),
    }
    seconds = execute(chapter, parameters, scratch, kernels, variables)
    check_artefacts(chapter, scratch)
    write_stamp(scratch, fingerprint)
    replace_tree(scratch, book.folder_of(chapter))
    return seconds


@contextmanager
def interruptible(what: str) -> Iterator[None]:
    """Say of Ctrl-C, and of a plain ``kill``, that finished ``what`` are kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; finished {what} are kept, run again to go on") from None
    finally:
        signal.signal(signal.SIGTERM, before)
