"""Lines of the health report that need single sessions: filters, cuts, bots, and columns that were ignored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_sources import run_query
from cfltr_core.clicks.event_sql import of_first
from cfltr_core.logs.homogeneity import homogeneity, pooled_homogeneity
from cfltr_core.logs.log_report import MATTERS, LogCheck, check_line

if TYPE_CHECKING:
    import pandas as pd

# The share of pages that are shorter than others of their kind above which one asks why.
SHORT = 0.001
# A column of at most so many values may say of what kind a session is.
KINDS = 20
TIMES = re.compile(r"(^|_)(day|date|time|timestamp|ts|week|month|hour|quarter)(_|$)", re.IGNORECASE)


def session_checks(groups: pd.DataFrame, *, alpha: float) -> list[LogCheck]:
    """Lines on pages without a click, rows that are missing, and bots.

    Each test adds up over all sessions, over those of each ranker, and over those of each period; the smallest p value
    is multiplied by the number of these sums.

    Parameters
    ----------
    groups : data frame
        Of :func:`~cfltr_core.logs.session_sums.session_sums`.
    alpha : float
        Level of each line.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.logs.session_checks import session_checks
    >>> none = {"none": 9.0, "none_expected": 80.0, "none_excess": -70.0, "none_variance": 50.0}
    >>> short = {"short": 0, "short_excess": 0.0, "short_variance": 0.0}
    >>> everything = {"sessions": 100, "clicks": 120, "all": 0, "all_expected": 0.1, "all_clicks": 0}
    >>> [line.status for line in session_checks(pd.DataFrame([none | short | everything]), alpha=0.003)]
    ['red', 'green', 'green']
    """
    from scipy.special import gammainc

    total = groups.sum(numeric_only=True)
    p_value, where = _smallest(groups, "none", -1.0)
    none, implied = total["none"] / total["sessions"], total["none_expected"] / total["sessions"]
    clickless = check_line(
        "pages without a click",
        p_value,
        alpha=alpha,
        value=f"{none:.1%} of the pages have no click; {implied:.1%} would, if clicks on a page were independent "
        f"({where}).",
        remedy="Ask who exports the log whether pages without a click are dropped, sampled or lost, and export all of "
        "them again. If none are, people stop after a click: see the line on clicks above.",
    )
    p_value, where = _smallest(groups, "short", 1.0)
    share = total["short"] / total["sessions"]
    value = f"{share:.2%} of the pages are" if share else "No page is"
    value += " shorter than another of its query, ranker and period"
    rows = check_line(
        "rows missing",
        p_value,
        alpha=alpha,
        value=f"{value}{f', and end in a click too often ({where})' if p_value < alpha else ''}.",
        remedy="Pages were cut at their last click. Export all displayed rows, clicked or not, and read them again.",
    )
    if rows.status == "green" and share > SHORT:
        rows = LogCheck(
            check="rows missing",
            status="amber",
            value=f"{value}; where they end does not depend on clicks.",
            remedy="Find out whether these pages were shorter or lost rows: log how long each page was, in a column "
            "length, and cf.read_events compares. Positions that were numbered anew after rows were lost are wrong.",
            p_value=p_value,
        )
    # P(Poisson(μ) >= k).
    p_value = float(gammainc(total["all"], total["all_expected"])) if total["all"] > 0 else 1.0
    bots = check_line(
        "bots",
        p_value,
        alpha=alpha,
        value=f"{total['all']:,.0f} sessions click everything on a page of three or more, where chance makes "
        f"{total['all_expected']:,.1f}; they have {total['all_clicks'] / max(total['clicks'], 1):.1%} of the clicks.",
        remedy="Programs click too. Leave out all sessions of the users or addresses behind these, also those without "
        "a click, and read the log again.",
    )
    return [clickless, rows, bots]


def _smallest(groups: pd.DataFrame, name: str, sign: float) -> tuple[float, str]:
    """The smallest p value of an excess over all sessions, a ranker's and a period's, times their number; in words."""
    from scipy.special import ndtr

    sums = [("", groups.sum(numeric_only=True))]
    for kind in ("ranker", "period"):
        if kind in groups and groups[kind].nunique() > 1:
            parts = groups.groupby(kind)
            sums += [(f", most clearly in {kind} {key}", part.sum(numeric_only=True)) for key, part in parts]
    tails = []
    for where, part in sums:
        excess, variance = part[f"{name}_excess"], part[f"{name}_variance"]
        tails.append((float(ndtr(-sign * excess / np.sqrt(variance))) if variance > 0 else 1.0, where))
    p_value, where = min(tails, key=lambda pair: pair[0])
    p_value = min(1.0, len(tails) * p_value)
    return p_value, f"p = {p_value:.2g}{where if p_value < 0.01 else ''}"


def ignored_columns(table: Any, events: Events, *, alpha: float) -> LogCheck:
    """The line on columns that were not used: what they might be, and whether one of few values chose the ranker.

    Of each column with at most 20 values a table of values × rankers in each query and period is tested for
    independence twice: for a say that goes one way in all tables
    (:func:`~cfltr_core.logs.homogeneity.pooled_homogeneity`), and for one that differs from query to query
    (:func:`~cfltr_core.logs.homogeneity.homogeneity`).  The smaller probability counts, times the number of tests.
    Beyond chance, the line is red where 3 % of a ranker's sessions or more would need another value to be like those of
    the others, and else amber.  With n_vr sessions of value v and ranker r in a stratum of n, that share is

        ½ Σ_v |Σ (n_vr − n_v· n_·r/n)| / Σ n_·r (1 − n_·r/n),

    the inner sums over strata.  It is 1 for a column that determines when r serves.  Rare queries do not lessen it:
    numerator and denominator have the same factor (n − 1)/n in their means.

    Parameters
    ----------
    table : Ibis table
        Of :func:`~cfltr_core.clicks.event_sources.event_table`, with ``rest=True``.
    events : Events
    alpha : float
        Level of the line.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.event_sources import event_table
    >>> from cfltr_core.logs.session_checks import ignored_columns
    >>> rows = pd.DataFrame({"session": [1, 2], "query": 7, "document": 1, "position": 1, "clicked": [1, 0],
    ...                      "day": ["2026-01-01", "2026-01-02"]})
    >>> events = cf.read_events(rows, pd.DataFrame({"query": [7], "document": [1], "age": [3]}), split=None)
    >>> with event_table(rows, rest=True) as table:
    ...     line = ignored_columns(table, events, alpha=0.003)
    >>> line.status, line.remedy
    ('amber', "'day' looks like a time: make it days or weeks, and read with columns={'period': 'day'}.")
    """
    check, names = "ignored columns", [name for name in table.columns if name.startswith("other_")]
    elsewhere = (events.rank > 1) & (np.asarray(events.tops) > 0)
    top = table.filter(of_first if elsewhere.any() else table.position == 1)
    kinds = run_query(top.aggregate(**{name: top[name].nunique() for name in names})).iloc[0] if names else {}
    notes, chose, apart = [], {}, {}
    few = [name for name in names if 1 < kinds[name] <= KINDS]
    for name in few if len(events.rankers) > 1 else []:
        period = [column for column in ("period",) if column in table.columns]
        frame = run_query(top.group_by("query", "ranker", name, *period).agg(n=top.count()).drop_null())
        strata, rankers, values = (
            frame.groupby(keys, sort=False).ngroup() for keys in (["query", *period], "ranker", name)
        )
        any_way = homogeneity(strata, values, rankers, count=frame["n"]).p_value
        one_way = pooled_homogeneity(strata, values, rankers, count=frame["n"])
        chose[name] = min(any_way, one_way) * 2 * len(few)
        apart[name] = _apart(frame, ["query", *period], name)
    for name in names:
        shown, kind = name.removeprefix("other_"), table[name].type()
        if chose.get(name, 1.0) < alpha:
            notes.append(
                f"{shown!r} had a say in which ranker served: {apart[name].max():.0%} of the sessions of "
                f"{apart[name].idxmax()} would need another value to be like the others' (p = {chose[name]:.2g}). Make "
                f"it the period, or a part of it, columns={{'period': {shown!r}}}, so that like is compared with like; "
                "if it is the coin itself, say the arm of an experiment, leave it out of the source"
            )
        elif events.periods == (None,) and (kind.is_temporal() or TIMES.search(shown)):
            notes.append(
                f"{shown!r} looks like a time: make it days or weeks, and read with columns={{'period': {shown!r}}}"
            )
    p_value = min([1.0, *chose.values()])
    said = ", ".join(f"{name.removeprefix('other_')} ({kinds[name]:,} different)" for name in names)
    value = f"Not used: {said}." if names else "All columns are used."
    if notes:
        matters = any(p < alpha and apart[name].max() >= MATTERS for name, p in chose.items())
        return LogCheck(check, "red" if matters else "amber", value, f"{'; '.join(notes)}.", p_value)
    return LogCheck(check, "green", value, p_value=p_value)


def _apart(frame: pd.DataFrame, strata: list[str], name: str) -> pd.Series:
    """By ranker, the share of its sessions that would need another value of ``name`` to be like those of the others."""
    of_value, of_ranker = (frame.groupby([*strata, key], as_index=False)["n"].sum() for key in (name, "ranker"))
    of_ranker["whole"] = of_ranker.groupby(strata)["n"].transform("sum")
    pairs = of_value.merge(of_ranker, on=strata, suffixes=("", "_ranker"))
    pairs["n"] *= pairs["n_ranker"] / pairs["whole"]
    seen, by_chance = (some.groupby([name, "ranker"])["n"].sum() for some in (frame, pairs))
    moved = seen.sub(by_chance, fill_value=0.0).abs().groupby("ranker").sum() / 2
    mixed = (of_ranker["n"] * (1 - of_ranker["n"] / of_ranker["whole"])).groupby(of_ranker["ranker"]).sum()
    return moved / mixed.where(mixed > 0)
