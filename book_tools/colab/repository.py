"""Where the book can be got from, and the first cell of a copy, which installs from there what the page was built from.

The address is, in this order: the environment variable ``CFLTR_REPOSITORY``; the ``origin`` remote of the
clone, when it is a public https address; else none.  Never anything that the owner of the clone did not set.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.files import read_json
from book_tools.git import git
from book_tools.rendering import render

VARIABLE = "CFLTR_REPOSITORY"
# An address with a host of the public net, by name, and nothing secret in it.
PUBLIC = re.compile(r"https://([\w-]+\.)+(?!(local|internal|localhost)\b)[a-z][\w-]*(:\d+)?/[\w.~/+-]+", re.IGNORECASE)
# Colab opens notebooks that lie in a GitHub repository; the copies are built, so they get a branch of their own.
COLAB_BRANCH = "colab"
COLAB = "https://colab.research.google.com/github"
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.IGNORECASE)

# Where cfltr_book.figure looks for them.
NUMBERS_VARIABLE = "CFLTR_FIGURE_NUMBERS"
PACKAGE, MODULE = "cfltr-core", "cfltr_book"
# How a chapter's own first cell, which the install cell replaces, is recognised.
GUARD = f'find_spec("{MODULE}")'
# The extra that every chapter needs, and of others the function that a notebook calls which needs it.
CHAPTERS = "chapters"
EXTRAS = {"logs": "read_events", "real": "open_bandit"}


@dataclass(frozen=True)
class Origin:
    """What a page was built from: the ``address`` of a repository that everybody can reach, a revision of it.

    Each part is None when it is not known; ``dirty`` is True where the page was built from changes on top.
    """

    address: str | None
    revision: str | None
    dirty: bool | None

    @property
    def installable(self) -> bool:
        """Tell whether the repository holds exactly what the page was built from."""
        return self.address is not None and self.revision is not None and self.dirty is False

    @property
    def github(self) -> str | None:
        """The repository on GitHub, as *owner/name*, or None when it lies elsewhere."""
        match = GITHUB.fullmatch(self.address or "")
        return match[1] if match else None

    @property
    def site(self) -> str | None:
        """The address of the published pages, ending in a slash, or None when it cannot be known."""
        if self.github is None:
            return None
        owner, name = self.github.split("/")
        host = f"{owner.lower()}.github.io"
        return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"

    def colab(self, notebook: str) -> str | None:
        """The address that opens a published copy in Colab, or None where Colab cannot reach it."""
        return f"{COLAB}/{self.github}/blob/{COLAB_BRANCH}/{notebook}" if self.github else None


def origin_of(book: Book) -> Origin:
    """Return what the present run was made from."""
    manifest = read_json(book.manifest)
    return Origin(find_repository(book.root), manifest.get("revision"), manifest.get("dirty"))


def find_repository(root: Path) -> str | None:
    """Return the address of the repository of the book in ``root``, or None when no public address is known."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        if not PUBLIC.fullmatch(given):
            raise UsageError(
                f"{VARIABLE}={given}: expected a public address like https://host.example/owner/name, without a user "
                "or a password in it; correct it, or unset it to build without a repository"
            )
        return given.rstrip("/")
    remote = git(root, "remote", "get-url", "origin")
    # A book inside another repository is not what that repository's address installs.
    if remote and git(root, "rev-parse", "--show-prefix") == "" and PUBLIC.fullmatch(remote):
        return remote.rstrip("/")
    return None


def requirement(origin: Origin, extras: Sequence[str] = ()) -> str | None:
    """Return what pip is to install, or None when no repository holds what the page was built from."""
    wanted = f"{PACKAGE}{_bracketed(extras)} @ git+{origin.address}@{origin.revision}"
    return wanted if origin.installable else None


def as_listed(origin: Origin) -> str:
    """Return how pip lists the package once that is installed: without extras."""
    return str(requirement(origin)).replace(_bracketed(()), "")


def extras_of(cells: Iterable[NotebookNode]) -> tuple[str, ...]:
    """Return the extras of the package that the code of a notebook needs besides that of every chapter."""
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return tuple(extra for extra, function in EXTRAS.items() if re.search(rf"\b{function}\(", code))


def _bracketed(extras: Sequence[str]) -> str:
    return f"[{','.join((CHAPTERS, *extras))}]"


def stamp_of(origin: Origin) -> str:
    """Say in half a sentence what a copy was made from."""
    if origin.revision is None:
        return "made from files that are under no version control"
    if origin.dirty:
        return f"made from uncommitted changes on top of revision {origin.revision}, which does not hold them"
    return f"made from revision {origin.revision}"


def is_guard(cell: NotebookNode) -> bool:
    """Tell whether ``cell`` is a chapter's own check that the package is there."""
    return bool(cell.cell_type == "code" and GUARD in cell.source)


def install_source(origin: Origin, extras: Sequence[str] = (), numbers: dict[str, str] | None = None) -> str:
    """Return the source of the cell: nothing where the package is there, else an installation or an explanation.

    ``numbers`` are those of the chapter's figures in the book, by name: the package puts them before the captions.
    """
    return render(
        "install.py.jinja",
        module=MODULE,
        requirement=requirement(origin, extras),
        extras=_bracketed(extras),
        origin=origin,
        stamp=stamp_of(origin),
        variable=NUMBERS_VARIABLE,
        numbers=json.dumps(numbers, indent=4) if numbers else "",
    ).rstrip("\n")
