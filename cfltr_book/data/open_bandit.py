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
    "the logs of Open Bandit are not installed: pip install obp==0.4.1 pyarrow (with --no-deps where it would replace "
    "something), or in a clone of the book make setup"
)
WHOLE = (
    "the whole data set is looked for in CFLTR_DATA/obd/<policy>/<campaign>/<campaign>.csv, with the policies random "
    "and bts and the campaigns all, men and women"
)


def open_bandit(*, whole: bool = False) -> pd.DataFrame:
    """Every row of the six logs: ``campaign``, ``policy``, ``item``, ``position`` from 1, ``click``, ``propensity``.

    PyArrow reads the files, one after the other and only these columns, so that the 26 million rows of the whole data
    set take half a gigabyte.

    Parameters
    ----------
    whole : bool
        Read the whole data set, from the folder ``obd`` below the one that the environment variable ``CFLTR_DATA``
        names, in place of the small logs of the package ``obp``.

    Raises
    ------
    ModuleNotFoundError
        Without ``obp`` or without PyArrow, saying what to type.
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
    if importlib.util.find_spec("pyarrow") is None:
        raise ModuleNotFoundError(MISSING)
    folder, parts = _disk() if whole else _package(), []
    for campaign, policy in product(CAMPAIGNS, POLICIES):
        path = folder / policy / campaign / f"{campaign}.csv"
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file; {WHOLE if whole else MISSING}")
        part = _rows(path)
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


def _rows(path: Path) -> pd.DataFrame:
    """The rows of one file, in their order, checked."""
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.type_for_alias(kind) for name, (_, kind) in COLUMNS.items()}
    options = csv.ConvertOptions(include_columns=list(COLUMNS), column_types=types)
    try:
        table = csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, KeyError) as error:
        raise ValueError(f"{path}: expected the columns {', '.join(COLUMNS)}, of numbers ({error})") from None
    rows = pd.DataFrame({new: table[name].to_numpy() for name, (new, _) in COLUMNS.items()})
    for name, sound in {
        "item": rows["item"] >= 0,
        "position": rows["position"].between(1, 3),
        "click": rows["click"].isin((0, 1)),
        "propensity": rows["propensity"].between(0, 1, inclusive="right"),
    }.items():
        if not sound.all():
            at = int(np.argmin(sound))
            raise ValueError(
                f"{path}: {name} is {rows[name][at]} in row {at}, which no file of the data set has; take the file anew"
            )
    return rows
