"""What it costs to count raw events: the measured points as a table, and on what machine they were measured."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from book_tools.site.tables import table

# Other work that keeps more than this share of the cores busy makes wall-clock seconds those of the other work.
BUSY = 0.5


def reading_cost(path: Path) -> list[str]:
    """Return the section of the page, from the points that ``benchmarks.events --cost`` keeps; empty without them."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        points = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    sizes = sorted({int(point["rows"]) for point in points})
    rows = [_row(size, [point for point in points if point["rows"] == size]) for size in sizes]
    return [
        "## What it costs to read a log of yours\n",
        f"{_conditions(about, len(points), len(sizes))}\n",
        table(["Rows", "Different displays", "Processor", "Wall clock", "Memory"], rows),
        "Nothing larger was measured. Sessions are independent, so a larger log is read in pieces by many machines, or "
        "by the warehouse where it lies. Memory grows with the different displays that are counted, and with the pages "
        "that DuckDB holds before it writes them to disk.\n",
    ]


def _conditions(about: Mapping[str, Any], readings: int, sizes: int) -> str:
    """Say what was measured, and on what."""
    text = (
        "How long does `cf.read_events` take from Parquet to counts? It was measured on generated events of one shop "
        f"({about['candidates']:,} candidates, pages of {about['page']}), {readings} readings at {sizes} "
        f"sizes, each in a process of its own: {about['processor']}, {about['cores']} cores, "
        f"{about['memory_bytes'] / 2**30:.0f} GiB of memory of which DuckDB may hold {about['memory_limit']}, DuckDB "
        f"{about['duckdb']}, Ibis {about['ibis-framework']}, revision `{about['revision'][:7]}`. Rows of the table are "
        "means over the readings of one size. These points are kept, and never compared."
    )
    if about["load"] > BUSY * about["cores"]:
        text += (
            f" Other work ran meanwhile, {about['load']:.1f} processes on average for {about['cores']} cores: seconds "
            "of the wall clock are those of a crowded machine."
        )
    return text


def _row(size: int, points: list[dict[str, float]]) -> list[str]:
    names = ("terms", "cpu", "seconds", "MiB")
    displays, processor, wall, memory = (float(np.mean([point[name] for point in points])) for name in names)
    power = round(math.log10(size))
    return [
        f"$10^{{{power}}}$" if size == 10**power else f"{size:,}",
        f"{displays:,.0f}",
        f"{processor:.1f} s",
        f"{wall:.1f} s",
        f"{memory / 1024:.1f} GiB",
    ]
