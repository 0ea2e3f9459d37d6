"""The judges of the pages that npm brings: they come from the system, as the browser does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from book_tools.errors import UsageError


def npm_file(called: str, place: Path, variable: str, package: str) -> Path:
    """Return the file ``place`` of a ``package`` that npm installed for everybody, or the one that ``variable`` names.

    Raises
    ------
    UsageError
        Without such a file, with what to install; ``called`` is the command that needs it and what it is for.
    """
    remedy = f"'make judges', or 'npm install --global {package}', or set {variable} to its {place.name}"
    named, npm = os.environ.get(variable), shutil.which("npm")
    if named:
        path = Path(named)
        missing = f"{called.partition(':')[0]}: {variable} is {named!r}, where there is no file; {remedy}"
    else:
        root = subprocess.run([npm, "root", "--global"], text=True, capture_output=True, check=False) if npm else None
        path = Path(root.stdout.strip() if root else "") / place
        missing = f"{called}, was not found; {remedy}"
    if not path.is_file():
        raise UsageError(missing)
    return path
