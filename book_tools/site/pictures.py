"""What stands on a page beside the still of a figure: a row of its panels on a wide page, and the frames of a knob.

A chapter draws two panels in a column and in a row, and the browser loads the one that it shows.  Of a figure with a
knob the page itself holds the still and the words of the frames: ``_static/sliders.js`` makes a slider of them, and
fetches the pictures once a reader touches it.  Paper, a copy for Colab, a preview, and a page where scripts do not run
have the column, and the still alone.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from book_tools.book import Book, Chapter
from book_tools.errors import BookError, for_each
from book_tools.execution.artefacts import Figure, figures_in

ROWS, FRAMES = "rows", "frames"
# From this width on, letters in a row are as large as those in the column on a phone.
WIDE = "screen and (min-width: 800px)"


def write_pictures(book: Book, html: Path, chapters: list[Chapter]) -> None:
    """Put the rows and the frames of the ``chapters`` below ``html``, and into their pages what leads there."""
    for_each(chapters, lambda chapter: _write(html, html / f"{book.page_of(chapter)}.html", book.folder_of(chapter)))


def _write(html: Path, path: Path, executed: Path) -> None:
    page = path.read_text(encoding="utf-8")
    for figure in figures_in(executed):
        if figure.row.is_file():
            page = _with_row(page, figure, _laid(figure.row, html / ROWS, path))
        if figure.slider:
            page = _with_frames(page, figure, figure.slider, html / FRAMES, path)
    path.write_text(page, encoding="utf-8")


def _laid(picture: Path, folder: Path, page: Path) -> str:
    """Copy a picture into a folder of the site, and return its address on a page."""
    folder.mkdir(exist_ok=True)
    shutil.copy2(picture, folder)
    return posixpath.relpath((folder / picture.name).as_posix(), page.parent.as_posix())


def _with_row(page: str, figure: Figure, address: str) -> str:
    image = re.compile(rf'(<figure\b[^>]*\bid="{re.escape(figure.id)}"[^>]*>\s*)(<img\b[^>]*>)')
    return image.sub(rf'\1<picture><source media="{WIDE}" srcset="{address}"/>\2</picture>', page)


def _with_frames(page: str, figure: Figure, slider: dict[str, Any], folder: Path, path: Path) -> str:
    shown = re.search(rf'<figure\b[^>]*\bid="{re.escape(figure.id)}".*?</figure>', page, re.DOTALL)
    if shown is None:
        raise BookError(f"{path.stem}.ipynb: {figure.id} has a slider, but stands on the page as no figure")
    frames = [
        {
            **{name: frame[name] for name in ("text", "fact", "alt")},
            # The still is on the page already.
            "source": None if index == slider["start"] else _laid(figure.image.with_name(frame["image"]), folder, path),
        }
        for index, frame in enumerate(slider["frames"])
    ]
    about = {"id": figure.id, "knob": slider["knob"], "start": slider["start"], "frames": frames}
    # Inside a script a "</" might end it.
    content = json.dumps(about, sort_keys=True, ensure_ascii=False).replace("</", "<\\/")
    # Behind the figure, which may hold no script of its own.
    script = f'\n<script type="application/json" class="frames">{content}</script>\n'
    return page[: shown.end()] + script + page[shown.end() :]
