"""Every exact claim that a function measures comes out as it is on record, and might have come out otherwise."""

import numpy as np
import pytest
from evidence_due import MEASURED

from cfltr_book import Run
from cfltr_book.reporting.claim_registry import registry
from cfltr_book.reporting.claims import judge
from cfltr_book.reporting.measures import Measure

RUN = Run("smoke", "digits", 3)


@pytest.mark.parametrize("measure", MEASURED, ids=lambda measure: measure.id)
def test_an_exact_claim(measure: Measure) -> None:
    spec, arrays = registry()[measure.id], measure.arrays(RUN)
    assert judge(spec, arrays).verdict == spec.recorded("smoke", "digits")
    if spec.recorded("smoke", "digits") == "supported":
        one, other = map(np.asarray, arrays.values())
        assert one.shape == other.shape
        # A constant would fail, and so would the thing itself in place of its bound.
        assert np.ptp(other) > 0.1 if spec.kind == "identity" else (one < other - 1e-3).any()
