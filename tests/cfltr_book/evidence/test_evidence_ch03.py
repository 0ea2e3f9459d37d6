"""The claims of chapter 3: identities hold on small queries; test_claims_read_tables.py tries those of its figure."""

from itertools import permutations
from math import log2

from cfltr_book import Run
from cfltr_book.evidence import ch03

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
