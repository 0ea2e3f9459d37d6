"""The status of a build: what it was made from and where, how long that took, and what is compared with what.

Everything is as the run recorded it, or as git keeps it, so that two builds of one run are the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from book_tools.book import Book
from book_tools.execution.artefacts import claims_in, figures_in, records_in
from book_tools.files import read_json
from book_tools.git import date_of
from book_tools.parameters import Parameters
from book_tools.rendering import duration, render
from book_tools.site.scoreboard import link_to

# What turns executed notebooks into pages; the manifest names what they were executed with.
BUILDERS = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme")


def status(book: Book, parameters: Parameters) -> str:
    """Return the page that says what the site was built with and how long it took."""
    manifest, times = read_json(book.manifest), read_json(book.times)
    chapters = book.chapters()
    folders = [book.folder_of(chapter) for chapter in chapters]
    seconds = {chapter: times[chapter.name]["seconds"] for chapter in chapters if chapter.name in times}
    rows = [[link_to(chapter), duration(seconds.get(chapter))] for chapter in chapters]
    packages = {**manifest.get("packages", {}), **{name: version(name) for name in BUILDERS}}
    return render(
        "status.md.jinja",
        parameters=parameters,
        revision=_revision(book),
        machines=_machines(times),
        times=[*rows, ["sum over the chapters", duration(sum(seconds.values()))]],
        verdicts=sum(len(claims_in(folder)) for folder in folders),
        figures=sum(len(figures_in(folder)) for folder in folders),
        records=sum(len(records_in(folder)) for folder in folders),
        tables=sum(
            len([*place.rglob("*.csv")]) for chapter in chapters for place in (book.kept(chapter), book.tables(chapter))
        ),
        versions=[["Python", str(manifest.get("python", ""))], *([f"`{k}`", v] for k, v in sorted(packages.items()))],
    )


def _revision(book: Book) -> str:
    """Return the revision with its day, and whether there were changes that it does not hold."""
    manifest = read_json(book.manifest)
    revision = manifest.get("revision")
    if not revision:
        return "not under version control"
    day = date_of(book.root, revision)
    changed = ", with uncommitted changes" if manifest.get("dirty") else ""
    return f"{revision}{f' of {day}' if day else ''}{changed}"


def _machines(times: Mapping[str, Mapping[str, Any]]) -> str:
    """Say on which machines the chapters ran, and how many of them at a time."""
    chapters: dict[str, list[str]] = {}
    for name, about in sorted(times.items()):
        at_once = "one chapter at a time" if about["jobs"] == 1 else f"{about['jobs']} chapters at a time"
        chapters.setdefault(f"{about['machine']}; {at_once}", []).append(name.partition("_")[0])
    return " ".join(f"On {words}: {', '.join(numbers)}." for words, numbers in chapters.items())
