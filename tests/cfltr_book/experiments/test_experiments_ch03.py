"""What chapter 3 simulates: metrics, the mean of plugging in, and losses against loops."""

from itertools import product
from math import comb, log2

import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.experiments import ch03
from cfltr_book.experiments.ch02 import world

RUN = Run("smoke", "digits", 3)
W = world(RUN, 3)


def eight(x: tuple[float, ...]) -> list[float]:
    """The metrics of one page, by loops."""
    ranked = list(enumerate(x, start=1))
    dcg = sum(rel / log2(1 + r) for r, rel in ranked)
    best = sum(rel / log2(1 + r) for r, rel in enumerate(sorted(x, reverse=True), start=1))
    first, unsatisfied, err = 0.0, 1.0, 0.0
    untouched = 1.0
    for r, rel in ranked:
        first += untouched * rel / r
        untouched *= 1 - rel
        err += unsatisfied * rel / 2 / r
        unsatisfied *= 1 - rel / 2
    average = sum(rel * sum(x[:r]) / r if rel in (0, 1) else rel * (1 + sum(x[: r - 1])) / r for r, rel in ranked)
    return [
        sum(r * rel for r, rel in ranked),
        dcg,
        sum(x[:2]) / 2,
        sum(0.2 * 0.8 ** (r - 1) * rel for r, rel in ranked),
        first,
        err,
        average / sum(x) if sum(x) else 0.0,
        dcg / best if best else 0.0,
    ]


def test_metrics_are_those_of_loops() -> None:
    pages = [*product([0.0, 1.0], repeat=4), (0.0, 2.0, 0.0, 3.0)]
    assert ch03.by_rank(np.array(pages)) == pytest.approx(np.array([eight(page) for page in pages]))


def test_plugging_in_is_averaged_over_all_ends_of_the_customers() -> None:
    """Reciprocal rank is too low by 1 / (2 S); nDCG by a loop over how many stop where, in four sessions."""
    frame = ch03.plug_in_means().set_index("sessions")
    for sessions, value in frame["reciprocal rank"].items():
        assert value == pytest.approx(1 - 1 / (2 * sessions))
    mean = 0.0
    for at_b, at_c in product(range(5), repeat=2):
        if at_b + at_c <= 4:
            ways = comb(4, at_b) * comb(4 - at_b, at_c)
            chance = ways * (1 / 6) ** at_b * (1 / 3) ** at_c * (1 / 2) ** (4 - at_b - at_c)
            mean += chance * eight((3 * at_c / 4, 2 * (at_b + at_c) / 4, 0.0))[-1]
    assert frame.loc[4, "nDCG"] == pytest.approx(mean)


def test_mrr_sees_the_first_relevant_document_of_each_query() -> None:
    rng = RUN.rng(3, 390)
    scores = rng.permutation(W.queries.n_docs).astype(float)  # no ties
    total = 0.0
    for start, end in zip(W.queries.offsets[:-1], W.queries.offsets[1:], strict=True):
        order = sorted(range(start, end), key=lambda d: -scores[d])
        places = [r for r, d in enumerate(order, start=1) if W.relevance[d]]
        total += 1 / places[0] if places else 0.0
    assert ch03.mrr(scores, W.queries, rng) == pytest.approx(total / W.queries.n_queries)


def test_losses_are_shares_and_there_is_one_for_each_key() -> None:
    frame = ch03.choices(RUN)
    keys = ["seed", "clicks", "chooser"]
    assert len(frame) == len(frame[keys].drop_duplicates()) == 2 * 4 * len(ch03.CHOOSERS)
    assert frame["clicks"].unique().tolist() == [0, 50, 500, 5_000]
    assert frame["lost"].between(0, 1).all()


def test_clicks_over_propensity_are_relevance_times_sessions_on_average() -> None:
    found = ch03._weighted_clicks(W, 50_000, RUN.rng(3, 391))
    assert found.shape == (len(W.relevant), ch03.LOGS)
    sessions = ch03.sessions_for(W, 1.0, 50_000)
    assert found.sum(axis=0).mean() == pytest.approx(sessions * len(W.relevant) / W.queries.n_queries, rel=0.05)


def test_the_heavy_ranker_moves_documents_of_the_first_ten_places_only() -> None:
    month = ch03.month(RUN)
    for start, end in zip(W.queries.offsets[:-1], W.queries.offsets[1:], strict=True):
        deployed = sorted(range(start, end), key=lambda d: -month.deployed[d])
        heavy = sorted(range(start, end), key=lambda d: -month.heavy[d])
        assert deployed[10:] == heavy[10:]
        assert set(deployed[:10]) == set(heavy[:10])
    assert np.array_equal(month.log.rank, W.policy.displayed_rank[month.log.document])
    assert month.log.n_clicks == pytest.approx(500, rel=0.3)
    assert not np.array_equal(month.light, month.heavy)
