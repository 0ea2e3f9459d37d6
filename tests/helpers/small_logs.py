"""The small log that tests of messages and of edges share: a query of two documents, and one of a single document."""

import numpy as np

from cfltr_core import ClickLog, DeterministicPolicy

CUTS = [0, 2, 3]
X = np.eye(3)
POLICY = DeterministicPolicy([1, 2, 1], CUTS)
LOG = ClickLog(
    document=[0, 1, 2], rank=[1, 2, 1], impressions=[4, 4, 2], clicks=[3, 1, 2], propensity=[1.0, 0.5, 1.0],
    sessions=[4, 2], offsets=CUTS,
)  # fmt: skip
# One document was shown, and nobody clicked.
SILENT = ClickLog(document=[0], rank=[1], impressions=[4], clicks=[0], propensity=[1.0], sessions=[4, 2], offsets=CUTS)
