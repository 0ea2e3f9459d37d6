"""Which tests run a line, and how long each takes: measured once for a state of the packages and of a file of tests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from multiprocessing.pool import ThreadPool
from pathlib import Path

from making import PACKAGES, ROOT, Mutant

# What reads the source, the chapters or a clock, and the mistakes that stand as documentation, say nothing of a mutant.
LEFT_OUT = (
    "tests/book",  # and book_tools
    "tests/benchmarks",
    "tests/chapters",
    "tests/mutants",
    "tests/cfltr_core/test_public_surface.py",
    "tests/test_of_name.py",
)


def files_of_tests() -> list[str]:
    """The files whose tests are run against mutants."""
    paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return [path for path in paths if not path.startswith(LEFT_OUT)]


def digest(paths: list[Path]) -> str:
    out = hashlib.sha256()
    for path in sorted(paths):
        out.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return out.hexdigest()[:16]


class Tests:
    """The tests that run each line of the package: what was measured of some files of tests."""

    def __init__(self, measured: Iterable[str]) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {}
        for name in measured:
            self.seconds |= json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
            data = CoverageData(f"{name}.coverage")
            data.read()
            for file in data.measured_files():
                of_file = self.lines.setdefault(Path(file).relative_to(ROOT).as_posix(), {})
                for line, contexts in data.contexts_by_lineno(file).items():
                    of_file.setdefault(line, set()).update(context.rpartition("|")[0] for context in contexts)

    def of(self, mutant: Mutant) -> tuple[set[str], bool]:
        """The tests that run a mutant, and whether its own line is run by a test at all.

        A line that runs while tests are imported, or in another process, may matter to every test of its module.
        """
        lines = self.lines.get(mutant.path, {})
        tests = {test for line in mutant.lines for test in lines.get(line, ())}
        if tests and "" not in tests:
            return tests, True
        every = {test for found in lines.values() for test in found}
        return (tests | every) - {""}, bool(tests)


def measure(store: Path, jobs: int) -> Tests:
    """Run under coverage the files of tests that were not run in this state before; they must pass.

    What was measured of a file lies in a folder for the state of the packages, under the state of the file.
    """
    helpers = [*(ROOT / "tests" / "helpers").rglob("*.py"), *(ROOT / "tests").rglob("conftest.py")]
    sources = [path for name in PACKAGES for ending in ("py", "yml") for path in (ROOT / name).rglob(f"*.{ending}")]
    folder = store / digest([*sources, *helpers])
    folder.mkdir(parents=True, exist_ok=True)
    measured = {file: str(folder / digest([ROOT / file])) for file in files_of_tests()}
    new = [file for file, name in measured.items() if not Path(f"{name}.json").exists()]
    if new:
        print(f"the tests of {len(new)} files, to see which lines they run ({jobs} at a time) …", flush=True)
    with ThreadPool(jobs) as pool:
        failures = "".join(pool.map(lambda file: run_once(file, measured[file]), new, chunksize=1))
    if failures:
        raise RuntimeError(f"the tests must pass before mutants are tried:\n{failures}")
    return Tests(measured.values())


def run_once(file: str, name: str) -> str:
    """Run the tests of one file and keep what was measured, if all of them pass; else the end of what they print."""
    command = [sys.executable, "-m", "pytest", file, "-q", "-p", "seconds", "-p", "no:cacheprovider"]
    command += [*(f"--cov={package}" for package in PACKAGES), "--cov-context=test", "--cov-report="]
    environment = os.environ | {
        "COVERAGE_FILE": f"{name}.coverage",
        "SECONDS_FILE": f"{name}.json",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return "" if Path(f"{name}.json").exists() else f"{file}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}\n"
