"""How the claims of chapter 6 are measured: the proof on small random problems, and rankers seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch06 import ROUNDS, compared, courses, rarest, sizes
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]
DCG = cf.dcg()


def _problems(run: Run, n: int) -> list[tuple[FloatArray, cf.ClickLog]]:
    """Small logs: three lists of two to six documents with three features, clicked by chance."""
    rng, found = run.rng(run.seed, 600), []
    for _ in range(n):
        lengths = rng.integers(2, 7, size=3)
        docs = np.arange(lengths.sum())
        log = cf.ClickLog(
            document=docs, rank=np.ones(len(docs), dtype=np.int64), impressions=np.full(len(docs), 9),
            clicks=rng.integers(0, 4, size=len(docs)) + (docs == 0), propensity=rng.uniform(0.05, 1, size=len(docs)),
            sessions=np.full(3, 9), offsets=np.append(0, np.cumsum(lengths)),
        )  # fmt: skip
        found.append((rng.normal(size=(len(docs), 3)), log))
    return found


def _clicked_first(queries: int) -> cf.ClickLog:
    """Lists of two documents, the first of which was shown at rank 1 and clicked once."""
    once = np.ones(queries, dtype=np.int64)
    return cf.ClickLog(
        document=2 * np.arange(queries), rank=once, impressions=once, clicks=once, propensity=once.astype(np.float64),
        sessions=once, offsets=2 * np.arange(queries + 1),
    )  # fmt: skip


def _sums(x: FloatArray, log: cf.ClickLog, w: FloatArray) -> FloatArray:
    """The hinge sum S of every term."""
    return np.asarray(cf.surrogate_ranks(x @ w, log.offsets, documents=log.document)) - 1


def _objective(x: FloatArray, log: cf.ClickLog, w: FloatArray, C: float, metric: cf.RankWeight = DCG) -> float:
    return float(w @ w / 2 + C * log.mass @ metric(1 + _sums(x, log, w)))


def _course(
    x: FloatArray, log: cf.ClickLog, C: float, rounds: int, gap: float, metric: cf.RankWeight = DCG
) -> tuple[FloatArray, FloatArray]:
    """F and the weights before the first round, at w = 0, and after each round, solved to a gap of ``gap``."""
    fit, weights = None, [np.zeros(x.shape[1])]
    for _ in range(rounds):
        p = log.propensity / metric.slope(1 + _sums(x, log, weights[-1]))
        fit = cf.fit_proprank(x, replace(log, propensity=p / p.max()), C=C / p.max(), gap=gap, start=fit)
        weights.append(fit.weights)
    return np.array([_objective(x, log, w, C, metric) for w in weights]), np.array(weights)


@measures("A18-weight-concave", section="descent")
def weight_concave(run: Run) -> Arrays:
    """Step 1: chords between ten thousand pairs of ranks."""
    a, b = run.rng(run.seed, 601).uniform(1, 200, size=(2, 10_000))
    return {"lower": (DCG(a) + DCG(b)) / 2, "upper": DCG((a + b) / 2)}


@measures("A18-new-weights", section="descent")
def new_weights(run: Run) -> Arrays:
    """Step 1: the derivative of −1/log(2 + S) by a complex step, and the closed form of q/q′."""
    S = run.rng(run.seed, 602).uniform(0, 200, size=1000)
    slope = np.imag(-1 / np.log(2 + S + 1e-20j)) / 1e-20
    assert np.allclose(slope, DCG.slope(1 + S) / np.log(2), rtol=1e-12)
    return {"left": slope, "right": 1 / ((S + 2) * np.log(S + 2) ** 2)}


@measures("A18-majorisation", section="descent")
def majorisation(run: Run) -> Arrays:
    """Step 2: F and the upper bound that touches it at w, far from w, near it and at w, over |F(w)|."""
    rng, lower, upper = run.rng(run.seed, 603), [], []
    for x, log in _problems(run, 20):
        for wide in np.geomspace(1e-2, 10, 8):
            w, far = wide * rng.normal(size=(2, 3))
            at, cost = _sums(x, log, w), 30 * log.mass
            F = _objective(x, log, w, 30.0)
            for other in (far, w + 1e-4 * far, w):
                rise = (other @ other - w @ w) / 2 + cost * DCG.slope(1 + at) @ (_sums(x, log, other) - at)
                lower.append(_objective(x, log, other, 30.0) / abs(F))
                upper.append((F + rise) / abs(F))
            assert np.isclose(lower[-1], upper[-1], rtol=1e-12)
    return {"lower": np.array(lower), "upper": np.array(upper)}


@measures("A18-monotone", section="descent")
def monotone(run: Run) -> Arrays:
    """Step 3: six rounds that are solved loosely, for DCG and for another concave weight, over |F(0)|."""
    found = [_course(*p, 30.0, 6, 0.3, metric)[0] for p in _problems(run, 20) for metric in (DCG, cf.rbp(0.8))]
    return {name: np.concatenate([F[part] / abs(F[0]) for F in found])
            for name, part in (("lower", slice(1, None)), ("upper", slice(-1)))}  # fmt: skip


@measures("B-steps-summable", section="descent")
def steps_summable(run: Run) -> Arrays:
    """Step 5: squared steps over the fall of F, with rounds that are solved exactly."""
    ratios = []
    for x, log in _problems(run, 8):
        F, w = _course(x, log, 30.0, 12, 1e-10)
        ratios.append((np.diff(w, axis=0) ** 2).sum() / (F[0] - F[-1]))
    # One pair and a small C: here the squared steps are nearly twice the fall, so that the 2 is needed.
    F, w = _course(np.array([[1.0], [0.0]]), _clicked_first(1), 0.01, 3, 1e-10)
    ratios.append((np.diff(w, axis=0) ** 2).sum() / (F[0] - F[-1]))
    assert ratios[-1] > 1.9
    return {"lower": np.array(ratios), "upper": np.full(len(ratios), 2.0)}


@measures("A18-strong-duality", section="descent")
def strong_duality(run: Run) -> Arrays:
    """One clicked document, one rival, x_t − x_y = 1, cost 5, natural logarithm; the dual over a grid."""
    cost, slack = 5.0, np.geomspace(1e-9, 1e9, 2001)
    primal = minimize(
        lambda w: w[0] ** 2 / 2 - cost / np.log(2 + max(0.0, 1 - w[0])), [0.9], method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12},
    ).fun  # fmt: skip

    def lagrangian(a: float) -> float:
        """Smallest over w, at w = a, and over slacks, which any multiplier above 0 sends to −∞: λ is bounded."""
        return float(a - a**2 / 2 + (-cost / np.log(2 + slack) - a * slack).min())

    dual = max(lagrangian(a) for a in [0.0, *np.geomspace(1e-6, 10, 50)])
    return {"left": np.array([dual]), "right": np.array([primal])}


@measures("A18-local-optimum", section="fails")
def local_optimum(run: Run) -> Arrays:
    """Two clicks of opposite wishes: where the procedure stays from w = 0 on, and two neighbours."""
    x = np.array([[1.0], [0.0], [0.0], [1.0]])
    log = _clicked_first(2)
    stuck = cf.fit_propdcg(x, log, C=40.0)
    assert stuck.weights[0] == 0
    around = [_objective(x, log, np.array([w]), 40.0) for w in (-0.1, 0.1)]
    return {"lower": np.full(2, stuck.objective[-1]), "upper": np.array(around)}


def _by_seed(run: Run, arm: str, column: str, *clicks: int) -> FloatArray:
    """A column of one arm, seed by seed: the mean over these sizes of log; 0 clicks are all labels."""
    frame = compared(run)
    rows = frame[(frame["arm"] == arm) & frame["clicks"].isin(clicks)]
    return np.asarray(rows.groupby("seed")[column].mean(), dtype=np.float64)


def settled(F: FloatArray) -> FloatArray:
    """The first round that changes F by less than a hundredth of itself, of each row; one too many if none does."""
    small = np.abs(np.diff(F, axis=1)) < 0.01 * np.abs(F[:, 1:])
    return np.asarray(np.where(small.any(axis=1), 1 + small.argmax(axis=1), F.shape[1]))


def _courses(run: Run, column: str) -> FloatArray:
    """F, or an estimate, of every seed and strength (rows) before the first round and after each."""
    return np.asarray(courses(run)[[f"{column}_{k}" for k in range(ROUNDS + 1)]], dtype=np.float64)


def _of_seeds(run: Run, values: FloatArray) -> FloatArray:
    """The mean over the strengths of each seed."""
    return np.asarray(values.reshape(-1, len(run.size.C_grid)).mean(axis=1))


@measures("A18-ccp-rounds-percent", section="rounds")
def ccp_rounds(run: Run) -> Arrays:
    """The first round that changes F by less than one per cent, at the strengths where this was measured first.

    They are 0.1, 1 and 10 in units of the stretch.  With much smaller ones F can hardly change by so much at all.
    """
    strengths = np.asarray(courses(run)["C"])
    middle = np.isin(strengths, (0.1, 1.0, 10.0))
    return {"values": settled(_courses(run, "F")[middle]).reshape(-1, 3).mean(axis=1)}


@measures("B-late-rounds", section="rounds")
def late_rounds(run: Run) -> Arrays:
    """DCG on the training clicks at that round, and after the last."""
    clicks = _courses(run, "clicks")
    at = np.minimum(settled(_courses(run, "F")), ROUNDS)
    return {
        "left": _of_seeds(run, np.take_along_axis(clicks, at[:, None], axis=1)[:, 0]),
        "right": _of_seeds(run, clicks[:, -1]),
    }


@measures("A18-propdcg-better", section="learners")
def propdcg_better(run: Run) -> Arrays:
    """The two smallest logs, without a cap."""
    few = sizes(run)[:2]
    return {"larger": _by_seed(run, "PropDCG", "dcg", *few), "smaller": _by_seed(run, "PropRank", "dcg", *few)}


@measures("control-full-information", section="learners")
def full_information(run: Run) -> Arrays:
    """All labels in the place of clicks."""
    return {"left": _by_seed(run, "PropDCG", "dcg", 0), "right": _by_seed(run, "PropRank", "dcg", 0)}


@measures("B-propdcg-over-tuned-cap", section="learners")
def over_tuned_cap(run: Run) -> Arrays:
    """The two smallest logs, the rival with a cap that held-out clicks chose."""
    few = sizes(run)[:2]
    return {"larger": _by_seed(run, "PropDCG", "dcg", *few), "smaller": _by_seed(run, "PropRank, capped", "dcg", *few)}


@measures("B-tuned-cap-rank", section="learners")
def tuned_cap_rank(run: Run) -> Arrays:
    """The same rankers by the average rank of a relevant document."""
    few = sizes(run)[:2]
    return {"left": _by_seed(run, "PropDCG", "rank", *few), "right": _by_seed(run, "PropRank, capped", "rank", *few)}


@measures("B-held-out-choice", section="learners")
def held_out_choice(run: Run) -> Arrays:
    """On each of the two smallest logs the one of two arms whose held-out estimate is better, against no cap."""
    few, arms = sizes(run)[:2], ("PropRank, capped", "PropDCG")
    dcg, held_out = (
        np.array([[_by_seed(run, arm, name, clicks) for clicks in few] for arm in arms]) for name in ("dcg", "held_out")
    )
    preferred = np.where(held_out[1] > held_out[0], dcg[1], dcg[0])
    return {"larger": preferred.mean(axis=0), "smaller": _by_seed(run, "PropRank", "dcg", *few)}


def _way(run: Run, arm: str) -> Arrays:
    """Another way to train SVM PropDCG, and the rounds from w = 0, on the second size of log."""
    middle = sizes(run)[1]
    return {"left": _by_seed(run, arm, "dcg", middle), "right": _by_seed(run, "PropDCG", "dcg", middle)}


@measures("B-logistic-learner", section="learners")
def logistic_learner(run: Run) -> Arrays:
    """The logistic cost in the place of the hinge."""
    return _way(run, "logistic")


@measures("B-two-starts", section="learners")
def two_starts(run: Run) -> Arrays:
    """Rounds that begin where SVM PropRank ended."""
    return _way(run, "from PropRank")


@measures("B-warm-path", section="learners")
def warm_path(run: Run) -> Arrays:
    """Rounds at each C that begin where those at the last C ended."""
    return _way(run, "warm")


@measures("A18-variance-control", section="weights")
def variance_control(run: Run) -> Arrays:
    """The rarest hundredth of the clicks under 1/p and under the weights of the last round."""
    return {"larger": rarest(run, "1/p"), "smaller": rarest(run, "λ′/p")}


@measures("control-dealt-share", section="weights")
def dealt_share(run: Run) -> Arrays:
    """The same factors dealt to the clicked documents at random."""
    return {"left": rarest(run, "dealt"), "right": rarest(run, "1/p")}
