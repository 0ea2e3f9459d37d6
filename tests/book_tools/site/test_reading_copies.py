"""The copies to be read hold what the pages show: the same pictures, texts, captions and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nbformat import validator
from nbformat.v4 import reads
from toy import Toy

from book_tools.book import Book
from book_tools.colab import copies as reading_copies
from book_tools.colab.labels import read_labels
from book_tools.colab.repository import Origin
from book_tools.errors import BookError
from book_tools.parameters import Parameters


def copy_in(toy: Toy, name: str = "91_alpha", folder: str = "read") -> dict[str, Any]:
    text = (toy.root / "_build" / "html" / folder / f"{name}.ipynb").read_text()
    validator.validate(reads(text))  # type: ignore[no-untyped-call]
    content: dict[str, Any] = json.loads(text)
    return content


def outputs_of(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def text_of(notebook: dict[str, Any]) -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"])


def test_its_outputs_are_those_of_the_page(built: Toy) -> None:
    root, page = built.root / "_build" / "html", built.page("chapters/91_alpha")
    picture, caption, answer = outputs_of(copy_in(built))
    (image,) = page.select("article figure img")
    shown = (root / "chapters" / str(image["src"])).resolve().read_text()
    assert "".join(picture["data"]["image/svg+xml"]).strip() == shown.strip()
    number = page.select_one("article figure .caption-number")
    assert number is not None
    said = "".join(caption["data"]["text/markdown"])
    assert said == f"**{number.get_text().strip()}.** *A bar of length $2x$.*"
    assert answer["data"] == {"text/plain": ["2"]}, "a solution has its answer"
    printed = [pre.get_text().strip() for pre in page.select("article .cell_output pre")]
    assert "2" in printed
    # What a sentence quotes is said there, as on the page, and is no output of its own.
    assert "the length is 60.25." in text_of(copy_in(built))
    assert "toy-length" not in json.dumps(outputs_of(copy_in(built)))


def test_it_differs_from_the_copy_to_be_run_in_what_only_a_run_needs(built: Toy) -> None:
    for name in ("91_alpha", "92_beta"):
        run, read = copy_in(built, name, "colab"), copy_in(built, name)
        of_run = ["".join(cell["source"]).replace("†", "") for cell in run["cells"][1:] if cell.get("id") != "install"]
        of_read = ["".join(cell["source"]) for cell in read["cells"][1:]]
        assert of_run == of_read
        assert outputs_of(run) == []
        assert "%pip" not in text_of(read)


def test_one_that_viewers_would_not_show_leaves_no_site(
    built: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Book(built.root)
    labels, origin = read_labels(book.html), Origin(None, None, None)
    monkeypatch.setattr(reading_copies, "LARGEST", 1000)
    with pytest.raises(BookError, match=r"91_alpha.ipynb: its copy with outputs has .* dense=True"):
        reading_copies.write_reading_copies(book, labels, tmp_path / "read", origin, Parameters("smoke"))
