"""``python -m cfltr_book [FOLDER] [--only WORD …]``: the claims of the book, with what the last run found."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claims import Measurement
from cfltr_book.reporting.wording import outcome

# Where ``make book`` leaves what it ran, below the folder of the book.
RUN = Path("_build", "run")


def main(argv: list[str] | None = None) -> int:
    """Print every claim with the verdict on record and the measured one; 1 for a folder without a run, or no claim."""
    parser = argparse.ArgumentParser(
        prog="python -m cfltr_book", description="List the claims of the book, with what a run of it found."
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, help=f"folder of a run (default: {RUN} below the current folder)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="list the claims with every WORD: a chapter's number, or what stands in id, statement or source",
    )
    options = parser.parse_args(argv)
    folder: Path | None = options.folder
    wanted = [spec for spec in claim_registry.registry().values() if all(_has(spec, word) for word in options.only)]
    if not wanted:
        print(f"--only {' '.join(options.only)}: no claim has all of these words", file=sys.stderr)
        return 1
    found = _measurements(folder or RUN)
    if not found:
        place = f"no claim records below {(folder or RUN).absolute()}"
        print(f"{place}: run 'make book' in the book's folder, or name the folder of a run", file=sys.stderr)
        if folder is not None:
            return 1
    for spec in wanted:
        measurement = found.get(spec.id)
        scale, corpus = (measurement.scale, measurement.corpus) if measurement else (spec.scale, spec.corpora[0])
        measured = change = ""
        if measurement is not None:
            result = measurement.result
            measured = outcome(spec, result.verdict, interval=result.interval)
            if spec.gates(scale, corpus) and result.verdict != spec.recorded(scale, corpus):
                change = "  (sharper than on record)" if spec.is_news(result.verdict, scale, corpus) else "  (changed)"
        record = outcome(spec, spec.recorded(scale, corpus))
        print(f"{spec.chapter}  {spec.id:34s} on record: {record:13s} measured: {measured or 'not run'}{change}")
        print(f"    {spec.statement} ({spec.source})")
    sys.stdout.flush()
    return 0


def _has(spec: claim_registry.Claim, word: str) -> bool:
    if word.isdecimal():
        return word.zfill(2) == spec.chapter
    return word.lower() in f"{spec.id}\n{spec.statement}\n{spec.source}".lower()


def _measurements(folder: Path) -> dict[str, Measurement]:
    """What the chapters below ``folder`` measured; scratch folders of an interrupted run, hidden, are left out."""
    found = {}
    for path in sorted(folder.rglob("claims/*.json")):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            try:
                found[path.stem] = Measurement.from_record(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{path}: no claim record of this version ({error}); run 'make book' again") from None
    return found


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except BrokenPipeError:
        # The reader of a pipe, such as ``head``, has seen enough; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
