"""Do the rows of many small tables differ by more than chance?  Exact moments given the margins, so nothing is drawn.

Three checks of a log are this question: is the ranker of a session chosen by its query, does a document at its rank
get other click rates in other periods, is a ranker chosen by a column that was ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.pages import distinct_rows

# Sums of counts with a smaller variance are not near enough to a normal law.
LEAST_VARIANCE = 10.0


@dataclass(frozen=True)
class Homogeneity:
    """χ² over tables, its ``mean`` and ``variance`` by chance, and the probability of as much; ``tables`` that say it.

    :func:`homogeneity` makes it.
    """

    chi_square: float
    mean: float
    variance: float
    p_value: float
    tables: int


def homogeneity(table: ArrayLike, row: ArrayLike, column: ArrayLike, *, count: ArrayLike) -> Homogeneity:
    """χ² of independence, summed over tables, against its law when all margins are held.

    Of a table of r rows and c columns with n in all, χ² = n (Σ_ij n_ij²/(n_i· n_·j) − 1), and over all tables of the
    same margins, each as likely as dealing the n at random makes it,

        E χ² = n (r − 1)(c − 1)/(n − 1),
        Var χ² = 2n (v₁ − w₁)(v₂ − w₂)/(n − 3) + n² w₁ w₂/(n − 1),

    with v₁ = (r − 1)(n − r)/(n − 1) and w₁ = (Σ_i n/n_i· − r²)/(n − 2), and v₂, w₂ of the columns.  The sum is compared
    with the gamma law of this mean and variance.  These hold however small the numbers are: a table of a rare query
    counts for what it is.  Tables of fewer than four, of one row or of one column say nothing.

    Source: Haldane 1940 for the moments, Dawson 1954 for this form of the variance.

    Parameters
    ----------
    table, row, column : (n_cells,)
        Whole numbers >= 0; cells that are not given are 0.
    count : (n_cells,)
        Whole numbers >= 0; several counts of a cell are added up.

    Examples
    --------
    >>> from cfltr_core.logs.homogeneity import homogeneity
    >>> test = homogeneity([0] * 4, [0, 0, 1, 1], [0, 1, 0, 1], count=[8, 2, 3, 7])
    >>> round(test.chi_square, 2), round(test.mean, 2), round(test.p_value, 3)
    (5.05, 1.05, 0.027)
    """
    keys, which = distinct_rows(np.column_stack([table, row, column]).astype(np.int64))
    cell = _sums(which, np.asarray(count, dtype=np.float64), len(keys))
    keys, cell = keys[cell > 0], cell[cell > 0]
    first, number = np.unique(keys[:, 0], return_inverse=True)
    n = _sums(number, cell, len(first))
    (of_row, each_row), (of_column, each_column) = (_margin(number, keys[:, at], cell) for at in (1, 2))
    share = _sums(number, cell**2 / (of_row[each_row] * of_column[each_column]), len(first))
    (r, w1), (c, w2) = (
        _spread(number, each, margin, n) for each, margin in ((each_row, of_row), (each_column, of_column))
    )
    use = (n >= 4) & (r > 1) & (c > 1)
    n, r, c, w1, w2, share = (values[use] for values in (n, r, c, w1, w2, share))
    v1, v2 = ((k - 1) * (n - k) / (n - 1) for k in (r, c))
    mean = float((n * (r - 1) * (c - 1) / (n - 1)).sum())
    variance = float((2 * n * (v1 - w1) * (v2 - w2) / (n - 3) + n**2 * w1 * w2 / (n - 1)).sum())
    chi_square = float((n * (share - 1)).sum())
    return Homogeneity(chi_square, mean, variance, _gamma_tail(chi_square, mean, variance), int(use.sum()))


def pooled_homogeneity(table: ArrayLike, row: ArrayLike, column: ArrayLike, *, count: ArrayLike) -> float:
    """Probability by chance of as large a difference of rows that goes one way in all tables.

    :func:`homogeneity` asks for any difference, and hardly sees a small one that is spread over many tables.  Here the
    cases of each row in one column are added up over tables before they are compared with what chance makes.  With all
    margins held, and m of the n cases of a table in the column, row i has x_i of them with

        E x_i = m n_i/n,    Cov(x_i, x_j) = m (n − m)/(n² (n − 1)) · n_i (n·[i = j] − n_j).

    The quadratic form of the sums is compared with χ².  Rows whose sum has a variance below ten are left out, since its
    law is not near that of Gauss.  Of all columns the smallest probability is taken, times their number.

    Source: Landis, Heyman & Koch 1978, the Cochran-Mantel-Haenszel test for any number of rows.

    Parameters
    ----------
    table, row, column : (n_cells,)
        Whole numbers >= 0; cells that are not given are 0.
    count : (n_cells,)
        Whole numbers >= 0; several counts of a cell are added up.

    Examples
    --------
    In each of 60 tables half a case more than chance would have it:

    >>> import numpy as np
    >>> from cfltr_core.logs.homogeneity import homogeneity, pooled_homogeneity
    >>> cells = np.repeat(np.arange(60), 4), [0, 0, 1, 1] * 60, [0, 1, 0, 1] * 60
    >>> count = [6, 5, 5, 6] * 60
    >>> round(homogeneity(*cells, count=count).p_value, 2), round(pooled_homogeneity(*cells, count=count), 4)
    (1.0, 0.0025)
    """
    table, row, column = (np.unique(keys, return_inverse=True)[1] for keys in (table, row, column))
    cell = np.asarray(count, dtype=np.float64)
    tables, rows, columns = (int(keys.max(initial=-1)) + 1 for keys in (table, row, column))
    of_row = _sums(table * rows + row, cell, tables * rows).reshape(tables, rows)
    n, p_values = of_row.sum(axis=1), []
    for one in range(columns):
        mine = column == one
        share = _sums(table[mine], cell[mine], tables) / n
        apart = _sums(row[mine], cell[mine], rows) - share @ of_row
        spread = share * (1 - share) * n / np.maximum(n - 1, 1)
        covariance = np.diag(spread @ of_row) - (of_row * (spread / n)[:, None]).T @ of_row
        p_values.append(_gauss_tail(apart, covariance))
    return min([1.0, *(columns * p for p in p_values)])


def _gauss_tail(value: FloatArray, covariance: FloatArray) -> float:
    """P(a quadratic form as large as that of ``value``) of a normal law with this ``covariance``, maybe singular."""
    from scipy.special import chdtrc

    use = np.diag(covariance) >= LEAST_VARIANCE
    if not use.any():
        return 1.0
    variance, axes = np.linalg.eigh(covariance[np.ix_(use, use)])
    keep = variance > 1e-9 * variance.max()
    return float(chdtrc(keep.sum(), ((axes.T @ value[use])[keep] ** 2 / variance[keep]).sum()))


def _sums(which: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sums of ``values`` by their number in ``which``, (size,)."""
    return np.bincount(which, values, minlength=size).astype(np.float64)


def _margin(number: IntArray, key: IntArray, cell: FloatArray) -> tuple[FloatArray, IntArray]:
    """Totals of each (table, key), and which of them each cell is in."""
    keys, which = distinct_rows(np.column_stack([number, key]))
    return _sums(which, cell, len(keys)), which


def _spread(number: IntArray, each: IntArray, margin: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many rows (or columns) each table has, and w of them."""
    _, first = np.unique(each, return_index=True)
    k, inverse = (_sums(number[first], values, len(n)) for values in (np.ones(len(first)), 1 / margin))
    return k, (n * inverse - k**2) / np.maximum(n - 2, 1)


def _gamma_tail(value: float, mean: float, variance: float) -> float:
    """P(X >= ``value``) of a gamma law of this ``mean`` and ``variance``; 1 if there is no variance."""
    from scipy.special import gammaincc

    return float(gammaincc(mean**2 / variance, max(value, 0.0) * mean / variance)) if variance > 0 else 1.0
