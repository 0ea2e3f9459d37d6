"""Two panels that stand one below the other stand side by side where a page is wide enough to read them so.

A chapter draws both pictures, and the browser loads the one that it shows; paper, a copy for Colab and a preview have
the column.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.execution.artefacts import figures_in

FOLDER = "rows"
# From this width on, letters in a row are as large as those in the column on a phone.
WIDE = "screen and (min-width: 800px)"


def write_rows(book: Book, html: Path, chapters: list[Chapter]) -> None:
    """Put the rows of the ``chapters`` below ``html``, and let their pages choose between row and column."""
    for chapter in chapters:
        source = chapter.source.relative_to(book.root)
        path = (html / source).with_suffix(".html")
        page = path.read_text(encoding="utf-8")
        place = posixpath.relpath(FOLDER, source.parent.as_posix())
        for row in [figure.row for figure in figures_in(book.folder_of(chapter)) if figure.row.is_file()]:
            (html / FOLDER).mkdir(exist_ok=True)
            shutil.copy2(row, html / FOLDER)
            image = re.compile(rf'(<figure\b[^>]*\bid="{re.escape(row.name.split(".")[0])}"[^>]*>\s*)(<img\b[^>]*>)')
            choice = rf'\1<picture><source media="{WIDE}" srcset="{place}/{row.name}"/>\2</picture>'
            page = image.sub(choice, page)
        path.write_text(page, encoding="utf-8")
