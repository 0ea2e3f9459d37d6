"""Tables of experiments: computed cell by cell, stored at once, and kept tables that are asked, read and checked."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import joblib
import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

import cfltr_book
from cfltr_book import Experiment, Run
from cfltr_book.reporting import tables

REPOSITORY = Path(__file__).resolve().parents[3]
RUN = Run("smoke", "digits")
# A file for every call; a cell waits as long as the test holds it.
MODULE = """
import os, time
from pathlib import Path
import cfltr_book as book

def learn(run, seed, setting, rng):
    folder = Path(os.environ["TOY_CALLS"])
    (folder / f"{seed} {setting['n']} {time.monotonic_ns()}").touch()
    while (folder / f"hold {seed} {setting['n']}").exists():
        time.sleep(0.02)
    return {"value": setting["n"] * rng.random(), "odd": seed % 2 == 1, "word": f"n is {setting['n']}"}

CURVE = book.Experiment(
    "curve", learn, settings=lambda run: [{"n": 10, "cap": 0.5}, {"n": 20, "cap": 1.0}], stream=7,
    seeds=lambda run: range(run.seed, run.seed + 3), at_once=lambda run: 2,
)
"""
CELLS = ["0 10", "0 20", "1 10", "1 20", "2 10", "2 20"]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the calls; cells and kept tables lie in temporary folders, too."""
    folder = tmp_path / "calls"
    folder.mkdir()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "ch91.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setenv("TOY_CALLS", str(folder))
    monkeypatch.setenv("CFLTR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(tables.REVISION, raising=False)
    monkeypatch.setattr(tables, "KEPT", tmp_path / "kept")
    return folder


@pytest.fixture
def curve(calls: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.delitem(sys.modules, "ch91", raising=False)
    found = importlib.import_module("ch91").CURVE
    assert isinstance(found, Experiment)
    return found


def computed(calls: Path) -> list[str]:
    """Seed and number of each cell that was computed, in order, and forget them."""
    files = sorted(calls.glob("? ?? *"), key=lambda path: int(path.name.split()[2]))
    for path in files:
        path.unlink()
    return [path.name[:4] for path in files]


def keep(curve: Experiment) -> Path:
    """Compute the table and keep it."""
    cells = tables.compute(curve, RUN, curve.rows(RUN, range(3)))
    path = curve.path("smoke", "digits")
    tables.write_table(path, curve, RUN, cells, revision="0123456789", dirty=False)
    return path


def changed(path: Path, old: str, new: str) -> None:
    """Change a kept table so that nothing but its cells can tell."""
    text = path.read_text()
    assert old in text
    frame = text.replace(old, new, 1)
    path.write_text(frame)
    about = json.loads(path.with_suffix(".json").read_text())
    about["sha256"] = tables._digest(frame)
    path.with_suffix(".json").write_text(json.dumps(about))


def test_a_table_is_a_loop_over_its_cells(curve: Experiment, calls: Path) -> None:
    rows = []
    for seed in (3, 4):
        for n, cap in ((10, 0.5), (20, 1.0)):
            rows.append((seed, n, cap, n * Run("smoke", "digits").rng(seed, 7).random(), seed == 3, f"n is {n}"))
    wanted = pd.DataFrame(rows, columns=["seed", "n", "cap", "value", "odd", "word"])
    found = Run("smoke", "digits", 3).table(curve)
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    assert found.attrs == {"kept": False, "seeds": [3, 4], "words": "computed in this run: 2 seeds"}
    assert computed(calls) == ["3 10", "3 20", "4 10", "4 20"]


def test_the_number_of_workers_changes_nothing(curve: Experiment, tmp_path: Path) -> None:
    path = keep(curve)
    alone = path.read_bytes()
    shutil.rmtree(tmp_path / "cache")
    # Workers that another test left behind do not know the folder of the module.
    get_reusable_executor().shutdown(wait=True)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert keep(curve).read_bytes() == alone


def test_a_run_that_is_killed_goes_on_where_it_was(curve: Experiment, calls: Path) -> None:
    (calls / "hold 1 10").touch()
    code = "import ch91, cfltr_book as book; print(book.Run('smoke', 'digits').table(ch91.CURVE))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(calls.parent / "modules"), str(REPOSITORY)])}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    deadline = time.monotonic() + 120
    while not list(calls.glob("1 10 *")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert computed(calls) == CELLS[:3]
    (calls / "hold 1 10").unlink()
    found = RUN.table(curve)
    assert computed(calls) == CELLS[2:4]
    assert found.equals(RUN.table(curve))
    assert computed(calls) == []


def test_a_damaged_cell_is_computed_again(curve: Experiment, calls: Path, tmp_path: Path) -> None:
    before = RUN.table(curve)
    cells = sorted((tmp_path / "cache" / "cells" / "91").glob("*.json"))
    assert len(cells) == 4
    cells[0].write_text(cells[0].read_text()[:20])
    cells[1].write_text("{}")
    computed(calls)
    assert RUN.table(curve).equals(before)
    assert len(computed(calls)) == 2


def test_a_cell_depends_on_the_code_of_its_module(
    curve: Experiment, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RUN.table(curve)
    computed(calls)
    path = calls.parent / "modules" / "ch91.py"
    path.write_text(path.read_text() + "\n# changed\n")
    tables._code.cache_clear()
    RUN.table(curve)
    assert computed(calls) == CELLS[:4]


def test_a_kept_table_is_read_and_not_computed(curve: Experiment, calls: Path) -> None:
    path = keep(curve)
    assert path.relative_to(tables.KEPT).as_posix() == "91/smoke/digits/curve.csv"
    assert computed(calls) == CELLS
    found = RUN.table(curve)
    assert computed(calls) == []
    assert (found.attrs["kept"], found.attrs["seeds"]) == (True, [0, 1, 2])
    assert found.attrs["words"] == "kept: 3 seeds at smoke, revision 0123456"
    assert tables.check_question(curve, RUN, found) == curve.rows(RUN, [0, 1, 2])
    pd.testing.assert_frame_equal(found.iloc[:4], pd.DataFrame(RUN.table(curve)).iloc[:4])
    # Another first seed is another question, which nobody keeps.
    assert not Run("smoke", "digits", 1).table(curve).attrs["kept"]
    # What is read gives the very bytes back.
    assert tables.text_of(found.to_dict("records")) == path.read_text()


def test_a_table_about_something_else_is_refused(curve: Experiment) -> None:
    keep(curve)
    remedy = "make tables CHAPTER=91 SCALE=smoke CORPUS=digits EXPERIMENT=curve"
    more = replace(curve, settings=lambda run: [{"n": 10, "cap": 0.5}, {"n": 30, "cap": 1.0}])
    with pytest.raises(ValueError, match=r"it holds '0,20,1\.0' where the chapter asks for '0,30,1.0'"):
        RUN.table(more)
    fewer = replace(curve, seeds=lambda run: [0, 1])
    with pytest.raises(ValueError, match=f"it holds '2,10,0.5' where the chapter asks for None; .*{remedy}"):
        RUN.table(fewer)


def test_a_damaged_table_is_refused(curve: Experiment) -> None:
    path = keep(curve)
    path.write_text(path.read_text()[:-9])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"do not belong together .*type: make tables CHAPTER=91"):
            RUN.table(curve)
        path.with_suffix(".json").unlink(missing_ok=True)


def test_a_wrong_number_is_caught_where_the_book_is_built(
    curve: Experiment, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(curve)
    kept = RUN.table(curve)
    value = float(kept["value"].iloc[3])
    monkeypatch.setenv(tables.REVISION, "")
    computed(calls)
    assert RUN.table(curve).equals(kept)
    # These cells take no time, so that all of them are drawn.
    assert sorted(computed(calls)) == CELLS
    changed(path, repr(value), repr(value * (1 + 1e-8)))
    RUN.table(curve)
    changed(path, repr(value * (1 + 1e-8)), repr(value + 1))
    message = f"cell seed=1, n=20, cap=1.0, column value: kept is {value + 1}, computed now {value}"
    with pytest.raises(ValueError, match=f"{message}. Where the change is meant, type: make tables .* ANEW=1"):
        RUN.table(curve)
    monkeypatch.delenv(tables.REVISION)  # a reader's copy computes nothing
    assert RUN.table(curve)["value"].iloc[3] == value + 1


def test_what_differs_and_by_how_much(curve: Experiment) -> None:
    asked = {"seed": 0, "n": 10}
    loose = replace(curve, rtol=0.1)
    kept = asked | {"a": 1.0, "b": "x", "c": float("nan"), "d": True, "e": 2.0}
    assert list(tables.differences(loose, asked, kept, {**kept, "c": float("nan"), "e": None})) == []
    found = list(tables.differences(loose, asked, kept, {**kept, "a": 1.05, "b": "y", "d": False}))
    assert [beyond for _, beyond in found] == [False, True, True]
    assert found[0][0] == "curve, cell seed=0, n=10, column a: kept is 1.0, computed now 1.05"
    rough = replace(loose, rough={"a": 0.01})
    found = list(tables.differences(rough, asked, kept, {**kept, "a": 1.05, "e": 2.1}))
    assert [beyond for _, beyond in found] == [True, False]
    (found,) = tables.differences(loose, asked, kept, {**kept, "f": 1})
    assert found == ("curve, cell seed=0, n=10, column f: kept is no such column, computed now 1", True)


def test_the_drawn_cells_change_with_the_revision_and_take_less_than_a_minute_a_chapter() -> None:
    for folder in (tables.KEPT / "12" / "ci").iterdir():
        paths = sorted(folder.glob("*.csv"))
        seconds = {path.stem: json.loads(path.with_suffix(".json").read_text())["seconds"] for path in paths}
        most = tables.MOST_SECONDS / len(paths)
        draws = set()
        for revision in range(200):
            some = {name: tables.drawn(f"{revision} {name}", times, most=most) for name, times in seconds.items()}
            assert sum(seconds[name][index] for name, cells in some.items() for index in cells) <= 60
            assert all(len({*cells}) == len(cells) > 0 for cells in some.values())
            draws.add(json.dumps(some))
        assert len(draws) == 200


def test_results_that_make_no_table_are_refused(curve: Experiment) -> None:
    twice = replace(curve, settings=lambda run: [{"n": 10, "cap": 1.0}] * 2)
    with pytest.raises(ValueError, match="a seed or a setting stands twice"):
        RUN.table(twice)
    other = Experiment("other", _named_by_setting, settings=lambda run: [{"n": 1}, {"n": 2}], stream=7)
    with pytest.raises(ValueError, match="has other names than"):
        RUN.table(other)


def _named_by_setting(run: Run, seed: int, setting: tables.Row, rng: object) -> tables.Row:
    return {f"value{setting['n']}": 1}


def test_a_copy_without_a_repository_reads_the_tables_of_the_package(tmp_path: Path) -> None:
    """As in Colab: the package alone, as it is installed, in an empty folder."""
    alone = tmp_path / "site-packages"
    for package in ("cfltr_core", "cfltr_book"):
        shutil.copytree(REPOSITORY / package, alone / package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import cfltr_book as book; from cfltr_book.experiments import ch12; run = book.Run('ci', 'yahoo-like');"
        "print(book.__file__, [run.table(e).attrs['kept'] for e in (ch12.BY_LOSS, ch12.TREES, ch12.ALL_QUERIES)])"
    )
    (tmp_path / "empty").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CFLTR")}
    environment |= {"PYTHONPATH": str(alone), "HOME": str(tmp_path / "home")}
    done = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path / "empty", env=environment, text=True)
    assert done == f"{alone}/cfltr_book/__init__.py [True, True, True]\n"
    assert not (tmp_path / "home").exists()


def test_the_package_ships_every_kept_table() -> None:
    pyproject = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    package = Path(cfltr_book.__file__).parent
    patterns = pyproject["tool"]["setuptools"]["package-data"]["cfltr_book"]
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    kept = {path for path in (package / "kept").rglob("*") if path.is_file()}
    assert len(kept) >= 20
    assert kept <= shipped
    for path in package.glob("kept/**/*.csv"):
        frame, about = tables.read_table(path)
        assert len(frame) == len(about["seconds"])
        assert tables.text_of(frame.to_dict("records")) == path.read_text()
