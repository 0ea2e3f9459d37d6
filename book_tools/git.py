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


def git_state(root: Path, *, besides: str | None = None) -> tuple[str | None, bool | None]:
    """Return the git revision and whether files, ``besides`` a folder, differ from it; (None, None) outside one."""
    revision = git(root, "rev-parse", "HEAD")
    changes = git(root, "status", "--porcelain", "--", ".", *([f":(exclude){besides}"] if besides else []))
    return revision, None if changes is None else bool(changes)
