"""Make the copies of the chapters: plain notebooks that install what they need, to be run in Colab or elsewhere.

A copy is made from the executed chapter, so that the numbers in its text are those of the run, and from the
built pages, so that theorems, equations and figures have the numbers of the site.  It holds no outputs; what its text
quotes from the run of the page is marked, because other settings find other numbers.  The copy of a chapter with kept
tables has to compute them, so it begins at a small scale, and says so.

Other copies are read and not run, in any viewer of notebooks.  They keep the figures, tables and printed texts that the
page shows: captions have their numbers, and what stands in a sentence there is said only there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from book_tools.book import Book, Chapter
from book_tools.colab.half_pages import executed_chapter
from book_tools.colab.labels import Labels, Target
from book_tools.colab.marks import LEGEND, SCOREBOARD, mark_of, measured, rewrite_claims
from book_tools.colab.myst import LEFTOVER, split_code
from book_tools.colab.portable import Portable
from book_tools.colab.repository import Origin, extras_of, install_source, is_guard, stamp_of
from book_tools.errors import BookError, Problems, for_each
from book_tools.execution.artefacts import claims_in, figures_in, records_in
from book_tools.files import remove_tree
from book_tools.notebooks import (
    FOLDS,
    INJECTED,
    KERNELSPEC,
    LAUNCH,
    drop_numeric_warnings,
    fold_title,
    has_kept_tables,
    mark_on,
    source_index,
    tags_of,
    write_notebook,
)
from book_tools.parameters import KNOWN, Parameters
from cfltr_book.reporting.pictures import numbered_caption

# The copies to be run, and those to be read.
FOLDER, READ_FOLDER = "colab", "read"
INSTALL_ID = "install"
# Viewers on the web give up on larger ones.
LARGEST = 1_000_000
# Where the copy of a chapter with kept tables begins.
QUICK = "smoke"
# Tags by which the site folds or drops a cell; a copy keeps the code, folded.
FOLDED = {*FOLDS, "remove-cell", "remove-input"}
# And by which it folds or drops what the cell shows.
OUTPUT_FOLDED, OUTPUT_DROPPED = {"hide-cell"}, {"remove-cell", "remove-output"}
# Stands behind every number and phrase that the text of a copy quotes from the run of the page.
FOUND_BY_PAGE = "†"
# A back-quoted text that no role stands before.
CODE_SPAN = re.compile(r"(?<![`}])(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
SOLUTION_START, SOLUTION_END = ":::{solution-start}", ":::{solution-end}"


def write_copies(book: Book, labels: Labels, folder: Path, origin: Origin, parameters: Parameters) -> None:
    """Write a copy of every executed chapter into ``folder``, which is emptied first."""
    _write_each(book, folder, lambda chapter: copy_of(book, chapter, labels, origin, parameters))


def _write_each(book: Book, folder: Path, make: Callable[[Chapter], NotebookNode]) -> None:
    """Write what ``make`` makes of every chapter into ``folder``, which is emptied first."""
    remove_tree(folder)
    folder.mkdir(parents=True)
    for_each(
        book.chapters(),
        lambda chapter: write_notebook(folder / chapter.source.name, make(chapter)),
        BookError,
        f"no copies of the chapters in {folder.name}/",
    )


def start_of(notebook: NotebookNode, parameters: Parameters) -> Parameters:
    """Return what the copy of a chapter begins with: ``parameters``, those of the site, unless that takes too long."""
    return replace(parameters, scale=QUICK) if has_kept_tables(notebook) else parameters


def copy_of(book: Book, chapter: Chapter, labels: Labels, origin: Origin, parameters: Parameters) -> NotebookNode:
    """Return the copy of one executed chapter."""
    executed = executed_chapter(book, chapter)
    start, kept = start_of(executed, parameters), has_kept_tables(executed)
    portable = portable_of(book, chapter, labels, origin, FOUND_BY_PAGE)
    cells = plain_cells(chapter, executed, portable, start, hint=_hint(parameters, start))
    numbers = {
        name: labels.numbered[name].text for cell in cells for name in figures_of(cell) if name in labels.numbered
    }
    for cell in cells:
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    page = portable.link(Target(f"{portable.page}.html", "a page of the book"))
    text = f"A copy of {page}, to be run and changed; {stamp_of(origin)}."
    if any(FOUND_BY_PAGE in cell.source for cell in cells if cell.cell_type == "markdown"):
        text += f" What is marked {FOUND_BY_PAGE} was found by the run of the page ({parameters}); "
        text += "with other settings your cells find other numbers."
    if portable.has_marks:
        text += f" {LEGEND}"
    if start.scale != parameters.scale:
        text += f" The page was made at scale {parameters.scale}; these cells begin at scale {start.scale}."
    if kept:
        text += " Long experiments, whose tables the book keeps, are computed here with fewer seeds."
    below_title(cells, f"*{text}*")
    _insert_install(cells, origin, numbers)
    return notebook_of(executed, chapter, cells)


def portable_of(book: Book, chapter: Chapter, labels: Labels, origin: Origin, mark: str = "") -> Portable:
    """Return the translation of a chapter's text; ``mark`` stands behind each number that it recorded."""
    page = book.page_of(chapter)
    records = {record.name: f"{record.text}{mark}" for record in records_in(book.folder_of(chapter))}

    def mark_on(content: str) -> Target:
        found = measured(book, mark_of(content))
        return Target(f"{posixpath.dirname(page)}/{SCOREBOARD}#claim-{found.spec.id}", f"{found.symbol}{mark}")

    return Portable(page, labels, records, origin.site, mark_on)


def plain_cells(
    chapter: Chapter, executed: NotebookNode, portable: Portable, values: Parameters, hint: str = ""
) -> list[NotebookNode]:
    """Return the cells of an executed chapter as a plain notebook has them, with the outputs that the page shows.

    ``values`` stand in the cell of the parameters, below ``hint``.
    """
    problems = Problems()
    cells: list[NotebookNode] = []
    folding = False
    for index, cell in enumerate(executed.cells):
        place = f"{chapter.source.name}, cell {source_index(executed, index)}: "
        if cell.cell_type == "code":
            if INJECTED not in tags_of(cell) and not is_guard(cell):
                if "parameters" in tags_of(cell):
                    cell["source"] = hint + _with_values(cell.source, values)
                cells.append(_code(cell, portable.labels, folding))
            continue
        # A solution with code goes on over several cells; its cells are folded like those the site folds.
        folding = _still_folding(cell.source, folding)
        with problems.collected(place, ValueError):
            source = portable.text(cell.source) if cell.cell_type == "markdown" else cell.source
            problems += [f"{place}{text!r} is left over in a copy of the chapter" for text in leftovers(source)]
            if source.strip():
                cells.append(_markdown(cell, source))
    if not problems:
        with problems.collected(f"{chapter.source.name}: ", ValueError):
            portable.all_cited()
    problems.raise_any()
    return cells


def notebook_of(executed: NotebookNode, chapter: Chapter, cells: list[NotebookNode]) -> NotebookNode:
    """Return the notebook of a chapter with these ``cells``."""
    executed["cells"] = cells
    executed["metadata"] = {
        "colab": {"name": chapter.source.name, "provenance": [], "toc_visible": True},
        "kernelspec": KERNELSPEC,
        "language_info": {"name": "python"},
    }
    return executed


def leftovers(source: str) -> list[str]:
    """Return everything in the Markdown of a copy that a plain notebook would show as it stands."""
    found = []
    for code, part in split_code(source):
        text = part.split("\n", 1)[0] if code else CODE_SPAN.sub("", part)
        found += [match[0].strip() for match in LEFTOVER.finditer(text)]
    return found


def _still_folding(source: str, folding: bool) -> bool:
    start, end = source.rfind(SOLUTION_START), source.rfind(SOLUTION_END)
    return folding if start == end else start > end


def _markdown(cell: NotebookNode, source: str) -> NotebookNode:
    cell["source"], cell["metadata"] = source, {}
    cell.pop("attachments", None)
    return cell


def figures_of(cell: NotebookNode) -> list[str]:
    """Return the names of the figures that an executed cell shows."""
    marks = [mark_on(output) for output in cell.get("outputs", [])]
    return [mark["figure"] for mark in marks if "figure" in mark]


def _code(cell: NotebookNode, labels: Labels, folding: bool) -> NotebookNode:
    tags = set(tags_of(cell))
    figure = next((labels.numbered[name].text for name in figures_of(cell) if name in labels.numbered), None)
    cell["metadata"] = {}
    if tags & OUTPUT_DROPPED:
        cell["outputs"] = []
    if "parameters" in tags:
        cell["metadata"] = {"tags": ["parameters"]}
    elif tags & FOLDED or folding:
        if fold_title(cell) is None:
            title = "Solution" if folding else f"Code of {figure}" if figure else "Code"
            cell["source"] = f"# @title {title}\n{cell.source}"
        cell["metadata"] = _fold(bool(tags & OUTPUT_FOLDED))
    return cell


def _fold(output_too: bool = False) -> dict[str, object]:
    """Return the metadata by which Colab and JupyterLab fold the code of a cell, and JupyterLab its output."""
    hidden = {"source_hidden": True, **({"outputs_hidden": True} if output_too else {})}
    return {"cellView": "form", "jupyter": hidden}


def _hint(parameters: Parameters, start: Parameters) -> str:
    """Say above the parameters how to get the scale of the page, where the copy begins at another."""
    if start.scale == parameters.scale:
        return ""
    return f'# A quick start. The page was made at scale "{parameters.scale}": put that here, and wait some minutes.\n'


def _with_values(source: str, parameters: Parameters) -> str:
    """Put the values into the cell that sets the parameters; its comments stay."""
    for name in KNOWN:
        value = repr(parameters.as_dict()[name]).replace("'", '"')
        # A function, because a value may hold what a replacement would take for a reference to a group.
        source = re.sub(rf"^({name} = )(\"[^\"]*\"|\d+)", lambda m, v=value: m[1] + v, source, flags=re.MULTILINE)  # type: ignore[misc]
    return source


def below_title(cells: list[NotebookNode], text: str) -> None:
    """Put a text below the title of a chapter, in place."""
    for cell in cells:
        if cell.cell_type == "markdown" and (match := re.search(r"^# .*$", cell.source, re.MULTILINE)):
            cell["source"] = f"{cell.source[: match.end()]}\n\n{text}{cell.source[match.end() :]}"
            return


def _insert_install(cells: list[NotebookNode], origin: Origin, numbers: dict[str, str]) -> None:
    source = install_source(origin, extras_of(cells), numbers)
    cell = new_code_cell(source, id=INSTALL_ID, metadata=_fold())  # type: ignore[no-untyped-call]
    first = next((index for index, other in enumerate(cells) if other.cell_type == "code"), len(cells))
    cells.insert(first, cell)


def add_launch_line(notebook: NotebookNode, page: str, origin: Origin) -> None:
    """Put the links to the copies of a chapter, each with what it is for, below its title, in place."""
    name = f"{posixpath.basename(page)}.ipynb"
    here = posixpath.dirname(page) or "."
    run, read = (posixpath.relpath(f"{folder}/{name}", here) for folder in (FOLDER, READ_FOLDER))
    links = [
        f'<a href="{run}" download>Notebook to run</a>, without outputs',
        f'<a href="{read}" download>Notebook to read</a>, with the outputs of this page',
    ]
    # A copy of changes that no repository holds cannot be what Colab would open.
    if origin.installable and (address := origin.colab(name)):
        links.insert(0, f'<a href="{address}">Open in Colab</a>')
    below_title(notebook.cells, f"{LAUNCH}{' · '.join(links)}</p>\n")


def write_reading_copies(book: Book, labels: Labels, folder: Path, origin: Origin, parameters: Parameters) -> None:
    """Write a copy of every executed chapter with its outputs into ``folder``, which is emptied first."""
    _write_each(book, folder, lambda chapter: reading_copy_of(book, chapter, labels, origin, parameters))
    Problems(
        f"{path.name}: its copy with outputs has {size / 1e6:.2f} MB, and at most {LARGEST / 1e6:.0f} MB are wanted; "
        "show figures of thousands of marks with dense=True"
        for path in sorted(folder.iterdir())
        if (size := path.stat().st_size) > LARGEST
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
            name = mark_on(output).get("caption")
            if name in captions:
                number = labels.numbered[name].text if name in labels.numbered else None
                output["data"]["text/markdown"] = numbered_caption(captions[name], number)
    page = portable.link(Target(f"{portable.page}.html", "a page of the book"))
    other = portable.link(Target(f"{FOLDER}/{chapter.source.name}", "the notebook to run"))
    text = f"A copy of {page}, to be read: what its cells show is what they showed on that page ({parameters}; "
    text += f"{stamp_of(origin)}). To run or change it, take {other} that the page offers too."
    below_title(cells, f"*{text}{f' {LEGEND}' if portable.has_marks else ''}*")
    return notebook_of(executed, chapter, cells)
