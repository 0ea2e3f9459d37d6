"""A scorer that knows the names of its features: a data frame in another order, a file, a table with other columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
from refusals import refuses

import cfltr_core as cf
from cfltr_core.ranking.linear import names_of

NAMES = ["clicks last year", "price", "age"]
WEIGHTS = [2.0, -1.0, 0.25]
ROWS = np.random.default_rng(3).normal(size=(5, 3))
FRAME = pd.DataFrame(ROWS, columns=NAMES)


def said(frame: pd.DataFrame) -> list[float]:
    return oracles.by_name(frame.to_dict("records"), NAMES, WEIGHTS)


@pytest.mark.oracle("linear.LinearRanker.named", "linear.LinearRanker.decision_function", "linear.names_of")
def test_columns_are_taken_by_name_in_any_order() -> None:
    ranker = cf.LinearRanker(WEIGHTS).named(names_of(FRAME))
    assert ranker.feature_names == tuple(NAMES)
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        frame = FRAME.iloc[:, order].assign(document="A")
        by_loop = oracles.by_name(frame.to_dict("records"), NAMES, WEIGHTS)
        np.testing.assert_allclose(ranker.decision_function(frame), by_loop, rtol=1e-12)
    turned = FRAME.iloc[:, [2, 0, 1]]
    # Without names columns are taken as they stand, and an array has none.
    for blind in (cf.LinearRanker(WEIGHTS).decision_function(turned), ranker.decision_function(turned.to_numpy())):
        np.testing.assert_array_equal(blind, turned.to_numpy() @ WEIGHTS)
    assert np.abs(blind - said(turned)).max() > 0.1
    assert ranker.named(None).feature_names is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.rename(columns={"price": "cost"}), "features: weights[1] is that of 'price', and the data frame has"),
        (pd.concat([FRAME, FRAME[["age"]]], axis=1), "features: weights[2] is that of 'age', and the data frame has"),
    ],
    ids=["another name", "twice"],
)
def test_other_columns_are_refused(frame: pd.DataFrame, message: str) -> None:
    refuses(message, cf.LinearRanker(WEIGHTS).named(NAMES).decision_function, frame)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("abc", "feature_names is str: expected a list of names, one for each weight"),
        (["a", "b"], "feature_names: expected 3 names, one for each weight, got 2"),
        (["a", 1, "b"], "feature_names[1] is int: expected the name of a column"),
        (["a", "b", "a"], "feature_names[2] is 'a', as is feature_names[0]: rename one"),
    ],
)
def test_names_are_checked(names: Any, message: str) -> None:
    for made in (lambda: cf.LinearRanker(WEIGHTS).named(names), lambda: cf.LinearRanker(WEIGHTS, feature_names=names)):
        refuses(message, made)


def test_a_file_keeps_the_names_where_there_are_any(tmp_path: Path) -> None:
    path = tmp_path / "ranker.json"
    cf.LinearRanker(WEIGHTS).named(NAMES).save(path)
    assert json.loads(path.read_text()) == {
        "format": "cfltr linear ranker 1", "weights": WEIGHTS, "feature_names": NAMES
    }  # fmt: skip
    turned = FRAME.iloc[:, ::-1]
    np.testing.assert_allclose(cf.LinearRanker.load(path).decision_function(turned), said(turned), rtol=1e-12)
    cf.LinearRanker(WEIGHTS).save(path)
    assert cf.LinearRanker.load(path).feature_names is None


def test_an_expression_has_the_scorers_own_names() -> None:
    ranker = cf.LinearRanker(WEIGHTS).named(NAMES)
    assert ranker.sql() == ranker.sql(NAMES) == cf.LinearRanker(WEIGHTS).sql(NAMES)
    assert '"b"' in ranker.sql(["a", "b", "c"])  # what the columns are called there
    refuses("feature_names: this scorer does not know the names of its features", cf.LinearRanker(WEIGHTS).sql)
    refuses("feature_names[1] is 'age', but weights[1] is that of", ranker.sql, ["clicks last year", "age", "price"])


def test_learners_keep_the_names_of_a_data_frame(tmp_path: Path) -> None:
    log = cf.ClickLog(
        document=range(5), rank=[1, 2, 3, 4, 5], impressions=[9] * 5, clicks=[5, 0, 3, 0, 1],
        propensity=[1, 1 / 2, 1 / 3, 1 / 4, 1 / 5], sessions=[9], offsets=[0, 5],
    )  # fmt: skip
    for learn in (cf.fit_proprank, cf.fit_propdcg, cf.fit_lambdaloss):
        fit, blind = learn(FRAME, log), learn(ROWS, log)
        assert fit.feature_names == tuple(NAMES)
        assert blind.feature_names is None
        np.testing.assert_allclose(fit.weights, blind.weights, rtol=1e-9)
        fit.save(tmp_path / "fit.json")
        assert cf.LinearRanker.load(tmp_path / "fit.json").feature_names == tuple(NAMES)
        scores = fit.decision_function(FRAME.iloc[:, ::-1])
        np.testing.assert_allclose(scores, blind.decision_function(ROWS), rtol=1e-9)


def test_what_has_no_names_in_words_has_none() -> None:
    assert names_of(FRAME) == tuple(NAMES)
    for nameless in (ROWS, ROWS.tolist(), pd.DataFrame(ROWS), pd.concat([FRAME, FRAME], axis=1), FRAME[[]]):
        assert names_of(nameless) is None
