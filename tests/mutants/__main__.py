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
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from making import ROOT, draw, modules, mutant_of, places_of
from selecting import measure
from trying import Outcome, check, preload, run_all

EQUIVALENT = Path(__file__).with_name("equivalent.yml")


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """The reason why a mutant computes the same, by module, function, and line before and after."""
    out = {}
    for entry in yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []:
        for after in entry["after"] if isinstance(entry["after"], list) else [entry["after"]]:
            out[entry["module"], entry["function"], entry["before"], after] = entry["reason"]
    return out


KINDS = ["killed", "time-out", "survived", "equivalent"]


def report(outcomes: list[Outcome], known: dict[tuple[str, str, str, str], str]) -> None:
    """Print the survivors and the table; the score counts time-outs as killed and leaves equivalents out."""
    kinds = []
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.mutant.path, outcome.mutant.lines)):
        mutant, reason = outcome.mutant, known.get(outcome.mutant.key)
        same = outcome.kind == "survived" and reason is not None
        kinds.append({"module": mutant.module, "kind": "equivalent" if same else outcome.kind})
        if outcome.kind != "killed":
            words = f"EQUIVALENT: {reason}" if same else f"{outcome.kind.upper()} {outcome.tests} tests. {outcome.by}"
            print(f"\n{mutant.module} · {mutant.function} · {words}\n{mutant.diff()}")
    frame = pd.DataFrame(kinds)
    table = pd.crosstab(frame["module"], frame["kind"]).reindex(columns=KINDS, fill_value=0)
    table.loc["all"] = table.sum()
    judged = table.sum(axis=1) - table["equivalent"]
    table["score"] = (1 - table["survived"] / judged.where(judged > 0, 1)).map("{:.1%}".format)
    print(f"\n{table.to_string()}")


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
    every = {path.as_posix(): places_of(path) for path in paths}
    number = sum(map(len, every.values()))
    drawn = draw(every, options.sample or number, np.random.default_rng(seed))
    mutants = sorted(filter(None, map(mutant_of, drawn)), key=lambda mutant: (mutant.path, mutant.lines))
    print(f"{len(mutants)} of {number} mutants of {len(paths)} modules, seed {seed}", flush=True)
    preload()
    check(mutants, tests)
    start, outcomes = time.monotonic(), []
    for outcome in run_all(mutants, tests, options.jobs):
        outcomes.append(outcome)
        if outcome.kind != "killed" or len(outcomes) % 20 == 0:
            seconds = time.monotonic() - start
            place = f"{outcome.mutant.module}:{outcome.mutant.lines[0]}"
            print(f"{len(outcomes):>5} {seconds:6.0f} s  {outcome.kind:<9} {place}", flush=True)
    report(outcomes, equivalents())
    return 0


if __name__ == "__main__":
    sys.exit(main())
