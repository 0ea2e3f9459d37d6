"""Files in the format of the Open Bandit data set, made by hand or drawn: no row of the data set is in them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

CAMPAIGNS, POLICIES = ("all", "men", "women"), ("random", "bts")
# (item, position, click, propensity) of four slots; a file of the data set has more columns, and they come first.
RANDOM = [(0, 1, 0, 0.5), (1, 2, 1, 0.5), (0, 2, 0, 0.5), (1, 1, 0, 0.5)]
THOMPSON = [(0, 1, 1, 0.8), (0, 2, 0, 0.7), (1, 2, 1, 0.25), (0, 1, 0, 0.9)]
Row = tuple[int, int, int, float]


def write(folder: Path, campaign: str, policy: str, rows: Iterable[Row] | pd.DataFrame) -> Path:
    """One file below ``folder``, where the data set has it."""
    names = ["item_id", "position", "click", "propensity_score"]
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows), columns=names)
    frame.insert(0, "timestamp", "2019-11-24 00:00:17.004101+00:00")
    path = folder / policy / campaign / f"{campaign}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.assign(user_feature_0="cef3390e").to_csv(path)
    return path


def write_all(folder: Path) -> None:
    """The six files, the same four rows in each campaign."""
    for campaign in CAMPAIGNS:
        for policy, rows in zip(POLICIES, (RANDOM, THOMPSON), strict=True):
            write(folder, campaign, policy, rows)


def drawn(n: int, rng: np.random.Generator, items: int = 40) -> pd.DataFrame:
    """So many rows of a uniform policy."""
    columns = {"item_id": rng.integers(items, size=n), "position": rng.integers(1, 4, size=n)}
    return pd.DataFrame({**columns, "click": rng.binomial(1, 0.005, size=n), "propensity_score": 1 / items})
