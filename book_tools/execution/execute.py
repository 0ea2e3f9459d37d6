"""Execute one chapter in a kernel of its own, into a scratch folder."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import papermill  # type: ignore[import-untyped]
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.utils import ensure_event_loop
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient  # type: ignore[import-untyped]
from papermill.engines import NBClientEngine, papermill_engines  # type: ignore[import-untyped]
from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]

from book_tools.book import Chapter
from book_tools.errors import BookError
from book_tools.messages import plain
from book_tools.notebooks import INJECTED, KERNELSPEC, read_notebook, tags_of, write_notebook
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
KERNEL = "python3"
KERNEL_STARTS = 3
# What jupyter_client says of a kernel that never came up; one that dies later is "Kernel died" alone.
NEVER_READY = "Kernel died before replying to kernel_info"

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
# What a kernel says outside of its cells, such as the last words of a library that crashes.
LOG, LOG_LINES = "log.txt", 30

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Where a warning was raised: the kernel keeps a cell in a file that is named after its process.
WARNED_AT = re.compile(r"^.*?:\d+: (?=\w*Warning: )", re.MULTILINE)
# What matplotlib says where the first search for fonts takes more than five seconds.
SLOW_FONTS = "Matplotlib is building the font cache; this may take a moment.\n"


class Kernels(ThreadPoolExecutor):
    """The threads that execute chapters, each in a kernel of its own; where an error leaves them, every kernel ends.

    Ctrl-C reaches this process only, because a kernel has a session of its own; and a kernel whose parent is gone,
    however that went, ends by itself within a second.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        # How far each chapter under way is, by name: "12 of 60" while the 13th cell is executed.
        self.cells_done: dict[str, str] = {}
        self._clients: set[PapermillNotebookClient] = set()
        self._stopped = False

    def run(self, name: str, managed: Any, environment: Mapping[str, str], private: Path) -> None:
        """Execute the notebook that papermill has ``managed`` to open, in an empty folder below ``private``.

        There also lies what its kernel says.
        """

        def begin(cell: NotebookNode, cell_index: int) -> None:
            if self._stopped:
                raise BookError("stopped before its end")
            self.cells_done[name] = f"{cell_index} of {len(managed.nb.cells)}"

        def attempt() -> None:
            client = PapermillNotebookClient(managed, kernel_name=KERNEL, timeout=None, on_cell_start=begin)
            manager = client.create_kernel_manager()
            # Otherwise a kernel specification of the user's could win over this interpreter.
            manager.kernel_spec_manager = KernelSpecManager(kernel_dirs=[])
            manager.connection_file = str(private / "kernel.json")
            self._clients.add(client)
            try:
                client.execute(env=environment, cwd=str(empty), stdout=stream, stderr=subprocess.STDOUT)
            finally:
                self._clients.discard(client)
                # nbclient leaves the loop that it made for this thread open.
                ensure_event_loop().close()

        empty = private / "empty"
        empty.mkdir()
        try:
            with (private / LOG).open("wb") as stream:
                with_a_kernel(attempt)
        finally:
            self.cells_done.pop(name, None)

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        """Wait for what is under way, or end it after an error."""
        self._stopped = kind is not None
        for client in list(self._clients) if self._stopped else ():
            process = getattr(client.km and client.km.provisioner, "process", None)
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.shutdown(wait=True, cancel_futures=self._stopped)


class OwnKernel(NBClientEngine):  # type: ignore[misc]
    """What papermill executes a chapter with: one of :class:`Kernels`, with an environment of its own."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, kernels: Kernels, **own: Any) -> None:
        """Execute the notebook of ``nb_man``."""
        kernels.run(own["name"], nb_man, own["environment"], own["private"])


papermill_engines.register(OwnKernel.__name__, OwnKernel)


def with_a_kernel(execute: Callable[[], None]) -> None:
    """Execute; and again, a few times, where the kernel did not come up: then no cell has run.

    Its free ports are looked for before it binds them, so that another program may take one in between.
    """
    for starts_left in reversed(range(KERNEL_STARTS)):
        try:
            return execute()
        except RuntimeError as error:
            if NEVER_READY not in str(error) or not starts_left:
                raise
            print(f"{error}: trying again", file=sys.stderr)


def execute(
    chapter: Chapter,
    parameters: Parameters,
    scratch: Path,
    kernels: Kernels,
    variables: Mapping[str, str] | None = None,
) -> float:
    """Execute ``chapter`` into the folder ``scratch`` and return the seconds it took.

    ``variables`` of the environment say where kept tables lie.  Afterwards ``scratch`` holds the normalised notebook
    and the artefacts that the chapter wrote.  A chapter that raises is a :class:`BookError` with the failing cell and
    its traceback.  It runs in the calling thread, which has to be one of ``kernels``.
    """
    for name in ARTEFACT_FOLDERS:
        (scratch / name).mkdir(parents=True)
    started = time.monotonic()
    target = scratch / NOTEBOOK
    with tempfile.TemporaryDirectory(prefix="cfltr-", ignore_cleanup_errors=True) as temporary:
        private = Path(temporary)
        try:
            papermill.execute_notebook(
                str(chapter.source),
                str(target),
                parameters.as_dict(),
                engine_name=OwnKernel.__name__,
                kernel_name=KERNEL,
                request_save_on_cell_execute=False,
                progress_bar=False,
                kernels=kernels,
                name=chapter.name,
                environment=environment_for(scratch, private) | dict(variables or {}),
                private=private,
            )
        except (PapermillExecutionError, RuntimeError) as error:
            log = (private / LOG).read_text("utf-8", errors="replace")
            raise BookError(failure_report(chapter, target, f"{log}\n{error}")) from None
    notebook = read_notebook(target)
    normalise(notebook)
    write_notebook(target, notebook)
    return time.monotonic() - started


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
        "JUPYTER_RUNTIME_DIR": str(private / "jupyter"),
        "IPYTHONDIR": str(private / "ipython"),
        "MPLCONFIGDIR": str(private / "matplotlib"),
    }


def failure_report(chapter: Chapter, target: Path, log: str) -> str:
    """Say which cell of the notebook ``target`` failed and why, or else, from the ``log``, why no cell did."""
    for cell in read_notebook(target).cells if target.is_file() else []:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                traceback = plain("\n".join(output.traceback))
                source = "\n".join(f"    {line}" for line in cell.source.splitlines())
                return (
                    f"{chapter.source.name}: this cell failed with {output.ename}: {output.evalue}\n"
                    f"{source}\n{traceback}"
                )
    tail = "\n".join(plain(log).splitlines()[-LOG_LINES:])
    return f"{chapter.source.name}: could not be executed; the last lines of its log are\n{tail}"


def normalise(notebook: NotebookNode) -> None:
    """Remove from ``notebook``, in place, all that differs between two runs of the same chapter.

    It says when, where or by which patch release the notebook was executed; nothing that a reader sees changes.
    """
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    notebook.metadata["kernelspec"] = KERNELSPEC
    # Cell identifiers exist from minor version 5 on; an older chapter was upgraded with random ones.
    notebook.nbformat_minor = max(5, notebook.nbformat_minor)
    for index, cell in enumerate(notebook.cells):
        injected = INJECTED in tags_of(cell)
        cell["id"] = INJECTED if injected else f"cell-{index:03d}"
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if injected:
            cell.metadata["tags"] = [INJECTED, "remove-cell"]
        if cell.cell_type == "code":
            cell["outputs"] = [_clean(output) for output in _merged(cell.outputs)]


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream, and leave out what a slow machine adds: both depend on the clock."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last["text"] += output.text
        else:
            merged.append(output)
    for output in merged:
        if output.output_type == "stream":
            output["text"] = output.text.replace(SLOW_FONTS, "")
    return [output for output in merged if output.get("text") != ""]


def _clean(output: NotebookNode) -> NotebookNode:
    """Drop memory addresses and the places of warnings from the texts of one output."""
    if output.output_type == "stream":
        output["text"] = WARNED_AT.sub("", ADDRESS.sub("", output.text))
    for mime, content in output.get("data", {}).items():
        if mime.startswith("text/") and isinstance(content, str):
            output.data[mime] = ADDRESS.sub("", content)
    return output
