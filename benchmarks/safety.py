"""Is guarded deployment safe, and what does it cost?  And which cap on weights leads to the better choice?

    python -m benchmarks.safety              # 100 to 10,000 clicks, 200 logs each
    python -m benchmarks.safety --logs 20 --clicks 100 1000

A log of three rankers (60, 30, 10 % of the sessions, production the first, pages of ten, θ_r = 1/r, yahoo-like) is cut
into halves by session.  Production was made from the labels of half of the queries, which is hard to beat, or of 1 %.
SVM PropRank learns from the first half, policy-aware; the second judges.  θ̂ is the conditional Poisson estimate from
20,000 sessions of an earlier log.  *Unguarded*: what was learnt is deployed.  *Guarded*: ``choose_safely``, δ = .03
DCG@10 a session; *by exposure*: its other rule, that of Gupta, Oosterhuis & de Rijke 2023.  For each number of clicks:
how often the deployed ranker is worse than production by more than δ, with the interval of Clopper & Pearson 1934, the
mean true difference of the deployed one, and what each guard loses of it where the learnt one is better.

Then the same decision by the sign of a capped estimate, policy-aware with weights of at most 10, of at most the root of
the number of sessions, of any size, and with the cap that SLOPE chooses (Su, Srinath & Krishnamurthy 2020): the
smallest for which its interval and those of all larger caps share a point.  Regret is what the better one
of the two rankers has more than the deployed one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest

from benchmarks.decisions import DELTA, PLAIN, SHARES, K
from cfltr_book import load_corpus
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    DisplayShares,
    MixturePolicy,
    choose_safely,
    clipped,
    conditional_poisson,
    dcg,
    display_counts,
    draw_sessions,
    fit_linear_ranker,
    fit_proprank,
    ips,
    policy_aware,
    rank_weights,
    simulate_clicks,
)
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.ranking.rank_weight import RankWeights

CLICKS = (100, 300, 1_000, 3_000, 10_000)
CAPS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def slope(log: ClickLog, gap: RankWeights) -> float:
    """Minus the estimate of the difference in risk with the cap that SLOPE chooses."""
    made = [clipped(log, gap, cap=cap) for cap in CAPS] + [ips(log, gap)]
    # From the largest cap, which has the least bias, down to smaller ones, as long as all intervals share a point.
    low, high, chosen = -np.inf, np.inf, made[-1]
    for estimate in made[::-1]:
        ends = estimate.interval()
        low, high = max(low, ends[0]), min(high, ends[1])
        if low > high:
            break
        chosen = estimate
    return -chosen.value


def measure(trained_on: float, logs: int, sizes: Sequence[int]) -> None:
    """Print the figures for a production ranker that knows the labels of this share of the queries."""
    data, rng = load_corpus("yahoo-like", "ci", seed=0).train, np.random.default_rng(0)
    cuts, metric = data.offsets, dcg(K)
    n_queries = len(cuts) - 1
    parts = [trained_on, *[0.01] * (len(SHARES) - 1)]
    scores = [fit_linear_ranker(data, part, rng=rng).decision_function(data.features) for part in parts]
    policy = MixturePolicy([DeterministicPolicy.rank_by(f, cuts, rng=rng, cutoff=K) for f in scores], SHARES)
    shares = DisplayShares.of_policy(policy)
    shown = shares.exposure(PLAIN) > 0

    def weights_of(f: np.ndarray) -> RankWeights:
        """λ of the ranker that orders what was shown before the rest, so that the log supports it."""
        return rank_weights(np.where(shown, 0.0, -1e6) + f - f.min(), cuts, metric=metric)

    production = weights_of(scores[0])

    def draw(n: int, rng: np.random.Generator) -> ClickLog:
        sessions = draw_sessions(n, n_queries, rng=rng)
        return simulate_clicks(policy, PLAIN, relevance=data.binary, sessions=sessions, rng=rng)

    for n_clicks in sizes:
        start = time.perf_counter()
        n = sessions_for_clicks(policy, PLAIN, relevance=data.binary, n_clicks=n_clicks)
        free, guarded, exposed, regrets = [], [], [], []
        for seed in range(logs):
            rng = np.random.default_rng([8, n_clicks, seed])
            curve = conditional_poisson(display_counts(draw(20_000, rng)))
            train, judge = draw(max(1, n // 2), rng), draw(max(1, n - n // 2), rng)
            exposure = np.minimum(shares.exposure(curve.user()), 1.0)
            used = policy_aware(train, exposure)
            fit = fit_proprank(data.features, used, C=1.0, gap=1e-2)
            new = weights_of(fit.decision_function(data.features))
            gap = new - production
            # Of the attraction, of which clicks tell: ε₊ − ε₋ = .9 of the relevance.
            truth = -0.9 * float(gap.lam @ data.binary) / n_queries
            case = {"log": judge, "shares": shares, "smallest": DELTA, "curve": curve}
            choice = choose_safely({"new": new}, production, **case)
            near = choose_safely({"new": new}, production, rule="exposure", **case)
            free.append(truth)
            guarded.append(truth if choice.chosen else 0.0)
            exposed.append(truth if near.chosen else 0.0)
            aware = policy_aware(judge, exposure)
            signs = {
                "cap 10": -clipped(aware, gap, cap=10.0).value,
                "cap √n": -clipped(aware, gap, cap=max(1.0, float(np.sqrt(judge.n_sessions)))).value,
                "no cap": -ips(aware, gap).value,
                "SLOPE": slope(aware, gap),
                "guard": 1.0 if choice.chosen else -1.0,
                "guard by exposure": 1.0 if near.chosen else -1.0,
                "always": 1.0,
                "never": -1.0,
            }
            regrets.append([max(truth, 0.0) - truth * (sign > 0) for sign in signs.values()])
        print(f"{n_clicks:,} clicks in {n:,} sessions, half to learn and half to judge, {logs:,} logs")
        for name, values in (("unguarded", free), ("guarded", guarded), ("guarded by exposure", exposed)):
            worse = sum(v < -DELTA for v in values)
            ends = binomtest(worse, logs).proportion_ci(method="exact")
            error = np.std(values, ddof=1) / np.sqrt(logs)
            print(
                f"  {name}: worse by more than δ {worse / logs:.3f} [{ends.low:.3f}, {ends.high:.3f}], "
                f"mean difference {np.mean(values):+.4f} ± {2 * error:.4f}"
            )
        for name, values in (("guard", guarded), ("guard by exposure", exposed)):
            lost = np.mean([max(f, 0.0) - max(g, 0.0) for f, g in zip(free, values, strict=True)])
            deployed = np.mean([g != 0 for g in values])
            print(f"  the {name} deploys in {deployed:.3f} of the logs; mean gain lost {lost:.4f}")
        table = np.array(regrets)
        print(
            "  regret: "
            + ", ".join(f"{name} {value:.4f}" for name, value in zip(signs, table.mean(axis=0), strict=True))
        )
        print(f"    {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--clicks", type=int, nargs="+", default=CLICKS)
    options = parser.parse_args()
    for trained_on in (0.5, 0.01):
        print(f"production knows the labels of {trained_on:.0%} of the queries")
        measure(trained_on, options.logs, options.clicks)


if __name__ == "__main__":
    main()
