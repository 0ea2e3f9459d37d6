"""The front page: one figure of the run and findings that are counted, and a guide whose calls exist."""

import ast
import inspect
import re

import pytest
from kept_text import same_as_kept
from test_scoreboard import SMOKE, VALUES, measured  # noqa: F401
from toy import PAGES, REPOSITORY, Toy

import cfltr_core as cf
from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.rendering import included
from book_tools.site import front
from book_tools.site.front import FIGURE, findings, source_counts
from book_tools.site.pages import write_accompanying
from book_tools.site.scoreboard import SOURCES_PAGE
from cfltr_book.reporting.wording import OWN, SOURCES
from cfltr_core.files import write_json, write_whole


def record_figure(toy: Toy) -> None:
    folder = toy.done("91_alpha") / "figures"
    folder.mkdir(parents=True)
    about = {"caption": "Ten dots. Scale ci.", "alt": "Two scatter plots with ten dots each."}
    files = {"image": f"{FIGURE}.svg", "data": f"{FIGURE}.csv"}
    (folder / files["image"]).write_text('<svg width="9"/>')
    (folder / files["data"]).write_text("x\n1\n")
    write_json(folder / f"{FIGURE}.json", {"id": FIGURE, **about, **files})


def counts(text: str) -> list[str]:
    return re.findall(r"\*\*(\d+ [\w ]+)\*\*", text)


def test_the_findings_are_counted(measured: Toy) -> None:  # noqa: F811
    same_as_kept(PAGES / "findings.md", findings(Book(measured.root), SMOKE))


def test_what_has_no_verdict_is_counted_too(measured: Toy) -> None:  # noqa: F811
    for name in VALUES:
        (measured.done("91_alpha") / "claims" / f"{name}.json").unlink()
    lines = findings(Book(measured.root), SMOKE).splitlines()
    assert [counts(line) for line in lines[:3]] == [[f"{n} without a verdict"] for n in (2, 4, 1)]


def test_a_page_gets_what_it_includes_and_no_more(measured: Toy) -> None:  # noqa: F811
    book = Book(measured.root)

    def written(page: str, *parts: str) -> list[str]:
        write_whole(
            book.stage / f"{page}.md", "\n".join(["# Toy\n", *(f":::{{include}} {part}\n:::\n" for part in parts)])
        )
        write_accompanying(book, SMOKE)
        return sorted(path.name for path in (book.stage / page).parent.iterdir() if path.is_file())

    write_accompanying(book, SMOKE)
    assert list(book.stage.rglob("*.md")) == [], "a book without the pages"
    assert written("index") == ["index.md"]
    with pytest.raises(BookError, match=f"index.md: shows {FIGURE}, which no chapter of the book records"):
        written("index", "front.md")
    record_figure(measured)
    assert written("index", "front.md") == ["front.md", "front.svg", "index.md"]
    assert (book.stage / "front.svg").read_text() == '<svg width="9"/>'
    text = (book.stage / "front.md").read_text()
    assert ":::{image} front.svg\n:alt: Two scatter plots with ten dots each.\n:::" in text
    assert f'Ten dots. Scale ci. <a href="chapters/91_alpha.html#{FIGURE}">' in text
    assert text.endswith(findings(book, SMOKE))

    assert written(SOURCES_PAGE, "counts_x99.md") == ["sources.md"]
    assert written(SOURCES_PAGE, "counts_j20.md", "counts_n.md") == ["counts_j20.md", "counts_n.md", "sources.md"]
    of_one = (book.stage / "chapters" / "counts_j20.md").read_text()
    assert counts(of_one) == ["1 false", "1 smaller than asked", "1 not seen"]
    assert "checks 3 claims of this source: 1 that can be proved or refuted" in of_one
    none = (book.stage / "chapters" / "counts_n.md").read_text()
    assert none == source_counts(book, SMOKE, "N") == "The book checks 0 claims of this source.\n"


def test_the_books_own_pages_are_counted_and_not_typed() -> None:
    text = (REPOSITORY / "index.md").read_text()
    assert f":::{{include}} {front.INCLUDED}\n:::" in text
    assert any(FIGURE in path.read_text() for path in REPOSITORY.glob("chapters/0[12]_*.ipynb"))
    prose = re.sub(r"\[[^]]*\]\([^)]*\)|`[^`]*`|chapters/\w+|(?m:(?<=chapter )1$|^:[\w-]+:.*$)", "", text)
    assert not re.search(r"\d", prose), "a number that no run computed"
    of_sources = included(REPOSITORY / f"{SOURCES_PAGE}.md")
    assert of_sources == [f"counts_{code.lower()}.md" for code in SOURCES if code != OWN]


def test_every_call_of_the_guide_is_one_that_the_package_takes() -> None:
    text = (REPOSITORY / "chapters" / "guide.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL) + re.findall(r"`(cf\.\w+\([^`…]*\))`", text)
    called = []
    for call in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "cf":
            signature = inspect.signature(getattr(cf, call.func.attr))
            signature.bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
            called.append(call.func.attr)
    assert {"ips", "clipped", "policy_aware", "fit_proprank", "fit_propdcg", "train_sgd"} <= set(called)
    assert [name for name in re.findall(r"`cf\.(\w+)", text) if not hasattr(cf, name)] == []
