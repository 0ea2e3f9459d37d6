"""The cost of reading events: the line through the points, its interval, and what the page says of sizes beyond."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from book_tools.site.reading_cost import bent, fitted, reading_cost

SIZES = [10**5, 10**6, 10**7, 10**8]
ABOUT = {
    "processor": "Toy", "cores": 2, "memory_bytes": 8 * 2**30, "load": 0.3, "duckdb": "1", "ibis-framework": "2",
    "revision": "0123456789", "memory_limit": "1GB", "candidates": 200, "page": 10,
}  # fmt: skip


def write(path: Path, seconds: list[float], load: float = 0.3) -> None:
    rows = [n for n in SIZES for _ in range(len(seconds) // len(SIZES))]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "repeat", "bytes", "terms", "seconds", "cpu", "MiB"])
        for n, took in zip(rows, seconds, strict=True):
            writer.writerow([n, 0, 4 * n, min(n, 10**6), took / 2, took, 200 + min(n, 10**6) / 2**14])
    path.with_suffix(".json").write_text(json.dumps({**ABOUT, "load": load}))


def test_a_line_without_noise_is_found() -> None:
    rows = np.array(SIZES * 2, dtype=float)
    line = fitted(rows, 1.5 + 3e-7 * rows)
    assert line.fixed == pytest.approx(1.5, rel=1e-6)
    assert line.each == pytest.approx(3e-7, rel=1e-6)
    assert line.interval(1e12) == pytest.approx((3e5, 3e5), rel=1e-4)


def test_intervals_hold_one_more_reading_as_often_as_they_say() -> None:
    rng, rows = np.random.default_rng(0), np.array(SIZES * 3, dtype=float)
    truth = lambda n: 1.5 + 3e-7 * n  # noqa: E731
    for at in (1e6, 1e8, 1e12):
        held = 0
        for _ in range(400):
            line = fitted(*bent(rows, truth(rows) * np.exp(0.1 * rng.normal(size=len(rows)))))
            low, high = line.interval(at)
            held += low <= truth(at) * math.exp(0.1 * rng.normal()) <= high
        # Four standard errors of 400 draws.
        assert abs(held / 400 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)


def test_repeated_readings_of_sizes_that_are_off_the_line_make_no_narrow_interval() -> None:
    """Each size has a distance of its own from the line, and so has the size that is asked for."""
    rng, sizes = np.random.default_rng(0), np.array(SIZES, dtype=float)
    truth = lambda n: 1.5 + 3e-7 * n  # noqa: E731
    held, narrow = 0, 0
    for _ in range(200):
        off = np.exp(0.2 * rng.normal(size=len(sizes) + 1))
        rows = np.repeat(sizes, 3)
        took = np.repeat(truth(sizes) * off[:-1], 3) * np.exp(0.01 * rng.normal(size=len(rows)))
        for count, line in ((0, fitted(*bent(rows, took))), (1, fitted(rows, took))):
            low, high = line.interval(1e9)
            inside = low <= truth(1e9) * off[-1] <= high
            held, narrow = held + (inside and count == 0), narrow + (inside and count == 1)
    assert abs(held / 200 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 200)
    assert narrow / 200 < 0.9


def test_the_page_tells_points_from_what_is_beyond(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    write(path, [round(1 + 3e-7 * n, 6) for n in SIZES for _ in range(2)])
    text = "\n".join(reading_cost(path))
    assert "8 readings at 4 sizes" in text
    assert "| $10^{8}$ | 31 s | 16 s | 0.3 GiB | 31 s [31 s, 31 s] |" in text
    assert "| $10^{9}$ | not measured | not measured | not measured | 5 min [5 min, 5 min] |" in text
    assert text.count("not measured") == 3
    assert "$10^{10}$" not in text
    assert "Above $10^{8}$ rows nothing was measured: $10^{9}$ rows, 5 min to 5 min of one processor" in text
    assert "4 GB of files" in text
    assert "64 bytes for each, up to 1,000,000 of them" in text
    assert "crowded" not in text
    assert "readings of one size are at most 0% apart" in text
    assert "not quite a line" not in text
    write(path, [took for n in SIZES for took in (1 + 3e-7 * n + (4 if n == 10**7 else 0),) * 2])
    text = "\n".join(reading_cost(path))
    assert "not quite a line" in text
    assert "made of how far the line is from 4 sizes" in text
    write(path, [round(1 + 3e-7 * n, 6) for n in SIZES for _ in range(2)], load=7.5)
    assert "7.5 processes on average for 2 cores: seconds of the wall clock are those of a crowded" in "".join(
        reading_cost(path)
    )


def test_without_points_there_is_no_section(tmp_path: Path) -> None:
    assert reading_cost(tmp_path / "events.csv") == []


def test_the_kept_points_make_a_page() -> None:
    kept = Path(__file__).resolve().parents[3] / "benchmarks" / "measured" / "events.csv"
    text = "\n".join(reading_cost(kept))
    assert "nan" not in text
    assert "| $10^{9}$ | not measured |" in text
