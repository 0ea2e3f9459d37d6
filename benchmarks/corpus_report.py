"""Rewrite the measured blocks of ``chapters/corpora.md``.

    python -m benchmarks.corpus_report [shape] [useful] [knobs] [weights]

A block stands between ``<!-- block: NAME -->`` and ``<!-- end: NAME -->``; nothing outside is touched.  Without names
all four are measured, a quarter of an hour on two cores; ``shape`` takes ten seconds and ``weights`` two minutes.
``tests/cfltr_book/data/test_corpora_page.py`` measures the cheap rows again and compares them with the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks import corpus_knobs, corpus_usefulness, corpus_weights
from cfltr_book import load_corpus, mean_interval
from cfltr_book.data.generated import GENERATED
from cfltr_core.ranking.ragged import lengths, segment_sum

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "corpora.md"
NAMES = (*GENERATED, "digits")
SHAPE_SEEDS = range(3)
JOBS = 2


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; numbers to the right, the first column to the left."""
    rule = ["---", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows)) + "\n"


def folded(title: str, content: str) -> str:
    """A drop-down, for tables that few will read."""
    return f":::{{dropdown}} {title}\n\n{content}\n:::\n"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean and 95 % Student interval over seeds."""
    return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*mean_interval(values), d=digits)


# --- what the lists look like ---------------------------------------------------------------------------


def shape_row(name: str) -> list[str]:
    """List lengths and label shares of the training queries, seeds 0–2 pooled."""
    sizes, grades, relevant, empty = [], [], [], []
    for seed in SHAPE_SEEDS:
        data = load_corpus(name, "ci", seed=seed).train
        sizes.append(lengths(data.offsets))
        grades.append(data.relevance)
        relevant.append(data.binary)
        empty.append(segment_sum(data.binary, data.offsets) == 0)
    size, grade = np.concatenate(sizes), np.concatenate(grades)
    return [
        f"`{name}`",
        f"{size.mean():.0f} ({size.min()}–{size.max()})",
        f"{(grade == 0).mean():.0%}",
        f"{np.concatenate(relevant).mean():.0%}",
        f"{np.concatenate(empty).mean():.0%}",
    ]


def shape() -> str:
    published = [["Yahoo, published", "23", "26%", "–", "–"], ["Istella-s, published", "103", "89%", "–", "–"]]
    return table(
        ["Corpus", "Documents a query", "Label 0", "Relevant", "Queries without"],
        [*map(shape_row, NAMES), *published],
    )


# --- usefulness -----------------------------------------------------------------------------------------


def useful_cell(name: str, seed: int) -> dict[str, float]:
    return corpus_usefulness.study(load_corpus(name, "ci", seed=seed), seed)


def seed_row(seed: int, row: dict[str, float]) -> list[str]:
    """One population: both ratios, and the network's gain with its interval over test queries."""
    gain = f"{row['gain']:.3f} [{row['gain low']:.3f}, {row['gain high']:.3f}]"
    return [str(seed), f"{row['ratio 1 %']:.2f}", f"{row['ratio 0.1 %']:.2f}", gain]


def useful() -> str:
    seeds = corpus_usefulness.SEEDS
    cells = Parallel(n_jobs=JOBS)(delayed(useful_cell)(name, seed) for name in NAMES for seed in seeds)
    summary, levels, details = [], [], []
    for i, name in enumerate(NAMES):
        rows = cells[i * len(seeds) : (i + 1) * len(seeds)]
        summary.append([f"`{name}`", *(spread([row[c] for row in rows]) for c in ("ratio 1 %", "ratio 0.1 %"))])
        summary[-1].append(spread([row["gain"] for row in rows], 3))
        columns = ("random", "0.1 %", "1 %", "linear", "network")
        levels.append([f"`{name}`", *(f"{np.mean([row[c] for row in rows]):.3f}" for c in columns)])
        judged = [(column, *corpus_usefulness.judge(column, rows)[3:]) for column in corpus_usefulness.COLUMNS]
        words = {"ratio 1 %": "the ratio of the 1 % logger", "ratio 0.1 %": "that of the 0.1 % logger"}
        misses = [
            f"{words.get(column, 'the gain')} on {'seed' if len(apart) == 1 else 'seeds'} {', '.join(map(str, apart))}"
            for column, _, apart in judged
            if apart
        ]
        verdict = "meets the conditions" if all(good for _, good, _ in judged) else "misses a condition"
        note = f"On average over the seeds `{name}` {verdict}. Alone outside: {'; '.join(misses) or 'none'}."
        header = ["Seed", "1 %", "0.1 %", "Network − linear"]
        body = table(header, [seed_row(seed, row) for seed, row in zip(seeds, rows, strict=True)])
        details.append(folded(f"{name}, seed by seed", f"{note}\n\n{body}"))
    return "\n".join(
        [
            table(["Corpus", "1 % logger", "0.1 % logger", "Network − linear"], summary),
            "The levels behind the ratios, nDCG@10, means over the seeds:\n",
            table(["Corpus", "Random", "0.1 %", "1 %", "Linear", "Network"], levels),
            *details,
        ]
    )


# --- knobs ----------------------------------------------------------------------------------------------


def knobs() -> str:
    rows: dict[str, list[list[str]]] = {}
    outside, gaps = [], []
    for name, knob, word, row in corpus_knobs.table(JOBS):
        label = f"`{knob}` {word}" if word else f"*{knob}*"
        levels = " / ".join(f"{row[c]:.2f}".lstrip("0") for c in ("random", "0.1 %", "linear", "network"))
        rows.setdefault(name, []).append([label, levels, f"{row['ratio 0.1 %']:.2f}", f"{row['gain']:+.3f}"])
        gaps.append(row["gain"])
        if not corpus_usefulness.LOW <= row["ratio 0.1 %"] <= corpus_usefulness.HIGH:
            outside.append(f"{label} ({row['ratio 0.1 %']:.2f})")
    header = ["Knob", "Random / logger / linear / network", "Ratio", "Gap"]
    note = (
        f"The ratio leaves 0.3 to 0.8 for {', '.join(outside) or 'no setting'}. The gap lies between {min(gaps):.3f} "
        f"and {max(gaps):.3f}; it is at least {corpus_usefulness.GAIN} in "
        f"{sum(gap >= corpus_usefulness.GAIN for gap in gaps)} of {len(gaps)} rows."
    )
    return "\n".join([*(f"On `{name}`:\n\n{table(header, body)}" for name, body in rows.items()), note])


# --- weights --------------------------------------------------------------------------------------------


def powers() -> str:
    """The published maxima turned back into ranks: M^(1/γ)."""
    rows = []
    for i, gamma in enumerate(corpus_weights.GAMMAS):
        back = [corpus_weights.LARGEST_WEIGHT[name][i] ** (1 / gamma) for name in corpus_weights.LARGEST_WEIGHT]
        rows.append([f"{gamma:g}", *(f"{value:.2f}" for value in back)])
    yahoo = [
        value ** (1 / g)
        for g, value in zip(corpus_weights.GAMMAS, corpus_weights.LARGEST_WEIGHT["yahoo-like"], strict=True)
    ]
    longest = GENERATED["yahoo-like"].longest
    note = (
        f"The largest for Yahoo is {max(yahoo):.0f}. As printed, that is a click at rank {max(yahoo):.0f}, in a list "
        f"of at least so many documents; with the offset it is one at rank {max(yahoo) - 1:.0f}. The longest list of "
        f"the set 1 that the released code reads is given as {longest}.\n"
    )
    return table(["γ", "Yahoo", "Istella-s"], rows) + "\n" + note


def logger_table(name: str) -> str:
    """M̄ and M of this book's own logger beside the published ones."""
    both = {s: [corpus_weights.logger_weights(name, seed, s) for seed in corpus_weights.SEEDS] for s in (0.0, 1.0)}
    rows = []
    for i, gamma in enumerate(corpus_weights.GAMMAS):
        average = [f"{np.mean([mean[i] for mean, _ in both[s]]):.2f}" for s in (0.0, 1.0)]
        largest = [f"{np.median([top[i] for _, top in both[s]]):.0f}" for s in (0.0, 1.0)]
        published = corpus_weights.MEAN_WEIGHT[name][i], corpus_weights.LARGEST_WEIGHT[name][i]
        rows.append([f"{gamma:g}", f"{published[0]:.2f}", " / ".join(average)])
        rows[-1] += [f"{published[1]:.0f}", " / ".join(largest)]
    return table(["γ", "M̄, J20", "M̄, ours", "M, J20", "M, ours"], rows)


FORMULAS = {0.0: "as printed, $r^{-\\gamma}$", 1.0: "with the offset, $(1+r)^{-\\gamma}$"}


def weights() -> str:
    seeds = corpus_weights.SEEDS
    parts = ["The published maxima, turned back into places:\n", powers()]
    for name in corpus_weights.MEAN_WEIGHT:
        parts += [f"The book's own logger (0.1 %, at least 20 queries) on `{name}`:\n", logger_table(name)]
    header = ["Collection, formula", "Quality t", "Largest error", "Any logger"]
    rows, details, sentences = [], [], []
    for name, published in corpus_weights.MEAN_WEIGHT.items():
        errors = {}
        for shift, formula in FORMULAS.items():
            found = [corpus_weights.fits(name, seed, shift) for seed in seeds]
            best = [one["relevance"] for one in found]
            rows.append([f"{name}, {formula}", spread([f.quality for f in best])])
            rows[-1].append(spread([100 * f.worst for f in best], 1) + " %")
            data = [load_corpus(name, "ci", seed=seed).train for seed in seeds]
            free = [100 * corpus_weights.any_logger(one, shift, published) for one in data]
            rows[-1].append(spread(free, 2) + " %")
            fitted, chance = (np.mean([getattr(f, key) for f in best], axis=0) for key in ("fitted", "at_random"))
            body = table(
                ["γ", "Published", "Fitted", "Random logger"],
                [
                    [f"{g:g}", f"{p:.2f}", f"{a:.2f}", f"{b:.2f}"]
                    for g, p, a, b in zip(corpus_weights.GAMMAS, published, fitted, chance, strict=True)
                ],
            )
            details.append(folded(f"{name}, {formula.split(',')[0]}: the five fitted values", body))
            # The wider range has a coarser grid: keep the better of both.
            wider = [corpus_weights.fits(name, seed, shift, -2.0)["relevance"].worst for seed in seeds]
            worse = [min(f.worst, wide) for f, wide in zip(best, wider, strict=True)]
            linear = [one["linear"].worst for one in found]
            errors[shift] = [100 * float(np.mean(v)) for v in ([f.worst for f in best], worse, linear)]
        sentences.append(
            f"- `{name}`: one logger fits all five published M̄ within {errors[1.0][0]:.1f} % with the offset, and no "
            f"better than within {errors[0.0][0]:.1f} % as printed ({errors[0.0][1]:.1f} % if the logger may be worse "
            f"than random). With the scores of a linear ranker as the signal it is {errors[1.0][2]:.1f} % and "
            f"{errors[0.0][2]:.1f} %."
        )
    parts += ["One quality for all five γ:\n", table(header, rows), "\n".join(sentences) + "\n", *details]
    rows = []
    for name, changes in corpus_weights.CHANGED.items():
        for what, changed in changes:
            cells = [
                100 * np.mean([corpus_weights.worst_after(name, changed, seed, shift) for seed in SHAPE_SEEDS], axis=0)
                for shift in FORMULAS
            ]
            rows.append([f"{name}, {what}", *(f"{one:.1f} ({free:.1f}) %" for one, free in cells)])
    body = table(["Changed", "As printed", "With the offset"], rows)
    parts.append(
        folded("The largest error, any logger in brackets, when what the paper does not state is changed", body)
    )
    return "\n".join(parts)


# --- the page -------------------------------------------------------------------------------------------

BLOCKS: dict[str, Callable[[], str]] = {"shape": shape, "useful": useful, "knobs": knobs, "weights": weights}


def block(text: str, name: str) -> str:
    """What the page says between the marks of a block."""
    found = re.search(rf"<!-- block: {name} -->\n(.*?)<!-- end: {name} -->", text, flags=re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE.name} has no block {name!r}: expected <!-- block: {name} --> … <!-- end: {name} -->")
    return found[1].strip("\n")


def main() -> int:
    names = sys.argv[1:] or list(BLOCKS)
    for name in names:
        if name not in BLOCKS:
            raise SystemExit(f"{name!r} is no block: choose among {', '.join(BLOCKS)}")
        content = BLOCKS[name]().strip("\n")
        # Read after measuring: another block may have been written meanwhile.
        text = PAGE.read_text(encoding="utf-8")
        old = block(text, name)
        before, rest = text.split(f"<!-- block: {name} -->\n")
        after = rest.partition(f"<!-- end: {name} -->")[2]
        new = f"{before}<!-- block: {name} -->\n\n{content}\n\n<!-- end: {name} -->{after}"
        PAGE.write_text(new, encoding="utf-8")
        print(f"{PAGE.name}: block {name} {'unchanged' if content == old else 'rewritten'}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
