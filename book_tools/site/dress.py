"""Prepare an executed notebook for the page: figures get their texts and data, claims what the registry now says.

Jupyter Book takes alternative text, captions and the labels of folds from a cell's ``mystnb`` metadata and from
nowhere else; without it the alternative text would be a file name, and every fold would say the same.
"""

from __future__ import annotations

from nbformat import NotebookNode

from book_tools.errors import Problems
from book_tools.execution.artefacts import Figure
from book_tools.notebooks import TITLE, fold_title, is_fold, mark_on, source_index

DATA_FOLDER = "figures"


def dress(notebook: NotebookNode, chapter: str, figures: list[Figure]) -> None:
    """Give every figure cell of ``notebook``, in place, what the page needs.

    An image that is not a recorded figure has no alternative text, which is an error, as is a recorded
    figure that the chapter does not show.
    """
    by_id = {figure.id: figure for figure in figures}
    problems = Problems()
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        cell["outputs"] = [output for output in cell.outputs if "caption" not in mark_on(output)]
        images = [output for output in cell.outputs if _is_image(output)]
        ids = [mark_on(output)["figure"] for output in images if "figure" in mark_on(output)]
        wrong = ""
        if len(ids) < len(images):
            wrong = "an image without alternative text; show it with figure(…), alt=…"
        elif len(ids) > 1:
            wrong = f"shows {' and '.join(ids)}; a cell shows one figure, split it"
        elif ids and ids[0] not in by_id:
            wrong = f"shows {ids[0]} a second time; refer to it instead"
        elif ids:
            _annotate(cell, by_id.pop(ids[0]))
        if wrong:
            line = next((line for line in cell.source.splitlines() if line.strip()), "")
            problems.append(f"{chapter}, cell {source_index(notebook, index)} ({line!r}): {wrong}")
    problems += [f"{chapter}: {name} was saved but is not shown" for name in sorted(by_id)]
    problems.raise_any()


def label_folds(notebook: NotebookNode) -> None:
    """Let the first line ``# @title …`` of every folded cell be the label of the fold, in place of standing in it."""
    for cell in notebook.cells:
        if is_fold(cell) and (title := fold_title(cell)):
            cell["source"] = TITLE.sub("", cell.source).lstrip("\n")
            cell.metadata["mystnb"] = {**cell.metadata.get("mystnb", {}), "code_prompt_show": title}


def quote_records(notebook: NotebookNode) -> None:
    """Let every recorded number and phrase stand in its sentence exactly as it was recorded, and only there.

    The builder takes what a sentence quotes for a literal of Python where it can: without quotation marks 0.50 would
    become 0.5, and 1,234 a pair.  What a plain notebook shows in the place of the sentence is dropped.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            about = output.get("metadata", {}).get("scrapbook")
            if about is not None:
                kept = {mime: text for mime, text in output.data.items() if mime.startswith(about["mime_prefix"])}
                output["data"] = {mime: repr(text) for mime, text in kept.items()}


def _annotate(cell: NotebookNode, figure: Figure) -> None:
    link = f"{{download}}`Data (CSV) <{DATA_FOLDER}/{figure.data.name}>`"
    cell.metadata["mystnb"] = {
        **cell.metadata.get("mystnb", {}),
        "image": {"alt": figure.alt},
        "figure": {"caption": f"{figure.caption} {link}", "name": figure.id},
    }
    for output in cell.outputs:
        if "figure" in mark_on(output):
            # HTML would be preferred to the image, and would hide it.
            output.get("data", {}).pop("text/html", None)


def _is_image(output: NotebookNode) -> bool:
    return any(mime.startswith("image/") for mime in output.get("data", {})) or "figure" in mark_on(output)
