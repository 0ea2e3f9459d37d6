"""Every chapter draws from streams of its own hundred, so that no two chapters share random numbers by accident."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

BOOK = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((BOOK / "chapters").glob("[0-9]*.ipynb"))
PACKAGE = BOOK / "cfltr_book"


def streams_in(code: str) -> set[int]:
    """Whole numbers given as a stream: what ``rng``, ``stream=`` or ``"stream":`` is given; the first of a list."""
    given: list[ast.expr] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            given += [value for key, value in named if isinstance(key, ast.Constant) and key.value == "stream"]
        elif isinstance(node, ast.Call):
            given += [keyword.value for keyword in node.keywords if keyword.arg == "stream"]
            if isinstance(node.func, ast.Attribute) and node.func.attr == "rng":
                given += node.args[1:2]
    firsts = (stream.elts[0] if isinstance(stream, ast.List) else stream for stream in given)
    parts = (part for stream in firsts for part in ast.walk(stream))
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, int)}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_streams_lie_in_the_hundred_of_the_chapter(path: Path) -> None:
    codes = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    codes += [module.read_text(encoding="utf-8") for module in PACKAGE.glob(f"*/ch{path.name[:2]}.py")]
    found = set().union(*map(streams_in, codes))
    first = 100 * int(path.name[:2])
    assert found
    outside = sorted(stream for stream in found if not first <= stream < first + 100)
    assert not outside, f"{path.name} draws from {outside}: its streams are {first} to {first + 99}"
