"""The exact tests can fail: one thing at a time is broken in the package, and they must notice.

A fresh copy of the package is imported with one piece of its source replaced, and the exact tests are run
against it until one fails.  With nothing replaced all of them pass.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = Path(importlib.util.find_spec("cfltr_core").origin).parent
FILES = (
    "test_every_small_list.py",
    "test_negative_controls.py",
    "test_variances.py",
    "test_expectations.py",
    "test_displays.py",
    "test_sgd.py",
)
LIKELIEST = {
    "policies": "test_displays.py",
    "stochastic_policies": "test_displays.py",
    "convergence": "test_sgd.py",
    "countersample": "test_sgd.py",
    "sampling": "test_sgd.py",
}

# module, what stands there, what is put instead
MUTANTS = {
    "no inverse propensity": (
        "estimators",
        "np.divide(1.0, log.propensity, out=np.zeros_like(log.propensity), where=log.propensity > 0)",
        "np.ones(len(log.document))",
    ),
    "inverse propensity squared": ("estimators", "np.divide(1.0, log.propensity,", "np.divide(1.0, log.propensity**2,"),
    "divided by clicks": ("estimators", ".sum()) / log.n_sessions", ".sum()) / max(1, log.n_clicks)"),
    "clipped from below": ("estimators", "np.minimum(_inverse(log), clip)", "np.maximum(_inverse(log), clip)"),
    "naive with weights": ("estimators", "np.ones(len(log.document)), unit)", "_inverse(log), unit)"),
    "self-normalised by clicks": ("estimators", "total = float(weights.sum())", "total = float(log.clicks.sum())"),
    "variance without n / (n - 1)": ("estimators", "size / (size - 1) * squares", "squares"),
    "variance not centred": (
        "estimators",
        "a, value, float(log.n_sessions), unit)",
        "a, 0.0, float(log.n_sessions), unit)",
    ),
    "clicks of a session always together": ("estimators", "log.clicks * (1 - share)", "log.clicks * 0"),
    "clicks of a session always apart": ("estimators", "* log.clicks * (1 - share)", "* log.clicks"),
    "residual of the ratio not centred": ("estimators", "(lam - value) * inverse", "lam * inverse"),
    "queries counted as sessions": ("estimators", "size = log.n_sessions", "size = len(log.sessions)"),
    "Poisson instead of Bernoulli": ("estimators", "rho * (1 - rho)", "rho"),
    "no variance between queries": ("estimators", "(within.mean() + between)", "within.mean()"),
    "sample variance between queries": ("estimators", "cuts[:-1]).var()", "cuts[:-1]).var(ddof=1)"),
    "variance over S, not S squared": ("estimators", "per_query.sum() ** 2", "per_query.sum()"),
    "weight of rank + 1": ("metrics", "weight(np.arange(1.0, longest + 1))", "weight(np.arange(2.0, longest + 2))"),
    "ties optimistic": ("metrics", "return (best + worst) / 2.0", "return best.astype(np.float64)"),
    "tied weights optimistic": ("metrics", "np.where(best == worst, table[best - 1], mean)", "table[best - 1]"),
    "weight of the average rank": (
        "metrics",
        "return _shared(table, best, worst)",
        "return weight((best + worst) / 2.0)",
    ),
    "ranks ascending": ("metrics", "order = np.argsort(-scores, axis=1)\n", "order = np.argsort(scores, axis=1)\n"),
    "DCG as a gain": ("metrics", '"DCG", lambda r: -1.0', '"DCG", lambda r: 1.0'),
    "DCG with the natural logarithm": ("metrics", "r <= k, -1.0 / np.log2(1.0 + r)", "r <= k, -1.0 / np.log(1.0 + r)"),
    "precision one place short": ("metrics", "np.where(r <= k, -1.0 / k, 0.0)", "np.where(r < k, -1.0 / k, 0.0)"),
    "RBP as printed in Table 1": ("metrics", "-(1.0 - p) * p ** (r - 1.0)", "-(1.0 - p) / p**r"),
    "relevance left out": ("metrics", "np.add.reduceat(lam * rel,", "np.add.reduceat(lam,"),
    "ideal DCG without grade 1": ("metrics", "range(int(grades.max()), 0, -1)", "range(int(grades.max()), 1, -1)"),
    "gain 2^y": ("metrics", "np.exp2(grade) - 1.0", "np.exp2(grade)"),
    "empty queries counted": (
        "metrics",
        'if empty == "drop" else per_query',
        'if empty == "none" else np.nan_to_num(per_query)',
    ),
    "any eta is 1": ("users", "** -float(eta)", "** -1.0"),
    "shift forgotten": ("users", "(shift + rank) **", "(rank) **"),
    "noise on relevant documents too": ("users", "self.epsilon_minus * (1.0 - rel)", "self.epsilon_minus"),
    "hidden documents are examined": ("users", "np.where(shown, values, 0.0)", "values"),
    "policy-aware log keeps the examination": (
        "estimators",
        "propensity=chance[log.document])",
        "propensity=log.propensity)",
    ),
    "exposure times examination": (
        "estimators",
        "propensity=chance[log.document])",
        "propensity=chance[log.document] * log.propensity)",
    ),
    "hidden documents have a display mean": (
        "policies",
        "np.where(shown, place_values(value, rank), 0.0)",
        "place_values(value, rank)",
    ),
    "mixture without shares": ("policies", "share * policy.display_mean(value)", "policy.display_mean(value)"),
    "shares of displays forgotten": ("policies", "+ share * probability", "+ probability"),
    "everybody in the first arm": (
        "policies",
        "policy.impressions(dealt[:, i], rng)",
        "policy.impressions(dealt[:, 0], rng)",
    ),
    "explores among all, not the remaining": (
        "stochastic_policies",
        "alive.sum(axis=1) * eps / m",
        "alive.sum(axis=1) * eps / n",
    ),
    "greedy place never moves up": (
        "stochastic_policies",
        "eps * better / m + 1.0 - eps, 0.0",
        "eps * better / m, 0.0",
    ),
    "never passed over": ("stochastic_policies", "(eps * (m - 1 - better) / m)", "(eps * (m - better) / m)"),
    "last place drawn with the best": (
        "stochastic_policies",
        "last[:, 0] += split[queries, k]",
        "last[:, -1] += split[queries, k]",
    ),
    "late pages without the greedy ones": ("stochastic_policies", "split[:, k - 1 :].sum(axis=1)", "split[:, k - 1]"),
    "first exploring place not forced": (
        "stochastic_policies",
        "coins[:place], coins[place] = False, True",
        "coins[:place] = False",
    ),
    "explored twice": (
        "stochastic_policies",
        "todo = todo[(shown[:place, todo] == drawn).any(axis=0)]",
        "todo = todo[:0]",
    ),
    "share of the first place": (
        "stochastic_policies",
        "i == 0) * (1.0 - float(self.epsilon[place]))",
        "i == 0) * 1.0",
    ),
    "Plackett-Luce with replacement": ("stochastic_policies", "clash |= above == here", "clash |= above < -1"),
    "temperature multiplies": ("stochastic_policies", "sizes)) / self.temperature", "sizes)) * self.temperature"),
    "gaps between those above left out": ("stochastic_policies", "(below[1:] - up[:-1]).sum(axis=0)", "0.0"),
    "heaviest of the others left out": ("stochastic_policies", "+ (self._up[high] - up[-1])", ""),
    "gaps lost in rounding": ("stochastic_policies", "+ (self._up[high] - up[-1])", "+ self._up[high] - up[-1]"),
    "those above keep their weight": (
        "stochastic_policies",
        "zip(below, up - below,",
        "zip(below, 0.5 * (up - below),",
    ),
    "alias of the wrong column": (
        "stochastic_policies",
        "np.where(u < threshold[column], column, other[column])",
        "np.where(u < threshold[column], other[column], column)",
    ),
    "heavy columns keep too much": (
        "sampling",
        "np.clip(1.0 + surplus[:-1] - deficit[until], 0.0, 1.0)",
        "1.0",
    ),
    "light columns filled by the heaviest": (
        "sampling",
        "heavy[np.minimum(giver, len(heavy) - 1)]",
        "heavy[0]",
    ),
    "arrival without its density": (
        "stochastic_policies",
        "mass = step * (1.0 + np.exp(-x)) * time",
        "mass = step * time",
    ),
    "coarse quadrature": ("stochastic_policies", "STEP, START = 0.2,", "STEP, START = 0.5,"),
    "quadrature as coarse for long pages": ("stochastic_policies", "min(STEP, 0.5 / float(np.sqrt(places)))", "STEP"),
    "late start of the quadrature": ("stochastic_policies", "= 0.2, -4.2", "= 0.2, -2.0"),
    "place values not shifted": ("stochastic_policies", "later[:-1] += ahead[1:]", "later[:-1] += ahead[:-1]"),
    "error of a page, not of the mean": ("stochastic_policies", "/ m, 0.0)) / m)", "/ m, 0.0)))"),
    "rare documents' variance left out": ("stochastic_policies", "np.where(shown_on < 30, loss / m, 0.0)", "0.0"),
    "blocks joined without their gap": ("stochastic_policies", "gap**2 * (done * pages / (done + pages))", "0.0"),
    "order of sessions counted once": ("exact", "ways * prod(", "prod("),
    "binomial without its coefficient": ("exact", "comb(n, c) * p**c", "p**c"),
    "second moment for variance": ("exact", "p * (x - mean) ** 2", "p * x**2"),
    "weights not counted": ("convergence", "axis=1, weights=counts)", "axis=1)"),
    "mean square for RMS": ("convergence", "float(np.sqrt(square))", "float(square)"),
    "bound falls as 1 / T": ("convergence", "np.asarray(b * s / np.sqrt(t))", "np.asarray(b * s / t)"),
    "learning rate without the root": ("convergence", "b / (s * np.sqrt(checks", "b / (s * (checks"),
    "steps not squared": ("convergence", '"accuracy")) ** 2', '"accuracy"))'),
    "second moments exchanged": ("convergence", 'sampling == "uniform" else', 'sampling == "weighted" else'),
    "norm not squared": ("convergence", "factor * w * norms**2", "factor * w * norms"),
    "margin of zero": ("convergence", "[:, None] > -1.0)", "[:, None] > 0.0)"),
    "own document not taken off": (
        "convergence",
        "return out\n\n\ndef gradient_bounds",
        "return -out\n\n\ndef gradient_bounds",
    ),
    "bounds of squared norms": ("convergence", "axis=2).sum(axis=1)", "axis=2).max(axis=1)"),
    "exact runs ascend": ("convergence", "state[:, None] - rate * g", "state[:, None] + rate * g"),
    "average of the steps after": ("convergence", "self.iterates.mean(axis=1)", "self.iterates[:, 1:].mean(axis=1)"),
    "Lemma 14.1 without its half": ("convergence", "alpha / 2 * squares.sum", "alpha * squares.sum"),
    "Lemma 14.1, other half": ("convergence", "float(star @ star) / (2 * alpha)", "float(star @ star) / alpha"),
    "moment without its half": ("convergence", "alpha / 2 * moment", "alpha * moment"),
    "as printed in 17a": ("convergence", "alpha / 2 * top**2", "alpha * top**2"),
    "Jensen the other way": ("convergence", "(at.mean(axis=1) - at_average)", "(at_average - at.mean(axis=1))"),
    "alias table forgets the rest": ("sampling", "left[high] -= 1.0 - left[low]", "left[high] -= left[low]"),
    "draws never take the alias": (
        "sampling",
        "copyto(column, self.alias.take",
        "copyto(column.copy(), self.alias.take",
    ),
    "draws from ranks": ("countersample", "(counts * weights, np.full", "(weights, np.full"),
    "M for the mean weight": (
        "countersample",
        "np.full(len(clicked), summary.mean)",
        "np.full(len(clicked), summary.maximum)",
    ),
    "IPS-SGD without weights": ("countersample", '"ips": (counts, weights)', '"ips": (counts, 1 + 0 * weights)'),
    "single clicks: margin of zero": ("countersample", "scores > scores[d] - 1.0", "scores > scores[d]"),
    "single clicks: own document left": ("countersample", "active[d] -= active.sum(axis=0)", "active[d] -= 1"),
    "batches: margin of zero": ("countersample", "(scores[own] - 1.0)[place]", "(scores[own])[place]"),
    "batches summed": ("countersample", "(sampler.factor[terms] / batch)", "(sampler.factor[terms])"),
    "average of the steps after, trained": (
        "countersample",
        "        summed += w\n        move(gradient, step)\n",
        "        move(gradient, step)\n        summed += w\n",
    ),
    "Adam without bias correction": ("countersample", "first / (1 - 0.9**step)", "first"),
    "Adagrad without the root": ("countersample", "(np.sqrt(second) + 1e-10)", "(second + 1e-10)"),
}


def where_is(name: str) -> Path:
    """The file of tests with that name, wherever it lies."""
    (path,) = TESTS.rglob(name)
    return path


def path_of(module: str) -> Path:
    """The file of a module, which is known by its name alone."""
    (path,) = PACKAGE.rglob(f"{module}.py")
    return path


class Mutator(importlib.abc.MetaPathFinder):
    """Imports one module of the package from changed source."""

    def __init__(self, module: str, source: str) -> None:
        path = path_of(module)
        self.name, self.source, self.path = (
            ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)),
            source,
            str(path),
        )

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(fullname, self.path)
        loader.get_code = lambda _: compile(self.source, self.path, "exec")
        return importlib.util.spec_from_loader(fullname, loader)


@contextmanager
def mutated(module: str, old: str, new: str) -> Iterator[None]:
    """Within, ``import cfltr_core`` gives a fresh package with that one change."""
    source = path_of(module).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{module}.py holds {old!r} {source.count(old)} times: bring the mutant up to date"
    finder = Mutator(module, source.replace(old, new))
    whole = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == PACKAGE.name}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE.name]:
            del sys.modules[name]
        sys.modules.update(whole)


def calls(test: Callable[..., None]) -> Iterator[dict[str, object]]:
    """The arguments of every case that pytest would make of a test."""
    choices = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            choices.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in mark.args[1]])
    for choice in itertools.product(*choices):
        yield {name: value for part in choice for name, value in part.items()}


def first_failure(module: str = "") -> str | None:
    """Run the exact tests against the package as it can be imported now, the likeliest file first."""
    likeliest = LIKELIEST.get(module, FILES[0])
    for file in sorted(FILES, key=lambda file: file != likeliest):
        for name, test in runpy.run_path(str(where_is(file))).items():
            if name.startswith("test_"):
                for arguments in calls(test):
                    try:
                        test(**arguments)
                    except AssertionError:
                        return f"{file}::{name} with {arguments}"
    return None


def test_without_a_mutation_every_test_passes() -> None:
    with mutated("estimators", "from __future__ import annotations", "from __future__ import annotations"):
        assert first_failure() is None


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    with mutated(*MUTANTS[name]):
        assert first_failure(MUTANTS[name][0]) is not None


def test_the_package_is_whole_again() -> None:
    import cfltr_core

    with mutated(*MUTANTS["any eta is 1"]):
        import cfltr_core as changed

        assert changed is not cfltr_core
        assert changed.power_examination(2.0)(2.0) == 0.5
    import cfltr_core as again

    assert again is cfltr_core
    assert again.power_examination(2.0)(2.0) == 0.25
