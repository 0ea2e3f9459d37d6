"""What chapter 10 simulates: curves that are learnt together with relevance, and what a wrong curve costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.clicks.users import User
from cfltr_core.propensity.dual_learning import pooled_counts

Array = NDArray[Any]
# Places of a page, and sessions of a log.
K, SESSIONS = 10, 100_000
TRUTH = 1 / np.arange(1, K + 1)
USER = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_minus=0.1)
MODELS = ("click rates", "product of towers", "additive towers", "dual learning")
# Weights of the label in what a ranker sorts by.
WEIGHTS = (0.0, 0.1, 0.3, 0.5)
# The pages, the curves and the results of which rankers are taught and judged with wrong curves.
PAGES, CURVES = ("one ranker", "by chance"), ("truth", "click rates", "product of towers")
COSTS = ("error", "gains missed", "SVM PropRank", "SVM PropDCG", "Deep PropDCG", "DCG missed", "wrong signs")


class World(NamedTuple):
    """One population: queries, and the pages on which three deployed rankers show them."""

    queries: cf.RankingData
    pages: list[cf.DeterministicPolicy]

    @property
    def ab_test(self) -> cf.MixturePolicy:
        """Each session sees the page of one of the three rankers, by chance."""
        return cf.MixturePolicy(self.pages, [1 / len(self.pages)] * len(self.pages))


def ranked(scores: Array, queries: cf.RankingData, rng: np.random.Generator) -> cf.DeterministicPolicy:
    """The page of the ten highest scores."""
    return cf.DeterministicPolicy.rank_by(scores, queries.offsets, rng=rng, cutoff=K)


def scorers(run: book.Run, seed: int, n: int, rng: np.random.Generator) -> list[Array]:
    """The scores that ``n`` rankers, each learnt from a few labels, give to the validation documents."""
    data = run.load(seed)
    some = [cf.fit_linear_ranker(data.train, 0.01, rng=rng) for _ in range(n)]
    return [fit.decision_function(data.validation.features) for fit in some]


def world(run: book.Run, seed: int) -> World:
    """The population of a seed."""
    rng, data, pages = run.rng(seed, 1002), run.load(seed), []
    for _ in range(3):
        ranker = cf.fit_linear_ranker(data.train, 0.01, rng=rng)
        pages.append(ranked(ranker.decision_function(data.validation.features), data.validation, rng))
    return World(data.validation, pages)


def logs_of(
    w: World,
    n: int,
    rng: np.random.Generator,
    *,
    pages: Sequence[cf.DeterministicPolicy] | None = None,
    reader: User = USER,
    relevance: Array | None = None,
) -> list[cf.ClickLog]:
    """A log of each of the ``pages`` (those of ``w`` unless given), ``n`` sessions together: an A/B test."""
    some = w.pages if pages is None else pages
    wanted = w.queries.binary if relevance is None else relevance
    return [book.Run.simulate(page, reader, relevance=wanted, n_sessions=n // len(some), rng=rng) for page in some]


def uphill(c: Array, v: Array) -> Array:
    """The slope in v of Σ c log softmax(v), page by page."""
    share = np.exp(v) / np.exp(v).sum(axis=-1, keepdims=True)
    return np.asarray(c - c.sum(axis=1, keepdims=True) * share)


def attempt(estimator: Callable[..., Any], *given: Any, **options: Any) -> Array:
    """The curve at ranks 1 to 10; NaN at those that are not known, and everywhere if the log has no answer."""
    curve = np.full(K, np.nan)
    try:
        known = estimator(*given, **options).curve[:K]
        curve[: len(known)] = known
    except ValueError:
        pass
    return curve


def _joint_models(logs: Sequence[cf.ClickLog], x: Array, rng: np.random.Generator) -> dict[str, Array]:
    """The curve of each of :data:`MODELS`; the pages of dual learning are drawn by a child of ``rng``."""
    counts = pooled_counts(logs)
    found = (
        attempt(cf.click_rates, counts),
        attempt(cf.two_towers, counts, x),
        attempt(cf.two_towers, counts, x, combine="additive"),
        attempt(cf.dual_learning, logs, x, rng=rng.spawn(1)[0]),
    )
    return dict(zip(MODELS, found, strict=True))


def error_of(curve: Array) -> float:
    """The mean of ``|θ̂ / θ - 1|`` over ranks 2 to 10; a rank that is not known counts 1."""
    return float(abs(np.nan_to_num(curve) / TRUTH - 1)[1:].mean())


def by_rank(curves: Mapping[str, Array]) -> dict[str, float]:
    """Curves as numbers by name and rank, as a table's cell holds them."""
    return {f"{name} @{rank}": float(x) for name, curve in curves.items() for rank, x in enumerate(curve, 1)}


def curves_of(frame: pd.DataFrame) -> dict[str, Array]:
    """The curves of a table by name, a row for each seed."""
    names = [column.removesuffix(" @1") for column in frame if column.endswith(" @1")]
    ranks = range(1, K + 1)
    return {name: frame[[f"{name} @{rank}" for rank in ranks]].to_numpy(dtype=float) for name in names}


def _fitted(run: book.Run, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Curves of the models from an A/B test and from one ranker, and controls."""
    w = world(run, seed)
    queries, x = w.queries, w.queries.features
    logs = logs_of(w, SESSIONS, rng)
    one = logs_of(w, SESSIONS, rng, pages=w.pages[:1])
    curves = {f"A/B: {name}": curve for name, curve in _joint_models(logs, x, rng).items()}
    curves |= {f"one: {name}": curve for name, curve in _joint_models(one, x, rng).items()}
    test, dealt = pooled_counts(logs), x[rng.permutation(len(x))]
    curves["A/B: dealt features"] = attempt(cf.two_towers, test, dealt)
    rare = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=1 / 20, epsilon_minus=0.1 / 20)
    seldom = pooled_counts(logs_of(w, 20 * SESSIONS, rng, reader=rare))
    for combine in ("product", "additive"):
        curves[f"rare: {combine}"] = attempt(cf.two_towers, seldom, x, combine=combine)
    few = cf.display_counts(run.simulate(w.ab_test, USER, relevance=queries.binary, n_sessions=10_000, rng=rng))
    n_deep = min(20, queries.n_queries)
    asked = np.where(np.arange(queries.n_queries) < n_deep, SESSIONS // n_deep, 0)
    log = cf.simulate_clicks(w.ab_test, USER, sessions=asked, relevance=queries.binary, rng=rng)
    counts = {"A/B": test, "few": few, "deep": cf.display_counts(log)}
    for name, some in counts.items():
        curves[f"{name}: EM"] = attempt(cf.expectation_maximisation, some, iterations=300)
        curves[f"{name}: conditional Poisson"] = attempt(cf.conditional_poisson, some)
    for name in ("few", "deep"):
        curves[f"{name}: twice"] = attempt(cf.expectation_maximisation, counts[name], iterations=600)
    for name, some in (("A/B", test), ("one", pooled_counts(one))):
        curves[f"{name}: product, by a network"] = attempt(
            cf.two_towers, some, x, module=lambda: cf.two_layer(x.shape[1], hidden=16), steps=100
        )
    return by_rank(curves)


def right_order(score: Array, liked: Array, offsets: Array) -> float:
    """Of the pairs of a wanted document and another in one list, the share whose wanted one has more score."""
    better, pairs = 0, 0
    for a, b in pairwise(offsets):
        on, off = score[a:b][liked[a:b] > 0], score[a:b][liked[a:b] == 0]
        better, pairs = better + (on[:, None] > off).sum(), pairs + on.size * off.size
    return float(better / max(pairs, 1))


def _knowing(run: book.Run, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Curves from a ranker that sorts by labels mixed with chance, then for users with other tastes.

    Of each of :data:`WEIGHTS` also the share of pairs that it puts in the right order.
    """
    w = world(run, seed)
    queries, x = w.queries, w.queries.features
    liked, noise = queries.binary.astype(float), rng.normal(size=len(x))
    known = (liked - liked.mean()) / max(liked.std(), 1e-12)
    list_of = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    # The same number of wanted documents in each list, dealt anew by chance.
    by_chance = np.argsort(np.lexsort((rng.random(len(x)), list_of)))
    dealt = liked[np.lexsort((liked, list_of))][by_chance]
    curves: dict[str, Array] = {}
    right: dict[str, float] = {}
    asked = [
        *((f"{weight:g}", weight, liked) for weight in WEIGHTS),
        *((f"{weight:g}, dealt", weight, dealt) for weight in (0.0, 0.5)),
    ]
    for name, weight, wanted in asked:
        score = weight * known + (1 - weight) * noise
        page = ranked(score, queries, rng)
        right[f"{name}: right order"] = right_order(score, liked, queries.offsets)
        logs = logs_of(w, SESSIONS, rng, pages=[page], relevance=wanted)
        curves |= {f"{name}: {model}": curve for model, curve in _joint_models(logs, x, rng).items()}
    return by_rank(curves) | right


def gains_of(w: World, page: cf.DeterministicPolicy, scores: Sequence[Array]) -> tuple[Array, Array]:
    """The displayed documents, and the DCG weight of each if a ranker orders the same page anew, less that before.

    The second array has a row for each ranker of ``scores`` and a column for each document.
    """
    shown = np.flatnonzero(page.displayed_rank)
    list_of = np.searchsorted(w.queries.offsets, shown, "right")
    start, before = np.searchsorted(list_of, list_of), page.displayed_rank[shown]
    rank = np.empty((len(scores), len(shown)), dtype=int)
    for row, some in zip(rank, scores, strict=True):
        row[np.lexsort((-some[shown], list_of))] = np.arange(len(shown))
    return shown, 1 / np.log2(2 + rank - start) - 1 / np.log2(1 + before)


def missed(found: Array, true: Array) -> tuple[float, int]:
    """The part of the true gains that the best multiple κ ≥ 0 of those found misses, and how many signs are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_book.experiments.ch10 import missed
    >>> missed(np.array([-1, 1]), np.array([1, -1])), missed(np.array([2, -2]), np.array([1, -1]))
    ((1.0, 2), (0.0, 0))
    """
    if not (np.linalg.norm(true) > 0 and np.isfinite(found).all()):
        return 1.0, len(true)
    along = max(float(found @ true), 0) / max(float(found @ found), 1e-300)
    part = np.linalg.norm(true - along * found) / np.linalg.norm(true)
    return float(part), int((np.sign(found) != np.sign(true)).sum())


def taught(run: book.Run, x: Array, log: cf.ClickLog, curve: Array, *, both: bool, seed: int) -> list[Any]:
    """SVM PropRank, SVM PropDCG (the first again unless ``both``) and a network, where clicks weigh the same in all."""
    C = run.size.C_grid[len(run.size.C_grid) // 2]
    p = np.clip(np.nan_to_num(curve, nan=1.0), 1e-3, 1)[log.rank - 1]
    C *= (log.clicks * log.rank).sum() / (log.clicks / p).sum()
    seen = replace(log, propensity=p)
    rank: Any = cf.fit_proprank(x, seen, C=C, gap=0.01)
    best = rank
    net = cf.fit_deep(
        x, seen, module=lambda: cf.two_layer(x.shape[1], hidden=32), learning_rate=5e-3, epochs=10, seed=seed
    )
    if both:
        # With DCG's weight clicks weigh less: chapter 7 makes C larger by the mean slope.
        slope = cf.dcg().slope(np.diff(log.offsets)[log.query].astype(float))
        more = np.average(1 / slope, weights=log.clicks)
        best = cf.fit_propdcg(x, seen, C=C * more, gap=0.02, decrease=0.03, start=rank)
    return [rank, best, net]


def judged(fit: Any, test: cf.RankingData) -> float:
    """DCG of a fit, per relevant document."""
    scores = fit.decision_function(test.features)
    risk = cf.additive_metric(scores, test.offsets, relevance=test.binary, metric=cf.dcg())
    return float(-risk.sum() / test.binary.sum())


def _downstream(run: book.Run, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Each of :data:`COSTS` by each of ``CURVES``, on the page of a ranker and on one by chance.

    What is missed is a part of the gains of four rankers; in DCG it is the root of their mean square.
    """
    w, test = world(run, seed), run.load(seed).test
    queries, x = w.queries, w.queries.features
    by_chance = ranked(rng.normal(size=len(x)), queries, rng)
    rankers = scorers(run, seed, 4, rng)
    out: list[float] = []
    for page in (w.pages[0], by_chance):
        log = run.simulate(page, USER, relevance=queries.binary, rng=rng, n_clicks=run.size.robust_clicks)
        counts = cf.display_counts(log)
        shown, change = gains_of(w, page, rankers)
        rank, liked = page.displayed_rank[shown], queries.binary[shown]
        clicks = USER.click_probability(rank, liked)  # of a very large log
        for curve in (TRUTH, attempt(cf.click_rates, counts), attempt(cf.two_towers, counts, x)):
            fits = taught(run, x, log, curve, both=page is not by_chance, seed=seed)
            gains = change @ liked
            part, signs = missed(change @ (clicks / curve[rank - 1]), gains)
            in_dcg = part * np.sqrt(np.mean(gains**2)) / queries.binary.sum()
            out += [error_of(curve), part, *(judged(fit, test) for fit in fits), in_dcg, signs]
    names = [", ".join(words) for words in product(PAGES, CURVES, COSTS)]
    return dict(zip(names, out, strict=True))


# On three sets of kernels the curve by a network moved by up to 23 %, the DCG of Deep PropDCG by up to 0.9 %.
JOINT = book.Experiment(
    "joint-curves",
    _fitted,
    settings=lambda run: [{}],
    stream=1003,
    seeds=attrgetter("seeds"),
    rtol=5e-3,
    rough={"by a network": 0.5},
)
KNOWING = book.Experiment(
    "knowing-rankers", _knowing, settings=lambda run: [{}], stream=1004, seeds=attrgetter("seeds"), rtol=5e-3
)
WRONG_CURVES = book.Experiment(
    "wrong-curves", _downstream, settings=lambda run: [{}], stream=1008, rtol=5e-3, rough={"Deep PropDCG": 0.02}
)
