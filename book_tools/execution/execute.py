"""Execute one chapter in a process of its own, into a scratch folder."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from book_tools.book import Chapter
from book_tools.errors import BookError
from book_tools.execution.normalise import normalise
from book_tools.messages import plain
from book_tools.notebooks import read_notebook, write_notebook
from book_tools.parameters import Parameters

RUN_VARIABLE = "CFLTR_RUN_DIR"
# The folder of the chapter's kept tables, and what else the package is told of them.
KEPT_VARIABLE, KEPT_PREFIXES = "CFLTR_KEPT", ("CFLTR_KEPT", "CFLTR_KEEP")
# The revision that is built: it draws the cells of kept tables that are computed again.
REVISION_VARIABLE = "CFLTR_REVISION"
# The folder in which the package keeps a collection that it has read, and the cells of experiments.
CACHE_VARIABLE = "CFLTR_CACHE"
ARTEFACT_FOLDERS = ("figures", "claims", "records")
NOTEBOOK = "notebook.ipynb"
# How many cells of a chapter under way were executed, as papermill's bar writes it: "12 of 60" on the last line.
PROGRESS = "progress.txt"

# One thread in every pool: then the number of workers cannot change a digit, and it is faster too.
THREAD_POOLS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
SINGLE_THREADED = {f"{pool}_NUM_THREADS": "1" for pool in THREAD_POOLS}
# OpenBLAS and PyTorch choose their kernels by the processor, and each set rounds otherwise: with one set, which runs on
# every x86 of the last ten years, another machine's numbers are those of the reference, but for what NumPy itself
# computes with wider registers.  Who sets a variable is obeyed.
KERNELS = {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"}
SAME_KERNELS = KERNELS if platform.machine() in ("x86_64", "AMD64") else {}
# Variables by which a user's shell would change what a chapter does.
DROPPED_VARIABLES = ("MPLBACKEND", "MATPLOTLIBRC", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS")
LOG_LINES = 30


class Children:
    """The papermill processes under way, so that an interrupted run can end them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: list[str], environment: dict[str, str], log: Path) -> int:
        """Run a child that ends when its standard input is closed, and return its exit code."""
        with self._lock, log.open("wb") as stream:
            if self._stopped:
                raise BookError("stopped before it started")
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches this process only; it then ends the children in its own order.
                start_new_session=True,
            )
            self._processes.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._processes.discard(process)
                _close(process)
            process.wait()

    def stop(self) -> None:
        """End every child, and let no other start."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                _close(process)


def execute(
    chapter: Chapter,
    parameters: Parameters,
    scratch: Path,
    children: Children,
    variables: Mapping[str, str] | None = None,
) -> float:
    """Execute ``chapter`` into the folder ``scratch`` and return the seconds it took.

    ``variables`` of the environment say where kept tables lie.  Afterwards ``scratch`` holds the normalised notebook
    and the artefacts that the chapter wrote.  A chapter that raises is a :class:`BookError` with the failing cell and
    its traceback.
    """
    for name in ARTEFACT_FOLDERS:
        (scratch / name).mkdir(parents=True)
    target = scratch / NOTEBOOK
    with tempfile.TemporaryDirectory(prefix="cfltr-", ignore_cleanup_errors=True) as temporary:
        private = Path(temporary)
        working_folder = private / "empty"
        working_folder.mkdir()
        log = private / "log.txt"
        command = [
            sys.executable,
            "-P",  # this folder's module names must not shadow anybody else's
            str(Path(__file__).with_name("papermill_child.py")),
            str(chapter.source),
            str(target),
            str(working_folder),
            json.dumps(parameters.as_dict()),
            str(scratch / PROGRESS),
        ]
        environment = environment_for(scratch, private) | dict(variables or {})
        started = time.monotonic()
        code = children.run(command, environment, log)
        seconds = time.monotonic() - started
        if code != 0:
            raise BookError(failure_report(chapter, target, log.read_text("utf-8", errors="replace")))
    (scratch / PROGRESS).unlink()
    notebook = read_notebook(target)
    normalise(notebook)
    write_notebook(target, notebook)
    return seconds


def cells_done(scratch: Path) -> str:
    """Return how far the chapter that is executed into ``scratch`` is: "12 of 60", or "none" before the first cell."""
    try:
        return (scratch / PROGRESS).read_text("utf-8").rpartition("\n")[2] or "none"
    except FileNotFoundError:
        return "none"


def computing_environment() -> dict[str, str]:
    """Return the environment in which numbers are computed: the same whoever runs it, one thread in every pool."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in DROPPED_VARIABLES and not name.startswith(KEPT_PREFIXES)
    }
    return SAME_KERNELS | inherited | SINGLE_THREADED


def environment_for(scratch: Path, private: Path) -> dict[str, str]:
    """Return the environment of a chapter, with nothing of the user's settings."""
    return computing_environment() | {
        RUN_VARIABLE: str(scratch),
        "PYTHONHASHSEED": "0",
        "COLUMNS": "80",
        # Without this a kernel specification of the user's could win over this interpreter.
        "JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(private / "jupyter"),
        "IPYTHONDIR": str(private / "ipython"),
        "MPLCONFIGDIR": str(private / "matplotlib"),
    }


def failure_report(chapter: Chapter, target: Path, log: str) -> str:
    """Say which cell failed and why, from the partial notebook, or else from papermill's own output."""
    cells = read_notebook(target).cells if target.is_file() else []
    for cell in cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                traceback = plain("\n".join(output.traceback))
                source = "\n".join(f"    {line}" for line in cell.source.splitlines())
                return (
                    f"{chapter.source.name}: this cell failed with {output.ename}: {output.evalue}\n"
                    f"{source}\n{traceback}"
                )
    tail = "\n".join(plain(log).splitlines()[-LOG_LINES:])
    return f"{chapter.source.name}: could not be executed; the last lines of papermill were\n{tail}"


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
