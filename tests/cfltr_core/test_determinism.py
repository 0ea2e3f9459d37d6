"""Same seed, same numbers; another seed, others: for every function that draws."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
import torch

import cfltr_book.data.letor
import cfltr_core
import cfltr_core as cf
from cfltr_book import Run, load_corpus
from cfltr_book.data.generated import YAHOO_LIKE, generate
from cfltr_book.data.letor import read_collection
from cfltr_book.data.letor.folders import fold_of, layout_of
from cfltr_book.data.memory import remembered_corpus
from cfltr_book.reporting.standing import entropy
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.learning.course import Plan
from cfltr_core.learning.module_training import train_module
from cfltr_core.learning.torch_sampler import torch_sampler
from cfltr_core.propensity.dual_learning import pooled_counts
from cfltr_core.propensity.interventions import RandTopPolicy, SwapPolicy
from cfltr_core.propensity.score_models import score_model
from cfltr_core.sampling import AliasTable, Deck, term_draws

N = 40
CUTS = np.arange(N + 1) * 5
TIED = np.tile([1.0, 1.0, 0.0, 0.0, 0.0], N)
RELEVANCE = np.tile([1, 0, 1, 1, 0], N)
USER = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=0.9, epsilon_minus=0.2)
POLICY = cf.DeterministicPolicy(np.tile([1, 2, 3, 4, 5], N), CUTS)
EXPLORING = cf.EpsilonGreedyPolicy(np.tile([1, 2, 3, 4, 5], N), CUTS, epsilon=[0.3, 0.3, 0.3])
PLACKETT_LUCE = cf.PlackettLucePolicy(TIED, CUTS, cutoff=3)
RANDTOP = RandTopPolicy(POLICY, n=3)
MIXTURE = cf.MixturePolicy([POLICY, EXPLORING], [0.5, 0.5])
DATA = cf.RankingData(np.random.default_rng(0).normal(size=(5 * N, 3)), RELEVANCE, offsets=CUTS)
LOG = cf.aggregate_clicks(np.repeat(np.arange(5 * N), 3), POLICY, user=USER, sessions=np.full(N, 9))


LOGS = [
    cf.simulate_clicks(page, USER, relevance=RELEVANCE, sessions=[9] * N, rng=np.random.default_rng(1))
    for page in (POLICY, cf.DeterministicPolicy(np.tile([2, 1, 5, 3, 4], N), CUTS))
]
COUNTS = pooled_counts(LOGS)


def one_layer() -> torch.nn.Module:
    return torch.nn.Linear(3, 1)


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def one_file(folder: Path, seed: int) -> np.ndarray:
    text = oracles.svmlight_text(DATA.features.tolist(), RELEVANCE.tolist(), oracles.query_index(CUTS.tolist()))
    (folder / "all.txt").write_text(text, encoding="utf-8")
    return read_collection(folder, seed)[0].features


def five_parts(folder: Path) -> Path:
    for i in range(1, 6):
        (folder / f"S{i}.txt").touch()
    return folder


PLAN = Plan(
    learning_rate=0.1, epochs=1, steps=None, weight_decay=0.0, batch_documents=9, patience=None, progress=False,
    metric=cf.dcg(), optimizer="sgd",
)  # fmt: skip


def by_module(seed: int) -> np.ndarray:
    """The network is drawn as well."""
    mass = LOG.mass[LOG.clicks > 0]
    fit = train_module(DATA.features, LOG, mass, module=one_layer, plan=PLAN, validation=None, seed=seed)
    return fit.weights["weight"]


def by_learner(learn: Callable[..., Any], seed: int) -> np.ndarray:
    fit = learn(DATA.features, LOG, module=lambda: cf.two_layer(3, 4), epochs=1, seed=seed)
    return fit.weights["0.weight"]


def by_samplers(seed: int, *samplers: Any) -> np.ndarray:
    given = {"learning_rates": 0.1, "steps": 20}
    return np.stack([cf.train_sgd(DATA.features, each, rng=generator(seed), **given).last for each in samplers])


@cache
def trusting_events() -> Events:
    """Counts of three rankers and of users who trust high ranks, so much that logs are drawn again."""
    policies = [cf.DeterministicPolicy(rank * N, np.arange(N + 1) * 3) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
    trust = cf.TrustUser([1, 1 / 2, 1 / 3], epsilon_plus=0.9, epsilon_minus=[0.6, 0.2, 0.1])
    given = {"relevance": np.tile([1, 0, 1, 0, 0, 1], N // 2), "rng": generator(0)}
    rows = []
    for ranker, policy in enumerate(policies):
        log = cf.simulate_clicks(policy, trust, sessions=[300] * N, **given)
        for document, rank, shown, clicks in zip(log.document, log.rank, log.impressions, log.clicks, strict=True):
            session = (ranker * N + document // 3) * 300 + np.arange(shown)
            clicked = (np.arange(shown) < clicks).astype(int)
            row = {"query": document // 3, "document": document, "position": rank, "ranker": ranker}
            rows.append(pd.DataFrame({"session": session, "clicked": clicked} | row))
    features = pd.DataFrame({"query": np.arange(3 * N) // 3, "document": np.arange(3 * N), "x": 1.0})
    return cf.read_events(pd.concat(rows), features, split=None)


DRAWS: dict[str, Callable[[int, Path], np.ndarray]] = {
    "metrics.ranks": lambda s, _: cf.ranks(TIED, CUTS, ties="random", rng=generator(s)),
    "metrics.rank_weights": lambda s, _: (
        cf.rank_weights(TIED, CUTS, metric=cf.dcg(), ties="random", rng=generator(s)).lam
    ),
    "metrics.additive_metric": lambda s, _: cf.additive_metric(
        TIED, CUTS, relevance=RELEVANCE, metric=cf.dcg(), ties="random", rng=generator(s)
    ),
    "policies.rank_by": lambda s, _: cf.DeterministicPolicy.rank_by(TIED, CUTS, rng=generator(s)).displayed_rank,
    "policies.sample": lambda s, _: MIXTURE.sample(np.arange(N), generator(s)),
    "policies.impressions": lambda s, _: MIXTURE.impressions([9] * N, generator(s))[2],
    "epsilon_greedy.rank_by": lambda s, _: (
        cf.EpsilonGreedyPolicy.rank_by(TIED, CUTS, rng=generator(s), epsilon=[1.0]).greedy_rank
    ),
    "epsilon_greedy.sample": lambda s, _: EXPLORING.sample(np.arange(N), generator(s)),
    "epsilon_greedy.impressions": lambda s, _: EXPLORING.impressions([9] * N, generator(s))[2],
    "plackett_luce.sample": lambda s, _: PLACKETT_LUCE.sample(np.arange(N), generator(s)),
    "plackett_luce.estimate_exposure": lambda s, _: PLACKETT_LUCE.estimate_exposure(USER, 9, rng=generator(s))[0],
    "health.check_log": lambda s, _: np.array(
        [line.p_value for line in cf.check_log(trusting_events(), rng=generator(s), redraws=2).lines]
    ),
    "interventions.sample": lambda s, _: RANDTOP.sample(np.arange(N), generator(s)),
    "interventions.draw_places": lambda s, _: SwapPolicy.adjacent(POLICY).draw_places(np.full(N, 5), generator(s)),
    "interventions.impressions": lambda s, _: SwapPolicy.adjacent(POLICY).impressions([9] * N, generator(s))[2],
    "loggers.fit_linear_ranker": lambda s, _: cf.fit_linear_ranker(DATA, 0.5, rng=generator(s)).weights,
    "simulation.draw_sessions": lambda s, _: cf.draw_sessions(1000, N, rng=generator(s)),
    "simulation.simulate_clicks": lambda s, _: (
        cf.simulate_clicks(POLICY, USER, relevance=RELEVANCE, sessions=[9] * N, rng=generator(s)).clicks
    ),
    "memory.remembered_corpus": lambda s, _: remembered_corpus("digits", "smoke", seed=s).train.features,
    "standing.load": lambda s, _: Run("smoke", "digits").load(s).train.features,
    "standing.rng": lambda s, _: Run("smoke", "digits").rng(s, 7).random(5),
    "standing.entropy": lambda s, _: np.array(entropy(s, 7)),
    "standing.simulate": lambda s, _: (
        Run.simulate(POLICY, USER, relevance=RELEVANCE, n_sessions=400, rng=generator(s)).clicks
    ),
    "other_users.draw_page_clicks": lambda s, _: CascadeUser(epsilon_plus=0.5).draw_page_clicks(
        RELEVANCE.reshape(N, 5), generator(s)
    ),
    "pages.simulate_pages": lambda s, _: (
        cf.simulate_pages(EXPLORING, USER, relevance=RELEVANCE, sessions=[9] * N, rng=generator(s)).clicks
    ),
    "sampling.draw": lambda s, _: AliasTable.build([1.0, 2.0, 5.0]).draw(50, generator(s)),
    "sgd.train_sgd": lambda s, _: by_samplers(s, cf.click_sampler(LOG, "ips"), cf.query_sampler(LOG)),
    "sampling.epochs": lambda s, _: by_samplers(s, cf.click_sampler(LOG, "ips", replacement=False)),
    "sampling.term_draws": lambda s, _: next(term_draws(Deck([3, 1, 5]), (2, 1), generator(s))),
    "torch_sampler.torch_sampler": lambda s, _: np.array(
        [*torch_sampler(cf.click_sampler(LOG, "ips"), steps=20, seed=s)]
    ),
    "deep.fit_deep": lambda s, _: by_learner(cf.fit_deep, s),
    "module_training.train_module": lambda s, _: by_module(s),
    "lambdaloss_fit.fit_lambdaloss": lambda s, _: by_learner(cf.fit_lambdaloss, s),
    "score_models.score_model": lambda s, _: score_model(DATA.features, np.arange(9), module=one_layer, seed=s).start(),
    "towers.two_towers": lambda s, _: (
        cf.two_towers(COUNTS, DATA.features, module=one_layer, steps=1, seed=s).attraction
    ),
    "dual_learning.dual_learning": lambda s, _: (
        cf.dual_learning(LOGS, DATA.features, rng=generator(s), module=one_layer, steps=4, batch=9).attraction
    ),
    "generated.generate": lambda s, _: generate(YAHOO_LIKE, (5, 2, 2), n_features=8, seed=s).train.features,
    "corpora.load_corpus": lambda s, _: load_corpus("digits", "smoke", seed=s).train.features,
    "folders.fold_of": lambda s, folder: np.array([fold_of(five_parts(folder), s)]),
    "folders.layout_of": lambda s, folder: np.array([layout_of(five_parts(folder), s).groups[2][0].name]),
    "reader.read_collection": lambda s, folder: one_file(folder, s),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_seed_same_numbers_and_the_global_generator_is_neither_read_nor_moved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = np.random.mtrand._rand  # what np.random's own functions, and libraries without a generator, draw from

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"{name} uses NumPy's global generator")

    called = [one for one in dir(np.random) if getattr(getattr(np.random, one), "__self__", None) is shared]
    assert {"choice", "normal", "permutation", "rand", "shuffle"} <= {*called}
    for one in called:
        monkeypatch.setattr(np.random, one, refuse)
    _, key, *rest = shared.get_state()
    key = key.copy()
    found = []
    for seed, foreign in ((3, 0), (3, 1), (4, 1)):  # nor torch's
        torch.manual_seed(foreign)
        before = torch.get_rng_state()
        found.append(DRAWS[name](seed, tmp_path))
        assert torch.equal(torch.get_rng_state(), before)
    once, again, other = found
    np.testing.assert_array_equal(once, again)
    assert once.shape != other.shape or not np.array_equal(once, other)
    _, key_after, *rest_after = shared.get_state()
    np.testing.assert_array_equal(key_after, key)
    assert rest_after == rest  # the place in the key, which one draw moves


def test_the_list_of_functions_that_draw_is_complete() -> None:
    """Every public function with an argument ``rng`` or ``seed`` is above."""
    # Rooms that only name a seed, in a message or in a path, and draw nothing.
    names_only = {"checks", "kept_questions", "kept_tables"}
    # What is simulated for a chapter draws from run.rng alone; two runs of a chapter are compared as a whole.
    names_only |= {path.stem for path in Path(cfltr_book.__file__).parent.glob("experiments/*.py")}
    found = set()
    for path in (path for package in (cfltr_core, cfltr_book) for path in Path(package.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
                if names & {"rng", "seed"} and path.stem not in names_only:
                    found.add(f"{path.stem}.{node.name}")
    assert found == set(DRAWS)
