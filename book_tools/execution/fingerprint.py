"""What a chapter's artefacts depend on, condensed to one digest.

An executed chapter is kept as long as its fingerprint stays the same, and a run is stale as soon as one
differs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import subprocess
import tomllib
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.errors import UsageError
from book_tools.files import files_below, json_text, sha256_of
from book_tools.parameters import Parameters

# The distributions that execute a notebook; those a chapter computes with are read from pyproject.toml.
EXECUTION_STACK = ("papermill", "nbclient", "nbformat", "ipykernel", "ipython", "matplotlib-inline")
# Sources of the pipeline that decide what an executed notebook contains.
EXECUTION_MODULES = (
    "execution/execute.py",
    "execution/normalise.py",
    "execution/papermill_child.py",
    "notebooks.py",
    "parameters.py",
)

LETOR_PREFIX = "letor:"


def package_versions(book: Book) -> dict[str, str]:
    """Return the versions of the packages that the chapters compute with and are executed by."""
    names = set(EXECUTION_STACK)
    pyproject = book.root / "pyproject.toml"
    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
        for requirement in project.get("dependencies", []):
            names.add(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower())
    versions = {}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise UsageError(f"{name}: not installed in this environment; run 'make setup'") from None
    return versions


def _corpus_files(corpus: str) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of a collection's files: cheap, and enough to see a change."""
    if not corpus.startswith(LETOR_PREFIX):
        return []
    # Imported here because the package pulls in NumPy, which most commands do not need.
    from cfltr_core.corpora import letor_folder

    folder = letor_folder(corpus)
    return [
        (path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in files_below(folder)
    ]


def surroundings(book: Book, parameters: Parameters) -> str:
    """Return the digest of all that the chapters of one run share."""
    tools = Path(__file__).parent.parent
    shared = {
        "package": {
            path.relative_to(book.root).as_posix(): sha256_of(path)
            for package in book.packages
            for path in files_below(package)
        },
        "execution": {name: sha256_of(tools / name) for name in EXECUTION_MODULES},
        "python": platform.python_version(),
        "packages": package_versions(book),
        "parameters": parameters.as_dict(),
        "corpus files": _corpus_files(parameters.corpus),
    }
    return hashlib.sha256(json_text(shared).encode()).hexdigest()


def fingerprint_of(chapter: Chapter, shared: str) -> str:
    """Return the fingerprint of one chapter, given the digest of its surroundings."""
    return hashlib.sha256(f"{chapter.name}\n{sha256_of(chapter.source)}\n{shared}".encode()).hexdigest()


def git_state(root: Path) -> tuple[str | None, bool | None]:
    """Return the git revision and whether files differ from it; (None, None) outside a repository."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    revision = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain")
    return revision, None if changes is None else bool(changes)
