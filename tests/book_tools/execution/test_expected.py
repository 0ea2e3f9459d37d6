"""What is said before and while chapters run: how long they take, and how far they are."""

import csv
import json
from pathlib import Path

import pytest
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.execution import run as runner
from book_tools.execution.times import SECONDS, announcement, expected_seconds, time_so_far
from book_tools.parameters import Parameters


def test_every_chapter_has_its_seconds() -> None:
    with SECONDS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["chapter"] for row in rows] == [chapter.name for chapter in Book(REPOSITORY).chapters()]
    assert all(float(row[column]) > 0 for row in rows for column in ("smoke", "ci", "collection"))


def test_the_last_run_here_tells_best(executed: Toy) -> None:
    book, last = Book(executed.root), Parameters(scale="smoke")
    timed = {name: about["seconds"] for name, about in json.loads(book.times.read_text()).items()}
    chapters = book.chapters()
    assert expected_seconds(book, chapters, last) == timed
    assert expected_seconds(book, chapters[:1], last) == {"91_alpha": timed["91_alpha"]}
    assert expected_seconds(book, chapters, Parameters(scale="ci")) == {}


def test_a_collection_takes_longer_than_a_generated_corpus() -> None:
    book = Book(REPOSITORY)
    chapters = book.chapters()
    known = {c: expected_seconds(book, chapters, Parameters("ci", c, 0)) for c in ("digits", "letor:none")}
    assert sum(known["letor:none"].values()) > sum(known["digits"].values())
    assert expected_seconds(book, chapters, Parameters("paper", "letor:none", 0)) == {}


def test_the_announcement() -> None:
    assert announcement({"a": 200.0, "b": 160.0}, 2, 2).startswith("about 3 minutes")
    assert announcement({"a": 300.0, "b": 60.0}, 2, 2).startswith("about 5 minutes"), "the longest"
    assert announcement({"a": 85.0}, 1, 1) == "about a minute"
    assert announcement({"a": 300.0}, 2, 1).startswith("how long 1 of them take is not known")


def test_of_a_collection_the_announcement_is_a_bound(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    toy.chapter("91_alpha", "1")
    toy.contents("91_alpha")
    monkeypatch.setattr(runner, "expected_seconds", lambda *_: {"91_alpha": 180.0})
    monkeypatch.setattr(runner, "_execute_all", lambda *_: [])
    for corpus, words in (("letor:mine", "  at most about 3 minutes"), ("digits", "  about 3 minutes")):
        runner.run(Book(toy.root), Parameters("smoke", corpus, 0))
        assert capsys.readouterr().out.splitlines()[1].startswith(words)


def test_what_is_said_of_the_time_so_far() -> None:
    assert time_so_far(2.0, None) == "2 min so far"
    assert [time_so_far(18.0, 17.2), time_so_far(1.2, 0.4)] == ["18 of about 17 min", "1 of about 1 min"]
    assert time_so_far(36.0, 17.2) == "36 min so far, longer than the 17 expected"
    assert time_so_far(2.2, 0.4) == "2 min so far, longer than the 1 expected"


def test_a_long_chapter_says_how_far_it_is(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.chapter("91_alpha", "import time\ntime.sleep(0.5)")
    toy.contents("91_alpha")
    monkeypatch.setattr(runner, "PROGRESS_SECONDS", 0.1)
    runner.run(Book(toy.root), Parameters(scale="smoke"))
    said = capsys.readouterr().out.splitlines()
    assert "how long 1 of them take is not known" in said[1]
    cells = len(json.loads((toy.done("91_alpha") / "notebook.ipynb").read_text())["cells"])
    assert any(f"… 91 at cell {cells - 1} of {cells}; 1 to go; 0 min so far" in line for line in said)
