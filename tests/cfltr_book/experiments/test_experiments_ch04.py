"""What chapter 4 simulates: steps by hand, and its tables against loops over lists."""

import numpy as np
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch04

RUN = Run("smoke", "digits", 3)


def one_click() -> tuple[cf.ClickLog, np.ndarray]:
    """One feature, so that a step of Σ λ(1 + S) goes left or right; the one click was at the first of three."""
    page = cf.DeterministicPolicy(np.array([1, 2, 3]), np.array([0, 3]))
    log = cf.aggregate_clicks([0], page, user=cf.PositionBasedUser([1, 1, 1]), sessions=[1])
    return log, np.array([[1.0], [0.0], [0.5]])


def test_steps_shrink_and_end_where_nothing_is_pulled() -> None:
    log, x = one_click()
    path = ch04.descend(x, log, np.array([-1.0]), cf.average_rank(), steps=12)
    # The pull ends beyond w = 2, where both rivals are behind by the margin.
    steps = [1 / t for t in range(1, 13)]
    assert np.ravel(path) == pytest.approx(-1 + np.cumsum([0, *steps])[: len(path)])
    assert path[-1] >= 2 > path[-2]
    assert len(ch04.descend(x, log, np.array([1.0]), cf.precision(2))) == 1  # a staircase has no slope
    assert len(ch04.descend(x, log, np.array([-1.0]), cf.average_rank(), steps=3)) == 4


def test_queries_are_standardised_alike_and_the_deployed_weights_rank_as_the_logger() -> None:
    w, data = ch04.world(RUN, 3), RUN.load(3)
    varies = w.features.std(axis=0) > 0
    assert w.features.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert w.features[:, varies].std(axis=0) == pytest.approx(1)
    assert w.queries.n_queries == min(500, data.train.n_queries)
    ranker = cf.fit_linear_ranker(data.train, 0.01, rng=RUN.rng(3, 406))
    for x, part in ((w.features, w.queries), (w.later_features, w.later)):
        raw = ranker.decision_function(part.features)
        both = np.corrcoef(raw[part.offsets[4] : part.offsets[5]], (x @ w.deployed)[part.offsets[4] : part.offsets[5]])
        assert both[0, 1] == pytest.approx(1)


def test_the_month_holds_clicks_of_two_sets_of_queries() -> None:
    month, w = ch04.month(RUN), ch04.world(RUN, 3)
    for log, x, queries in (
        (month.log, month.features, w.queries),
        (month.later_log, month.later_features, w.later),
    ):
        assert len(x) == queries.n_docs
        assert log.n_clicks == pytest.approx(RUN.size.clicks[1], rel=0.1)
        assert log.propensity == pytest.approx(1 / log.rank)
        assert np.asarray(queries.binary)[log.document[log.clicks > 0]].all()


def test_labels_teach_more_than_a_random_order() -> None:
    """The mean over seeds of a regression on all labels, judged by a loop over lists; equal scores are the rival."""
    found, equal = [], []
    for seed in RUN.seeds:
        w = ch04.world(RUN, seed)
        scores = cf.fit_linear_ranker(w.queries, 1.0, rng=RUN.rng(seed, 408)).decision_function(w.later.features)
        lists = list(zip(w.later.offsets[:-1], w.later.offsets[1:], strict=True))
        gains = [0.0, 0.0]
        for start, stop in lists:
            relevant = np.asarray(w.later.binary)[start:stop]
            gain = 1 / np.log2(1 + np.arange(1, stop - start + 1))
            gains[0] += gain[np.flatnonzero(relevant[np.argsort(-scores[start:stop], kind="stable")])].sum()
            gains[1] += gain.mean() * relevant.sum()
        found.append(gains[0] / len(lists))
        equal.append(gains[1] / len(lists))
    assert ch04.taught_by_labels(RUN) == pytest.approx(np.mean(found), abs=1e-3)
    assert np.mean(found) > np.mean(equal)


def test_descents_begin_where_all_documents_tie() -> None:
    frame = ch04.descents(RUN)
    assert len(frame) == len(frame[["seed", "shuffle", "step"]].drop_duplicates()) == 2 * 3 * len(ch04.MARKS)
    assert (frame["guaranteed"] <= frame["estimate"]).all()
    w = ch04.world(RUN, 3)
    by_chance = 0.0
    for start, end in zip(w.later.offsets[:-1], w.later.offsets[1:], strict=True):
        mean = sum(1 / np.log2(1 + rank) for rank in range(1, end - start + 1)) / (end - start)
        by_chance += mean * w.later.binary[start:end].sum()
    first = frame[(frame["seed"] == 3) & (frame["step"] == 0)]
    assert first["test"].to_numpy() == pytest.approx(by_chance / w.later.n_queries)
    ends = frame[(frame["seed"] == 3) & (frame["step"] == ch04.MARKS[-1])].set_index("shuffle")["test"]
    assert ends[0] > ends[1] != ends[2]


def test_bounds_of_stretched_scores_are_sums_over_lists() -> None:
    frame, data = ch04.stretched(RUN), RUN.load(3)
    scores = cf.fit_linear_ranker(data.train, 1.0, rng=RUN.rng(3, 401)).decision_function(data.test.features)
    scores = scores / scores.std()
    total = {"hinge": [0.0, 0.0], "logistic": [0.0, 0.0]}
    factor, relevant, true = ch04.FACTORS[6], int(data.test.binary.sum()), 0.0
    for start, end in zip(data.test.offsets[:-1], data.test.offsets[1:], strict=True):
        for d in range(start, end):
            if data.test.binary[d]:
                behind = factor * (scores[d] - np.delete(scores[start:end], d - start))
                costs = {"hinge": np.maximum(1 - behind, 0), "logistic": np.log2(1 + np.exp(-behind))}
                for name, cost in costs.items():
                    total[name][0] += 1 + cost.sum()
                    total[name][1] += 1 / np.log2(2 + cost.sum())
                true += 1 + (behind < 0).sum() + (behind == 0).sum() / 2
    row = frame[(frame["seed"] == 3) & (frame["factor"] == factor)].set_index(["metric", "surrogate"])
    for name, (rank, gain) in total.items():
        assert row.loc[("average rank", name), "bound"] == pytest.approx(rank / relevant)
        assert row.loc[("DCG", name), "bound"] == pytest.approx(gain / relevant)
        assert row.loc[("average rank", name), "truth"] == pytest.approx(true / relevant)
    assert (frame[frame["metric"] == "DCG"].eval("bound <= truth")).all()
