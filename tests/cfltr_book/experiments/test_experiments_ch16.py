"""What chapter 16 simulates: rows against what a shop does, counts against loops, and tables of the expected shape."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch16

RUN = Run("smoke", "digits", 3)
SHOP = ch16.shop(RUN, 3)


def some_rows(n: int = 400, **options: Any) -> dict[str, Any]:
    return SHOP.rows(n, RUN.rng(3, 1690), **options)


def test_pages_are_the_first_of_their_ranker_and_shuffled_ones_come_from_deeper() -> None:
    frame = pd.DataFrame(some_rows(depth=20))
    deep = 0
    for _, page in frame.groupby("session"):
        page = page.sort_values("position")
        (query,) = set(page["query"])
        (ranker,) = set(page["ranker"])
        start, end = SHOP.candidates.offsets[query : query + 2]
        scores = SHOP.scores["rival" if ranker == 1 else "production"]
        order = sorted(range(start, end), key=lambda d: -scores[d])
        assert page["position"].tolist() == list(range(1, min(10, end - start) + 1))
        if ranker == 2:
            assert set(page["document"]) <= set(order[:20])
            deep += len(set(page["document"]) - set(order[:10]))
        else:
            assert page["document"].tolist() == order[:10]
    assert deep > 0


def test_clicks_fall_with_the_rank_and_by_half_on_phones() -> None:
    rows = pd.DataFrame(some_rows(60_000, phones=(0.9, 0.1)))
    wanted = SHOP.candidates.binary[rows["document"]] > 0
    for device, factor in ((0, 1.0), (1, 0.5)):
        for position in (1, 2, 5):
            mine = rows[wanted & (rows["device"] == device) & (rows["position"] == position)]
            expected = factor / position
            assert abs(mine["clicked"].mean() - expected) <= 4 * np.sqrt(expected * (1 - expected) / len(mine))
    share = rows.groupby(rows["ranker"] == 1)["device"].mean()
    assert share[True] > 0.8 > 0.2 > share[False]


def test_events_are_the_rows_counted() -> None:
    rows = some_rows()
    part = ch16.halves(400, RUN.rng(3, 1691))[rows["session"]]
    assert set(part) == {0, 2}
    events = SHOP.events(rows, part)
    counted: dict[tuple[int, ...], list[int]] = {}
    for at in range(len(part)):
        key = tuple(int(rows[name][at]) for name in ("document", "position", "ranker", "period"))
        cell = counted.setdefault((*key, int(part[at])), [0, 0])
        cell[0] += 1
        cell[1] += int(rows["clicked"][at])
    columns = (events.document, events.rank, events.ranker, events.period, events.part_number)
    found = zip(*columns, events.impressions, events.clicks, strict=True)
    assert {tuple(map(int, row[:5])): [int(row[5]), int(row[6])] for row in found} == counted


def test_the_truth_is_what_wanted_products_gain() -> None:
    new, old = SHOP.weights("rival"), SHOP.weights("production")
    asked, total, by_asked = np.arange(len(SHOP.popular)) % 3, 0.0, 0.0
    for query, (start, end) in enumerate(pairwise(SHOP.candidates.offsets)):
        for d in range(start, end):
            attraction = 1.0 if SHOP.candidates.binary[d] else 0.1
            gain = attraction * (new.gain[d] - old.gain[d])
            total += SHOP.popular[query] * gain
            by_asked += asked[query] / sum(asked) * gain
    assert SHOP.truth() == pytest.approx(total)
    assert SHOP.truth(new, asked=asked) == pytest.approx(by_asked)
    assert SHOP.truth(old) == 0
    # Of the sessions 0.75 · 0.2 + 0.2 · 0.8 + 0.05 · 0.2 = 0.32 are on phones, where half as much is wanted.
    assert SHOP.truth(phones=ch16.PHONES) == pytest.approx(0.84 * total)


def test_files_and_rows_by_name_are_what_the_package_reads(tmp_path: Path) -> None:
    shop, products = ch16.open_shop(RUN, str(tmp_path))
    events = cf.read_events(f"{tmp_path}/*.parquet", products)
    assert len(list(tmp_path.iterdir())) == ch16.QUARTERS
    assert events.n_sessions == shop.n_sessions
    assert events.scores(shop.named_scores("rival")) == pytest.approx(shop.scores["rival"])
    phones, gain = ch16.phone_quarter(RUN)
    assert gain == SHOP.truth(phones=ch16.PHONES)
    assert set(phones["device"]) == {"desktop", "phone"}
    assert "period" not in phones
    assert phones["session"].nunique() == shop.n_sessions // 4


@pytest.mark.parametrize(
    ("frame", "key", "rows"),
    [
        (ch16.backtest, ["seed", "log"], 2 * 4),
        (ch16.remembered, ["seed", "ranker", "judged"], 2 * 2 * 2),
        (ch16.phones, ["seed", "world", "counted"], 2 * 2 * 2),
    ],
)
def test_tables_have_a_row_for_each_setting(frame: Any, key: list[str], rows: int) -> None:
    found = frame(RUN)
    assert len(found) == rows
    assert not found.duplicated(key).any()
    numbers = found.select_dtypes("number").drop(columns=["low", "high"], errors="ignore")
    assert np.isfinite(numbers.to_numpy()).all()


def test_intervals_hold_what_chance_makes() -> None:
    found = ch16.backtest(RUN)
    assert (found["low"] <= found["chance_low"] + 1e-12).all()
    assert (found["high"] >= found["chance_high"] - 1e-12).all()
    without = found[found["log"] == "without the rival's sessions"].set_index("seed")["never_shown"]
    assert (without > found[found["log"] == "with the rival's sessions"].set_index("seed")["never_shown"]).all()
