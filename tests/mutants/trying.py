"""Mutants against tests: each in a process forked from one that has the libraries in memory."""

from __future__ import annotations

import compileall
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import pytest
from making import PACKAGES, ROOT, Mutant

sys.path.insert(0, str(ROOT / "tests" / "helpers"))
import of_name
from selecting import Tests, files_of_tests

# A test may take as many seconds of processor time as it did, five times over, and these.
GRACE = 20.0
# Tests are run until they have taken as many seconds, by the times that were measured under coverage.
BUDGET = 100.0
# What takes long to import and does not depend on the checkout.
LIBRARIES = ("cvxpy", "hypothesis.extra.numpy", "ibis", "IPython", "joblib", "matplotlib.pyplot", "nbformat")
LIBRARIES += ("pandas", "scipy.stats", "seaborn", "sklearn.datasets", "sklearn.linear_model", "torch", "yaml")


@dataclass(frozen=True)
class Outcome:
    mutant: Mutant
    kind: str  # killed, time-out, survived
    by: str  # the first test that failed, or why there was none
    tests: int  # how many were chosen
    covered: bool


class Order:
    """A plugin for pytest in the child: first the tests of the function, then others that run the line, the fastest
    first; each with its time limit."""

    def __init__(self, chosen: set[str], full: set[str], seconds: dict[str, float]) -> None:
        self.chosen, self.full, self.seconds = chosen, full, seconds
        self.failed, self.ran = "", 0

    def pytest_configure(self) -> None:
        # A counterexample is enough; the smallest one is of no use here.
        from hypothesis import Phase, settings

        book = settings.get_profile("book")
        settings.register_profile("mutants", book, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list) -> None:
        own = {item for item in items if self.full and of_name.is_of(item, self.full)}
        kept = [item for item in items if item in own or item.nodeid in self.chosen]
        kept.sort(key=lambda item: (item not in own, self.seconds.get(item.nodeid, 0.0)))
        spent = accumulate(self.seconds.get(item.nodeid, 0.0) for item in kept)
        items[:] = [item for item, seconds in zip(kept, spent, strict=True) if seconds <= BUDGET or item is kept[0]]
        self.ran = len(items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, GRACE + 5 * self.seconds.get(nodeid, 0.0))

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.failed = report.nodeid


def preload() -> None:
    """Do once for all children what they share: import the libraries of package and tests, and read the tests."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)
    for file in files_of_tests():
        of_name.helpers_of(ROOT / file)
    for library in LIBRARIES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(library)
    gc.freeze()


def names_of(mutant: Mutant) -> set[str]:
    """The public names, as ``--of`` takes them, whose tests are those of a mutant."""
    stem = Path(mutant.path).stem
    name, _, method = mutant.function.partition(".")
    if not name:  # a table at the top of the module: whoever uses something of the module may read it
        return {f"{stem}.{public}" for public in of_name.defined(of_name.tree_of(ROOT / mutant.path).body)}
    if name.startswith("_"):
        return set()
    if name[0].isupper() and method and not method.startswith("_"):
        return {f"{stem}.{name}.{method.partition('.')[0]}"}
    return {f"{stem}.{name}"}


def run_child(mutant: Mutant, chosen: set[str], tests: Tests, folder: Path) -> None:
    """In the child: put the mutant into a copy of the packages, and run the tests against it."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, 60.0)  # to import and to collect
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # With the compiled files, which hold as long as times and sizes agree: only the mutant is compiled again.
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package)
    (folder / mutant.path).write_text(mutant.source, encoding="utf-8")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(ROOT)
    full = names_of(mutant)
    files = {nodeid.partition("::")[0] for nodeid in chosen}
    words = {name.rpartition(".")[2] for name in full}
    for path in files_of_tests():
        text = Path(path).read_text(encoding="utf-8")
        files |= {path} if any(word in text for word in words) else set()
    order = Order(chosen, full, tests.seconds)
    try:
        for package in PACKAGES:
            importlib.import_module(package)
        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "--basetemp", str(folder / "tmp")]
        # Libraries with plugins were imported before pytest was started.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *sorted(files)], plugins=[order]))
    except BaseException as error:
        code, order.failed = 1, f"import: {type(error).__name__}"
    found = {"code": code, "by": order.failed, "ran": order.ran}
    (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)


def outcome_of(mutant: Mutant, folder: Path, status: int, late: bool, covered: bool) -> Outcome:
    """What a child left behind."""
    if not (folder / "found.json").exists():
        stopped = late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF)
        return Outcome(mutant, "time-out" if stopped else "killed", "the process ended", 0, covered)
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    if found["code"] in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return Outcome(mutant, "survived", "" if covered else "no test runs this line", found["ran"], covered)
    return Outcome(mutant, "killed", found["by"] or "while the tests were collected", found["ran"], covered)


def check(mutants: list[Mutant], tests: Tests) -> None:
    """The package as it is must survive the same procedure, or every mutant would seem to be killed."""
    one = sorted(mutants, key=lambda mutant: len(tests.of(mutant)[0]))[len(mutants) // 2]
    same = replace(one, source=(ROOT / one.path).read_text(encoding="utf-8"))
    (found,) = run_all([same], tests, 1)
    if found.kind != "survived" or not found.tests:
        raise RuntimeError(f"the package itself, not mutated, was {found.kind}: {found.by} ({found.tests} tests)")


def run_all(mutants: list[Mutant], tests: Tests, jobs: int) -> Iterator[Outcome]:
    todo = list(reversed(mutants))
    running: dict[int, tuple[Mutant, Path, float, bool]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        number = 0
        while todo or running:
            while todo and len(running) < jobs:
                mutant = todo.pop()
                chosen, covered = tests.of(mutant)
                number += 1
                folder = Path(scratch) / str(number)
                folder.mkdir()
                # Processor time is what is limited; this ends a child that only waits.
                limit = 300.0 + 20 * sum(tests.seconds[test] for test in chosen)
                pid = os.fork()
                if pid == 0:
                    try:
                        os.setpgid(0, 0)
                        run_child(mutant, chosen, tests, folder)
                    finally:
                        os._exit(70)
                running[pid] = (mutant, folder, time.monotonic() + limit, covered)
            time.sleep(0.02)
            for pid, (mutant, folder, deadline, covered) in list(running.items()):
                late = time.monotonic() > deadline
                if late:
                    os.killpg(pid, signal.SIGKILL)
                done, status = os.waitpid(pid, 0 if late else os.WNOHANG)
                if done:
                    del running[pid]
                    yield outcome_of(mutant, folder, status, late, covered)
                    shutil.rmtree(folder, ignore_errors=True)
