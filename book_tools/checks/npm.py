"""Where npm keeps what the checks of the pages use: it comes from the system, as the browser does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def npm_file(place: Path) -> Path | None:
    """Return the file ``place`` of a package that npm installed for everybody, or None without it."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    asked = subprocess.run([npm, "root", "--global"], text=True, capture_output=True, check=False)
    path = Path(asked.stdout.strip()) / place
    return path if asked.returncode == 0 and path.is_file() else None
