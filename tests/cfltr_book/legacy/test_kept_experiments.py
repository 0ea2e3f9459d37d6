"""``run.kept``: computed where nothing is kept, read where a table is, computed and written in a paper run."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.legacy import kept, kept_questions, paper_run

RUN = Run("smoke", "digits")
SETTINGS: list[dict[str, Any]] = [{"n": 10, "cap": None}, {"n": 20, "cap": 0.5}, {"n": 30, "cap": 1}]


def learn(seed: int, setting: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {"value": setting["n"] * rng.random(), "word": "even" if seed % 2 == 0 else "odd"}


def loop(seeds: list[int], settings: list[dict[str, Any]], stream: int) -> list[dict[str, Any]]:
    """The rows of a table, by hand."""
    rows = []
    for seed in seeds:
        for setting in settings:
            draw = np.random.default_rng([seed, stream]).random()
            rows.append({"seed": seed, "n": setting["n"], "value": setting["n"] * draw})
    return rows


def ask(run: Run = RUN, function: Any = learn, **changes: Any) -> kept.Kept:
    name = changes.pop("name", "curve")
    arguments = {"settings": SETTINGS, "stream": 7, "seeds": [0, 1, 2], "again": [(0, 0), (2, 1)]} | changes
    return run.kept(name, function, **arguments)


def counted(calls: list[tuple[int, int]]) -> Any:
    """``learn``, which notes the seed and the number of each call."""

    def counting(seed: int, setting: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        calls.append((seed, setting["n"]))
        return learn(seed, setting, rng)

    return counting


def never(*arguments: Any) -> Any:
    raise AssertionError("nothing is to be computed")


def rows_of(table: kept.Kept) -> list[dict[str, Any]]:
    return table.frame[["seed", "n", "value"]].to_dict("records")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("CFLTR_KEPT", "CFLTR_KEEP")):
            monkeypatch.delenv(name)


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A paper run of chapter 07."""
    monkeypatch.setenv(kept_questions.FOLDER, str(tmp_path / "07"))
    monkeypatch.setenv(paper_run.STORE, str(tmp_path / "store"))
    monkeypatch.setenv(paper_run.LINES, str(tmp_path / "lines.txt"))
    monkeypatch.setenv(paper_run.ABOUT, json.dumps({"revision": "0123456789", "dirty": False}))
    return tmp_path / "07" / "smoke" / "digits"


@pytest.fixture
def reading(paper: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ordinary run that finds the table."""
    ask()
    monkeypatch.delenv(paper_run.STORE)
    return paper


def test_with_nothing_set_the_first_seeds_are_computed() -> None:
    table = ask(live=2)
    assert rows_of(table) == loop([0, 1], SETTINGS, 7)
    assert list(table.frame.columns) == ["seed", "n", "cap", "value", "word"]
    assert table.frame["word"].tolist() == ["even"] * 3 + ["odd"] * 3
    assert (table.kept, table.seeds, table.revision) == (False, (0, 1), None)
    assert table.words == "computed in this run: 2 seeds"
    assert ask(live=9).seeds == (0, 1, 2)
    assert RUN.kept("curve", learn, settings=SETTINGS, stream=7).seeds == (0,)
    assert RUN.kept_elsewhere("curve", scale="paper", corpus="yahoo-like") is None


def test_a_paper_run_writes_what_a_loop_gives(paper: Path) -> None:
    table = ask()
    assert rows_of(table) == loop([0, 1, 2], SETTINGS, 7)
    assert (table.kept, table.seeds, table.revision) == (True, (0, 1, 2), "0123456789")
    assert table.words == "kept: 3 seeds at smoke, revision 0123456"
    about = json.loads((paper / "curve.json").read_text())
    assert about["stream"] == [7]
    assert about["cut"] is False
    assert len(about["seconds"]) == 9
    lines = (paper.parents[2] / "lines.txt").read_text().splitlines()
    assert lines[0] == "curve: 3 seeds, 3 settings"
    assert re.fullmatch(r"curve, seed 0, n=10, cap=None: \d\.\d s", lines[1])
    assert len(lines) == 1 + 9 + 1


def test_a_paper_run_computes_the_tables_asked_for(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paper_run.TABLES, "eta other")
    left = ask()
    assert (left.kept, left.seeds, left.words) == (False, (), "not asked for")
    assert list(left.frame.columns) == ["seed", "n", "cap"]
    assert len(left.frame) == 0
    assert ask(name="eta").seeds == (0, 1, 2)
    assert [path.name for path in paper.glob("*.csv")] == ["eta.csv"]


def test_a_paper_run_reads_what_is_kept_of_the_tables_that_it_is_not_asked_for(
    paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()
    monkeypatch.setenv(paper_run.TABLES, "eta")
    assert rows_of(ask(function=never)) == loop([0, 1, 2], SETTINGS, 7)
    # Of a table about something else there is nothing to build on, and no reason to stop.
    assert ask(function=never, stream=8).words == "not asked for"
    (paper / "curve.csv").write_text("damaged")
    assert ask(function=never).words == "not asked for"


def test_seeds_are_cut(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paper_run.SEEDS, "2")
    assert ask().words == "kept: 2 of 3 seeds at smoke, revision 0123456"
    monkeypatch.delenv(paper_run.STORE)
    table = ask(again=[(1, 2)])
    assert rows_of(table) == loop([0, 1], SETTINGS, 7)
    assert table.seeds == (0, 1)
    with pytest.raises(ValueError, match=r"again=\(2, 1\) is not in it, since it was cut to 2 seeds; choose another"):
        ask()


def test_a_paper_run_adds_the_seeds_that_a_table_lacks(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paper_run.SEEDS, "1")
    monkeypatch.setenv(paper_run.GO_ON, "1")
    assert ask().seeds == (0,)  # nothing is kept yet
    monkeypatch.setenv(paper_run.SEEDS, "2")
    monkeypatch.setenv(paper_run.ABOUT, json.dumps({"revision": "abcdef0123", "dirty": True}))
    calls: list[tuple[int, int]] = []
    two = ask(function=counted(calls))
    assert calls == [(0, 10), (1, 10), (1, 20), (1, 30)]  # a cell that each build checks, and the seed that lacked
    assert rows_of(two) == loop([0, 1], SETTINGS, 7)
    assert two.words == "kept: 2 of 3 seeds at smoke, revisions 0123456 and abcdef0 with changes"
    about = json.loads((paper / "curve.json").read_text())
    assert about["earlier"] == [
        {"seeds": [0], "revision": "0123456789", "dirty": False, "python": None, "packages": None, "jobs": 1}
    ]
    assert (about["seeds"], about["cut"], len(about["seconds"])) == ([0, 1], True, 6)
    monkeypatch.delenv(paper_run.SEEDS)
    monkeypatch.setenv(paper_run.STORE, str(paper.parents[2] / "another store"))
    calls.clear()
    three = ask(function=counted(calls), again=[(2, 0)])  # no such cell yet: the fastest is checked instead
    assert calls[1:] == [(2, 10), (2, 20), (2, 30)]
    assert rows_of(three) == loop([0, 1, 2], SETTINGS, 7)
    whole = (paper / "curve.json").read_bytes()
    assert [part["seeds"] for part in json.loads(whole)["earlier"]] == [[0], [1]]
    monkeypatch.setenv(paper_run.SEEDS, "1")
    assert ask().seeds == (0, 1, 2)  # what is there is never cut
    assert (paper / "curve.json").read_bytes() == whole
    monkeypatch.delenv(paper_run.SEEDS)
    monkeypatch.delenv(paper_run.GO_ON)
    assert rows_of(ask()) == loop([0, 1, 2], SETTINGS, 7)
    assert "earlier" not in json.loads((paper / "curve.json").read_text())


def test_a_paper_run_makes_of_a_table_one_of_more_seeds(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(seeds=range(2), again=[]).earlier == ()
    monkeypatch.setenv(paper_run.GO_ON, "1")
    four = ask(seeds=range(4), again=[])
    assert rows_of(four) == loop([0, 1, 2, 3], SETTINGS, 7)
    assert (four.seeds, four.earlier) == ((0, 1, 2, 3), (0, 1))
    about = json.loads((paper / "curve.json").read_text())
    assert (about["seeds_asked"], about["cut"]) == ([0, 1, 2, 3], False)
    assert [(part["seeds_asked"], part["seeds"]) for part in about["earlier"]] == [([0, 1], [0, 1])]
    for fewer in (range(3), range(1, 8)):  # what was asked for are not the first of these
        with pytest.raises(ValueError, match=r"^kept table curve: its seeds are \[0, 1, 2, 3\], not \[\d, "):
            ask(seeds=fewer, again=[])
    monkeypatch.delenv(paper_run.STORE)  # who only reads still asks for what the table was asked for
    with pytest.raises(ValueError, match=r"^kept table curve: its seeds are \[0, 1, 2, 3\], not \[0, "):
        ask(seeds=range(8), again=[])


def test_a_paper_run_adds_no_seed_to_a_table_that_it_cannot_find_again(
    paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paper_run.SEEDS, "1")
    ask()
    before = (paper / "curve.csv").read_bytes()
    monkeypatch.delenv(paper_run.SEEDS)
    monkeypatch.setenv(paper_run.GO_ON, "1")
    with pytest.raises(ValueError, match=r"^kept cell curve, seed 0, n=10, cap=None, column value: kept is"):
        ask(function=lambda seed, setting, rng: {"value": 0.0, "word": "even"})
    with pytest.raises(ValueError, match=r"^kept table curve: its stream is \[7\], not \[8\]"):
        ask(stream=8)
    assert (paper / "curve.csv").read_bytes() == before


def test_a_kept_table_is_read_and_two_cells_are_computed(reading: Path) -> None:
    calls: list[tuple[int, int]] = []
    table = ask(function=counted(calls))
    assert calls == [(0, 10), (2, 20)]
    assert rows_of(table) == loop([0, 1, 2], SETTINGS, 7)
    assert table.words == "kept: 3 seeds at smoke, revision 0123456"
    # Another seed, scale or corpus has no table.
    for run in (Run("smoke", "digits", 3), Run("ci", "digits"), Run("smoke", "yahoo-like")):
        assert not ask(run, seeds=[5], again=[]).kept


def test_a_cell_that_differs_is_an_error(reading: Path) -> None:
    def other(seed: int, setting: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        found = learn(seed, setting, rng)
        return found | {"value": found["value"] * (1 + 1e-5)} if setting["n"] == 20 else found

    value = loop([2], [SETTINGS[1]], 7)[0]["value"]
    message = f"curve, seed 2, n=20, cap=0.5, column value: kept is {value}, computed again {value * (1 + 1e-5)}."
    remedy = "make paper CHAPTER=07 SCALE=smoke CORPUS=digits TABLES=curve"
    with pytest.raises(ValueError, match=f"^kept cell {re.escape(message)}.*{remedy}$"):
        ask(function=other)
    assert ask(function=other, rtol=1e-4).kept
    assert ask(function=other, again=[(0, 0)]).kept
    with pytest.raises(ValueError, match="it has the columns value, word, and computed again value"):
        ask(function=lambda seed, setting, rng: {"value": 1.0})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"seeds": [0, 1, 3]}, r"its seeds are \[0, 1, 2\], not \[0, 1, 3\]"),
        ({"stream": 8}, r"its stream is \[7\], not \[8\]"),
        ({"settings": SETTINGS[:2]}, r"it has 3 settings, not 2"),
        ({"settings": [SETTINGS[1], SETTINGS[0], SETTINGS[2]]}, r"row 0 is about n=10, not n=20"),
        ({"settings": [s | {"n": s["n"] + 1} for s in SETTINGS]}, r"row 0 is about n=10, not n=11"),
        ({"settings": [{"m": 1}, {"m": 2}, {"m": 3}]}, r"its columns are seed, n, cap, value, word; expected seed, m"),
    ],
)
def test_a_table_about_something_else_is_an_error(reading: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=rf"^kept table curve: {problem}.*make paper CHAPTER=07 SCALE=smoke"):
        ask(**changes)


def test_tables_of_other_places_are_shown_beside(reading: Path) -> None:
    table = Run("ci", "yahoo-like", 4).kept_elsewhere("curve", scale="smoke", corpus="digits")
    assert table is not None
    assert rows_of(table) == loop([0, 1, 2], SETTINGS, 7)
    assert table.words == "kept: 3 seeds at smoke on digits, revision 0123456"
    assert RUN.kept_elsewhere("eta") is None


def test_what_a_paper_run_cannot_trust_is_refused(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the package is that of the key, also in a worker that starts later."""
    answers = iter(["before", "before", "after"])  # in compute, in the key, in the first cell
    monkeypatch.setattr(paper_run.digests, "package_digest", lambda: next(answers))
    with pytest.raises(ValueError, match=r"n=10, cap=None: the code of the book's packages has changed"):
        ask()


def test_words_and_names() -> None:
    kept_questions.check_name("a-1")
    assert kept_questions.cell_name("eta", 3, {"n": 1, "cap": None}) == "eta, seed 3, n=1, cap=None"
    assert kept_questions.number_of(1, "seed") == "1 seed"
    assert kept_questions.flat_result({"a": 1}, ["seed"], "x") == {"a": 1}
    assert (paper_run.is_on(), paper_run.asks_for("anything"), paper_run.goes_on()) == (False, True, False)
    question = kept_questions.question_of(RUN, "eta", learn, settings=SETTINGS, stream=1, seeds=[2])
    assert question.columns == ["seed", "n", "cap"]
