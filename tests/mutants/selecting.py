"""Which tests run a line, and how long each takes: measured once for a state of the package and of a file of tests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
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

# Files whose tests are measured in one go.
TOGETHER = 8


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
    """The tests that run each line of the package: everything that was measured of the state they are in now."""

    def __init__(self, folder: Path, states: dict[str, str]) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {}
        for run in sorted(folder.glob("run-*.json")):
            measured = json.loads(run.read_text(encoding="utf-8"))
            current = {file for file, state in measured["states"].items() if states.get(file) == state}
            seconds = {t: s for t, s in measured["seconds"].items() if t.partition("::")[0] in current}
            self.seconds |= seconds
            data = CoverageData(str(run.with_suffix(".coverage")))
            data.read()
            for name in data.measured_files():
                of_file = self.lines.setdefault(Path(name).relative_to(ROOT).as_posix(), {})
                for line, contexts in data.contexts_by_lineno(name).items():
                    tests = {context.rpartition("|")[0] for context in contexts}
                    of_file.setdefault(line, set()).update(test for test in tests if not test or test in seconds)

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
    """Run under coverage the tests that were not run in this state before; they must pass.

    Files in which a test fails are run again next time; what was measured of the others is kept.
    """
    helpers = [*(ROOT / "tests" / "helpers").rglob("*.py"), *(ROOT / "tests").rglob("conftest.py")]
    sources = [path for name in PACKAGES for ending in ("py", "yml") for path in (ROOT / name).rglob(f"*.{ending}")]
    shared = digest([*sources, *helpers])
    folder = store / shared
    states = {file: digest([ROOT / file]) for file in files_of_tests()}
    known: dict[str, str] = {}
    for run in sorted(folder.glob("run-*.json")):
        known |= json.loads(run.read_text(encoding="utf-8"))["states"]
    new = sorted(file for file, state in states.items() if known.get(file) != state)
    if new:
        folder.mkdir(parents=True, exist_ok=True)
        print(f"the tests of {len(new)} files, to see which lines they run ({jobs} workers) …", flush=True)
    failures = ""
    # Some at a time: an interruption costs little.
    for start in range(0, len(new), TOGETHER):
        files = new[start : start + TOGETHER]
        failures += run_once(folder, {file: states[file] for file in files}, jobs)
    if failures:
        raise RuntimeError(f"the tests must pass before mutants are tried:\n{failures}")
    return Tests(folder, states)


def run_once(folder: Path, states: dict[str, str], jobs: int) -> str:
    """Run the tests of some files and keep what was measured of those that passed; what is said of the others."""
    target = folder / f"run-{len(list(folder.glob('run-*.json'))):03}.json"
    command = [sys.executable, "-m", "pytest", *states, "-q", "-p", "seconds", "-p", "no:cacheprovider"]
    command += [
        "-n",
        str(jobs),
        "--dist",
        "worksteal",
        *(f"--cov={name}" for name in PACKAGES),
        "--cov-context",
        "test",
        "--cov-report",
        "",
    ]
    environment = os.environ | {
        "COVERAGE_FILE": str(target.with_suffix(".coverage")),
        "SECONDS_FILE": str(target.with_suffix(".seconds")),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    tail = done.stdout[-3000:] + done.stderr[-1000:]
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests could not be run ({done.returncode}):\n{tail}")
    taken = json.loads(target.with_suffix(".seconds").read_text(encoding="utf-8"))
    failed = {test.partition("::")[0] for test in taken["failed"]}
    passed = {file: state for file, state in states.items() if file not in failed}
    part = target.with_suffix(".part")
    part.write_text(json.dumps({"states": passed, "seconds": taken["seconds"]}), encoding="utf-8")
    part.replace(target)
    return tail if failed else ""
