"""How heavy are the weights?  M and M̄ of simulated logs beside Table 2 of Jagerman & de Rijke 2020, and one joint fit.

    python -m benchmarks.corpus_weights

M̄ is the mean of 1/p over the clicks and M their maximum.  Only the rank at which attraction lands matters: a document
attracts 1 if it is relevant and 0.1 if not (J20, Eq. 27), so that over expected clicks

    M̄ = Σ_r a_r / Σ_r a_r θ_r,   a_r = attraction displayed at rank r, summed over queries,

with θ_r = r^−γ as printed (J20, Eq. 28) or (1 + r)^−γ as in the released code.  A logger of quality t ranks by
t · signal + noise; the signal is binary relevance, or the scores of the full-information linear ranker.  t = 0 is
random.  *One* t must serve all five γ, because the paper has one logger per collection: the fit minimises the largest
relative error |published / M̄ − 1| of the five.  ``any_logger`` asks the same of every profile a_r that a logger could
have whose documents do not get better down the list.  All of it on seeds 0–9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from cfltr_book import SCALES, load_corpus, mean_interval
from cfltr_book.data.generated import ISTELLA_LIKE, YAHOO_LIKE, Knobs, _draw, _population
from cfltr_core import (
    DeterministicPolicy,
    PositionBasedUser,
    draw_sessions,
    fit_linear_ranker,
    power_examination,
    ranks,
    simulate_clicks,
)
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.ranking.ragged import RankingData

SEEDS = range(10)
GAMMAS = (0.5, 0.75, 1.0, 1.25, 1.5)
NOISE = 0.1
N_CLICKS = 1_000_000
SIZES = {"yahoo-like": SCALES["ci"].generated[0], "istella-like": SCALES["ci"].istella[0]}
# Jagerman & de Rijke 2020, Table 2.
MEAN_WEIGHT = {"yahoo-like": (3.14, 5.12, 7.92, 11.71, 16.66), "istella-like": (4.21, 7.42, 12.02, 18.12, 25.94)}
LARGEST_WEIGHT = {
    "yahoo-like": (11.79, 40.70, 129.00, 388.91, 1265.55),
    "istella-like": (13.04, 48.53, 177.00, 645.60, 2081.04),
}
# From worse than random (t < 0) to close to perfect.
QUALITIES = np.concatenate([-np.linspace(2.0, 0.1, 20), np.linspace(0.0, 6.0, 61)])


def attraction(data: RankingData) -> np.ndarray:
    """1 for a relevant document, 0.1 for another."""
    return np.where(data.binary > 0, 1.0, NOISE)


def by_rank(attracts: np.ndarray, scores: np.ndarray, offsets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Attraction displayed at rank 1, 2, …: summed over queries."""
    place = ranks(scores, offsets, ties="random", rng=rng).astype(np.int64)
    return np.asarray(np.bincount(place - 1, weights=attracts, minlength=int(np.diff(offsets).max())))


def mean_weights(displayed: np.ndarray, shift: float) -> np.ndarray:
    """M̄ at each γ; ``displayed`` has attraction by rank along its last axis."""
    place = shift + np.arange(1.0, displayed.shape[-1] + 1)
    theta = place[:, None] ** -np.array(GAMMAS)
    return np.asarray(displayed.sum(axis=-1)[..., None] / (displayed @ theta))


@dataclass(frozen=True)
class Fit:
    """The quality that fits best, M̄ there, the largest |published / M̄ − 1|; ``at_random`` is M̄ for t = 0."""

    quality: float
    fitted: np.ndarray
    worst: float
    at_random: np.ndarray


def fit(displayed: np.ndarray, shift: float, published: tuple[float, ...], least: float = 0.0) -> Fit:
    """The quality t >= ``least`` with the smallest largest relative error; between grid points a_r is interpolated."""
    fine = np.linspace(max(least, QUALITIES[0]), QUALITIES[-1], 2_001)
    left = np.clip(np.searchsorted(QUALITIES, fine, side="right") - 1, 0, len(QUALITIES) - 2)
    part = ((fine - QUALITIES[left]) / (QUALITIES[left + 1] - QUALITIES[left]))[:, None]
    model = mean_weights((1.0 - part) * displayed[left] + part * displayed[left + 1], shift)
    error = np.abs(np.array(published) / model - 1.0).max(axis=1)
    best = int(np.argmin(error))
    at_random = mean_weights(displayed[int(np.flatnonzero(QUALITIES == 0.0)[0])], shift)
    return Fit(float(fine[best]), model[best], float(error[best]), at_random)


def displayed_by_quality(data: RankingData, signal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Attraction by rank, a row for each quality; all share one draw of the noise."""
    noise = rng.normal(size=data.n_docs)
    unit = (signal - signal.mean()) / signal.std()
    attracts = attraction(data)
    return np.stack([by_rank(attracts, t * unit + noise, data.offsets, rng) for t in QUALITIES])


def fits(name: str, seed: int, shift: float, least: float = 0.0) -> dict[str, Fit]:
    """Both kinds of logger on the training queries of one population, fitted to the published M̄."""
    return {kind: fit(rows, shift, MEAN_WEIGHT[name], least) for kind, rows in grids(name, seed).items()}


def any_logger(data: RankingData, shift: float, published: tuple[float, ...]) -> float:
    """The smallest largest error of *any* logger whose mean attraction does not rise with the rank.

    A linear program over c_r, the mean attraction at rank r: 0.1 <= c_r <= 1, c_1 >= c_2 >= …, and the attraction of
    all documents is that of the data.  It minimises max_γ |M̄_published / M̄ − 1|, which is linear in c.
    """
    lists = np.diff(data.offsets)
    longest = int(lists.max())
    shown = (lists[:, None] >= np.arange(1, longest + 1)).sum(axis=0) / attraction(data).sum()
    place = shift + np.arange(1.0, longest + 1)
    model = np.array(published)[:, None] * place ** -np.array(GAMMAS)[:, None] * shown
    # Unknowns: c_1 … c_longest and the error.
    ones = np.ones((len(GAMMAS), 1))
    falling = np.hstack([np.eye(longest, k=1)[:-1] - np.eye(longest)[:-1], np.zeros((longest - 1, 1))])
    found = linprog(
        np.append(np.zeros(longest), 1.0),
        A_ub=np.vstack([np.hstack([model, -ones]), np.hstack([-model, -ones]), falling]),
        b_ub=np.concatenate([np.ones(len(GAMMAS)), -np.ones(len(GAMMAS)), np.zeros(longest - 1)]),
        A_eq=np.append(shown, 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(NOISE, 1.0)] * longest + [(0.0, None)],
    )
    if not found.success:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return float(found.fun)


_GRIDS: dict[tuple[str, int], dict[str, np.ndarray]] = {}


def grids(name: str, seed: int) -> dict[str, np.ndarray]:
    """Attraction by quality and rank for both signals; kept, because both curves are fitted to the same."""
    if (name, seed) not in _GRIDS:
        data = load_corpus(name, "ci", seed=seed).train
        rng = np.random.default_rng([seed, 6])
        linear = data.features @ fit_linear_ranker(data, 1.0, rng=rng).weights
        signals = {"relevance": data.binary, "linear": linear}
        _GRIDS[name, seed] = {kind: displayed_by_quality(data, signal, rng) for kind, signal in signals.items()}
    return _GRIDS[name, seed]


def logger_weights(name: str, seed: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """M̄ (expected) and M (of one log of a million clicks) at each γ, for a logger fitted to 0.1 % of the queries."""
    data = load_corpus(name, "ci", seed=seed).train
    rng = np.random.default_rng([seed, 7])
    policy = DeterministicPolicy.rank_by(
        data.features @ fit_linear_ranker(data, 0.001, rng=rng).weights, data.offsets, rng=rng
    )
    displayed = np.bincount(policy.displayed_rank - 1, weights=attraction(data))
    largest = []
    for gamma in GAMMAS:
        user = PositionBasedUser(power_examination(gamma, shift), epsilon_plus=1.0, epsilon_minus=NOISE)
        n = sessions_for_clicks(policy, user, n_clicks=N_CLICKS, relevance=data.binary)
        log = simulate_clicks(
            policy, user, relevance=data.binary, sessions=draw_sessions(n, data.n_queries, rng=rng), rng=rng
        )
        largest.append(float((1.0 / log.propensity[log.clicks > 0]).max()))
    return mean_weights(displayed, shift), np.array(largest)


# What the papers do not state, and this book chose: how list lengths spread, how many documents are relevant.
CHANGED: dict[str, tuple[tuple[str, Knobs], ...]] = {
    "yahoo-like": (
        ("list lengths spread more (shape 1)", replace(YAHOO_LIKE, shape=1.0)),
        ("list lengths spread less (shape 8)", replace(YAHOO_LIKE, shape=8.0)),
        ("half as many relevant", replace(YAHOO_LIKE, shares=(0.26, 0.36, 0.33, 0.04, 0.01))),
        ("twice as many relevant", replace(YAHOO_LIKE, shares=(0.26, 0.36, 0.18, 0.16, 0.04))),
    ),
    "istella-like": (
        ("list lengths spread more (shape 1)", replace(ISTELLA_LIKE, shape=1.0)),
        ("list lengths spread less (shape 8)", replace(ISTELLA_LIKE, shape=8.0)),
        ("half as many relevant", replace(ISTELLA_LIKE, shares=(0.89, 0.045, 0.04, 0.015, 0.01))),
        ("as many relevant as label 0 allows", replace(ISTELLA_LIKE, shares=(0.89, 0.005, 0.005, 0.06, 0.04))),
    ),
}


def worst_after(name: str, knobs: Knobs, seed: int, shift: float) -> tuple[float, float]:
    """Largest errors of the best t (signal: relevance) and of any logger in a changed population, without features."""
    population = _population(knobs, 1, np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 8])
    x, utility, offsets = _draw(knobs, population, SIZES[name], rng)
    grades = np.searchsorted(np.quantile(utility, np.cumsum(knobs.shares)[:-1]), utility).astype(np.int8)
    data = RankingData(x, grades, offsets=offsets, threshold=knobs.threshold)
    best = fit(displayed_by_quality(data, data.binary, rng), shift, MEAN_WEIGHT[name])
    return best.worst, any_logger(data, shift, MEAN_WEIGHT[name])


def main() -> None:
    with np.printoptions(precision=3, suppress=True, linewidth=120):
        for name, published in MEAN_WEIGHT.items():
            print(f"{name}: published M̄ {np.array(published)}, M^(1/γ)", end=" ")
            print(np.array(LARGEST_WEIGHT[name]) ** (1 / np.array(GAMMAS)))
            for shift in (0.0, 1.0):
                both = [logger_weights(name, seed, shift) for seed in SEEDS]
                print(f" ({shift:g} + r)^−γ, logger: M̄ {np.mean([b[0] for b in both], axis=0)}", end=" ")
                print(f"M {np.median([b[1] for b in both], axis=0)}")
                for least in (0.0, -2.0):
                    found = [fits(name, seed, shift, least) for seed in SEEDS]
                    for kind in ("relevance", "linear"):
                        rows = [f[kind] for f in found]
                        mean, low, high = mean_interval([row.worst for row in rows])
                        print(
                            f"   {kind:9s} t >= {least:4g}: t {np.mean([r.quality for r in rows]):5.2f} "
                            f"M̄ {np.mean([r.fitted for r in rows], axis=0)} "
                            f"largest error {mean:.3f} [{low:.3f}, {high:.3f}] "
                            f"random {np.mean([r.at_random for r in rows], axis=0)}"
                        )
            for what, knobs in CHANGED[name]:
                printed, released = (
                    np.mean([worst_after(name, knobs, seed, shift) for seed in range(3)], axis=0)
                    for shift in (0.0, 1.0)
                )
                print(f" {what}: largest error (one t, any logger) {printed} as printed, {released} with the offset")


if __name__ == "__main__":
    main()
