"""How the claims of chapter 12 are measured: rankings of six documents, every log of four, and tables of rankers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations, product
from typing import Any

import numpy as np

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments import learners
from cfltr_book.experiments.ch12 import BY_LOSS, LEARNT_FROM, MANY, MORE_QUERIES, table
from cfltr_book.theory.exact import expectation
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.learning.lambda_pairs import LambdaLoss

Arrays = Mapping[str, FloatArray]

# A cut-off and a rule for the pairs; without a cut-off the rule plays no part.
WAYS: list[tuple[int | None, Any]] = [(None, "both")]
WAYS += [(cut, way) for cut in range(1, 7) for way in ("at_least_one", "both", "beyond")]
WAYS += [(cut, "within") for cut in range(1, 7)]
# A, B, C, D in the deployed order, all but B relevant, behind pages of three that can show each of them.
CUTS, BEST, RELEVANT = np.array([0, 4]), np.array([1, 2, 3, 4]), np.array([1.0, 0.0, 1.0, 1.0])
THETA = [1, 1 / 2, 1 / 3]
SHOPPER = cf.PositionBasedUser(THETA)
NOISY = cf.PositionBasedUser(THETA, epsilon_plus=0.9, epsilon_minus=0.2)
COVERING: list[LoggingPolicy] = [
    cf.EpsilonGreedyPolicy(BEST, CUTS, epsilon=np.array([0, 0, 1.0])),
    cf.EpsilonGreedyPolicy(BEST, CUTS, epsilon=np.full(3, 0.3)),
    cf.PlackettLucePolicy(-BEST, CUTS, cutoff=3, temperature=1.5),
]
SAME_PAGE = cf.DeterministicPolicy(np.array([1, 2, 3, 0]), CUTS)


def discount(rank: Any) -> Any:
    """What a wanted document adds to DCG at a rank."""
    return 1 / np.log2(1 + rank)


def pair_weight(i: int, j: int, cut: int | None = None, way: str = "at_least_one") -> float:
    """The weight of a pair of ranks, as the chapter defines it."""
    step, worse = float(discount(abs(i - j)) - discount(abs(i - j) + 1)), max(i, j)
    if cut is None or worse <= cut:
        return step
    if way == "beyond":
        return step / float(1 - discount(worse))
    if way == "within" and abs(i - j) >= cut:
        return float(discount(cut)) if abs(i - j) == cut else 0.0
    if way == "within":
        return step
    return step if way == "at_least_one" and min(i, j) <= cut else 0.0


def stated(r: int, cut: int | None = None, way: str = "at_least_one") -> float:
    """What the theorem says that a document costs at a rank."""
    if cut is None or r <= cut:
        return float(1 - discount(r))
    at_least_one = float(discount(r - cut) - discount(r))
    return {"at_least_one": at_least_one, "both": 0.0, "beyond": 1.0, "within": 1.0}[way]


def loss_by(s: FloatArray, gains: FloatArray, cut: int | None, way: Any) -> LambdaLoss:
    """The loss of one list by a cut-off and a rule; pairs within some ranks are no truncation of the package."""
    if way == "within" and cut is not None:
        return learners.within(np.array([0, len(s)]), gains, cut).loss(s)
    return cf.lambda_loss(s, [0, len(s)], gains=gains, cutoff=cut, truncation=way)


def _gains(rng: np.random.Generator, n: int = 6) -> FloatArray:
    return np.asarray(rng.exponential(size=n) * (rng.random(n) < 0.7))


@measures("B-lambdaloss-metric", section="bounds")
def lambdaloss_metric(run: Run) -> Arrays:
    """Steps 1 and 2: the weights of the pairs above, for all rankings of six documents."""
    gains, left, right = _gains(run.rng(run.seed, 1200)), [], []
    for (cut, way), order in product(WAYS, permutations(range(1, 7))):
        left.append(gains @ [sum(pair_weight(r, j, cut, way) for j in range(1, r)) for r in order])
        right.append(gains @ [stated(r, cut, way) for r in order])
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-lambdaloss-bound", section="bounds")
def lambdaloss_bound(run: Run) -> Arrays:
    """Step 3: the loss of random scores, far apart and close together, above what it bounds."""
    rng, lower, upper = run.rng(run.seed, 1207), [], []
    gains = _gains(rng)
    for (cut, way), spread in product(WAYS, (0.01, 1, 100)):
        s = spread * rng.normal(size=6)
        place = cf.ranks(s, [0, 6]).astype(int)
        lower.append(gains @ [stated(r, cut, way) for r in place])
        upper.append(loss_by(s, gains, cut, way).value)
    return {"lower": np.array(lower), "upper": np.array(upper)}


@measures("B-lambdaloss-frozen", section="fails")
def lambdaloss_frozen(run: Run) -> Arrays:
    """The loss with the ranks of one set of scores, at another, and the DCG that is lost there."""
    rng, missed, claimed = run.rng(run.seed, 1208), [], []
    for _ in range(300):
        start, gains = 3 * rng.normal(size=7), np.eye(7)[rng.integers(7)]
        step, rank = start + 3 * rng.normal(size=7), cf.ranks(start, [0, 7]).astype(int)
        d = int(gains.argmax())
        others = [e for e in range(7) if e != d]
        missed.append(1 - discount(cf.ranks(step, [0, 7])[d]))
        claimed.append(sum(pair_weight(rank[d], rank[e]) * np.logaddexp(0, step[e] - step[d]) for e in others))
    return {"lower": np.array(missed), "upper": np.array(claimed) / np.log(2)}


def _parts(s: FloatArray, gains: FloatArray) -> FloatArray:
    """Value and slopes by each of the five rules."""
    made = [loss_by(s, gains, cut, way) for cut, way in WAYS if cut in (None, 2)]
    return np.concatenate([[loss.value, *loss.gradient] for loss in made])


def _difference(s: FloatArray, gains: FloatArray) -> FloatArray:
    """The value of the difference form."""
    return np.array([cf.lambda_loss(s, CUTS, gains=gains, form="difference").value])


def _expected(
    policy: LoggingPolicy,
    user: cf.PositionBasedUser,
    s: FloatArray,
    of: Callable[[FloatArray, FloatArray], FloatArray] = _parts,
) -> FloatArray:
    """The exact mean over every page and every click of one session."""
    p = policy.exposure(user)

    def seen(log: cf.ClickLog) -> FloatArray:
        return of(s, cf.click_gains(cf.policy_aware(log, p)))

    return np.asarray(expectation(seen, policy, user=user, relevance=RELEVANT, sessions=[1]))


def _tried(run: Run) -> list[tuple[LoggingPolicy, FloatArray]]:
    """Three policies, each with two sets of random scores."""
    rng = run.rng(run.seed, 1209)
    return [(policy, s) for policy in COVERING for s in rng.normal(size=(2, 4))]


@measures("O20-lambdaloss-unbiased", section="expects")
def lambdaloss_unbiased(run: Run) -> Arrays:
    """Step 4 without noise.  With the page that never changes it must fail."""
    for _, s in _tried(run):
        assert np.abs(_expected(SAME_PAGE, SHOPPER, s) - _parts(s, RELEVANT)).max() > 0.05
    left = [_expected(policy, SHOPPER, s) for policy, s in _tried(run)]
    return {"left": np.array(left), "right": np.array([_parts(s, RELEVANT) for _, s in _tried(run)])}


@measures("B-lambdaloss-difference", section="expects")
def lambdaloss_difference(run: Run) -> Arrays:
    """Step 5: the difference form from one session, and what labels give, a twentieth more."""
    scores = [s for _, s in _tried(run)]
    return {
        "lower": np.array([1.05 * _difference(s, RELEVANT)[0] for s in scores]),
        "upper": np.array([_expected(COVERING[0], SHOPPER, s, _difference)[0] for s in scores]),
    }


@measures("B-lambdaloss-noise", section="expects")
def lambdaloss_noise(run: Run) -> Arrays:
    """Step 4 with clicks by mistake."""
    left = [_expected(policy, NOISY, s) for policy, s in _tried(run)]
    right = [0.7 * _parts(s, RELEVANT) + 0.2 * _parts(s, np.ones(4)) for _, s in _tried(run)]
    return {"left": np.array(left), "right": np.array(right)}


def _of(run: Run, arm: str, epsilon: float, clicks: int = MANY) -> FloatArray:
    """The nDCG@5 of a learner, seed by seed; labels and production have no log."""
    frame = table(run, LEARNT_FROM)
    none = arm in ("labels", "production")
    rows = frame[
        (frame["arm"] == arm)
        & (frame["epsilon"] == (0 if none else epsilon))
        & (frame["n_clicks"] == (0 if none else clicks))
    ]
    return np.asarray(rows.sort_values("seed")["ndcg"], dtype=np.float64)


def _by(run: Run, **where: object) -> FloatArray:
    """The nDCG@5 of a loss or a page, seed by seed."""
    frame = table(run, BY_LOSS)
    usual = {"places": 5, "epsilon": 1.0, "gains": "policy-aware", "loss": "at least one", "production": "few labels"}
    for key, value in (usual | where).items():
        frame = frame[frame[key] == value]
    return np.asarray(frame.sort_values("seed")["ndcg"], dtype=np.float64)


def _of_all(run: Run, arm: str) -> FloatArray:
    """The nDCG@5 of a learner from all training queries, seed by seed."""
    frame = table(run, MORE_QUERIES)
    return np.asarray(frame[frame["arm"] == arm].sort_values("seed")["ndcg"], dtype=np.float64)


@measures("O20-topfive-cannot", section="still")
def topfive_cannot(run: Run) -> Arrays:
    """Labels, and clicks on a page that never changes."""
    return {"larger": _of(run, "labels", 0.0), "smaller": _of(run, "oblivious", 0.0)}


@measures("control-topfive-whole-list", section="still")
def whole_list(run: Run) -> Arrays:
    """The same where the whole list is displayed."""
    return {"left": _of(run, "labels", 0.0), "right": _by(run, places=0, epsilon=0.0, gains="oblivious")}


@measures("B-learners-direct", section="still")
def learners_direct(run: Run) -> Arrays:
    """The regression on displayed documents, and hidden taken for unwanted."""
    return {"larger": _of(run, "direct", 0.0), "smaller": _of(run, "oblivious", 0.0)}


@measures("B-more-queries", section="still")
def more_queries(run: Run) -> Arrays:
    """The same from all training queries."""
    return {"larger": _of_all(run, "direct"), "smaller": _of_all(run, "oblivious")}


@measures("O20-topfive-aware-learns", section="chance")
def aware_learns(run: Run) -> Arrays:
    """Both kinds of gains, a random last place in all sessions."""
    return {"larger": _of(run, "policy-aware", 1.0), "smaller": _of(run, "oblivious", 1.0)}


@measures("control-topfive-both-unbiased", section="chance")
def both_unbiased(run: Run) -> Arrays:
    """The same where the whole list is displayed, and its fifth place changes."""
    return {"left": _by(run, places=0, epsilon=0.9), "right": _by(run, places=0, epsilon=0.9, gains="oblivious")}


@measures("O20-topfive-aware-can", section="chance")
def aware_can(run: Run) -> Arrays:
    """Labels, and policy-aware gains."""
    return {"left": _of(run, "labels", 0.0), "right": _of(run, "policy-aware", 1.0)}


@measures("O20-topfive-works", section="chance")
def works(run: Run) -> Arrays:
    """Policy-aware gains, and the ranker that filled the log."""
    return {"larger": _of(run, "policy-aware", 1.0), "smaller": _of(run, "production", 0.0)}


@measures("control-topfive-no-room", section="chance")
def no_room(run: Run) -> Arrays:
    """The same where production has learnt from all labels."""
    return {"left": _by(run, production="all labels"), "right": _by(run, production="all labels", gains="production")}


@measures("B-learners-chance", section="chance")
def learners_chance(run: Run) -> Arrays:
    """Policy-aware gains, and the regression without any chance."""
    return {"larger": _of(run, "policy-aware", 1.0), "smaller": _of(run, "direct", 0.0)}


@measures("B-topfive-counted-exposure", section="chance")
def counted_exposure(run: Run) -> Arrays:
    """Exposure as the log counts it, and as the policy has it."""
    return {"left": _of(run, "counted", 1.0), "right": _of(run, "policy-aware", 1.0)}


@measures("B-topfive-oblivious-early", section="rare")
def oblivious_early(run: Run) -> Arrays:
    """Both kinds of gains, few clicks and little chance."""
    return {"larger": _of(run, "oblivious", 0.01, 10**4), "smaller": _of(run, "policy-aware", 0.01, 10**4)}


@measures("B-learners-cap", section="rare")
def learners_cap(run: Run) -> Arrays:
    """Weights with the released cap, and without one."""
    return {"larger": _of(run, "capped", 0.01, 10**5), "smaller": _of(run, "policy-aware", 0.01, 10**5)}


@measures("B-learners-robust", section="rare")
def learners_robust(run: Run) -> Arrays:
    """Doubly robust gains, and policy-aware ones."""
    return {"larger": _of(run, "doubly robust", 0.01, 10**6), "smaller": _of(run, "policy-aware", 0.01, 10**6)}


@measures("control-learners-robust", section="rare")
def robust_with_many(run: Run) -> Arrays:
    """The same with chance and clicks in plenty."""
    return {"left": _of(run, "doubly robust", 1.0), "right": _of(run, "policy-aware", 1.0)}


@measures("B-topfive-truncations", section="losses")
def truncations(run: Run) -> Arrays:
    """A loss that bounds what DCG@5 misses, and one with at least one document in the top five."""
    return {"left": _by(run, loss="beyond"), "right": _of(run, "policy-aware", 1.0)}


@measures("B-loss-within", section="losses")
def loss_within(run: Run) -> Arrays:
    """Pairs at most five ranks apart, and with at least one document in the top five."""
    return {"left": _by(run, loss="within five"), "right": _of(run, "policy-aware", 1.0)}


@measures("B-loss-monotonic", section="losses")
def loss_monotonic(run: Run) -> Arrays:
    """LambdaLoss, and the bound by way of the rank."""
    return {"larger": _of(run, "policy-aware", 1.0), "smaller": _by(run, loss="monotonic")}


@measures("B-page-length", section="losses")
def page_length(run: Run) -> Arrays:
    """Pages of twenty that never change, and labels."""
    return {"left": _by(run, places=20, epsilon=0.0, gains="oblivious"), "right": _of(run, "labels", 0.0)}
