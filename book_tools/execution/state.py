"""How a finished run relates to the sources as they are now."""

from __future__ import annotations

from book_tools.book import Book
from book_tools.errors import Problems, UsageError
from book_tools.execution.fingerprint import fingerprints
from book_tools.execution.stamp import differences, sealed_fingerprint
from book_tools.files import read_json
from book_tools.parameters import KNOWN, Parameters


def fresh_run(book: Book, otherwise: str, wanted: list[str] | None = None) -> Parameters:
    """Return the parameters of the present run.

    Raises
    ------
    UsageError
        Where one of the ``wanted`` chapters (all when empty) was not executed, or is not as its sources are now, with
        all that is wrong; ``otherwise`` says at its end what cannot be done therefore.
    """
    chapters = book.select(wanted or [])
    manifest = read_json(book.manifest)
    if any(name not in manifest for name in KNOWN):
        raise UsageError("no run exists; start one with 'make book'", otherwise)
    parameters = Parameters(**{name: manifest[name] for name in KNOWN})
    try:
        prints = fingerprints(book, parameters)
    except UsageError as error:
        # The collection of a run is not where it was, for one.
        raise UsageError(*error.problems, f"the present run has {parameters}; run 'make book' to replace it") from None
    problems = Problems()
    for chapter in chapters:
        folder = book.folder_of(chapter)
        fingerprint = sealed_fingerprint(folder)
        if fingerprint is None:
            wrong = ["not executed"]
        elif fingerprint != prints[chapter.name]:
            wrong = ["the run is stale, its sources, versions or parameters have changed since"]
        else:
            wrong = [f"{difference} after the run" for difference in differences(folder)]
        problems += [f"{chapter.name}: {what}; run 'make book'" for what in wrong]
    problems.raise_any(UsageError, otherwise)
    return parameters
