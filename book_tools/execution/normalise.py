"""Make an executed notebook the same bytes on every run.

What is removed says when, where or by which patch release a notebook was executed; nothing that a reader
sees changes.
"""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode

from book_tools.notebooks import INJECTED, tags_of

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Where a warning was raised: the kernel keeps a cell in a file that is named after its process.
WARNED_AT = re.compile(r"^.*?:\d+: (?=\w*Warning: )", re.MULTILINE)


def normalise(notebook: NotebookNode) -> None:
    """Remove from ``notebook``, in place, all that differs between two runs of the same chapter."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    # Cell identifiers exist from minor version 5 on; an older chapter was upgraded with random ones.
    notebook.nbformat_minor = max(5, notebook.nbformat_minor)
    for index, cell in enumerate(notebook.cells):
        injected = INJECTED in tags_of(cell)
        cell["id"] = INJECTED if injected else f"cell-{index:03d}"
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if injected:
            cell.metadata["tags"] = [INJECTED, "remove-cell"]
        if cell.cell_type == "code":
            cell["outputs"] = [_clean(output) for output in _merged(cell.outputs)]


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream: where the kernel flushes depends on the clock."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last["text"] += output.text
        else:
            merged.append(output)
    return merged


def _clean(output: NotebookNode) -> NotebookNode:
    """Drop memory addresses and the places of warnings from the texts of one output."""
    if output.output_type == "stream":
        output["text"] = WARNED_AT.sub("", ADDRESS.sub("", output.text))
    for mime, content in output.get("data", {}).items():
        if mime.startswith("text/"):
            output.data[mime] = _without_addresses(content)
    return output


def _without_addresses(content: Any) -> Any:
    return ADDRESS.sub("", content) if isinstance(content, str) else content
