"""Time to import the package, in fresh interpreters.

    python -m benchmarks.imports

Prints the best and the median of 15 imports of cfltr_core, of numpy alone, and of the libraries that it does *not*
load at import; and how many modules are loaded.  On a quiet machine the package must stay below .3 s, and load none of
them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

REPETITIONS = 15
CHILD = """
import json, sys, time
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(json.dumps([seconds, len(sys.modules), sorted({heavy!r} & set(sys.modules))]))
"""
HEAVY = {"torch", "scipy", "sklearn", "matplotlib", "seaborn", "pandas"}


def measure(module: str) -> tuple[list[float], int, list[str]]:
    seconds, loaded, heavy = [], 0, []
    for _ in range(REPETITIONS):
        code = CHILD.format(module=module, heavy=HEAVY)
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        time_taken, loaded, heavy = json.loads(out)
        seconds.append(time_taken)
    return seconds, loaded, heavy


def main() -> None:
    base = None
    for module in ("cfltr_core", "numpy", "scipy.special", "sklearn.metrics", "matplotlib.pyplot"):
        seconds, loaded, heavy = measure(module)
        base = base or min(seconds)
        if module == "cfltr_core":
            assert not heavy, heavy
        middle = statistics.median(seconds)
        print(
            f"  import {module:20s} best {min(seconds) * 1e3:6.0f} ms, median {middle * 1e3:6.0f} ms, "
            f"× {min(seconds) / base:5.2f}, {loaded:4d} modules"
        )


if __name__ == "__main__":
    main()
