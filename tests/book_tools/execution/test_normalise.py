"""What normalising removes from an executed notebook, and what it leaves alone."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode, from_dict

from book_tools.execution.execute import normalise
from book_tools.notebooks import INJECTED


def code(*outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    about = {"cell_type": "code", "id": "random", "execution_count": 1, "source": "x"}
    return {**about, "metadata": metadata, "outputs": list(outputs)}


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def normalised(*cells: dict[str, Any], **metadata: Any) -> NotebookNode:
    notebook = from_dict({"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 4})
    normalise(notebook)
    return notebook


def test_pieces_of_a_stream_are_joined_but_not_across_another_output() -> None:
    table = {"output_type": "display_data", "data": {"text/plain": "t"}, "metadata": {}}
    cell = normalised(code(stream("a"), stream("b"), stream("!", "stderr"), stream("c"), table, stream("d"))).cells[0]
    assert [output.get("text", "table") for output in cell.outputs] == ["ab", "!", "c", "table", "d"]


def test_addresses_and_places_of_warnings_go_from_texts() -> None:
    texts = ("text/plain", "text/html", "text/markdown")
    output = {"output_type": "display_data", "data": dict.fromkeys(texts, "<f at 0x7f00aB>, at 0 x"), "metadata": {}}
    said = "/scratch/ipykernel_12/34.py:5: RuntimeWarning: invalid value\n  np.log(-1)\nnote 1:2: no Warning here\n"
    shown, warned = normalised(code(output, stream(said, "stderr"))).cells[0].outputs
    assert shown.data == dict.fromkeys(texts, "<f>, at 0 x")
    assert warned.text == "RuntimeWarning: invalid value\n  np.log(-1)\nnote 1:2: no Warning here\n"


def test_metadata_of_the_execution_goes_and_the_rest_stays() -> None:
    notebook = normalised(
        code(papermill={"duration": 1}, execution={"iopub": "now"}, mystnb={"keep": True}),
        papermill={"end_time": "now"},
        language_info={"name": "python", "version": "3.11.7"},
        kernelspec={"name": "python3", "display_name": "Python 3 (somewhere)"},
    )
    assert notebook.cells[0].metadata == {"mystnb": {"keep": True}}
    assert notebook.metadata == {
        "language_info": {"name": "python"},
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    }


def test_cells_get_fixed_identifiers_and_the_injected_one_is_hidden() -> None:
    cells = normalised(code(), code(tags=[INJECTED])).cells
    assert [cell.id for cell in cells] == ["cell-000", INJECTED]
    assert cells[1].metadata.tags == [INJECTED, "remove-cell"]
