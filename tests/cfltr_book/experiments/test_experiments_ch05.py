"""What chapter 5 simulates: views of a log by hand, and rows of its tables against fits that are made once more."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch05

RUN = Run("smoke", "digits", 4)


@pytest.fixture(autouse=True, scope="module")
def _two_strengths() -> Iterator[None]:
    """Two strengths and two exponents are enough to see what a row says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ch05, "GRID", (0.1, 10.0))
        patch.setattr(ch05, "ASSUMED", (0.5, 1.5))
        yield


def log_of(clicks: list[int], ranks: tuple[int, ...] = (1, 2, 3)) -> cf.ClickLog:
    """One query whose documents were shown at these ranks, in ten sessions."""
    n = len(clicks)
    return cf.ClickLog(
        document=np.arange(n), rank=np.array(ranks), impressions=np.full(n, 10), clicks=np.array(clicks),
        propensity=1 / np.array(ranks), sessions=np.array([10]), offsets=np.array([0, n]),
    )  # fmt: skip


def by_loops(scores: np.ndarray, part: cf.RankingData) -> float:
    """The mean rank of a relevant document; ties share the mean of their ranks."""
    ranks = []
    for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
        for d in range(start, end):
            if part.binary[d]:
                others = scores[start:end]
                ranks.append(1 + (others > scores[d]).sum() + ((others == scores[d]).sum() - 1) / 2)
    return float(np.mean(ranks))


def row_of(frame: pd.DataFrame, **where: object) -> pd.Series:
    """The one row with these values."""
    keep = np.ones(len(frame), dtype=bool)
    for name, value in where.items():
        keep &= (frame[name] == value).to_numpy()
    assert keep.sum() == 1
    return frame[keep].iloc[0]


def is_of(row: pd.Series, w: ch05.World, logs: tuple[cf.ClickLog, cf.ClickLog]) -> bool:
    """Whether a row is of the fit to the first log at its C, judged by labels and by the clicks of the second."""
    train, held_out = w.parts
    fit = None
    for C in (0.1, 10.0)[: 1 + (row["C"] == 10.0)]:
        fit = cf.fit_proprank(train.features, logs[0], C=C, gap=0.01, start=fit)
    assert fit is not None
    scores = fit.decision_function(held_out.features)
    lam = cf.rank_weights(scores, held_out.offsets, metric=cf.dcg())
    assert row["held_out"] == pytest.approx(-cf.self_normalised(logs[1], lam).value)
    places = w.before - by_loops(fit.decision_function(w.data.test.features), w.data.test)
    return bool(row["places"] == pytest.approx(places))


def test_three_views_of_a_log() -> None:
    log = log_of([1, 1, 1], ranks=(1, 4, 9))
    for assumed, full in ((1.0, [1, 4, 9]), (0.5, [1, 2, 3]), (1.5, [1, 8, 27])):
        views = ch05.three_views(log, assumed)
        assert views["raw"].weights == pytest.approx([1, 1, 1])
        assert views["full"].weights == pytest.approx(full)
        assert views["capped"].weights == pytest.approx(np.minimum(full, ch05.CAP))


def test_dealt_weights_are_the_same_weights_of_other_clicks() -> None:
    log = log_of([1, 1, 1, 0, 1, 1], ranks=(1, 2, 3, 4, 5, 6))
    dealt = ch05.deal(log, RUN.rng(4, 590))
    assert (dealt.clicks == log.clicks).all()
    given = dealt.weights[log.clicks > 0]
    assert sorted(given) == pytest.approx([1, 2, 3, 5, 6])
    assert given != pytest.approx([1, 2, 3, 5, 6])
    # Where documents were clicked several times, they share what their clicks were dealt.
    many = log_of([5, 3, 2])
    dealt = ch05.deal(many, RUN.rng(4, 590))
    assert dealt.clicks @ dealt.weights == pytest.approx(5 * 1 + 3 * 2 + 2 * 3)


def test_two_logs_of_a_page_are_added_up() -> None:
    both = ch05.together(log_of([1, 0, 2]), log_of([4, 1, 0]))
    assert both.clicks.tolist() == [5, 1, 2]
    assert both.impressions.tolist() == [20, 20, 20]
    assert both.sessions.tolist() == [20]
    assert both.weights == pytest.approx([1, 2, 3])


def test_pages_are_those_of_the_logger() -> None:
    w = ch05.world(RUN, 4)
    for page, part in zip(w.pages, w.parts, strict=True):
        scores = w.logger.decision_function(part.features)
        for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
            shown = np.argsort(page.displayed_rank[start:end])
            assert (np.diff(scores[start:end][shown]) <= 1e-6).all()
    assert w.before == pytest.approx(by_loops(w.logger.decision_function(w.data.test.features), w.data.test))
    assert w.before == pytest.approx(ch05.average_rank(w.logger, w.data.test))
    assert w.places_gained(w.logger) == 0


def test_logs_have_as_many_clicks_a_query_and_mistakes_among_them() -> None:
    w = ch05.world(RUN, 4)
    for log, part in zip(ch05.draw(RUN, w, 5000, RUN.rng(4, 591)), w.parts, strict=True):
        assert log.n_clicks / part.n_queries == pytest.approx(5000 / w.data.train.n_queries, rel=0.1)
        assert log.propensity == pytest.approx(1 / log.rank)
        assert 0 < log.clicks[part.binary[log.document] == 0].sum() < log.n_clicks / 2
    month = ch05.month(RUN)
    assert ch05.sizes(RUN) == [500, 1500, 5000, 15000]
    assert month.log.n_clicks == pytest.approx(15000, rel=0.1)
    assert len(month.features) == len(month.deployed) == len(month.relevance) == month.log.offsets[-1]
    assert month.deployed == pytest.approx(w.logger.decision_function(w.data.train.features))
    assert (month.relevance == w.data.train.binary).all()


def test_held_out_clicks_choose_the_strength() -> None:
    w = ch05.world(RUN, 4)
    train, held_out = w.parts
    logs = ch05.draw(RUN, w, 1500, RUN.rng(4, 592))
    chosen, tried = ch05.learn(train.features, logs[0], held_out.features, logs[1])
    assert list(tried) == [0.1, 10.0]
    assert chosen.fit is tried[min(chosen.estimates, key=chosen.estimates.__getitem__)]


def test_a_row_of_what_was_learned() -> None:
    frame, w = ch05.learned(RUN), ch05.world(RUN, 4)
    assert len(frame) == len(frame[["seed", "clicks", "learner", "C"]].drop_duplicates()) == 2 * 4 * 3 * 2
    groups = frame.groupby(["seed", "clicks", "learner"])
    assert (groups["chosen"].sum() == 1).all()
    best = frame[frame["chosen"]].set_index(["seed", "clicks", "learner"])["held_out"]
    assert best.sort_index().equals(groups["held_out"].max().sort_index())
    logs = ch05.draw(RUN, w, 1500, RUN.rng(4, 512))
    for learner, C in (("raw", 0.1), ("full", 10.0), ("capped", 10.0)):
        row = row_of(frame, seed=4, clicks=1500, learner=learner, C=C)
        assert is_of(row, w, tuple(ch05.three_views(log)[learner] for log in logs))
        weights = np.repeat(logs[0].weights, logs[0].clicks)
        assert row["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_all_labels_are_clicks_without_bias() -> None:
    frame, w = ch05.all_labels(RUN), ch05.world(RUN, 5)
    assert frame["seed"].tolist() == [4, 5]
    fit = cf.fit_proprank(w.data.train.features, cf.label_log(w.data.train), C=10.0, gap=0.01)
    found = w.before - by_loops(fit.decision_function(w.data.test.features), w.data.test)
    assert frame["places"][1] == pytest.approx(found)


def test_wrong_exponents_change_the_weights_of_one_log() -> None:
    frame, w = ch05.wrong_exponents(RUN), ch05.world(RUN, 4)
    assert len(frame) == 2 * 4 * 2 * 2  # seeds, exponents, with a cap and without, strengths
    logs = ch05.draw(RUN, w, 5000, RUN.rng(4, 512))
    for assumed, capped in ((0.5, False), (1.5, True)):
        name = "capped" if capped else "full"
        row = row_of(frame, seed=4, assumed=assumed, capped=capped, C=10.0)
        assert is_of(row, w, tuple(ch05.three_views(log, assumed)[name] for log in logs))
    learned = ch05.learned(RUN)
    for learner, assumed, capped in (("raw", 0.0, True), ("full", 1.0, False), ("capped", 1.0, True)):
        one = row_of(frame, seed=5, assumed=assumed, capped=capped, C=0.1)
        other = row_of(learned, seed=5, clicks=5000, learner=learner, C=0.1)
        assert (one["places"], one["held_out"]) == (other["places"], other["held_out"])


def test_controls_learn_from_logs_that_say_no_more() -> None:
    frame, w = ch05.controls(RUN), ch05.world(RUN, 4)
    assert len(frame) == 2 * 2 * 2
    again = RUN.rng(4, 516)
    dealt = tuple(ch05.deal(log, again) for log in ch05.draw(RUN, w, 15000, RUN.rng(4, 512)))
    assert is_of(row_of(frame, seed=4, control="dealt", C=0.1), w, dealt)
    few = ch05.draw(RUN, w, 500, RUN.rng(4, 512))
    robots = ch05.draw(RUN, w, 14500, RUN.rng(4, 516), ch05.ROBOT)
    both = tuple(ch05.together(*pair) for pair in zip(few, robots, strict=True))
    assert both[0].n_clicks == pytest.approx(15000, rel=0.1)
    assert is_of(row_of(frame, seed=4, control="robots", C=10.0), w, both)
    # Robots click on whatever they look at.
    relevant = np.asarray(w.data.train.binary)[robots[0].document] > 0
    share = [robots[0].clicks[part].sum() / robots[0].impressions[part].sum() for part in (relevant, ~relevant)]
    looks = [robots[0].propensity[part] @ robots[0].impressions[part] / robots[0].impressions[part].sum()
             for part in (relevant, ~relevant)]  # fmt: skip
    assert share == pytest.approx(looks, rel=0.1)
