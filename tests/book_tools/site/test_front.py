"""The front page: one figure of the run and findings that are counted, and a guide whose calls exist."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from claim_files import registry_of
from test_scoreboard import FILE, SMOKE, VALUES, measured  # noqa: F401
from toy import REPOSITORY, Toy

import cfltr_core as cf
from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.site import front
from book_tools.site.front import FIGURE, findings
from book_tools.site.pages import write_included
from cfltr_book.reporting import claim_registry
from cfltr_core.files import write_json, write_whole

ABOUT = {
    "id": FIGURE,
    "caption": "Ten dots. Scale ci.",
    "alt": "Two scatter plots with ten dots each.",
    "image": f"{FIGURE}.svg",
    "data": f"{FIGURE}.csv",
}


def record_figure(toy: Toy) -> None:
    folder = toy.done("91_alpha") / "figures"
    folder.mkdir(parents=True)
    (folder / f"{FIGURE}.svg").write_text('<svg width="9"/>')
    (folder / f"{FIGURE}.csv").write_text("x\n1\n")
    write_json(folder / f"{FIGURE}.json", ABOUT)


def test_the_findings_are_counted(measured: Toy) -> None:  # noqa: F811
    text = findings(Book(measured.root), SMOKE)
    first, second, third, *_ = text.splitlines()
    assert first.endswith("The sources make 2 of those that the book checks: **1 true**, **1 false**.")
    tally, meaning = second.split(" Here ")
    assert tally.endswith(
        "Of 4 published ones, on `yahoo-like`: **1 seen**, **1 smaller than asked**, **1 not seen**, "
        "**1 opposite seen**."
    )
    assert re.findall(r"\*([\w ]+)\*: surely", meaning) == ["smaller than asked", "not seen", "opposite seen"]
    standing = [one for one in FILE if "withdrawn" not in one and one["chapter"] == "91"]
    predicted = [one for one in standing if one.get("predicted") != "none"]
    # Its two exact claims, those that were and were not seen as predicted, and the control.
    assert (
        f"Of all {len(standing)} claims, controls and the book's own among them, {len(predicted)} had a verdict "
        "predicted before they were measured; 5 of these verdicts came out so. Of 1 controls: **1 held**." in third
    )
    assert "trial" not in third, "no reason mentions one, and what was replaced has no prediction"
    assert "Statements withdrawn (replaced or dropped) after they had been measured, " in third
    assert third.endswith("and listed with what they measured: 1.")
    assert "Computed from this run: scale smoke, corpus yahoo-like, seed 0." in text


def test_what_was_known_before_a_prediction_is_counted(measured: Toy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    reasons = {"A18-true": "A trial saw it.", "A18-seen": "trials on other seeds", "J20-small": "as in industrial use"}
    entries = [{**one, "reason": reasons.get(one["id"], one["reason"])} for one in FILE]
    # The successor of the withdrawn statement has a prediction here.
    entries = [{**one, "predicted": "inconclusive"} if one["id"] == "B-open" else one for one in entries]
    parsed = registry_of(entries)
    monkeypatch.setattr(claim_registry, "registry", lambda: {n: s for n, s in parsed.items() if s.withdrawn is None})
    third = findings(Book(measured.root), SMOKE).splitlines()[2]
    assert (
        "6 of these verdicts came out so; 1 of the 10 took the place of a statement that had been measured, and the "
        "reasons of 2 mention a trial. Of 1 controls" in third
    )


def test_what_has_no_verdict_is_counted_too(measured: Toy) -> None:  # noqa: F811
    for name in VALUES:
        (measured.done("91_alpha") / "claims" / f"{name}.json").unlink()
    first, second, third, *_ = findings(Book(measured.root), SMOKE).splitlines()
    assert first.endswith("checks: **2 without a verdict**.")
    assert second.endswith("`yahoo-like`: **4 without a verdict**.")
    assert "; 0 of these verdicts came out so. Of 1 controls: **1 without a verdict**." in third


def test_the_figure_lies_beside_the_front_page(measured: Toy) -> None:  # noqa: F811
    book = Book(measured.root)
    record_figure(measured)
    write_whole(book.stage / "index.md", "# Toy\n\n:::{include} front.md\n:::\n")
    write_included(book, SMOKE)
    text = (book.stage / "front.md").read_text()
    assert (book.stage / "front.svg").read_text() == '<svg width="9"/>'
    assert ":::{image} front.svg\n:alt: Two scatter plots with ten dots each.\n:::" in text
    assert f'Ten dots. Scale ci. <a href="chapters/91_alpha.html#{FIGURE}">' in text
    assert text.endswith(findings(book, SMOKE))


def test_a_front_page_of_its_own_gets_nothing_and_a_missing_figure_is_named(measured: Toy) -> None:  # noqa: F811
    book = Book(measured.root)
    write_whole(book.stage / "index.md", "# Toy\n")
    write_included(book, SMOKE)
    assert [path.name for path in book.stage.iterdir()] == ["index.md"]
    write_whole(book.stage / "index.md", "# Toy\n\n:::{include} front.md\n:::\n")
    with pytest.raises(BookError, match=f"index.md: shows {FIGURE}, which no chapter of the book records"):
        write_included(book, SMOKE)


def test_the_books_own_front_page_is_counted_and_not_typed() -> None:
    text = (REPOSITORY / "index.md").read_text()
    assert f":::{{include}} {front.INCLUDED}\n:::" in text
    assert any(FIGURE in path.read_text() for path in REPOSITORY.glob("chapters/0[12]_*.ipynb"))
    prose = re.sub(r"\[[^]]*\]\([^)]*\)|`[^`]*`|chapters/\w+|(?m:(?<=chapter )1$|^:[\w-]+:.*$)", "", text)
    assert not re.search(r"\d", prose), "a number that no run computed"


def calls_of_the_guide() -> list[ast.Call]:
    text = (REPOSITORY / "chapters" / "guide.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    blocks += re.findall(r"`(cf\.\w+\([^`…]*\))`", text)
    trees = [ast.parse(block) for block in blocks]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_every_call_of_the_guide_is_one_that_the_package_takes() -> None:
    called = []
    for call in calls_of_the_guide():
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "cf":
            signature = inspect.signature(getattr(cf, call.func.attr))
            signature.bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
            called.append(call.func.attr)
    assert {"ips", "clipped", "policy_aware", "fit_proprank", "fit_propdcg", "train_sgd"} <= set(called)
    text = (REPOSITORY / "chapters" / "guide.md").read_text()
    for name in re.findall(r"`cf\.(\w+)", text):
        assert hasattr(cf, name), name


def test_the_picture_of_the_readme_is_kept_with_its_numbers(toy: Toy) -> None:
    toy.chapter("91_alpha")
    toy.contents("91_alpha")
    book = Book(toy.root)
    kept = book.root / front.PICTURE
    kept.unlink()
    front.keep_picture(book)
    assert not kept.exists(), "a book without the figure has nothing to keep"
    record_figure(toy)
    front.keep_picture(book)
    text = kept.read_text()
    # Shown by itself, as on the page of the repository, it is white.
    assert text.endswith('<svg style="background: white" width="9"/>')
    assert f"<!-- {front.HEADING}\nx\n1\n-->\n" in text
