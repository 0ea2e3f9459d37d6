"""What chapter 17 measures, against literal loops over hand-made logs and, where it is there, the package ``obp``."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import open_bandit_files as files
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch17

RUN = Run("smoke", "digits", 3)
NOTEBOOK = Path(__file__).resolve().parents[3] / "chapters" / "17_real_clicks.ipynb"
NAMES = {"item_id": "item", "propensity_score": "propensity"}


def small(n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A uniform log and one of a policy that changes halfway, of five items at three positions."""
    rng = np.random.default_rng(7)
    random = files.drawn(n, rng, items=5).rename(columns=NAMES)
    chances = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.3, 0.3]])[np.arange(n) * 2 // n]
    item = np.array([rng.choice(5, p=row) for row in chances])
    learnt = random.assign(item=item, propensity=chances[np.arange(n), item])
    return tuple(log.assign(click=rng.binomial(1, 0.1, size=n)) for log in (random, learnt))  # type: ignore[return-value]


@pytest.fixture
def hand_made(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The six logs are small ones, and nothing of them is kept."""

    def made() -> pd.DataFrame:
        parts = [
            log.assign(campaign=campaign, policy=policy)
            for campaign in files.CAMPAIGNS
            for policy, log in zip(files.POLICIES, small(), strict=True)
        ]
        return pd.concat(parts, ignore_index=True)

    cached = (ch17.six_logs, ch17.halves, ch17.made_logs)
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(ch17, "open_bandit", made)
    yield
    for function in cached:
        function.cache_clear()


def test_chances_are_shares_of_what_was_shown() -> None:
    _, learnt = small()
    table = ch17.chances("bts", learnt, 5)
    for position in (1, 2, 3):
        rows = [row for row in learnt.itertuples() if row.position == position]
        for item in range(5):
            assert table.loc[position, item] == sum(row.item == item for row in rows) / len(rows)
    assert ch17.chances("random", learnt, 5).to_numpy() == pytest.approx(np.full((3, 5), 1 / 5))
    assert ch17.chances("bts", learnt[learnt["item"] > 0], 5)[0].tolist() == [0, 0, 0]


def test_diagnostics_are_sums_over_rows() -> None:
    weight = np.array([0.5, 2.0, 0.25, 1.5, 0.0])
    total = sum(weight)
    mean = total / 5
    error = sqrt(sum((w - mean) ** 2 for w in weight) / 4 / 5)
    found = ch17.judge(weight, 0.5)
    effective = total**2 / sum(w * w for w in weight)
    assert list(found) == pytest.approx([mean, error, effective, effective / 2], abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "error", "clicks", "kept"),
    [(1.0, 0.1, 4.0, True), (1.0, 0.1, 3.9, False), (1.3, 0.1, 9, True), (1.31, 0.1, 9, False), (0.6, 0.1, 9, False)],
)
def test_the_rule_has_two_parts(mean: float, error: float, clicks: float, kept: bool) -> None:
    assert ch17.Verdict(mean, error, 100.0, clicks).kept is kept


def test_the_model_predicts_each_row_from_the_other_half() -> None:
    _, log = small(60)
    log = log.reset_index(drop=True)
    table = ch17.chances("random", log, 5)
    model, expected = ch17.click_model(log, table)
    rows = list(log.itertuples())
    for at, row in enumerate(rows):
        others = [other for i, other in enumerate(rows) if i % 2 != at % 2]
        rate = sum(other.click for other in others) / len(others)

        def shrunk(item: int, others: list[Any] = others, rate: float = rate) -> float:
            of_item = [other.click for other in others if other.item == item]
            return (sum(of_item) + 1) / (len(of_item) + 1 / rate)

        assert model[at] == pytest.approx(shrunk(row.item), abs=1e-12)
        assert expected[at] == pytest.approx(sum(shrunk(item) for item in range(5)) / 5, abs=1e-12)


def test_weights_of_the_six_logs(hand_made: None) -> None:
    random, learnt = small()
    by_policy = {"random": random, "bts": learnt}
    for (_, policy), log in ch17.six_logs().items():
        own, other = by_policy[policy], by_policy[ch17.TARGET[policy]]
        for row, weight in zip(own.itertuples(), log["weight"], strict=True):
            at = [shown for shown in other.itertuples() if shown.position == row.position]
            chance = 1 / 5 if policy == "bts" else sum(shown.item == row.item for shown in at) / len(at)
            assert weight == pytest.approx(chance / row.propensity, abs=1e-12)


@pytest.fixture
def chapter(hand_made: None) -> dict[str, Any]:
    """The functions that visible cells of the chapter define, with hand-made logs."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    functions = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    logs = ch17.open_bandit().replace({"policy": {"bts": "Thompson"}})
    names: dict[str, Any] = {"np": np, "pd": pd, "logs": logs, "click_model": ch17.click_model}
    exec("\n".join(map(ast.unparse, functions)), names)
    return names


def test_the_estimates_of_the_chapter_are_sums_over_rows(chapter: dict[str, Any]) -> None:
    for policy in files.POLICIES:
        log = chapter["judging"]("men", {"bts": "Thompson"}.get(policy, policy))
        assert log["weight"].to_numpy() == pytest.approx(ch17.six_logs()["men", policy]["weight"].to_numpy(), abs=1e-12)
        rows, n = list(log.itertuples()), len(log)
        ratio = sum(row.weight * row.click for row in rows) / sum(row.weight for row in rows)
        terms = {
            "IPS": [row.weight * row.click for row in rows],
            "clipped": [min(row.weight, 20) * row.click for row in rows],
            "doubly robust": [row.expected + row.weight * (row.click - row.model) for row in rows],
        }
        found = chapter["estimates"](log)
        for name, values in terms.items():
            mean = sum(values) / n
            error = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
            assert found[name] == pytest.approx((mean, error), abs=1e-12)
        assert found["self-normalised"][0] == pytest.approx(ratio, abs=1e-12)
        verdict = ch17.judge(log["weight"].to_numpy(), log["click"].mean())
        diagnosed = chapter["diagnose"](log)
        expected = [verdict.mean, 3 * verdict.error, verdict.effective, verdict.clicks, verdict.kept]
        assert diagnosed.to_numpy(dtype=float) == pytest.approx(np.array(expected, dtype=float), abs=1e-12)


def test_the_verdict_of_the_chapter_says_why(chapter: dict[str, Any]) -> None:
    verdict = chapter["verdict"]
    click = np.tile([1, 0, 0, 0], 25)
    assert verdict(pd.DataFrame({"weight": 1.0, "click": click})) == "yes, roughly: 25.0 effective clicks"
    assert chapter["per_10000"](pd.Series(click)) == f"2500 ± {1.96e4 * sqrt(3 / 16 / 99):.0f}"
    low = pd.DataFrame({"weight": 0.5 + 0.01 * click, "click": click})
    assert "the mean weight is 0.50, not 1" in verdict(low)
    few = pd.DataFrame({"weight": np.where(np.arange(100) == 3, 90.0, 0.1), "click": click})
    assert verdict(few) == "no: 0.3 effective clicks"
    flat = pd.DataFrame({"weight": 1.0, "click": click})
    assert verdict(flat, 0.08) == "yes, roughly: 8.0 effective clicks", "the target's rate, where it is known"
    assert [verdict(flat, rate)[:6] for rate in (0.07, 0.04, 0.03)] == ["a hint", "a hint", "no: 3."]


def test_ips_of_the_chapter_is_that_of_the_package(chapter: dict[str, Any]) -> None:
    """Where each row is given to it as a query of its own; λ is a risk, minus what a click gains."""
    log = chapter["judging"]("men", "Thompson")
    n, ones = len(log), np.ones(len(log), dtype=int)
    rows = cf.ClickLog(
        document=np.arange(n),
        rank=log["position"],
        clicks=log["click"],
        impressions=ones,
        propensity=log["propensity"],
        sessions=ones,
        offsets=np.arange(n + 1),
    )
    ips = cf.ips(rows, lam=-(log["weight"] * log["propensity"]).to_numpy())
    assert (-ips.value, ips.standard_error) == pytest.approx(chapter["estimates"](log)["IPS"], rel=1e-9)


def test_the_estimates_are_those_of_obp(chapter: dict[str, Any]) -> None:
    """Where the package can be imported; the book reads its files only."""
    ope = pytest.importorskip("obp.ope", exc_type=ImportError)
    log = chapter["judging"]("men", "Thompson")
    n, items = len(log), 5
    given = {
        "reward": log["click"].to_numpy(),
        "action": log["item"].to_numpy().astype(int),
        "position": log["position"].to_numpy().astype(int) - 1,
        "pscore": log["propensity"].to_numpy(),
        "action_dist": np.full((n, items, 3), 1 / items),
    }
    found = chapter["estimates"](log)
    assert ope.InverseProbabilityWeighting().estimate_policy_value(**given) == pytest.approx(found["IPS"][0], abs=1e-12)
    self_normalised = ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given)
    assert self_normalised == pytest.approx(found["self-normalised"][0], abs=1e-12)
    # Its model is given for all items; that of a row's item is ours, and the others make up the mean.
    rewards = np.repeat(((items * log["expected"] - log["model"]) / (items - 1)).to_numpy(), items * 3)
    rewards = rewards.reshape(n, items, 3)
    rewards[np.arange(n), given["action"]] = log["model"].to_numpy()[:, None]
    robust = ope.DoublyRobust().estimate_policy_value(**given, estimated_rewards_by_reg_model=rewards)
    assert robust == pytest.approx(found["doubly robust"][0], abs=1e-12)


def test_halves_are_judged_by_the_rule_and_compared_with_halves(hand_made: None) -> None:
    frame = ch17.halves(RUN)
    assert list(frame.groupby(["seed", "campaign", "policy"]).size()) == [10] * 12
    # The first half of the first log, once more.
    log, own = ch17.six_logs()["all", "random"], ch17.six_logs()["all", "bts"]["click"].to_numpy()
    rng = RUN.rng(RUN.seed, 1701)
    half = rng.permutation(400)[:200]
    other = own[rng.permutation(400)[:200]]
    terms = [log["weight"][row] * log["click"][row] for row in half]
    mean, truth = sum(terms) / 200, sum(other) / 200
    square = sum((x - mean) ** 2 for x in terms) + sum((x - truth) ** 2 for x in other)
    row = frame.iloc[0]
    assert row["off"] == pytest.approx(mean - truth, abs=1e-12)
    assert row["agrees"] == (abs(mean - truth) <= 1.96 * sqrt(square / 199 / 200))
    clicks = sum(log["click"][row] for row in half) / 200
    weight = log["weight"][half].to_numpy()
    assert row["effective_clicks"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum() * clicks)
    assert row["kept"] == ch17.judge(weight, clicks).kept


def test_made_logs_know_the_truth() -> None:
    """The first log of a sharp policy, row by row, and the first of random after all of the sharp one."""
    ch17.made_logs.cache_clear()
    frame = ch17.made_logs(RUN)
    assert len(frame) == 2 * len(ch17.SHARPNESS) * len(ch17.ROWS) * 2 * 5
    drawn = frame.query("sharpness == 2.0 and rows == 10_000")
    rng = RUN.rng(RUN.seed, 1702)
    rate = rng.gamma(2, ch17.CLICK_RATE / 2, size=ch17.ITEMS)
    taste = np.log(rate) - np.log(rate).mean()
    z = (taste / taste.std() + rng.standard_normal(ch17.ITEMS)) / sqrt(2)
    policy = np.array([exp(2 * value) for value in z])
    policy /= policy.sum()
    uniform = np.full(ch17.ITEMS, 1 / ch17.ITEMS)
    for name, logger, target in (("sharp", policy, uniform), ("random", uniform, policy)):
        first = drawn[drawn["logged"] == name].iloc[0]
        for of_name in range(5):  # only the first is looked at
            now_shown = rng.multinomial(10_000, logger)
            now_clicked = rng.binomial(now_shown, rate)
            shown, clicks = (now_shown, now_clicked) if of_name == 0 else (shown, clicks)
        terms, gains, weights = [], [], []
        for item in range(ch17.ITEMS):
            weight, missed = target[item] / logger[item], shown[item] - clicks[item]
            weights += [weight] * shown[item]
            terms += [weight] * clicks[item] + [0.0] * missed
            gains += [weight - 1] * clicks[item] + [0.0] * missed
        mean, error, truth = np.mean(terms), np.std(terms, ddof=1) / 100, sum(target * rate)
        assert first["covered"] == (abs(mean - truth) <= 1.96 * error)
        assert first["clear"] == (mean > 1.96 * error)
        assert first["errors"] == pytest.approx(abs(mean - truth) / error)
        gain = np.mean(gains) - sum((target - logger) * rate)
        assert first["errors_of_gain"] == pytest.approx(abs(gain) / (np.std(gains, ddof=1) / 100))
        effective = np.sum(weights) ** 2 / np.sum(np.square(weights))
        assert first["effective_clicks"] == pytest.approx(effective * clicks.sum() / 10_000)
        assert first["kept"] == ch17.judge(np.array(weights), clicks.sum() / 10_000).kept
    assert np.isinf(frame.loc[frame["effective_clicks"] == 0, "errors"]).all()
