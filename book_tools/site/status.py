"""The status of a build: what it was made from and where, how long that took, and what is compared with what.

Everything is as the run recorded it, or as git keeps it, so that two builds of one run are the same bytes.
"""

from __future__ import annotations

from importlib.metadata import version

from book_tools.book import Book
from book_tools.execution.artefacts import claims_in, figures_in, records_in
from book_tools.files import read_json
from book_tools.git import date_of
from book_tools.parameters import Parameters
from book_tools.site.scoreboard import link_to
from book_tools.site.tables import duration, table

# What turns executed notebooks into pages; the manifest names what they were executed with.
BUILDERS = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme")
COMPARED = (
    "## What is compared\n",
    "Every random draw comes from a generator with a seed, and every pool of threads has one thread. So two runs of "
    "one revision with the same packages on one machine give the same numbers, and two builds of one run the same "
    "files, byte by byte: no page says when or in which folder it was made. Between machines last digits may differ.\n",
    "`make verify` compares this run with what is committed: the {verdicts} verdicts with those on record, and, where "
    "corpus and seed are the book's own and `tests/reference` has the scale, the data of the {figures} figures and "
    "the {records} recorded numbers and phrases of the text, within the tolerances of "
    "`tests/reference/tolerances.yml`, which have their reasons. Of the {tables} kept tables a run reads those of its "
    "scale and corpus, and computes a few cells of most of them again. `make colab` runs the chapters' copies in a "
    "bare environment and compares them with the chapters in the same way. Times, and the machine that took them, are "
    "compared with nothing.\n",
    "A changed verdict or recorded number does not fail `make book`; it fails `make verify`. Only where *undecided* is "
    "on record is a verdict told as news, and passes.\n",
)


def status(book: Book, parameters: Parameters) -> str:
    """Return the page that says what the site was built with and how long it took."""
    manifest = read_json(book.manifest)
    revision = manifest.get("revision")
    dated = date_of(book.root, revision)
    named = f"{revision}{f' of {dated}' if dated else ''}" if revision else "not under version control"
    changed = ", with uncommitted changes" if manifest.get("dirty") else ""
    packages = {**manifest.get("packages", {}), **{name: version(name) for name in BUILDERS}}
    timings = read_json(book.timings)
    chapters = book.chapters()
    known = [timings[chapter.name] for chapter in chapters if chapter.name in timings]
    rows = [[link_to(chapter), duration(timings.get(chapter.name))] for chapter in chapters]
    rows.append(["sum over the chapters", duration(sum(known))])
    folders = [book.folder_of(chapter) for chapter in chapters]
    tables = [place for chapter in chapters for place in (book.kept(chapter), book.tables(chapter))]
    counts = {
        "verdicts": sum(len(claims_in(folder)) for folder in folders),
        "figures": sum(len(figures_in(folder)) for folder in folders),
        "records": sum(len(records_in(folder)) for folder in folders),
        "tables": sum(len([*place.rglob("*.csv")]) for place in tables),
    }
    return "\n".join(
        [
            "# Status of this build\n",
            f"Run with {parameters}. Revision: {named}{changed}.\n",
            "## Run times\n",
            "Wall-clock time of each chapter where this site was built, the start of Python included. "
            f"{_where(book)}\n",
            table(["Chapter", "Time"], rows),
            *(line.format(**counts) for line in COMPARED),
            "## Versions\n",
            table(
                ["Package", "Version"],
                [["Python", str(manifest.get("python", ""))], *([f"`{k}`", v] for k, v in sorted(packages.items()))],
            ),
        ]
    )


def _where(book: Book) -> str:
    """Say on which machines the chapters ran, and how many of them at a time."""
    recorded = read_json(book.machines)
    chapters: dict[str, list[str]] = {}
    for chapter in book.chapters():
        if chapter.name in recorded:
            about = recorded[chapter.name]
            at_once = "one chapter at a time" if about["jobs"] == 1 else f"{about['jobs']} chapters at a time"
            chapters.setdefault(f"{about['machine']}; {at_once}", []).append(chapter.number)
    if not chapters:
        return "On which machine was not recorded."
    if len(chapters) == 1:
        return f"The machine: {next(iter(chapters))}."
    return "The machines: " + " ".join(f"for {', '.join(numbers)}: {words}." for words, numbers in chapters.items())
