"""Kept tables: computed by a paper run, which can be stopped and goes on, and left alone by every other command."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from toy import Toy, wait_until

# A line for every call, and a wait as long as a gate is closed: the test sees what was computed, and when.
LEARN = """
import os, time
from pathlib import Path

def learn(seed, setting, rng):
    folder = Path(os.environ["TOY_CALLS"])
    (folder / f"{seed} {setting['n']} {time.monotonic_ns()}").touch()
    while setting["n"] == 30 and (folder / "closed").exists():
        (folder / "beat").touch()
        time.sleep(0.05)
    return {"value": setting["n"] * rng.random(), "word": "even" if seed % 2 == 0 else "odd"}
"""
CALLS = """
settings = [{"n": 10, "cap": None}, {"n": 20, "cap": 0.5}, {"n": 30, "cap": 1}]
curve = run.kept("curve", learn, settings=settings, stream=7, again=[(0, 0), (1, 1)])
eta = run.kept("eta", learn, settings=[{"n": 1}], stream=8, again=[])
if run.scale != "smoke":
    run.kept("larger", learn, settings=[{"n": 1}], stream=9, again=[])
"""
SHOW = 'print(curve.words, "|", eta.words, "|", len(curve.frame), curve.kept, untagged)'
PLACE = Path("tests/reference/kept/91/smoke/digits")


@pytest.fixture
def kept(toy: Toy, tmp_path: Path) -> Toy:
    """A book with a chapter of two kept tables; its untagged cells fail in a paper run."""
    path = toy.chapter(
        "91_far",
        "import cfltr_book as book\nrun = book.Run(scale, corpus, seed)",
        "import os\nassert 'CFLTR_KEEP' not in os.environ\nuntagged = 'all cells ran'",
        LEARN,
        CALLS,
        SHOW,
    )
    notebook = json.loads(path.read_text())
    for index in (2, 4, 5):
        notebook["cells"][index]["metadata"] = {"tags": ["kept", "hide-input"]}
    path.write_text(json.dumps(notebook))
    toy.contents("91_far", "scoreboard", "status")
    (tmp_path / "calls").mkdir()
    return toy


def calls(toy: Toy) -> list[str]:
    """Seed and number of each cell that was computed, in order, and forget them."""
    files = sorted((toy.root.parent / "calls").glob("* *"), key=lambda path: int(path.name.split()[2]))
    found = [" ".join(path.name.split()[:2]) for path in files]
    for path in files:
        path.unlink()
    return found


def cli(toy: Toy, command: str, *arguments: str, code: int = 0) -> str:
    options = ("--chapter", "91", "--scale", "smoke", "--corpus", "digits")
    return toy.cli(command, *options, *arguments, code=code, TOY_CALLS=str(toy.root.parent / "calls"))


def begun(toy: Toy, *arguments: str) -> subprocess.Popen[str]:
    """A paper run whose two workers have both come to the gate, which is closed."""
    folder = toy.root.parent / "calls"
    (folder / "closed").touch()
    options = ("--chapter", "91", "--scale", "smoke", "--corpus", "digits", *arguments)
    process = toy.started("paper", *options, TOY_CALLS=str(folder))
    wait_until(lambda: len(list(folder.glob("? 30 *"))) >= 2, process)
    return process


def shown(toy: Toy) -> str:
    notebook = json.loads((toy.done("91_far") / "notebook.ipynb").read_text())
    return "".join(notebook["cells"][-1]["outputs"][0]["text"])


def tables(toy: Toy) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((toy.root / PLACE).glob("*.csv"))}


def test_a_stopped_run_goes_on_and_a_cluster_gives_the_same_bytes(
    kept: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "calls" / "closed"
    process = begun(kept, "--jobs", "2")
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 130, output
    assert "interrupted; finished cells are kept, run again to go on" in output
    assert sorted(calls(kept)) == ["0 10", "0 20", "0 30", "1 10", "1 20", "1 30"]
    assert tables(kept) == {}
    # The workers end with the run: nothing goes on computing.
    time.sleep(2)
    (tmp_path / "calls" / "beat").unlink()
    time.sleep(0.5)
    assert not (tmp_path / "calls" / "beat").exists()

    gate.unlink()
    again = cli(kept, "paper", "--jobs", "1")
    assert sorted(calls(kept)) == ["0 1", "0 30", "1 1", "1 30"]
    assert "  curve, seed 1, n=20, cap=0.5: " in output
    assert "n=20" not in again
    for line in ("curve: 2 seeds, 3 settings", "curve, seed 1, n=30, cap=1: ", f"kept  {PLACE / 'eta.csv'}"):
        assert f"  {line}" in again
    assert "larger" not in again  # which is asked for at other scales only
    here = tables(kept)
    assert sorted(here) == ["curve.csv", "eta.csv"]

    from distributed import LocalCluster

    # On a cluster: a worker that is killed loses the cell at which it was, and no other.
    for path in [*(kept.root / "_build" / "kept").rglob("*.npz"), *(kept.root / PLACE).iterdir()]:
        path.unlink()
    monkeypatch.setenv("TOY_CALLS", str(tmp_path / "calls"))
    everywhere = {"processes": True, "dashboard_address": None, "local_directory": str(tmp_path)}
    with LocalCluster(n_workers=0, threads_per_worker=1, **everywhere) as cluster:
        cluster.scale(2)
        process = begun(kept, "--cluster", cluster.scheduler_address)
        with cluster.get_client() as client:
            pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        gate.unlink()
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    counted = calls(kept)
    assert sorted(call for call in counted if " 30" not in call) == ["0 1", "0 10", "0 20", "1 1", "1 10", "1 20"]
    assert len(counted) == 9  # the cell at which the worker was killed began once more
    assert tables(kept) == here


def test_a_chapter_reads_its_tables(kept: Toy) -> None:
    cli(kept, "paper", "--tables", "curve")
    assert sorted(calls(kept)) == ["0 10", "0 20", "0 30", "1 10", "1 20", "1 30"]
    assert list(tables(kept)) == ["curve.csv"]

    # Of the table two cells are computed; of the other, which is not kept, the first seed.
    assert cli(kept, "run").count("ran   91_far") == 1
    assert shown(kept) == "kept: 2 seeds at smoke | computed in this run: 1 seed | 6 True all cells ran\n"
    assert calls(kept) == ["0 10", "1 20", "0 1"]
    assert cli(kept, "run").count("kept  91_far") == 1

    cli(kept, "paper", "--seeds", "1")
    about = json.loads((kept.root / PLACE / "eta.json").read_text())
    assert (about["seeds"], about["seeds_asked"], about["cut"], len(about["seconds"])) == ([0], [0, 1], True, 1)
    assert about["peak_bytes"] > 10e6
    assert {"revision", "dirty", "python", "packages", "jobs"} <= about.keys()


def test_what_cannot_be_computed_is_said_at_once(kept: Toy) -> None:
    path = kept.root / "chapters" / "91_far.ipynb"
    source = path.read_text()
    for change, arguments, code, message in (
        (("", ""), ["--tables", "curve etta"], 2, "TABLES: 91_far has no kept table 'etta'; choose from curve, eta"),
        (("", ""), ["--seeds", "0"], 2, "'0': expected a whole number from 1 up"),
        (("", ""), ["--scale", "huge"], 2, "scale is 'huge'"),
        (('"eta\\"', '"curve\\"'), [], 2, "two kept tables are called 'curve'; rename one"),
        (('"kept"', '"else"'), [], 2, "no cell tagged 'kept' calls run.kept"),
        # A cell that reads what an untagged one defines.
        (("settings = [", "untagged\\nsettings = ["), [], 1, "NameError: name 'untagged' is not defined"),
    ):
        path.write_text(source.replace(*change) if change[0] else source)
        assert message in cli(kept, "paper", *arguments, code=code)
    assert calls(kept) == []
