"""An environment like Colab's: only what comes preinstalled there, in the versions of ``constraints.txt``."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from book_tools.book import Book
from book_tools.errors import BookError, UsageError
from book_tools.files import remove_tree

CONSTRAINTS = "book_tools/colab/constraints.txt"
# What Colab has and a chapter may import, and papermill, which stands for the person who runs the notebook.
PREINSTALLED = (
    *("ipykernel", "papermill", "torch", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "scikit-learn"),
    *("PyYAML", "tqdm", "joblib"),
    # The extra "logs" of the package is there too: chapter 16 must run with Colab's own versions.
    *("ibis-framework", "duckdb", "pyarrow", "pyarrow-hotfix", "rich"),
)
WHOLE = ".whole"


class BareEnvironment:
    """A virtual environment below ``_build``, kept until the constraints or the Python change.

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
