"""An environment like Colab's: only what comes preinstalled there, in the versions of ``constraints.txt``."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from book_tools.book import Book
from book_tools.colab.install_cell import PACKAGE
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
    """A virtual environment below ``_build``, kept until the constraints or the Python change."""

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

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def _make(self, constraints: Path, torch_index: str) -> None:
        print(f"making an environment like Colab's in {self.folder.name}, once", flush=True)
        remove_tree(self.folder)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        _checked([sys.executable, "-m", "venv", str(self.folder)])
        install = [str(self.python), "-m", "pip", "install", "--quiet", "-c", str(constraints)]
        # As in the Makefile: torch by itself, so that nothing else is ever taken from its index.
        index = ["--extra-index-url", torch_index] if torch_index else []
        _checked([*install, "--retries", "0", *index, "torch"])
        _checked([*install, *PREINSTALLED])

    def packages(self) -> set[str]:
        """Return what is installed, one ``name==version`` or ``name @ address`` each."""
        lines = _checked([str(self.python), "-m", "pip", "freeze", "--all"]).splitlines()
        return {line for line in lines if line and not line.startswith("#")}

    def forget_the_package(self) -> None:
        """Take the package of the book out again, so that the next notebook has to install it."""
        _checked([str(self.python), "-m", "pip", "uninstall", "--quiet", "--yes", PACKAGE])


def _checked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BookError(f"{' '.join(command[1:5])} … failed:", (done.stderr or done.stdout).strip()[-2000:])
    return done.stdout
