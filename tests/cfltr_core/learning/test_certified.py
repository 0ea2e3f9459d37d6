"""Certified optima and what is proved of their risk, against loops and exact minima."""

import math
from typing import Any

import numpy as np
import oracles
import pytest
from ragged_logs import CLICKS, DOCUMENT, OFFSETS, PROPENSITY, clicks_in

from cfltr_core import RankingData, certified_optimum, label_log
from cfltr_core.learning.certified import surrogate_risk

FEATURES = np.random.default_rng(1).normal(size=(17, 3))
LOG = clicks_in(OFFSETS)
GRADES = np.random.default_rng(2).integers(0, 5, size=17)
DATA = RankingData(FEATURES, GRADES, offsets=OFFSETS, threshold=3)
LABELS = certified_optimum(DATA.features, label_log(DATA))
BEST = certified_optimum(FEATURES, LOG)
MASS = [0.0] * 17
for _d, _c, _p in zip(DOCUMENT, CLICKS, PROPENSITY, strict=True):
    MASS[_d] += _c / _p / sum(CLICKS)


def risk_of(w: np.ndarray, x: np.ndarray = FEATURES) -> float:
    parts = [m * oracles.hinge_risk(x.tolist(), OFFSETS, d, w.tolist()) for d, m in enumerate(MASS) if m]
    return math.fsum(parts)


@pytest.mark.oracle("certified.certified_optimum", "certified.CertifiedOptimum.floor",
                    "certified.CertifiedOptimum.weights", "certified.surrogate_risk")  # fmt: skip
@pytest.mark.parametrize("seed", range(6))
def test_a_single_feature_whose_least_risk_is_known(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(17, 1))
    star, least = oracles.least_on_a_line(x.ravel().tolist(), OFFSETS, MASS)
    found = certified_optimum(x, LOG, gap=1e-6)
    scale = least - sum(MASS)
    assert least - 1e-6 * scale <= found.risk <= least + 1e-3 * scale
    # The floor lies below the least risk of its radius, and near it where the radius allows the optimum.
    assert found.floor(abs(star) * 1.01) <= least + 1e-6 * scale
    assert found.floor(abs(star) * 1.01) >= least - 1e-2 * scale
    assert math.isclose(found.risk, risk_of(found.weights, x), rel_tol=1e-10)
    any_other = np.array([0.7])
    assert math.isclose(surrogate_risk(x @ any_other, LOG), risk_of(any_other, x), rel_tol=1e-10)
    for shrunk in (0.3, 0.9):  # nothing shorter is below either
        assert found.floor(abs(star) * shrunk) <= risk_of(np.array([star * shrunk]), x)
    wrong = found.floor(abs(star)) + 0.05 * scale
    assert wrong > least  # a floor five percent higher would be false


@pytest.mark.oracle("certified.CertifiedOptimum.floor")
def test_nothing_is_below_the_floor() -> None:
    assert math.isclose(BEST.risk, risk_of(BEST.weights), rel_tol=1e-10)
    own = float(np.linalg.norm(BEST.weights))
    assert math.isclose(BEST.floor(), BEST.floor(own), rel_tol=1e-12)
    assert BEST.floor() <= BEST.risk
    assert BEST.floor(0.5 * own) > BEST.floor() > BEST.floor(2 * own)
    fit = BEST.fit
    assert math.isclose(BEST.risk - BEST.floor(), (fit.primal - fit.dual) / fit.C, rel_tol=1e-3, abs_tol=1e-4)
    rng = np.random.default_rng(4)
    for radius in (0.5 * own, own, 3 * own):
        for _ in range(30):
            w = rng.normal(size=3)
            w *= radius / np.linalg.norm(w)
            assert risk_of(w) >= BEST.floor(radius)
        near = BEST.weights * radius / own
        assert risk_of(near) >= BEST.floor(radius)
        assert oracles.hinge_risk(FEATURES.tolist(), OFFSETS, 0, near.tolist()) >= 1.0
    assert repr(BEST).startswith("CertifiedOptimum(R=")
    assert BEST.weights is fit.weights


def test_a_certificate_that_stays_open_ends_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = certified_optimum(FEATURES, LOG, strengths=[1.0, 10.0])
    assert whole.fit.C == 10.0
    from cfltr_core.learning import certified as module

    real, tried = module.fit_proprank, []

    def some(features: Any, log: Any, *, C: float, **more: Any) -> Any:
        tried.append(C)
        if C > 10.0:
            raise RuntimeError("open")
        return real(features, log, C=C, **more)

    monkeypatch.setattr(module, "fit_proprank", some)
    found = certified_optimum(FEATURES, LOG)
    assert (found.fit.C, tried) == (10.0, [1.0, 10.0, 100.0])
    np.testing.assert_array_equal(found.weights, whole.weights)
    with pytest.raises(RuntimeError, match="open"):
        certified_optimum(FEATURES, LOG, strengths=[100.0])


@pytest.mark.oracle("certified.label_log")
def test_labels_as_a_log() -> None:
    log = label_log(DATA)
    relevant = [d for d, g in enumerate(GRADES.tolist()) if g >= 3]
    wanted = [1 / len(relevant) if d in relevant else 0.0 for d in range(17)]
    assert log.mass.tolist() == wanted
    assert log.n_clicks == len(relevant)
    assert log.offsets.tolist() == OFFSETS
    total = math.fsum(
        oracles.hinge_risk(DATA.features.astype(float).tolist(), OFFSETS, d, LABELS.weights.tolist()) for d in relevant
    )
    assert math.isclose(LABELS.risk, total / len(relevant), rel_tol=1e-9)
