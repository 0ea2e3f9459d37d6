"""What does each knob of the generator change?  Each × ½ and × 2, all else as frozen; seeds 0–2, scale ci.

    python -m benchmarks.corpus_knobs

The knobs of the aligned profile are turned on yahoo-like, the two that only the mixed profile has on
yahoo-like:mixed.  The same seeds serve every row, so that rows are compared on equal populations as far as a knob
lets them be: a knob that changes how many numbers are drawn (factors, nuisance, shape, mean_length) changes the rest
of the population too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from benchmarks.corpus_usefulness import study
from cfltr_book import SCALES
from cfltr_book.data.generated import GENERATED, Knobs, generate

SEEDS = range(3)
TURNED = {
    "yahoo-like": (
        "mean_length",
        "shape",
        "factors",
        "nuisance",
        "interaction",
        "saturation",
        "noise",
        "query_shift",
        "feature_noise",
        "query_level",
        "redundancy",
    ),
    "yahoo-like:mixed": ("minority", "angle"),
}


def settings() -> Iterator[tuple[str, str, str, Knobs]]:
    """``(corpus, knob, "× ½" or "× 2", knobs)``; the first of each corpus is the frozen one."""
    for name, knobs in TURNED.items():
        yield name, "as frozen", "", GENERATED[name]
        for knob in knobs:
            value = getattr(GENERATED[name], knob)
            for word, factor in (("× ½", 0.5), ("× 2", 2.0)):
                # Whole numbers stay whole: numbers of factors.
                yield name, knob, word, replace(GENERATED[name], **{knob: type(value)(value * factor)})


def measure(knobs: Knobs, seed: int) -> dict[str, float]:
    """The usefulness numbers of one population."""
    scale = SCALES["ci"]
    return study(generate(knobs, scale.generated, n_features=scale.features, seed=seed), seed)


def table(jobs: int = 2) -> list[tuple[str, str, str, dict[str, float]]]:
    """One row a setting: corpus, knob, factor, and each number averaged over the seeds."""
    chosen = list(settings())
    cells = Parallel(n_jobs=jobs)(delayed(measure)(knobs, seed) for *_, knobs in chosen for seed in SEEDS)
    out = []
    for i, (name, knob, word, _) in enumerate(chosen):
        rows = cells[i * len(SEEDS) : (i + 1) * len(SEEDS)]
        out.append((name, knob, word, {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}))
    return out


def main() -> None:
    columns = ("random", "0.1 %", "linear", "network", "ratio 0.1 %", "ratio 1 %", "gain")
    print(f"{'corpus':20s} {'knob':14s} {'':4s} " + " ".join(f"{c:>11s}" for c in columns))
    for name, knob, word, row in table():
        print(f"{name:20s} {knob:14s} {word:4s} " + " ".join(f"{row[c]:11.3f}" for c in columns))


if __name__ == "__main__":
    main()
