"""The reader of the Open Bandit logs: what it returns, and what it says of files that are not those."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import open_bandit_files as files
import pytest

from cfltr_book.data import open_bandit as room
from cfltr_book.data.open_bandit import open_bandit


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the whole data set, with the hand-made files."""
    files.write_all(tmp_path / "obd")
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    return tmp_path / "obd"


def test_rows_come_in_the_order_of_the_files(disk: Path) -> None:
    logs = open_bandit(whole=True)
    assert list(logs.columns) == ["campaign", "policy", "item", "position", "click", "propensity"]
    assert len(logs) == 3 * 2 * 4
    first = logs[(logs["campaign"] == "men") & (logs["policy"] == "bts")]
    assert [tuple(row) for row in first.iloc[:, 2:].to_numpy()] == files.THOMPSON
    sizes = logs.groupby(["campaign", "policy"], observed=True).size()
    assert list(sizes.index) == [(campaign, policy) for campaign in files.CAMPAIGNS for policy in files.POLICIES]


def test_the_small_logs_are_those_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are found beside its first module, which is not imported."""
    files.write_all(tmp_path / "dataset" / "obd")
    (tmp_path / "__init__.py").write_text("raise ImportError('nobody imports this')")
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    original = importlib.util.find_spec
    monkeypatch.setattr(room.importlib.util, "find_spec", lambda name: found if name == "obp" else original(name))
    assert len(open_bandit()) == 24
    for missing in ("obp", "pyarrow"):
        monkeypatch.setattr(
            room.importlib.util, "find_spec", lambda name, gone=missing: None if name == gone else found
        )
        with pytest.raises(ModuleNotFoundError, match=r"pip install obp==0\.4\.1 pyarrow"):
            open_bandit()


def test_a_million_rows_are_read(disk: Path) -> None:
    rows = files.drawn(1_000_000, np.random.default_rng(0))
    files.write(disk, "all", "random", rows)
    logs = open_bandit(whole=True)
    of_file = logs[(logs["campaign"] == "all") & (logs["policy"] == "random")]
    assert len(of_file) == 1_000_000
    assert of_file["item"].sum() == rows["item_id"].sum()
    assert of_file["click"].sum() == rows["click"].sum()
    # 14 bytes a row, and two for campaign and policy.
    assert logs.memory_usage(index=False).sum() < 17 * len(logs)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 4, 0, 0.5), "position is 4 in row 4"),
        ((0, 1, 2, 0.5), "click is 2 in row 4"),
        ((0, 1, 0, 0.0), r"propensity is 0\.0 in row 4"),
        ((-1, 1, 0, 0.5), "item is -1 in row 4"),
        (("a", 1, 0, 0.5), "expected the columns item_id, position, click, propensity_score, of numbers"),
        ((0, 1, 0, None), "propensity is nan in row 4"),
    ],
)
def test_a_row_that_cannot_be_is_named(disk: Path, row: files.Row, message: str) -> None:
    path = files.write(disk, "men", "random", [*files.RANDOM, row])
    with pytest.raises(ValueError, match=message) as raised:
        open_bandit(whole=True)
    assert str(path) in str(raised.value)


def test_what_is_missing_is_named(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = disk / "bts" / "women" / "women.csv"
    path.write_text(path.read_text().replace("click", "clock"))
    with pytest.raises(ValueError, match=r"women\.csv: expected the columns item_id"):
        open_bandit(whole=True)
    path.unlink()
    with pytest.raises(ValueError, match=r"women\.csv: there is no such file; .*CFLTR_DATA/obd"):
        open_bandit(whole=True)
    monkeypatch.delenv("CFLTR_DATA")
    with pytest.raises(ValueError, match="CFLTR_DATA is not set"):
        open_bandit(whole=True)
