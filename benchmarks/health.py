"""Is the health report honest?  False alarms on sound logs, and how often each damage is seen.

    python -m benchmarks.health                       # every cell
    python -m benchmarks.health sound zipf            # the cells whose name holds all these words
    python -m benchmarks.health --logs 200 "10,000 sessions"
    python -m benchmarks.health --first 1000 sound    # other logs than those of the first seeds
    python -m benchmarks.health --table some.csv cascade    # a line a cell is added to it

What a run with ``--first 1000`` found, 200 sound logs and 20 damaged ones a cell, stands in measured/health.csv.

A shop of 300 queries with 12 products each, a quarter of them wanted, and pages of six; three rankers have 70, 15 and
15 % of the sessions in four periods.  A product is clicked with .9 or .1 where it is seen, and rank r is seen with
r^−.8.  Traffic is uniform, or of Zipf's law: query q has a share in proportion to 1/q.

Damages, and their halves: 80 % of the pages without a click are dropped; 30 % of the pages are cut at their last click;
a ranker is given to a query in place of chance in 60 % of the queries; in the second half of the periods 40 % of the
products are wanted otherwise, and two rankers follow; 60 % of the users stop at their first click; 3 % of the sessions
click everything.  An *alarm* is a line that is red or amber, be it a test or not; but that a few queries weigh most is
none under Zipf's law, where it is true.  The bias is that of a decision between two rankers on the damaged log, with
the curve of the log itself, in units of δ = .03.  All shares with the interval of Clopper & Pearson 1934.

Reading rows takes longer than all else.  Where pages are whole, counts and sums over sessions are made here, from the
arrays that were drawn; of the first log of a cell the report must be that of its rows, read by the package.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import cfltr_core as cf
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_parts import FIRST, PRIME, SECOND
from cfltr_core.clicks.event_report import EventReport
from cfltr_core.clicks.pages import PageCounts, distinct_rows
from cfltr_core.logs import health
from cfltr_core.logs.log_report import LogCheck, LogReport
from cfltr_core.logs.session_sums import SessionSums

# Sessions of a log; damages are measured on the first two.
FEW, MANY, MOST = 10_000, 100_000, 1_000_000
QUERIES, PRODUCTS, PLACES, PERIODS, DELTA = 300, 12, 6, 4, 0.03
SHARES, SEEN = [0.7, 0.15, 0.15], np.arange(1.0, PLACES + 1) ** -0.8
# Of each damage the line that is meant to see it.
LINES = {
    "sound": "",
    "filter": "pages without a click",
    "cut": "rows missing",
    "by query": "choice of the ranker",
    "drift": "taste over time",
    "cascade": "clicks above",
    "bots": "bots",
}
WEIGH = "queries of equal weight"
FULL = {"sound": 0.0, "filter": 0.8, "cut": 0.3, "by query": 0.6, "drift": 0.4, "cascade": 0.6, "bots": 0.03}


@dataclass(frozen=True)
class Cell:
    """A damage at a share of its full dose, in logs of so many sessions."""

    damage: str
    dose: float
    sessions: int
    zipf: bool
    logs: int

    @property
    def name(self) -> str:
        dose = "" if self.damage == "sound" else " in full" if self.dose == 1 else " by half"
        return f"{self.damage}{dose}, {self.sessions:,} sessions, {'zipf' if self.zipf else 'uniform'}"


def cells() -> list[Cell]:
    sizes = {FEW: 200, MANY: 200, MOST: 40}
    sound = [Cell("sound", 0.0, n, zipf, logs) for n, logs in sizes.items() for zipf in (False, True)]
    return sound + [
        Cell(damage, dose, n, False, 40) for n in (FEW, MANY) for damage in list(FULL)[1:] for dose in (1.0, 0.5)
    ]


@dataclass(frozen=True)
class Log:
    """Sessions with the products on their pages, clicks and what was kept, (sessions, places), and a true difference.

    ``pages`` are (rankers, periods, queries, places); ``truth`` is that between two of the rankers, whose scores are
    ``new`` and ``old``.
    """

    query: IntArray
    ranker: IntArray
    period: IntArray
    shown: IntArray
    clicks: BoolArray
    kept: BoolArray
    pages: IntArray
    new: FloatArray
    old: FloatArray
    truth: float

    @property
    def rows(self) -> pd.DataFrame:
        session, place = np.nonzero(self.kept)
        return pd.DataFrame(
            {
                "session": session,
                "query": self.query[session],
                "document": self.shown[session, place],
                "position": place + 1,
                "clicked": self.clicks[session, place].astype(int),
                "ranker": self.ranker[session],
                "period": self.period[session],
            }
        )


def draw(cell: Cell, rng: np.random.Generator) -> Log:
    dose, n = FULL[cell.damage] * cell.dose, cell.sessions

    def is_damage(name: str) -> bool:
        return cell.damage == name

    wanted = np.repeat((rng.random((QUERIES, PRODUCTS)) < 0.25)[None], PERIODS, axis=0)
    if is_damage("drift"):
        other = rng.random((QUERIES, PRODUCTS)) < dose
        wanted[PERIODS // 2 :, other] = (rng.random((QUERIES, PRODUCTS)) < 0.25)[other]
    attraction = np.where(wanted, 0.9, 0.1)
    noise = rng.normal(size=(3, QUERIES, PRODUCTS))
    scores = noise[:, None] + np.array([0.5, 1.5, 1.0])[:, None, None, None] * wanted
    if not is_damage("drift"):
        scores = np.repeat(scores[:, :1], PERIODS, axis=1)
    pages = np.argsort(-scores, axis=-1)[..., :PLACES]
    traffic = 1.0 / np.arange(1, QUERIES + 1) if cell.zipf else np.ones(QUERIES)
    query = rng.choice(QUERIES, n, p=traffic / traffic.sum())
    ranker, period = rng.choice(3, n, p=SHARES), rng.integers(PERIODS, size=n)
    if is_damage("by query"):
        own = np.where(rng.random(QUERIES) < dose, rng.choice(3, QUERIES, p=SHARES), -1)[query]
        ranker = np.where(own >= 0, own, ranker)
    shown = pages[ranker, period, query]
    wants = attraction[period[:, None], query[:, None], shown]
    clicks = rng.random(shown.shape) < wants * SEEN
    if is_damage("cascade"):
        # Whoever stops has the same chance at a place that is reached.
        first: BoolArray = np.cumsum(clicks, axis=1) - clicks == 0
        clicks &= first | (rng.random(n) >= dose)[:, None]
    if is_damage("bots"):
        clicks |= (rng.random(n) < dose)[:, None]
    kept = np.ones(shown.shape, dtype=bool)
    if is_damage("filter"):
        kept &= (clicks.any(axis=1) | (rng.random(n) >= dose))[:, None]
    if is_damage("cut"):
        last = np.where(clicks.any(axis=1), PLACES - np.argmax(clicks[:, ::-1], axis=1), PLACES)
        kept &= (np.arange(1, PLACES + 1) <= last[:, None]) | (rng.random(n) >= dose)[:, None]
    old, new = (_places(pages[i, -1]) for i in (0, 1))
    gain = np.array([0.0, *1 / np.log2(1.0 + np.arange(1, PLACES + 1))])
    # Of the last period, for which a shop decides; products are clicked so at rank 1.
    by_query = ((gain[new] - gain[old]) * attraction[-1]).sum(axis=1)
    truth = float(by_query @ (traffic / traffic.sum()))
    return Log(query, ranker, period, shown, clicks, kept, pages, _scores(new), _scores(old), truth)


def features() -> pd.DataFrame:
    lists = np.indices((QUERIES, PRODUCTS)).reshape(2, -1)
    return pd.DataFrame({"query": lists[0], "document": lists[1], "x": 0.0})


def counted(log: Log) -> tuple[Events, SessionSums]:
    """What reading the rows of whole pages would give: counts, and sums over sessions."""
    there = np.flatnonzero(log.kept.all(axis=1))
    query, ranker, period = log.query[there], log.ranker[there], log.period[there]
    clicks, row = log.clicks[there], (query[:, None] * PRODUCTS + log.shown[there])
    shape = (QUERIES * PRODUCTS, PLACES, 3, PERIODS)
    term = ((row * PLACES + np.arange(PLACES)) * 3 + ranker[:, None]) * PERIODS + period[:, None]
    n, c = (np.bincount(term.ravel(), w, minlength=np.prod(shape)).astype(int) for w in (None, clicks.ravel()))
    document, place, of_ranker, of_period = np.unravel_index(np.flatnonzero(n), shape)
    events = Events(
        features=np.zeros((shape[0], 1), dtype=np.float32),
        feature_names=("x",),
        offsets=np.arange(0, shape[0] + 1, PRODUCTS),
        index=features()[["query", "document"]],
        rankers=(0, 1, 2),
        periods=tuple(range(PERIODS)),
        parts=("all",),
        document=document,
        rank=place + 1,
        ranker=of_ranker,
        period=of_period,
        part_number=np.zeros(len(document), dtype=int),
        impressions=n[n > 0],
        clicks=c[n > 0],
        report=EventReport(lines={"split": "none"}, dropped_sessions=0),
    )
    by_term = np.stack([n, c]).reshape(2, -1, 3 * PERIODS).sum(axis=2)
    at = row * PLACES + np.arange(PLACES)
    rate, least = (by_term[1] / np.maximum(by_term[0], 1))[at], by_term[0][at].min(axis=1)
    implied, full, none = (1 - rate).prod(axis=1), rate.prod(axis=1), ~clicks.any(axis=1)
    linear = np.divide(clicks - rate, 1 - rate, out=np.zeros(rate.shape), where=rate < 1).sum(axis=1)
    residual = none - implied * (1 - linear)
    everything = clicks.all(axis=1)
    sums = {
        "sessions": np.ones(len(query)),
        "clicks": clicks.sum(axis=1),
        "none": none,
        "none_expected": implied,
        "none_excess": residual,
        "none_variance": residual**2 * np.where(least > 1, least / np.maximum(least - 1, 1), 0),
        "all": everything,
        "all_expected": full,
        "all_clicks": everything * PLACES,
        **dict.fromkeys(("short", "short_excess", "short_variance"), np.zeros(len(query))),
    }
    groups = pd.DataFrame({"ranker": ranker, "period": period, **sums}).astype(float)
    groups = groups.groupby(["ranker", "period"], as_index=False).sum()
    # Pages of two rankers or periods may be the same.
    every = log.pages.transpose(2, 0, 1, 3).reshape(-1, PLACES)
    asked = np.repeat(np.arange(QUERIES), 3 * PERIODS)
    different, which = distinct_rows(np.column_stack([asked, every]))
    page = which[(query * 3 + ranker) * PERIODS + period]
    mixed = (there % PRIME * FIRST + 1) % PRIME
    half = ((mixed ^ (mixed >> 15)) * SECOND % PRIME >= PRIME / 2).astype(int)
    asked_for = np.bincount(page * 2 + half, minlength=2 * len(different)).reshape(-1, 2)
    cell = ((page[:, None] * PLACES + np.arange(PLACES)) * 2 + half[:, None]).ravel()
    table = np.bincount(cell, clicks.ravel(), minlength=2 * PLACES * len(different)).reshape(-1, PLACES, 2).astype(int)
    both = np.flatnonzero((asked_for > 0).all(axis=1))
    # In the order in which the database gives them, since clicks are drawn anew in that order.
    keys = (different[both, :1] * PRODUCTS + different[both, 1:]).T[::-1]
    both = both[np.lexsort((*keys, -asked_for[both].sum(axis=1)))]
    of = np.repeat(both, PLACES)
    pages = PageCounts(
        page=np.repeat(np.arange(len(both)), PLACES),
        query=different[of, 0],
        document=different[of, 0] * PRODUCTS + different[both, 1:].ravel(),
        rank=np.tile(np.arange(1, PLACES + 1), len(both)),
        impressions=asked_for[of],
        clicks=table[both].reshape(-1, 2),
    )
    return events, SessionSums(groups=groups, pages=pages)


def read(log: Log, rng: np.random.Generator) -> tuple[Events, LogReport]:
    """Events and report as a shop gets them."""
    events = cf.read_events(log.rows, features(), split=None)
    return events, cf.check_log(events, log.rows, rng=rng)


def made(log: Log, rng: np.random.Generator) -> tuple[Events, LogReport]:
    """The same without reading rows."""
    events, sums = counted(log)
    unused = LogCheck(check="ignored columns", status="green", value="All columns are used.")
    with (
        mock.patch.object(health, "event_table", return_value=nullcontext()),
        mock.patch.object(health, "session_sums", return_value=sums),
        mock.patch.object(health, "ignored_columns", return_value=unused),
    ):
        return events, cf.check_log(events, log, rng=rng)


def _places(page: IntArray) -> IntArray:
    """Rank of each product on its page, 0 if it is not there, (queries, products)."""
    place = np.zeros((QUERIES, PRODUCTS), dtype=np.int64)
    np.put_along_axis(place, page, np.arange(1, PLACES + 1)[None], axis=1)
    return place


def _scores(place: IntArray) -> FloatArray:
    return np.where(place > 0, -place, -2 * PLACES - np.arange(PRODUCTS)).ravel().astype(float)


def bias(log: Log, events: Events) -> float:
    """Estimate less truth, in δ; nan where no decision can be made."""
    try:
        curve = cf.conditional_poisson(cf.display_counts(events))
        new, old = (cf.rank_weights(f, events.offsets, metric=cf.dcg(PLACES)) for f in (log.new, log.old))
        made = cf.decide(new, old, log=events, shares=events, user=curve.user(), smallest=DELTA)
        return (made.difference - log.truth) / DELTA
    except ValueError:
        return float("nan")


def share(name: str, times: int, of: int) -> str:
    ends = binomtest(times, of).proportion_ci(method="exact")
    return f"{name} {times / of:.3f} [{ends.low:.3f}, {ends.high:.3f}]"


def measure(cell: Cell, logs: int, first: int = 0) -> dict[str, object] | None:
    """Print what the logs of the seeds from ``first`` on say; as a row of a table, None where all are refused."""
    seen, unchecked, off = Counter[str](), Counter[str](), []
    any_alarm, refused = 0, 0
    begun = time.perf_counter()
    for seed in range(first, first + logs):
        kind = (list(FULL).index(cell.damage), int(10 * cell.dose), cell.sessions, cell.zipf)
        rng = np.random.default_rng([16, *kind, seed])
        log = draw(cell, rng)
        state = rng.bit_generator.state
        try:
            whole = bool((log.kept.all(axis=1) == log.kept.any(axis=1)).all() and not log.clicks.any(axis=1).all())
            events, report = (made if whole else read)(log, rng)
            if whole and seed == first:
                rng.bit_generator.state = state
                assert read(log, rng)[1].frame.equals(report.frame), "the report is not that of the rows"
        except ValueError:
            refused += 1
            continue
        alarms = [line.check for line in report.lines if line.status != "green"]
        alarms = [check for check in alarms if not (cell.zipf and check == WEIGH)]
        seen.update(alarms)
        unchecked.update(line.check for line in report.lines if line.value.startswith("Not checked"))
        any_alarm += bool(alarms)
        off.append(bias(log, events))
    of = logs - refused
    if of == 0:
        print(f"{cell.name}: all {logs} logs are refused by read_events", flush=True)
        return None
    print(f"{cell.name}: {share('any alarm', any_alarm, of)}, {of} logs, {refused} refused by read_events")
    if cell.damage != "sound":
        print(f"    {share('the line meant for it', seen[LINES[cell.damage]], of)}; bias {np.nanmean(off):+.1f} δ")
    print(f"    alarms: {dict(seen.most_common())}; not checked: {dict(unchecked)}")
    print(f"    {(time.perf_counter() - begun) / logs:.1f} s a log", flush=True)
    return {
        "cell": cell.name,
        "first": first,
        "logs": of,
        "alarms": any_alarm,
        "meant": LINES[cell.damage],
        "seen": seen[LINES[cell.damage]],
        "bias": round(float(np.nanmean(off)), 2),
        "by line": "; ".join(f"{line}: {times}" for line, times in seen.most_common()),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--logs", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--table", type=Path, default=None)
    given = parser.parse_args()
    for cell in cells():
        if all(word in cell.name for word in given.words):
            row = measure(cell, given.logs or cell.logs, given.first)
            if row and given.table:
                new = not given.table.exists()
                pd.DataFrame([row]).to_csv(given.table, mode="a", header=new, index=False)


if __name__ == "__main__":
    main()
