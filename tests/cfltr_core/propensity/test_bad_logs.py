"""Every estimator on logs as they come: what it may not depend on, and what it says of ranks that are missing."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kept_text import same_as_kept
from refusals import refuses

import cfltr_core as cf

# Forty queries of A, B, C; what a document is like says its kind, and a little chance.
KIND = np.hstack([np.tile(np.eye(3), (40, 1)), np.random.default_rng(1).normal(size=(120, 2))])
ESTIMATORS: dict[str, Callable[[cf.DisplayCounts], object]] = {
    "conditional_poisson": cf.conditional_poisson,
    "all_pairs": cf.all_pairs,
    "pivot": cf.pivot,
    "adjacent_chain": cf.adjacent_chain,
    "click_rates": cf.click_rates,
    "shrunk_power": cf.shrunk_power,
    "contextual_curve": lambda counts: cf.contextual_curve(counts, np.arange(40)[:, None] % 3 == 0).at([0.0]),
    "same_curve": lambda counts: cf.same_curve(counts, counts.document % 2 == 0),
    "trust_bias": cf.trust_bias,
    "expectation_maximisation": cf.expectation_maximisation,
    "regression_em": lambda counts: cf.regression_em(counts, KIND),
    "two_towers": lambda counts: cf.two_towers(counts, KIND),
}
# The estimators that compare documents with themselves.
WITHIN = ("conditional_poisson", "all_pairs", "pivot", "adjacent_chain", "shrunk_power")


def counts_of(*pages: tuple[int, int, int], short: bool = False) -> dict[str, np.ndarray]:
    """The terms of forty queries that met each of the ``pages`` (ranks of A, B, C) 300 times; ``short`` cuts half."""
    rng, found = np.random.default_rng(0), {}
    for query in range(40):
        for page in pages:
            for kind, rank in enumerate(page):
                if short and query % 2 and rank > 2:
                    continue
                n, c = found.get((query, kind, rank), (0, 0))
                chance = (0.8, 0.1, 0.6)[kind] / rank
                found[query, kind, rank] = n + 300, c + rng.binomial(300, chance)
    query, kind, rank = np.array(list(found)).T
    shown, clicked = np.array(list(found.values())).T
    return {"query": query, "document": 3 * query + kind, "rank": rank, "impressions": shown, "clicks": clicked}


ONE, TWO = counts_of((1, 2, 3)), counts_of((1, 2, 3), (2, 3, 1))


def silent(*ranks: int) -> cf.DisplayCounts:
    return cf.DisplayCounts(**{**TWO, "clicks": np.where(np.isin(TWO["rank"], ranks), 0, TWO["clicks"])})


def gap(first: int) -> cf.DisplayCounts:
    """Ranks from ``first`` on are numbered one too high."""
    return cf.DisplayCounts(**{**TWO, "rank": TWO["rank"] + (TWO["rank"] >= first)})


def said(name: str, counts: cf.DisplayCounts) -> str:
    """The diagnosis of the estimator, or its message, which begins with the argument."""
    try:
        return str(getattr(ESTIMATORS[name](counts), "diagnosis", ""))
    except ValueError as error:
        return str(error)


def numbers_of(name: str, counts: cf.DisplayCounts) -> np.ndarray:
    """The curve that an estimator finds, and its covariance where it has one."""
    found = ESTIMATORS[name](counts)
    if name == "same_curve":
        return np.array([found.statistic, found.p_value])
    return np.concatenate([found.log_ratio, found.covariance.ravel()])


# To trust_bias the documents of these logs are too much alike.
CURVES = [name for name in ESTIMATORS if name != "trust_bias"]


@pytest.mark.parametrize("name", CURVES)
def test_neither_the_order_of_the_rows_nor_numbers_of_queries_matter(name: str) -> None:
    """Nor does a query of which nothing is known but one display at one rank, unless a model shares what it says."""
    counts = cf.DisplayCounts(**TWO)
    found, order = numbers_of(name, counts), np.random.default_rng(2).permutation(len(TWO["rank"]))
    np.testing.assert_array_equal(numbers_of(name, cf.DisplayCounts(**{k: v[order] for k, v in TWO.items()})), found)
    single = {"query": [40], "document": [120], "rank": [2], "impressions": [1], "clicks": [0]}
    if name in WITHIN:
        more = cf.DisplayCounts(**{k: np.append(v, single[k]) for k, v in TWO.items()})
        np.testing.assert_allclose(numbers_of(name, more), found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CURVES)
def test_twice_the_displays_with_twice_the_clicks_have_the_same_curve(name: str) -> None:
    """And the same spread between queries; a prior does count them."""
    doubled = cf.DisplayCounts(**{**TWO, "impressions": 2 * TWO["impressions"], "clicks": 2 * TWO["clicks"]})
    one, two = (numbers_of(name, counts) for counts in (cf.DisplayCounts(**TWO), doubled))
    exact = name != "shrunk_power"
    np.testing.assert_allclose(two, one, rtol=1e-6 if exact else 0.05, atol=1e-9 if exact else 1e-3)


LOGS = {
    "one ranker": cf.DisplayCounts(**ONE),
    "sound": cf.DisplayCounts(**TWO),
    "rank 2 never shown": gap(2),
    "rank 1 never shown": gap(1),
    "rank 3 without clicks": silent(3),
    "rank 1 without clicks": silent(1),
    "no click at all": silent(1, 2, 3),
    "pages of two and of three": cf.DisplayCounts(**counts_of((1, 2, 3), (2, 3, 1), short=True)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_said_of_each_log(name: str) -> None:
    """The diagnosis, or the message that begins with the argument; fractions are left out, which rounding moves."""
    text = "".join(f"# {log}\n{said(name, counts)}\n" for log, counts in LOGS.items())
    same_as_kept(Path(__file__).with_name("diagnoses") / f"{name}.txt", re.sub(r"\d+\.\d+(e[+-]?\d+)?", "…", text))


def test_what_can_be_compared_in_spite_of_a_gap() -> None:
    assert cf.rank_links(gap(2)).diagnosis[0] == "All shown ranks are linked: ranks 1, 3–4."
    np.testing.assert_array_equal(np.isnan(cf.all_pairs(silent(1)).curve), [False, True, True])
    assert cf.shrunk_power(gap(1)).components == ((1,), (2, 3, 4))


def test_two_documents_at_one_rank_of_a_page() -> None:
    fields = {"document": [0, 1, 2], "rank": [1, 1, 2], "impressions": [6] * 3, "clicks": [4, 1, 2]}
    log = cf.ClickLog(**fields, propensity=[1.0, 1.0, 0.5], sessions=[6], offsets=[0, 3])
    refuses("logs: documents 0 and 1 of query 0 both", cf.dual_learning, log, np.eye(3), rng=np.random.default_rng(0))


def logs_of(*clicks: list[int]) -> list[cf.ClickLog]:
    """A log of one ranker for each list: A, B, C stood at ranks 1, 2, 3 in nine sessions."""
    fields = {"document": [0, 1, 2], "rank": [1, 2, 3], "impressions": [9] * 3, "propensity": [1.0, 0.5, 0.3]}
    return [cf.ClickLog(**fields, clicks=c, sessions=[9], offsets=[0, 3]) for c in clicks]


@pytest.mark.parametrize(
    ("clicks", "words"),
    [
        ([0, 0, 0], r"^logs: there is no click, so .*; collect more sessions$"),
        ([0, 4, 0], r"^logs: clicks are at rank 2 only, .*; keep the rows of the other ranks, or collect more"),
    ],
)
def test_dual_learning_without_clicks_to_compare(clicks: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cf.dual_learning(logs_of(clicks), np.eye(3), rng=np.random.default_rng(0))


def test_dual_learning_of_one_ranker_and_of_a_rank_without_clicks() -> None:
    notes = " ".join(
        cf.dual_learning(logs_of([5, 3, 0]), np.eye(3), rng=np.random.default_rng(0), steps=4).diagnosis.splitlines()
    )
    assert "these ratios are the model's, not the log's: no document was shown in two of them" in notes
    assert re.search(r"Shown but never clicked: rank 3.* collect more sessions", notes)


def test_a_context_with_clicks_on_one_side_names_the_rank() -> None:
    """Rank 3 is clicked in the even queries only, so that its slope is minus infinity."""
    clicks = np.where((TWO["rank"] == 3) & (TWO["query"] % 2 == 1), 0, TWO["clicks"])
    counts, context = cf.DisplayCounts(**{**TWO, "clicks": clicks}), (np.arange(40) % 2)[:, None]
    words = r"^counts: the likelihood has no finite maximum: with this context rank 3 has clicks in one kind of query "
    with pytest.raises(ValueError, match=words + r"only; use fewer features, or collect more sessions\. "):
        cf.contextual_curve(counts, context)


def test_clicks_above_without_clicks() -> None:
    silent = cf.count_pages([0, 0], [[0, 1], [0, 1]], clicked=[[0, 0], [0, 0]])
    with pytest.raises(ValueError, match=r"Shown but never clicked: ranks 1–2; .* collect more sessions\.$"):
        cf.clicks_above_test(silent)
