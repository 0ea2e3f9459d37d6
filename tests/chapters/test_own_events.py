"""The code that chapter 1 shows in a fold, for events of one's own, which the chapter itself does not run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

import cfltr_core as cf

CHAPTER = Path(__file__).resolve().parents[2] / "chapters" / "01_clicks_are_biased.ipynb"


def test_events_as_chapter_1_shows_them_are_accepted_and_judge_a_candidate() -> None:
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"pd": pd, "cf": cf}
    exec(code, names)
    log = names["ab_log"]
    assert (int(log.n_sessions), int(log.n_clicks)) == (3, 3)
    assert sorted(zip(log.document, log.rank, log.clicks, strict=True)) == [
        *[(0, 1, 1), (0, 2, 1), (1, 2, 0), (1, 3, 0), (2, 1, 1), (2, 3, 0)]
    ]
    # A and C change places: C gains what A loses at rank 1, counted by clicks.
    gain = cf.naive(log, names["candidate"] - names["old"]).report()
    assert round(gain, 3) == round((2 * (0.6309 - 1) + (1 - 0.5)) / 3, 3)
