"""The claims of chapter 3: identities hold on small queries, and seeds are read from the table of the figure."""

from itertools import permutations
from math import log2

from cfltr_book import Run
from cfltr_book.evidence import ch03
from cfltr_book.experiments.ch03 import choices

RUN = Run("smoke", "digits", 3)


def test_only_the_printed_weight_of_rbp_falls() -> None:
    found = ch03.table1_monotone(RUN)
    assert (found["lower"] > found["upper"] + 1e-12).any(axis=1).tolist() == [False, False, False, True]


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
