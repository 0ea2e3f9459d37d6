"""Small random ranking machines, edge cases among them, and their optimum from an independent quadratic program."""

from dataclasses import dataclass
from functools import cache

import clarabel
import numpy as np
import oracles
from scipy import sparse

PROBLEMS = range(300)
KINDS = ("plain", "tied", "all equal", "duplicates", "one query", "only candidates", "few features", "many features")


@dataclass(frozen=True, eq=False)
class Machine:
    """One training problem; ``document`` lists every document once, in order, clicked or not."""

    kind: str
    features: np.ndarray
    offsets: np.ndarray
    clicks: np.ndarray
    propensity: np.ndarray
    C: float

    @property
    def document(self) -> np.ndarray:
        return np.arange(len(self.features))

    @property
    def rank(self) -> np.ndarray:
        return np.concatenate([np.arange(1, m + 1) for m in np.diff(self.offsets)])

    @property
    def masses(self) -> dict[int, float]:
        return oracles.click_masses(self.document, self.clicks, self.propensity, self.C)

    def primal(self, w: np.ndarray) -> float:
        return oracles.machine(self.features, self.offsets, self.masses, w)


@cache
def machine(seed: int) -> Machine:
    """Features scaled by 1e-2 … 1e2, C from 1e-3 to 1e5, documents without a click, and inverse propensities of 1e4."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n_queries = 1 if kind == "one query" else int(rng.integers(1, 6))
    sizes = np.ones(n_queries, dtype=int) if kind == "only candidates" else rng.integers(1, 9, size=n_queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    n_features = {"few features": 1, "many features": 20}.get(kind, int(rng.integers(1, 7)))
    x = rng.normal(size=(n, n_features))
    if kind == "tied":
        x = np.round(x)
    if kind == "all equal":
        x[:] = x[0]
    if kind == "duplicates":
        x[1::2] = x[: n - 1 : 2] if n > 1 else x[1::2]
    x *= 10.0 ** rng.uniform(-2, 2)
    clicks = rng.integers(0, 4, size=n) * (rng.random(n) < 0.6)
    clicks[0] += clicks.sum() == 0
    propensity = np.where(rng.random(n) < 0.2, 1e-4, rng.uniform(0.05, 1, size=n))
    return Machine(kind, x, offsets, clicks, propensity, float(10.0 ** rng.uniform(-3, 5)))


def log_of(problem: Machine):
    """The clicks of a problem, as the package that is imported *now* holds them."""
    from cfltr_core import ClickLog

    n_queries = len(problem.offsets) - 1
    enough = np.full(len(problem.document), 9)
    return ClickLog(
        document=problem.document, rank=problem.rank, impressions=enough, clicks=problem.clicks,
        propensity=problem.propensity, sessions=np.full(n_queries, 9), offsets=problem.offsets,
    )  # fmt: skip


@dataclass(frozen=True)
class Optimum:
    """What encloses the optimum, from the program's own solution, and the solution itself."""

    lower: float
    upper: float
    weights: np.ndarray


@cache
def optimum(seed: int) -> Optimum:
    """The slack-constrained program of :func:`machine`, solved by Clarabel, an interior-point method."""
    problem = machine(seed)
    return solve(problem.features, problem.offsets, problem.masses)


def solve(features: np.ndarray, offsets: np.ndarray, masses: dict[int, float]) -> Optimum:
    """min ½‖w‖² + Σ c ξ, with ξ ≥ 0 and ξ ≥ 1 − w·(x_d − x_y).

    Stated in u = w/κ with κ the size of the differences, and divided by the largest weight, so that its numbers are
    near 1 whatever the scale of the features.  Both bounds are computed from the program's solution by literal loops.
    """
    pairs = oracles.svm_pairs(features, offsets, masses)
    n = features.shape[1]
    if not pairs:
        return Optimum(0.0, 0.0, np.zeros(n))
    d = np.array([x for x, _, _ in pairs])
    c = np.array([c for _, c, _ in pairs])
    size = float(np.abs(d).max()) or 1.0
    # w = u / size: ½‖u‖² / size², so that everything is multiplied by size² and divided by the largest weight.
    unit = max(1.0, float(c.max()) * size**2)
    m = len(c)
    p = sparse.diags(np.concatenate([np.full(n, 1 / unit), np.zeros(m)])).tocsc()
    q = np.concatenate([np.zeros(n), c * size**2 / unit])
    rows = sparse.vstack(
        [
            sparse.hstack([sparse.csc_matrix(-d / size), -sparse.eye(m)]),
            sparse.hstack([sparse.csc_matrix((m, n)), -sparse.eye(m)]),
        ]
    ).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    settings.max_iter = 500
    right = np.concatenate([-np.ones(m), np.zeros(m)])
    solution = clarabel.DefaultSolver(p, q, rows, right, [clarabel.NonnegativeConeT(2 * m)], settings).solve()
    w = np.array(solution.x)[:n] / size
    a = np.clip(np.array(solution.z)[:m] * unit / size**2, 0, c)
    return Optimum(oracles.dual_bound(pairs, a.tolist(), n), oracles.machine(features, offsets, masses, w), w)


def interesting(count: int) -> list[int]:
    """The first problems with at least one pair of different documents and double precision to spare."""
    found = []
    for seed in PROBLEMS:
        best = optimum(seed)
        if best.upper > 0 and best.upper - best.lower <= 1e-9 * best.upper and np.any(best.weights):
            found.append(seed)
        if len(found) == count:
            break
    return found
