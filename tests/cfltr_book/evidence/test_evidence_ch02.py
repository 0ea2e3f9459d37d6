"""The claims of chapter 2: identities hold on small queries, and seeds are read from the tables of the figures."""

import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch02
from cfltr_book.experiments.ch02 import REGIMES, coverage, errors, world

RUN = Run("smoke", "digits", 3)


def test_divided_by_clicks_the_mean_is_two_in_every_log() -> None:
    assert ch02.per_click_unbiased(RUN)["left"] == pytest.approx(2, abs=1e-12)
    assert ch02.per_click_unbiased(RUN)["right"] == 3


def test_errors_are_those_of_the_figure() -> None:
    for measure, method in ((ch02.ips_consistent, "ips"), (ch02.naive_inconsistent, "naive")):
        found, frame = measure(RUN), errors(RUN)
        assert found["x"].tolist() == [5, 50, 500, 5_000]
        for row, seed in enumerate(RUN.seeds):
            rows = frame[(frame["seed"] == seed) & (frame["method"] == method)].sort_values("clicks")
            assert found["errors"][row].tolist() == rows["error"].tolist()


def test_coverage_is_that_of_the_logs_that_pass() -> None:
    frame = coverage(RUN)
    for place, seed in enumerate(RUN.seeds):
        of_seed = frame[frame["seed"] == seed]
        passed = [row.covered for row in of_seed.itertuples() if row.expected >= 400]
        assert ch02.gate_expected(RUN)["values"][place] == pytest.approx(sum(passed) / len(passed))
        popular = coverage(RUN, REGIMES[2:]).query("seed == @seed and expected >= 400")["covered"].tolist()
        assert ch02.gate_traffic(RUN)["smaller"][place] == (sum(popular) / len(popular) if popular else 0.95)
        showed = [row.covered for row in of_seed.itertuples() if row.came >= 100 and row.expected < 100]
        share = sum(showed) / len(showed) if showed else 0.95
        assert ch02.effective_clicks_that_came(RUN)["smaller"][place] == pytest.approx(share)


def test_coec_is_compared_with_a_tenth_more_than_the_truth() -> None:
    found = ch02.coec_overrates(RUN)
    for place, seed in enumerate(RUN.seeds):
        w = world(RUN, seed)
        assert found["lower"][place] == pytest.approx(1.1 * (w.truth(w.new) - w.truth(w.old)))
    assert found["upper"].shape == (2,)
