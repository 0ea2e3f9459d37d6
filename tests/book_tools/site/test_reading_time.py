"""The time of reading: words and lines that stand open, by a rule that is stated."""

from __future__ import annotations

from typing import Any

import pytest

from book_tools.site.reading_time import LINES_A_MINUTE, RULE, WORDS_A_MINUTE, in_words, minutes_of


def cell(kind: str, text: str, *tags: str) -> dict[str, Any]:
    return {"cell_type": kind, "source": text, "metadata": {"tags": list(tags)}}


def test_what_stands_open_is_counted_and_nothing_else() -> None:
    words, lines = 3 * WORDS_A_MINUTE, 2 * LINES_A_MINUTE
    code = "x = 1\n" * lines
    cells = [
        cell("markdown", "word " * words + "$a + b$\n\n$$\nc\n$$"),
        cell("markdown", f":::{{dropdown}} Details\n\n{'word ' * words}\n:::"),
        cell("code", code),
        *(cell("code", code, tag) for tag in ("hide-cell", "hide-input", "remove-cell", "remove-input")),
    ]
    assert minutes_of({"cells": cells}) == 3 + 2
    assert minutes_of({"cells": []}) == 0
    assert f"{WORDS_A_MINUTE} words and {LINES_A_MINUTE} lines of code a minute" in RULE


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "5 minutes"),
        (7.4, "5 minutes"),
        (7.6, "10 minutes"),
        (117.4, "115 minutes"),
        (117.6, "2 hours"),
        (134, "2 hours"),
        (136, "2.5 hours"),
        (768, "13 hours"),
    ],
)
def test_a_time_is_said_as_exactly_as_it_is_known(minutes: float, words: str) -> None:
    assert in_words(minutes) == words
