"""From raw events to counts: time, memory, the same counts by pandas and Spark, and damaged tables.

    python -m benchmarks.events                       # 10⁸ rows, and 10⁷ against pandas
    python -m benchmarks.events --rows 10000000       # fewer
    python -m benchmarks.events --tables 100000       # damaged tables only
    python -m benchmarks.events --judge               # 10⁸ rows: counts, health, curve and decision
    python -m benchmarks.events --cost 100000 1000000 10000000 100000000   # points of the cost model, kept

A generated log of a shop, ten documents a page, three rankers, four periods, is written to Parquet in pieces, in a
temporary folder that is removed in the end.  Each reading runs in a process of its own, whose largest memory is
reported.  pandas is given the first tenth; once it counts only, once it makes the same checks.  Counts are compared.
Spark reads the same tenth in local mode, where pyspark and Java are installed (never by ``make setup``).

With ``--judge`` the whole of chapter 16's way is timed instead: counts, the health report, a curve, and a decision
between two of the rankers.

The points of the cost model are written to ``benchmarks/measured/events.csv``, with the machine in a JSON beside it.
The page *At the papers' size* fits its model to them; they are never compared.  Measure on a machine that is idle.

A damaged table is one to three pages after up to two damages.  What the package says of each row and of each page, and
the counts of what is sound, are compared with the literal loops of the tests.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import cfltr_core as cf
from cfltr_core import read_events
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_parts import FIRST, PRIME, SECOND

QUERIES, CANDIDATES, PLACES, RANKERS, PERIODS = 10_000, 20, 10, 3, 4
PIECE = 1_000_000
KEYS = ["document", "position", "ranker", "period", "part"]
MEASURED = Path(__file__).parent / "measured" / "events.csv"


def candidates() -> pd.DataFrame:
    """One feature for each candidate of each query."""
    document = np.arange(QUERIES * CANDIDATES)
    return pd.DataFrame({"query": document // CANDIDATES, "document": document, "feature": document % CANDIDATES})


def write_log(folder: Path, n_rows: int) -> list[Path]:
    """Events in pieces of a million pages or fewer."""
    paths = []
    n_pages = n_rows // PLACES
    for first in range(0, n_pages, PIECE):
        rng = np.random.default_rng(first)
        n = min(PIECE, n_pages - first)
        query, ranker = rng.integers(0, QUERIES, n), rng.integers(0, RANKERS, n)
        period = (first + np.arange(n)) * PERIODS // n_pages
        # Each ranker begins a place later than the one before, which links all ranks, and moves from period to period.
        place = (np.arange(PLACES) * 3 + (ranker * 3 + period + query)[:, None]) % CANDIDATES
        clicked = rng.random((n, PLACES)) < (0.1 + 0.4 * (place % 3 == 0)) / np.arange(1, PLACES + 1)
        frame = pd.DataFrame(
            {
                "session": np.repeat(first + np.arange(n), PLACES),
                "query": np.repeat(query, PLACES).astype(np.int32),
                "document": (np.repeat(query, PLACES) * CANDIDATES + place.ravel()).astype(np.int32),
                "position": np.tile(np.arange(1, PLACES + 1), n).astype(np.int16),
                "clicked": clicked.ravel().astype(np.int8),
                "ranker": np.repeat(ranker, PLACES).astype(np.int8),
                "period": np.repeat(period, PLACES).astype(np.int8),
            }
        )
        paths.append(folder / f"{first // PIECE:04d}.parquet")
        frame.to_parquet(paths[-1], index=False)
    return paths


def counts_of(events: Events) -> pd.DataFrame:
    """The terms as a table in the order of their keys; documents are rows here."""
    names = {"position": "rank", "part": "part_number"}
    columns = {name: getattr(events, names.get(name, name)) for name in (*KEYS, "impressions", "clicks")}
    return pd.DataFrame(columns).sort_values(KEYS, ignore_index=True)


def by_pandas(paths: list[Path], checked: bool) -> pd.DataFrame:
    """The same by pandas in memory; with ``checked`` after the same looks at rows and pages."""
    rows = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    if checked:
        assert not rows.isna().any().any()
        assert rows.position.min() >= 1
        assert rows.clicked.isin([0, 1]).all()
        assert rows.document.isin(candidates().document).all()
        page = rows.groupby("session").agg(
            n=("position", "size"), top=("position", "max"), clicks=("clicked", "sum"),
            low=("query", "min"), high=("query", "max"), one=("ranker", "min"), other=("ranker", "max"),
            then=("period", "min"), now=("period", "max"),
        )  # fmt: skip
        assert (page.n == page.top).all()
        assert ((page.low == page.high) & (page.one == page.other) & (page.then == page.now)).all()
        assert not rows.duplicated(["session", "position"]).any()
        assert not rows.duplicated(["session", "document"]).any()
        assert (page.clicks == 0).any()
    mixed = (rows.session.to_numpy() % PRIME * FIRST + 1) % PRIME
    number = (mixed ^ (mixed >> 15)) * SECOND % PRIME
    rows["part"] = (number >= int(0.6 * PRIME)).astype(np.int64) + (number >= int((0.6 + 0.2) * PRIME))
    counts = rows.groupby(KEYS).clicked.agg(["size", "sum"]).reset_index()
    return counts.rename(columns={"size": "impressions", "sum": "clicks"})


def read(method: str, paths: list[Path]) -> pd.DataFrame:
    """The counts by one of the methods."""
    if method.startswith("pandas"):
        return by_pandas(paths, method == "pandas with checks")
    if method == "Spark":
        import ibis
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[2]").getOrCreate()
        session.read.parquet(*map(str, paths)).createOrReplaceTempView("events")
        table = ibis.pyspark.connect(session).table("events")
        return counts_of(read_events(table, candidates()))
    return counts_of(read_events([str(path) for path in paths], candidates()))


def judge(paths: list[Path]) -> dict[str, float]:
    """Processor seconds of each step from rows to a decision."""
    source, rows, spent = [str(path) for path in paths], candidates(), {}
    begun = time.process_time()

    def lap(step: str) -> None:
        nonlocal begun
        spent[step] = round(time.process_time() - begun, 1)
        begun = time.process_time()

    events = read_events(source, rows)
    lap("counts")
    report = cf.check_log(events, source, rng=np.random.default_rng(0))
    lap("health")
    curve = cf.conditional_poisson(cf.display_counts(events.part("train")))
    lap("curve")
    # Two of the rankers of the last period, of which the new one has what is wanted at rank 1 more often.
    shift = (rows["query"] + PERIODS - 1).to_numpy()
    place = (rows["feature"].to_numpy() - shift) * pow(3, -1, CANDIDATES) % CANDIDATES
    new, old = (
        cf.rank_weights(-((place - ranker) % CANDIDATES), events.offsets, metric=cf.dcg(PLACES)) for ranker in (1, 0)
    )
    decision = cf.decide(new, old, log=events.part("test"), shares=events, curve=curve, smallest=0.01)
    lap("decision")
    print(report, decision, sep="\n", file=sys.stderr)
    return spent


def alone(method: str, paths: list[Path], out: Path) -> dict[str, float]:
    """Read in a process of its own; seconds, processor seconds and the largest memory in MiB."""
    command = [sys.executable, "-m", "benchmarks.events", "--method", method, "--out", str(out), *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(n_rows: int) -> None:
    """Print what all methods take, and whether their counts are the same."""
    with tempfile.TemporaryDirectory(prefix="cfltr-bench-") as name:
        folder = Path(name)
        paths = write_log(folder, n_rows)
        size = sum(path.stat().st_size for path in paths) / 1e6
        print(f"{n_rows:,} rows of Parquet in {len(paths)} files, {size:.0f} MB", flush=True)
        tenth = paths[: max(1, len(paths) // 10)]
        runs = [("DuckDB", paths)] if len(tenth) < len(paths) else []
        runs += [(method, tenth) for method in ("DuckDB", "pandas", "pandas with checks")]
        missing = [
            name for name, there in (("pyspark", find_spec("pyspark")), ("Java", shutil.which("java"))) if not there
        ]
        runs += [] if missing else [("Spark", tenth)]
        reference: pd.DataFrame | None = None
        for method, which in runs:
            out = folder / "counts.parquet"
            took = alone(method, which, out)
            counts = pd.read_parquet(out)
            out.unlink()
            line = (
                f"  {method:20s} {counts.impressions.sum():>12,} rows  {took['seconds']:6.1f} s  "
                f"{took['cpu']:6.1f} s of processor  {took['MiB']:6.0f} MiB  {len(counts):,} terms"
            )
            if len(which) == len(tenth):
                reference = counts if reference is None else reference
                same = np.array_equal(counts[reference.columns].to_numpy(), reference.to_numpy())
                line += "  counts equal" if same else "  COUNTS DIFFER"
            print(line, flush=True)
        if missing:
            print(f"  Spark                not installed: {', '.join(missing)}")


def measure_cost(sizes: list[int], repeats: int) -> None:
    """Keep what reading takes at each size, each in a process of its own, and what it was measured on."""
    load = os.getloadavg()[0]
    points = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(prefix="cfltr-bench-") as name:
            folder = Path(name)
            paths = write_log(folder, n_rows)
            for repeat in range(repeats):
                out = folder / "counts"
                took = alone("DuckDB", paths, out)
                terms = len(pd.read_parquet(out))
                out.unlink()
                size = sum(path.stat().st_size for path in paths)
                point = {"rows": n_rows, "repeat": repeat, "bytes": size, "terms": terms}
                points.append(point | {name: round(took[name], 3) for name in ("seconds", "cpu", "MiB")})
                print(points[-1], flush=True)
    MEASURED.parent.mkdir(exist_ok=True)
    with MEASURED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*points[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(points)
    revision = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True, check=False).stdout
    about = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": round(load, 2),
        "python": platform.python_version(),
        **{name: version(name) for name in ("duckdb", "ibis-framework", "numpy", "pyarrow")},
        "revision": revision.strip(),
        "memory_limit": "1GB",
        "candidates": QUERIES * CANDIDATES,
        "page": PLACES,
    }
    MEASURED.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    """What the processor calls itself."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def damaged(n_tables: int) -> None:
    """Print how many damaged tables the package sees otherwise than the loops."""
    # The loops and the damage are the tests' own.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
    import event_damage

    seen: dict[str, int] = {}
    wrong: list[str] = []
    start = time.perf_counter()
    for seed, low in enumerate(range(0, n_tables, 10_000)):
        found, bad = event_damage.wrong_tables(np.random.default_rng(seed), min(10_000, n_tables - low))
        wrong += bad
        for name, n in found.items():
            seen[name] = seen.get(name, 0) + n
    print(f"{n_tables:,} tables in {time.perf_counter() - start:.0f} s: {len(wrong)} seen otherwise than by the loops")
    print("  " + ", ".join(f"{name} {n:,}" for name, n in sorted(seen.items())))
    print("\n".join(wrong[:5]))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--tables", type=int, default=0)
    parser.add_argument("--cost", type=int, nargs="+", metavar="ROWS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.method:
        start = time.perf_counter()
        steps = judge(options.paths) if options.method == "judge" else {}
        counts = pd.DataFrame() if steps else read(options.method, options.paths)
        used = resource.getrusage(resource.RUSAGE_SELF)
        took = {"seconds": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime}
        counts.to_parquet(options.out, index=False)
        print(json.dumps({**steps, **took, "MiB": used.ru_maxrss / 1024}))
    elif options.cost:
        measure_cost(options.cost, options.repeats)
    elif options.judge:
        with tempfile.TemporaryDirectory(prefix="cfltr-bench-") as name:
            paths = write_log(Path(name), options.rows)
            print(f"{options.rows:,} rows, processor seconds by step:", alone("judge", paths, Path(name) / "counts"))
    elif options.tables:
        damaged(options.tables)
    else:
        measure(options.rows)


if __name__ == "__main__":
    main()
