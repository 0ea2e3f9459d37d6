"""What git knows of the folder of the book."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> str | None:
    """Return what a git command prints in ``root``, stripped; None where git or the repository is missing."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def date_of(root: Path, revision: str | None) -> str | None:
    """Return the day on which a revision was committed, as 2026-11-23; None where git does not know it here."""
    return (git(root, "show", "--no-patch", "--format=%cs", f"{revision}^{{commit}}") or None) if revision else None


def last_changed(root: Path, path: Path) -> str | None:
    """Return the day of the last commit that changed a file; None where git knows of none."""
    return git(root, "log", "-1", "--format=%cs", "--", str(path)) or None


def git_state(root: Path, *, besides: str | None = None) -> tuple[str | None, bool | None]:
    """Return the git revision and whether files, ``besides`` a folder, differ from it; (None, None) outside one."""
    revision = git(root, "rev-parse", "HEAD")
    changes = git(root, "status", "--porcelain", "--", ".", *([f":(exclude){besides}"] if besides else []))
    return revision, None if changes is None else bool(changes)
