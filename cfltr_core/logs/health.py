"""One report of a click log's health: what would make estimates from it wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import BoolArray
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_sources import event_table, without_deprecations
from cfltr_core.logs.homogeneity import homogeneity
from cfltr_core.logs.log_report import MATTERS, LogCheck, LogReport, Status, check_line
from cfltr_core.logs.model_tests import ModelTest, Redraws, curves_test, stopping_test, trust_test
from cfltr_core.logs.movement import feedback_test
from cfltr_core.logs.session_checks import ignored_columns, session_checks
from cfltr_core.logs.session_sums import session_sums
from cfltr_core.propensity.conditional_poisson import conditional_poisson
from cfltr_core.propensity.identifiability import FEW, rank_links
from cfltr_core.propensity.strata import DisplayCounts, display_counts

# Lines that are tests, and share the false alarms that a report may give.
TESTS = 10
# Below the first effective number of queries an interval is not to be relied on, below the second it is wide.
TOO_FEW, RATHER_FEW = 25, 100
# The rankers with most sessions, by whose order documents are split into halves.
SPLITS = 3
UNREAD = "Give the rows as well: cf.check_log(events, source, rng=rng)."
# Lines that look at whole pages.
OF_PAGES = ("pages without a click", "rows missing", "bots", "clicks above")
SAMPLED = LogCheck(
    check="",
    status="amber",
    value="Not checked: each row is a sample of one slot, not a page.",
    remedy="Log whole pages, clicked or not, in a part of the sessions at least; else ask who draws the samples "
    "whether clicks have a say in it.",
)


def check_log(
    events: Events,
    source: Any = None,
    *,
    rng: np.random.Generator,
    columns: Mapping[str, str] | None = None,
    trust: bool = False,
    level: float = 0.03,
    redraws: int = 100,
    memory: str = "1GB",
) -> LogReport:
    """Report whether estimates from a click log can be relied on: a line a check, with its number and what to do.

    Counts answer most questions; pages without a click, cut pages, bots, users who stop, and ignored columns need
    single sessions, which the database adds up where the ``source`` lies.

    *Tests.*  Ten lines are tests, each at a tenth of ``level``, so that a sound log has a line that chance alone turned
    amber or red with probability ``level`` at most, as far as the laws hold to which the tests refer.  Those of trust,
    of one curve and of stopping refer to laws for many queries.  When one of them would speak, ``redraws`` logs with
    the same displays are drawn from the position model that fits best, and the number of queries in its law (Hotelling)
    is put so that the mean of the statistic over these logs is right.

    *What no line can see:* an error that all sessions share and that leaves click rates products of examination and
    attraction, and sessions of all kinds that are lost alike.

    Parameters
    ----------
    events : Events
        All parts together, as :func:`read_events` returns them.
    source : data frame, path or Ibis table, optional
        The rows from which ``events`` were read; without them five lines stay unchecked.
    rng : numpy.random.Generator
        For the redraws.
    columns : mapping, optional
        As for :func:`read_events`.
    trust : bool
        Take trust in high ranks as given, and ask whether :func:`trust_bias` describes it: one line for all documents.
    level : float
        Probability of a false alarm, of all lines together.
    redraws : int
        Whole number from 2; none is drawn where no test would speak.
    memory : str
        What DuckDB may hold at once.

    Raises
    ------
    TypeError
        For ``events`` or an ``rng`` of another type.
    ValueError
        For a ``level`` that is not strictly between 0 and 1, too few ``redraws``, or a ``source`` without the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> rng = np.random.default_rng(0)
    >>> pages = [[0, 1, 2], [2, 0, 1]]  # of two rankers, the same for all queries
    >>> rows = [
    ...     (s, s % 50, d, k, int(rng.random() < [0.8, 0.1, 0.6][d] / k), "AB"[ranker])
    ...     for s in range(2_000) for ranker in [rng.integers(2)] for k, d in enumerate(pages[ranker], start=1)
    ... ]
    >>> rows = pd.DataFrame(rows, columns=["session", "query", "document", "position", "clicked", "ranker"])
    >>> lists = [(q, d, d) for q in range(50) for d in range(3)]
    >>> features = pd.DataFrame(lists, columns=["query", "document", "x"])
    >>> whole = cf.read_events(rows, features, split=None)
    >>> report = cf.check_log(whole, rows, rng=rng)
    >>> report.frame.set_index("check").loc["pages without a click", "status"]
    'green'
    >>> clicks = rows.groupby("session").clicked.transform("sum")
    >>> filtered = rows[(clicks > 0) | (rows.session % 2 == 0)]  # half of the pages without a click are lost
    >>> report = cf.check_log(cf.read_events(filtered, features, split=None), filtered, rng=rng)
    >>> report.frame.set_index("check").loc["pages without a click", "status"]
    'red'
    """
    checks.arguments(check_log, locals())
    alpha = level / TESTS
    counts = display_counts(events)
    settings = Redraws(number=redraws, alpha=alpha, rng=rng)
    pages = None
    if source is None:
        names = ("pages without a click", "rows missing", "bots", "ignored columns")
        lines = [LogCheck(check=check, status="amber", value="Not checked.", remedy=UNREAD) for check in names]
    else:
        with without_deprecations(), event_table(source, columns, memory=memory, rest=True) as table:
            sums = session_sums(table, events)
            n = int(sums.groups["sessions"].sum())
            if n != events.n_sessions:
                raise ValueError(
                    f"source: it has {n:,} sessions, but events have {events.n_sessions:,}: give the rows from which "
                    "they were read, and events before part() or subset()"
                )
            lines = [*session_checks(sums.groups, alpha=alpha), ignored_columns(table, events, alpha=alpha)]
            pages = sums.pages
    lines += [_assignment(events, alpha), *_time(events, alpha), _links(counts)]
    lines += [
        LogCheck(check="trust in high ranks", status="green", value="Taken as given: decide with cf.trust_bias.")
        if trust
        else _model(
            "trust in high ranks",
            lambda: trust_test(counts, redraws=settings),
            alpha,
            lambda test: f"At some rank click probabilities are {test.size:+.3f} off what examination alone would give",
            "People click on what stands high, wanted or not. Take cf.trust_bias(counts) in place of a curve, and "
            "cf.affine in place of weights; then check again, cf.check_log(…, trust=True).",
        ),
        _model(
            "one curve for all documents",
            lambda: curves_test(counts, _halves(events, counts), redraws=settings, trust=trust),
            alpha,
            lambda test: (
                "Documents that rankers put high and the others have "
                + ("clicks up to {:.2f} × off one line" if trust else "curves up to {:.2f} × apart").format(test.size)
            ),
            "The position model does not hold. See the lines on trust and on time first; if they are green, estimate "
            "curves for parts of the log (device, kind of query) until each part passes.",
        ),
        LogCheck(check="clicks above", status="amber", value="Not checked.", remedy=UNREAD)
        if source is None
        else _model(
            "clicks above",
            lambda: stopping_test(pages, redraws=settings),
            alpha,
            lambda test: f"With one click more above it a document is clicked {np.exp(test.size):.2f} times as often",
            "People stop after a click, or pages were kept for their clicks (see pages without a click): no curve of "
            "the rank alone is right. Mend the export if it was filtered; else decide by an A/B test, not from clicks.",
        ),
        _weight(counts),
    ]
    if events.samples:
        lines = [replace(SAMPLED, check=line.check) if line.check in OF_PAGES else line for line in lines]
    return LogReport(lines=tuple(lines), level=level)


def _model(
    check: str, test: Callable[[], ModelTest], alpha: float, says: Callable[[ModelTest], str], remedy: str
) -> LogCheck:
    """A line of a test of the position model; amber where the log does not allow it."""
    try:
        made = test()
    except ValueError as error:
        reason = (str(error).partition(": ")[2] or str(error)).rstrip(". ")
        value = "Not checked: the log does not allow it."
        return LogCheck(check=check, status="amber", value=value, remedy=f"{reason[0].upper()}{reason[1:]}.")
    what = says(made) if made.p_value < alpha else "Nothing beyond chance"
    value = f"{what} (p = {made.p_value:.2g}, {made.queries:,.0f} queries)."
    return check_line(check, made.p_value, alpha=alpha, value=value, remedy=remedy)


def _assignment(events: Events, alpha: float) -> LogCheck:
    """How the rankers were chosen."""
    check, table = "choice of the ranker", events.sessions
    if events.rankers == (None,):
        return LogCheck(check=check, status="green", value="No column ranker was read.")
    if len(np.unique(events.ranker)) < 2:
        remedy = "Shuffle or swap two ranks in a small share of the sessions, so that ranks can be compared."
        return LogCheck(check=check, status="amber", value="There is one ranker.", remedy=remedy)
    by_query, by_period = (
        homogeneity(table[stratum], table[row], table["ranker"], count=table["sessions"])
        for stratum, row in (("period", "query"), ("query", "period"))
    )
    shares = table.groupby("ranker")["sessions"].sum() / table["sessions"].sum()
    value = ", ".join(f"{events.rankers[i]} {share:.1%}" for i, share in shares.items())
    if by_query.p_value < alpha:
        value += f"; some queries met a ranker more often than by chance (p = {by_query.p_value:.2g})"
    if by_period.p_value < alpha:
        value += "; shares change from period to period, which counting by period allows for"
    away, missed = _unserved(events)
    remedy = "Compare rankers within queries only, never click rates of each ranker's own sessions side by side."
    if missed >= MATTERS:
        value += f"; {events.rankers[away]} never served queries with {missed:.1%} of the sessions, beyond chance"
        remedy += (
            " What a ranker alone would show in queries that it never served is missing from every estimate of it: let "
            "chance choose in all queries, or decide on those that all rankers served, by events.subset(queries=…)."
        )
    status: Status = "red" if missed >= MATTERS else "amber"
    return check_line(check, by_query.p_value, alpha=alpha, value=f"{value}.", remedy=remedy, status=status)


def _unserved(events: Events) -> tuple[int, float]:
    """The ranker that missed most, and the sessions of queries it never served, as a share, less what chance makes."""
    table = events.sessions.pivot_table(index="query", columns="ranker", values="sessions", aggfunc="sum", fill_value=0)
    asked = table.sum(axis=1).to_numpy()[:, None]
    never = (table.to_numpy() == 0) - (1 - table.sum() / asked.sum()).to_numpy() ** asked
    missed = (asked * never).sum(axis=0) / asked.sum()
    return int(table.columns[np.argmax(missed)]), float(missed.max())


def _time(events: Events, alpha: float) -> list[LogCheck]:
    """Does what people want change from period to period, and do pages follow clicks?"""
    names = ("taste over time", "pages that follow clicks")
    if len(np.unique(events.period)) < 2:
        remedy = "Name the column of the day or week, columns={'period': …}: without it changes look like bias."
        value = "Not checked: there is one period."
        return [LogCheck(check=check, status="amber", value=value, remedy=remedy) for check in names]
    term = events.document * int(events.rank.max() + 1) + events.rank
    clicked, count = np.repeat([1, 0], len(term)), [events.clicks, events.impressions - events.clicks]
    rates = homogeneity(np.tile(term, 2), np.tile(events.period, 2), clicked, count=np.concatenate(count))
    follow = feedback_test(events)
    taste = check_line(
        names[0],
        rates.p_value,
        alpha=alpha,
        value="Click rates of a document at its rank differ between periods "
        f"{'more than' if rates.p_value < alpha else 'as'} chance makes them (p = {rates.p_value:.2g}).",
        remedy="What people want changes. Keep the period in the strata, as cf.display_counts(events) does. If periods "
        "are times, decide on the last ones alone: events.subset(periods=…) for the log and for its displays. If they "
        "are kinds of users, decide for each: by='period'.",
    )
    moves = f"Documents change places between periods {follow.moves:,} times, " if follow.moves else "No document moves"
    if follow.moves:
        moves += (
            f"{'upwards after clicks' if follow.p_value < alpha else 'not after clicks'} (p = {follow.p_value:.2g})"
        )
    pages = check_line(
        names[1],
        follow.p_value,
        alpha=alpha,
        value=f"{moves}.",
        remedy="A ranker follows clicks, or taste. Take periods in which rankers stay as they are, keep them in the "
        "strata, and decide period by period.",
        status="amber",
    )
    return [taste, pages]


def _links(counts: DisplayCounts) -> LogCheck:
    links = rank_links(counts)
    first, *rest = links.diagnosis or ("Every document stood at rank 1: no curve is needed or can be estimated.",)
    status: Status = "red" if links.log.any() else "amber" if links.cut_clicks < FEW else "green"
    return LogCheck(check="links of ranks", status=status, value=first, remedy=" ".join(rest))


def _halves(events: Events, counts: DisplayCounts) -> list[BoolArray]:
    """Documents above the median of the mean rank at which a ranker showed them, for the rankers with most sessions."""
    n_docs, below = len(events.features), int(events.rank.max()) + 1
    sessions = np.bincount(events.ranker, np.asarray(events.tops))
    halves = []
    for ranker in np.argsort(-sessions, kind="stable")[:SPLITS]:
        mine = events.ranker == ranker
        shown, places = (
            np.bincount(events.document[mine], values[mine], minlength=n_docs)
            for values in (events.impressions, events.impressions * events.rank)
        )
        mean = np.divide(places, shown, out=np.full(n_docs, float(below)), where=shown > 0)[counts.document]
        halves.append(mean <= np.median(mean))
    return halves


def _weight(counts: DisplayCounts) -> LogCheck:
    """To how many queries of equal weight the log amounts, at the rank where they are fewest."""
    check = "queries of equal weight"
    try:
        queries = np.asarray(conditional_poisson(counts).queries)
    except ValueError:
        return LogCheck(check, "amber", "Not known: no curve can be estimated.", "See links of ranks.")
    fewest = float(np.min(queries))
    asked = int(counts.cluster[-1]) + 1
    rank = int(np.argmin(queries)) + 1
    value = f"{asked:,} queries were asked; at rank {rank} the curve rests on {fewest:,.0f} of equal weight"
    if fewest >= RATHER_FEW:
        return LogCheck(check=check, status="green", value=f"{value}.")
    return LogCheck(
        check,
        "red" if fewest < TOO_FEW else "amber",
        f"{value}.",
        "A few queries decide, and other queries might decide otherwise. Collect sessions of other queries; more of "
        "the same ones help little.",
    )
