"""The logs of the Open Bandit data set (Saito et al. 2021): the small ones of a package, or the whole ones of a disk.

A shop for fashion showed three items in a row, chosen by chance: uniformly (*random*) or by Bernoulli Thompson sampling
(*bts*), in three campaigns.  A row is one *slot* of one impression, with the probability that the policy gave to its
item in its slot.  The package ``obp`` of the data's authors carries 10,000 rows of each campaign and policy; its files
are read, and nothing of it is imported.  The whole data set has the same columns.
"""

from __future__ import annotations

import importlib.util
import os
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from cfltr_core.clicks.event_sources import import_ibis, without_deprecations

POLICIES = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
# The columns that are read: the name in the files, the name in the frame, and its type.
COLUMNS = {
    "item_id": ("item", "int16"),
    "position": ("position", "int8"),
    "click": ("click", "int8"),
    "propensity_score": ("propensity", "float64"),
}
MISSING = (
    "the logs of Open Bandit are not installed: pip install obp==0.4.1 (1.3 MB; with --no-deps where it would replace "
    "something), or in a clone of the book make setup"
)
WHOLE = (
    "the whole data set is looked for in CFLTR_DATA/obd/<policy>/<campaign>/<campaign>.csv, with the policies random "
    "and bts and the campaigns all, men and women"
)


def open_bandit(*, whole: bool = False) -> pd.DataFrame:
    """Every row of the six logs: ``campaign``, ``policy``, ``item`` from 0, ``position`` 1 to 3, ``click``, ``propensity``.

    DuckDB reads the files, one after the other and only these columns, so that the 26 million rows of the whole data
    set take half a gigabyte.

    Parameters
    ----------
    whole : bool
        Read the whole data set, from the folder ``obd`` below the one that the environment variable ``CFLTR_DATA``
        names, in place of the small logs of the package ``obp``.

    Raises
    ------
    ModuleNotFoundError
        Without ``obp``, or without Ibis and DuckDB, saying what to type.
    ValueError
        For the whole data set where a file is missing, and for a file that lacks a column or has a value that cannot
        be: it names the file.

    Examples
    --------
    >>> from cfltr_book.data.open_bandit import open_bandit
    >>> logs = open_bandit()
    >>> logs.groupby(["campaign", "policy"], observed=True)["click"].agg(["size", "sum"]).loc[("men", "bts")].tolist()
    [10000, 69]
    """
    folder = _disk() if whole else _package()
    ibis, parts = import_ibis(), []
    for campaign, policy in product(CAMPAIGNS, POLICIES):
        path = folder / policy / campaign / f"{campaign}.csv"
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file; {WHOLE if whole else MISSING}")
        with without_deprecations():
            part = _rows(ibis, path)
        names = {"campaign": (campaign, CAMPAIGNS), "policy": (policy, POLICIES)}
        for at, (column, (name, levels)) in enumerate(names.items()):
            part.insert(at, column, pd.Categorical.from_codes(np.full(len(part), levels.index(name), "int8"), levels))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _package() -> Path:
    """The folder of the small logs."""
    found = importlib.util.find_spec("obp")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(MISSING)
    return Path(found.origin).parent / "dataset" / "obd"


def _disk() -> Path:
    """The folder of the whole data set."""
    setting = os.environ.get("CFLTR_DATA")
    if not setting:
        raise ValueError(f"the environment variable CFLTR_DATA is not set: {WHOLE}")
    return Path(setting).expanduser() / "obd"


def _rows(ibis: object, path: Path) -> pd.DataFrame:
    """The rows of one file, in their order, checked."""
    database = ibis.duckdb.connect()  # type: ignore[attr-defined]
    try:
        table = database.read_csv(str(path))
        missing = sorted(set(COLUMNS) - set(table.columns))
        if missing:
            raise ValueError(f"{path}: there is no column {missing[0]}; expected {', '.join(COLUMNS)}")
        columns = table.select(*COLUMNS).to_pyarrow()
        values = {name: columns[name].to_numpy() for name in COLUMNS}
    finally:
        database.disconnect()
    sound = {
        "item_id": lambda x: (x >= 0) & (x < 2**15),
        "position": lambda x: (x >= 1) & (x <= 3),
        "click": lambda x: (x == 0) | (x == 1),
        "propensity_score": lambda x: (x > 0) & (x <= 1),
    }
    for name, is_sound in sound.items():
        bad = np.flatnonzero(~is_sound(values[name]))
        if len(bad):
            raise ValueError(f"{path}: {name} is {values[name][bad[0]]} in row {bad[0]}, which cannot be")
    return pd.DataFrame({new: values[name].astype(kind) for name, (new, kind) in COLUMNS.items()})
