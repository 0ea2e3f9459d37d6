"""Speed and usefulness, measured against named peers: ``python -m benchmarks.NAME`` from the top of the checkout.

Each script checks first that the compared values are equal, runs on one thread, and prints ratios from one process.
Wall-clock numbers live here and nowhere else: not in a claim, a test or a figure.
"""

import os

# Before numpy is imported: one thread in every pool, so that ratios compare algorithms and not cores.
for _pool in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    os.environ[f"{_pool}_NUM_THREADS"] = "1"
