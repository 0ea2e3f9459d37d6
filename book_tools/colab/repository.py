"""Where the book can be got from: the one place that finds the address of its repository.

The address is, in this order: the environment variable ``CFLTR_REPOSITORY``; the ``origin`` remote of the
clone, when it is a public https address; else none.  Never anything that the owner of the clone did not set.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.files import read_json
from book_tools.git import git

VARIABLE = "CFLTR_REPOSITORY"
# Colab opens notebooks that lie in a GitHub repository; the copies are built, so they get a branch of their own.
COLAB_BRANCH = "colab"
COLAB = "https://colab.research.google.com/github"
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.IGNORECASE)


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
        if not _is_public(given):
            raise UsageError(
                f"{VARIABLE}={given}: expected a public address like https://host.example/owner/name, without a user "
                "or a password in it; correct it, or unset it to build without a repository"
            )
        return given.rstrip("/")
    remote = git(root, "remote", "get-url", "origin")
    # A book inside another repository is not what that repository's address installs.
    if remote and git(root, "rev-parse", "--show-prefix") == "" and _is_public(remote):
        return remote.rstrip("/")
    return None


def _is_public(address: str) -> bool:
    """Tell whether ``address`` is https, with a host of the public net and nothing secret in it."""
    if re.search(r"[\s\"'\\`$]", address):
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme != "https" or "@" in parts.netloc or parts.query or parts.fragment or len(parts.path) < 2:
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".internal", ".localhost"))
