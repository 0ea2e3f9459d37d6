"""Texts as somebody last read them, which a test compares whole."""

import os
from pathlib import Path


def same_as_kept(path: Path, text: str) -> None:
    """Compare a text with the one that is kept; with ANEW_PAGES=1 it is written anew, for ``git diff`` to show."""
    if os.environ.get("ANEW_PAGES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; ANEW_PAGES=1 writes it anew"
