"""SVM PropRank and SVM PropDCG: against LIBLINEAR and an interior-point method, at the sizes of public collections.

    python -m benchmarks.svm [PART …] [--cap SECONDS]

``linear``   LinearSVC(loss="hinge") on the explicit differences of features, built before the clock starts.  It counts
             as solved with the weakest tolerance at which its objective is within 1e-3 of ours.
``cone``     cvxpy with Clarabel on the slack-constrained program.
``yahoo``, ``istella``   passes over the features, time and memory at the shapes of two public collections.
``growth``   from 10⁵ to 10⁷ pairs.
``clicks``   from 10⁴ to 10⁸ clicks on the same documents.
``warm``     rounds of the convex-concave procedure, and a grid of C, begun from the last solution or from nothing.

The data are generated: normal features, relevance a noisy linear function of them, a noisy logging policy, clicks of a
position-based user.  A peer that does not end within ``--cap`` seconds gives a lower bound on its ratio.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.timing import peak_memory, table
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    PositionBasedUser,
    dcg,
    draw_sessions,
    fit_propdcg,
    fit_proprank,
    power_examination,
    simulate_clicks,
    surrogate_ranks,
)
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.learning.proprank import LinearFit, minimise, training_problem


@dataclass(frozen=True)
class Problem:
    features: np.ndarray
    offsets: np.ndarray
    log: ClickLog

    def fit(self, C: float, tol: float = 1e-3, start: LinearFit | None = None) -> LinearFit:
        return fit_proprank(self.features, self.log, C=C, gap=tol, start=start)

    @property
    def n_pairs(self) -> int:
        return training_problem(self.features, self.log, C=1.0)[1].n_pairs

    def __str__(self) -> str:
        n, d = self.features.shape
        return f"{len(self.offsets) - 1:,} queries, {n:,} × {d}, {self.log.n_clicks:,} clicks, {self.n_pairs:,} pairs"


def generate(n_queries: int, mean_length: float, n_features: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Features, offsets, relevance and the scores of a logging policy; gamma list lengths, as in the collections."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.gamma(2, mean_length / 2, n_queries).astype(int), 2, 6 * int(mean_length))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    x = rng.standard_normal((n, n_features), dtype=np.float32)
    quality = x @ (rng.normal(size=n_features) / np.sqrt(n_features)).astype(np.float32) + rng.normal(size=n)
    return x, offsets, (quality > np.quantile(quality, 0.75)).astype(float), quality + 2 * rng.normal(size=n)


def clicked(data: tuple[np.ndarray, ...], n_clicks: float, seed: int = 1) -> Problem:
    x, offsets, relevance, logging = data
    rng = np.random.default_rng(seed)
    policy = DeterministicPolicy.rank_by(logging, offsets, rng=rng)
    user = PositionBasedUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
    sessions = draw_sessions(
        sessions_for_clicks(policy, user, n_clicks=n_clicks, relevance=relevance), len(offsets) - 1, rng=rng
    )
    return Problem(x, offsets, simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=rng))


def timed(call: Callable[[], LinearFit]) -> tuple[float, LinearFit]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def pairs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Every x_d − x_y, and its weight at C = 1."""
    _, lists, mass = training_problem(problem.features, problem.log, C=1.0)
    differences = np.empty((lists.n_pairs, problem.features.shape[1]))
    weights = np.empty(lists.n_pairs)
    at = 0
    query = np.searchsorted(problem.offsets, lists.documents, side="right") - 1
    for d, q, c in zip(lists.documents, query, mass, strict=True):
        rivals = np.setdiff1d(np.arange(problem.offsets[q], problem.offsets[q + 1]), [d])
        differences[at : at + len(rivals)] = problem.features[d] - problem.features[rivals]
        weights[at : at + len(rivals)] = c
        at += len(rivals)
    return differences, weights


def capped(call: Callable[[], np.ndarray], seconds: float) -> tuple[float, np.ndarray | None]:
    """Time and result of ``call`` in a process of its own, which is ended after ``seconds``."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def work() -> None:
        start = time.perf_counter()
        result = call()
        answers.put((time.perf_counter() - start, result))

    process = context.Process(target=work)
    process.start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return seconds, None
    finally:
        process.terminate()
        process.join()


def objective(differences: np.ndarray, weights: np.ndarray, C: float, w: np.ndarray) -> float:
    return float(0.5 * w @ w + C * weights @ np.maximum(1 - differences @ w, 0))


def linear(cap: float) -> None:
    problem = clicked(generate(900, 24, 700), 20_000)
    differences, weights = pairs(problem)
    print(f"{problem}; explicit pairs {differences.nbytes / 1e6:.0f} MB")
    # A classifier needs two classes: every other difference is turned round.
    side = np.where(np.arange(len(weights)) % 2, 1.0, -1.0)
    turned = differences * side[:, None]
    for C in (1.0, 10.0, 100.0):
        base, found = timed(lambda C=C: problem.fit(C))
        np.testing.assert_allclose(objective(differences, weights, C, found.weights), found.primal, rtol=1e-4)
        rows, left = [(f"fit_proprank, C = {C:g}, {found.passes:.0f} passes, gap {found.gap:.0e}", base, 1.0)], cap
        for tol in (0.1, 0.01, 0.001):

            def peer(tol: float = tol, C: float = C) -> np.ndarray:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about its iterations: the objective decides
                    machine = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=tol, max_iter=10**6)
                    return machine.fit(turned, side, sample_weight=weights * C).coef_[0].astype(float)

            seconds, w = capped(peer, left)
            excess = np.inf if w is None else objective(differences, weights, C, w) / found.primal - 1
            note = "stopped" if w is None else f"objective {excess:+.0e}"
            rows.append((f"LinearSVC, tol {tol:g}, {note}", seconds, seconds / base))
            if w is None or excess <= 1e-3:
                break
        print(table(rows, "s"), flush=True)


def cone(cap: float) -> None:
    import cvxpy as cp

    problem = clicked(generate(60, 24, 700), 1_500)
    differences, weights = pairs(problem)
    print(problem)
    for C in (1.0, 10.0, 100.0):
        base, found = timed(lambda C=C: problem.fit(C))

        def peer(C: float = C) -> np.ndarray:
            w, xi = cp.Variable(differences.shape[1]), cp.Variable(len(weights), nonneg=True)
            program = cp.Problem(
                cp.Minimize(cp.sum_squares(w) / 2 + C * weights @ xi),
                [differences @ w >= 1 - xi],
            )
            program.solve(solver=cp.CLARABEL)
            return np.asarray(w.value)

        seconds, w = capped(peer, cap)
        note = "stopped"
        if w is not None:
            value = objective(differences, weights, C, w)
            assert found.dual <= value * (1 + 1e-6)
            assert found.primal <= value * (1 + 1.1e-3)
            note = f"objective {value / found.primal - 1:+.0e}"
        print(
            table(
                [
                    (f"fit_proprank, C = {C:g}, {found.passes:.0f} passes, gap {found.gap:.0e}", base, 1.0),
                    (f"cvxpy + Clarabel, {note}", seconds, seconds / base),
                ],
                "s",
            ),
            flush=True,
        )


def shape(n_queries: int, mean_length: float, n_features: int, n_clicks: float) -> None:
    problem = clicked(generate(n_queries, mean_length, n_features), n_clicks)
    x = problem.features
    ones = np.ones(x.shape[1], np.float32)
    one_pass = min(timed(lambda: x @ ones)[0] for _ in range(3))
    print(f"{problem}; features {x.nbytes / 1e9:.2f} GB, one pass {one_pass:.2f} s", flush=True)
    for C in (1.0, 10.0, 100.0):
        seconds, found = timed(lambda C=C: problem.fit(C))
        print(f"  C = {C:5g}: {seconds:6.1f} s, {found.passes:5.0f} passes, gap {found.gap:.1e}", flush=True)
    print(f"  memory above the features: {peak_memory(lambda: problem.fit(1.0)):.0f} MB", flush=True)


def growth() -> None:
    for n_queries in (830, 8_300, 83_000):
        problem = clicked(generate(n_queries, 24, 50), 40 * n_queries)
        size = problem.n_pairs
        for C in (1.0, 100.0):
            seconds, found = timed(lambda problem=problem, C=C: problem.fit(C))
            print(
                f"  {size:11,} pairs, C = {C:4g}: {seconds:7.2f} s, {found.passes:4.0f} passes, "
                f"{seconds / size / found.passes * 1e9:5.1f} ns per pair and pass",
                flush=True,
            )


def clicks() -> None:
    data = generate(4_000, 24, 136)
    for n_clicks in (1e4, 1e5, 1e6, 1e7, 1e8):
        problem = clicked(data, n_clicks)
        terms = int((problem.log.clicks > 0).sum())
        seconds, found = timed(lambda problem=problem: problem.fit(10.0))
        print(
            f"  {problem.log.n_clicks:12,} clicks on {terms:7,} documents: {seconds:6.2f} s, "
            f"{found.passes:4.0f} passes",
            flush=True,
        )


def warm() -> None:
    problem = clicked(generate(4_000, 24, 136), 400_000)
    print(problem)
    lam = dcg()
    for C in (100.0, 1_000.0, 10_000.0):
        x, lists, mass = training_problem(problem.features, problem.log, C=C)
        fit, rows, sums = None, [], surrogate_ranks(np.zeros(len(x)), problem.offsets, documents=lists.documents)
        for _ in range(6):
            weights = mass * lam.slope(sums)
            cold = minimise(x, lists, weights, C, 1e-3)
            fit = minimise(x, lists, weights, C, 1e-3, fit)
            rows.append((fit.passes, cold.passes))
            sums = surrogate_ranks(fit.decision_function(x), problem.offsets, documents=lists.documents)
        later = np.array(rows[1:])
        print(
            f"  PropDCG, C = {C:6g}: passes warm/cold {', '.join(f'{a:.0f}/{b:.0f}' for a, b in rows)}; "
            f"from the second round {later[:, 0].sum() / later[:, 1].sum():.2f}"
        )
        done = fit_propdcg(x, problem.log, C=C, metric=lam)
        fall = -np.diff(done.objective) / np.abs(done.objective[1:])
        print(
            f"    fit_propdcg: {done.passes:.0f} passes in {len(fall)} rounds; relative falls of the objective "
            f"{', '.join(f'{f:.0e}' for f in fall)}",
            flush=True,
        )
    for step in (10**0.5, 10.0):
        grid = np.geomspace(0.1, 1000, round(4 / np.log10(step)) + 1)
        start, passes, cold = None, [], []
        for C in grid:
            start = problem.fit(float(C), start=start)
            passes.append(start.passes)
            cold.append(problem.fit(float(C)).passes)
        print(
            f"  PropRank, C = 0.1 … 1000 by {step:.3g}: passes warm/cold "
            f"{', '.join(f'{a:.0f}/{b:.0f}' for a, b in zip(passes, cold, strict=True))}; "
            f"together {sum(passes) / sum(cold):.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parts = {
        "cone": cone,
        "linear": linear,
        "warm": lambda _: warm(),
        "clicks": lambda _: clicks(),
        "growth": lambda _: growth(),
        "yahoo": lambda _: shape(20_000, 24, 700, 1e6),
        "istella": lambda _: shape(20_000, 103, 220, 1e6),
    }
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--cap", type=float, default=600.0)
    options = parser.parse_args()
    for name in options.part or parts:
        print(f"{name}:", flush=True)
        parts[name](options.cap)


if __name__ == "__main__":
    main()
