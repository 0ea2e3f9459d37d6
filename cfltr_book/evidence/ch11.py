"""How the claims of chapter 11 are measured: every log of four documents behind a page of three, and populations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch11 import COUNTS, JUDGED, LEARNT, SHARES, TESTED, ab_tests, prices
from cfltr_book.theory.exact import enumerate_logs, expectation, mean_and_variance
from cfltr_core.checks import BoolArray, FloatArray
from cfltr_core.clicks.policies import LoggingPolicy

Arrays = Mapping[str, FloatArray]

# A, B, C, D in the deployed order, all but B relevant, on pages of three.
CUTS, ORDER = np.array([0, 4]), np.array([1, 2, 3, 4])
RELEVANT = np.array([1.0, 0.0, 1.0, 1.0])
THETA = np.array([1, 1 / 2, 1 / 3])
SHOPPER = cf.PositionBasedUser([1, 1 / 2, 1 / 3])
SAME_PAGE = cf.DeterministicPolicy(np.array([1, 2, 3, 0]), CUTS)
RANDOM_THIRD = cf.EpsilonGreedyPolicy(ORDER, CUTS, epsilon=np.array([0, 0, 1.0]))
AB_TEST = cf.MixturePolicy([SAME_PAGE, cf.DeterministicPolicy(np.array([3, 0, 2, 1]), CUTS)], [0.8, 0.2])
# All but the first can show every document.
POLICIES: tuple[LoggingPolicy, ...] = (
    SAME_PAGE,
    RANDOM_THIRD,
    cf.EpsilonGreedyPolicy(ORDER, CUTS, epsilon=np.full(3, 0.3)),
    cf.PlackettLucePolicy(-ORDER, CUTS, cutoff=3, temperature=1.5),
    AB_TEST,
)
# Nobody looks at the last place, or at the last two: not every document that is displayed is exposed.
HIDDEN = [
    (SAME_PAGE, SHOPPER),
    (RANDOM_THIRD, cf.PositionBasedUser([1, 1 / 2, 0])),
    (AB_TEST, cf.PositionBasedUser([1, 0, 0])),
]
# Every ranking by four metrics: the rank weights of A, B, C, D.
JUDGED_BY = np.array(
    [
        metric(np.array(ranking))
        for metric in (cf.average_rank(), cf.dcg(3), cf.precision(1), cf.rbp(0.8))
        for ranking in permutations([1, 2, 3, 4])
    ]
)


def _weighted(
    policy: LoggingPolicy, weight: ArrayLike, user: cf.PositionBasedUser = SHOPPER, sessions: int = 1
) -> FloatArray:
    """The exact mean of the clicks on each document, each times its document's weight."""

    def count(log: cf.ClickLog) -> FloatArray:
        return np.asarray(np.bincount(log.document, log.clicks, minlength=4) * np.asarray(weight))

    return np.asarray(expectation(count, policy, user=user, relevance=RELEVANT, sessions=[sessions]))


def _by_place(policy: LoggingPolicy, user: cf.PositionBasedUser = SHOPPER) -> FloatArray:
    """The exact mean of clicks over the examination of their place, of each document in one session."""

    def count(log: cf.ClickLog) -> FloatArray:
        return np.bincount(log.document, log.clicks * log.weights, minlength=4).astype(np.float64)

    return np.asarray(expectation(count, policy, user=user, relevance=RELEVANT, sessions=[1]))


def _inverse(p: FloatArray) -> FloatArray:
    """1/p where p is positive, else 0."""
    return np.divide(1.0, p, out=np.zeros(len(p)), where=p > 0)


def _looked_at(user: cf.PositionBasedUser, rank: FloatArray) -> BoolArray:
    """Whether anybody examines a rank."""
    return np.asarray(user.propensity(rank) > 0)


def _aware(policy: LoggingPolicy, user: cf.PositionBasedUser = SHOPPER) -> FloatArray:
    return _weighted(policy, _inverse(policy.exposure(user)), user)


def _of_rankings(per_document: list[FloatArray]) -> FloatArray:
    """What every ranking is worth by every metric, if the documents count so much."""
    return np.array([JUDGED_BY @ counted for counted in per_document])


@measures("O20-policy-click-probability", section="unbiased")
def policy_click_probability(run: Run) -> Arrays:
    """Clicks of one session under five policies, and exposure times relevance."""
    return {
        "left": np.array([_weighted(policy, 1.0) for policy in POLICIES]),
        "right": np.array([policy.exposure(SHOPPER) * RELEVANT for policy in POLICIES]),
    }


@measures("B-oblivious-bias", section="unbiased")
def oblivious_bias(run: Run) -> Arrays:
    """Steps 1 and 2: clicks over the examination of their place; those places that nobody looks at count as hidden.

    Where a relevant document is not always displayed, some Prec@1 is off by more than a tenth (step 4).
    """
    cases = [(policy, SHOPPER) for policy in POLICIES] + HIDDEN[1:]
    found = [_by_place(policy, user) for policy, user in cases]
    displayed = [policy.display_mean(partial(_looked_at, user)) for policy, user in cases]
    for counted, share in zip(found, displayed, strict=True):
        off = np.abs(JUDGED_BY[48:72] @ (counted - RELEVANT)).max()
        assert (off > 0.1) == bool(((share < 1 - 1e-9) & (RELEVANT > 0)).any())
    return {"left": _of_rankings(found), "right": _of_rankings([share * RELEVANT for share in displayed])}


@measures("O20-aware-unbiased", section="unbiased")
def aware_unbiased(run: Run) -> Arrays:
    """Step 3, under the four policies that show every document."""
    found = [_aware(policy) for policy in POLICIES[1:]]
    return {"left": _of_rankings(found), "right": _of_rankings([RELEVANT] * len(found))}


@measures("B-aware-positivity", section="unbiased")
def aware_positivity(run: Run) -> Arrays:
    """Step 3 where relevant documents lack exposure: displayed nowhere, or where nobody looks."""
    exposed = [policy.exposure(user) > 0 for policy, user in HIDDEN]
    assert all((RELEVANT[~some] > 0).any() for some in exposed)
    return {
        "left": _of_rankings([_aware(policy, user) for policy, user in HIDDEN]),
        "right": _of_rankings([some * RELEVANT for some in exposed]),
    }


@measures("B-unexposed-cannot-be-judged", section="unbiased")
def unexposed_cannot_be_judged(run: Run) -> Arrays:
    """The probability of every log of two sessions, where D is relevant and where it is not.

    D has no exposure: the page never changes, or nobody looks where it is displayed.  With a random third place that is
    seen the probabilities differ.
    """

    def law(policy: LoggingPolicy, user: cf.PositionBasedUser, relevant: float) -> dict[Any, float]:
        logs = enumerate_logs(policy, user, relevance=[1, 0, 1, relevant], sessions=[2])
        return {(*log.document, *log.rank, *log.impressions, *log.clicks): chance for chance, log in logs}

    both = [[law(policy, user, relevant) for relevant in (1.0, 0.0)] for policy, user in HIDDEN[:2]]
    assert all(one.keys() == other.keys() for one, other in both)
    seen, unseen = (law(RANDOM_THIRD, SHOPPER, relevant) for relevant in (1.0, 0.0))
    assert seen.keys() != unseen.keys()
    return {
        "left": np.array([one[log] for one, _ in both for log in one]),
        "right": np.array([other[log] for one, other in both for log in one]),
    }


@measures("B-robust-behind-the-page", section="unbiased")
def robust_behind_the_page(run: Run) -> Arrays:
    """Part (c): the doubly robust estimate of single documents, under five policies, from three guesses."""
    left, right = [], []
    for policy, guess in product(POLICIES, ([0.5] * 4, [0.1, 0.9, 0.2, 0.3], [1.0, 0.0, 1.0, 1.0])):
        given: dict[str, Any] = {"shares": cf.DisplayShares.of_policy(policy), "user": SHOPPER, "guess": guess}

        def robust(log: cf.ClickLog, given: dict[str, Any] = given) -> list[float]:
            return [
                cf.doubly_robust(log, cf.rank_weights(row, CUTS, metric=cf.precision(1)), **given).report()
                for row in np.eye(4)
            ]

        left.append(expectation(robust, policy, user=SHOPPER, relevance=RELEVANT, sessions=[1]))
        right.append(np.where(policy.exposure(SHOPPER) > 0, RELEVANT, guess))
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-robust-variance", section="unbiased")
def robust_variance(run: Run) -> Arrays:
    """D, which only the third place shows: three shares of random third places, four guesses."""
    left, right = [], []
    weights = cf.rank_weights([0.0, 0.0, 0.0, 1.0], CUTS, metric=cf.precision(1))  # D alone counts
    for epsilon, g in product((0.1, 0.5, 1.0), (0.0, 0.3, 0.8, 1.0)):
        policy = cf.EpsilonGreedyPolicy(ORDER, CUTS, epsilon=np.array([0, 0, epsilon]))
        given: dict[str, Any] = {
            "shares": cf.DisplayShares.of_policy(policy), "user": SHOPPER, "guess": [0.0, 0.0, 0.0, g]
        }  # fmt: skip

        def robust(log: cf.ClickLog, given: dict[str, Any] = given) -> float:
            return cf.doubly_robust(log, weights, **given).report()

        left.append(mean_and_variance(robust, policy, user=SHOPPER, relevance=RELEVANT, sessions=[1])[1])
        p = epsilon / 2 * THETA[2]
        right.append((1 - THETA[2] * (2 * g - g**2)) / p - (1 - g) ** 2)
    return {"left": np.array(left), "right": np.array(right)}


def _two_periods() -> Iterator[tuple[int, int, FloatArray, FloatArray]]:
    """Sessions before and after chance is let in, and both exposures."""
    for before, after in ((1, 1), (1, 3), (3, 1)):
        yield before, after, SAME_PAGE.exposure(SHOPPER), RANDOM_THIRD.exposure(SHOPPER)


def _in_two_periods(before: int, after: int, first: FloatArray, second: FloatArray) -> FloatArray:
    """The exact mean per session of both periods, in which a click on a document counts ``first`` or ``second``."""
    total = _weighted(SAME_PAGE, first, sessions=before) + _weighted(RANDOM_THIRD, second, sessions=after)
    return total / (before + after)


@measures("B-intervention-aware", section="changes")
def intervention_aware(run: Run) -> Arrays:
    """Clicks over the exposure in the mean of all sessions."""
    left = []
    for before, after, p, q in _two_periods():
        weight = _inverse((before * p + after * q) / (before + after))
        left.append(_in_two_periods(before, after, weight, weight))
    return {"left": _of_rankings(left), "right": _of_rankings([RELEVANT] * len(left))}


@measures("B-own-period", section="changes")
def own_period(run: Run) -> Arrays:
    """Clicks over the exposure of their own period, and the share of sessions in which documents had exposure."""
    left, right = [], []
    for before, after, p, q in _two_periods():
        left.append(_in_two_periods(before, after, _inverse(p), _inverse(q)))
        right.append((before * (p > 0) + after * (q > 0)) / (before + after) * RELEVANT)
    return {"left": _of_rankings(left), "right": _of_rankings(right)}


@measures("B-aware-noise-affine", section="fails")
def aware_noise_affine(run: Run) -> Arrays:
    """Clicks by mistake, under the four policies that show every document."""
    user = cf.PositionBasedUser([1, 1 / 2, 1 / 3], epsilon_plus=0.9, epsilon_minus=0.2)
    found = [_aware(policy, user) for policy in POLICIES[1:]]
    risk = 0.7 * JUDGED_BY @ RELEVANT + 0.2 * JUDGED_BY.sum(axis=1)
    return {"left": _of_rankings(found), "right": np.array([risk] * len(found))}


def _variances(
    statistic: Callable[[cf.ClickLog], ArrayLike], policy: LoggingPolicy, user: cf.PositionBasedUser, rel: FloatArray
) -> list[FloatArray]:
    """The exact variance of a statistic of one session: policy-aware, and oblivious."""
    given: dict[str, Any] = {"user": user, "relevance": rel, "sessions": [1]}
    p = policy.exposure(user)

    def aware(log: cf.ClickLog) -> ArrayLike:
        return statistic(cf.policy_aware(log, p))

    return [mean_and_variance(see, policy, **given)[1] for see in (aware, statistic)]


def _each(log: cf.ClickLog) -> FloatArray:
    return np.bincount(log.document, log.clicks * log.weights, minlength=int(log.offsets[-1])).astype(np.float64)


@measures("B-jensen-per-document", section="fails")
def jensen_per_document(run: Run) -> Arrays:
    """Four relevant documents, under three policies that show the whole list."""
    user = cf.PositionBasedUser(cf.power_examination(1.0))
    turned = [cf.DeterministicPolicy(order, CUTS) for order in (ORDER, ORDER[::-1])]
    showing_all: tuple[LoggingPolicy, ...] = (
        cf.EpsilonGreedyPolicy(ORDER, CUTS, epsilon=np.full(4, 0.3)),
        cf.PlackettLucePolicy(-ORDER, CUTS, cutoff=4),
        cf.MixturePolicy(turned, [0.7, 0.3]),
    )
    found = np.array([_variances(_each, policy, user, np.ones(4)) for policy in showing_all])
    return {"lower": found[:, 0], "upper": found[:, 1]}


@measures("B-jensen-of-the-sum", section="fails")
def jensen_of_the_sum(run: Run) -> Arrays:
    """An A/B test swaps two blocks of one to four documents, one block relevant; the lower is seen half the time."""
    found = []
    for m in range(1, 5):
        ranks, blocks = np.arange(1, 2 * m + 1), np.array([0, 2 * m])
        pages = [cf.DeterministicPolicy(r, blocks) for r in (ranks, np.roll(ranks, m))]
        user, relevant = cf.PositionBasedUser([1.0] * m + [0.5] * m), np.repeat([1.0, 0.0], m)
        found.append(_variances(lambda log: _each(log).sum(), cf.MixturePolicy(pages, [0.5, 0.5]), user, relevant))
    variance = np.array(found)
    return {"lower": variance[:, 0], "upper": variance[:, 1]}


def _errors(run: Run, epsilon: float, estimate: str) -> FloatArray:
    """Errors of an estimate, seeds × sessions."""
    frame = run.table(JUDGED)
    rows = frame[frame["epsilon"] == epsilon]
    return np.asarray(rows.pivot(index="seed", columns="sessions", values=estimate), dtype=np.float64)


def _limit(run: Run, epsilon: float, estimate: str) -> Arrays:
    sessions = np.unique(run.table(JUDGED)["sessions"]).astype(np.float64)
    return {"x": sessions, "errors": _errors(run, epsilon, estimate)}


@measures("O20-oblivious-cannot", section="judging")
def oblivious_cannot(run: Run) -> Arrays:
    """The oblivious error on a page that never changes."""
    return _limit(run, 0.0, "oblivious")


@measures("O20-oblivious-cannot-randomised", section="judging")
def oblivious_cannot_randomised(run: Run) -> Arrays:
    """The oblivious error with a random last place."""
    return _limit(run, 1.0, "oblivious")


@measures("O20-aware-can", section="judging")
def aware_can(run: Run) -> Arrays:
    """The policy-aware error with a random last place."""
    return _limit(run, 1.0, "aware")


def _of_shares(run: Run, column: str) -> FloatArray:
    """A column of the prices, seeds × shares."""
    return np.asarray(prices(run).pivot(index="seed", columns="epsilon", values=column), dtype=np.float64)


@measures("B-sessions-by-share", section="rule")
def sessions_by_share(run: Run) -> Arrays:
    """The sessions that each share takes, in closed form."""
    return {"x": np.array(SHARES), "errors": _of_shares(run, "sessions")}


@measures("B-plan-from-a-guess", section="rule")
def plan_from_a_guess(run: Run) -> Arrays:
    """The standard error after the planned sessions over the one asked for, in the mean over shares."""
    return {"values": _of_shares(run, "reached").mean(axis=1)}


@measures("B-plan-of-a-test", section="rule")
def plan_of_a_test(run: Run) -> Arrays:
    """The standard error after the planned sessions of an A/B test over the one asked for."""
    return {"values": np.asarray(ab_tests(run).sort_values("seed")["reached"], dtype=np.float64)}


def _covered(run: Run, *, place: bool) -> Arrays:
    """The share of intervals that hold the true lead, seed by seed, in the mean over both kinds of wanted documents."""
    frame = run.table(TESTED)
    rows = frame[frame["place"] == place]
    return {"values": np.asarray(rows.groupby("seed")["covered"].mean(), dtype=np.float64)}


@measures("B-halves-cover", section="rule")
def halves_cover(run: Run) -> Arrays:
    """Intervals from both halves of an A/B test."""
    return _covered(run, place=False)


@measures("B-place-covers", section="rule")
def place_covers(run: Run) -> Arrays:
    """Intervals from a random last place."""
    return _covered(run, place=True)


def _gained(run: Run, arm: str, epsilon: float, *, sold_out: bool = False) -> FloatArray:
    """DCG@5 gained from a thousand sessions per query, seed by seed."""
    frame: pd.DataFrame = run.table(LEARNT)
    rows = frame[
        (frame["arm"] == arm) & (frame["epsilon"] == epsilon) & (frame["sold_out"] == sold_out)
        & (frame["per_query"] == COUNTS[-1])
    ]  # fmt: skip
    return np.asarray(rows.sort_values("seed")["gained"], dtype=np.float64)


@measures("B-displayed-learns", section="learning")
def displayed_learns(run: Run) -> Arrays:
    """The regression on displayed documents, and the deployed ranker."""
    gained = _gained(run, "displayed", 0.0)
    return {"larger": gained, "smaller": np.zeros(len(gained))}


@measures("control-dealt-clicks", section="learning")
def dealt_clicks(run: Run) -> Arrays:
    """The same regression of clicks that were dealt at random."""
    gained = _gained(run, "dealt", 0.0)
    return {"lower": gained, "upper": np.zeros(len(gained))}


@measures("O20-aware-learns-tuned", section="learning")
def aware_learns_tuned(run: Run) -> Arrays:
    """PropRank with both kinds of weights, a random last place in all sessions."""
    return {"larger": _gained(run, "aware", 1.0), "smaller": _gained(run, "oblivious", 1.0)}


@measures("control-shuffled-learning", section="learning")
def shuffled_learning(run: Run) -> Arrays:
    """The same where only the five shown documents change places."""
    return {"left": _gained(run, "aware", -1.0), "right": _gained(run, "oblivious", -1.0)}


@measures("B-compares-displayed", section="learning")
def compares_displayed(run: Run) -> Arrays:
    """PropRank of a page that never changes, among displayed documents and among all candidates."""
    return {"larger": _gained(run, "compared", 0.0), "smaller": _gained(run, "oblivious", 0.0)}


@measures("B-exploration-adds", section="learning")
def exploration_adds(run: Run) -> Arrays:
    """Policy-aware PropRank, and the regression on displayed documents without any chance."""
    return {"larger": _gained(run, "aware", 1.0), "smaller": _gained(run, "displayed", 0.0)}


@measures("B-nothing-to-explore", section="when")
def nothing_to_explore(run: Run) -> Arrays:
    """The regression on displayed documents with a little chance and without."""
    return {"left": _gained(run, "displayed", 0.1), "right": _gained(run, "displayed", 0.0)}


@measures("B-filtered-out-weighted", section="when")
def filtered_out_weighted(run: Run) -> Arrays:
    """The regression over exposure with a little chance, and without, where production hides what is sold out."""
    return {
        "larger": _gained(run, "weighted", 0.1, sold_out=True),
        "smaller": _gained(run, "displayed", 0.0, sold_out=True),
    }
