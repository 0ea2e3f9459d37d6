"""What chapter 12 simulates: kinds of gains, pages and rivals by hand, and cells that its kept tables hold."""

from __future__ import annotations

import numpy as np
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch12

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


def test_sizes_of_logs_and_settings_follow_from_the_scale() -> None:
    assert ch12.decades(RUN)[-1] == 10**8
    assert {*ch12.ends(RUN)} <= {*ch12.decades(RUN)}
    start = ch12.base(RUN)
    for asked in (ch12.settings_of_all(RUN), ch12.settings_at_size(RUN)):
        assert asked[0] == start
        assert all(list(setting) == list(start) for setting in asked)
        assert len({tuple(setting.values()) for setting in asked}) == len(asked)


@pytest.mark.parametrize(("clicks", "cap"), [(0, 36), (10_000, 1), (100_000, 30), (10**8, 501)])
def test_the_cap_is_that_of_the_released_code(clicks: int, cap: float) -> None:
    assert ch12.released_cap(clicks) == pytest.approx(1 + 3 * 4 + 32 * 16 if clicks == 0 else cap)


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
        kind: ch12.gains_of(kind, log, exposure).propensity for kind in ("oblivious", "aware", "counted", "capped")
    }
    assert found["oblivious"] == pytest.approx([1, 0.5])
    assert found["aware"] == pytest.approx([1, 0.05])
    assert found["counted"] == pytest.approx([1, 2 * 0.5 / 10])
    assert found["capped"] == pytest.approx([1, max(0.05, 1 / ch12.released_cap(6))])


def test_pages_show_five_documents_or_the_whole_list(small: ch12.World) -> None:
    data, rank = small[0][0], small[2][0]
    fixed, chance = (ch12.page(data, rank, False, epsilon).exposure(ch12.USER) for epsilon in (0.0, 1.0))
    assert np.array_equal(fixed > 0, rank <= 5)
    assert np.array_equal(fixed[rank < 5], chance[rank < 5])
    assert (chance > 0).all()
    swapped = ch12.page(data, rank, True, 0.9).exposure(ch12.USER)
    assert ch12.page(data, rank, True, 0.0).exposure(ch12.USER) == pytest.approx(1 / rank)
    assert swapped[rank < 5] == pytest.approx(1 / rank[rank < 5])


def test_labels_as_a_log_give_gains_of_one(small: ch12.World) -> None:
    data = small[0][0]
    assert cf.click_gains(ch12.labels_as_log(data)) == pytest.approx(data.binary * 1.0)
    assert ch12.judged(data, data.binary * 1.0) == pytest.approx(1)


def test_only_what_is_shown_is_left(small: ch12.World) -> None:
    data, rank = small[0][0], small[2][0]
    policy = ch12.page(data, rank, False, 0.0)
    log = RUN.simulate(policy, ch12.USER, relevance=data.binary, rng=RUN.rng(3, 1291), n_clicks=500)
    shown, part = ch12.only_shown(log, rank)
    assert (rank[shown] <= 5).all()
    assert part.offsets[-1] == len(shown)
    assert np.array_equal(shown[part.document], log.document)
    assert ch12.learn(small[1][0][shown], part, epochs=None).decision_function(small[1][0]).shape == rank.shape


def test_adam_climbs_a_hill() -> None:
    x = np.random.default_rng(3).normal(size=(50, 2))
    best = x @ [1.0, -2.0]
    w = ch12.climb(x, lambda s: (s - best) / 50)
    assert np.abs(w - [1, -2]).max() < np.abs([1, -2]).max() / 2


def test_corrected_guesses_expect_the_clicks_over_exposure() -> None:
    log = two_documents()
    none = ch12.corrected(np.zeros(2), log, np.array([1.0, 0.2]))
    assert none == pytest.approx([5, 1 / 0.2])
    some = ch12.corrected(np.array([0.1, 0.3]), log, np.array([1.0, 0.2]))
    assert some == pytest.approx([10 * 0.1 + (5 - 0.1 * 10), 10 * 0.3 + (1 - 0.3 * 2 * 0.5) / 0.2])


def test_a_guess_does_not_come_from_its_own_clicks(small: ch12.World) -> None:
    data, x, rank = small[0][0], small[1][0], small[2][0]
    policy = ch12.page(data, rank, False, 1.0)
    log = RUN.simulate(policy, ch12.USER, relevance=data.binary, rng=RUN.rng(3, 1292), n_clicks=5000)
    guess = ch12.cross_fitted(x, log)
    assert ((guess >= 0) & (guess <= 1)).all()
    clicks = log.clicks.copy()
    first = log.document < data.offsets[1]
    clicks[first] = 0
    other = cf.ClickLog(
        document=log.document,
        rank=log.rank,
        impressions=log.impressions,
        clicks=clicks,
        propensity=log.propensity,
        sessions=log.sessions,
        offsets=log.offsets,
    )
    mine = slice(0, data.offsets[1])
    assert ch12.cross_fitted(x, other)[mine] == pytest.approx(guess[mine])
    assert np.abs(ch12.cross_fitted(x, other) - guess).max() > 0


def test_the_policy_gradient_lifts_what_was_clicked() -> None:
    slopes = ch12.luce_slopes(np.zeros(6), np.eye(6)[2], np.array([0, 6]), np.random.default_rng(3), samples=200)
    assert slopes[2] < -0.1
    assert (np.delete(slopes, 2) > 0).all()


@pytest.mark.parametrize("arm", ["LambdaLoss", "SVM PropRank", "doubly robust", "policy gradient"])
def test_rivals_learn(arm: str) -> None:
    assert arm in ch12.ARMS
    found = ch12.rival(RUN, 3, {"arm": arm, "n_clicks": 10**5}, RUN.rng(3, 1201))["ndcg"]
    assert 0.2 < float(found or 0) <= 1


def test_cells_are_those_that_are_kept() -> None:
    """Three cells on real digits at the size of the site, in a second, by each of two tables."""
    run = Run("ci", "digits")
    for experiment, some in ((ch12.TOP_FIVE, (0, 4, 20)), (ch12.ALL_QUERIES, (0, 5))):
        frame = experiment.kept_table("ci", "digits")
        assert frame is not None
        for row in frame.iloc[list(some)].to_dict("records"):
            setting = {key: row[key] for key in ch12.base(run)}
            now = experiment.cell(run, row["seed"], setting, run.rng(row["seed"], experiment.stream))
            assert now == pytest.approx({key: row[key] for key in now}, rel=1e-6, abs=1e-9)
    assert ch12.ALL_QUERIES.cell is ch12.learnt_on_all
    assert ch12.TOP_FIVE.cell is ch12.learnt
