"""Mutation testing: ``make mutants [MODULES='metrics clicks'] [SAMPLE=400] [SEED=…] [JOBS=2]``.

A sample of mutants, even over the modules, is drawn and each is run against the tests that run its line.  Printed are
the score of each module and every survivor with its diff.  Mutants that compute the same as the original are listed,
with the reason, in ``equivalent.yml`` and counted apart.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import yaml
from making import ROOT, draw, modules, mutants_of
from selecting import measure
from trying import Outcome, try_all

EQUIVALENT = Path(__file__).with_name("equivalent.yml")


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """The reason why a mutant computes the same, by module, function, and line before and after."""
    out = {}
    for entry in yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []:
        for after in entry["after"] if isinstance(entry["after"], list) else [entry["after"]]:
            out[entry["module"], entry["function"], entry["before"], after] = entry["reason"]
    return out


def report(outcomes: list[Outcome], known: dict[tuple[str, str, str, str], str]) -> float:
    """Print the table and the survivors; the score counts time-outs as killed and leaves equivalents out."""
    outcomes = sorted(outcomes, key=lambda outcome: (outcome.mutant.path, outcome.mutant.lines))
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        same = outcome.kind == "survived" and outcome.mutant.key in known
        rows[outcome.mutant.module]["equivalent" if same else outcome.kind] += 1
    total = sum(rows.values(), Counter())
    for outcome in outcomes:
        if outcome.kind != "survived":
            continue
        reason = known.get(outcome.mutant.key)
        word = f"EQUIVALENT: {reason}" if reason else f"SURVIVED {outcome.tests} tests. {outcome.by}"
        print(f"\n{outcome.mutant.module} · {outcome.mutant.function} · {word}\n{outcome.mutant.diff()}")
    for outcome in outcomes:
        if outcome.kind == "time-out":
            print(f"\ntime-out: {outcome.mutant.module} · {outcome.mutant.function}\n{outcome.mutant.diff(0)}")
    kinds = ("killed", "time-out", "survived", "equivalent")
    print(f"\n{'module':<32}" + "".join(f"{kind:>12}" for kind in kinds) + f"{'score':>9}")
    for module, row in [*sorted(rows.items()), ("all", total)]:
        print(f"{module:<32}" + "".join(f"{row[kind]:>12}" for kind in kinds) + f"{100 * score(row):>8.1f}%")
    return score(total)


def score(row: Counter[str]) -> float:
    judged = row["killed"] + row["time-out"] + row["survived"]
    return (row["killed"] + row["time-out"]) / judged if judged else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.partition("\n\n")[0])
    parser.add_argument("modules", nargs="*", help="modules or folders of cfltr_core; all if none is named")
    parser.add_argument("--sample", type=int, default=400, help="how many mutants (0: every one)")
    parser.add_argument("--seed", type=int, help="of the draw; a fresh one if none is given, and printed")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.chdir(ROOT)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    try:
        paths = modules(options.modules)
    except ValueError as error:
        parser.error(str(error))
    tests = measure(ROOT / "_build" / "mutants", options.jobs)
    every = {path.as_posix(): mutants_of(path) for path in paths}
    number = sum(map(len, every.values()))
    mutants = draw(every, options.sample or number, np.random.default_rng(seed))
    print(f"{len(mutants)} of {number} mutants of {len(paths)} modules, seed {seed}", flush=True)
    start, outcomes = time.monotonic(), []
    for outcome in try_all(mutants, tests, options.jobs):
        outcomes.append(outcome)
        if outcome.kind != "killed" or len(outcomes) % 20 == 0:
            seconds = time.monotonic() - start
            place = f"{outcome.mutant.module}:{outcome.mutant.lines[0]}"
            print(f"{len(outcomes):>5} {seconds:6.0f} s  {outcome.kind:<9} {place}", flush=True)
    report(outcomes, equivalents())
    return 0


if __name__ == "__main__":
    sys.exit(main())
