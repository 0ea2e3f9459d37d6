"""Every estimator on logs as they come: what it may not depend on, and what it says of ranks that are missing."""

import re
from collections.abc import Callable

import numpy as np
import pytest
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
# The estimators that compare documents with themselves, and those that take relevance from a model.
WITHIN = ("conditional_poisson", "all_pairs", "pivot", "adjacent_chain", "shrunk_power")
JOINT = ("expectation_maximisation", "regression_em", "two_towers")


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


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_ranker_only(name: str) -> None:
    words = said(name, cf.DisplayCounts(**ONE))
    if name in ("regression_em", "two_towers"):
        assert "these ratios are the model's, not the log's: no document was shown in two of them" in words
        return
    assert "show one per cent of the sessions their page" in words
    if name in (*WITHIN, "contextual_curve", "same_curve"):
        assert words.startswith("counts: no two ranks can be compared, because every document was shown at one rank")
    if name == "click_rates":
        assert words.startswith("Every document was shown at one rank only, so these rates mix examination with")


def test_click_rates_of_documents_that_moved_have_no_such_note() -> None:
    assert said("click_rates", cf.DisplayCounts(**TWO)) == ""


@pytest.mark.parametrize("name", [*WITHIN, *JOINT, "contextual_curve"])
def test_a_rank_that_was_never_shown(name: str) -> None:
    words = said(name, gap(2))
    assert "Never shown: rank 2; check that ranks are numbered 1, 2, … without a gap." in words
    assert "All ranks from 1 to 4" not in words
    assert "Never shown: rank 1; check" in said(name, gap(1))


def test_ranks_that_are_linked_across_a_gap() -> None:
    assert cf.rank_links(gap(2)).diagnosis[0] == "All shown ranks are linked: ranks 1, 3–4."


@pytest.mark.parametrize("name", [*WITHIN, *JOINT, "contextual_curve"])
def test_a_rank_without_clicks(name: str) -> None:
    remedy = r"Shown but never clicked: rank 3.* collect more sessions"
    assert re.search(remedy, said(name, silent(3)).replace("\n", " "))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_click_at_all(name: str) -> None:
    refuses("counts:", ESTIMATORS[name], silent(1, 2, 3))


def test_a_pivot_without_clicks_is_not_put_down_to_the_log() -> None:
    refuses("counts: no two ranks can be compared, because this estimate uses only some", cf.pivot, silent(1))
    np.testing.assert_array_equal(np.isnan(cf.all_pairs(silent(1)).curve), [False, True, True])
    refuses("counts: there is no click at rank 1", cf.click_rates, silent(1))
    refuses("counts: there is no click at rank 1", cf.click_rates, gap(1))


def test_a_power_that_rises_has_one_sign() -> None:
    assert re.search(r"^Drawn towards rank\^\(\d", cf.shrunk_power(silent(1)).diagnosis)
    assert re.search(r"^Drawn towards rank\^\(−\d", cf.shrunk_power(cf.DisplayCounts(**TWO)).diagnosis)
    assert "Placed by the power law" not in cf.shrunk_power(gap(1)).diagnosis
    assert cf.shrunk_power(gap(1)).components == ((1,), (2, 3, 4))


def test_unequal_page_lengths() -> None:
    short = cf.DisplayCounts(**counts_of((1, 2, 3), (2, 3, 1), short=True))
    assert "Queries showed between 2 and 3 ranks" in said("click_rates", short)
    for name in (*WITHIN, *JOINT):
        assert "ranks from 1 to 3" in said(name, short) or name in ("regression_em", "two_towers")


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
