"""The claims of chapter 1: what is measured has the shape of the claim, and comes from the tables of the figures."""

from cfltr_book import Run
from cfltr_book.evidence import ch01
from cfltr_book.experiments.ch01 import orders, orders_by_size, world, wrong_curves

RUN = Run("smoke", "digits", 3)


def test_claims_of_the_contenders_read_one_value_a_seed() -> None:
    found = ch01.naive_misorders(RUN)
    for place, seed in enumerate(RUN.seeds):
        rows = orders(RUN).query("seed == @seed and eta == 1").set_index("method")["tau"]
        assert [found["larger"][place], found["smaller"][place]] == [rows["ips"], rows["naive"]]
        truth = world(RUN, seed).truth
        better = sum(truth[5 + pair] > truth[pair] for pair in range(5)) / 5
        assert ch01.naive_confirms_logger(RUN)["smaller"][place] == better


def test_the_rival_is_read_with_its_noise() -> None:
    for noise, rival in (
        (0.1, ch01.ever_clicked_with_noise(RUN)["smaller"]),
        (0.0, ch01.ever_clicked_without_noise(RUN)["left"]),
    ):
        frame = orders_by_size(RUN)
        frame = frame[(frame["noise"] == noise) & (frame["clicks"] == 500) & (frame["method"] == "ever clicked")]
        assert rival.tolist() == frame["tau"].tolist()


def test_the_controls_have_no_position_bias() -> None:
    frame = orders(RUN).query("eta == 0 and method == 'naive'").sort_values("seed")
    assert ch01.naive_without_bias(RUN)["left"].tolist() == frame["tau"].tolist()
    assert ch01.blend_without_bias(RUN)["left"].tolist() == frame["blends"].tolist()


def test_the_weak_curve_is_the_one_that_is_a_quarter_too_weak() -> None:
    found = ch01.weak_curve_confirms_logger(RUN)
    rows = wrong_curves(RUN).query("assumed == 0.75").sort_values("seed")
    assert rows["seed"].tolist() == list(RUN.seeds)
    assert rows["blends"].tolist() == found["larger"].tolist()
    assert rows["truly"].tolist() == found["smaller"].tolist()
