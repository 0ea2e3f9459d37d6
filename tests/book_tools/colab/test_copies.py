"""The copies of the chapters: what stands in them, and how pages and readers find them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from colab_book import ADDRESS, SITE, TITLED
from kept_text import same_as_kept
from nbformat import validator
from nbformat.v4 import new_markdown_cell, new_notebook, reads
from toy import PAGES, REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab import copies
from book_tools.colab.copies import add_launch_line, copy_of
from book_tools.colab.labels import read_labels
from book_tools.colab.repository import VARIABLE, Origin, origin_of
from book_tools.errors import BookError
from book_tools.parameters import Parameters


def copy_in(toy: Toy, name: str = "91_alpha", folder: str = "colab") -> dict[str, Any]:
    text = (toy.root / "_build" / "html" / folder / f"{name}.ipynb").read_text()
    validator.validate(reads(text))  # type: ignore[no-untyped-call]
    content: dict[str, Any] = json.loads(text)
    return content


def outputs_of(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_the_copy_of_a_chapter(built: Toy) -> None:
    revision = built.git("rev-parse", "HEAD")
    notebook = copy_in(built)
    cells = notebook["cells"]
    same_as_kept(PAGES / "copy.md", "\n\n---\n\n".join(map(source_of, cells)).replace(revision, "REVISION") + "\n")
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    kept = [cell["metadata"] for cell in cells if cell["cell_type"] == "code"]
    assert kept == [folded, {"tags": ["parameters"]}, folded, {}, folded]
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in cells)
    beta = copy_in(built, "92_beta")["cells"]
    assert f"[Theorem 91.1]({SITE}chapters/91_alpha.html#thm-growth)" in source_of(beta[-1]), "as on the site"
    (cell,) = (cell for cell in beta if "x = 3" in source_of(cell))
    assert source_of(cell) == TITLED
    assert cell["metadata"] == {"cellView": "form", "jupyter": {"outputs_hidden": True, "source_hidden": True}}


def test_the_copy_of_a_chapter_with_kept_tables_begins_small(built: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    book = Book(built.root)
    labels, origin = read_labels(book.html), origin_of(book)

    def made(number: str, parameters: Parameters) -> tuple[str, list[str]]:
        (chapter,) = book.select([number])
        cells = copy_of(book, chapter, labels, origin, parameters).cells
        (settings,) = (cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
        return cells[0].source, settings.splitlines()

    large = Parameters(scale="ci", corpus="digits", seed=3)
    text, lines = made("91", large)
    assert "(scale ci, corpus digits, seed 3)" in text, "the settings to which its marked numbers belong"
    assert lines == ['scale = "ci"', 'corpus = "digits"', "seed = 3"]
    text, (hint, *lines) = made("92", large)
    assert "The page was made at scale ci; these cells begin at scale smoke." in text
    assert "†" not in text, "this chapter quotes no number"
    assert hint.startswith('# A quick start. The page was made at scale "ci"')
    assert lines == ['scale = "smoke"', 'corpus = "digits"', "seed = 3"]
    # A site that is itself small has nothing to explain.
    text, lines = made("92", Parameters(scale="smoke"))
    assert "at scale" not in text
    assert lines == ['scale = "smoke"', 'corpus = "yahoo-like"', "seed = 0"]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Origin(ADDRESS, "abc", True), "uncommitted changes on top of revision abc"),
        (Origin(None, None, None), "run `pip install '.[chapters]'` in the clone"),
    ],
)
def test_what_no_repository_holds_is_not_passed_off_as_one(built: Toy, origin: Origin, words: str) -> None:
    """There is no button, nothing is installed, and without an address there is no link either."""
    book = Book(built.root)
    (chapter,) = book.select(["91"])
    cells = copy_of(book, chapter, read_labels(book.html), origin, Parameters("smoke")).cells
    text = "\n".join(cell.source for cell in cells)
    assert words in text
    assert "%pip" not in text
    assert ("](https" in text, "By Theorem 91.1, (91.1) and Fig. 91.1" in text) == (
        bool(origin.address),
        not origin.address,
    )
    page = new_notebook(cells=[new_markdown_cell("# Title\n")])
    add_launch_line(page, "chapters/91_alpha", origin)
    assert re.findall('href="([^"]*)"', page.cells[0].source) == ["../colab/91_alpha.ipynb", "../read/91_alpha.ipynb"]


def test_copies_of_uncommitted_changes_are_not_tried(rebuilt: Toy) -> None:
    manifest = Book(rebuilt.root).manifest
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "dirty": True}))
    assert "built from changes that no revision holds" in rebuilt.cli("colab-check", code=2)


def test_publishing_puts_the_copies_on_a_branch_of_their_own(rebuilt: Toy, tmp_path: Path) -> None:
    book, origin = rebuilt, Toy.at(tmp_path / "origin.git")
    shutil.copy(REPOSITORY / "Makefile", book.root)
    origin.root.mkdir()
    origin.git("init", "--quiet", "--bare")
    book.git("remote", "set-url", "origin", str(origin.root))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}

    def publish() -> subprocess.CompletedProcess[str]:
        command = ["make", "publish"]
        return subprocess.run(command, cwd=book.root, env=environment, capture_output=True, text=True, check=False)

    for _ in range(2):
        done = publish()
        assert done.returncode == 0, done.stderr
    assert origin.git("branch", "--format=%(refname:short)").split() == ["colab"]
    assert origin.git("ls-tree", "--name-only", "colab").split() == ["01_toy.ipynb", "91_alpha.ipynb", "92_beta.ipynb"]
    assert origin.git("rev-list", "--count", "colab") == "1"
    copy = book.root / "_build" / "html" / "colab" / "91_alpha.ipynb"
    assert origin.git("show", "colab:91_alpha.ipynb") == copy.read_text().strip()
    shutil.rmtree(book.root / "_build")
    empty = publish()
    assert empty.returncode == 2
    assert "no copies to publish; run 'make book'" in empty.stderr


def test_the_outputs_of_a_copy_to_be_read_are_those_of_the_page(built: Toy) -> None:
    root, page = built.root / "_build" / "html", built.page("chapters/91_alpha")
    picture, caption, answer = outputs_of(copy_in(built, folder="read"))
    (image,) = page.select("article figure img")
    shown = (root / "chapters" / str(image["src"])).resolve().read_text()
    assert "".join(picture["data"]["image/svg+xml"]).strip() == shown.strip()
    assert "".join(caption["data"]["text/markdown"]) == "**Fig. 91.1.** *A bar of length $2x$.*"
    assert answer["data"] == {"text/plain": ["2"]}, "a solution has its answer"


def test_it_differs_from_the_copy_to_be_run_in_what_only_a_run_needs(built: Toy) -> None:
    for name in ("91_alpha", "92_beta"):
        run, read = copy_in(built, name), copy_in(built, name, "read")
        of_run = [source_of(cell).replace("†", "") for cell in run["cells"][1:] if cell.get("id") != "install"]
        assert of_run == [source_of(cell) for cell in read["cells"][1:]]
        assert outputs_of(run) == []
        assert "%pip" not in "".join(map(source_of, read["cells"]))


def test_a_copy_that_viewers_would_not_show_leaves_no_site(
    built: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Book(built.root)
    monkeypatch.setattr(copies, "LARGEST", 1000)
    with pytest.raises(BookError, match=r"91_alpha.ipynb: its copy with outputs has .* dense=True"):
        copies.write_reading_copies(
            book, read_labels(book.html), tmp_path / "read", Origin(None, None, None), Parameters("smoke")
        )
