"""The page *At the papers' size*: what the kept tables answer at both sizes, what they cost, how to run them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book_tools.book import Book, Chapter
from book_tools.git import date_of, last_changed
from book_tools.site.reading_cost import reading_cost
from book_tools.site.scoreboard import link_to
from book_tools.site.tables import table

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("ci", "paper")
REMEDY = "compute it anew with 'make paper'"
# How a case ends in which the two methods differ by the draws alone: there neither can be ahead.
ONE_LAW = ", where both are one law"
INTRODUCTION = (
    "# At the papers' size\n",
    "The numbers of this book are those of scale `ci`, which runs in minutes: on `yahoo-like` {ci[0]:,} training "
    "queries of {ci[1]} features, where scale `paper` has {paper[0]:,} of {paper[1]}. The latter are, rounded, "
    "those of Yahoo's collection; both sizes are generated, and tell nothing of Yahoo's own data. "
    "Two questions follow. *Does it come out the same at the papers' own size?* And *what did the long experiments "
    "cost?* An experiment that is too long for each build is computed once and kept as a *table*, "
    "with the revision that made it. A build at the scale and on the corpus of a table reads it; of most tables it "
    "computes a few cells again, and fails where one differs by more than rounding on another processor may (1e-6 "
    "relative, up to 5 % where a training magnifies it: `rtol` in the chapter).\n",
)
QUESTIONS = (
    "## The same question at two sizes\n",
    "Differences on generated data, over seeds that each have a population and a log of their own, with 95 % "
    "intervals. Where the interval contains 0, nothing is decided; one seed has no interval. *Ahead* and *behind* are "
    "said of the method that is named first. They tell the sign only; the scoreboard also asks for a margin. The last "
    "column answers whether it comes out the same: *larger* and *smaller* are said where the 95 % interval of the "
    "difference between the two sizes (Welch) does not contain 0. These intervals are taken one by one: of twenty, "
    "about one misses. Where both methods are one law, what differs is chance.\n",
)
COSTS = (
    "## What is kept, and what it cost\n",
    "Time is by the wall, summed over the cells, each of which has one core; some tables were computed while the "
    "machine did other things. Memory is the most that one worker held. *Seeds* are those computed, of those that the "
    "chapter asks for. *Made from* is the revision of the book that computed the table, "
    "with the day of its commit; where there are several, later ones added seeds.\n",
)
AGAIN = (
    "## Run them again\n",
    "On one machine, which goes on where it was stopped:\n",
    "```bash\nmake paper CHAPTER=07 SCALE=paper TABLES=learning-curves SEEDS=5 JOBS=2\n```\n",
    "On a cluster, whose machines share the disk with this checkout (`dask scheduler` on one of them, and for each "
    "worker `OMP_NUM_THREADS=1 dask worker ADDRESS --nthreads 1`):\n",
    "```bash\nmake paper CHAPTER=07 SCALE=paper TABLES=learning-curves SEEDS=5 CLUSTER=tcp://host:8786\n```\n",
    "The numbers are the same on any number of workers. A run without `TABLES` and `SEEDS` computes all that the "
    "chapter asks for; before you start it, divide the time above by the seeds computed and multiply by those missing. "
    "`git diff tests/reference/kept` then shows what differs; time and revision always do.\n",
    "Of a chapter that has its experiments in a module, such as chapter 12, `make tables CHAPTER=12 SCALE=paper "
    "EXPERIMENT=all-queries JOBS=2` computes the tables, which lie in `cfltr_book/kept`.\n",
)


@dataclass(frozen=True)
class Question:
    """A difference that kept tables answer: ``differences`` gives its values over the seeds, case by case.

    The first of ``tables`` must be there; those that go on with it, for further settings or seeds, may be.
    """

    chapter: str
    tables: tuple[str, ...]
    corpus: str
    text: str
    differences: Callable[[pd.DataFrame], dict[str, list[float]]]


def _prop_dcg(frame: pd.DataFrame) -> dict[str, list[float]]:
    chosen = frame[(frame.weights == "ips") & (frame.eta == 1) & (frame.assumed == 1) & (frame.n_clicks > 0)]
    by_size = (chosen.propdcg_dcg - chosen.proprank_dcg).groupby(chosen.n_clicks)
    return {f"{size:,} clicks": list(values) for size, values in by_size}


def _policy_aware(frame: pd.DataFrame) -> dict[str, list[float]]:
    learnt = frame[(frame.epsilon > 0) & ~frame.whole]
    by_gains = learnt.pivot_table(index=["epsilon", "n_clicks", "seed"], columns="gains", values="ndcg")
    if not {"policy-aware", "oblivious"} <= {*by_gains.columns}:
        return {}
    difference = (by_gains["policy-aware"] - by_gains["oblivious"]).dropna()
    return {
        f"{size:,} clicks, last place random in {share:.0%} of sessions": list(values)
        for (share, size), values in difference.groupby(level=["epsilon", "n_clicks"])
    }


def _countersample(frame: pd.DataFrame) -> dict[str, list[float]]:
    # Regret is what nDCG lacks to the labels', which is the same for both on one log and cancels.
    average = frame.pivot_table(index=["optimizer", "eta", "seed"], columns="method", values="average")
    if not {"ips", "countersample"} <= {*average.columns}:
        return {}
    difference = (100 * (average["countersample"] - average["ips"])).dropna()
    names = {"sgd": "SGD", "adam": "Adam", "adagrad": "Adagrad"}
    return {
        f"{names[optimizer]}, η = {eta:g}" + ("" if eta else ONE_LAW): list(values)
        for (optimizer, eta), values in difference.groupby(level=["optimizer", "eta"], sort=False)
    }


_COURSES = tuple(
    f"{part}{more}" for part in ("optimizers", "optimizers-later", "severity") for more in ("", "-further")
)
ASKED = (
    Question("07", ("learning-curves",), "yahoo-like", "DCG of SVM PropDCG − that of SVM PropRank", _prop_dcg),
    Question("12", ("all-queries",), "yahoo-like", "nDCG@5 of policy-aware − oblivious gains", _policy_aware),
    Question(
        "15", _COURSES, "yahoo-like", "What CounterSample saves: regret × 100 of IPS-SGD − its own", _countersample
    ),
)


def papers_size(book: Book) -> str:
    """Return the page, from the tables that are kept for the chapters of the book."""
    from cfltr_book.data.scales import SCALES as SCALES_OF

    sizes = {scale: (SCALES_OF[scale].generated[0], SCALES_OF[scale].features) for scale in SCALES}
    parts = [part.format(**sizes) for part in INTRODUCTION]
    asked = [
        (chapter, question) for chapter in book.chapters() for question in ASKED if question.chapter == chapter.number
    ]
    compared = [(chapter, question, list(_compared(book, chapter, question))) for chapter, question in asked]
    if any(rows for *_, rows in compared):
        parts += QUESTIONS
    for chapter, question, rows in compared:
        if rows:
            parts += [f"**{question.text}** (`{question.corpus}`, {link_to(chapter)}):\n"]
            parts += [table(["", *(f"`{scale}`" for scale in SCALES), "The same at the papers' size?"], rows)]
    kept = [
        (chapter, path)
        for chapter in book.chapters()
        for folder in (book.kept(chapter), book.tables(chapter))
        for path in sorted(folder.rglob("*.csv"))
    ]
    reading = reading_cost(book.root / "benchmarks" / "measured" / "events.csv")
    if not kept:
        return "\n".join([*parts, *reading, "No table is kept.\n"])
    rows, seconds, whole = [], 0.0, 0
    for chapter, path in kept:
        _, about = _read(path)
        seconds += about["seconds_in_all"]
        whole += len(about["seeds"]) == len(about["seeds_asked"])
        rows.append(_row(book, chapter, path, about))
    header = ["Chapter", "Table", "Scale, corpus", "Seeds", "Time", "Memory", "Made from"]
    total = (
        f"All together: {_time(seconds)} of one core. Of the {len(rows)} tables, {whole} have all the seeds that their "
        "chapter asks for.\n"
    )
    return "\n".join([*parts, *COSTS, table(header, rows), total, *reading, *AGAIN])


def _row(book: Book, chapter: Chapter, path: Path, about: Mapping[str, Any]) -> list[str]:
    # Where a revision itself is not in this clone, the day on which the table came into it.
    made = dict.fromkeys(part.get("revision") for part in [*about.get("earlier", []), about])
    days = [(revision, date_of(book.root, revision) or last_changed(book.root, path)) for revision in made]
    return [
        f"[{chapter.number}]({chapter.name}.ipynb)",
        path.stem,
        f"`{about['scale']}`, `{about['corpus']}`",
        f"{len(about['seeds'])} of {len(about['seeds_asked'])}",
        _time(about["seconds_in_all"]),
        f"{about['peak_bytes'] / 2**30:.1f} GiB" if "peak_bytes" in about else "–",
        ", ".join(" ".join(filter(None, [f"`{str(revision or 'unknown')[:7]}`", day])) for revision, day in days),
    ]


def _compared(book: Book, chapter: Chapter, question: Question) -> Iterator[list[str]]:
    import pandas as pd

    from cfltr_book.legacy.kept_tables import place_of

    found: dict[str, dict[str, list[float]]] = {}
    for scale in SCALES:
        folders = [place_of(kept, scale, question.corpus) for kept in (book.kept(chapter), book.tables(chapter))]
        paths = [path for name in question.tables for folder in folders if (path := folder / f"{name}.csv").is_file()]
        if paths and paths[0].stem == question.tables[0]:
            found[scale] = question.differences(pd.concat(_read(path)[0] for path in paths))
    if len(found) == len(SCALES):
        for case in found["paper"]:
            same = case.endswith(ONE_LAW)
            small, large = (found[scale].get(case) or [] for scale in SCALES)
            answers = [_answer(values, same=same) for values in (small, large)]
            yield [case, *answers, _verdict(small, large, same=same)]


def _answer(values: list[float], *, same: bool) -> str:
    """The mean of a difference, its interval, and in words which side of 0 it lies on; of the ``same`` law, chance."""
    from cfltr_book.reporting.intervals import mean_interval

    if not values:
        return "not asked"
    if len(values) == 1:
        return f"{values[0]:+.4f}, one seed"
    mean, low, high = mean_interval(values)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}], {len(values)} seeds: {'chance' if same else _side(values)}"


def _side(values: list[float]) -> str:
    from cfltr_book.reporting.intervals import mean_interval

    _, low, high = mean_interval(values)
    return "ahead" if low > 0 else "behind" if high < 0 else "undecided"


def _verdict(small: list[float], large: list[float], *, same: bool) -> str:
    """In one sentence, whether a difference comes out the same at the ``large`` size as at the ``small`` one."""
    if not small or not large:
        return "Asked at the papers' size only."
    if same:
        return "Both are chance."
    if min(len(small), len(large)) == 1:
        alike = (sum(small) > 0) == (sum(large) > 0)
        return f"{'The same sign' if alike else 'The opposite sign'}; one seed cannot say more."
    before, now = _side(small), _side(large)
    if "undecided" in (before, now):
        told = (
            "Undecided at both sizes"
            if before == now
            else f"Decided at the papers' size only: {now}"
            if before == "undecided"
            else f"Not decided at the papers' size; {before} at `ci`"
        )
    else:
        told = f"Yes, {now} at both sizes" if before == now else f"No, {before} at `ci` and {now} at the papers' size"
    grown = _growth(small, large)
    return told + (f"; the difference is {'larger' if grown > 0 else 'smaller'} than at `ci`." if grown else ".")


def _growth(small: list[float], large: list[float]) -> int:
    """1 or -1 if the mean of ``large`` is surely above or below that of ``small`` in size, else 0: Welch's interval."""
    from scipy.stats import ttest_ind

    if not ttest_ind(small, large, equal_var=False).pvalue < 0.05:
        return 0
    first, second = (abs(sum(values) / len(values)) for values in (small, large))
    return 1 if second > first else -1


def _read(path: Path) -> tuple[pd.DataFrame, Mapping[str, Any]]:
    """A kept table and what is said of it, whether the package ships it or it lies with the references."""
    from cfltr_book.legacy import kept_tables
    from cfltr_book.reporting import tables

    if "cfltr_book" in path.parts[-6:]:
        frame, about = tables.read_table(path)
        return frame, {"seeds_asked": about["seeds"], "seconds_in_all": sum(about["seconds"]), **about}
    table = kept_tables.read_table(path, remedy=REMEDY)
    return kept_tables.frame_of(table.rows, list(table.about["columns"]), table.about["columns"]), table.about


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
