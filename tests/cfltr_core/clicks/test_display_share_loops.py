"""Shares of displays against loops over pages: of policies, of logs, of pages, and mixed by traffic."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Counts, counts

from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    DisplayShares,
    MixturePolicy,
    PlackettLucePolicy,
    PositionBasedUser,
    TrustUser,
    power_examination,
    simulate_clicks,
    simulate_pages,
)

THETA = [1.0, 0.6, 0.3, 0.1]
USER = PositionBasedUser(THETA)
CUTS = [0, 3, 5]


def table_of(shares: DisplayShares) -> dict[tuple[int, int], float]:
    assert (shares.share > 0).all()
    return {(int(d), int(k)): float(s) for d, k, s in zip(shares.document, shares.rank, shares.share, strict=True)}


def assert_tables(found: DisplayShares, loops: dict[tuple[int, int], float]) -> None:
    table = table_of(found)
    assert list(table) == list(loops)
    np.testing.assert_allclose(list(table.values()), list(loops.values()), rtol=1e-12, atol=0)


@pytest.mark.oracle("display_shares.DisplayShares")
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.25, -0.5])), max_size=6
    )
)
def test_exactly_possible_shares_are_taken(rows: list[tuple[int, int, float]]) -> None:
    document, rank, share = ([row[i] for row in rows] for i in range(3))
    fault = oracles.share_fault(document, rank, share, CUTS)
    if fault is None:
        shares = DisplayShares(document=document, rank=rank, share=share, offsets=CUTS)
        assert shares.share.tolist() == share
    else:
        with pytest.raises(ValueError, match=f"^{fault}"):
            DisplayShares(document=document, rank=rank, share=share, offsets=CUTS)


def page_of(scores: Sequence[float], rng: np.random.Generator, cutoff: int | None) -> DeterministicPolicy:
    return DeterministicPolicy.rank_by(scores, CUTS, rng=rng, cutoff=cutoff)


@pytest.mark.oracle(
    "display_shares.DisplayShares.of_policy",
    "display_shares.DisplayShares.mixed",
    "display_shares.DisplayShares.exposure",
    "display_shares.DisplayShares.exposure_slope",
    "display_shares.DisplayShares.n_ranks",
)
@given(seed=st.integers(0, 2**20), cutoff=st.sampled_from([1, 2, None]), weight=st.sampled_from([0.0, 0.25, 0.8, 1.0]))
def test_policies_and_their_traffic(seed: int, cutoff: int | None, weight: float) -> None:
    rng = np.random.default_rng(seed)
    parts = [
        page_of(rng.random(5), rng, cutoff),
        page_of(rng.random(5), rng, None),
        PlackettLucePolicy(rng.random(5), CUTS, cutoff=2),
    ]
    traffic = [weight / 2, 1 - weight, weight / 2]
    pages = [page for q in (0, 1) for page in MixturePolicy(parts, traffic).displays(q)]
    loops = oracles.share_table(pages)
    whole = DisplayShares.of_policy(MixturePolicy(parts, traffic))
    several = DisplayShares.mixed([DisplayShares.of_policy(part) for part in parts], traffic)
    for found in (whole, several):
        assert_tables(found, loops)
        assert found.n_ranks == max(k for _, k in loops)
        exposure = oracles.shared_exposure(loops, 5, THETA)
        np.testing.assert_allclose(found.exposure(USER), exposure, rtol=1e-12, atol=0)
        for (d, k), slope in zip(loops, found.exposure_slope(USER), strict=True):
            up, down = (
                oracles.shared_exposure(loops, 5, [t * math.exp(h * (j == k)) for j, t in enumerate(THETA, start=1)])
                for h in (1e-5, -1e-5)
            )
            assert slope == pytest.approx((up[d] - down[d]) / 2e-5, rel=1e-6)
    by_query = np.array([traffic, [0.0, 1.0, 0.0]]).T
    split = DisplayShares.mixed([DisplayShares.of_policy(part) for part in parts], by_query)
    loops = oracles.share_table(
        [*MixturePolicy(parts, traffic).displays(0), *MixturePolicy(parts, [0, 1, 0]).displays(1)]
    )
    assert_tables(split, loops)


@pytest.mark.oracle("display_shares.DisplayShares.of_log", "display_shares.DisplayShares.of_pages")
@given(seed=st.integers(0, 2**20), sessions=st.tuples(st.integers(1, 6), st.integers(0, 6)))
def test_counted_displays(seed: int, sessions: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    policy = PlackettLucePolicy(rng.random(5), CUTS, cutoff=2)
    shown = {q: policy.sample([q] * n, np.random.default_rng(seed)).tolist() for q, n in enumerate(sessions)}
    log_terms = {}
    for q, pages in shown.items():
        for (d, k), share in oracles.share_table([(1 / len(pages), page) for page in pages]).items():
            log_terms[d, k] = (share, q)
    log = ClickLog(
        document=[d for d, _ in log_terms],
        rank=[k for _, k in log_terms],
        impressions=[round(share * sessions[q]) for share, q in log_terms.values()],
        clicks=[0] * len(log_terms),
        propensity=[1.0] * len(log_terms),
        sessions=sessions,
        offsets=CUTS,
    )
    assert_tables(DisplayShares.of_log(log), {term: share for term, (share, _) in log_terms.items()})
    pages = simulate_pages(policy, USER, relevance=[1, 0, 1, 0, 1], sessions=sessions, rng=rng)
    every = []
    for number in range(pages.n_pages):
        rows = pages.page == number
        share = float(pages.impressions[rows][0].sum()) / sessions[int(pages.query[rows][0])]
        every.append((share, pages.document[rows].tolist()))
    assert_tables(DisplayShares.of_pages(pages, offsets=CUTS), oracles.share_table(every))


@given(case=counts())
def test_of_a_log_leaves_out_what_was_not_shown(case: Counts) -> None:
    sessions = np.repeat(case.sessions, np.diff(case.offsets))
    log = ClickLog(
        document=np.arange(case.offsets[-1]),
        rank=np.maximum(case.rank, 1),
        impressions=sessions * (np.array(case.rank) > 0),
        clicks=case.clicks,
        propensity=np.ones(case.offsets[-1]),
        sessions=case.sessions,
        offsets=case.offsets,
    )
    found = DisplayShares.of_log(log)
    assert found.document.tolist() == [d for d, k in enumerate(case.rank) if k > 0 and sessions[d] > 0]
    assert (found.share == 1).all()


def test_exposure_is_that_of_the_policy_for_any_user() -> None:
    rng = np.random.default_rng(5)
    policy = MixturePolicy(
        [page_of(rng.random(5), rng, 2), PlackettLucePolicy(rng.random(5), CUTS, cutoff=3)], [0.3, 0.7]
    )
    shares = DisplayShares.of_policy(policy)
    for user in (
        PositionBasedUser(power_examination(0.7), epsilon_minus=0.1),
        TrustUser([1.0, 0.5, 0.2], epsilon_plus=1.0, epsilon_minus=0.1),
    ):
        np.testing.assert_allclose(shares.exposure(user), policy.exposure(user), rtol=1e-12, atol=0)


def test_many_sessions_come_near_the_policy() -> None:
    rng = np.random.default_rng(6)
    policy = PlackettLucePolicy(rng.random(5), CUTS, cutoff=3)
    log = simulate_clicks(policy, USER, relevance=[1, 0, 1, 0, 1], sessions=[20_000] * 2, rng=rng)
    near, true = DisplayShares.of_log(log), DisplayShares.of_policy(policy)
    assert list(table_of(near)) == list(table_of(true))
    # Five standard errors of a share of 200,000 sessions.
    assert np.abs(near.share - true.share).max() < 5 * 0.5 / math.sqrt(20_000)


GOOD = {"document": [0, 1], "rank": [1, 2], "share": [1.0, 0.5], "offsets": CUTS}
HALF = DisplayShares(**GOOD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"document": [0, 5]}, "document[1] is 5, outside [0, 4]: no such document"),
        ({"rank": [0, 1]}, "rank[0] is 0, outside [1, inf]: ranks start at 1; add 1 to positions"),
        ({"share": [1.0]}, "share: expected shape (2,), got (1,)"),
        (
            {"share": [3.0, 0.5]},
            "share[0] is 3.0, outside [0, 1]: a share of the sessions; divide displays",
        ),
        ({"document": [0, 0], "rank": [1, 1]}, "rank[0] is 1, but another term is of the same document and rank"),
        ({"document": [4, 4], "share": [0.5, 0.75]}, "share: those of document 4 add up to 1.25: a session shows"),
        ({"document": [3, 4], "rank": [2, 2]}, "share: those of rank 2 in query 1 add up to 1.5: a session shows"),
    ],
)
def test_messages(change: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        DisplayShares(**{**GOOD, **change})


def test_messages_of_mixed_and_pages() -> None:
    other = DisplayShares(document=[0], rank=[1], share=[1.0], offsets=[0, 3])
    for parts, traffic, message in (
        ([], [], "parts: expected the shares of at least one ranker, got none"),
        ([HALF, other], [0.5, 0.5], "parts[1] has other offsets than parts[0]: mix shares on the same lists"),
        ([HALF, HALF], [1.0], "traffic: expected shape (2,) or (2, 2), got (1,)"),
        ([HALF, HALF], [0.5, 0.25], "traffic adds up to 0.75: divide it by its sum"),
        ([HALF, HALF], [[0.5, 1.0], [0.5, 0.5]], "traffic[:, 1] adds up to 1.5: divide it by its sum"),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            DisplayShares.mixed(parts, traffic)
    for method in (HALF.exposure, HALF.exposure_slope):
        with pytest.raises(TypeError, match=r"user is list: expected a user, of an estimated curve curve\.user\(\)"):
            method([1.0, 0.5])
    policy = DeterministicPolicy([1, 2, 3, 1, 2], CUTS)
    rng = np.random.default_rng(0)
    pages = simulate_pages(policy, USER, relevance=[1, 0, 1, 0, 1], sessions=[1, 1], rng=rng)
    with pytest.raises(
        ValueError, match=r"^pages\.document\[2\] is 2: it is of another query by offsets than by pages"
    ):
        DisplayShares.of_pages(pages, offsets=[0, 2, 5])
