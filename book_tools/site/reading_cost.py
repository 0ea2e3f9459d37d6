"""What it costs to count raw events, from measured points to sizes that nobody measured: a line, and how sure it is."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from book_tools.site.tables import table

LARGEST = 10**9  # a decade beyond what was measured; the line bends too much to go farther
LEVEL = 0.95
# Other work that keeps more than this share of the cores busy makes wall-clock seconds those of the other work.
BUSY = 0.5


@dataclass(frozen=True)
class Line:
    """Seconds = ``fixed`` + ``each`` · rows, fitted to logarithms, so that errors are relative at every size."""

    fixed: float
    each: float
    spread: float  # standard deviation of the logarithm of one measurement
    freedom: int
    covariance: np.ndarray  # of the logarithms of fixed and each

    def seconds(self, rows: float) -> float:
        """What the line gives."""
        return self.fixed + self.each * rows

    def interval(self, rows: float) -> tuple[float, float]:
        """In which one more measurement lies with probability ``LEVEL``, were the line right as far as this."""
        from scipy.special import stdtrit

        share = self.each * rows / self.seconds(rows)
        slope = np.array([1 - share, share])
        half = stdtrit(self.freedom, 0.5 + LEVEL / 2) * math.sqrt(self.spread**2 + slope @ self.covariance @ slope)
        return self.seconds(rows) * math.exp(-half), self.seconds(rows) * math.exp(half)


def fitted(rows: ArrayLike, seconds: ArrayLike) -> Line:
    """The line with the least Σ (log seconds − log(fixed + each · rows))²."""
    from scipy.optimize import least_squares

    n, took = np.asarray(rows, dtype=float), np.asarray(seconds, dtype=float)
    start = np.log([took.min(), took.max() / n.max()])

    def missed(at: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(took) - np.log(np.exp(at[0]) + np.exp(at[1]) * n))

    found = least_squares(missed, start, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    freedom = len(n) - 2
    variance = float(found.fun @ found.fun) / freedom
    covariance = variance * np.linalg.inv(found.jac.T @ found.jac)
    fixed, each = np.exp(found.x)
    return Line(float(fixed), float(each), math.sqrt(variance), freedom, covariance)


def bent(rows: ArrayLike, seconds: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """What a line is fitted to: all readings, or one mean a size if those of a size agree better than sizes and line.

    Where readings differ less than the line misses, repeating them tells no more of the line, and as many readings as
    one likes would make its intervals narrow.  Told by an F test of the sizes' distances against the readings'.
    """
    from scipy.special import fdtrc

    n, took = np.asarray(rows, dtype=float), np.log(np.asarray(seconds, dtype=float))
    sizes, at, times = np.unique(n, return_inverse=True, return_counts=True)
    means = np.bincount(at, took) / times
    within = float(((took - means[at]) ** 2).sum())
    line = fitted(n, np.exp(took))
    around = float((times * (means - np.log(line.fixed + line.each * sizes)) ** 2).sum())
    free, more = len(n) - len(sizes), len(sizes) - 2
    if free == 0 or more <= 0 or fdtrc(more, free, around / more / max(within / free, 1e-12)) >= 1 - LEVEL:
        return n, np.exp(took)
    return sizes, np.exp(means)


def reading_cost(path: Path) -> list[str]:
    """The section of the page, from the points that ``benchmarks.events --cost`` keeps; nothing if there are none."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        points = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    line = fitted(*bent([point["rows"] for point in points], [point["cpu"] for point in points]))
    sizes = sorted({int(point["rows"]) for point in points})
    by_size = {size: [point for point in points if point["rows"] == size] for size in sizes}
    rows = [_measured(size, found, line) for size, found in by_size.items()]
    beyond = range(round(math.log10(sizes[-1])) + 1, round(math.log10(LARGEST)) + 1)
    rows += [_extrapolated(10**power, line) for power in beyond]
    header = ["Rows", "Processor", "Wall clock", "Memory", "The line, and its interval"]
    return [
        "## What it costs to read a log of yours\n",
        *_told(points, about, by_size),
        table(header, rows),
        *_model(points, line, by_size),
    ]


def _told(points: Sequence[Mapping[str, float]], about: Mapping[str, Any], by_size: Mapping[int, Any]) -> list[str]:
    """What was measured, and on what."""
    text = (
        "How long does `cf.read_events` take from Parquet to counts? It was measured on generated events of one shop "
        f"({about['candidates']:,} candidates, pages of {about['page']}), {len(points)} readings at {len(by_size)} "
        f"sizes, each in a process of its own: {about['processor']}, {about['cores']} cores, "
        f"{about['memory_bytes'] / 2**30:.0f} GiB of memory of which DuckDB may hold {about['memory_limit']}, DuckDB "
        f"{about['duckdb']}, Ibis {about['ibis-framework']}, revision `{about['revision'][:7]}`. These points are "
        "kept, and never compared."
    )
    if about["load"] > BUSY * about["cores"]:
        text += (
            f" Other work ran meanwhile, {about['load']:.1f} processes on average for {about['cores']} cores: seconds "
            "of the wall clock are those of a crowded machine."
        )
    return [text + "\n"]


def _model(points: Sequence[Mapping[str, float]], line: Line, by_size: Mapping[int, Any]) -> list[str]:
    """The line in words, how far it is from the readings, and what it supposes."""
    largest, (low, high) = max(by_size), line.interval(LARGEST)
    cpu = {size: np.array([point["cpu"] for point in found]) for size, found in by_size.items()}
    apart = max(float(took.max() / took.min()) for took in cpu.values()) - 1
    missed = {size: float(took.mean()) / line.seconds(size) - 1 for size, took in cpu.items()}
    worst = max(missed, key=lambda size: abs(missed[size]))
    side = "above" if missed[worst] > 0 else "below"
    off = (
        f"readings of one size are at most {apart:.0%} apart, and at {_power(worst)} rows they are "
        f"{abs(missed[worst]):.0%} {side} it"
    )
    if line.freedom < len(points) - 2:
        off += (
            f". So cost is not quite a line in the rows (different displays cost too, and become rarer), and the "
            f"intervals are made of how far the line is from {len(by_size)} sizes, not of the readings"
        )
    least, most = (pick(points, key=lambda point: point["terms"]) for pick in (min, max))
    text = (
        f"The line is {line.fixed:.2g} s + {1e6 * line.each:.2g} s for a million rows, seconds of processor, by least "
        f"squares of logarithms; {off}. Intervals hold one more reading "
        f"with probability {LEVEL:.0%}, *if the line goes on*. Above {_power(largest)} rows nothing was measured: "
        f"{_power(LARGEST)} rows, {_time(low)} to {_time(high)} of one processor for "
        f"{points[-1]['bytes'] / points[-1]['rows'] * LARGEST / 1e9:,.0f} GB of files, is a calculation. It supposes a "
        "disk that keeps up, and groups of sessions that are written to disk at the same price as here. Sessions are "
        "independent, so such a log is read in pieces by many machines, or by the warehouse where it lies."
    )
    if most["terms"] > least["terms"]:
        each = 2**20 * (most["MiB"] - least["MiB"]) / (most["terms"] - least["terms"])
        text += (
            f" Memory grows with the different displays that are counted, {each:.0f} bytes for each, up to "
            f"{most['terms']:,.0f} of them here, and with the pages that DuckDB holds before it writes them to disk; "
            "neither grows on with the rows once all displays have occurred."
        )
    return [text + "\n"]


def _measured(size: int, points: Sequence[Mapping[str, float]], line: Line) -> list[str]:
    means = {name: float(np.mean([point[name] for point in points])) for name in ("cpu", "seconds", "MiB")}
    return [
        _power(size),
        _time(means["cpu"]),
        _time(means["seconds"]),
        f"{means['MiB'] / 1024:.1f} GiB",
        _range(size, line),
    ]


def _extrapolated(size: int, line: Line) -> list[str]:
    return [_power(size), *["not measured"] * 3, _range(size, line)]


def _range(size: int, line: Line) -> str:
    return f"{_time(line.seconds(size))} [{', '.join(map(_time, line.interval(size)))}]"


def _power(size: int) -> str:
    """A power of ten as one, another number in full."""
    power = round(math.log10(size))
    return f"$10^{{{power}}}$" if size == 10**power else f"{size:,}"


def _time(seconds: float) -> str:
    """Seconds, minutes, hours or days: two digits of it."""
    for unit, factor in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:,.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
