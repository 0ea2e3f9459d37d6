"""Lay out a fresh Jupyter Book source from the pages, the executed chapters and the generated pages."""

from __future__ import annotations

import html
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

from book_tools.book import Book, Chapter
from book_tools.colab.copies import add_launch_line, below_title
from book_tools.colab.half_pages import executed_chapter
from book_tools.colab.marks import SCOREBOARD, box_of, rewrite_claims, write_marks
from book_tools.colab.repository import Origin
from book_tools.errors import for_each
from book_tools.execution.artefacts import claims_in, figures_in, records_in
from book_tools.files import files_below, remove_tree
from book_tools.notebooks import drop_numeric_warnings, read_notebook, write_notebook
from book_tools.parameters import Parameters
from book_tools.site.citations import BOOK, add_closing, bibtex, closing
from book_tools.site.dress import DATA_FOLDER, dress, label_folds, quote_records
from cfltr_book.reporting.claims import NO_VERDICT
from cfltr_core.files import write_whole

# Stands on every page that is there only because the one page that is built refers to it.
TEXT_ALONE = "*One page was built alone; of this one only the text is here. `make book` builds all of them.*"


def stage(
    book: Book, generated: Mapping[str, str], origin: Origin, parameters: Parameters, launch: bool = True
) -> None:
    """Fill ``_build/stage`` anew; ``generated`` holds the text of each generated page.

    Without ``launch`` no chapter leads to its copies: what is printed has none beside it.
    """
    _begin(book, generated, parameters)
    first = book.stage / f"{book.pages()[0]}.md"
    if launch and first.is_file():
        text = first.read_text(encoding="utf-8")
        write_whole(first, f"{text}\n{closing(book.pages()[0], BOOK, bibtex('cfltr', origin), origin)}")
    for_each(book.chapters(), lambda chapter: _stage_chapter(book, chapter, origin, launch))


def stage_page(book: Book, chapter: Chapter, origin: Origin, parameters: Parameters) -> None:
    """Fill ``_build/stage`` anew with an executed chapter, and with the mere text of the others: it refers to them."""
    _begin(book, {}, parameters)
    for other in book.chapters():
        notebook = read_notebook(other.source)
        notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
        below_title(notebook.cells, TEXT_ALONE)
        write_notebook(book.stage / f"{book.page_of(other)}.ipynb", notebook)
    _stage_chapter(book, chapter, origin, launch=False)


def _begin(book: Book, generated: Mapping[str, str], parameters: Parameters) -> None:
    """Empty the stage, and lay there all but the chapters; of a page that is not ``generated`` the title alone."""
    remove_tree(book.stage)
    book.stage.mkdir(parents=True)
    write_whole(book.stage / book.config.name, configuration(book.config, parameters))
    copied = [book.toc, book.root / "references.bib", *files_below(book.root / "_static")]
    for page in book.pages():
        source = book.source_of(page)
        if source is None:
            write_whole(book.stage / f"{page}.md", generated.get(page, f"# {Path(page).name}\n\n{TEXT_ALONE}\n"))
        elif source.suffix != ".ipynb":
            copied.append(source)
    for path in filter(Path.is_file, copied):
        target = book.stage / path.relative_to(book.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def configuration(config: Path, parameters: Parameters) -> str:
    """Return Jupyter Book's configuration; a copy that is not the published one says so on top of every page."""
    text = config.read_text(encoding="utf-8")
    if parameters == Parameters():
        return text
    settings = yaml.safe_load(text)
    seed = "" if parameters.seed == Parameters().seed else f", seed {parameters.seed}"
    notice = (
        f"This copy was built at scale {parameters.scale}, corpus {parameters.corpus}{seed}: "
        "its numbers are not those of the book."
    )
    settings.setdefault("html", {})["announcement"] = html.escape(notice)
    return str(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))


def _stage_chapter(book: Book, chapter: Chapter, origin: Origin, launch: bool) -> None:
    folder, page = book.folder_of(chapter), book.page_of(chapter)
    target = book.stage / f"{page}.ipynb"
    data = target.parent / DATA_FOLDER
    data.mkdir(parents=True, exist_ok=True)
    figures, measurements = figures_in(folder), claims_in(folder)
    notebook = executed_chapter(book, chapter)
    dress(notebook, chapter.source.name, figures)
    label_folds(notebook)
    quote_records(notebook)
    rewrite_claims(notebook, measurements, SCOREBOARD if launch else None)
    if box := box_of(write_marks(book, chapter, notebook, launch), launch):
        below_title(notebook.cells, box)
    if any(measurement.result.verdict == NO_VERDICT for measurement in measurements) or any(
        record.value is None for record in records_in(folder)
    ):
        # The page says what it lacks; that NumPy noticed it too would only stop the strict build.
        for line in drop_numeric_warnings(notebook):
            print(f"  {chapter.name}, {line} (not shown on the page)", flush=True)
    if launch:
        add_launch_line(notebook, page, origin)
        add_closing(notebook, chapter, page, origin)
    write_notebook(target, notebook)
    for figure in figures:
        shutil.copy2(figure.data, data)
