"""What can be compared: graphs against walks along their arcs, and the sentences that say so."""

import itertools
from pathlib import Path

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_text import same_as_kept
from refusals import refuses
from strata_logs import of_groups

import cfltr_core as cf
from cfltr_core.propensity import identifiability
from cfltr_core.propensity.curves import PropensityCurve, curve_of, grouped_curve
from cfltr_core.propensity.identifiability import (
    components_of,
    link_table,
    numbered,
    parts_of,
    require_comparable,
    words_for,
)

ESTIMATORS = (cf.conditional_poisson, cf.all_pairs, cf.pivot, cf.adjacent_chain)


def of_strata(*groups: dict[int, tuple[int, int]]) -> cf.DisplayCounts:
    """A document, and a query, for each of some {rank: (impressions, clicks)}."""
    return of_groups({(i, i): group for i, group in enumerate(groups)})


GROUP = st.dictionaries(st.integers(1, 5), st.tuples(st.just(3), st.integers(0, 3)), min_size=1, max_size=3)


def square(n: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=n, max_size=n)


@pytest.mark.oracle("identifiability.components_of", "identifiability.parts_of", "identifiability.numbered")
@given(arcs=st.integers(1, 5).flatmap(square))
def test_components(arcs: list[list[int]]) -> None:
    for strong in (True, False):
        found = components_of(np.array(arcs), strong=strong)
        assert found.tolist() == oracles.components(arcs, strong)
        assert parts_of(found) == oracles.parts(found.tolist())
        assert numbered(7 - 2 * found).tolist() == found.tolist()
    refuses("arcs: expected a square table", components_of, np.ones((2, 3)), strong=True)


@pytest.mark.oracle("identifiability.words_for")
@given(ranks=st.sets(st.integers(1, 9), min_size=1).map(sorted))
def test_words(ranks: list[int]) -> None:
    assert words_for(ranks) == oracles.rank_words(ranks)
    refuses("ranks: expected at least one", words_for, [])


@pytest.mark.oracle("identifiability.rank_links", "identifiability.link_table")
@given(groups=st.lists(GROUP, min_size=1, max_size=5))
def test_links(groups: list[dict[int, tuple[int, int]]]) -> None:
    counts = of_strata(*groups)
    links = cf.rank_links(counts)
    shown, clicked = oracles.rank_arcs(groups, counts.n_ranks)
    assert links.shown.tolist() == shown
    assert link_table(counts.rank - 1, counts.start, counts.clicks, n_ranks=counts.n_ranks).tolist() == clicked
    assert links.clicked.tolist() == clicked
    assert links.design.tolist() == oracles.components(shown, strong=False)
    assert links.log.tolist() == oracles.components(clicked, strong=True)
    assert links.impressions.tolist() == [sum(g[k][0] for g in groups if k in g) for k in range(1, counts.n_ranks + 1)]
    assert links.clicks.tolist() == [sum(g[k][1] for g in groups if k in g) for k in range(1, counts.n_ranks + 1)]
    mine = [k for k in range(1, counts.n_ranks + 1) if links.log[k - 1] == links.log[0]]
    if len(mine) > 1:
        others = [k for k in mine if k not in links.cut]
        assert links.cut_clicks == oracles.cut_clicks(groups, links.cut, others) > 0
        for side in ([k] for k in mine):
            assert links.cut_clicks <= oracles.cut_clicks(groups, side, [k for k in mine if k not in side])
    else:
        assert (links.cut, links.cut_clicks) == ((), 0)


def test_a_weak_bridge_between_two_halves_is_found() -> None:
    """Strong links 1–2 and 3–4, a weak one between 2 and 3: the fewest clicks of all cuts, found by trying all."""
    groups = [{1: (99, 50), 2: (99, 40)}, {3: (99, 30), 4: (99, 20)}, {2: (9, 5), 3: (9, 3)}]
    links = cf.rank_links(of_strata(*groups))
    all_cuts = {
        side: oracles.cut_clicks(groups, side, [k for k in range(1, 5) if k not in side])
        for n in (1, 2)
        for side in itertools.combinations(range(1, 5), n)
    }
    assert links.cut_clicks == min(all_cuts.values()) == all_cuts[tuple(sorted(links.cut))] == 3
    assert sorted(links.cut) in ([1, 2], [3, 4])
    assert f"Only 3 clicks tie {words_for(links.cut)} to the other ranks" in links.diagnosis[1]


@pytest.mark.parametrize("n_ranks", [15, 16, 17, 62, 63, 130])
def test_deep_pages_are_told_apart(n_ranks: int) -> None:
    """Each document stood at two neighbouring ranks: one chain, whatever the number of ranks."""
    groups = [{k: (9, 8), k + 1: (9, 7)} for k in range(1, n_ranks)]
    links = cf.rank_links(of_strata(*groups))
    assert links.shown.tolist() == oracles.rank_arcs(groups, n_ranks)[0]
    assert set(links.log.tolist()) == {0}


APART = [{1: (99, 20), 2: (99, 10)}, {3: (99, 20), 4: (99, 10)}, {6: (9, 0)}]
DIAGNOSED = {
    "two linked ranks": APART[:1], "two groups": APART[:2], "three groups": APART,
    "no click on one side": [{1: (9, 5), 2: (9, 0)}], "on two": [{1: (9, 5), 2: (9, 0), 3: (9, 0)}],
}  # fmt: skip


@pytest.mark.oracle("identifiability.RankLinks.diagnosis", "identifiability.require_comparable")
def test_sentences() -> None:
    links = {name: cf.rank_links(of_strata(*groups)) for name, groups in DIAGNOSED.items()}
    text = "".join("\n".join([f"# {name}", *one.diagnosis, ""]) for name, one in links.items())
    same_as_kept(Path(__file__).with_name("diagnoses") / "rank_links.txt", text)
    assert "; ".join(map(oracles.rank_words, ([1, 2], [3, 4], [6]))) in links["three groups"].diagnosis[0]
    require_comparable(links["three groups"], links["three groups"].log)
    silent = links["no click on one side"]
    refuses("counts: no two ranks can be compared, because clicks are missing", require_comparable, silent, silent.log)


@pytest.mark.parametrize("estimate", [cf.conditional_poisson, cf.all_pairs])
def test_an_answer_for_each_group_and_none_between(estimate: object) -> None:
    """The log of the trap: linked, a click at every rank, and no finite maximum for all four ranks."""
    curve = estimate(of_strata({1: (9, 5), 2: (9, 3)}, {3: (9, 4), 4: (9, 2)}, {2: (9, 3), 3: (9, 0)}))  # type: ignore[operator]
    assert curve.components == ((1, 2), (3, 4))
    np.testing.assert_allclose(curve.curve, [1, 3 / 5, np.nan, np.nan], rtol=1e-9)
    assert curve.ratio(4, 3)[0] == pytest.approx(2 / 4, rel=1e-9)
    refuses("rank 3 cannot be compared with rank 2: Only ranks of one group", curve.ratio, 3, 2)
    refuses("rank 3 cannot be compared with rank 1: go on with cutoff=2, or link it.", curve.user)
    assert curve.user(cutoff=2).examination == (1.0, pytest.approx(3 / 5))


def test_a_rank_without_clicks_or_never_shown_is_left_out() -> None:
    counts = of_strata({1: (9, 6), 2: (9, 3)}, {1: (9, 5), 3: (9, 0)}, {5: (9, 2)})
    for estimate in (cf.conditional_poisson, cf.all_pairs):
        curve = estimate(counts)
        assert curve.components == ((1, 2), (3,), (4,), (5,))
        np.testing.assert_allclose(curve.curve, [1, 1 / 2, np.nan, np.nan, np.nan], rtol=1e-9)
    assert "Placed by the power law, not by a comparison with rank 1: ranks 3, 5." in cf.shrunk_power(counts).diagnosis
    assert np.isnan(cf.shrunk_power(counts).curve).tolist() == [False, False, False, True, False]
    refuses("counts: there is no click at rank 1", cf.click_rates, of_strata({1: (9, 0), 2: (9, 3)}))


@pytest.mark.oracle("curves.PropensityCurve", "curves.PropensityCurve.components", "curves.PropensityCurve.curve",
                    "curves.PropensityCurve.standard_error", "curves.PropensityCurve.interval",
                    "curves.PropensityCurve.ratio", "curves.PropensityCurve.clipped",
                    "curves.PropensityCurve.diagnosis", "curves.PropensityCurve.user",
                    "curves.grouped_curve", "curves.curve_of")  # fmt: skip
def test_a_curve_says_what_its_numbers_say() -> None:
    rng = np.random.default_rng(0)
    root, u = rng.normal(size=(5, 5)) / 10, rng.normal(size=5)
    spread, component = root @ root.T, np.array([0, 1, 0, 1, 0])
    curve = grouped_curve(
        "by hand", u, covariance=spread, component=component, clicks=np.arange(5.0), notes=("A note.",)
    )
    assert curve.components == tuple(map(tuple, oracles.parts(component.tolist())))
    for part in curve.components:
        at = np.array(part) - 1
        ratio, table = oracles.relative(u[at].tolist(), spread[np.ix_(at, at)].tolist())
        np.testing.assert_allclose(curve.log_ratio[at], ratio, rtol=1e-12)
        np.testing.assert_allclose(curve.covariance[np.ix_(at, at)], table, atol=1e-15)
        if part[0] == 1:
            error = np.sqrt(np.diag(table))
            np.testing.assert_allclose(curve.curve[at], np.exp(ratio), rtol=1e-12)
            np.testing.assert_allclose(curve.standard_error[at], error, atol=1e-12)
            expected = [oracles.normal_interval(r, e, 0.9) for r, e in zip(ratio[1:], error[1:], strict=True)]
            np.testing.assert_allclose(np.log(curve.interval(0.9)[at[1:]]), expected, rtol=1e-9)
        else:
            assert np.isnan(curve.curve[at]).all()
            assert np.isnan(curve.standard_error[at]).all()
    value, low, high = curve.ratio(5, 3, level=0.9)
    error = float(np.sqrt(spread[4, 4] + spread[2, 2] - 2 * spread[4, 2]))
    np.testing.assert_allclose(np.log([low, high]), oracles.normal_interval(u[4] - u[2], error, 0.9), rtol=1e-9)
    assert value == pytest.approx(np.exp(u[4] - u[2]))
    above = tuple(k for k in (3, 5) if u[k - 1] > u[0])
    assert above == curve.clipped != ()
    assert curve.diagnosis.splitlines()[0] == "A note."
    assert all(f"at rank {k}" in curve.diagnosis for k in above)
    refuses("rank 2 cannot be compared with rank 1: go on with cutoff=1, or link it", curve.user)
    odd = np.array([1, 3, 5])
    some = curve_of("", odd, u[::2], n_ranks=5, covariance=spread[::2, ::2], clicks=np.arange(0.0, 5, 2), notes=())
    np.testing.assert_array_equal(some.curve, curve.curve)
    np.testing.assert_array_equal(some.standard_error, curve.standard_error)
    assert (some.components, some.clicks.tolist()) == (((1, 3, 5), (2,), (4,)), [0, 0, 2, 0, 4])
    whole = grouped_curve("", u, covariance=spread, component=np.zeros(5, dtype=np.int64), clicks=np.zeros(5))
    expected = np.minimum(np.exp(u - u[0]), 1)
    user = whole.user(epsilon_plus=0.9, epsilon_minus=0.2)
    np.testing.assert_allclose(user.propensity([1, 2, 3, 4, 5]), expected, rtol=1e-12)
    assert (user.epsilon_plus, user.epsilon_minus) == (0.9, 0.2)
    refuses("rank is 6", whole.ratio, 6, 1)
    refuses("other is 0", whole.ratio, 1, 0)
    refuses("cutoff is 6", whole.user, cutoff=6)
    given = {"log_ratio": u, "covariance": spread[:2], "component": component, "clicks": u}
    refuses("covariance: expected shape (5, 5), got (2, 5)", PropensityCurve, method="", **given)


def test_few_is_ten() -> None:
    lines = [cf.rank_links(of_strata({1: (99, n), 2: (99, n)})).diagnosis for n in (identifiability.FEW - 1, 10)]
    assert ["Only 9 clicks" in " ".join(line) for line in lines] == [True, False]
