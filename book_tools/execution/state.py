"""How a finished run relates to the sources as they are now."""

from __future__ import annotations

from dataclasses import dataclass

from book_tools.book import Book, Chapter
from book_tools.errors import UsageError
from book_tools.execution.fingerprint import fingerprint_of, surroundings
from book_tools.execution.stamp import differences, read_stamp
from book_tools.files import read_json
from book_tools.parameters import KNOWN, Parameters


@dataclass(frozen=True)
class State:
    """The parameters of the present run, its chapters, and what is wrong with it."""

    parameters: Parameters | None
    chapters: list[Chapter]
    problems: list[str]


def state_of(book: Book, wanted: list[str] | None = None) -> State:
    """Compare the stored run with the sources: are the ``wanted`` chapters (all when empty) there and untouched?"""
    chapters = book.select(wanted or [])
    manifest = read_json(book.manifest)
    if any(name not in manifest for name in KNOWN):
        return State(None, chapters, ["no run exists; start one with 'make book'"])
    parameters = Parameters(**{name: manifest[name] for name in KNOWN})
    try:
        around = surroundings(book, parameters)
    except UsageError as error:
        # The collection of a run is not where it was, for one.
        raise UsageError(*error.problems, f"the present run has {parameters}; run 'make book' to replace it") from None
    problems = []
    for chapter in chapters:
        folder = book.folder_of(chapter)
        stamp = read_stamp(folder)
        if stamp is None:
            problems.append(f"{chapter.name}: not executed; run 'make book'")
        elif stamp.fingerprint != fingerprint_of(chapter, around):
            problems.append(
                f"{chapter.name}: the run is stale, its sources, versions or parameters have changed since; "
                "run 'make book'"
            )
        else:
            problems += [
                f"{chapter.name}: {difference} after the run; run 'make book'"
                for difference in differences(folder, stamp)
            ]
    return State(parameters, chapters, problems)
