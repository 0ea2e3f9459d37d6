"""The pages that have no source: the papers' size, the scoreboard and the status from a run, others from the code."""

from __future__ import annotations

from importlib.metadata import version

from book_tools.book import Book
from book_tools.files import read_json
from book_tools.parameters import Parameters
from book_tools.site.api import INDEX, api_pages
from book_tools.site.architecture import NAME, architecture
from book_tools.site.front import write_front
from book_tools.site.map import write_map
from book_tools.site.papers_size import papers_size
from book_tools.site.scoreboard import link_to, numbers_files, scoreboard
from book_tools.site.tables import duration, table
from cfltr_core.files import write_whole

# What turns executed notebooks into pages; the manifest names what they were executed with.
BUILDERS = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme")


def generated_pages(book: Book, parameters: Parameters) -> dict[str, str]:
    """Return the text of every generated page, by the name it has in the table of contents."""
    return {
        "chapters/papers_size": papers_size(book),
        "chapters/scoreboard": scoreboard(book, parameters),
        "chapters/status": status(book, parameters),
        **({NAME: architecture()} if NAME in book.pages() else {}),
        **(api_pages() if INDEX in book.pages() else {}),
    }


def write_accompanying(book: Book, parameters: Parameters) -> None:
    """Lay what the scoreboard and the front page read beside them, into the staged source."""
    write_front(book, parameters)
    write_map(book)
    for name, text in numbers_files(book).items():
        write_whole(book.stage / name, text)


def status(book: Book, parameters: Parameters) -> str:
    """Return the page that says what the site was built with and how long it took."""
    manifest = read_json(book.manifest)
    revision = manifest.get("revision") or "not under version control"
    changed = ", with uncommitted changes" if manifest.get("dirty") else ""
    packages = {**manifest.get("packages", {}), **{name: version(name) for name in BUILDERS}}
    timings = read_json(book.timings)
    chapters = book.chapters()
    known = [timings[chapter.name] for chapter in chapters if chapter.name in timings]
    rows = [[link_to(chapter), duration(timings.get(chapter.name))] for chapter in chapters]
    rows.append(["all chapters together", duration(sum(known))])
    return "\n".join(
        [
            "# Status of this build\n",
            f"Run with {parameters}. Revision: {revision}{changed}.\n",
            "## Run times\n",
            "Wall-clock time of each chapter where this site was built, the start of Python included.\n",
            table(["Chapter", "Time"], rows),
            "## Versions\n",
            table(
                ["Package", "Version"],
                [["Python", str(manifest.get("python", ""))], *([f"`{k}`", v] for k, v in sorted(packages.items()))],
            ),
        ]
    )
