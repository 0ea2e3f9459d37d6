"""How the claims of chapter 5 are measured: the dual on a small log by solvers of its own, and rankers seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch05 import controls, learned, sizes, wrong_exponents
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]
STRENGTHS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Small:
    """A log of two lists at one strength C: ``pairs`` has a row x_t − x_y for each pair, ``cost`` its c_t."""

    x: FloatArray
    log: cf.ClickLog
    pairs: FloatArray
    cost: FloatArray
    C: float

    def z(self, w: FloatArray) -> FloatArray:
        """What each pair lacks of the margin."""
        return 1 - self.pairs @ w

    def primal(self, w: FloatArray) -> float:
        """P(w)."""
        return float(w @ w / 2 + self.cost @ np.maximum(self.z(w), 0))

    def v(self, a: FloatArray) -> FloatArray:
        """The weights that the multipliers pull together."""
        return np.asarray(a @ self.pairs)

    def dual(self, a: FloatArray) -> float:
        """D(a)."""
        return float(a.sum() - self.v(a) @ self.v(a) / 2)

    def fit(self, gap: float) -> Any:
        """The package's solution."""
        return cf.fit_proprank(self.x, self.log, C=self.C, gap=gap)

    @property
    def at_zero(self) -> float:
        """P(0): what no weights at all cost."""
        return float(self.cost.sum())


def _small(run: Run, C: float) -> Small:
    """Lists of four and five documents with three features, shown in the order of the file and clicked by chance."""
    rng, cuts = run.rng(run.seed, 510), np.array([0, 4, 9])
    x, ranks = rng.normal(size=(9, 3)), np.array([1, 2, 3, 4, 1, 2, 3, 4, 5])
    counts = rng.integers(0, 4, size=9)
    counts[0] += 1  # at least one click
    log = cf.ClickLog(
        document=np.arange(9), rank=ranks, impressions=np.full(9, 30), clicks=counts, propensity=1 / ranks,
        sessions=np.array([30, 30]), offsets=cuts,
    )  # fmt: skip
    lists = [range(4), range(4, 9)]
    pairs = [(i, j) for docs in lists for i in docs for j in docs if counts[i] and i != j]
    mass = C / counts.sum() * counts * ranks  # 1 / p is the rank
    return Small(x, log, np.array([x[i] - x[j] for i, j in pairs]), np.array([mass[i] for i, _ in pairs]), C)


def _points(run: Run, small: Small) -> list[tuple[FloatArray, FloatArray]]:
    """Random weights and multipliers, and some so close to the optimum that signs matter."""
    rng, n = run.rng(run.seed, 517), len(small.cost)
    found = [
        (rng.normal(size=small.x.shape[1]) * wide, rng.uniform(size=n) * small.cost)
        for wide in np.geomspace(0.01, 10, 50)
    ]
    w, a = small.fit(1e-12).weights, _largest_dual(small)
    return found + [(w * (1 + e), a * (1 - abs(e))) for e in np.linspace(-0.01, 0.01, 11)]


def _largest_dual(small: Small) -> FloatArray:
    """The multipliers with the largest D, by a solver that knows nothing of the primal."""
    pairs, cost = small.pairs, small.cost
    found = minimize(
        lambda a: -small.dual(a), cost / 2, jac=lambda a: pairs @ (a @ pairs) - 1, method="SLSQP",
        bounds=[(0, c) for c in cost], options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    return np.asarray(np.clip(found.x, 0, cost))


@measures("A18-slack-program", section="certificate")
def slack_program(run: Run) -> Arrays:
    """Step 1: the program with its constraints by a general solver, at three strengths, over P(0); its weights, too."""
    left, right = [], []
    for C in STRENGTHS:
        small = _small(run, C)
        n, d = small.pairs.shape
        found = minimize(  # variables (w, ξ)
            lambda u, s=small, d=d: u[:d] @ u[:d] / 2 + s.cost @ u[d:],
            np.append(np.zeros(d), np.ones(n)), method="SLSQP",
            jac=lambda u, s=small, d=d: np.append(u[:d], s.cost),
            bounds=[(None, None)] * d + [(0, None)] * n,
            constraints={
                "type": "ineq", "fun": lambda u, s=small, d=d: u[d:] - s.z(u[:d]),
                "jac": lambda u, s=small, n=n: np.hstack([s.pairs, np.eye(n)]),
            },
            options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        best = small.fit(1e-12)
        assert np.allclose(found.x[:d], best.weights, atol=1e-4)
        left.append(found.fun / small.at_zero)
        right.append(best.primal / small.at_zero)
    return {"left": np.array(left), "right": np.array(right)}


@measures("A18-one-slack", section="certificate")
def one_slack(run: Run) -> Arrays:
    """Step 2: the largest sum over all selections of eight pairs, at fifty random weights."""
    small, few = _small(run, 10.0), slice(0, 8)
    selections = np.array(list(product([0.0, 1.0], repeat=len(small.cost[few]))))
    trials = [w for w, _ in _points(run, small)[:50]]
    return {
        "left": np.array([(selections @ (small.cost * small.z(w))[few]).max() for w in trials]),
        "right": np.array([small.cost[few] @ np.maximum(small.z(w), 0)[few] for w in trials]),
    }


@measures("B-gap-identity", section="certificate")
def gap_identity(run: Run) -> Arrays:
    """Steps 3 and 4: both sides, over the optimum; no bracket is negative."""
    small = _small(run, 10.0)
    best, left, right = small.fit(1e-12).primal, [], []
    for w, a in _points(run, small):
        brackets = small.cost * np.maximum(small.z(w), 0) - a * small.z(w)
        assert brackets.min() >= -1e-12 * small.cost.max()
        left.append((small.primal(w) - small.dual(a)) / best)
        right.append((((w - small.v(a)) ** 2).sum() / 2 + brackets.sum()) / best)
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-weak-duality", section="certificate")
def weak_duality(run: Run) -> Arrays:
    """Each multiplier against each weight, those near the optimum among them."""
    small = _small(run, 10.0)
    points, best = _points(run, small), small.fit(1e-12).primal
    lower, upper = zip(
        *[(small.dual(a) / best, small.primal(w) / best) for _, a in points for w, _ in points], strict=True
    )
    return {"lower": np.array(lower), "upper": np.array(upper)}


@measures("B-strong-duality", section="certificate")
def strong_duality(run: Run) -> Arrays:
    """Step 5: the largest D and P at its v, over the least P; and v against the best weights."""
    left, right = [], []
    for C in STRENGTHS:
        small = _small(run, C)
        a, best = _largest_dual(small), small.fit(1e-12)
        left += [small.dual(a) / best.primal, small.primal(small.v(a)) / best.primal, *small.v(a) / best.primal]
        right += [1.0, 1.0, *best.weights / best.primal]
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-gap-bounds-weights", section="certificate")
def gap_bounds_weights(run: Run) -> Arrays:
    """Step 6: the distance from the best weights, of all points and of fits that stopped early."""
    small = _small(run, 10.0)
    best = small.fit(1e-12)
    found = [(w, small.primal(w) - small.dual(a)) for w, a in _points(run, small)]
    found += [(fit.weights, fit.primal - fit.dual) for fit in (small.fit(10.0**-k) for k in range(1, 7))]
    return {
        "lower": np.array([((w - best.weights) ** 2).sum() / 2 for w, _ in found]) / best.primal,
        "upper": np.array([gap for _, gap in found]) / best.primal,
    }


@measures("B-gap-promise", section="certificate")
def gap_promise(run: Run) -> Arrays:
    """What is gained over no weights, and how far P is above its least; fits stopped at six gaps, four strengths."""
    lower, upper = [], []
    for C, asked in product((0.01, *STRENGTHS), (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)):
        small = _small(run, C)
        fit, least = small.fit(asked), small.fit(1e-12).primal
        assert fit.gap <= asked
        gain, possible = small.at_zero - fit.primal, small.at_zero - least
        lower += [(1 - fit.gap) * possible / small.at_zero, (fit.primal - least) / small.at_zero]
        upper += [gain / small.at_zero, fit.gap * fit.primal / small.at_zero]
    return {"lower": np.array(lower), "upper": np.array(upper)}


@measures("B-aggregation-exact", section="certificate")
def aggregation_exact(run: Run) -> Arrays:
    """Every click as an example with a list of its own, against clicks that were added up."""
    small = _small(run, 10.0)
    log, cuts = small.log, small.log.offsets
    term = np.repeat(np.arange(len(log.clicks)), log.clicks)  # one for every click
    own = [np.arange(cuts[q], cuts[q + 1]) for q in log.query[term]]
    offsets = np.append(0, np.cumsum([len(docs) for docs in own]))
    place, ones = log.document[term] - np.array([docs[0] for docs in own]), np.ones(len(own), dtype=np.int64)
    single = cf.ClickLog(
        document=offsets[:-1] + place, rank=log.rank[term], impressions=ones, clicks=ones, sessions=ones,
        offsets=offsets, propensity=log.propensity[term],
    )  # fmt: skip
    one_by_one = cf.fit_proprank(small.x[np.concatenate(own)], single, C=small.C, gap=1e-12)
    best = small.fit(1e-12)
    unit = np.linalg.norm(best.weights)
    return {
        "left": np.append(one_by_one.primal / best.primal, one_by_one.weights / unit),
        "right": np.append(1.0, best.weights / unit),
    }


def _places(frame: pd.DataFrame, **where: Any) -> FloatArray:
    """Places gained, seed by seed, by the fits that clicks chose in the rows with these values."""
    keep = frame["chosen"].to_numpy()
    for name, value in where.items():
        keep = keep & (frame[name] == value).to_numpy()
    return np.asarray(frame[keep].sort_values("seed")["places"], dtype=np.float64)


def _best(frame: pd.DataFrame, learner: str, clicks: int) -> FloatArray:
    """Places gained with the C that is best by the labels of the test queries, seed by seed."""
    rows = frame[(frame["learner"] == learner) & (frame["clicks"] == clicks)]
    return np.asarray(rows.groupby("seed")["places"].max(), dtype=np.float64)


@measures("A18-naive-svm", section="propensities")
def naive_svm(run: Run) -> Arrays:
    """The largest log of each seed: full weights and raw clicks."""
    frame, many = learned(run), sizes(run)[-1]
    return {
        "larger": _places(frame, learner="full", clicks=many),
        "smaller": _places(frame, learner="raw", clicks=many),
    }


@measures("control-dealt-weights", section="propensities")
def dealt_weights(run: Run) -> Arrays:
    """The same clicks with the same weights, dealt to them at random, and raw clicks."""
    return {
        "left": _places(controls(run), control="dealt"),
        "right": _places(learned(run), learner="raw", clicks=sizes(run)[-1]),
    }


@measures("A18-more-clicks", section="propensities")
def more_clicks(run: Run) -> Arrays:
    """The largest log and the smallest."""
    few, *_, many = sizes(run)
    larger, smaller = (_places(learned(run), learner="full", clicks=clicks) for clicks in (many, few))
    return {"larger": larger, "smaller": smaller}


@measures("control-robots", section="propensities")
def robots(run: Run) -> Arrays:
    """The smallest log with clicks of robots, and without."""
    return {
        "lower": _places(controls(run), control="robots"),
        "upper": _places(learned(run), learner="full", clicks=sizes(run)[0]),
    }


@measures("B-few-clicks-any-strength", section="strength")
def few_clicks_any_strength(run: Run) -> Arrays:
    """Raw clicks with the C that clicks chose, and full weights with the best C by labels."""
    frame, few = learned(run), sizes(run)[0]
    return {"larger": _places(frame, learner="raw", clicks=few), "smaller": _best(frame, "full", few)}


@measures("B-choose-by-clicks", section="strength")
def choose_by_clicks(run: Run) -> Arrays:
    """The C that clicks chose, and the best of those tried."""
    frame, third = learned(run), sizes(run)[2]
    return {"left": _places(frame, learner="full", clicks=third), "right": _best(frame, "full", third)}


def _believing(run: Run, assumed: float, capped: bool = False) -> FloatArray:
    return _places(wrong_exponents(run), assumed=assumed, capped=capped)


@measures("A18-underestimated-propensities", section="fails")
def underestimated_propensities(run: Run) -> Arrays:
    """Full weights of the exponents 1 and 1.5."""
    return {"larger": _believing(run, 1.0), "smaller": _believing(run, 1.5)}


@measures("control-small-error", section="fails")
def small_error(run: Run) -> Arrays:
    """Full weights of the exponents 1.1 and 1."""
    return {"left": _believing(run, 1.1), "right": _believing(run, 1.0)}


@measures("A18-clipping-underestimated", section="fails")
def clipping_underestimated(run: Run) -> Arrays:
    """Weights of the exponent 1.5, capped and not."""
    return {"larger": _believing(run, 1.5, capped=True), "smaller": _believing(run, 1.5)}


@measures("control-cap-on-true-weights", section="fails")
def cap_on_true_weights(run: Run) -> Arrays:
    """Weights of the exponent 1, capped and not."""
    return {"lower": _believing(run, 1.0, capped=True), "upper": _believing(run, 1.0)}
