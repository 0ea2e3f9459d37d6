"""How a run stands: executed by one process at a time, sealed chapter by chapter, and fresh or stale.

What a chapter's artefacts depend on is condensed to one digest, its fingerprint.  An executed chapter is kept as long
as that stays the same, and a run is stale as soon as one differs.  So it leaves out what changes no number: comments,
docstrings and the layout of the code, and of the registry of claims all that pages and checks read anew, such as a
statement or an expected verdict.

The stamp of an executed chapter has its fingerprint, and the digest of every artefact it left.  It is written last into
the scratch folder, and the folder is then renamed as a whole: a folder with a stamp is complete, a folder without one
is not there.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import importlib.metadata
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

from book_tools.book import Book
from book_tools.errors import Problems, UsageError
from book_tools.files import digests_below, files_below, json_text, read_json
from book_tools.git import git_state
from book_tools.parameters import KNOWN, Parameters
from cfltr_book.data.corpora import letor_folder
from cfltr_book.reporting.claim_registry import MEASURED_BY, entries_of
from cfltr_core.files import sha256_of, write_whole

STAMP = "stamp.json"
# The distributions that execute a notebook; those a chapter computes with are what the package requires.
EXECUTION_STACK = ("papermill", "nbclient", "nbformat", "ipykernel", "ipython", "matplotlib-inline")
# Sources of the pipeline that decide what an executed notebook contains.
EXECUTION_MODULES = (
    "execution/execute.py",
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


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that the chapters compute with and are executed by."""
    needed = map(Requirement, importlib.metadata.requires("cfltr-core") or [])
    computing = [one.name.lower() for one in needed if not one.marker or one.marker.evaluate({"extra": "chapters"})]
    try:
        return {name: importlib.metadata.version(name) for name in sorted({*EXECUTION_STACK, *computing})}
    except importlib.metadata.PackageNotFoundError as error:
        raise UsageError(f"{error.name}: not installed in this environment; run 'make setup'") from None


def provenance(book: Book, *, besides: str | None = None) -> dict[str, Any]:
    """Return what numbers are made with: the revision and whether files, ``besides`` a folder, differ, and versions."""
    revision, dirty = git_state(book.root, besides=besides)
    versions = {"python": platform.python_version(), "packages": package_versions()}
    return {"revision": revision, "dirty": dirty, **versions}


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
        "packages": package_versions(),
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
                    "kept": [digests_below(folder) for folder in (book.kept(chapter), book.tables(chapter))],
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


def write_stamp(folder: Path, fingerprint: str) -> None:
    """Seal the artefacts in ``folder``."""
    write_whole(folder / STAMP, json_text({"fingerprint": fingerprint, "artefacts": digests_below(folder, STAMP)}))


def sealed_fingerprint(folder: Path) -> str | None:
    """Return the fingerprint in the stamp of ``folder``, or None when it has no stamp that can be read."""
    return read_json(folder / STAMP).get("fingerprint")


def differences(folder: Path) -> list[str]:
    """Return what happened to the artefacts of ``folder`` since they were sealed, one phrase each."""
    sealed, now = read_json(folder / STAMP)["artefacts"], digests_below(folder, STAMP)
    fate = {name: "was changed by hand" if name in now else "is missing" for name in sealed}
    return [
        f"{name} {fate.get(name, 'was added by hand')}"
        for name in sorted(sealed.keys() | now.keys())
        if sealed.get(name) != now.get(name)
    ]


def is_current(folder: Path, fingerprint: str) -> bool:
    """Tell whether ``folder`` holds the untouched artefacts of this very fingerprint."""
    return sealed_fingerprint(folder) == fingerprint and not differences(folder)


@contextmanager
def exclusive(book: Book) -> Iterator[None]:
    """Hold the lock of ``book``; the system releases it when the process ends, however it ends.

    Two runs at a time would remove each other's scratch folders.
    """
    book.run.mkdir(parents=True, exist_ok=True)
    with (book.run / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another run of this book is in progress; wait for it or stop it") from None
        yield


def fresh_run(book: Book, otherwise: str, wanted: list[str] | None = None) -> Parameters:
    """Return the parameters of the present run.

    Raises
    ------
    UsageError
        Where one of the ``wanted`` chapters (all when empty) was not executed, or is not as its sources are now, with
        all that is wrong; ``otherwise`` says at its end what cannot be done therefore.
    """
    chapters = book.select(wanted or [])
    manifest = read_json(book.manifest)
    if any(name not in manifest for name in KNOWN):
        raise UsageError("no run exists; start one with 'make book'", otherwise)
    parameters = Parameters(**{name: manifest[name] for name in KNOWN})
    try:
        prints = fingerprints(book, parameters)
    except UsageError as error:
        # The collection of a run is not where it was, for one.
        raise UsageError(*error.problems, f"the present run has {parameters}; run 'make book' to replace it") from None
    problems = Problems()
    for chapter in chapters:
        folder = book.folder_of(chapter)
        fingerprint = sealed_fingerprint(folder)
        if fingerprint is None:
            wrong = ["not executed"]
        elif fingerprint != prints[chapter.name]:
            wrong = ["the run is stale, its sources, versions or parameters have changed since"]
        else:
            wrong = [f"{difference} after the run" for difference in differences(folder)]
        remedy = f"make chapter CHAPTER={chapter.name[:2]}" if wanted else "make book"
        problems += [f"{chapter.name}: {what}; run '{remedy}'" for what in wrong]
    problems.raise_any(UsageError, otherwise)
    return parameters
