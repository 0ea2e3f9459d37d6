"""Copies of the chapters that are read and not run: with the figures, tables and printed texts of the page.

Any viewer of notebooks shows them.  They are made as the copies to be run are, from the same executed chapter, and keep
what that shows on the page: captions have their numbers, and what stands in a sentence there is said only there.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from nbformat import NotebookNode

from book_tools.book import Book, Chapter
from book_tools.colab.copies import FOLDER, introduce, notebook_of, plain_cells, portable_of, write_each
from book_tools.colab.half_pages import executed_chapter
from book_tools.colab.install_cell import stamp_of
from book_tools.colab.labels import Labels, Target
from book_tools.colab.marks import LEGEND, SCOREBOARD
from book_tools.colab.repository import Origin
from book_tools.errors import Problems
from book_tools.execution.artefacts import claims_in, figures_in
from book_tools.notebooks import MARK
from book_tools.parameters import Parameters
from book_tools.site.dress import drop_numeric_warnings, rewrite_claims
from cfltr_book.reporting.pictures import numbered_caption

# Viewers on the web give up on larger ones.
LARGEST = 1_000_000


def write_reading_copies(book: Book, labels: Labels, folder: Path, origin: Origin, parameters: Parameters) -> None:
    """Write a copy of every executed chapter with its outputs into ``folder``, which is emptied first."""
    write_each(book, folder, lambda chapter: reading_copy_of(book, chapter, labels, origin, parameters))
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    Problems(
        f"{name}: its copy with outputs has {size / 1e6:.2f} MB, and at most {LARGEST / 1e6:.0f} MB are wanted; "
        "show figures of thousands of marks with dense=True"
        for name, size in sizes.items()
        if size > LARGEST
    ).raise_any()


def reading_copy_of(
    book: Book, chapter: Chapter, labels: Labels, origin: Origin, parameters: Parameters
) -> NotebookNode:
    """Return the copy of one executed chapter with what its page shows."""
    folder = book.folder_of(chapter)
    executed = executed_chapter(book, chapter)
    portable = portable_of(book, chapter, labels, origin)
    scoreboard = f"{posixpath.dirname(portable.page)}/{SCOREBOARD}".lstrip("/")
    rewrite_claims(executed, claims_in(folder), f"{portable.site}{scoreboard}" if portable.site else None)
    drop_numeric_warnings(executed)
    captions = {figure.id: figure.caption for figure in figures_in(folder)}
    cells = plain_cells(chapter, executed, portable, parameters)
    for cell in cells:
        if cell.cell_type == "code":
            cell["outputs"] = [output for output in cell.outputs if "scrapbook" not in output.get("metadata", {})]
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get(MARK, {}).get("caption")
            if name in captions:
                number = labels.numbered[name].text if name in labels.numbered else None
                output["data"]["text/markdown"] = numbered_caption(captions[name], number)
    page = portable.link(Target(f"{portable.page}.html", "a page of the book"))
    other = portable.link(Target(f"{FOLDER}/{chapter.source.name}", "the notebook to run"))
    introduce(
        cells,
        f"A copy of {page}, to be read: what its cells show is what they showed on that page ({parameters}; "
        f"{stamp_of(origin)}). To run or change it, take {other} that the page offers too."
        + (f" {LEGEND}" if portable.has_marks else ""),
    )
    return notebook_of(executed, chapter, cells)
