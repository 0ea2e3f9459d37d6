"""Towers, dual learning and the scorers beneath them, against loops over displays and finite differences."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import oracles
import pytest
import torch
from hypothesis import strategies as st
from refusals import refuses
from strata_logs import of_rows

import cfltr_core as cf
from cfltr_core.propensity.dual_learning import pooled_counts
from cfltr_core.propensity.score_models import LinearScores, ModuleScores, climb, score_model, shown_features

NUMBERS = st.floats(-3, 3)
USER = cf.PositionBasedUser([1, 1 / 2, 1 / 3], epsilon_minus=0.2)


def network(seed: int = 0, n_features: int = 2) -> torch.nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return cf.two_layer(n_features, hidden=3)


def terms_of(seed: int) -> list[oracles.Term]:
    rng = np.random.default_rng(seed)
    places = [(s, k) for s in range(5) for k in range(1, 4) if rng.random() < 0.7] + [(5, 1), (5, 2), (5, 3)]
    shown = [int(n) for n in rng.integers(2, 60, len(places))]
    return [(s, k, n, int(rng.integers(1, n))) for (s, k), n in zip(places, shown, strict=True)]


def counts_of(terms: list[oracles.Term]) -> cf.DisplayCounts:
    """Two documents a query."""
    return of_rows((s // 2, s, *rest) for s, *rest in numbered(terms))


def numbered(terms: list[oracles.Term]) -> list[oracles.Term]:
    number = {s: i for i, s in enumerate(sorted({s for s, *_ in terms}))}
    return [(number[s], *rest) for s, *rest in terms]


@pytest.mark.oracle("score_models.LinearScores.of", "score_models.LinearScores.pulled_back",
                    "score_models.LinearScores.penalty", "score_models.LinearScores.finish",
                    "score_models.LinearScores.start", "score_models.shown_features",
                    "score_models.score_model")  # fmt: skip
def test_a_linear_scorer_in_any_coordinates() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(3, 0.1, 9), rng.normal(0, 50, 9), np.full(9, 7.0), np.zeros(9)])
    table[:, 3] = table[:, 0] - table[:, 1]  # says nothing new
    documents = np.array([0, 2, 3, 4, 6, 7, 8])
    rows = shown_features(table, documents)
    assert rows.tolist() == [table[d].tolist() for d in documents]
    model = score_model(table, documents)
    assert isinstance(model, LinearScores)
    assert model.start().tolist() == [0.0, 0.0, 0.0]  # b, and two directions in which the documents differ
    at, slope = rng.normal(size=3), rng.normal(size=7)
    w = model.finish(at).weights
    expected = oracles.linear_scores(rows.tolist(), w.tolist())
    np.testing.assert_allclose(np.ptp(model.of(at) - expected), 0, atol=1e-12)
    assert np.mean(model.of(at)) == pytest.approx(at[0])  # features are measured from their means
    value = oracles.differences(lambda x: float(slope @ model.of(np.array(x))), at.tolist())
    np.testing.assert_allclose(model.pulled_back(slope), value, atol=1e-8)
    size, by_size = model.penalty(at)
    spread = [float(np.std(rows[:, j])) for j in range(4)]
    assert size == pytest.approx(0.5 * math.fsum((a * b) ** 2 for a, b in zip(w, spread, strict=True)), rel=1e-9)
    np.testing.assert_allclose(
        by_size, oracles.differences(lambda x: model.penalty(np.array(x))[0], at.tolist()), atol=1e-8
    )


@pytest.mark.oracle("score_models.ModuleScores.of", "score_models.ModuleScores.pulled_back",
                    "score_models.ModuleScores.penalty", "score_models.ModuleScores.finish",
                    "score_models.ModuleScores.start")  # fmt: skip
def test_a_network_as_a_scorer() -> None:
    rng, net = np.random.default_rng(1), network()
    x = rng.normal(size=(6, 2))
    model = ModuleScores(x, net)

    at, slope = model.start(), rng.normal(size=6)
    np.testing.assert_allclose(at[:6], net[0].weight.detach().numpy().ravel())
    at = at + rng.normal(size=len(at))
    np.testing.assert_allclose(model.of(at), by_network(at, x), rtol=1e-12)
    numeric = oracles.differences(lambda p: math.fsum(slope * by_network(p, x)), at.tolist())
    np.testing.assert_allclose(model.pulled_back(slope), numeric, atol=1e-6)
    assert model.penalty(at)[0] == pytest.approx(0.5 * math.fsum(p * p for p in at))
    np.testing.assert_array_equal(model.penalty(at)[1], at)
    assert model.finish(at) is None
    with torch.no_grad():
        np.testing.assert_allclose(
            net(torch.tensor(x, dtype=torch.float32)).numpy().ravel(), by_network(at, x), rtol=1e-4
        )


@pytest.mark.oracle("score_models.climb")
def test_climbing() -> None:
    scale = np.array([1.0, 30.0])

    def hill(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(np.cosh(scale * (x - 2)).sum()), -scale * np.sinh(scale * (x - 2))

    x, history, converged = climb(hill, np.array([1.0, 2.3]), steps=200)
    root = oracles.bisect(lambda v: hill(np.array([v, 2.0]))[1][0] * -1, 0.0, -5, 5)
    np.testing.assert_allclose(x, [root, 2.0], atol=1e-6)
    assert converged
    assert history[0] == hill(np.array([1.0, 2.3]))[0]
    assert (np.diff(history) >= 0).all()
    assert history[-1] == pytest.approx(hill(x)[0], abs=1e-12)
    assert not climb(hill, np.array([1.0, 2.3]), steps=2)[2]


def by_network(at: list[float], x: np.ndarray) -> list[float]:
    """The scores of a network of two features and three hidden units, from its weights one after the other."""
    u, c, v, b = np.split(np.array(at), [6, 9, 12])
    kept = {"0.weight": u.reshape(3, 2).tolist(), "0.bias": c.tolist(), "2.weight": [v.tolist()], "2.bias": b.tolist()}
    return [oracles.network(row, kept, "sigmoid") for row in x.tolist()]


@pytest.mark.parametrize(("kind", "decay"), [("linear", 0.0), ("linear", 0.01), ("network", 0.01)])
def test_additive_towers_rest_where_the_penalised_likelihood_is_flat(kind: str, decay: float) -> None:
    terms = numbered(terms_of(3))
    counts, x = counts_of(terms), np.random.default_rng(3).normal(size=(6, 2))
    module = network(1).double() if kind == "network" else None
    displays, spread = sum(n for _, _, n, _ in terms), x.std(axis=0)
    fit = cf.two_towers(counts, x, combine="additive", module=module, decay=decay, steps=20_000)
    assert fit.history[0] < fit.history[-1] == fit.history.max()
    if module is None:
        weights = [0.0, *fit.ranker.weights]

        def scores(at: list[float]) -> list[float]:
            return [at[0] + f for f in oracles.linear_scores(x.tolist(), at[1:])]

        def size(at: list[float]) -> float:
            return 0.5 * math.fsum((a * b) ** 2 for a, b in zip(at[1:], spread, strict=True))
    else:
        assert fit.ranker is None
        weights = torch.nn.utils.parameters_to_vector(module.parameters()).tolist()

        def scores(at: list[float]) -> list[float]:
            return by_network(at, x)

        def size(at: list[float]) -> float:
            return 0.5 * math.fsum(a * a for a in at)

    # attraction = σ(a_1 + f), so a_1 comes from any stratum, and all others agree.
    first = np.log(fit.attraction / (1 - fit.attraction)) - scores(weights)
    np.testing.assert_allclose(first, first[0], atol=1e-8)
    at = [*(np.log(fit.examination) + first[0]), *weights]

    def value(at: list[float]) -> float:
        return oracles.tower_value(terms, at[:3], scores(at[3:]), "additive") / displays - decay * size(at[3:])

    assert value(at) * displays == pytest.approx(fit.history[-1], rel=1e-9)
    np.testing.assert_allclose(oracles.differences(value, at), 0, atol=2e-6)


# --- dual learning ------------------------------------------------------------------------------------------------


def logs_of(seed: int, pages: list[list[int]], sessions: list[int] | None = None) -> list[cf.ClickLog]:
    """A log of each ranker, for two queries of three documents."""
    rng, relevance = np.random.default_rng(seed), [1, 0, 1, 0, 1, 0.5]
    return [
        cf.simulate_clicks(
            cf.DeterministicPolicy(page, [0, 3, 6]), USER, relevance=relevance, sessions=sessions or [50, 30], rng=rng
        )
        for page in pages
    ]


THREE = [[1, 2, 3, 1, 2, 3], [2, 3, 1, 3, 1, 2], [3, 2, 1, 2, 1, 0]]


def pages_of(logs: list[cf.ClickLog]) -> list[oracles.Page]:
    out = []
    for query, log in itertools.product(range(2), logs):
        rows = [
            (int(d), int(k), int(c))
            for d, k, c, q, n in zip(log.document, log.rank, log.clicks, log.query, log.impressions, strict=True)
            if q == query and n > 0
        ]
        out.append(sorted(rows, key=lambda row: row[1]))
    return out


@pytest.mark.oracle("dual_learning.pooled_counts")
def test_rankers_side_by_side() -> None:
    logs = logs_of(0, THREE)
    rows = [
        (int(q), i, int(d), int(k), int(n), int(c))
        for i, log in enumerate(logs)
        for q, d, k, n, c in zip(log.query, log.document, log.rank, log.impressions, log.clicks, strict=True)
    ]
    counts = pooled_counts(logs)
    found = zip(counts.query, counts.document, counts.rank, counts.impressions, counts.clicks, strict=True)
    assert [(q, 0, d, k, n, c) for q, d, k, n, c in found] == oracles.side_by_side(rows)
    assert pooled_counts(logs[0]).clicks.sum() == logs[0].n_clicks


@pytest.mark.oracle("dual_learning.dual_learning")
@pytest.mark.parametrize(("batch", "rate"), [(2, 0.1), (6, 1.0)])
def test_dual_learning_takes_joint_steps(batch: int, rate: float) -> None:
    """Both slopes at the same f and g, on the pages that the generator draws; with few sessions some have one click."""
    logs, x = logs_of(5, THREE, [8, 6]), np.random.default_rng(5).normal(size=(6, 2))
    assert any(1 in log.clicks for log in logs)
    fit = cf.dual_learning(logs, x, rng=np.random.default_rng(3), steps=9, batch=batch, learning_rate=rate)
    pages, draw = pages_of(logs), np.random.default_rng(3)
    draw.integers(1 << 31)  # torch's seed
    batches = [draw.choice(6, batch, replace=False).tolist() if batch < 6 else range(6) for _ in range(9)]
    g = oracles.dual_steps(pages, x.tolist(), batches, rate)
    np.testing.assert_allclose(fit.examination, np.exp(np.array(g) - g[0]), rtol=1e-10)
    values = oracles.dual_values([pages[i] for i in batches[0]], [0.0] * 6, [0.0] * 3, ([0.0] * 6, [0.0] * 3))
    assert fit.history[0] == pytest.approx(sum(values), rel=1e-12)
    assert len(fit.history) == 9


WORLDS = {
    "linear, three rankers": (THREE, np.random.default_rng(5).normal(size=(6, 2)), None),
    "network, three rankers": (THREE, np.random.default_rng(5).normal(size=(6, 2)), 2),
    "a score for each document, one ranker": (THREE[:1], np.eye(6), None),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_dual_learning_rests_at_a_point_where_both_losses_are_flat(name: str) -> None:
    rankers, x, seed = WORLDS[name]
    logs, module = logs_of(5, rankers, [4_000, 3_000]), None if seed is None else network(seed)
    fit = cf.dual_learning(logs, x, rng=np.random.default_rng(0), module=module, steps=6_000)
    assert not any(note.startswith(("Not settled", "Diverged")) for note in fit.notes), fit.notes
    g = np.log(fit.examination).tolist()
    pages = pages_of(logs)
    if module is None:

        def scores(w: list[float]) -> list[float]:
            return oracles.linear_scores(x.tolist(), w)

        w = fit.ranker.weights.tolist()
    else:
        w = torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy().astype(float).tolist()

        def scores(w: list[float]) -> list[float]:
            return by_network(w, x)

    f = scores(w)
    slope = oracles.differences(lambda at: oracles.dual_values(pages, scores(at), g, (f, g))[0], w)
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    slope = oracles.differences(lambda at: oracles.dual_values(pages, f, at, (f, g))[1], g)
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    counts = pooled_counts(logs)
    for query in (0, 1):
        here = counts.query[counts.start[:-1]] == query
        mass = [math.exp(f[d]) for d in counts.document[counts.start[:-1]][here]]
        np.testing.assert_allclose(fit.attraction[here], np.array(mass) / math.fsum(mass), rtol=1e-4)
    between = [note for note in fit.notes if note.startswith("Between the groups rank 1 | rank 2 | rank 3 these")]
    assert len(between) == (len(rankers) == 1)


def test_dual_learning_that_runs_away_gives_no_estimate() -> None:
    """One ranker, and a feature that does not explain its clicks."""
    logs, x = logs_of(5, THREE[:1], [4_000, 3_000]), np.random.default_rng(1).normal(size=(6, 1))
    fit = cf.dual_learning(logs, x, rng=np.random.default_rng(0), steps=20_000)
    assert fit.notes == (
        f"Diverged in step {len(fit.history)}: the two losses drove each other apart. No estimate.",
    )  # fmt: skip
    assert fit.components == ((1,), (2,), (3,))
    np.testing.assert_array_equal(fit.curve, [1, math.nan, math.nan])
    assert np.abs(np.log(fit.examination)).max() > math.log(100)
    short = cf.dual_learning(logs, x, rng=np.random.default_rng(0), steps=8)
    assert short.notes[-1].startswith("Not settled: the last quarter of 8 steps moved a ratio by")
    assert np.isfinite(short.curve).all()


@pytest.mark.parametrize("kind", ["towers", "dual"])
def test_modules(kind: str) -> None:
    x, logs = np.random.default_rng(7).normal(size=(6, 2)), logs_of(7, THREE, [300, 200])

    def run(module: object) -> np.ndarray:
        if kind == "towers":
            return cf.two_towers(pooled_counts(logs), x, module=module, steps=20).curve
        return cf.dual_learning(logs, x, rng=np.random.default_rng(0), module=module, steps=5).curve

    net = network(3)
    weights = net[0].weight.detach().clone()
    run(net)
    assert not torch.equal(weights, net[0].weight)
    refuses("module: returned shape (6, 2) for 6 documents", run, torch.nn.Linear(2, 2))
    refuses("module: has no weights to learn", run, torch.nn.Identity())


COUNTS = pooled_counts(logs_of(0, THREE))
LOGS, X = logs_of(0, THREE), np.random.default_rng(0).normal(size=(6, 2))
MIXED = cf.simulate_clicks(
    cf.MixturePolicy([cf.DeterministicPolicy(p, [0, 3, 6]) for p in THREE], [0.4, 0.3, 0.3]), USER, relevance=[1] * 6,
    sessions=[50, 50], rng=np.random.default_rng(0),
)  # fmt: skip
SILENT = cf.ClickLog(
    document=[0, 1], rank=[1, 2], impressions=[5, 5], clicks=[0, 0], propensity=[1, 1], sessions=[5], offsets=[0, 2]
)
dual = partial(cf.dual_learning, rng=np.random.default_rng(0))
BAD: dict[str, Callable[[], object]] = {
    "logs[1]: dual learning needs to know which": lambda: dual([LOGS[0], MIXED], X),
    "logs: there is no click": lambda: dual(SILENT, X),
    "logs: expected a ClickLog": lambda: dual([], X),
    "logs[1] has other offsets": lambda: dual([LOGS[0], SILENT], X),
}


@pytest.mark.parametrize("start", BAD)
def test_bad_input(start: str) -> None:
    refuses(start, BAD[start])
