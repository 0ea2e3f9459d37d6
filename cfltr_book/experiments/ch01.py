"""What chapter 1 simulates: populations with a deployed ranker and ten contenders, and click logs to judge them by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import BoolArray, FloatArray
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.ranking.rank_weight import RankWeights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each new ranker learns from one of these shares of the training queries; the logger learns from the first.
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
NEW = tuple(f"new {share:.0%}" for share in SHARES)
BLENDS = tuple(f"blend of {name}" for name in NEW)
SEVERITIES = (0.0, 1.0)
METHODS = ("naive", "ips", "ever clicked")
# The share of examined irrelevant documents that are clicked by mistake, where there is noise.
NOISE = 0.1
ASSUMED = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


@dataclass(frozen=True, eq=False)
class World:
    """One population: its queries, the deployed ranker, the ten contenders and the truth about them.

    ``logger`` holds the scores of the deployed ranker, ``policy`` what it shows, and ``new`` the scores of each new
    ranker by name; ``weights`` are the rank weights of the five new rankers and then of the five blends, by name,
    ``lam`` (10, n_docs) their values, and ``truth`` and ``deployed`` are DCG per query.
    """

    queries: cf.RankingData
    logger: FloatArray
    new: dict[str, FloatArray]
    policy: cf.DeterministicPolicy
    weights: dict[str, RankWeights]
    lam: FloatArray
    truth: FloatArray
    deployed: float

    @property
    def relevance(self) -> FloatArray:
        """1 for each relevant document, 0 for the others."""
        return np.asarray(self.queries.binary)


def standardised(scores: FloatArray) -> FloatArray:
    """The scores with mean 0 and standard deviation 1, so that two rankers can be averaged."""
    return np.asarray((scores - scores.mean()) / max(scores.std(), 1e-12))


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed."""
    rng, data = run.rng(seed, 102), run.load(seed)
    queries = data.validation

    def score(share: float) -> FloatArray:
        ranker = cf.fit_linear_ranker(data.train, share, rng=rng)
        return standardised(ranker.decision_function(queries.features))

    logger, new = score(SHARES[0]), {name: score(share) for name, share in zip(NEW, SHARES, strict=True)}
    blends = {name: (logger + scores) / 2 for name, scores in zip(BLENDS, new.values(), strict=True)}
    contenders = {**new, **blends}
    weights = {name: cf.rank_weights(scores, queries.offsets, metric=cf.dcg()) for name, scores in contenders.items()}
    policy = cf.DeterministicPolicy.rank_by(logger, queries.offsets, rng=rng)
    lam = np.array([weight.lam for weight in weights.values()])
    shown = policy.display_mean(cf.dcg())
    truth, deployed = (-(risk @ queries.binary) / queries.n_queries for risk in (lam, shown))
    return World(queries, logger, new, policy, weights, lam, truth, float(deployed))


def clicks_of_a_log(run: book.Run) -> int:
    """How many clicks are expected in a log, where its size is not what is studied."""
    return run.size.clicks[-1] // 10


def user_with(eta: float, noise: float = 0.0) -> cf.PositionBasedUser:
    """A user who examines rank r with probability r^−η, and clicks an irrelevant document with ``noise``."""
    return cf.PositionBasedUser(cf.power_examination(eta), epsilon_minus=noise)


def estimates(log: cf.ClickLog, lam: FloatArray) -> FloatArray:
    """DCG of each row of rank weights by each of :data:`METHODS`: shape (3, n_rows)."""
    gain = -lam[:, log.document]
    naive = gain @ log.clicks / log.n_sessions
    ips = gain @ (log.clicks / log.propensity) / log.n_sessions
    ever_clicked = gain @ (log.clicks > 0) / len(log.sessions)
    return np.array([naive, ips, ever_clicked])


def tau(estimate: FloatArray, truth: FloatArray) -> float:
    """Kendall's τ of two orders; estimates that differ by rounding only are tied."""
    i, j = np.triu_indices(len(truth), 1)
    ahead = np.sign((estimate[i] - estimate[j]).round(12))
    return float(np.mean(ahead * np.sign(truth[i] - truth[j])))


def blends_preferred(values: FloatArray) -> float:
    """The share of the five pairs in which the blend has the larger value than the new ranker inside it."""
    return float(np.mean(values[len(NEW) :] > values[: len(NEW)]))


@cache
def blend_differences(run: book.Run) -> pd.DataFrame:
    """DCG of each blend minus that of the new ranker inside it: a row for each ``eta``, ``ranker`` and ``method``.

    ``low`` and ``high`` are the ends of the 95 % interval by one log of that severity, for other sessions of the same
    queries; of the method *truth* they are the difference itself.
    """
    w = world(run, run.seed)
    truth = w.truth[len(NEW) :] - w.truth[: len(NEW)]
    rows: list[tuple[float, str, str, float, float, float]] = []
    for eta in SEVERITIES:
        rng = run.rng(run.seed, 103) if eta == 1 else run.rng(run.seed, 113)
        log = run.simulate(w.policy, user_with(eta), relevance=w.relevance, n_clicks=clicks_of_a_log(run), rng=rng)
        for ranker, blend, difference in zip(NEW, BLENDS, truth, strict=True):
            true = float(difference)
            rows.append((eta, ranker, "truth", true, true, true))
            for method, estimator in (("naive", cf.naive), ("ips", cf.ips)):
                found = estimator(log, w.weights[blend] - w.weights[ranker], unit="session")
                rows.append((eta, ranker, method, found.report(), *found.report_interval()))
    return pd.DataFrame(rows, columns=["eta", "ranker", "method", "difference", "low", "high"])


def _log(run: book.Run, seed: int, setting: tuple[float, float, int], rng: np.random.Generator) -> cf.ClickLog:
    """A log of users with (η, noise), of as many sessions as give these clicks without noise: noise only adds some."""
    eta, noise, clicks = setting
    w = world(run, seed)
    sessions = sessions_for_clicks(w.policy, user_with(eta), relevance=w.relevance, n_clicks=clicks)
    return run.simulate(w.policy, user_with(eta, noise), relevance=w.relevance, n_sessions=sessions, rng=rng)


def _orders(run: book.Run, settings: Sequence[tuple[float, float, int]], stream: int) -> pd.DataFrame:
    """How three estimates order the contenders: a row for each seed, setting (eta, noise, clicks) and method."""

    def judge(seed: int, setting: tuple[float, float, int], rng: np.random.Generator) -> FloatArray:
        return estimates(_log(run, seed, setting, rng), world(run, seed).lam)

    rows = []
    for seed, of_seed in zip(run.seeds, run.each_seed(judge, settings, stream=stream), strict=True):
        truth = world(run, seed).truth
        for setting, found in zip(settings, of_seed, strict=True):
            for method, estimate in zip(METHODS, found, strict=True):
                rows.append((seed, *setting, method, tau(estimate, truth), blends_preferred(estimate)))
    return pd.DataFrame(rows, columns=["seed", "eta", "noise", "clicks", "method", "tau", "blends"])


@cache
def orders(run: book.Run) -> pd.DataFrame:
    """Without position bias (η = 0) and with it (η = 1), by one log each of every seed."""
    clicks = clicks_of_a_log(run)
    # Without bias is the negative control, so it has draws of its own.
    parts = [_orders(run, [(0.0, 0.0, clicks)], stream=104), _orders(run, [(1.0, 0.0, clicks)], stream=105)]
    return pd.concat(parts, ignore_index=True)


@cache
def orders_by_size(run: book.Run) -> pd.DataFrame:
    """By logs of growing size at η = 1, without noise and with it."""
    without = _orders(run, [(1.0, 0.0, clicks) for clicks in run.size.clicks], stream=106)
    with_noise = _orders(run, [(1.0, NOISE, clicks) for clicks in run.size.clicks], stream=107)
    return pd.concat([without, with_noise], ignore_index=True)


@cache
def wrong_curves(run: book.Run) -> pd.DataFrame:
    """IPS that assumes another severity than the users' η = 1: a row for each seed and ``assumed`` severity.

    The logs are those of :func:`orders_by_size` that have the usual size and no noise.
    ``blends`` is the share of the five blends that it prefers to the new ranker inside, ``truly`` the share that is
    better.
    """

    def assuming(seed: int, assumed: float, rng: np.random.Generator) -> list[float]:
        w = world(run, seed)
        log = _log(run, seed, (1.0, 0.0, clicks_of_a_log(run)), rng)
        estimate = -(w.lam[:, log.document] @ (log.clicks * log.rank**assumed)) / log.n_sessions
        return [tau(estimate, w.truth), blends_preferred(estimate), blends_preferred(w.truth)]

    found = run.each_seed(assuming, ASSUMED, stream=106)
    rows = [
        (seed, assumed, *told)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for assumed, told in zip(ASSUMED, of_seed, strict=True)
    ]
    return pd.DataFrame(rows, columns=["seed", "assumed", "tau", "blends", "truly"])


@cache
def random_logger(run: book.Run) -> pd.DataFrame:
    """A log of one fixed random order a query: a row for the old blends, and one for blends with that order."""
    w, queries = world(run, run.seed), world(run, run.seed).queries
    order = standardised(run.rng(run.seed, 112).random(queries.n_docs))
    rows = {}
    for name, blended in (("the same contenders", w.logger), ("blends made anew", order)):
        rng = run.rng(run.seed, 111)
        policy = cf.DeterministicPolicy.rank_by(order, queries.offsets, rng=rng)
        log = run.simulate(policy, user_with(1.0), relevance=w.relevance, n_clicks=clicks_of_a_log(run), rng=rng)
        new = list(w.new.values())
        contenders = [*new, *((blended + scores) / 2 for scores in new)]
        weights = [cf.rank_weights(scores, queries.offsets, metric=cf.dcg()) for scores in contenders]
        lam = np.array([weight.lam for weight in weights])
        truth = -lam @ w.relevance / queries.n_queries
        naive, ips, _ = estimates(log, lam)
        rows[name] = [tau(naive, truth), tau(ips, truth), blends_preferred(naive), blends_preferred(truth)]
    return pd.DataFrame(rows, ["τ of counting", "τ of IPS", "blends preferred", "truly better"]).T


def draw_page(examined: BoolArray, clicked: BoolArray) -> Figure:
    """A page with the products A, B, C, and what each customer, a row of the arrays (n, 3), does with it."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    fig, ax = plt.subplots(figsize=(5.2, 3.2))
    for row, (name, wanted) in enumerate(zip("ABC", ("wanted", "not wanted", "wanted"), strict=True)):
        ax.add_patch(Rectangle((-7.1, -row - 0.4), 7.3, 0.8, fc="none", ec="#666666"))
        ax.text(-6.7, -row, f"{row + 1}", va="center", color="#666666")
        ax.text(-5.7, -row, f"{name}   {wanted}", va="center")
    looks: dict[str, dict[str, Any]] = {
        "did not look": {"marker": ".", "color": "#888888"},
        "looked": {"marker": "o", "s": 90, "fc": "none", "ec": "#0072B2", "lw": 1.5},
        "looked and clicked": {"marker": "o", "s": 90, "color": "#0072B2"},
    }
    for state, (label, look) in enumerate(looks.items()):
        customer, place = np.nonzero(examined.astype(int) + clicked == state)
        ax.scatter(customer + 1, -place, label=label, **look)
    ax.text(-7.1, 0.62, "the page", fontsize=11)
    ax.text(0.6, 0.62, f"{len(examined)} customers", fontsize=11)
    ax.set(xlim=(-7.4, len(examined) + 0.7), ylim=(-2.6, 1.0))
    ax.axis("off")
    fig.legend(loc="outside lower center", ncols=3, handletextpad=0.1, columnspacing=1)
    return fig
