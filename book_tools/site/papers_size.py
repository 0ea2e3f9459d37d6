"""The page *At the papers' size*: what the kept tables answer at both sizes, what they cost, how to run them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import ttest_ind

from book_tools.book import Book, Chapter
from book_tools.git import date_of, last_changed
from book_tools.rendering import duration, render
from book_tools.site.scoreboard import link_to
from cfltr_book.data.scales import SCALES as SCALE_OF
from cfltr_book.legacy import kept_tables
from cfltr_book.reporting import tables
from cfltr_book.reporting.intervals import mean_interval

SCALES = ("ci", "paper")
REMEDY = "compute it anew with 'make paper'"
# How a case ends in which the two methods differ by the draws alone: there neither can be ahead.
ONE_LAW = ", where both are one law"


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


def _ahead(
    frame: pd.DataFrame, column: str, methods: tuple[str, str], value: str, case: list[str]
) -> Iterator[tuple[Any, pd.Series]]:
    """By how much the ``value`` of the second method exceeds that of the first, case by case, where a seed has both."""
    table = frame.pivot_table(index=[*case, "seed"], columns=column, values=value).reindex(columns=[*methods])
    yield from (table[methods[1]] - table[methods[0]]).dropna().groupby(level=case)


def _policy_aware(frame: pd.DataFrame) -> dict[str, list[float]]:
    learnt = frame[frame.epsilon > 0]
    found = _ahead(learnt, "gains", ("oblivious", "policy-aware"), "ndcg", ["epsilon", "n_clicks"])
    return {
        f"{size:,} clicks, last place random in {share:.0%} of sessions": list(values)
        for (share, size), values in found
    }


def _countersample(frame: pd.DataFrame) -> dict[str, list[float]]:
    # Regret is what nDCG lacks to the labels', which is the same for both on one log and cancels.
    found = _ahead(frame, "method", ("ips", "countersample"), "average", ["optimizer", "eta"])
    names = {"sgd": "SGD", "adam": "Adam", "adagrad": "Adagrad"}
    return {
        f"{names[optimizer]}, η = {eta:g}" + ("" if eta else ONE_LAW): list(100 * values)
        for (optimizer, eta), values in found
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
    chapters = book.chapters()
    compared = [
        (question, link_to(chapter), list(_compared(book, chapter, question)))
        for chapter in chapters
        for question in ASKED
        if question.chapter == chapter.number
    ]
    kept = [
        (chapter, path, _read(path)[1])
        for chapter in chapters
        for folder in (book.kept(chapter), book.tables(chapter))
        for path in sorted(folder.rglob("*.csv"))
    ]
    return render(
        "papers_size.md.jinja",
        **{scale: SCALE_OF[scale] for scale in SCALES},
        compared=[each for each in compared if each[-1]],
        kept=[_row(book, *each) for each in kept],
        time=duration(sum(about["seconds_in_all"] for *_, about in kept)),
        whole=sum(len(about["seeds"]) == len(about["seeds_asked"]) for *_, about in kept),
        reading=reading_cost(book.root / "benchmarks" / "measured" / "events.csv"),
    )


def reading_cost(path: Path) -> str:
    """Return what counting raw events costs, from the points that ``benchmarks.events --cost`` keeps, if it did."""
    if not path.is_file():
        return ""
    points = pd.read_csv(path)
    rows = [
        [
            f"{size:,}",
            f"{mean['terms']:,.0f}",
            f"{mean['cpu']:.1f} s",
            f"{mean['seconds']:.1f} s",
            f"{mean['MiB'] / 1024:.1f} GiB",
        ]
        for size, mean in points.groupby("rows").mean().iterrows()
    ]
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return render("reading_cost.md.jinja", about=about, readings=len(points), rows=rows)


def _row(book: Book, chapter: Chapter, path: Path, about: Mapping[str, Any]) -> list[str]:
    # Where a revision itself is not in this clone, the day on which the table came into it.
    made = dict.fromkeys(part.get("revision") for part in [*about.get("earlier", []), about])
    days = [(revision, date_of(book.root, revision) or last_changed(book.root, path)) for revision in made]
    return [
        f"[{chapter.number}]({chapter.name}.ipynb)",
        path.stem,
        f"`{about['scale']}`, `{about['corpus']}`",
        f"{len(about['seeds'])} of {len(about['seeds_asked'])}",
        duration(about["seconds_in_all"]),
        f"{about['peak_bytes'] / 2**30:.1f} GiB" if "peak_bytes" in about else "–",
        ", ".join(" ".join(filter(None, [f"`{str(revision or 'unknown')[:7]}`", day])) for revision, day in days),
    ]


def _compared(book: Book, chapter: Chapter, question: Question) -> Iterator[list[str]]:
    found: dict[str, dict[str, list[float]]] = {}
    for scale in SCALES:
        folders = [
            kept_tables.place_of(kept, scale, question.corpus) for kept in (book.kept(chapter), book.tables(chapter))
        ]
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
    if len(values) < 2:
        return f"{values[0]:+.4f}, one seed" if values else "not asked"
    mean, low, high = mean_interval(values)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}], {len(values)} seeds: {'chance' if same else _side(values)}"


def _side(values: list[float]) -> str:
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
    told = {
        (now, now): f"Yes, {now} at both sizes",
        ("undecided", now): f"Decided at the papers' size only: {now}",
        (before, "undecided"): f"Not decided at the papers' size; {before} at `ci`",
        ("undecided", "undecided"): "Undecided at both sizes",
    }.get((before, now), f"No, {before} at `ci` and {now} at the papers' size")
    # Welch's interval: it does not take the two sizes for equally spread.
    if ttest_ind(small, large, equal_var=False).pvalue >= 0.05:
        return f"{told}."
    grown = abs(sum(large) / len(large)) > abs(sum(small) / len(small))
    return f"{told}; the difference is {'larger' if grown else 'smaller'} than at `ci`."


def _read(path: Path) -> tuple[pd.DataFrame, Mapping[str, Any]]:
    """A kept table and what is said of it, whether the package ships it or it lies with the references."""
    if "cfltr_book" in path.parts[-6:]:
        frame, about = tables.read_table(path)
        return frame, {"seeds_asked": about["seeds"], "seconds_in_all": sum(about["seconds"]), **about}
    table = kept_tables.read_table(path, remedy=REMEDY)
    return kept_tables.frame_of(table.rows, list(table.about["columns"]), table.about["columns"]), table.about
