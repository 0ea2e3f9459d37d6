"""``make tables``: it computes and writes the tables of a chapter's experiments, and finds what moved."""

import json
from pathlib import Path

import pytest
from toy import Toy

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.execution.execute import computing_environment
from book_tools.execution.tables import _checked, _experiments, _written
from cfltr_book import Experiment, Run
from cfltr_book.reporting import tables

RUN = Run("smoke", "digits")


def drawn(run: Run, seed: int, setting: tables.Row, rng: object) -> dict[str, float]:
    return {"value": setting["n"] * run.rng(seed, 7).random()}


CURVE = Experiment("curve", drawn, settings=lambda run: [{"n": 1}, {"n": 2}], stream=7, rtol=1e-3)


@pytest.fixture
def book(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Book:
    toy.chapter("12_far", "import cfltr_core as cf")
    toy.chapter("91_near", "import cfltr_core as cf")
    toy.contents("12_far", "91_near", "scoreboard", "status")
    monkeypatch.setenv("CFLTR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "KEPT", toy.root / "cfltr_book" / "kept")
    return Book(toy.root)


def test_a_table_is_written_with_its_question_and_found_again(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    assert _checked(CURVE, RUN) == []
    assert "no table is kept at smoke on digits" in capsys.readouterr().out
    _written(book, CURVE, RUN, anew=False)
    path = CURVE.path("smoke", "digits")
    about = json.loads(path.with_suffix(".json").read_text())
    question = {"experiment": "curve", "scale": "smoke", "corpus": "digits", "stream": 7, "seeds": [0, 1]}
    assert about.items() >= question.items()
    assert len(about["seconds"]) == 4
    assert about["packages"]["papermill"]
    assert _checked(CURVE, RUN) == []
    assert "4 cells computed again, 0 values differ" in capsys.readouterr().out


def test_what_moved_beyond_its_tolerance_is_told_apart(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**row, **drawn(RUN, row["seed"], row, None)} for row in CURVE.rows(RUN, [0, 1])]
    rows[0]["value"] *= 1 + 1e-5
    rows[3]["value"] += 1
    cells = [{"row": row, "seconds": 0.0} for row in rows]
    tables.write_table(CURVE.path("smoke", "digits"), CURVE, RUN, cells, revision=None, dirty=None)
    (moved,) = _checked(CURVE, RUN)
    assert moved.startswith("curve, cell seed=1, n=2, column value: kept is ")
    out = capsys.readouterr().out
    assert out.count("within the tolerance: curve, cell seed=0, n=1") == 1
    assert "4 cells computed again, 2 values differ" in out


def test_experiments_are_chosen_by_name(book: Book) -> None:
    names = ["losses", "learners", "more-queries", "top-k", "heavy-clicks", "forests", "all-queries"]
    assert [one.name for one in _experiments(book, "12", [])] == names
    assert [one.name for one in _experiments(book, "12_far", ["losses"])] == ["losses"]
    for chapter, asked, message in (
        ("12", ["legs"], f"12_far has the experiments {', '.join(names)}; choose from these"),
        ("91", [], "'make paper' computes older tables"),
    ):
        with pytest.raises(UsageError, match=message):
            _experiments(book, chapter, asked)


def test_the_command_computes_under_one_set_of_kernels(toy: Toy, book: Book) -> None:
    options = ("--scale", "smoke", "--corpus", "digits", "--jobs", "1", "--experiment", "all-queries")
    done = toy.process("tables", "--chapter", "12", *options, OMP_NUM_THREADS="4")
    assert done.returncode == 0, done.stdout
    assert "kept  cfltr_book/kept/12/smoke/digits/all-queries.csv" in done.stdout
    frame, about = tables.read_table(toy.root / "cfltr_book" / "kept" / "12" / "smoke" / "digits" / "all-queries.csv")
    assert (len(frame), about["seeds"]) == (7, [0])
    same = computing_environment() | {"CFLTR_CACHE": str(book.build / "cache")}
    toy.cli("tables", "--chapter", "12", "--scale", "large", code=UsageError.exit_code, **same)
