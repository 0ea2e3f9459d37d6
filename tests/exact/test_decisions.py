"""The paired difference over every displayed page, every examination and every click: unbiased, whatever was drawn."""

import math
from itertools import product

import numpy as np
import oracles
import pytest

import cfltr_core as cf

EXACT = 1e-12
# Two queries, of three documents and of two; pages have two places.
OFFSETS = [0, 3, 5]
RELEVANCE = [1, 0, 1, 0, 1]
THETA = [0.9, 0.4]
PLUS, MINUS = 0.8, 0.3
NEW, OLD = [1.0, 0.0, 2.0, 1.0, 3.0], [3.0, 2.0, 1.0, 2.0, 1.0]


def two_rankers() -> tuple[cf.MixturePolicy, list[oracles.Pages]]:
    """One shows the documents 0 1 and 3 4, the other 2 0 and 4 3."""
    ranks = ([1, 2, 0, 1, 2], [2, 0, 1, 2, 1])
    pages = [
        oracles.mixed_pages([oracles.fixed_page(r[low:high]) for r in ranks], [0.25, 0.75])
        for low, high in ((0, 3), (3, 5))
    ]
    return cf.MixturePolicy([cf.DeterministicPolicy(r, OFFSETS) for r in ranks], [0.25, 0.75]), pages


def exploring() -> tuple[cf.EpsilonGreedyPolicy, list[oracles.Pages]]:
    greedy, epsilon = [1, 2, 3, 1, 2], [0.2, 0.6]
    pages = [oracles.exploring_pages(greedy[low:high], epsilon) for low, high in ((0, 3), (3, 5))]
    return cf.EpsilonGreedyPolicy(greedy, OFFSETS, epsilon=epsilon), pages


def outcomes(*sessions: list[tuple], offsets: list[int]) -> list[tuple[float, cf.ClickLog]]:
    """Every pair of sessions, one of each query, with its probability."""
    out = []
    for (p, first, clicks), (r, second, more) in product(*sessions):
        rows = [(d, k, c) for k, (d, c) in enumerate(zip(first, clicks, strict=True), start=1)]
        rows += [(d + 3, k, c) for k, (d, c) in enumerate(zip(second, more, strict=True), start=1)]
        document, rank, clicked = zip(*rows, strict=True)
        ones = np.ones(len(rows), dtype=int)
        counts = {"impressions": ones, "clicks": clicked, "propensity": ones, "sessions": [1, 1]}
        out.append((p * r, cf.ClickLog(document=document, rank=rank, offsets=offsets, **counts)))
    return out


@pytest.mark.parametrize("logging", [two_rankers, exploring])
@pytest.mark.oracle("decisions.decide")
def test_the_difference_is_unbiased_and_the_oblivious_one_is_not(logging) -> None:
    policy, pages = logging()
    new, old = (cf.rank_weights(s, OFFSETS, metric=cf.dcg()) for s in (NEW, OLD))
    gap = oracles.rank_difference(*(oracles.rank_weights(s, OFFSETS, oracles.dcg) for s in (NEW, OLD)))
    attraction = [PLUS if y else MINUS for y in RELEVANCE]
    truth = -math.fsum(g * a for g, a in zip(gap, attraction, strict=True)) / 2
    sessions = [
        oracles.every_page_session(pages[q], THETA, RELEVANCE[low:high], PLUS, MINUS)
        for q, (low, high) in enumerate(((0, 3), (3, 5)))
    ]
    every = outcomes(*sessions, offsets=OFFSETS)
    assert math.fsum(p for p, _ in every) == pytest.approx(1.0, abs=EXACT)
    case = {"shares": cf.DisplayShares.of_policy(policy), "user": cf.PositionBasedUser(THETA), "smallest": 0.1}
    found = [(p, cf.decide(new, old, log=log, **case).difference) for p, log in every]
    mean, variance = oracles.moments(found)
    assert mean == pytest.approx(truth, abs=EXACT)
    assert variance > 0
    oblivious = [
        (
            p,
            -math.fsum(c * gap[d] / THETA[k - 1] for d, k, c in zip(log.document, log.rank, log.clicks, strict=True))
            / 2,
        )
        for p, log in every
    ]
    assert abs(oracles.moments(oblivious)[0] - truth) > 0.01


@pytest.mark.parametrize("logging", [two_rankers, exploring])
def test_the_variance_over_queries_is_unbiased_when_queries_are_drawn_alike(logging) -> None:
    """Two copies of the first query, one session each: the mean of the estimated variance is the variance."""
    _, pages = logging()
    policy, _ = logging()
    sessions = oracles.every_page_session(pages[0], THETA, RELEVANCE[:3], PLUS, MINUS)
    cuts = [0, 3, 6]
    one = cf.DisplayShares.of_policy(policy)
    mine = one.document < 3
    shares = cf.DisplayShares(
        document=np.concatenate([one.document[mine], one.document[mine] + 3]), rank=np.tile(one.rank[mine], 2),
        share=np.tile(one.share[mine], 2), offsets=cuts,
    )  # fmt: skip
    new, old = (cf.rank_weights(s[:3] * 2, cuts, metric=cf.dcg()) for s in (NEW, OLD))
    found, squares = [], []
    for probability, log in outcomes(sessions, sessions, offsets=cuts):
        decision = cf.decide(new, old, log=log, shares=shares, user=cf.PositionBasedUser(THETA), smallest=0.1)
        found.append((probability, decision.difference))
        squares.append((probability, decision.standard_error**2))
    assert oracles.moments(squares)[0] == pytest.approx(oracles.moments(found)[1], rel=EXACT)
