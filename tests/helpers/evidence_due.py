"""The functions that measure exact claims which must hold on a small run."""

from cfltr_book.reporting.claim_registry import EXACT, registry
from cfltr_book.reporting.measures import measure_of

DUE = [spec.id for spec in registry().values() if spec.kind in EXACT and spec.gates("smoke", "digits")]
MEASURED = [measure for measure in map(measure_of, DUE) if measure is not None]
