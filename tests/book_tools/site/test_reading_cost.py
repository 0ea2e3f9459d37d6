"""The cost of reading events: a row for each measured size, and the machine on which it was measured."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from toy import REPOSITORY

from book_tools.site.papers_size import reading_cost

ABOUT = {
    "processor": "Toy", "cores": 2, "memory_bytes": 8 * 2**30, "duckdb": "1", "ibis-framework": "2",
    "revision": "0123456789", "memory_limit": "1GB", "candidates": 200, "page": 10,
}  # fmt: skip


def write(path: Path, load: float) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "repeat", "bytes", "terms", "seconds", "cpu", "MiB"])
        writer.writerow([10**5, 0, 4 * 10**5, 1000, 0.5, 1.0, 512])
        writer.writerow([10**5, 1, 4 * 10**5, 1000, 1.5, 3.0, 1536])
        writer.writerow([25 * 10**5, 0, 10**7, 20000, 7.0, 14.0, 2048])
    path.with_suffix(".json").write_text(json.dumps({**ABOUT, "load": load}))


def test_each_size_has_a_row_with_the_means_of_its_readings(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    write(path, load=0.3)
    text = reading_cost(path)
    assert "3 readings at 2 sizes" in text
    assert "| 100,000 | 1,000 | 2.0 s | 1.0 s | 1.0 GiB |" in text
    assert "| 2,500,000 | 20,000 | 14.0 s | 7.0 s | 2.0 GiB |" in text
    assert "crowded" not in text
    write(path, load=7.5)
    assert "7.5 processes on average for 2 cores: seconds of the wall clock are those of a crowded" in reading_cost(
        path
    )


def test_without_points_there_is_no_section(tmp_path: Path) -> None:
    assert reading_cost(tmp_path / "events.csv") == ""


def test_the_kept_points_make_a_page() -> None:
    text = reading_cost(REPOSITORY / "benchmarks" / "measured" / "events.csv")
    assert text.count(" GiB |") == 4
    assert "nan" not in text
