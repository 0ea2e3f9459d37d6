"""The claims of chapter 5: a small log has an optimum inside."""

import numpy as np

from cfltr_book import Run
from cfltr_book.evidence import ch05

RUN = Run("smoke", "digits", 3)


def test_the_small_log_has_pairs_at_the_kink() -> None:
    """Where every slope were 0 or 1 the dual would be no test of slopes between."""
    small = ch05._small(RUN, 10.0)
    slopes = ch05._largest_dual(small) / small.cost
    assert ((slopes > 1e-6) & (slopes < 1 - 1e-6)).any()
    assert (slopes < 1e-6).any()
    assert (slopes > 1 - 1e-6).any()
    assert np.isclose(small.at_zero, small.primal(np.zeros(3)))
