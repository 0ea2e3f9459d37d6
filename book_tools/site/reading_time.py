"""How long a chapter takes to read: an estimate from what stands open on its page, by a rule that is stated with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from book_tools.site.visible import cells_of, path_words, prose_of

# A derivation is read slower than a story, and a line of code is a sentence.
WORDS_A_MINUTE, LINES_A_MINUTE = 80, 6
RULE = (
    f"Times are estimates, computed from the text: {WORDS_A_MINUTE} words and {LINES_A_MINUTE} lines of code a minute, "
    "as one reads what one wants to follow. Only what stands open is counted, and no formulas"
)


def minutes_of(notebook: Mapping[str, Any]) -> float:
    """Return the estimate for one chapter: words / 80 + visible lines of code / 6."""
    cells = cells_of(notebook)
    lines = sum(cell.lines for cell in cells if cell.is_visible)
    return path_words(prose_of(cells)) / WORDS_A_MINUTE + lines / LINES_A_MINUTE


def in_words(minutes: float) -> str:
    """Return a time as exactly as an estimate is: to five minutes, and from two hours on to half an hour."""
    return f"{max(5, 5 * round(minutes / 5))} minutes" if minutes < 117.5 else f"{round(minutes / 30) / 2:g} hours"
