"""What chapter 12 simulates: kinds of gains, pages and losses by hand, and cells that its kept tables hold."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cfltr_book as book
import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch12, learners

RUN = Run("smoke", "digits", 3)


@pytest.fixture(scope="module")
def small() -> ch12.World:
    return ch12.world(RUN, 3, RUN.rng(3, 1290), "few labels", 200)


def test_a_world_has_no_more_training_documents_than_it_may(small: ch12.World) -> None:
    (train, held, test), x, ranks = small
    assert train.n_docs <= 200 < RUN.load(3).train.n_docs
    assert (held.n_queries, test.n_queries) == (RUN.load(3).validation.n_queries, RUN.load(3).test.n_queries)
    assert [len(some) for some in x] == [len(rank) for rank in ranks] == [train.n_docs, held.n_docs, test.n_docs]
    for begin, end in zip(train.offsets[:-1], train.offsets[1:], strict=True):
        assert sorted(ranks[0][begin:end]) == list(range(1, end - begin + 1))


def test_settings_are_asked_once() -> None:
    for asked in (ch12.settings_by_loss(RUN), ch12.settings_at_size(RUN), ch12.MORE_QUERIES.settings(RUN)):
        assert all(list(setting) == list(asked[0]) for setting in asked)
        assert len({tuple(setting.values()) for setting in asked}) == len(asked)
    assert {setting["loss"] for setting in ch12.settings_by_loss(RUN)} == set(ch12.LOSSES)
    assert max(setting["n_clicks"] for setting in ch12.settings_at_size(RUN)) == ch12.MANY


@pytest.mark.parametrize(("clicks", "cap"), [(0, 36), (10_000, 1), (100_000, 30), (10**8, 501)])
def test_the_cap_is_that_of_the_released_code(clicks: int, cap: float) -> None:
    assert learners.released_cap(clicks) == pytest.approx(1 + 3 * 4 + 32 * 16 if clicks == 0 else cap)


def test_all_queries_are_learnt_from(small: ch12.World, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, _, test), _, ranks = small
    monkeypatch.setattr(ch12, "world", lambda run, seed, rng, production, most: {np.inf: small}[most])
    usual = {"production": "few labels", "epsilon": 1.0, "n_clicks": 1000}
    found = {
        kind: ch12.learnt_on_all(RUN, 3, {**usual, "gains": kind}, RUN.rng(3, 1290))
        for kind in ("production", "labels", "aware")
    }
    assert found["production"]["ndcg"] == ch12.judged(test, -ranks[2].astype(float))
    assert [found[kind]["sessions"] == found[kind]["hidden"] == 0 for kind in found] == [True, True, False]
    assert 0 < found["aware"]["hidden"] < found["aware"]["sessions"]


def two_documents() -> cf.ClickLog:
    """Two documents of one query, in ten sessions: the first always first, the second twice at rank 2."""
    return cf.ClickLog(
        document=[0, 1],
        rank=[1, 2],
        impressions=[10, 2],
        clicks=[5, 1],
        propensity=[1, 0.5],
        sessions=[10],
        offsets=[0, 2],
    )


def test_kinds_of_gains_divide_by_their_exposure() -> None:
    log = two_documents()
    exposure = np.array([1.0, 0.05])
    found = {
        kind: learners.gains_of(kind, log, exposure).propensity for kind in ("oblivious", "aware", "counted", "capped")
    }
    assert found["oblivious"] == pytest.approx([1, 0.5])
    assert found["aware"] == pytest.approx([1, 0.05])
    assert found["counted"] == pytest.approx([1, 2 * 0.5 / 10])
    assert found["capped"] == pytest.approx([1, max(0.05, 1 / learners.released_cap(6))])


def test_pages_show_five_documents_or_the_whole_list(small: ch12.World) -> None:
    data, rank = small[0][0], small[2][0]
    fixed, chance = (ch12.page(data, rank, 5, epsilon).exposure(ch12.USER) for epsilon in (0.0, 1.0))
    assert np.array_equal(fixed > 0, rank <= 5)
    assert np.array_equal(ch12.page(data, rank, 2, 0.0).exposure(ch12.USER) > 0, rank <= 2)
    assert np.array_equal(fixed[rank < 5], chance[rank < 5])
    assert (chance > 0).all()
    swapped = ch12.page(data, rank, 0, 0.9).exposure(ch12.USER)
    assert ch12.page(data, rank, 0, 0.0).exposure(ch12.USER) == pytest.approx(1 / rank)
    assert swapped[rank < 5] == pytest.approx(1 / rank[rank < 5])


def test_labels_as_a_log_give_gains_of_one(small: ch12.World) -> None:
    data = small[0][0]
    assert cf.click_gains(learners.labels_as_log(data)) == pytest.approx(data.binary * 1.0)
    assert ch12.judged(data, data.binary * 1.0) == pytest.approx(1)


def test_adam_climbs_a_hill() -> None:
    x = np.random.default_rng(3).normal(size=(50, 2))
    best = x @ [1.0, -2.0]
    w = learners.climb(x, lambda s: (s - best) / 50)
    assert np.abs(w - [1, -2]).max() < np.abs([1, -2]).max() / 2


def test_corrected_guesses_expect_the_clicks_over_exposure() -> None:
    log = two_documents()
    none = learners.corrected(np.zeros(2), log, np.array([1.0, 0.2]))
    assert none == pytest.approx([5, 1 / 0.2])
    some = learners.corrected(np.array([0.1, 0.3]), log, np.array([1.0, 0.2]))
    assert some == pytest.approx([10 * 0.1 + (5 - 0.1 * 10), 10 * 0.3 + (1 - 0.3 * 2 * 0.5) / 0.2])


def test_a_guess_does_not_come_from_its_own_clicks(small: ch12.World) -> None:
    data, x, rank = small[0][0], small[1][0], small[2][0]
    policy = ch12.page(data, rank, 5, 1.0)
    log = RUN.simulate(policy, ch12.USER, relevance=data.binary, rng=RUN.rng(3, 1292), n_clicks=5000)
    guess = learners.cross_fitted(x, log)
    assert ((guess >= 0) & (guess <= 1)).all()
    clicks = log.clicks.copy()
    first = log.document < data.offsets[1]
    clicks[first] = 0
    other = dataclasses.replace(log, clicks=clicks)
    mine = slice(0, data.offsets[1])
    assert learners.cross_fitted(x, other)[mine] == pytest.approx(guess[mine])
    assert np.abs(learners.cross_fitted(x, other) - guess).max() > 0


def lists_of_six() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores without ties, gains, and the offsets of two lists."""
    rng = np.random.default_rng(8)
    return rng.normal(size=10), rng.exponential(size=10) * (rng.random(10) < 0.7), np.array([0, 4, 10])


def test_pairs_within_k_ranks_have_the_weights_of_the_chapter() -> None:
    scores, gains, offsets = lists_of_six()
    for k in (1, 2, 5, 9):
        value, slopes = 0.0, np.zeros(10)
        for begin, end in itertools.pairwise(offsets):
            rank = {d: 1 + sum(scores[e] > scores[d] for e in range(begin, end)) for d in range(begin, end)}
            for d, e in itertools.permutations(range(begin, end), 2):
                apart = abs(rank[d] - rank[e])
                step = 1 / math.log2(1 + apart) - (1 / math.log2(2 + apart) if apart < k else 0)
                weight = gains[d] * step if apart <= k else 0.0
                value += weight * math.log2(1 + math.exp(scores[e] - scores[d]))
                push = weight / (1 + math.exp(scores[d] - scores[e])) / math.log(2)
                slopes[[d, e]] += [-push, push]
        found = learners.within(offsets, gains, k).loss(scores)
        assert found.value == pytest.approx(value)
        assert found.gradient == pytest.approx(slopes)


def test_the_monotonic_bound_falls_along_its_slopes() -> None:
    scores, gains, offsets = lists_of_six()

    def bound(s: np.ndarray) -> float:
        total = 0.0
        for begin, end in itertools.pairwise(offsets):
            for d in range(begin, end):
                others = (e for e in range(begin, end) if e != d)
                rank = 1 + sum(math.log2(1 + math.exp(s[e] - s[d])) for e in others)
                total -= gains[d] / math.log2(1 + rank)
        return total

    nudges = 1e-5 * np.eye(10)
    exact = [(bound(scores + nudge) - bound(scores - nudge)) / 2e-5 for nudge in nudges]
    assert learners.monotonic_slopes(scores, gains, offsets) == pytest.approx(exact, abs=1e-8)


def clicks_by_one_feature() -> tuple[np.ndarray, cf.DeterministicPolicy, cf.ClickLog]:
    """Fifty lists of four, in which a document is wanted if its second feature is large."""
    rng = np.random.default_rng(6)
    x, rank = rng.normal(size=(200, 3)), np.tile([1, 2, 3, 4], 50)
    policy = cf.DeterministicPolicy(rank, np.arange(0, 201, 4))
    wanted = (x[:, 1] > 0.5).astype(int)
    return x, policy, cf.simulate_clicks(policy, ch12.USER, relevance=wanted, sessions=np.full(50, 200), rng=rng)


@pytest.mark.parametrize("loss", ch12.LOSSES)
def test_each_loss_orders_by_what_is_clicked(loss: str) -> None:
    x, _, log = clicks_by_one_feature()
    w = learners.weights_by(loss, x, log)
    assert w[1] > 1.5 * max(abs(w[0]), abs(w[2]))
    by_package = {"beyond": {"truncation": "beyond"}, "no truncation": {"cutoff": None}, "difference": {"form": loss}}
    if loss in by_package:
        assert w == pytest.approx(learners.learn(x, log, **by_package[loss]).weights)


def test_a_regression_of_displayed_documents_sorts_all() -> None:
    log, x = two_documents(), np.array([[1.0, 0.0], [0.0, 1.0]])
    columns = [[1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]  # a constant, and both features in their standard deviations
    normal, aim = 10 * 5.5 * np.eye(3), np.zeros(3)  # of eleven looks
    for row, looks, clicks in zip(columns, (10, 1), (5, 1), strict=True):
        for i in range(3):
            aim[i] += clicks * row[i]
            for j in range(3):
                normal[i, j] += looks * row[i] * row[j]
    assert learners.direct(x, log) == pytest.approx(np.linalg.solve(normal, aim)[1:] / 0.5)


def test_clicks_and_looks_are_added_up_by_document() -> None:
    log = cf.ClickLog(
        document=[0, 1, 1],
        rank=[1, 1, 2],
        impressions=[4, 6, 4],
        clicks=[3, 1, 2],
        propensity=[1, 1, 0.5],
        sessions=[10],
        offsets=[0, 3],
    )
    clicks, looks = learners.clicks_and_looks(log)
    wanted: list[list[float]] = [[0, 0], [0, 0], [0, 0]]
    for d, shown, clicked, p in zip(log.document, log.impressions, log.clicks, log.propensity, strict=True):
        wanted[d][0] += clicked
        wanted[d][1] += shown * p
    assert [list(pair) for pair in zip(clicks, looks, strict=True)] == wanted


def test_a_regression_of_clicks_per_look_minimises_its_sum_of_squares() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(30, 3)) * [1, 10, 0.1]
    columns = learners.columns_of(x)
    for j in range(3):
        mean = sum(x[:, j]) / 30
        spread = (sum((value - mean) ** 2 for value in x[:, j]) / 30) ** 0.5
        assert columns[:, j + 1] == pytest.approx([(value - mean) / spread for value in x[:, j]])
    looks = rng.integers(0, 9, 30).astype(float)
    clicks = rng.binomial(looks.astype(int), 0.3)

    def lost(w: np.ndarray) -> float:
        total = 10 * sum(looks) / 30 * sum(value**2 for value in w)
        for row, count, looked in zip(columns, clicks, looks, strict=True):
            if looked:  # a document that nobody looked at says nothing
                total += looked * (count / looked - sum(row * w)) ** 2
        return float(total)

    w = learners.click_regression(columns, clicks, looks)
    for nudge in 0.01 * np.vstack([np.eye(4), -np.eye(4)]):
        assert lost(w + nudge) > lost(w)


def test_a_log_of_some_documents_counts_them_anew() -> None:
    log = two_documents()
    wider = cf.ClickLog(
        document=[1, 3], rank=[1, 2], impressions=[10, 2], clicks=[5, 1], propensity=[1, 0.5], sessions=[10, 0],
        offsets=[0, 4, 6],
    )  # fmt: skip
    part = learners.log_of(wider, np.array([1, 3, 4]))
    assert (part.document.tolist(), part.offsets.tolist()) == ([0, 1], [0, 2, 3])
    assert part.clicks.tolist() == log.clicks.tolist()


def test_doubly_robust_weights_order_by_what_is_clicked() -> None:
    x, policy, log = clicks_by_one_feature()
    w = learners.doubly_robust(x, log, policy.exposure(ch12.USER))
    assert w[1] > 5 * max(abs(w[0]), abs(w[2]))


def test_learners_are_asked_where_their_page_allows_it() -> None:
    asked = ch12.settings_of_learners(RUN)
    assert [setting["arm"] for setting in asked[:2]] == ["production", "labels"]
    assert {setting["arm"] for setting in asked[2:]} == set(ch12.LEARNERS)
    assert not any(setting["epsilon"] == 0 and setting["arm"] == "policy-aware" for setting in asked)
    assert len({tuple(setting.values()) for setting in asked}) == len(asked)


def test_learners_that_are_not_told_of_hidden_documents() -> None:
    """On digits a page that never changes shows nothing but its five: both see what a literal filter leaves of it."""
    found = {}
    for arm in ("production", "labels", "oblivious", "displayed only", "direct"):
        setting = {"epsilon": 0.0, "n_clicks": 10**5, "arm": arm}
        found[arm] = ch12.learner(RUN, 3, setting, RUN.rng(3, 1201))
        assert found[arm]["hidden"] == 0
    (train, _, test), x, ranks = ch12.world(RUN, 3, RUN.rng(3, 1201), "few labels")
    rng = RUN.rng(3, 1201)
    ch12.world(RUN, 3, rng, "few labels")
    log = RUN.simulate(ch12.page(train, ranks[0], 5, 0.0), ch12.USER, relevance=train.binary, rng=rng, n_clicks=10**5)
    shown = np.array([d for d in range(len(ranks[0])) if ranks[0][d] <= 5])
    part = learners.log_of(log, shown)
    fit = learners.learn(x[0][shown].astype(float), part)
    assert found["displayed only"]["ndcg"] == pytest.approx(ch12.judged(test, fit.decision_function(x[2])), abs=1e-3)
    whole = learners.learn(x[0].astype(float), log)
    assert found["oblivious"]["ndcg"] == pytest.approx(ch12.judged(test, whole.decision_function(x[2])), abs=1e-3)
    assert found["production"]["ndcg"] < found["labels"]["ndcg"]


TOP_K_ARMS = ("labels", "oblivious", "direct", "policy-aware")


@pytest.mark.parametrize("k", [1, 5, 10])
def test_the_top_k_is_learnt_and_judged(k: int) -> None:
    """With the k of the page the same as the other tables have; labels are judged by a literal nDCG@k."""
    found = {arm: ch12.top_k(RUN, 3, {"k": k, "arm": arm}, RUN.rng(3, 1201))["ndcg"] for arm in TOP_K_ARMS}
    if k == learners.K:
        for arm in TOP_K_ARMS:
            setting = {"epsilon": float(arm == "policy-aware"), "n_clicks": ch12.MANY, "arm": arm}
            assert found[arm] == pytest.approx(ch12.learner(RUN, 3, setting, RUN.rng(3, 1201))["ndcg"], abs=1e-3)
    (train, _, test), x, _ = ch12.world(RUN, 3, RUN.rng(3, 1201), "few labels")
    fit = learners.learn(x[0].astype(float), learners.labels_as_log(train), cutoff=k)
    scores, total, queries = fit.decision_function(x[2].astype(float)), 0.0, 0
    for begin, end in itertools.pairwise(test.offsets):
        wanted = test.binary[begin:end]
        if not wanted.any():
            continue
        order = sorted(range(end - begin), key=lambda d: -scores[begin + d])
        dcg = sum(wanted[d] / math.log2(2 + i) for i, d in enumerate(order[:k]))
        total += dcg / sum(1 / math.log2(2 + i) for i in range(min(k, int(wanted.sum()))))
        queries += 1
    assert found["labels"] == pytest.approx(total / queries, abs=1e-3)
    assert len({*found.values()}) > 2  # on so few queries two may agree at rank 1
    assert 0.2 < min(found.values()) < max(found.values()) < 1


@pytest.mark.parametrize("arm", ["policy-aware", "doubly robust", "displayed only"])
def test_learners_from_a_random_last_place(arm: str) -> None:
    assert arm in ch12.LEARNERS
    found = ch12.learner(RUN, 3, {"epsilon": 1.0, "n_clicks": 10**5, "arm": arm}, RUN.rng(3, 1201))
    assert found["hidden"] > 0
    assert 0.2 < found["ndcg"] <= 1


def test_forests_without_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ch12.importlib.util, "find_spec", lambda name: None)
    by_arm = {
        arm: ch12.forest(RUN, 3, {"production": "few labels", "arm": arm}, RUN.rng(3, 1205))
        for arm in ("production", "ridge", "direct")
    }
    assert by_arm["direct"] == {"ndcg": None, "last": None, "rounds": None}
    assert by_arm["ridge"]["ndcg"] == by_arm["ridge"]["last"]
    assert 0.2 < float(by_arm["production"]["ndcg"] or 0) < 1


def test_forests_grow_from_clicks_per_look() -> None:
    gbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rng = np.random.default_rng(5)
    x, rank = rng.normal(size=(1200, 3)), np.tile([1, 2, 3, 4], 300)
    wanted = (x[:, 1] > 0).astype(int)
    policy = cf.DeterministicPolicy(np.where(rank < 4, rank, 0), np.arange(0, 1201, 4))
    log = cf.simulate_clicks(policy, ch12.USER, relevance=wanted, sessions=np.full(300, 50), rng=rng)
    for arm in ch12.FORESTS[2:]:
        scores = learners.grown(arm, x, log, gbm, 0).predict(x)
        lead = scores[wanted == 1].mean() - scores[wanted == 0].mean()
        assert lead > scores.std() / 2, arm


def test_the_guide_quotes_the_kept_table_of_trees() -> None:
    """Leads of trees on clicks per look over LightGBM's own objective on raw clicks: mean and interval over seeds."""
    guide = (Path(__file__).parents[3] / "chapters" / "guide.md").read_text(encoding="utf-8")
    for corpus in ("yahoo-like", "istella-like"):
        table = ch12.TREES.kept_table("ci", corpus)
        assert table is not None
        for production in ("few labels", "all labels"):
            rows = table[table["production"] == production]
            direct, raw = (rows.loc[rows["arm"] == arm, "ndcg"].to_list() for arm in ("direct", "raw clicks"))
            leads = [one - other for one, other in zip(direct, raw, strict=True)]
            mean = sum(leads) / 5
            spread = (sum((lead - mean) ** 2 for lead in leads) / 4 / 5) ** 0.5
            half = 2.7764451 * spread  # the 97.5 % quantile of Student's t with four degrees of freedom
            text = f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"
            assert text in guide, text


def test_by_loss_and_from_all_queries() -> None:
    base = ch12.settings_by_loss(RUN)[0]
    by_loss = ch12.by_loss(RUN, 3, base | {"places": 5}, RUN.rng(3, 1201))
    setting = {"epsilon": 0.0, "n_clicks": ch12.MANY, "arm": "oblivious"}
    same = ch12.learner(RUN, 3, setting, RUN.rng(3, 1201))
    assert by_loss["ndcg"] == pytest.approx(same["ndcg"], abs=1e-3)
    production = ch12.by_loss(RUN, 3, base | {"gains": "production"}, RUN.rng(3, 1201))
    assert production["ndcg"] < by_loss["ndcg"]
    more = ch12.learner_of_all(RUN, 3, setting, RUN.rng(3, 1201))
    assert more["sessions"] > 0
    assert ch12.MORE_QUERIES.cell is ch12.learner_of_all


def test_two_months_have_other_queries() -> None:
    month, judge = ch12.months(RUN)
    for one in (month, judge):
        assert len(one.features) == len(one.exposure) == one.log.offsets[-1]
        assert one.log.n_clicks == pytest.approx(1_000_000, rel=0.01)
        assert (one.exposure > 0).all()
        first = cf.ranks(one.deployed, one.log.offsets)[one.log.document] == 1
        assert (one.log.rank[first] == 1).all()  # what the deployed ranker has first always stood first
    assert month.log.offsets[-1] != judge.log.offsets[-1]


def test_intervals_with_few_heavy_clicks_are_too_short_and_too_low() -> None:
    few, many = (ch12.covered(RUN, 3, {"n_clicks": n}, RUN.rng(3, 1211)) for n in (500, 50_000))
    assert 20 * few["heavy"] < many["heavy"] < 50_000
    assert few["covered"] < 0.8 < many["covered"]  # an estimate of something else would seldom be covered
    for found in (few, many):
        assert found["covered"] + found["below"] <= 1 + 1e-12
    assert few["below"] > many["below"]


def test_a_table_of_everywhere_is_measured_from_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(self: object, experiment: book.Experiment) -> pd.DataFrame:
        rows = [{"seed": seed, "arm": arm, "ndcg": seed + n} for seed in (0, 1) for arm, n in (("labels", 3), ("a", 2))]
        frame = pd.DataFrame(rows)
        if experiment.name == "losses":
            frame = frame[frame["arm"] == "a"].drop(columns="arm")
        frame.attrs["kept"] = False
        return frame

    monkeypatch.setattr(Run, "table", kept)
    run = Run("smoke", "digits", 5)
    for experiment in (ch12.BY_LOSS, ch12.LEARNT_FROM):
        assert ch12.table(run, experiment) is ch12.table(run, experiment)
        found = ch12.everywhere(run, experiment)
        assert found["corpus"].unique().tolist() == ["digits"]
        assert found.loc[found["ndcg"] == found["seed"] + 2, "behind"].to_list() == [-1, -1]


def test_cells_are_those_that_are_kept() -> None:
    """Some cells on real digits at the size of the site, of each of six tables."""
    run = Run("ci", "digits")
    tables = [(ch12.BY_LOSS, (0, 10)), (ch12.ALL_QUERIES, (0, 5)), (ch12.LEARNT_FROM, (1, 10, 60))]
    tables += [(ch12.MORE_QUERIES, (3, 7)), (ch12.TOP_K, (0, 14)), (ch12.COVERED, (0,))]
    for experiment, some in tables:
        frame = experiment.kept_table("ci", "digits")
        assert frame is not None
        for row in frame.iloc[list(some)].to_dict("records"):
            setting = {key: row[key] for key in experiment.settings(run)[0]}
            now = experiment.cell(run, row["seed"], setting, run.rng(row["seed"], experiment.stream))
            assert now == pytest.approx({key: row[key] for key in now}, rel=1e-6, abs=1e-9)
