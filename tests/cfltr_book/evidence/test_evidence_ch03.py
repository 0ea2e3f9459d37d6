"""The claims of chapter 3: identities hold on small queries, and seeds are read from the table of the figure."""

from __future__ import annotations

from itertools import permutations
from math import log2

import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch03
from cfltr_book.experiments.ch03 import choices

RUN = Run("smoke", "digits", 3)


@pytest.mark.parametrize(
    ("measure", "values"),
    [
        (ch03.only_additive, (3,)),
        (ch03.degree_sessions, (5,)),
        (ch03.additive_any_dependence, (6, 24, 4)),
        (ch03.multilinear_independent, (24, 2)),
        (ch03.products_unbiased, (3, 24, 4)),
        (ch03.curves_decide, (220,)),
        (ch03.affine_clicks, (6,)),
    ],
)
def test_the_identities_of_the_chapter_hold(measure, values: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    found = measure(RUN)
    assert found["left"].shape == found["right"].shape == values
    assert np.allclose(found["left"], found["right"], rtol=0, atol=1e-12)
    assert np.ptp(found["right"]) > 0.1  # a constant would fail


@pytest.mark.parametrize("measure", [ch03.multilinear_dependent, ch03.normalised_plug_in])
def test_plugging_in_is_off_for_some_ranking(measure) -> None:  # type: ignore[no-untyped-def]
    found = measure(RUN)
    assert np.abs(found["left"] - found["right"]).max() > 0.1


def test_only_the_printed_weight_of_rbp_falls() -> None:
    found = ch03.table1_monotone(RUN)
    assert (found["lower"] > found["upper"] + 1e-12).any(axis=1).tolist() == [False, False, False, True]


def test_two_rankings_change_places_where_grade_1_is_clicked_like_grade_2() -> None:
    assert ch03.graded_order(RUN)["upper"].min() < -0.01


def test_one_way_of_clicks_does_not_keep_the_order() -> None:
    """The counterexample of the errata: click probabilities 1, ½ (relevant) and 0.4."""
    gains = [1 / log2(1 + r) for r in (1, 2, 3)]
    pages = list(permutations([(1, 1.0), (1, 0.5), (0, 0.4)]))
    true = [sum(g * relevant for g, (relevant, _) in zip(gains, page, strict=True)) for page in pages]
    expected = [sum(g * clicked for g, (_, clicked) in zip(gains, page, strict=True)) for page in pages]
    assert any(true[i] > true[j] and expected[i] < expected[j] for i in range(6) for j in range(6))


def test_losses_are_those_of_the_figure() -> None:
    for found, chooser, clicks in (
        (ch03.dcg_stands_in(RUN)["values"], "DCG", 500),
        (ch03.few_clicks_whole_page(RUN)["larger"], "Prec@1", 500),
        (ch03.few_clicks_whole_page(RUN)["smaller"], "DCG", 500),
        (ch03.choice_with_labels(RUN)["left"], "Prec@1", 0),
        (ch03.choice_with_labels(RUN)["right"], "DCG", 0),
    ):
        frame = choices(RUN)
        frame = frame[(frame["chooser"] == chooser) & (frame["clicks"] == clicks)]
        assert frame["seed"].tolist() == list(RUN.seeds)
        assert found.tolist() == frame["lost"].tolist()
