"""Run the copies of the chapters as Colab would: alone in an empty folder, with only what Colab has.

Each copy installs the package from the revision it is stamped with; git takes that revision from this clone, so
that nothing need be published yet.  What it computes must be what the pipeline computes, at the scale asked for; the
copy of a chapter with kept tables at the scale at which it begins.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import replace
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.checks.reference import differences, read_tolerances, results_in
from book_tools.colab.copies import FOLDER, start_of, write_copies
from book_tools.colab.labels import read_labels
from book_tools.colab.repository import PACKAGE, Origin, as_listed, origin_of
from book_tools.errors import BookError, UsageError
from book_tools.execution.execute import ARTEFACT_FOLDERS, Kernels, environment_for, execute, failure_report
from book_tools.execution.state import fresh_run
from book_tools.files import remove_tree
from book_tools.notebooks import read_notebook
from book_tools.parameters import Parameters

CONSTRAINTS = "book_tools/colab/constraints.txt"
# What Colab has and a chapter may import, and papermill, which stands for the person who runs the notebook.
PREINSTALLED = (
    *("ipykernel", "papermill", "torch", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "scikit-learn"),
    *("PyYAML", "tqdm", "joblib"),
    # The extra "logs" of the package is there too: chapter 16 must run with Colab's own versions.
    *("ibis-framework", "duckdb", "pyarrow", "pyarrow-hotfix", "rich"),
    # Colab lacks these two, which the extra "real" of chapter 17 adds there without replacing anything.
    *("obp", "mypy-extensions"),
)
WHOLE = ".whole"
# Stands for the address of a clone that has none; nothing is ever asked of it.
STAND_IN = "https://repository.invalid/book"


def check_copies(book: Book, scale: str, wanted: list[str], torch_index: str, jobs: int) -> None:
    """Run the copies of the ``wanted`` chapters at ``scale``, ``jobs`` at a time; raise with all that differs."""
    origin = origin_of(book)
    otherwise = "colab: no copies of a complete run; make them with 'make book'"
    of_site = fresh_run(book, otherwise)
    if not (book.html / FOLDER).is_dir():
        raise UsageError(otherwise)
    if origin.revision is None or origin.dirty is not False:
        raise UsageError(
            "colab: the book was built from changes that no revision holds, so that the copies cannot install it; "
            "commit them, run 'make book', and try again"
        )
    chapters = book.select(wanted)
    parameters = replace(Parameters(), scale=scale)
    bare = BareEnvironment(book, torch_index)
    tolerances = read_tolerances(book.tolerances)
    with (
        tempfile.TemporaryDirectory(prefix="cfltr-colab-", ignore_cleanup_errors=True) as temporary,
        Kernels(jobs) as kernels,
    ):
        scratch = Path(temporary)
        copies = book.html / FOLDER
        if origin.address is None:
            origin, copies = replace(origin, address=STAND_IN), scratch / "copies"
            write_copies(book, read_labels(book.html), copies, origin, of_site)

        def tried(chapter: Chapter) -> list[str]:
            start = start_of(read_notebook(chapter.source), parameters)
            found, expected = scratch / "found" / chapter.name, book.folder_of(chapter)
            # Kept tables stay in the repository: what a copy can give is what the chapter gives without them.
            if of_site != start or book.kept(chapter).is_dir():
                expected = scratch / "expected" / chapter.name
                execute(chapter, start, expected, kernels)
            seen = _run_copy(book, Chapter(copies / chapter.source.name), start, found, bare, origin)
            if not seen:
                seen = differences(results_in(found), results_in(expected), tolerances, "the pipeline")
            print(f"  {chapter.name}: {'FAILED' if seen else f'as the chapter at scale {start.scale}'}", flush=True)
            return [f"{chapter.name}: {problem}" for problem in seen]

        problems = [problem for seen in kernels.map(tried, chapters) for problem in seen]
    if problems:
        raise BookError(*problems, f"colab: {len(problems)} problems")
    print(f"colab: {len(chapters)} copies installed {origin.revision} and gave the numbers of the book", flush=True)


def _run_copy(
    book: Book, copy: Chapter, parameters: Parameters, found: Path, bare: BareEnvironment, origin: Origin
) -> list[str]:
    """Run one copy in an environment of its own, its artefacts into ``found``; return what went wrong."""
    for name in ARTEFACT_FOLDERS:
        (found / name).mkdir(parents=True)
    alone = found / "alone"
    alone.mkdir()
    python = bare.on_top(found / "environment")
    before = packages(python)
    source, target = alone / copy.source.name, found / "executed.ipynb"
    shutil.copyfile(copy.source, source)
    command = [
        *(str(python), "-m", "papermill", str(source), str(target), "--cwd", str(alone), "-k", "python3"),
        *("--no-progress-bar", "--parameters_yaml", json.dumps(parameters.as_dict())),
    ]
    with tempfile.TemporaryDirectory(prefix="cfltr-", ignore_cleanup_errors=True) as private:
        environment = environment_for(found, Path(private)) | {
            "JUPYTER_PATH": str(bare.folder / "share" / "jupyter"),
            # Git takes the stamped address from this clone.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{book.root.as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": str(origin.address),
            "GIT_TERMINAL_PROMPT": "0",
        }
        done = subprocess.run(
            command, env=environment, cwd=alone, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
    if done.returncode != 0:
        return [failure_report(copy, target, done.stderr)]
    problems = []
    after = packages(python)
    installed = {line for line in after if line.startswith(f"{PACKAGE} ")}
    if installed != {as_listed(origin)}:
        problems.append(f"installed {', '.join(sorted(installed)) or 'nothing'}, stamped {as_listed(origin)}")
    replaced = before ^ (after - installed)
    if replaced:
        problems.append(f"the installation changed what was there: {', '.join(sorted(replaced))}")
    return problems


class BareEnvironment:
    """What comes preinstalled in Colab, in an environment below ``_build`` that is made once.

    Each notebook gets one of its own on top, so that several install the package at a time and none finds another's.
    """

    def __init__(self, book: Book, torch_index: str) -> None:
        constraints = book.root / CONSTRAINTS
        if not constraints.is_file():
            raise UsageError(f"{CONSTRAINTS}: not found in {book.root}; it gives the versions to try the copies with")
        self.folder = book.build / "colab-env"
        wanted = hashlib.sha256(constraints.read_bytes() + sys.version.encode()).hexdigest()
        whole = self.folder / WHOLE
        if not whole.is_file() or whole.read_text() != wanted:
            self._make(constraints, torch_index)
            whole.write_text(wanted)

    def on_top(self, folder: Path) -> Path:
        """Make an environment in ``folder`` that sees these packages and no others; return its interpreter."""
        venv.create(folder, symlinks=True)
        _site_packages(folder).joinpath("bare.pth").write_text(f"{_site_packages(self.folder)}\n")
        return folder / "bin" / "python"

    def _make(self, constraints: Path, torch_index: str) -> None:
        print(f"making an environment like Colab's in {self.folder.name}, once", flush=True)
        remove_tree(self.folder)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        _checked([sys.executable, "-m", "venv", str(self.folder)])
        python = str(self.folder / "bin" / "python")
        install = [python, "-m", "pip", "install", "--no-compile", "--quiet", "-c", str(constraints)]
        # As in the Makefile: torch by itself, so that nothing else is ever taken from its index.
        index = ["--extra-index-url", torch_index] if torch_index else []
        _checked([*install, "--retries", "0", *index, "torch"])
        _checked([*install, *PREINSTALLED])


def packages(python: Path) -> set[str]:
    """Return what the environment of an interpreter holds, one ``name==version`` or ``name @ address`` each."""
    lines = _checked([str(python), "-m", "pip", "freeze", "--all"]).splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def _site_packages(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))


def _checked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BookError(f"{' '.join(command[1:5])} … failed:", (done.stderr or done.stdout).strip()[-2000:])
    return done.stdout
