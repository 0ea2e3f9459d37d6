"""The LETOR reader: speed against scikit-learn, memory, and damaged files.

    python -m benchmarks.letor_reader [number of damaged files, default 10000]

Writes a file of 36,000 documents × 136 features (about 45 MB, values as in MSLR: whole numbers, zeros, six decimals)
into a temporary folder, checks that all readers give equal arrays, and prints the best time of each.  Memory is the
growth of a fresh process's largest resident size (Linux) while it reads, divided by the arrays.  Then every damaged
file is read and compared with the literal parser of the tests: it must be read right or refused with its line.
"""

from __future__ import annotations

import collections
import gzip
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.timing import peak_memory, table
from cfltr_book.data.letor import read_svmlight
from cfltr_core import RankingData

N_DOCS, N_FEATURES, LENGTH = 36_000, 136, 120

CHILD = """
import re, sys
from cfltr_book.data.letor import read_svmlight

def peak():  # of this process alone: getrusage would count the parent's before exec
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

with open(sys.argv[2], "w") as f:  # imports and first allocations happen here, not in the measurement
    f.write("1 qid:1 1:1\\n0 qid:1 1:2\\n")
read_svmlight(sys.argv[2])
before = peak()
data = read_svmlight(sys.argv[1])
after = peak()
arrays = data.features.nbytes + data.relevance.nbytes + data.offsets.nbytes
print((after - before) / arrays)
"""


def write_collection(path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, size=N_FEATURES)
    with path.open("w", encoding="ascii") as file:
        for d in range(N_DOCS):
            values = 10.0 * rng.normal(size=N_FEATURES)
            words = [
                str(int(x)) if kind == 0 else "0" if kind == 1 and x < 0 else f"{x:.6f}"
                for kind, x in zip(kinds.tolist(), values.tolist(), strict=True)
            ]
            pairs = " ".join(f"{i}:{word}" for i, word in enumerate(words, start=1))
            file.write(f"{rng.integers(5)} qid:{d // LENGTH + 1} {pairs}\n")


def speed(folder: Path) -> None:
    path, zipped = folder / "all.txt", folder / "all.txt.gz"
    write_collection(path)
    zipped.write_bytes(gzip.compress(path.read_bytes(), 6))
    n_bytes = path.stat().st_size

    def peer() -> tuple:
        return load_svmlight_file(str(path), query_id=True, zero_based=False, n_features=N_FEATURES)

    def ours() -> RankingData:
        return read_svmlight(path)

    def from_gzip() -> RankingData:
        return read_svmlight(zipped)

    features, grades, qid = peer()
    dense = features.toarray().astype(np.float32)
    for read in (ours, from_gzip):
        data = read()
        np.testing.assert_array_equal(data.features, dense)
        np.testing.assert_array_equal(data.relevance, grades)
        np.testing.assert_array_equal(data.offsets[1:-1], np.flatnonzero(np.diff(qid)) + 1)
    del features, dense, data
    # In turn, so that a busy machine slows all of them alike.
    seconds: dict[str, float] = {}
    calls = {"scikit-learn load_svmlight_file": peer, "read_svmlight": ours, "read_svmlight, gzip": from_gzip}
    for _ in range(4):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(seconds.get(name, np.inf), time.perf_counter() - start)
    base = seconds["read_svmlight"]
    print(f"{N_DOCS:,} documents × {N_FEATURES} features, {n_bytes / 1e6:.0f} MB; equal values")
    print(table([(name, s, s / base) for name, s in seconds.items()]))
    arrays = data_bytes(ours())
    for name, target in (("plain", path), ("gzip", zipped)):
        command = [sys.executable, "-c", CHILD, str(target), str(folder / "tiny.txt")]
        ratio = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"  peak resident memory, {name:30s} {ratio:5.2f} × the arrays")
    print(f"  peak traced memory, plain {'':24s} {peak_memory(ours) * 1e6 / arrays:5.2f} × the arrays")


def data_bytes(data: RankingData) -> int:
    return data.features.nbytes + data.relevance.nbytes + data.offsets.nbytes


def damaged(folder: Path, n_files: int) -> None:
    # The literal parser and the damage are the tests' own.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
    import letor_fuzz

    verdicts: collections.Counter[str] = collections.Counter()
    for seed in range(n_files):
        try:
            verdicts[letor_fuzz.judge(letor_fuzz.mutant(seed), folder)] += 1
        except Exception as error:
            verdicts["WRONG"] += 1
            print(f"  letor_fuzz.mutant({seed}): {error!r}")
    print(f"{n_files:,} damaged files: " + ", ".join(f"{verdicts[v]:,} {v}" for v in ("read", "refused", "WRONG")))
    if verdicts["WRONG"]:
        raise SystemExit(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        speed(Path(folder))
        damaged(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)


if __name__ == "__main__":
    main()
