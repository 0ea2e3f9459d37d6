"""The judges of the pages that npm brings: axe-core, and the validator of the W3C; they come from the system.

axe-core is a script, https://github.com/dequelabs/axe-core, that says what people with a screen reader meet: contrast,
names, roles, structure.  The validator is a Java program, https://github.com/validator/validator.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from book_tools.errors import UsageError

JAVA = "on Debian and Ubuntu: 'apt-get update && apt-get install default-jre-headless', as root"


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


def find_axe() -> Path:
    """Return the path of the script, or raise with what to install; AXE_CORE names it where it lies elsewhere."""
    place = Path("axe-core") / "axe.min.js"
    return npm_file("browser: axe-core, which judges how accessible a page is", place, "AXE_CORE", "axe-core@4")


def find_validator() -> list[str]:
    """Return the command that begins a check, or raise with what to install; VNU_JAR names the archive elsewhere."""
    java = shutil.which("java")
    if java is None:
        raise UsageError(f"markup: Java, which the validator of pages needs, was not found; {JAVA}")
    place = Path("vnu-jar") / "build" / "dist" / "vnu.jar"
    archive = npm_file("markup: vnu.jar, the validator of pages", place, "VNU_JAR", "vnu-jar@26")
    return [java, "-Xss4m", "-jar", str(archive)]
