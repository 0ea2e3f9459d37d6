"""Marks in prose: what a page, a copy and paper show of a sentence's claim, and what the check refuses."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from colab_book import AGREES, LATER, TURNS, UNMEASURED
from toy import Toy
from visible import path_words

from book_tools.book import Book
from book_tools.cli import main
from book_tools.colab.marks import Mark, box_of, mark_of
from book_tools.colab.repository import origin_of
from book_tools.notebooks import source_line
from book_tools.parameters import Parameters
from book_tools.site.stage import stage
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claims import Measurement, judge

CLAIMS = (AGREES, TURNS, UNMEASURED)
VERDICTS = {
    "supported": [2.0, 2.01, 1.99],
    "contradicted": [5.0, 5.01, 4.99],
    "inconclusive": [2.0, 9.0, -5.0],
    "no verdict": [float("nan")],
}


def on_a_run(reported: str, verdict: str | None, scale: str = "ci") -> Mark:
    one = next(iter(claim_registry.registry().values()))
    spec = replace(one, kind="number", value=2.0, margin=0.5, nature="empirical", scale="ci", corpora=("digits",))
    mark = Mark(spec, reported)
    if verdict is None:
        return mark
    result = judge(spec, {"values": VERDICTS[verdict]})
    assert result.verdict == verdict
    return replace(mark, measured=Measurement(result, scale, "digits", {}))


SYMBOLS = {"✓": "agrees", "✗": "disagrees", "○": "cannot tell"}


@pytest.mark.parametrize(
    ("reported", "verdict", "symbol", "words"),
    [
        ("supported", "supported", "✓", "seen"),
        ("contradicted", "contradicted", "✓", "opposite seen"),
        ("inconclusive", "inconclusive", "✓", "undecided"),
        ("supported", "contradicted", "✗", "opposite seen"),
        ("contradicted", "supported", "✗", "seen"),
        ("inconclusive", "supported", "✗", "seen"),
        ("supported", "inconclusive", "○", "undecided"),
        ("inconclusive", "no verdict", "○", "no verdict"),
        ("supported", None, "○", "not measured"),
    ],
)
def test_a_mark_compares_the_sentence_with_the_run(reported: str, verdict: str | None, symbol: str, words: str) -> None:
    mark = on_a_run(reported, verdict)
    assert mark.symbol == symbol
    assert mark.words == f"This run {SYMBOLS[symbol]}: {words} ({mark.spec.id})"
    assert ("turned" in box_of([mark])) == (symbol == "✗")
    assert ("which decides nothing" in on_a_run(reported, verdict, "smoke").words) == (verdict is not None)


@pytest.mark.parametrize("content", ["", AGREES, f"{AGREES} true", f"supported {AGREES}", f"{AGREES}  supported"])
def test_a_mark_is_a_claim_and_a_verdict(content: str) -> None:
    with pytest.raises(ValueError, match="expected a claim and one of supported, contradicted, inconclusive"):
        mark_of(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"So it is{{claim}}`{AGREES} supported`.", None),
        ("Write ``{claim}`nobody supported` `` so.\n\n```\n{claim}`nobody supported`\n```", None),
        (
            f"So{{claim}}`{AGREES} contradicted`.",
            f"reports contradicted for {AGREES}, but the accepted verdict",
        ),
        ("So{claim}`N-nobody supported`.", "id is 'N-nobody': no such claim"),
        (f"So{{claim}}`{next(iter(claim_registry.withdrawn()))} supported`.", "this claim was withdrawn"),
        (f"- :::{{note}}\n  So{{claim}}`{AGREES} true`.\n  :::", "expected a claim and one of supported, contradicted"),
    ],
)
def test_the_check_names_chapter_cell_and_claim(
    toy: Toy, capsys: pytest.CaptureFixture[str], text: str, message: str | None
) -> None:
    toy.chapter("91_alpha", "x = 1", f"Text\n\n{text}")
    toy.contents("91_alpha")
    assert main(["--root", str(toy.root), "check"]) == (0 if message is None else 1)
    said = capsys.readouterr().err
    assert said.startswith("" if message is None else "91_alpha.ipynb, cell 3: ")
    assert (message or "") in said


def test_marks_on_the_page_in_the_copies_and_on_paper(rebuilt: Toy) -> None:
    page, board = rebuilt.page("chapters/01_toy"), rebuilt.page("chapters/scoreboard")
    marks = page.select("article a.mark")
    assert [mark.get_text() for mark in marks] == ["✓", "✗", "○"]
    for mark, id in zip(marks, CLAIMS, strict=True):
        assert mark["href"] == f"scoreboard.html#claim-{id}"
        assert mark["aria-label"] == mark["title"]
        (block,) = board.select(f'[id="claim-{id}"]')
        assert [data.get_text() for data in block.select("a.download")] == ["numbers (CSV)"] * (id != UNMEASURED)
    assert marks[1]["aria-label"] == f"This run disagrees: false ({TURNS})"
    (box,) = page.select("article .turned")
    (item,) = box.select("li")
    statement = " ".join(claim_registry.registry()[TURNS].statement.split())
    assert item.get_text() == f"{statement} This run: false."
    assert item.a["href"] == "#mark-2" == f"#{marks[1]['id']}"
    assert page.select_one("h1").find_next("div", class_="turned") is box
    for folder, suffix in (("colab", "†"), ("read", "")):
        cells = json.loads((rebuilt.root / "_build" / "html" / folder / "01_toy.ipynb").read_text())["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        sentences = re.findall(r"Sentence \d\[(.+?)\]\(\S+/scoreboard.html#claim-(.+?)\)\.", texts[-1])
        assert sentences == [(f"{symbol}{suffix}", id) for symbol, id in zip("✓✗○", CLAIMS, strict=True)]
        assert "✓ stands behind a sentence" in texts[0]

    book = Book(rebuilt.root)
    (chapter,) = book.select(["01"])

    def staged(launch: bool) -> list[str]:
        stage(book, {}, origin_of(book), Parameters("smoke"), launch=launch)
        cells = json.loads((book.stage / "chapters" / "01_toy.ipynb").read_text())["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]

    first, last = staged(launch=False)
    assert last.startswith("Text\n\nSentence 0✓.\n\nSentence 1✗.\n\nSentence 2○.\n\nIt is ")
    assert f"\n- {statement} This run: false" in first.replace("\\", "")
    # A message about a staged page counts the lines of the chapter.
    first, *_ = staged(launch=True)
    place = first.splitlines().index("It says hello.") + 1
    assert source_line(SimpleNamespace(source=first), place) == 3  # type: ignore[arg-type]
    # Where nothing turned there is no box.
    (book.folder_of(chapter) / "claims" / f"{TURNS}.json").unlink()
    assert "turned" not in "".join(staged(launch=True))


def test_a_claim_that_does_not_gate_and_a_number_that_is_not_there_never_cost_the_site(built: Toy) -> None:
    """With everything that comes with them: what NumPy says of them on the error stream."""
    printed = (built.root / "_build" / "printed.txt").read_text()
    warned = "RuntimeWarning: invalid value encountered in log10"
    assert f"01_toy, cell 2: {warned} (not shown on the page)" in printed
    assert "1 no verdict" in printed
    text = built.page("chapters/01_toy").get_text()
    assert f"Claim {LATER}: no verdict." in text
    assert "It is —." in text
    assert "RuntimeWarning" not in text
    assert "No verdict" in built.page("chapters/scoreboard").get_text()


def test_marks_are_no_words_of_the_path() -> None:
    assert path_words(f"It is so.{{claim}}`{AGREES} supported` And so on.") == path_words("It is so. And so on.") == 6
