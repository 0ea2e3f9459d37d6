"""Shares of displays against loops over pages: of policies and of logs."""

import math
from collections.abc import Sequence

import numpy as np
import oracles
import pytest
from as_loops import table_of
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Counts, counts

import cfltr_core as cf

THETA = [1.0, 0.6, 0.3, 0.1]
USER = cf.PositionBasedUser(THETA)
CUTS = [0, 3, 5]


def assert_tables(found: cf.DisplayShares, loops: dict[tuple[int, int], float]) -> None:
    table = table_of(found)
    assert (found.share > 0).all()
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
        shares = cf.DisplayShares(document=document, rank=rank, share=share, offsets=CUTS)
        assert shares.share.tolist() == share
    else:
        refuses(fault, cf.DisplayShares, document=document, rank=rank, share=share, offsets=CUTS)


def page_of(scores: Sequence[float], rng: np.random.Generator, cutoff: int | None) -> cf.DeterministicPolicy:
    return cf.DeterministicPolicy.rank_by(scores, CUTS, rng=rng, cutoff=cutoff)


@pytest.mark.oracle("display_shares.DisplayShares.of_policy", "display_shares.DisplayShares.exposure",
                    "display_shares.DisplayShares.exposure_slope", "display_shares.DisplayShares.n_ranks")  # fmt: skip
@given(seed=st.integers(0, 2**20), cutoff=st.sampled_from([1, 2, None]), weight=st.sampled_from([0.0, 0.25, 0.8, 1.0]))
def test_policies_and_their_traffic(seed: int, cutoff: int | None, weight: float) -> None:
    rng = np.random.default_rng(seed)
    parts = [
        page_of(rng.random(5), rng, cutoff),
        page_of(rng.random(5), rng, None),
        cf.PlackettLucePolicy(rng.random(5), CUTS, cutoff=2),
    ]
    traffic = [weight / 2, 1 - weight, weight / 2]
    pages = [page for q in (0, 1) for page in cf.MixturePolicy(parts, traffic).displays(q)]
    loops = oracles.share_table(pages)
    found = cf.DisplayShares.of_policy(cf.MixturePolicy(parts, traffic))
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


@pytest.mark.oracle("display_shares.DisplayShares.of_log")
@given(seed=st.integers(0, 2**20), sessions=st.tuples(st.integers(1, 6), st.integers(0, 6)))
def test_counted_displays(seed: int, sessions: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    policy = cf.PlackettLucePolicy(rng.random(5), CUTS, cutoff=2)
    shown = {q: policy.sample([q] * n, np.random.default_rng(seed)).tolist() for q, n in enumerate(sessions)}
    log_terms = {}
    for q, pages in shown.items():
        for (d, k), share in oracles.share_table([(1 / len(pages), page) for page in pages]).items():
            log_terms[d, k] = (share, q)
    log = cf.ClickLog(
        document=[d for d, _ in log_terms], rank=[k for _, k in log_terms],
        impressions=[round(share * sessions[q]) for share, q in log_terms.values()], clicks=[0] * len(log_terms),
        propensity=[1.0] * len(log_terms), sessions=sessions, offsets=CUTS,
    )  # fmt: skip
    assert_tables(cf.DisplayShares.of_log(log), {term: share for term, (share, _) in log_terms.items()})


@given(case=counts())
def test_of_a_log_leaves_out_what_was_not_shown(case: Counts) -> None:
    sessions = np.repeat(case.sessions, np.diff(case.offsets))
    log = cf.ClickLog(
        document=np.arange(case.offsets[-1]), rank=np.maximum(case.rank, 1),
        impressions=sessions * (np.array(case.rank) > 0), clicks=case.clicks, propensity=np.ones(case.offsets[-1]),
        sessions=case.sessions, offsets=case.offsets,
    )  # fmt: skip
    found = cf.DisplayShares.of_log(log)
    assert found.document.tolist() == [d for d, k in enumerate(case.rank) if k > 0 and sessions[d] > 0]
    assert (found.share == 1).all()
