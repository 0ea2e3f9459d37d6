"""Wrong formulas that a reader might write, and the test that notices each.

One expression of the package is replaced, a fresh copy of the package is imported, and the one test that is named must
fail.  These are kept because each stands for a mistake that is easy to make; ``make mutants`` tries all the others.

An expression is found by what it says, not by where it stands: in whatever module, however it is set.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import Phase, settings

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = Path(importlib.util.find_spec("cfltr_core").origin).parent
# What is imported afresh: the package, and that which stands above it.
FRESH = (PACKAGE.name, "cfltr_book")
# Seconds for one mistake: a mutant must be wrong, not slow.
LIMIT = 60
# A solver that is wrong may never close its gap, which is an error; NumPy's warnings fail a test as well.
FAILURES = (AssertionError, RuntimeError, RuntimeWarning, pytest.fail.Exception)

# What is wrong: what stands there, what is put instead, and who notices.
WRONG = {
    # estimators
    "no inverse propensity": (
        "_per_session(log, _terms(log, rank_weights, lam, unit), log.weights, unit)",
        "_per_session(log, _terms(log, rank_weights, lam, unit), 1.0, unit)",
        "test_displays.py::test_expectations",
    ),
    "divided by clicks, not by sessions": (
        "float((log.clicks * a + fixed).sum()) / log.n_sessions",
        "float((log.clicks * a + fixed).sum()) / max(1, log.n_clicks)",
        "test_negative_controls.py::test_dividing_by_clicks_is_biased",
    ),
    "clipped from below": (
        "np.minimum(log.weights, cap)",
        "np.maximum(log.weights, cap)",
        "test_displays.py::test_expectations",
    ),
    "self-normalised by clicks": (
        "float(counted.sum())",
        "float(log.clicks.sum())",
        "test_displays.py::test_expectations",
    ),
    "variance without n / (n − 1)": (
        "size / (size - 1) * squares",
        "squares",
        "test_variances.py::test_estimated_variance_is_unbiased",
    ),
    "variance not centred": (
        "ratio_error(log, a, centre=value, denominator=float(log.n_sessions), unit=unit, fixed=fixed)",
        "ratio_error(log, a, centre=0.0, denominator=float(log.n_sessions), unit=unit, fixed=fixed)",
        "test_variances.py::test_estimated_variance_is_unbiased",
    ),
    "clicks of a session always apart": (
        "coefficient**2 * log.clicks * (1 - share)",
        "coefficient**2 * log.clicks",
        "test_estimator_loops.py::test_estimates",
    ),
    "Poisson instead of Bernoulli": (
        "rho * (1 - rho) * (values * w) ** 2",
        "rho * (values * w) ** 2",
        "test_variances.py::test_variance_with_fixed_sessions",
    ),
    "no variance between queries": (
        "within.mean() + between",
        "within.mean()",
        "test_variances.py::test_variance_when_sessions_draw_their_query",
    ),
    "exposure times examination": (
        "replace(log, propensity=chance[log.document])",
        "replace(log, propensity=chance[log.document] * log.propensity)",
        "test_displays.py::test_expectations",
    ),
    # metrics
    "ties share the weight of their average rank": (
        "RankWeights(_shared(table, best, worst), metric)",
        "RankWeights(metric((best + worst) / 2.0), metric)",
        "test_metric_loops.py::test_average_weight_is_not_the_weight_of_the_average_rank",
    ),
    "tied documents all come first": (
        "(best + worst) / 2.0",
        "best.astype(np.float64)",
        "test_metric_loops.py::test_ranks",
    ),
    "gain 2^y": ("np.exp2(grade) - 1.0", "np.exp2(grade)", "test_metric_loops.py::test_ndcg"),
    "precision one place short": (
        "np.where(r <= cutoff, -1.0 / cutoff, 0.0)",
        "np.where(r < cutoff, -1.0 / cutoff, 0.0)",
        "test_metric_loops.py::test_additive_metric",
    ),
    "RBP as Table 1 prints it": (
        "-leaves * stays ** (r - 1.0)",
        "-leaves / stays**r",
        "test_metric_loops.py::test_additive_metric",
    ),
    "slope of DCG without ln 2": (
        "np.log(2.0) / ((1.0 + r) * np.log1p(r) ** 2)",
        "1.0 / ((1.0 + r) * np.log1p(r) ** 2)",
        "test_bounds.py::test_slope_of_a_rank_weight",
    ),
    # users and policies
    "noise on relevant documents too": (
        "self.epsilon_plus * rel + self.epsilon_minus * (1.0 - rel)",
        "self.epsilon_plus * rel + self.epsilon_minus",
        "test_displays.py::test_expectations",
    ),
    "documents that are not shown are examined": (
        "np.where(shown, values, 0.0)",
        "values",
        "test_displays.py::test_what_is_not_shown_is_not_examined",
    ),
    "mixture without its shares": (
        "share * policy.display_mean(value)",
        "policy.display_mean(value)",
        "test_displays.py::test_exposure_is_the_sum_over_every_page",
    ),
    "explores among all documents, not the remaining ones": (
        "alive.sum(axis=1) * eps / m",
        "alive.sum(axis=1) * eps / n",
        "test_displays.py::test_exposure_is_the_sum_over_every_page",
    ),
    "Plackett–Luce with replacement": (
        "above == here",
        "above < -1",
        "test_displays.py::test_sampled_pages_have_the_law_of_the_loops",
    ),
    "order of sessions counted once": (
        "ways * prod(shown[i][0] ** c for i, c in times.items())",
        "prod(shown[i][0] ** c for i, c in times.items())",
        "test_displays.py::test_expectations",
    ),
    "alias table forgets what a column has given": (
        "1.0 + surplus[:-1] - deficit[until]",
        "1.0 + surplus[:-1]",
        "test_sgd.py::test_an_alias_table_implies_its_weights",
    ),
    # convergence
    "mean square for RMS": ("float(np.sqrt(square))", "float(square)", "test_sgd.py::test_weight_summary"),
    "the bound falls as 1/T": (
        "radius * gradient_bound * weight / np.sqrt(t)",
        "radius * gradient_bound * weight / t",
        "test_sgd.py::test_bounds_are_their_formulas",
    ),
    "second moments exchanged": (
        "sampling == 'uniform'",
        "sampling == 'weighted'",
        "test_sgd.py::test_second_moments_and_their_difference",
    ),
    "Lemma 14.1 without its half": (
        "alpha / 2 * squares.sum(axis=1)",
        "alpha * squares.sum(axis=1)",
        "test_sgd.py::test_every_step_of_the_proof",
    ),
    "Eq. 17a as printed": ("alpha / 2 * top**2", "alpha * top**2", "test_sgd.py::test_every_step_of_the_proof"),
    "Jensen the other way": (
        "at.mean(axis=1) - at_average",
        "at_average - at.mean(axis=1)",
        "test_sgd.py::test_every_step_of_the_proof",
    ),
    # stochastic gradient descent
    "CounterSample draws by weight, not by clicks times weight": (
        "(counts * weights, np.full(len(clicked), summary.mean))",
        "(weights, np.full(len(clicked), summary.mean))",
        "test_sgd.py::test_samplers_have_their_laws_and_factors",
    ),
    "M in place of the mean weight": (
        "np.full(len(clicked), summary.mean)",
        "np.full(len(clicked), summary.maximum)",
        "test_sgd.py::test_samplers_have_their_laws_and_factors",
    ),
    "hinge without its margin": (
        "scores > scores[d] - 1.0",
        "scores > scores[d]",
        "test_query_sampling.py::test_training_follows_the_algorithm",
    ),
    "Adam without bias correction": (
        "alpha * first / (1 - 0.9**step) / size",
        "alpha * first / size",
        "test_query_sampling.py::test_training_follows_the_algorithm",
    ),
    # bounds and learners
    "a document competes with itself": (
        "value.sum(axis=1) - own[terms]",
        "value.sum(axis=1)",
        "test_bounds.py::test_the_bound_on_a_risk",
    ),
    "λ for its slope in the gradient": (
        "c[rows] * lam.slope(1.0 + total)",
        "c[rows] * lam(1.0 + total)",
        "test_bounds.py::test_the_bound_on_a_risk",
    ),
    "the logarithm of base e": (
        "(float(sigma), math.log(2))",
        "(float(sigma), 1.0)",
        "test_bounds.py::test_steps_and_their_slopes",
    ),
    "C per session": (
        "C / log.n_clicks",
        "C / log.n_sessions",
        "test_proprank.py::test_primal_and_dual_are_what_literal_loops_give",
    ),
    "the dual without its ½": (
        "point.dual - 0.5 * v @ v",
        "point.dual - v @ v",
        "test_proprank.py::test_primal_and_dual_are_what_literal_loops_give",
    ),
    "the primal of the smoothed hinge": (
        "0.5 * w @ w + point.exact",
        "0.5 * w @ w + point.smooth",
        "test_proprank.py::test_primal_and_dual_are_what_literal_loops_give",
    ),
    "a rank weight that bends both ways is accepted": (
        "over.any() and under.any()",
        "False",
        "test_propdcg.py::test_curvature",
    ),
    "the objective without its clicks": (
        "mass @ lam(1 + s)",
        "lam(1 + s).sum()",
        "test_propdcg.py::test_every_value_of_the_objective_is_that_of_its_weights",
    ),
    "C chosen by the largest risk": (
        "min(tried, key=estimates.__getitem__)",
        "max(tried, key=estimates.__getitem__)",
        "test_propdcg.py::test_the_choice_has_the_smallest_estimate",
    ),
    # LambdaLoss
    "steps of the ranks, not of their difference": (
        "rank - i",
        "rank + 0 * i",
        "test_lambda_loss.py::test_the_linear_form_is_unbiased",
    ),
    "one of many orders of tied documents": (
        "ties.mean if self.linear else ties.apart",
        "ties.gains",
        "test_lambda_loss.py::test_all_tied_is_the_mean_over_all_orders_whatever_the_length",
    ),
    "a document that pushes itself": (
        "(0.5, 0.25)[row] * ties.per_pair(sums.same)",
        "0.0 * ties.per_pair(sums.same)",
        "test_lambda_loss.py::test_all_tied_is_the_mean_over_all_orders_whatever_the_length",
    ),
    "both where one would do": (
        "self.top if truncation == 'both' else longest",
        "self.top",
        "test_lambda_loss.py::test_the_linear_form_is_unbiased",
    ),
    "gains by all sessions, not by those of the query": (
        "np.maximum(log.sessions, 1)[log.query]",
        "log.n_sessions",
        "test_lambda_loss.py::test_gains_of_a_log",
    ),
    "the loss of the gains that differ, called unbiased": (
        "form == 'linear'",
        "form != 'linear'",
        "test_lambda_loss.py::test_the_linear_form_is_unbiased",
    ),
    # networks
    "a batch that stands for itself alone": (
        "gradient * len(batches)",
        "gradient",
        "test_deep.py::test_batches_have_the_mean_gradient_of_all",
    ),
    "a round of tangents that begins an epoch late": (
        "(self.epoch - 1) % self.plan.round_epochs == 0",
        "self.epoch % self.plan.round_epochs == 0",
        "test_deep.py::test_descent_on_all_lists_at_once_is_that_of_the_loop",
    ),
    "the best weights as an alias of the last": (
        "value.detach().clone()",
        "value.detach()",
        "test_deep.py::test_the_best_epoch_by_validation_clicks_is_kept_as_a_copy",
    ),
    # where propensities come from
    "every rank of a stratum displayed alike": (
        "self.impressions * np.exp(log_rate)",
        "np.exp(log_rate)",
        "test_conditional_loops.py::test_estimate_and_covariance",
    ),
    "a sandwich without Q / (Q − 1)": (
        "rows.T @ rows * (n_queries / (n_queries - 1))",
        "rows.T @ rows",
        "test_conditional_loops.py::test_estimate_and_covariance",
    ),
    "what the design can compare, the log can": (
        '"strong" if strong else "weak"',
        '"weak"',
        "test_links.py::test_components",
    ),
    "weights of the two ranks exchanged": (
        "n[j] / (n[i] + n[j])",
        "n[i] / (n[i] + n[j]) * 1.0",
        "test_pair_loops.py::test_sets",
    ),
    "the larger of the two roots": (
        "2 * total",
        "(middle + root) ** 2 / (2 * square)",
        "test_pair_loops.py::test_profile_likelihood",
    ),
    "no uncertainty of the attraction of a pair": (
        "rule.clicks[m, k] * terms.clicks[j] + rule.misses[m, k] * missed[j]",
        "0.0 * missed[j]",
        "test_pair_loops.py::test_all_pairs",
    ),
    "clicks, not centred by their rate": (
        "clicks - shown * rate",
        "clicks",
        "test_pair_loops.py::test_click_rates",
    ),
    "shuffled below place n": (
        "min(self.n, len(theta))",
        "len(theta)",
        "test_intervention_loops.py::test_cost",
    ),
    "a swap of a pair that the page does not have": (
        "[(k - 1, j - 1) for k, j in self.pairs if j <= size]",
        "[(k - 1, min(j, size) - 1) for k, j in self.pairs if k <= size]",
        "test_intervention_loops.py::test_every_page_and_the_means_over_them",
    ),
    "intervals symmetric about the ratio": (
        "self.curve[:, None] * np.exp(width[:, None] * [-1.0, 1.0])",
        "self.curve[:, None] * (1 + width[:, None] * [-1.0, 1.0])",
        "test_links.py::test_a_curve_says_what_its_numbers_say",
    ),
    "evidence that forgets what it cost to be far from the power law": (
        "free * np.log(spread)",
        "0.0 * np.log(spread)",
        "test_conditional_loops.py::test_shrunk",
    ),
    # trust, and pages
    "the noise of the rates taken for spread between documents": (
        "w * y * y - self.taken_off",
        "w * y * y",
        "test_trust_loops.py::test_the_quadratic_form",
    ),
    "divided by the slope, but no trust taken off": (
        "-log.impressions * expected * a",
        "0.0 * a",
        "test_trust.py::test_affine_is_unbiased_and_ips_is_not",
    ),
    "a cascade that reads on after a click": (
        "a * (1.0 - self.stop) + (1.0 - a) * (1.0 - self.give_up)",
        "a * (1.0 - self.give_up) + (1.0 - a) * (1.0 - self.stop)",
        "test_user_loops.py::test_cascade_rates",
    ),
    "the click itself among the clicks above": (
        "np.cumsum(self.clicks, axis=0) - self.clicks",
        "np.cumsum(self.clicks, axis=0)",
        "test_page_loops.py::test_count_pages",
    ),
    "EM's step as long as the slope": (
        "theta + (1 - theta) * by_rank / at_rank",
        "theta + by_rank / at_rank",
        "test_joint_loops.py::test_the_likelihood_never_falls_and_the_history_is_that_of_loops",
    ),
    "slopes of a logit for those of a logarithm": (
        "by_bias * -np.expm1(seen)",
        "by_bias",
        "test_joint_loops.py::test_regression_em_and_the_product_of_towers_rest_where_the_likelihood_is_flat",
    ),
    "a ranker that outruns the examination": (
        "np.append(model.pace, np.ones(n))",
        "np.ones(len(model.pace) + n)",
        "test_tower_loops.py::test_dual_learning_takes_joint_steps",
    ),
    "clicks over relevance, not relative to the top of their page": (
        "np.take_along_axis(given, top, axis=1) - given",
        "-given",
        "test_tower_loops.py::test_dual_learning_takes_joint_steps",
    ),
    "clicks above from the sessions that are fitted": (
        "pages.clicks_above[rows, half]",
        "pages.clicks_above[rows, fitted]",
        "test_above_loops.py::test_against_loops",
    ),
}


@cache
def expressions() -> dict[str, list[Path]]:
    """Every expression of the package, however it is set, and the modules that hold it, once for each time."""
    out: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.expr):
                out.setdefault(ast.dump(node), []).append(path)
    return out


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Replace(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = ast.dump(expression(old)), new

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.dump(node) == self.old:
            return expression(self.new)
        return self.generic_visit(node)


class Mutator(importlib.abc.MetaPathFinder):
    """Imports one module of the package from changed source."""

    def __init__(self, path: Path, source: str) -> None:
        self.name = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
        self.path, self.source = str(path), source

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(fullname, self.path)
        loader.get_code = lambda _: compile(self.source, self.path, "exec")
        return importlib.util.spec_from_loader(fullname, loader)


@contextmanager
def mutated(old: str, new: str) -> Iterator[None]:
    """Within, ``import cfltr_core`` gives a fresh package with that one change."""
    places = expressions().get(ast.dump(expression(old)), [])
    assert len(places) == 1, f"{old} stands {len(places)} times in the package: bring the mistake up to date"
    path = places[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    finder = Mutator(path, ast.unparse(ast.fix_missing_locations(Replace(old, new).visit(tree))))
    whole = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in FRESH}
    # Helpers of the tests keep what they imported, and what they computed with it.
    helpers = {path.stem for path in (TESTS / "helpers").glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in helpers & sys.modules.keys()}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in FRESH or name in helpers]:
            del sys.modules[name]
        sys.modules.update(whole | kept)


def cases(test: Callable[..., None]) -> Iterator[dict[str, object]]:
    """The arguments of every case that pytest would make of a test."""
    choices = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            choices.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in mark.args[1]])
    for choice in itertools.product(*choices):
        yield {name: value for part in choice for name, value in part.items()}


def noticed(where: str) -> bool:
    """Whether a test fails with the package as it can be imported now."""
    file, _, name = where.partition("::")
    (path,) = TESTS.rglob(file)
    # That an example fails is enough here, the smallest one is for people; and a few of each case find most mistakes.
    for n_examples in (10, settings.get_profile("book").max_examples):
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("unshrunk", settings.get_profile("book"), phases=phases, max_examples=n_examples)
        settings.load_profile("unshrunk")
        try:
            test = runpy.run_path(str(path))[name]
        finally:
            settings.load_profile("book")
        for arguments in cases(test):
            try:
                test(**arguments)
            except FAILURES:
                return True
    return False


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An endless mutant is no caught mutant: after so many seconds of computing it ends with an error."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"still running after {seconds} s: a mutant must be wrong, not slow")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("mistake", WRONG)
def test_the_mistake_is_noticed(mistake: str) -> None:
    old, new, where = WRONG[mistake]
    with mutated(old, new), at_most(LIMIT):
        assert noticed(where)


def test_the_right_formula_passes() -> None:
    """The comparison above can fail: the same replacement, by itself."""
    old, _, where = WRONG["divided by clicks, not by sessions"]
    with mutated(old, old):
        assert not noticed(where)


def test_the_package_is_whole_again() -> None:
    import cfltr_core

    with mutated(*WRONG["gain 2^y"][:2]):
        import cfltr_core as changed

        assert changed is not cfltr_core
        assert changed.ndcg([2.0, 1.0], [0, 2], relevance=[1, 2]).mean > 2 / 3
    import cfltr_core as again

    assert again is cfltr_core
