"""The tests of the bounds and of the ranking machines can fail: signs, weights and constants of the source are broken.

Only what makes a result wrong is broken, never what makes it slow.
"""

from __future__ import annotations

import runpy
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from test_mutants import HERE, calls, mutated

FILES = {
    "bounds": "test_bounds.py",
    "sorted_lists": "test_bounds.py",
    "metrics": "test_bounds.py",
    "proprank": "test_proprank.py",
    "enclosure": "test_proprank.py",
    "hinge_solver": "test_proprank.py",
    "propdcg": "test_propdcg.py",
}
# A solver that is wrong may never close its gap, which is an error; NumPy's warnings fail a test as well.
FAILURES = (AssertionError, RuntimeError, RuntimeWarning, pytest.fail.Exception)
# Seconds for one mutant, more than all the tests of a file take.
LIMIT = 30

# module, what stands there, what is put instead
MUTANTS = {
    # bounds
    "margin 2": ("bounds", "z += (1 - scores[self.documents[terms]])", "z += (2 - scores[self.documents[terms]])"),
    "a document competes with itself": (
        "bounds",
        "total[terms] = value.sum(axis=1) - own[terms]",
        "total[terms] = value.sum(axis=1)",
    ),
    "bound, gradient turned round": ("bounds", "-force, 1.0 + s)", "force, 1.0 + s)"),
    "λ for its slope in the gradient": ("bounds", "c[rows] * lam.slope(1.0 + total)", "c[rows] * lam(1.0 + total)"),
    "slope one rank further": ("bounds", "lam.slope(1.0 + total)", "lam.slope(2.0 + total)"),
    "λ one rank further": ("bounds", "(c * lam(1.0 + s)).sum()", "(c * lam(2.0 + s)).sum()"),
    "gradient without weights": ("bounds", "c[rows] * lam.slope", "lam.slope"),
    "value without weights": ("bounds", "(c * lam(1.0 + s))", "(lam(1.0 + s))"),
    "surrogate rank without its 1": ("bounds", "-force, 1.0 + s)", "-force, s)"),
    "slope 1 at the kink": ("bounds", "slope = (z > 0).astype", "slope = (z >= 0).astype"),
    "smoothing off centre": ("bounds", "a += z.dtype.type(0.5)", "a += z.dtype.type(0.25)"),
    "smoothing without ½": ("bounds", "z += z.dtype.type(mu / 2) * (1 - a)", "z += z.dtype.type(mu) * (1 - a)"),
    "natural logarithm": ("bounds", "log_2 = float(sigma), math.log(2)", "log_2 = float(sigma), 1.0"),
    "logistic slope without σ": ("bounds", "* (sigma / log_2)", "* (1 / log_2)"),
    "logistic turned round": ("bounds", "value = (np.maximum(z, 0) +", "value = (np.maximum(-z, 0) +"),
    "clicked documents pushed down": (
        "bounds",
        "self.documents[terms], cost * slope",
        "self.documents[terms], -cost * slope",
    ),
    "rivals pulled up": ("bounds", "[start[first]] -= pulled", "[start[first]] += pulled"),
    "one term of a query alone": ("bounds", "np.add.reduceat(slope, first, axis=0) if", "slope[first] if"),
    "a document twice counts once": (
        "bounds",
        "np.add.at(force, self.documents[terms], cost * slope.sum(axis=1))",
        "force[self.documents[terms]] += cost * slope.sum(axis=1)",
    ),
    "sorted, margin 2": ("sorted_lists", "row, mine - 1", "row, mine - 2"),
    "sorted, a document competes with itself": ("sorted_lists", "sums -= mine - tau.imag", "sums -= 0"),
    "sorted, kinks count": ("sorted_lists", 'side="right")\n            k', 'side="left")\n            k'),
    "sorted, rivals pulled up": ("sorted_lists", "force[flat[order]] -=", "force[flat[order]] +="),
    # metrics
    "slope of DCG without ln 2": ("metrics", "np.log(2.0) / ((1.0 + r)", "1.0 / ((1.0 + r)"),
    "slope of DCG not squared": ("metrics", "np.log1p(r) ** 2)", "np.log1p(r))"),
    "slope of RBP turned round": ("metrics", "r: -(1.0 - p) * np.log(p)", "r: (1.0 - p) * np.log(p)"),
    "slope of RBP without its logarithm": ("metrics", "r: -(1.0 - p) * np.log(p) *", "r: (1.0 - p) *"),
    "slope beyond the cut-off": ("metrics", "np.where(r <= k, derivative(r), 0.0)", "derivative(r)"),
    # ranking machines
    "C per session": ("proprank", "C / log.n_clicks", "C / log.n_sessions"),
    "C not divided": ("proprank", "(C / log.n_clicks)", "C"),
    "propensity for its inverse": (
        "proprank",
        "log.clicks[clicked] / log.propensity",
        "log.clicks[clicked] * log.propensity",
    ),
    "no propensity": ("proprank", "log.clicks[clicked] / log.propensity[clicked]", "log.clicks[clicked]"),
    "clicks not counted": ("proprank", "log.clicks[clicked] / log.propensity", "1.0 / log.propensity"),
    "primal without ½": ("hinge_solver", "float(0.5 * w @ w + point.exact)", "float(w @ w + point.exact)"),
    "primal of the smoothed hinge": ("hinge_solver", "0.5 * w @ w + point.exact", "0.5 * w @ w + point.smooth"),
    "dual without ½": ("hinge_solver", "float(point.dual - 0.5 * v @ v)", "float(point.dual - v @ v)"),
    "dual without the norm": ("hinge_solver", "float(point.dual - 0.5 * v @ v)", "float(point.dual)"),
    "dual of w for v": ("hinge_solver", "float(point.dual - 0.5 * v @ v)", "float(point.dual - 0.5 * w @ w)"),
    "primal, own document": (
        "hinge_solver",
        "np.maximum(z, 0).sum(axis=1) - own[terms]",
        "np.maximum(z, 0).sum(axis=1)",
    ),
    "slopes, own document": ("hinge_solver", "- start] = -1e30", "- start] = 0.5"),
    "hinge sums without their weights": (
        "hinge_solver",
        "exact += float(mass @ self.cost.value(total))",
        "exact += float(self.cost.value(total).sum())",
    ),
    "slopes without the price": ("hinge_solver", "dual += float(price @ a.sum(", "dual += float(mass @ a.sum("),
    "price without κ′": ("hinge_solver", "price = mass * self.cost.slope(total)", "price = mass"),
    "dual without the tangent": ("hinge_solver", "dual += float(mass @ value - price @ total)", "dual += 0.0"),
    "forces without their weights": ("hinge_solver", "first, a, price)", "first, a, np.ones_like(price))"),
    "search uphill": ("hinge_solver", "gradient = w - v", "gradient = v - w"),
    "gradient without w": ("hinge_solver", "gradient = w - v", "gradient = -v"),
    "slopes beyond 1": (
        "hinge_solver",
        "a = np.clip(centre + z * unit(1 / mu), 0, 1)",
        "a = np.clip(centre + z * unit(1 / mu), 0, 2)",
    ),
    "slopes below 0": ("hinge_solver", "z * unit(1 / mu), 0, 1)", "z * unit(1 / mu), -1, 1)"),
    "centres dropped": ("hinge_solver", "centre[:] = np.where(centre < 0, centre, a)", "pass"),
    "centres turned round": ("hinge_solver", "np.where(centre < 0, centre, a)", "np.where(centre < 0, centre, 1 - a)"),
    "centres for the own document": ("hinge_solver", "np.where(centre < 0, centre, a)", "a + 0.1"),
    "best primal without its weights": (
        "hinge_solver",
        "best.weights, best.primal = w, primal",
        "best.primal = primal",
    ),
    "stops at twice the gap": (
        "hinge_solver",
        "wanted, rounding = self.tol *",
        "wanted, rounding = 2 * self.tol *",
    ),
    "the worst dual": (
        "hinge_solver",
        "best.dual = max(best.dual, dual)",
        "best.dual = max(best.dual, dual + 1e-3 * abs(dual))",
    ),
    "always single precision": (
        "hinge_solver",
        "if crossed or wanted < SPARE * rounding:\n                if self.matrix.dtype != np.float64:",
        "if crossed or wanted < SPARE * rounding:\n                if False:",
    ),
    "scores in the precision of the features": (
        "proprank",
        "Matrix(x, double=True).times",
        "Matrix(x, double=False).times",
    ),
    "one block of rows": ("hinge_solver", "out += rho[i : i + self.rows]", "out = rho[i : i + self.rows]"),
    "step without its length": ("hinge_solver", "return w + reached * direction", "return w + direction"),
    "gap not against what can be gained": (
        "enclosure",
        "return min(primal - least, at_zero - dual)",
        "return primal - least",
    ),
    "at w = 0 a document competes with itself": (
        "hinge_solver",
        "nothing + self.lists.rivals",
        "nothing + 1 + self.lists.rivals",
    ),
    # the convex-concave procedure
    "λ for its slope": ("propdcg", "slope, lam.slope(1 + s_fit)", "slope, -lam(1 + s_fit)"),
    "slope of the next rank": ("propdcg", "used = slope = lam.slope(1 + s)", "used = slope = lam.slope(2 + s)"),
    "surrogate without c": ("propdcg", "mass * slope, C, accuracy", "slope, C, accuracy"),
    "surrogate without λ′": ("propdcg", "mass * slope, C, accuracy", "mass, C, accuracy"),
    "objective without ½": ("propdcg", "float(0.5 * fit.weights", "float(1.0 * fit.weights"),
    "objective of the next rank": ("propdcg", "mass @ lam(1 + s))", "mass @ lam(2 + s))"),
    "objective without c": ("propdcg", "+ mass @ lam(1 + s))", "+ lam(1 + s).sum())"),
    "takes weights that are worse": ("propdcg", "if value < objective[-1] or np.isinf(best.primal):", "if True:"),
    "shows the last value, not the best": (
        "propdcg",
        "objective.append(min(value, objective[-1]))",
        "objective.append(value)",
    ),
    "convex cost, slope of the next rank": ("propdcg", "lambda t: lam.slope(1 + t))", "lambda t: lam.slope(2 + t))"),
    "convex cost of the next rank": ("propdcg", "Cost(lambda t: lam(1 + t)", "Cost(lambda t: lam(2 + t)"),
    "convex and concave exchanged": ("propdcg", 'if over.any() else "convex"', 'if under.any() else "convex"'),
    "both at once allowed": ("propdcg", "if over.any() and under.any()", "if False"),
    "may decrease": ("propdcg", "if len(fall):", "if False:"),
    "one round only": (
        "propdcg",
        "(fall <= tol and accuracy == inner_tol)",
        "(fall <= 1e9)",
    ),
    # the choice of C
    "largest estimate": ("propdcg", "min(tried, key=estimates", "max(tried, key=estimates"),
    "worst documents first": ("propdcg", "rank_weights(scores, lists", "rank_weights(-scores, lists"),
    "a plateau is an edge": ("propdcg", "estimates[end] < estimates[inner]", "estimates[end] <= estimates[inner]"),
    "grid extended inwards": ("propdcg", "end * end / inner", "inner * inner / end"),
    "one value too many": ("propdcg", "< len(values) + extend:", "<= len(values) + extend:"),
    "trained from the wrong end": (
        "propdcg",
        "try_value(end * end / inner, fits[end])",
        "try_value(end * end / inner, fits[inner])",
    ),
}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An endless mutant is no caught mutant: it ends with an error."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"still running after {seconds} s: a mutant must be wrong, not slow")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def caught(file: str) -> bool:
    """Whether a test of the file fails with the package as it can be imported now."""
    for name, test in runpy.run_path(str(HERE / file)).items():
        if name.startswith("test_"):
            for arguments in calls(test):
                try:
                    test(**arguments)
                except FAILURES:
                    return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    with mutated(*MUTANTS[name]), at_most(LIMIT):
        assert caught(FILES[MUTANTS[name][0]])
