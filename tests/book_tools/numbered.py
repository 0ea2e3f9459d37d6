"""The numbers of theorems, exercises, figures and equations in each edition of the book, in the order of its text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from book_tools.colab.labels import EQUATION, NUMBERED
from book_tools.messages import PARSER

IN_COPY = re.compile(r"\*\*(?P<name>[A-Z]\w+\.? \d+\.\d+)(?=[.* (])|\\tag\{(?P<equation>[\d.]+)\}")
IN_LATEX = re.compile(
    r"\\renewcommand\{\\thefigure\}\{(?P<figure>[\d.]+)\}"
    r"|\\tag\{(?P<equation>[\d.]+)\}"
    r"|\\label\{[^{}]*:[^{}:]+\}\s*\\begin\{sphinxadmonition\}\{note\}\{?\s*(?P<name>[A-Z]\w+ [\d.]*\d)"
)


def on_page(page: Path) -> list[str]:
    """The numbers on a page of the site, as ``Theorem 2.1``, ``Fig. 2.1`` and ``(2.1)``."""
    content = BeautifulSoup(page.read_text(encoding="utf-8"), PARSER).select_one("article")
    assert content is not None
    found = []
    for tag in content.select(f"{NUMBERED}, div.math[id^={EQUATION}]"):
        number = tag.select_one(".eqno" if tag.get("class") and "math" in tag["class"] else ".caption-number")
        if number is not None:
            found.append(" ".join(number.get_text().split()).rstrip("#").strip())
    return found


def in_copy(notebook: dict[str, Any], outputs: bool) -> list[str]:
    """The numbers in a copy of a chapter; with ``outputs`` also those of captions, which only a copy to be read has."""
    found = []
    for cell in notebook["cells"]:
        texts = ["".join(cell["source"])] if cell["cell_type"] == "markdown" else []
        if outputs:
            texts += ["".join(output.get("data", {}).get("text/markdown", "")) for output in cell.get("outputs", [])]
        for text in texts:
            found += [match["name"] or f"({match['equation']})" for match in IN_COPY.finditer(text)]
    return found


def in_latex(text: str) -> list[str]:
    """The numbers in the LaTeX that the PDF is made of."""
    return [
        match["name"] or (f"Fig. {match['figure']}" if match["figure"] else f"({match['equation']})")
        for match in IN_LATEX.finditer(text)
    ]
