"""The stop-watch of the benchmarks."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def best_of(call: Callable[[], T], repetitions: int = 5) -> tuple[float, T]:
    """Shortest wall-clock time of ``call`` in seconds, and its result.  The first call, a warm-up, is not counted."""
    result = call()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def peak_memory(call: Callable[[], object]) -> float:
    """Largest memory that Python and NumPy held at once during ``call``, above what was there before, in MB."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def table(rows: list[tuple[str, float, float]], unit: str = "ms") -> str:
    """``name, seconds, ratio`` as aligned text."""
    factor = {"s": 1.0, "ms": 1e3}[unit]
    return "\n".join(f"  {name:44s} {seconds * factor:10.1f} {unit}   × {ratio:7.2f}" for name, seconds, ratio in rows)
