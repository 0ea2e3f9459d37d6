"""What chapter 6 simulates: views of a log by hand, objectives by loops, and rows of its tables made once more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch06

RUN = Run("smoke", "digits", 4)


def log_of(clicks: list[int], ranks: tuple[int, ...]) -> cf.ClickLog:
    """Two queries, the first of two documents, shown at these ranks in ten sessions each."""
    n = len(clicks)
    return cf.ClickLog(
        document=np.arange(n), rank=np.array(ranks), impressions=np.full(n, 10), clicks=np.array(clicks),
        propensity=1 / np.array(ranks), sessions=np.array([10, 10]), offsets=np.array([0, 2, n]),
    )  # fmt: skip


def objective_by_loops(x: np.ndarray, log: cf.ClickLog, C: float, w: np.ndarray, cost: str) -> float:
    """½‖w‖² − (C/n) Σ clicks/p / log₂(2 + Σ over rivals of what they cost)."""
    scores, total = x @ w, 0.0
    for d, clicks, p in zip(log.document, log.clicks, log.propensity, strict=True):
        for start, end in zip(log.offsets[:-1], log.offsets[1:], strict=True):
            if start <= d < end:
                leads = [scores[d] - scores[y] for y in range(start, end) if y != d]
                costs = [max(0.0, 1 - z) if cost == "hinge" else np.log2(1 + np.exp(-z)) for z in leads]
                total -= clicks / p / np.log2(2 + sum(costs))
    return float(w @ w / 2 + C / log.clicks.sum() * total)


def judged_by_loops(scores: np.ndarray, part: cf.RankingData) -> tuple[float, float]:
    """Mean DCG and rank of a relevant document, of scores without ties."""
    gains, ranks = [], []
    for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
        for d in range(start, end):
            if part.binary[d]:
                rank = 1 + (scores[start:end] > scores[d]).sum()
                ranks.append(rank)
                gains.append(1 / np.log2(1 + rank))
    return float(np.mean(gains)), float(np.mean(ranks))


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, cf.ClickLog]:
    """Six documents with three features."""
    return RUN.rng(4, 690).normal(size=(6, 3)), log_of([2, 0, 3, 1, 0, 4], (1, 2, 1, 2, 3, 4))


def test_a_capped_log_has_no_larger_weights(small: tuple[np.ndarray, cf.ClickLog]) -> None:
    log = small[1]
    assert ch06.capped(log, 3.0).weights == pytest.approx([1, 2, 1, 2, 3, 3])
    assert ch06.capped(log, np.inf).weights == pytest.approx(log.weights)
    assert ch06.capped(log, 1.0).weights == pytest.approx(np.ones(6))


def test_stretch_is_a_mean_over_clicks(small: tuple[np.ndarray, cf.ClickLog]) -> None:
    inverse = {n: (1 + n) * np.log(1 + n) ** 2 / np.log(2) for n in (2, 4)}
    assert ch06.stretch(small[1]) == pytest.approx((2 * inverse[2] + 8 * inverse[4]) / 10)
    assert inverse[4] == pytest.approx(1 / cf.dcg().slope([4.0])[0])


def test_objectives_are_sums_over_rivals(small: tuple[np.ndarray, cf.ClickLog]) -> None:
    x, log = small
    for w in RUN.rng(4, 691).normal(size=(5, 3)):
        assert ch06.objective(x, log, 7.0, w) == pytest.approx(objective_by_loops(x, log, 7.0, w, "hinge"))


def test_the_logistic_learner_ends_where_no_step_leads_down(small: tuple[np.ndarray, cf.ClickLog]) -> None:
    x, log = small
    w = ch06.fit_logistic(x, log, 20.0).weights
    best = objective_by_loops(x, log, 20.0, w, "logistic")
    assert best < objective_by_loops(x, log, 20.0, np.zeros(3), "logistic") - 0.1
    for step in 0.1 * np.vstack([np.eye(3), -np.eye(3)]):
        assert objective_by_loops(x, log, 20.0, w + step, "logistic") > best


def test_a_course_starts_at_nothing_and_goes_down(small: tuple[np.ndarray, cf.ClickLog]) -> None:
    x, log = small
    weights = ch06.course(x, log, 20.0, rounds=4, gap=1e-6)
    assert len(weights) == 5
    assert not weights[0].any()
    F = [objective_by_loops(x, log, 20.0, w, "hinge") for w in weights]
    assert (np.diff(F) <= 1e-9).all()
    # The first round is an SVM PropRank whose weights are those of w = 0, where 1 + S is the length of the list.
    slope = cf.dcg().slope(np.array([2.0, 2, 4, 4, 4, 4]))
    mass = 20.0 * log.clicks / log.propensity / 10 * slope

    def first(w: np.ndarray) -> float:
        sums = [sum(max(0.0, 1 - (x[d] - x[y]) @ w) for y in range(*((0, 2) if d < 2 else (2, 6))) if y != d)
                for d in range(6)]  # fmt: skip
        return float(w @ w / 2 + mass @ sums)

    least = first(weights[1])
    for step in 0.05 * np.vstack([np.eye(3), -np.eye(3)]):
        assert first(weights[1] + step) > least - 1e-6 * least


def test_pages_and_logs_of_a_population() -> None:
    w = ch06.world(RUN, 4)
    assert (w.train.n_queries, w.held_out.n_queries) == (100, 50)  # no more than there are
    for page, part in zip(w.pages, (w.train, w.held_out), strict=True):
        scores = w.logger.decision_function(part.features)
        for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
            shown = np.argsort(page.displayed_rank[start:end])
            assert (np.diff(scores[start:end][shown]) <= 1e-6).all()
    logs = ch06.draw(RUN, w, 5000, RUN.rng(4, 692))
    for log, part in zip(logs, (w.train, w.held_out), strict=True):
        assert log.n_clicks / part.n_queries == pytest.approx(50, rel=0.1)
        assert log.propensity == pytest.approx(1 / log.rank)
        assert 0 < log.clicks[part.binary[log.document] == 0].sum() < log.n_clicks / 2
    for log, part in zip(ch06.draw(RUN, w, 0, RUN.rng(4, 692)), (w.train, w.held_out), strict=True):
        assert log.clicks.sum() == part.binary.sum()
        assert (log.propensity == 1).all()
    month = ch06.month(RUN)
    assert month.log.n_clicks == pytest.approx(5000, rel=0.1)
    assert month.deployed == pytest.approx(w.logger.decision_function(w.train.features))
    assert len(month.features) == month.log.offsets[-1]
    assert ch06.sizes(RUN) == (500, 5000)


def test_a_ranker_is_judged_by_labels() -> None:
    part = ch06.world(RUN, 4).test
    w = RUN.rng(4, 693).normal(size=part.features.shape[1])
    assert ch06.judged(cf.LinearRanker(w), part) == pytest.approx(judged_by_loops(part.features @ w, part))


def test_what_each_arm_trains() -> None:
    w = ch06.world(RUN, 4)
    x, (log, _) = w.train.features, ch06.draw(RUN, w, 500, RUN.rng(4, 694))
    near = cf.fit_proprank(x, log, C=0.1, gap=0.05)

    def weights(arm: str, C: float, start: cf.LinearFit | None = None) -> np.ndarray:
        return np.asarray(ch06.learner(arm, x, log, start)(C, near).weights)

    def rounds(start: cf.LinearFit | None) -> np.ndarray:
        return cf.fit_propdcg(x, log, C=30.0, gap=0.05, decrease=0.03, start=start).weights

    for arm in ("PropRank", "PropRank, capped"):
        assert (weights(arm, 1.0) == cf.fit_proprank(x, log, C=1.0, gap=0.05, start=near).weights).all()
    assert (weights("logistic", 30.0) == ch06.fit_logistic(x, log, 30.0).weights).all()
    assert (weights("PropDCG", 30.0) == rounds(None)).all()
    assert (weights("from PropRank", 30.0, near) == rounds(near)).all()
    assert (weights("warm", 30.0) == rounds(near)).all()


def test_held_out_clicks_choose_strength_and_cap() -> None:
    w = ch06.world(RUN, 4)
    logs = ch06.draw(RUN, w, 500, RUN.rng(4, 613))
    found = {}
    for cap, C in product(ch06.CAPS, RUN.size.C_grid):
        log = ch06.capped(logs[0], cap)
        fit = cf.fit_proprank(w.train.features, log, C=C, gap=1e-3)
        scores = fit.decision_function(w.held_out.features)
        lam = cf.rank_weights(scores, w.held_out.offsets, metric=cf.dcg())
        found[cap, C] = -cf.self_normalised(logs[1], lam).value
    _, about = ch06.choose(RUN, "PropRank, capped", w, logs)
    assert about["held_out"] >= max(found.values()) - 0.01  # up to where training stopped, and a wider grid
    assert about["cap"] in ch06.CAPS
    assert about["rounds"] == 0
    plain = ch06.choose(RUN, "PropRank", w, logs)[1]
    assert plain["cap"] == np.inf
    assert plain["held_out"] <= about["held_out"]


def test_rows_of_what_was_compared() -> None:
    frame, w = ch06.compared(RUN), ch06.world(RUN, 5)
    assert len(frame) == 2 * (2 * len(ch06.ARMS) + len(ch06.WAYS) + 2)
    for clicks, arm in ((500, "PropDCG"), (5000, "from PropRank"), (0, "PropRank")):
        ranker, about = ch06.choose(RUN, arm, w, ch06.draw(RUN, w, clicks, RUN.rng(5, 613)))
        row = frame[(frame["seed"] == 5) & (frame["clicks"] == clicks) & (frame["arm"] == arm)].iloc[0]
        expected = judged_by_loops(ranker.decision_function(w.test.features), w.test)
        assert (row["dcg"], row["rank"]) == pytest.approx(expected, rel=1e-3)
        assert row[list(about)].to_dict() == pytest.approx(about)


def test_a_row_of_the_courses() -> None:
    frame, w = ch06.courses(RUN), ch06.world(RUN, 4)
    assert len(frame) == 2 * len(RUN.size.C_grid)
    log, _ = ch06.draw(RUN, w, 5000, RUN.rng(4, 613))
    C = RUN.size.C_grid[1] * ch06.stretch(log)
    row = frame[(frame["seed"] == 4) & (frame["C"] == RUN.size.C_grid[1])].iloc[0]
    x = w.train.features.astype(float)
    for k, weights in enumerate(ch06.course(x, log, C, 3, gap=5e-3)):
        assert row[f"F_{k}"] == pytest.approx(objective_by_loops(x, log, C, weights, "hinge"), rel=1e-4)
        lam = cf.rank_weights(x @ weights, log.offsets, metric=cf.dcg())
        assert row[f"clicks_{k}"] == pytest.approx(-cf.self_normalised(log, lam).value)
    scores = w.test.features @ ch06.course(x, log, C, 1, gap=5e-3)[1]
    assert row["test_1"] == pytest.approx(judged_by_loops(scores, w.test)[0])


def test_weights_are_shares_of_the_mean_click() -> None:
    frame = ch06.weighed(RUN)
    total = frame.groupby(["seed", "kind"])[["clicks", "weight"]].sum()
    assert total["weight"].to_numpy() == pytest.approx(total["clicks"].to_numpy())
    one = frame[(frame["seed"] == 4) & (frame["kind"] == "1/p")]
    mean = (one["clicks"] * one["rank"]).sum() / one["clicks"].sum()
    assert one["weight"].to_numpy() == pytest.approx((one["clicks"] * one["rank"]).to_numpy() / mean)
    cut = frame[(frame["seed"] == 4) & (frame["kind"] == "capped")]
    each = (cut["weight"] / cut["clicks"])[cut["clicks"] > 0]
    assert each.max() / each.min() == pytest.approx(10)
    assert set(frame["place"]) == set(ch06.PLACES)
    inside = frame[frame["kind"] == "λ′/p"].groupby("place")[["weight", "clicks"]].sum()
    assert (inside["weight"] / inside["clicks"])["1 to 3"] > 1  # λ′ is largest at the top


def test_what_the_rarest_clicks_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", 1, 90, 50.0), ("a", 10, 10, 50.0), ("b", 1, 90, 95.0), ("b", 10, 10, 5.0)]
    frame = pd.DataFrame(rows, columns=["kind", "rank", "clicks", "weight"]).assign(seed=4)
    monkeypatch.setattr(ch06, "weighed", lambda run: frame)
    assert ch06.rarest(RUN, "a", 0.1) == pytest.approx([0.5])
    assert ch06.rarest(RUN, "a") == pytest.approx([0.05])  # a tenth of those that share the largest 1/p
    assert ch06.rarest(RUN, "b", 0.55) == pytest.approx([0.05 + 0.95 / 2])
