"""What claims of chapters 1, 3 and 5 compare, seed by seed, are rows of the tables of the chapters' figures."""

from collections.abc import Callable, Mapping

import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch01, ch03, ch05
from cfltr_book.experiments.ch01 import orders, orders_by_size, wrong_curves
from cfltr_book.experiments.ch03 import choices
from cfltr_book.experiments.ch05 import controls, learned, wrong_exponents
from cfltr_core.checks import FloatArray

RUN = Run("smoke", "digits", 3)
Measure = Callable[[Run], Mapping[str, FloatArray]]
Table = Callable[[Run], pd.DataFrame]
EVER = "noise == {} and clicks == 500 and method == 'ever clicked'"
CHOICES = {"DCG": "chooser == 'DCG' and clicks == {}", "Prec@1": "chooser == 'Prec@1' and clicks == {}"}
# An array of a claim, the table whose rows it reads, their condition, and the column.
READ: list[tuple[Measure, str, Table, str, str]] = [
    (ch01.naive_misorders, "larger", orders, "eta == 1 and method == 'ips'", "tau"),
    (ch01.naive_misorders, "smaller", orders, "eta == 1 and method == 'naive'", "tau"),
    (ch01.ever_clicked_with_noise, "smaller", orders_by_size, EVER.format(0.1), "tau"),
    (ch01.ever_clicked_without_noise, "left", orders_by_size, EVER.format(0.0), "tau"),
    (ch01.naive_without_bias, "left", orders, "eta == 0 and method == 'naive'", "tau"),
    (ch01.blend_without_bias, "left", orders, "eta == 0 and method == 'naive'", "blends"),
    (ch01.weak_curve_confirms_logger, "larger", wrong_curves, "assumed == 0.75", "blends"),
    (ch01.weak_curve_confirms_logger, "smaller", wrong_curves, "assumed == 0.75", "truly"),
    (ch03.dcg_stands_in, "values", choices, CHOICES["DCG"].format(500), "lost"),
    (ch03.few_clicks_whole_page, "larger", choices, CHOICES["Prec@1"].format(500), "lost"),
    (ch03.few_clicks_whole_page, "smaller", choices, CHOICES["DCG"].format(500), "lost"),
    (ch03.choice_with_labels, "left", choices, CHOICES["Prec@1"].format(0), "lost"),
    (ch03.choice_with_labels, "right", choices, CHOICES["DCG"].format(0), "lost"),
]


def of_learner(learner: str, clicks: int, best: bool = False) -> tuple[Table, str, bool]:
    return learned, f"learner == '{learner}' and clicks == {clicks}", best


def of_belief(assumed: float, capped: bool = False) -> tuple[Table, str, bool]:
    return wrong_exponents, f"assumed == {assumed} and capped == {capped}", False


def of_control(control: str) -> tuple[Table, str, bool]:
    return controls, f"control == '{control}'", False


# Of chapter 5: the two sides of a claim, each the places gained by the fit that clicks chose, or by the best one.
FULL, RAW = of_learner("full", 15_000), of_learner("raw", 15_000)
SIDES: list[tuple[Measure, tuple[Table, str, bool], tuple[Table, str, bool]]] = [
    (ch05.naive_svm, FULL, RAW),
    (ch05.dealt_weights, of_control("dealt"), RAW),
    (ch05.more_clicks, FULL, of_learner("full", 500)),
    (ch05.robots, of_control("robots"), of_learner("full", 500)),
    (ch05.few_clicks_any_strength, of_learner("raw", 500), of_learner("full", 500, best=True)),
    (ch05.choose_by_clicks, of_learner("full", 5_000), of_learner("full", 5_000, best=True)),
    (ch05.underestimated_propensities, of_belief(1.0), of_belief(1.5)),
    (ch05.small_error, of_belief(1.1), of_belief(1.0)),
    (ch05.clipping_underestimated, of_belief(1.5, capped=True), of_belief(1.5)),
    (ch05.cap_on_true_weights, of_belief(1.0, capped=True), of_belief(1.0)),
]


@pytest.mark.parametrize(("measure", "name", "table", "where", "column"), READ)
def test_a_claim_reads_one_row_a_seed(measure: Measure, name: str, table: Table, where: str, column: str) -> None:
    rows = table(RUN).query(where).sort_values("seed")
    assert rows["seed"].tolist() == list(RUN.seeds)
    assert measure(RUN)[name].tolist() == rows[column].tolist()


@pytest.mark.parametrize(("measure", "one", "other"), SIDES)
def test_rankers_are_compared_seed_by_seed(
    measure: Measure, one: tuple[Table, str, bool], other: tuple[Table, str, bool]
) -> None:
    for values, (table, where, best) in zip(measure(RUN).values(), (one, other), strict=True):
        rows = table(RUN).query(where)
        by_seed = rows.groupby("seed")["places"].max() if best else rows[rows["chosen"]].set_index("seed")["places"]
        assert values == pytest.approx([by_seed[seed] for seed in RUN.seeds])
