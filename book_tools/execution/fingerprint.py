"""What a chapter's artefacts depend on, condensed to one digest.

An executed chapter is kept as long as its fingerprint stays the same, and a run is stale as soon as one
differs.  So the fingerprint leaves out what changes no number: comments, docstrings and the layout of the code,
and of the registry of claims all that pages and checks read anew, such as a statement or an expected verdict.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import platform
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.files import files_below, json_text
from book_tools.parameters import Parameters
from cfltr_book.data.corpora import letor_folder
from cfltr_book.reporting.claim_registry import MEASURED_BY, entries_of
from cfltr_core.files import sha256_of

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
# What is stated of the claims, one file a chapter, and what was accepted for them.
REGISTRY = "cfltr_book/claims/"
# What is simulated for one chapter and how its claims are measured: no other chapter may call these.
OWN = ("cfltr_book/experiments/ch{}.py", "cfltr_book/evidence/ch{}.py")
# The tables that the package keeps of a chapter's experiments.
KEPT = "cfltr_book/kept/"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def package_versions(book: Book) -> dict[str, str]:
    """Return the versions of the packages that the chapters compute with and are executed by."""
    names = set(EXECUTION_STACK)
    pyproject = book.root / "pyproject.toml"
    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
        extras = project.get("optional-dependencies", {}).get("chapters", [])
        for requirement in [*project.get("dependencies", []), *extras]:
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
    try:
        folder = letor_folder(corpus)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return [
        (path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in files_below(folder)
    ]


def fingerprints(book: Book, parameters: Parameters) -> dict[str, str]:
    """Return the fingerprint of each chapter by its name, as a run with ``parameters`` gives it now."""
    tools = Path(__file__).parent.parent
    files = {path.relative_to(book.root).as_posix(): path for package in book.packages for path in files_below(package)}
    chapters = book.chapters()
    own = {chapter.name: [name.format(chapter.number) for name in OWN] for chapter in chapters}
    not_shared = {name for names in own.values() for name in names}
    common = [name for name in files if not name.startswith((REGISTRY, KEPT)) and name not in not_shared]
    shared = {
        "package": {name: digest_of(files[name]) for name in common},
        "execution": {name: digest_of(tools / name) for name in EXECUTION_MODULES},
        "python": platform.python_version(),
        "packages": package_versions(book),
        "parameters": parameters.as_dict(),
        "corpus files": _corpus_files(parameters.corpus),
    }
    return {
        chapter.name: _digest(
            json_text(
                {
                    "shared": shared,
                    "name": chapter.name,
                    "source": sha256_of(chapter.source),
                    "claims": _claims(files.get(f"{REGISTRY}{chapter.number}.yml")),
                    "kept": [_digests_below(folder) for folder in (book.kept(chapter), book.tables(chapter))],
                    "modules": {name: digest_of(files[name]) for name in own[chapter.name] if name in files},
                }
            )
        )
        for chapter in chapters
    }


def digest_of(path: Path) -> str:
    """Return the digest of one file; of Python code that of what it does, without comments, docstrings and layout."""
    if path.suffix != ".py":
        return sha256_of(path)
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return sha256_of(path)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return _digest(ast.dump(tree))


def _digests_below(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files_below(folder)}


def _claims(path: Path | None) -> list[dict[str, Any]]:
    """Return what measurements depend on of the claims in one file; a withdrawn claim is measured no more."""
    try:
        entries = entries_of(path.read_text(encoding="utf-8")) if path else []
    except yaml.YAMLError as error:
        raise UsageError(f"{path and path.name}: not valid YAML: {error}") from None
    standing = [entry for entry in entries if "withdrawn" not in entry]
    return [{name: entry[name] for name in MEASURED_BY if name in entry} for entry in standing]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
