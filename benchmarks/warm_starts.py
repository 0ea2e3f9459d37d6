"""Warm starts across logs, logging policies and C: how many certificates are wrong.

    python -m benchmarks.warm_starts [--starts N]

Each trial draws documents (normal, rounded or repeated features; lists of equal or of different lengths), two logs of
two policies (deterministic, ε-greedy or Plackett–Luce, each after scores of its own; half of them with one clicked
document in each list, so that their pairs often stand in blocks of the same shapes) and two values of C.  SVM PropRank
or SVM PropDCG learns from the first log; SVM PropRank begins there and learns from the second.

The judge shares no code with the solver: Clarabel's interior-point method solves the quadratic program, and both bounds
on the optimum are computed from its solution in plain NumPy.  A certificate is wrong if

    P is not the objective of the weights (to 1e-9, in single precision 1e-6), P < D,
    P lies below the program's lower bound, D above its upper bound, or the gap above the tolerance.
"""

from __future__ import annotations

import argparse
import collections
import time
from dataclasses import replace

import clarabel
import numpy as np
from scipy import sparse

from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    EpsilonGreedyPolicy,
    PlackettLucePolicy,
    PositionBasedUser,
    draw_sessions,
    fit_propdcg,
    fit_proprank,
    power_examination,
    simulate_clicks,
)
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.learning.proprank import LinearFit

PLACES = 5


def draw_policy(offsets: np.ndarray, rng: np.random.Generator) -> LoggingPolicy:
    scores = rng.normal(size=offsets[-1])
    kind = rng.choice(["deterministic", "greedy", "Plackett-Luce"])
    if kind == "greedy":
        return EpsilonGreedyPolicy.rank_by(scores, offsets, rng=rng, epsilon=np.full(PLACES, 0.3))
    if kind == "Plackett-Luce":
        return PlackettLucePolicy(scores, offsets, cutoff=PLACES)
    return DeterministicPolicy.rank_by(scores, offsets, rng=rng)


def draw_log(x: np.ndarray, offsets: np.ndarray, rng: np.random.Generator) -> ClickLog:
    """Clicks by a noisy position-based user; at least one."""
    relevance = (x @ rng.normal(size=x.shape[1]) + rng.normal(size=len(x)) > 0.5).astype(float)
    user = PositionBasedUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
    while True:
        sessions = draw_sessions(int(rng.choice([30, 200, 2_000])), len(offsets) - 1, rng=rng)
        log = simulate_clicks(draw_policy(offsets, rng), user, relevance=relevance, sessions=sessions, rng=rng)
        if log.n_clicks:
            return log


def enclose(x: np.ndarray, offsets: np.ndarray, log: ClickLog, C: float, w: np.ndarray) -> tuple[float, float, float]:
    """Lower and upper bound on the optimum by a quadratic program, and the objective of ``w``."""
    mass = np.bincount(log.document, log.clicks / log.propensity, minlength=len(x)) * (C / log.n_clicks)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    clicked, other = np.nonzero(np.equal.outer(query, query) & (mass > 0)[:, None] & ~np.eye(len(x), dtype=bool))
    d, c = x[clicked] - x[other], mass[clicked]
    size = float(np.abs(d).max(initial=0.0)) or 1.0
    n, m, unit = x.shape[1], len(c), max(1.0, float(c.max(initial=0.0)) * size**2)

    def objective(v: np.ndarray) -> float:
        return float(0.5 * v @ v + c @ np.maximum(1 - d @ v, 0))

    if m == 0:
        return 0.0, 0.0, objective(w)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    slack = sparse.eye(m)
    solution = clarabel.DefaultSolver(
        sparse.diags(np.concatenate([np.full(n, 1 / unit), np.zeros(m)])).tocsc(),
        np.concatenate([np.zeros(n), c * size**2 / unit]),
        sparse.bmat([[sparse.csc_matrix(-d / size), -slack], [None, -slack]]).tocsc(),
        np.concatenate([-np.ones(m), np.zeros(m)]),
        [clarabel.NonnegativeConeT(2 * m)],
        settings,
    ).solve()
    a = np.clip(np.array(solution.z)[:m] * unit / size**2, 0, c)
    v = a @ d
    return float(a.sum() - 0.5 * v @ v), objective(np.array(solution.x)[:n] / size), objective(w)


def one_term_in_each(log: ClickLog, rng: np.random.Generator) -> ClickLog:
    """The log with the clicks on one random document of each list, all others forgotten."""
    clicked = rng.permutation(np.flatnonzero(log.clicks))
    kept = clicked[np.unique(log.query[clicked], return_index=True)[1]]
    return replace(log, clicks=np.where(np.isin(np.arange(len(log.clicks)), kept), log.clicks, 0))


def blocks(log: ClickLog) -> list[int]:
    """How many documents are clicked in lists of 1, 2, … documents."""
    clicked = np.unique(log.document[log.clicks > 0])
    return np.bincount(np.diff(log.offsets), np.histogram(clicked, log.offsets)[0]).tolist()


def wrong(found: LinearFit, tol: float, x: np.ndarray, bounds: tuple[float, float, float]) -> list[str]:
    lower, upper, here = bounds
    close = (1e-6 if x.dtype == np.float32 else 1e-9) * max(abs(here), 1e-300)
    faults = {
        "P is not the objective": abs(found.primal - here) > close,
        "P below D": found.primal < found.dual,
        "P below the optimum": found.primal < lower - close,
        "D above the optimum": found.dual > upper + close,
        "gap above the tolerance": found.gap > tol,
    }
    return [name for name, holds in faults.items() if holds]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=1_000)
    n_starts = parser.parse_args().starts
    faults: collections.Counter[str] = collections.Counter()
    n_wrong, alike, unsure, passes = 0, 0, 0, np.zeros(2)
    begin = time.perf_counter()
    for trial in range(n_starts):
        rng = np.random.default_rng([20, trial])
        sizes = np.full(10, 8) if rng.random() < 0.5 else rng.integers(1, 15, size=10)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        x = rng.normal(size=(offsets[-1], int(rng.integers(1, 9)))) * 10.0 ** rng.uniform(-1, 1)
        x = (x, np.round(x), np.repeat(x[::2], 2, axis=0)[: len(x)], x.astype(np.float32))[rng.integers(4)]
        first, second = draw_log(x, offsets, rng), draw_log(x, offsets, rng)
        if rng.random() < 0.5:
            first, second = one_term_in_each(first, rng), one_term_in_each(second, rng)
        C = 10.0 ** rng.uniform(-4, 4, size=2)
        tol = float(rng.choice([0.1, 1e-3, 1e-6]))
        learn = fit_propdcg if rng.random() < 0.3 else fit_proprank
        start = learn(x, first, C=float(C[0]))
        alike += blocks(first) == blocks(second)
        try:
            warm = fit_proprank(x, second, C=float(C[1]), gap=tol, start=start)
        except RuntimeError:
            n_wrong += 1
            faults["no certificate at all"] += 1
            continue
        cold = fit_proprank(x, second, C=float(C[1]), gap=tol)
        passes += warm.passes, cold.passes
        bounds = enclose(x.astype(np.float64), offsets, second, float(C[1]), warm.weights)
        unsure += bounds[1] - bounds[0] > 1e-6 * bounds[1]
        found = wrong(warm, tol, x, bounds)
        n_wrong += bool(found)
        faults.update(found)
    seconds = time.perf_counter() - begin
    print(
        f"{n_starts:,} warm starts in {seconds:.0f} s: {n_wrong} certificates wrong {dict(faults)}\n"
        f"  {alike} between logs whose pairs stand in blocks of the same shapes; "
        f"passes warm/cold {passes[0] / passes[1]:.2f}; program itself looser than 1e-6 in {unsure}"
    )


if __name__ == "__main__":
    main()
