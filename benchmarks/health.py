"""Is the health report honest?  False alarms on sound logs, and how often each damage is seen.

    python -m benchmarks.health                       # every cell
    python -m benchmarks.health sound zipf            # the cells whose name holds all these words
    python -m benchmarks.health --logs 200 "10,000 sessions"

A shop of 300 queries with 12 products each, a quarter of them wanted, and pages of six; three rankers have 70, 15 and
15 % of the sessions in four periods.  A product is clicked with .9 or .1 where it is seen, and rank r is seen with
r^−.8.  Traffic is uniform, or of Zipf's law: query q has a share in proportion to 1/q.

Damages, and their halves: 80 % of the pages without a click are dropped; 30 % of the pages are cut at their last click;
a ranker is given to a query in place of chance in 60 % of the queries; in the second half of the periods 40 % of the
products are wanted otherwise, and two rankers follow; 60 % of the users stop at their first click; 3 % of the sessions
click everything.  An *alarm* is a test that is red or amber; what could not be checked, and how queries weigh,
is none.  The bias
is that of a decision between two rankers on the damaged log, with the curve of the log itself, in units of δ = .03.
All shares with the interval of Clopper & Pearson 1934.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import cfltr_core as cf
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.event_counts import Events

FEW, MANY = 10_000, 100_000
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
    sound = [Cell("sound", 0.0, n, zipf, 200) for n in (FEW, MANY) for zipf in (False, True)]
    return sound + [
        Cell(damage, dose, n, False, 40) for n in (FEW, MANY) for damage in list(FULL)[1:] for dose in (1.0, 0.5)
    ]


@dataclass(frozen=True)
class Log:
    """The rows of a log, the features of its products, and the true difference that a decision estimates."""

    rows: pd.DataFrame
    features: pd.DataFrame
    new: FloatArray
    old: FloatArray
    truth: float


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
    at = np.nonzero(kept)
    rows = pd.DataFrame(
        {
            "session": at[0],
            "query": query[at[0]],
            "document": shown[at],
            "position": at[1] + 1,
            "clicked": clicks[at].astype(int),
            "ranker": np.array(["production", "rival", "third"])[ranker[at[0]]],
            "period": period[at[0]],
        }
    )
    lists = np.indices((QUERIES, PRODUCTS)).reshape(2, -1)
    features = pd.DataFrame({"query": lists[0], "document": lists[1], "x": scores[0, 0].ravel()})
    old, new = (_places(pages[i, -1]) for i in (0, 1))
    gain = np.array([0.0, *1 / np.log2(1.0 + np.arange(1, PLACES + 1))])
    # Of the last period, for which a shop decides; products are clicked so at rank 1.
    by_query = ((gain[new] - gain[old]) * attraction[-1]).sum(axis=1)
    truth = float(by_query @ (traffic / traffic.sum()))
    return Log(rows, features, _scores(new), _scores(old), truth)


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


def measure(cell: Cell, logs: int) -> None:
    seen, unchecked, off = Counter[str](), Counter[str](), []
    any_alarm, refused = 0, 0
    begun = time.perf_counter()
    for seed in range(logs):
        kind = (list(FULL).index(cell.damage), int(10 * cell.dose), cell.sessions, cell.zipf)
        rng = np.random.default_rng([16, *kind, seed])
        log = draw(cell, rng)
        try:
            events = cf.read_events(log.rows, log.features, split=None)
        except ValueError:
            refused += 1
            continue
        report = cf.check_log(events, log.rows, rng=rng)
        tests = [line for line in report.lines if np.isfinite(line.p_value)]
        alarms = [line.check for line in tests if line.status != "green"]
        seen.update(alarms)
        unchecked.update(line.check for line in report.lines if line.value.startswith("Not checked"))
        any_alarm += bool(alarms)
        off.append(bias(log, events))
    of = logs - refused
    if of == 0:
        print(f"{cell.name}: all {logs} logs are refused by read_events", flush=True)
        return
    print(f"{cell.name}: {share('any alarm', any_alarm, of)}, {of} logs, {refused} refused by read_events")
    if cell.damage != "sound":
        print(f"    {share('the line meant for it', seen[LINES[cell.damage]], of)}; bias {np.nanmean(off):+.1f} δ")
    print(f"    alarms: {dict(seen.most_common())}; not checked: {dict(unchecked)}")
    print(f"    {(time.perf_counter() - begun) / logs:.1f} s a log", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--logs", type=int, default=None)
    given = parser.parse_args()
    for cell in cells():
        if all(word in cell.name for word in given.words):
            measure(cell, given.logs or cell.logs)


if __name__ == "__main__":
    main()
