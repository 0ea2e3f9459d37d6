"""The claims of chapter 1 that count pairs; those that read a table's rows are tried in test_claims_read_tables.py."""

from cfltr_book import Run
from cfltr_book.evidence import ch01
from cfltr_book.experiments.ch01 import world

RUN = Run("smoke", "digits", 3)


def test_the_logger_is_confirmed_where_its_blends_are_truly_better() -> None:
    found = ch01.naive_confirms_logger(RUN)
    for place, seed in enumerate(RUN.seeds):
        truth = world(RUN, seed).truth
        assert found["smaller"][place] == sum(truth[5 + pair] > truth[pair] for pair in range(5)) / 5
