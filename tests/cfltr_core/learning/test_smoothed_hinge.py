"""Hinges that are smoothed around centres, and what a sweep over the pairs yields, against a literal loop."""

import numpy as np
import oracles
import pytest

from cfltr_core.learning import bounds
from cfltr_core.learning.bounds import ClickedLists
from cfltr_core.learning.smoothed_hinge import HINGE_SUM, Cost, SmoothedHinges

CUTS = np.array([0, 1, 5, 8, 12, 20])
DOCUMENTS = np.array([0, 2, 3, 6, 9, 10, 14, 19])
MASS = np.array([0.5, 1.0, 2.0, 0.25, 1.5, 0.75, 1.0, 3.0])
TERMS = dict(zip(DOCUMENTS.tolist(), MASS.tolist(), strict=True))
PAIRS = [(d, y) for d in TERMS for y in oracles.rivals(CUTS, d)]


@pytest.mark.oracle(
    "smoothed_hinge.SmoothedHinges.sweep", "smoothed_hinge.SmoothedHinges.settle",
    "smoothed_hinge.SmoothedHinges.bent", "smoothed_hinge.SmoothedHinges.slopes",
)  # fmt: skip
@pytest.mark.parametrize("block", [1, 1 << 14])
def test_a_sweep_is_that_of_a_loop(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BLOCK", block)
    rng = np.random.default_rng(0)
    lists = ClickedLists(CUTS, DOCUMENTS)
    hinges = SmoothedHinges(lists, MASS, HINGE_SUM)
    centres = dict.fromkeys(PAIRS, 0.5)
    for width in (1.0, 0.4, 0.1):
        hinges.mu = width
        s = rng.normal(size=CUTS[-1])
        exact, smooth, dual, force, bent = oracles.smoothed_hinges(s.tolist(), CUTS, TERMS, centres, width)
        found = hinges.sweep(s)
        np.testing.assert_allclose([found.exact, found.smooth, found.dual], [exact, smooth, dual], rtol=1e-12)
        np.testing.assert_allclose(found.force, force, rtol=0, atol=1e-12)
        terms, rivals = hinges.bent(s, lambda n: True)
        assert sorted(zip(DOCUMENTS[terms].tolist(), rivals.tolist(), strict=True)) == sorted(bent)
        assert hinges.bent(s, len(bent).__gt__) is None
        hinges.settle(s)
        slopes = {(d, y): np.clip(c + (1 - s[d] + s[y]) / width, 0, 1) for (d, y), c in centres.items()}
        centres = {pair: float(np.float32(a)) for pair, a in slopes.items()}  # they are kept in single precision
    # A start has these centres, and no other lists do.
    again = SmoothedHinges(lists, MASS, HINGE_SUM, hinges.slopes())
    assert again.mu == width
    np.testing.assert_array_equal(again.sweep(s).force, hinges.sweep(s).force)
    other = SmoothedHinges(ClickedLists(CUTS, DOCUMENTS[1:]), MASS[1:], HINGE_SUM, hinges.slopes())
    plain = SmoothedHinges(ClickedLists(CUTS, DOCUMENTS[1:]), MASS[1:], HINGE_SUM)
    plain.mu = width
    np.testing.assert_array_equal(other.sweep(s).force, plain.sweep(s).force)


def test_a_cost_that_is_not_linear_prices_each_slope() -> None:
    """The bound is that of the tangent of κ(S) = S² at the smoothed sum."""
    s = np.random.default_rng(1).normal(size=CUTS[-1])
    hinges = SmoothedHinges(ClickedLists(CUTS, DOCUMENTS), MASS, Cost(lambda t: t**2, lambda t: 2 * t))
    found = hinges.sweep(s)
    sums = {d: oracles.smoothed_hinges(s.tolist(), CUTS, {d: 1.0}, dict.fromkeys(PAIRS, 0.5), 1.0)[:3] for d in TERMS}
    np.testing.assert_allclose(found.exact, sum(TERMS[d] * one[0] ** 2 for d, one in sums.items()), rtol=1e-12)
    np.testing.assert_allclose(found.smooth, sum(TERMS[d] * one[1] ** 2 for d, one in sums.items()), rtol=1e-12)
    dual = sum(TERMS[d] * (2 * total * slopes - total**2) for d, (_, total, slopes) in sums.items())
    np.testing.assert_allclose(found.dual, dual, rtol=1e-12)
