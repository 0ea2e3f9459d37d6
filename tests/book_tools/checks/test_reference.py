"""The run's numbers are compared with the committed ones."""

import json
from pathlib import Path

import pytest
from toy import FIGURE, RECORD, Toy

from book_tools.book import Book
from book_tools.checks.reference import DEFAULT, Tolerance, compare_csv, read_tolerances, same_record, update_reference
from book_tools.errors import BookError
from book_tools.parameters import Parameters
from book_tools.site import front


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n,name,y\n1,a,2.0000000001\n2,b,nan\n", None),
        ("n,name,z\n1,a,2\n2,b,nan\n", "columns are"),
        ("n,name,y\n1,a,2\n", "1 rows, the reference has 2"),
        ("n,name,y\n1,a,2.001\n2,b,nan\n", "row 1, y: 2.001, the reference has 2"),
        ("n,name,y\n1,A,2\n2,b,nan\n", "row 1, name: A, the reference has a"),
        ("n,name,y\n1,a,2\n2,b,0\n", "row 2, y: 0, the reference has nan"),
        ("n,name,y\n1,a,2\n2,b,nan,5\n", "row 2: 4 cells, the reference has 3"),
        ("", "columns are"),
    ],
)
def test_two_tables(tmp_path: Path, text: str, message: str | None) -> None:
    reference, run = tmp_path / "reference.csv", tmp_path / "run.csv"
    reference.write_text("n,name,y\n1,a,2\n2,b,nan\n")
    run.write_text(text)
    problems = compare_csv(run, reference, Tolerance())
    assert len(problems) == (message is not None)
    assert (message or "") in "".join(problems)


def test_a_number_agrees_within_the_tolerance_and_a_phrase_word_by_word() -> None:
    wide, inf = Tolerance(rtol=0.1, atol=0.01), float("inf")
    pairs = ((1.05, 1.0, True), (1.2, 1.0, False), (0.01, 0.0, True), (inf, 1.0, False), (-inf, -inf, True))
    assert [wide.agree(value, reference) for value, reference, _ in pairs] == [agree for *_, agree in pairs]
    for value, reference in ((0.5, 0.5 + 1e-12), (None, None), ("wins", "wins")):
        assert same_record(value, reference, Tolerance())
    for value, reference in ((0.5, 0.51), ("wins", "loses"), ("0.50", "0.5"), ("0.5", 0.5), (0.5, "0.5")):
        assert not same_record(value, reference, Tolerance())


def test_an_exception_from_the_default_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "tolerances.yml"
    path.write_text("default: {rtol: 1.0e-3}\nfigures: {fig-a: {atol: 1, reason: counts of a few}}\n")
    assert read_tolerances(path) == {
        DEFAULT: Tolerance(rtol=1e-3),
        ("figure", "fig-a"): Tolerance(rtol=1e-3, atol=1.0),
    }
    for text, message in (
        ("figures: {fig-a: {atol: 1}}\n", "figures.fig-a has no reason"),
        ("default: {relative: 1}\n", "default has relative; use rtol, atol, reason"),
    ):
        path.write_text(text)
        with pytest.raises(BookError, match=message):
            read_tolerances(path)


def test_a_run_against_its_reference(executed: Toy) -> None:
    assert "no reference" in executed.cli("verify")
    executed.cli("accept")
    assert "1 figures and 1 numbers compared with the reference" in executed.cli("verify")

    folder = executed.root / "tests" / "reference" / "smoke"
    (folder / "fig-toy.csv").write_text("name,length\nbar,60.26\n")
    (folder / "fig-gone.csv").write_text("x\n1\n")
    (folder / "records.json").write_text(json.dumps({"toy-length": 60.5, "toy-gone": 1}))
    *problems, summary = executed.cli("verify", code=1).splitlines()
    assert sorted(problems) == [
        "figure fig-gone: only the reference has it",
        "figure fig-toy: row 1, length: 60.25, the reference has 60.26",
        "record toy-gone: only the reference has it",
        "record toy-length: 60.25, the reference has 60.5",
    ]
    assert summary.startswith("verify: 4 problems")
    one = executed.cli("verify", "--chapter", "91", code=1)
    assert "verify: 2 problems" in one, "what no figure has may belong to another chapter"
    executed.cli("verify", "--chapter", "92")
    (folder / "fig-toy.csv").unlink()
    (folder / "records.json").write_text("{}")
    missing = executed.cli("verify", code=1)
    assert "figure fig-toy: the reference has none" in missing
    assert "record toy-length: the reference has none" in missing


def test_one_chapter_is_accepted_alone(executed: Toy) -> None:
    """Its numbers are written, whether the others are fresh or not; what belongs to these stays on record."""
    executed.chapter("92_beta", RECORD.replace("toy-length", "toy-width"))
    executed.cli("run", "--scale", "smoke")
    executed.cli("accept")
    executed.chapter("91_alpha", FIGURE.replace("60 + seed", "70 + seed"), RECORD.replace("60.25", "70.25"))
    executed.chapter("92_beta", "x = 'changed, and not run again'")
    executed.cli("run", "--scale", "smoke", "--chapter", "91")
    executed.cli("verify", "--chapter", "91", code=1)
    executed.cli("accept", code=2)
    executed.cli("accept", "--chapter", "91")
    folder = executed.root / "tests" / "reference" / "smoke"
    assert json.loads((folder / "records.json").read_text()) == {"toy-length": 70.25, "toy-width": 60.25}
    assert (folder / "fig-toy.csv").read_text() == "name,length\nbar,70.25\n"
    executed.cli("verify", "--chapter", "91")


def test_a_run_that_was_changed_by_hand(executed: Toy) -> None:
    (executed.done("91_alpha") / "figures" / "fig-toy.csv").write_text("name,length\nbar,61.25\n")
    assert "91_alpha: figures/fig-toy.csv was changed by hand after the run" in executed.cli("verify", code=2)


def test_the_picture_of_the_readme_goes_with_the_numbers_of_the_book(
    executed: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written with the reference numbers at the scale of the site, white as it stands alone, and only then."""
    book, picture = Book(executed.root), executed.root / front.PICTURE
    picture.unlink()
    update_reference(book, Parameters(), book.chapters())
    assert not picture.exists(), "a book without the figure has nothing to keep"
    monkeypatch.setattr(front, "FIGURE", "fig-toy")
    update_reference(book, Parameters("smoke"), book.chapters())
    assert not picture.exists(), "these are numbers at scale smoke"
    update_reference(book, Parameters(), book.chapters())
    numbers = (executed.root / "tests" / "reference" / "ci" / "fig-toy.csv").read_text()
    assert f"<!-- {front.HEADING}\n{numbers}-->\n" in picture.read_text()
    assert '<svg style="background: white" ' in picture.read_text()


def test_a_name_that_two_chapters_wrote_replaces_nothing(executed: Toy) -> None:
    """Where a source does not show its names, the run does; the committed numbers are left as they were."""
    executed.cli("accept")
    folder = executed.root / "tests" / "reference" / "smoke"
    before = {path.name: path.read_text() for path in folder.iterdir()}
    executed.chapter("92_beta", RECORD.replace("60.25", "1.5"))
    executed.cli("run", "--scale", "smoke")
    for command in ("accept", "verify"):
        assert "toy-length: written by both 91_alpha and 92_beta; rename one" in executed.cli(command, code=1)
    assert {path.name: path.read_text() for path in folder.iterdir()} == before
