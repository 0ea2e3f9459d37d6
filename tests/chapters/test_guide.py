"""The code of the guide runs: recipes for logs of other products, and from a log to a ranker that is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf

GUIDE = Path(__file__).resolve().parents[2] / "chapters" / "guide.md"
SHARED, UBI, METARANK, GA4, DECIDE, LEARN, SGD, KEEP = re.findall(
    r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)

# Two pages, of A B C with clicks on A and B, and of C A without one; one click is told twice.
PAGES = {"s1": ("shoes", "ABC", "ABB"), "s2": ("shoes", "CA", "")}


def of_ubi() -> dict[str, Any]:
    hits = [{"query_id": s, "user_query": q, "query_response_hit_ids": list(page)} for s, (q, page, _) in PAGES.items()]
    actions = [
        {"action_name": name, "query_id": s, "event_attributes": {"object": {"object_id": one}}}
        for s, (_, page, clicks) in PAGES.items()
        for name, of in (("view", page), ("click", clicks))
        for one in of
    ]
    return {"queries": pd.json_normalize(hits), "actions": pd.json_normalize(actions)}


def of_metarank() -> dict[str, Any]:
    rankings = [
        {
            "event": "ranking",
            "id": s,
            "fields": [{"name": "source", "value": "search"}, {"name": "query", "value": q}],
            "items": [{"id": one, "relevancy": 1.0} for one in page],
        }
        for s, (q, page, _) in PAGES.items()
    ]
    interactions = [
        {"event": "interaction", "id": f"{s}-{one}", "ranking": s, "type": kind, "item": one}
        for s, (_, page, clicks) in PAGES.items()
        for kind, of in (("click", clicks), ("like", page))
        for one in of
    ]
    return {"log": pd.DataFrame([*rankings, *interactions])}


def of_ga4() -> dict[str, Any]:
    rows = [
        {"event_name": name, "page_id": s, "search_term": q, "item_id": one, "item_list_index": str(page.index(one))}
        for s, (q, page, clicks) in PAGES.items()
        for name, of in (("view_item_list", page), ("select_item", clicks))
        for one in of
    ]
    return {"log": pd.DataFrame(rows)}


@pytest.mark.parametrize(("recipe", "source"), [(UBI, of_ubi), (METARANK, of_metarank), (GA4, of_ga4)])
def test_recipes_give_rows_that_are_read(recipe: str, source: Any) -> None:
    names: dict[str, Any] = {"pd": pd, **source()}
    exec(recipe + SHARED, names)
    events = cf.read_events(names["rows"][["session", "query", "document", "position", "clicked"]], split=None)
    found = {
        (events.index["document"][d], int(k)): (int(n), int(c))
        for d, k, n, c in zip(events.document, events.rank, events.impressions, events.clicks, strict=True)
    }
    assert found == {("A", 1): (1, 1), ("A", 2): (1, 0), ("B", 2): (1, 1), ("C", 1): (1, 0), ("C", 3): (1, 0)}


def test_from_events_to_a_ranker_that_is_kept(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    products = pd.DataFrame({"query": np.repeat(np.arange(120), 12), "document": np.tile(np.arange(12), 120)})
    products = products.assign(x=rng.normal(size=len(products)), y=rng.normal(size=len(products)))
    wanted = products["x"].to_numpy().reshape(120, 12) > 0.5
    order = rng.normal(size=(2, 120, 12)).argsort(axis=-1)[..., :10]
    rows = [
        (s, q, int(d), k, int(rng.random() < (0.9 if wanted[q, d] else 0.1) / k), "AB"[r])
        for s in range(3_000)
        for q, r in [rng.integers([120, 2])]
        for k, d in enumerate(order[r, q], start=1)
    ]
    columns = ["session", "query", "document", "position", "clicked", "ranker"]
    events = cf.read_events(pd.DataFrame(rows, columns=columns), products, split_by="query")
    scores = products[["query", "document"]].assign(score=products["x"])
    names: dict[str, Any] = {
        "np": np,
        "cf": cf,
        "events": events,
        "curve": cf.conditional_poisson(cf.display_counts(events.part("train"))),
        "report": cf.check_log(events, rng=rng),
        "proposed": scores,
        "deployed": scores.assign(score=products["y"]),
    }
    monkeypatch.chdir(tmp_path)
    for block in (DECIDE, LEARN, SGD.replace("10_000", "50"), KEEP):
        exec(block, names)
    assert names["ranker"].sql() in capsys.readouterr().out
