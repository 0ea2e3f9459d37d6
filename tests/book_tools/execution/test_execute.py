"""Executing chapters: once, whole or not at all, and the same bytes every time."""

import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml
from claim_files import entry
from nbformat import from_dict
from toy import FIGURE, RECORD, Toy, wait_until

import book_tools
from book_tools.book import Book
from book_tools.execution import state
from book_tools.execution.execute import (
    KERNEL_STARTS,
    NEVER_READY,
    SAME_KERNELS,
    environment_for,
    normalise,
    with_a_kernel,
)
from book_tools.notebooks import INJECTED
from book_tools.parameters import Parameters
from cfltr_book.reporting.claim_registry import MEASURED_BY

# Waits for a file that the test names, so that a run can be stopped in the middle of a chapter.
WAIT = """
import os, pathlib, time
while not pathlib.Path(os.environ["TOY_GATE"]).exists():
    time.sleep(0.05)
"""


def manifest(toy: Toy) -> dict[str, object]:
    content: dict[str, object] = json.loads((toy.root / "_build" / "run" / "manifest.json").read_text())
    return content


def test_the_same_bytes_in_another_folder_with_one_job_zone_and_hash_seed(executed_once: Toy, toy: Toy) -> None:
    for path in (executed_once.root / "chapters").glob("*.ipynb"):
        (toy.root / "chapters" / path.name).write_bytes(path.read_bytes())
    toy.contents("91_alpha", "92_beta", "scoreboard", "status")
    result = toy.process("run", "--scale", "smoke", "--jobs", "1", TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    assert result.returncode == 0, result.stdout
    assert toy.artefacts() == executed_once.artefacts()
    assert manifest(toy) == manifest(executed_once)


def test_what_a_finished_chapter_consists_of(executed_once: Toy) -> None:
    folder = executed_once.done("91_alpha")
    stamp = json.loads((folder / "stamp.json").read_text())
    figures = [f"figures/fig-toy.{ending}" for ending in ("csv", "json", "svg")]
    assert sorted(stamp["artefacts"]) == [*figures, "notebook.ipynb", "records/toy-length.json"]
    notebook = json.loads((folder / "notebook.ipynb").read_text())
    text = json.dumps(notebook)
    assert "smoke <object object>" in text.replace("\\n", ""), "the parameter arrived and the address is gone"
    assert str(executed_once.root) not in text
    injected = notebook["cells"][2]
    assert injected["id"] == "injected-parameters"
    assert "remove-cell" in injected["metadata"]["tags"]
    assert not list((executed_once.root / "_build" / "run").glob(".partial/*"))
    assert manifest(executed_once)["complete"] is True


def test_only_what_changed_is_executed_again(executed: Toy) -> None:
    assert "kept  91_alpha" in executed.cli("run", "--scale", "smoke")
    executed.chapter("92_beta", "x = 4\nx")
    again = executed.cli("run", "--scale", "smoke")
    assert "kept  91_alpha" in again
    assert "ran   92_beta" in again
    (executed.done("91_alpha") / "figures" / "fig-toy.csv").write_text("name,length\nbar,1\n")
    assert "ran   91_alpha" in executed.cli("run", "--scale", "smoke", "--chapter", "91")


def fingerprints(toy: Toy, parameters: Parameters | None = None) -> dict[str, str]:
    """Return the fingerprint of each chapter, by its number."""
    found = state.fingerprints(Book(toy.root), parameters or Parameters())
    return {name.partition("_")[0]: value for name, value in found.items()}


@pytest.fixture
def two(toy: Toy) -> Toy:
    """A book of two chapters with a package of its own, which nothing imports."""
    toy.chapter("91_alpha", "x = 1")
    toy.chapter("92_beta", "x = 2")
    toy.contents("91_alpha", "92_beta")
    (toy.root / "cfltr_core").mkdir()
    (toy.root / "cfltr_core" / "module.py").write_text(CODE)
    (toy.root / "cfltr_book" / "claims").mkdir(parents=True)
    (toy.root / "cfltr_book" / "claims" / "91.yml").write_text(yaml.safe_dump([CLAIM]))
    return toy


CODE = '''"""A module."""

# a comment
class Thing:
    """A thing."""

    def double(self, x, y=1):
        """Twice x."""
        text = """not a docstring"""
        return 2 * x + y  # doubled
'''
CLAIM = entry("toy-one", chapter=None, corpora=["yahoo-like"], scale="smoke", control="toy-two", value=1.0)


def changed_code(old: str, new: str) -> str:
    assert CODE.count(old) == 1
    return CODE.replace(old, new)


def entries(*claims: dict[str, object]) -> str:
    return str(yaml.safe_dump([*claims]))


OLD = {**CLAIM, "id": "toy-old", "withdrawn": {"replaced_by": None, "measured": "supported", "why": "so"}}
MODULE, CLAIMS = "cfltr_core/module.py", "cfltr_book/claims/91.yml"
# The text of a file, and the chapters that it makes stale.
FILES = [
    # Comments, docstrings and layout of code do not count.
    (MODULE, changed_code('"""A module."""\n', ""), ""),
    (MODULE, changed_code('"""A thing."""', '"""Another word for it,\n\n    in two lines.\n    """'), ""),
    (MODULE, changed_code('        """Twice x."""\n', ""), ""),
    (MODULE, changed_code("# a comment\n", "# two\n# comments\n\n"), ""),
    (MODULE, changed_code("  # doubled", ""), ""),
    (MODULE, changed_code("(self, x, y=1)", "(\n        self,\n        x,\n        y=1,\n    )"), ""),
    *((MODULE, changed_code(old, new), "91 92") for old, new in (("2 * x", "3 * x"), ("y=1", "y=2"), ("+ y", "- y"))),
    *((MODULE, changed_code(old, new), "91 92") for old, new in (("double(", "twice("), ("not a doc", "no doc"))),
    *((f"{package}/half.py", "def f(:", "91 92") for package in ("cfltr_core", "cfltr_book")),
    *((f"{package}/a.txt", "a", "91 92") for package in ("cfltr_core", "cfltr_book")),
    # Of a claim counts what it is measured by, and how many share the false alarms of the chapter.
    *(
        (CLAIMS, entries({**CLAIM, field: ["digits"] if field == "corpora" else 0.7}), "91" * (field in MEASURED_BY))
        for field in CLAIM
    ),
    (CLAIMS, entries(CLAIM, {**CLAIM, "id": "toy-two"}), "91"),
    (CLAIMS, entries(CLAIM, OLD), ""),
    ("cfltr_book/claims/verdicts.csv", "toy-one,yahoo-like,smoke,contradicted,,,\n", ""),
    *((f"cfltr_book/{room}/ch91.py", CODE, "91") for room in ("evidence", "experiments")),
    *((f"cfltr_book/{room}/common.py", CODE, "91 92") for room in ("evidence", "experiments")),
    *((f"{folder}/92/ci/digits/a.csv", "seed\n0\n", "92") for folder in ("tests/reference/kept", "cfltr_book/kept")),
]


@pytest.mark.parametrize(("place", "text", "stale"), FILES)
def test_which_chapters_a_file_makes_stale(two: Toy, place: str, text: str, stale: str) -> None:
    path, seen = two.root / place, [fingerprints(two)]
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    for content in (text,) if before else (text, f"{text}\nx = 1\n"):
        path.write_text(content)
        seen.append(fingerprints(two))
    changed = {number for number in seen[0] if len({prints[number] for prints in seen}) == len(seen)}
    assert changed == {*stale.split()}
    assert all(prints[number] == seen[0][number] for prints in seen for number in {"91", "92"} - changed)
    path.write_text(before) if before else path.unlink()
    assert fingerprints(two) == seen[0]


def test_every_module_that_executes_a_chapter_exists_and_counts() -> None:
    folder = Path(book_tools.__file__).parent
    assert [name for name in state.EXECUTION_MODULES if not (folder / name).is_file()] == []
    assert "execution/execute.py" in state.EXECUTION_MODULES


def test_a_registry_that_cannot_be_read_is_named(two: Toy) -> None:
    (two.root / "cfltr_book" / "claims" / "91.yml").write_text("- id: [")
    result = two.cli("run", "--scale", "smoke", code=2)
    assert "91.yml: not valid YAML" in result
    assert "Traceback" not in result


def test_one_chapter_of_a_book(executed: Toy) -> None:
    executed.chapter("03_gamma", "x = 3")
    executed.chapter("91_alpha", "x = 'changed'")
    executed.contents("91_alpha", "92_beta", "03_gamma")
    assert "ran   03_gamma" in executed.cli("run", "--scale", "smoke", "--chapter", "3"), "3 is 03"
    chapters = manifest(executed)["chapters"]
    assert isinstance(chapters, dict)
    complete = {name: entry["complete"] for name, entry in chapters.items()}
    assert complete == {"91_alpha": False, "92_beta": True, "03_gamma": True}
    assert manifest(executed)["complete"] is False
    # A chapter that leaves the book takes its artefacts with it.
    executed.contents("92_beta")
    executed.cli("run", "--scale", "smoke")
    assert not executed.done("91_alpha").exists()


# Chapters that fail, each in its own way, and what is said of them.
FAILING = {
    "91_alpha": (
        "numerator = 1\nnumerator / 0",
        (": this cell failed with ZeroDivisionError: division", "    numerator /"),
    ),
    "92_dead": ("import os\nos._exit(3)", (": could not be executed", "Kernel died")),
    "93_other": (
        FIGURE.replace('"id": "fig-toy"', '"id": "fig-other"'),
        (": figures/fig-toy.json: its id is 'fig-other', expected the file's name",),
    ),
    "94_text": (RECORD.replace('"text": "', '"txt": "'), (": records/toy-length.json: has no 'text'",)),
}


def test_chapters_that_fail_are_named_and_the_others_are_executed(toy: Toy) -> None:
    for name, (source, _) in FAILING.items():
        toy.chapter(name, source)
    toy.chapter("95_fine", "import os\nassert os.listdir() == [], 'a chapter reads no relative file'")
    toy.contents(*FAILING, "95_fine")
    result = toy.cli("run", "--scale", "smoke", code=1)
    assert "4 of 5 chapters failed" in result
    for name, (_, messages) in FAILING.items():
        assert f"{name}.ipynb{messages[0]}" in result
        assert [message for message in messages if message not in result] == []
        assert not toy.done(name).exists()
    assert "\x1b[" not in result
    assert (toy.done("95_fine") / "stamp.json").is_file()


def test_one_run_at_a_time(executed: Toy) -> None:
    with (executed.root / "_build" / "run" / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another run of this book is in progress" in executed.cli("run", "--scale", "smoke", code=2)


def with_a_gate(toy: Toy) -> Toy:
    """Give the book two chapters, of which the later is executed first, and the other waits for the gate."""
    toy.chapter("92_beta", FIGURE)
    toy.chapter("91_alpha", RECORD, WAIT)
    toy.contents("91_alpha", "92_beta")
    return toy


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The artefacts of these chapters when nothing stops them."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    toy = with_a_gate(Toy(folder / "book"))
    toy.cli("run", "--scale", "smoke", TOY_GATE=str(folder))
    return toy.artefacts()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_loses_nothing_and_leaves_no_half(
    toy: Toy, uninterrupted: dict[str, bytes], tmp_path: Path, how: signal.Signals
) -> None:
    with_a_gate(toy)
    gate = tmp_path / "gate"
    process = toy.started("run", "--scale", "smoke", "--jobs", "1", TOY_GATE=str(gate))
    partial = toy.root / "_build" / "run" / ".partial"
    wait_until(lambda: any(partial.glob("91_alpha*/records/*.json")))
    first = toy.done("92_beta").stat().st_mtime_ns
    process.send_signal(how)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == (-how if how == signal.SIGKILL else 130)
    assert how == signal.SIGKILL or "interrupted; finished chapters are kept" in said
    assert not toy.done("91_alpha").exists()
    # Its kernel must end too, or it would go on computing for nobody.
    wait_until(lambda: not processes_naming(str(partial)))

    gate.touch()
    assert "kept  92_beta" in toy.cli("run", "--scale", "smoke", "--jobs", "1", TOY_GATE=str(gate))
    assert toy.done("92_beta").stat().st_mtime_ns == first
    assert not list(partial.glob("*"))
    assert toy.artefacts() == uninterrupted


def processes_naming(text: str) -> list[str]:
    """Return the processes whose command line or environment holds ``text``, where the system shows them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(text) in known:
            found.append(folder.name)
    return found


@pytest.mark.parametrize(
    ("message", "failures", "n_starts"),
    [*((NEVER_READY, n, min(n + 1, KERNEL_STARTS)) for n in range(KERNEL_STARTS + 1)), ("Kernel died", 1, 1)],
)
def test_a_kernel_that_does_not_come_up_is_started_again_and_one_that_dies_on_the_way_is_not(
    message: str, failures: int, n_starts: int
) -> None:
    starts: list[int] = []

    def execute() -> None:
        starts.append(len(starts))
        if len(starts) <= failures:
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=message) if failures >= n_starts else nullcontext():
        with_a_kernel(execute)
    assert len(starts) == n_starts


def test_chapters_have_one_set_of_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SAME_KERNELS:
        monkeypatch.delenv(variable, raising=False)
    assert environment_for(tmp_path, tmp_path).items() >= SAME_KERNELS.items()
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert environment_for(tmp_path, tmp_path)["OPENBLAS_CORETYPE"] == "Zen"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of an x86")
def test_the_kernels_asked_for_are_those_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    code = "import numpy, threadpoolctl; print({pool['architecture'] for pool in threadpoolctl.threadpool_info()})"
    environment = environment_for(tmp_path, tmp_path)
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "{'Haswell'}"


def test_an_executed_notebook_does_not_say_when_and_where_it_ran() -> None:
    """Pieces of a stream are joined, but not across another output; what is not of the execution stays."""
    texts = ("text/plain", "text/html", "text/markdown")
    table = {"output_type": "display_data", "data": dict.fromkeys(texts, "<f at 0x7f00aB>, at 0 x"), "metadata": {}}
    said = "/scratch/ipykernel_12/34.py:5: RuntimeWarning: invalid value\n  np.log(-1)\nnote 1:2: no Warning here\n"
    streams = [{"output_type": "stream", "name": "stdout", "text": text} for text in "abcd"]
    outputs = [*streams[:2], {"output_type": "stream", "name": "stderr", "text": said}, streams[2], table, streams[3]]
    kept = {"mystnb": {"keep": True}, "papermill": {"duration": 1}, "execution": {"iopub": "now"}}
    about = {"cell_type": "code", "id": "random", "execution_count": 1, "source": "x"}
    cells = [{**about, "metadata": kept, "outputs": outputs}]
    cells += [{**about, "metadata": {"tags": [INJECTED]}, "outputs": []}]
    kernel = {"name": "python3", "display_name": "Python 3 (somewhere)"}
    language = {"name": "python", "version": "3.11.7"}
    metadata = {"papermill": {"end_time": "now"}, "language_info": language, "kernelspec": kernel}
    notebook = from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4})
    normalise(notebook)
    first, injected = notebook.cells
    warned = "RuntimeWarning: invalid value\n  np.log(-1)\nnote 1:2: no Warning here\n"
    shown = dict.fromkeys(texts, "<f>, at 0 x")
    assert [one.get("text", one.get("data")) for one in first.outputs] == ["ab", warned, "c", shown, "d"]
    assert (first.id, first.metadata) == ("cell-000", {"mystnb": {"keep": True}})
    assert (injected.id, injected.metadata.tags) == (INJECTED, [INJECTED, "remove-cell"])
    assert notebook.metadata == {
        "language_info": {"name": "python"},
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    }
