"""The recipes of the page of public logs run on files that were made by hand in the formats they name."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import open_bandit_files
import pandas as pd
import pytest

import cfltr_core as cf

PAGE = Path(__file__).resolve().parents[2] / "chapters" / "public_logs.md"
START, *RECIPES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def run(number: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What the recipe of this number prints."""
    exec(compile(START + RECIPES[number], f"recipe {number}", "exec"), {})
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))


def test_open_bandit(capsys: pytest.CaptureFixture[str]) -> None:
    open_bandit_files.write_all(Path("obd"))
    weights = np.array([1 / 2 / propensity for _, _, _, propensity in open_bandit_files.THOMPSON])
    line = f"men: mean weight {weights.mean():.2f} ± "
    printed = run(0, capsys)
    assert line in printed
    assert f"{weights.sum() ** 2 / (weights**2).sum():,.0f} effective rows of 4" in printed


def test_yandex(capsys: pytest.CaptureFixture[str]) -> None:
    """Session 1 asks twice and clicks on what only its first page shows; a click on what was not shown is none."""
    lines = ["1 0 Q 7 0 a b c", "1 5 C b", "1 9 Q 8 0 d a", "1 12 C c", "1 13 C x"]
    lines += ["2 0 Q 7 0 c a b", "3 0 Q 7 0 b a c", "3 4 C b"]
    Path("Train").write_text("".join("\t".join(line.split()) + "\n" for line in lines))
    names: dict[str, object] = {}
    exec(START + RECIPES[1], names)
    events = names["events"]
    assert isinstance(events, pd.DataFrame)
    clicked = events[events["clicked"] == 1]
    assert clicked[["session", "document", "position"]].to_numpy().tolist() == [[0, "b", 2], [0, "c", 3], [3, "b", 1]]
    assert len(events) == 3 + 2 + 3 + 3
    printed = capsys.readouterr().out
    assert "11 in 4 sessions, 3 clicks" in printed
    assert "ranks 1–3" in printed


def test_baidu(capsys: pytest.CaptureFixture[str]) -> None:
    """The second page has the positions 1, 3 and 4."""
    pages = pd.DataFrame({
        "query_md5": ["q", "q"],
        "url_md5": [["a", "b", "c"], ["b", "a", "c"]],
        "position": [[1, 2, 3], [1, 3, 4]],
        "click": [[1, 0, 0], [1, 0, 1]],
    })  # fmt: skip
    pages.to_feather("part-0_split-0.feather")
    printed = run(2, capsys)
    assert "RankLinks" in printed
    assert "3 displays of a document at a further rank" in printed


def test_kuairand(capsys: pytest.CaptureFixture[str]) -> None:
    videos = np.tile(np.arange(40), 5)
    columns = {"user_id": 1, "video_id": videos, "time_ms": 0, "is_click": videos % 2, "is_rand": 1, "tab": 1}
    pd.DataFrame(columns).to_csv("log_random_4_22_to_5_08_pure.csv", index=False)
    pd.DataFrame(columns).assign(is_rand=0).to_csv("log_standard_4_08_to_4_21_pure.csv", index=False)
    printed = run(3, capsys)
    assert "mean weight 1.00" in printed
    assert "1.000 ± " in printed
    assert "random 0.500" in printed


def test_expedia(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(page, hotel, position, 1, int(hotel == 2)) for page in range(30) for hotel, position in ((1, 1), (2, 3))]
    columns = ["srch_id", "prop_id", "position", "random_bool", "click_bool"]
    pd.DataFrame([*rows, (99, 1, 1, 0, 0)], columns=columns).to_csv("train.csv", index=False)
    printed = run(4, capsys)
    assert "pages without a click: 0.0%" in printed
    assert "refused: " in printed


def test_the_page_is_short_and_its_calls_are_those_of_the_package() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.split()) <= 1_500
    assert len(RECIPES) == 5
    assert [name for name in re.findall(r"`cf\.(\w+)", text) if not hasattr(cf, name)] == []
    assert os.sep not in "".join(re.findall(r'(?:read_\w+|open)\("([^"]*)"', "".join(RECIPES)))
