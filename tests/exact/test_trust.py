"""Trust: what the affine correction repairs, what a log cannot tell, and that few impressions do not bend the line."""

import math

import numpy as np
import oracles
import pytest
from strata_logs import of_rows

import cfltr_core as cf
from cfltr_book.theory.exact import enumerate_logs, expectation
from cfltr_core.propensity.trust_bias import trust_moments
from cfltr_core.propensity.trust_curves import TrustCurve

EXACT = 1e-12
OFFSETS, RELEVANCE = [0, 3], [1, 0, 1]
THETA, PLUS, MINUS = [1.0, 0.5, 0.4], [0.9, 0.85, 0.8], [0.6, 0.3, 0.2]
USER = cf.TrustUser(THETA, epsilon_plus=PLUS, epsilon_minus=MINUS)
LAM = [0.3, 1.0, -2.0]
PAGES = {(0, 1, 2): 0.7, (1, 2, 0): 0.3}
ONE_PAGE = cf.DeterministicPolicy([1, 2, 3], OFFSETS)
TWO_PAGES = cf.MixturePolicy([ONE_PAGE, cf.DeterministicPolicy([3, 1, 2], OFFSETS)], [0.7, 0.3])
LINES = [oracles.trust_line(THETA, PLUS, MINUS, k) for k in (1, 2, 3)]
RISK = math.fsum(v * y for v, y in zip(LAM, RELEVANCE, strict=True))


@pytest.mark.parametrize(("policy", "pages"), [(ONE_PAGE, {(0, 1, 2): 1.0}), (TWO_PAGES, PAGES)])
def test_affine_is_unbiased_and_ips_is_not(
    policy: cf.DeterministicPolicy | cf.MixturePolicy, pages: oracles.Pages
) -> None:
    case = {"user": USER, "relevance": RELEVANCE, "sessions": [2]}
    assert abs(expectation(lambda log: cf.affine(log, lam=LAM, trust=USER).value, policy, **case) - RISK) <= EXACT
    by_ips = math.fsum(
        share * LAM[d] * oracles.trusted(THETA, PLUS, MINUS, k, RELEVANCE[d]) / THETA[k - 1]
        for page, share in pages.items()
        for k, d in enumerate(page, start=1)
    )
    assert abs(expectation(lambda log: cf.ips(log, lam=LAM).value, policy, **case) - by_ips) <= EXACT
    assert abs(by_ips - RISK) > 0.1


def test_from_what_a_log_identifies_it_is_unbiased_up_to_an_affine_map() -> None:
    """With β₁ = 1, α₁ = 0 relevance is the click probability at rank 1."""
    (a, b), *_ = LINES
    slope, intercept = (np.array(x) for x in zip(*[(s / a, i - b * s / a) for s, i in LINES], strict=True))
    curve = TrustCurve(slope=slope, intercept=intercept, covariance=np.zeros((6, 6)), strength=9.0)
    case = {"user": USER, "relevance": RELEVANCE, "sessions": [2]}
    found = expectation(lambda log: cf.affine(log, lam=LAM, trust=curve).value, TWO_PAGES, **case)
    assert abs(found - (a * RISK + b * math.fsum(LAM))) <= EXACT


def test_two_worlds_with_the_same_log() -> None:
    """γ → aγ + b, β → β/a, α → α − βb/a: every log has the same probability in both."""
    a, b = 0.8, 0.1
    gamma = [0.9, 0.1, 0.5]
    other = [a * g + b for g in gamma]
    lines = [(s / a, i - s * b / a) for s, i in [(0.5, 0.4), (0.3, 0.3), (0.2, 0.15)]]
    first = cf.TrustUser([1.0] * 3, epsilon_plus=[0.9, 0.6, 0.35], epsilon_minus=[0.4, 0.3, 0.15])
    second = cf.TrustUser([1.0] * 3, epsilon_plus=[s + i for s, i in lines], epsilon_minus=[i for _, i in lines])
    assert np.abs(np.subtract(first.line([1, 2, 3]), second.line([1, 2, 3]))).min() > 0.02
    logs = [
        {(*log.document, *log.rank, *log.impressions, *log.clicks): p for p, log in worlds}
        for worlds in (
            enumerate_logs(TWO_PAGES, user, relevance=rel, sessions=[2])
            for user, rel in ((first, gamma), (second, other))
        )
    ]
    assert logs[0].keys() == logs[1].keys()
    for log, probability in logs[0].items():
        assert abs(logs[1][log] - probability) <= EXACT


def test_the_equations_of_trust_have_mean_zero_at_the_truth() -> None:
    """Four sessions: E[A](p, q) = 0 with the noise taken off, and not with it, whatever weights the ranks have."""
    policy = cf.MixturePolicy([ONE_PAGE, cf.DeterministicPolicy([3, 1, 2], OFFSETS)], [0.5, 0.5])
    at = np.array([*[1 / s for s, _ in LINES], *[i / s for s, i in LINES]])
    mean, plain = np.zeros(6), np.zeros(6)
    for probability, log in enumerate_logs(policy, USER, relevance=RELEVANCE, sessions=[4]):
        moments = trust_moments(cf.display_counts(log), [1.0, 2.0, 0.5])
        mean += probability * moments.form @ at
        plain[:3] += probability * moments.noise * at[:3]
    np.testing.assert_allclose(mean, 0, atol=EXACT)
    assert (plain[:3] > 0.01).all()


def test_without_noise_the_lines_come_back() -> None:
    """So many impressions that the noise is nothing: the truth up to the scale of rank 1."""
    groups = [(query, document) for query in range(4) for document in range(3)]
    rows = [
        (q, d, k, 10**12, round(10**12 * (s * (0.1 + 0.07 * (3 * q + d)) + i)))
        for q, d in groups
        for k, (s, i) in enumerate(LINES, start=1)
        if k != 1 + d
    ]
    curve = cf.trust_bias(of_rows(rows))
    (a, b), *_ = LINES
    np.testing.assert_allclose(curve.slope, [s / a for s, _ in LINES], atol=1e-8)
    np.testing.assert_allclose(curve.intercept, [i - b * s / a for s, i in LINES], atol=1e-8)
