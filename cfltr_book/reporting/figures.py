"""Figures with caption, alternative text and data; and the few numbers that prose quotes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_book.reporting.intervals import mean_interval
from cfltr_book.reporting.pictures import card_of, check_texts, drawn, publish, row_of, show, table_of
from cfltr_core.checks import FloatArray
from cfltr_core.files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One colour and one marker per method, through the whole book: safe for colour-blind readers, and at a contrast of
#: at least 3 with a white page and, as the style of the site turns them, with a dark one.
METHODS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "truth": {"color": "#000000", "marker": "*"},
        "naive": {"color": "#D55E00", "marker": "v"},
        "ips": {"color": "#0072B2", "marker": "o"},
        "policy-aware": {"color": "#CC79A7", "marker": "^"},
        "self-normalised": {"color": "#009E73", "marker": "s"},
        "clipped": {"color": "#B87A00", "marker": "D"},
        "countersample": {"color": "#882255", "marker": "X"},
        "logger": {"color": "#666666", "marker": "P"},
        "random": {"color": "#888888", "marker": "<"},
        "propdcg": {"color": "#332288", "marker": "d"},
        "hinge": {"color": "#3A94CC", "marker": "h"},
        "logistic": {"color": "#999933", "marker": "p"},
        "ever clicked": {"color": "#117733", "marker": ">"},
    }
)
#: The colours of :data:`METHODS` alone, as seaborn takes them: ``hue="method", palette=book.PALETTE``.
PALETTE: dict[str, str] = {name: look["color"] for name, look in METHODS.items()}
#: The markers of :data:`METHODS` alone, as seaborn takes them: ``style="method", markers=book.MARKERS``.
MARKERS: dict[str, str] = {name: look["marker"] for name, look in METHODS.items()}
# Markers of lines that are no method's.
_MARKERS = "ovsD^P<>X8"

# What a sentence shows in place of a number that is not finite.
NOT_AVAILABLE = "—"
# How a number is shown unless it is said.
_NUMBER = "{:.3g}"
# What a phrase must not hold: a copy of the chapter puts it into Markdown, the page into plain text.  Within a word,
# as in the name of a collection, an underscore is only itself.
_MARKUP = re.compile(r"[*`$<\[\]{}\\|~]|(?<![^\W_])_|_(?![^\W_])")


def style() -> None:
    """The book's plotting style: no face of its own, fixed sizes, reproducible SVG.  Call it once per chapter.

    It changes matplotlib's ``rcParams`` for all figures that follow.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> import cfltr_book as book
    >>> with mpl.rc_context():
    ...     book.style()
    ...     mpl.rcParams["figure.figsize"], mpl.rcParams["svg.fonttype"]
    ([5.2, 3.6], 'path')
    """
    import matplotlib as mpl
    import seaborn as sns

    sns.set_theme(context="notebook", style="whitegrid", palette="colorblind")
    mpl.rcParams.update(
        {
            # A phone shows 5.2 inches with letters that can be read; more would be shrunk.
            "figure.figsize": (5.2, 3.6),
            "axes.facecolor": "none",
            "figure.constrained_layout.use": True,
            "svg.fonttype": "path",
            "lines.markersize": 6,
            "legend.framealpha": 0.9,
        }
    )


def band(
    ax: Axes,
    x: Sequence[float],
    *,
    values: ArrayLike,
    method: str,
    label: str | None = None,
    units: ArrayLike | None = None,
) -> None:
    """Plot a method's mean over seeds against ``x``, with the 95 % Student interval of the mean as a band.

    At each x, mean ± t · s/√n of n seeds, as :func:`cfltr_book.reporting.intervals.mean_interval` computes it.

    Parameters
    ----------
    ax : matplotlib axes
    x : (m,)
    values : (n_seeds, m)
    method : str
        A key of ``METHODS``: colour and marker are the method's own.
    label : str, optional
        In the legend; the method's name if it is left out.
    units : (n_seeds,), optional
        Labels of the seeds, of which those with equal ones count once.

    Raises
    ------
    ValueError
        For values of another shape, or an unknown method.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import cfltr_book as book
    >>> fig, ax = plt.subplots()
    >>> book.band(ax, [100, 1000], values=[[0.61, 0.68], [0.63, 0.70]], method="ips")
    >>> ax.lines[0].get_ydata(), ax.lines[0].get_color() == book.METHODS["ips"]["color"]
    (array([0.62, 0.69]), True)
    >>> plt.close(fig)
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(x):
        raise ValueError(f"values: expected shape (seeds, {len(x)}), got {rows.shape}")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}: choose one of {', '.join(METHODS)}, or give it a colour in METHODS")
    _line(ax, x, rows, look=METHODS[method], label=label or method, units=units)


def curves(
    x: Sequence[float],
    lines: Mapping[str, ArrayLike],
    *,
    ax: Axes | None = None,
    labels: Mapping[str, str] | None = None,
    legend: bool | Mapping[str, Any] = True,
    units: ArrayLike | None = None,
    **axes: Any,
) -> Axes:
    """Lines against ``x``, one for each entry of ``lines``, with a legend, on new axes or on ``ax``.

    Values of shape (len(x),) give a line, values of shape (seeds, len(x)) their mean over seeds with the 95 % Student
    interval of the mean as a band (:func:`cfltr_book.reporting.intervals.mean_interval`).  A name in :data:`METHODS`
    has the method's colour and marker, any other its place on a scale of colours from dark to light, and a marker
    of its own.  Lines of more than 25 points are marked at about ten of them.

    Parameters
    ----------
    labels : mapping, optional
        What the legend says instead of the name.
    legend : bool or mapping
        Arguments of ``Axes.legend``; False leaves the legend out.
    units : (n_seeds,), optional
        Labels of the seeds, of which those with equal ones count once.
    **axes
        Arguments of ``Axes.set``: ``xlabel``, ``yscale``, ``ylim`` …

    Returns
    -------
    matplotlib.axes.Axes
        Its ``figure`` is what :func:`figure` takes.

    Raises
    ------
    ValueError
        Without a line, or naming the one whose shape does not fit ``x``.

    Examples
    --------
    >>> import cfltr_book as book
    >>> ax = book.curves([1, 2, 3], {"naive": [0.5, 0.5, 0.5], "ips": [0.9, 0.6, 0.3]}, xlabel="clicks")
    >>> [line.get_color() for line in ax.lines] == [book.PALETTE[name] for name in ("naive", "ips")]
    True
    >>> [line.get_marker() for line in ax.lines] == [book.MARKERS[name] for name in ("naive", "ips")]
    True
    """
    import matplotlib.pyplot as plt

    values = {name: np.asarray(line, dtype=np.float64) for name, line in lines.items()}
    if not values:
        raise ValueError("lines: there is none to plot")
    for name, line in values.items():
        if line.ndim not in (1, 2) or line.shape[-1] != len(x) or line.size == 0:
            shapes = f"({len(x)},) or (seeds, {len(x)})"
            raise ValueError(f"lines[{name!r}]: expected shape {shapes}, got {line.shape}")
    target = plt.subplots()[1] if ax is None else ax
    others = [name for name in values if name not in METHODS]
    # Of this scale the lighter end is too pale on white.
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.6, max(2, len(others))))
    taken = {METHODS[name]["marker"] for name in values if name in METHODS}
    markers = cycle([marker for marker in _MARKERS if marker not in taken])
    looks = {name: {"color": shades[i], "marker": next(markers)} for i, name in enumerate(others)}
    for name, line in values.items():
        look = METHODS[name] if name in METHODS else looks[name]
        # On a dense curve ten markers tell it from the others; more would hide it.
        sparse = {"markevery": len(x) // 10} if len(x) > 25 else {}
        _line(target, x, line, look={**look, **sparse}, label=(labels or {}).get(name, name), units=units)
    target.set(**axes)
    if legend:
        target.legend(**({} if legend is True else legend))
    return target


def _line(
    ax: Axes,
    x: Sequence[float],
    values: FloatArray,
    *,
    look: Mapping[str, Any],
    label: str,
    units: ArrayLike | None = None,
) -> None:
    """A line, or where ``values`` has a row per seed, the mean with its interval."""
    if values.ndim == 1:
        ax.plot(x, values, label=label, **look)
        return
    line = np.array([mean_interval(column, units=units) for column in values.T])
    ax.plot(x, line[:, 0], label=label, **look)
    ax.fill_between(x, line[:, 1], line[:, 2], color=look["color"], alpha=0.15)


def figure(fig: Figure, id: str, *, caption: str, alt: str, data: Any, dense: bool = False) -> None:
    """Show a figure, and keep it with its caption, alternative text and data when the book is being run.

    Parameters
    ----------
    fig : matplotlib figure
        A wide page shows two panels of a column, ``plt.subplots(2, 1)``, side by side, any other the figure as it is.
        Closed after saving, so that it shows once.
    id : str
        ``fig-…``, unique in the book; the label that ``{numref}`` takes.
    caption : str
        Markdown: what is shown, on what, and what bands mean.
    alt : str
        For those who cannot see it: kind of plot, axes, the one fact, its value (so: at least one number),
        written from the same numbers as the plot.
    data : pandas.DataFrame or mapping of equally long columns
        The numbers in the plot, saved as CSV.
    dense : bool
        PNG instead of SVG, for thousands of marks.

    Raises
    ------
    ValueError
        For an id, caption, alternative text or data that would leave a reader without them.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import cfltr_book as book
    >>> fig, ax = plt.subplots()
    >>> bars = ax.bar(["A", "B", "C"], [6, 0, 2])
    >>> book.figure(
    ...     fig, "fig-clicks-by-document",
    ...     caption="Clicks of six users on three documents, shown in the order A, B, C.",
    ...     alt="Bar chart of clicks by document: A, shown first, has 6, B has none, and C, shown last, has 2.",
    ...     data={"document": ["A", "B", "C"], "clicks": [6, 0, 2]},
    ... )
    >>> plt.fignum_exists(fig.number)  # it was shown and closed
    False
    """
    import matplotlib.pyplot as plt

    check_texts(id, caption=caption, alt=alt)
    table, kind = table_of(data, id), "png" if dense else "svg"
    image = drawn(fig, kind)
    card, row = card_of(fig), row_of(fig, kind)
    plt.close(fig)
    publish(id, image, caption=caption, alt=alt, table=table, kind=kind, card=card, row=row)


def record(name: str, value: float | str, *, form: str = _NUMBER) -> None:
    """Let prose quote what was computed: ``{glue:text}`name``` shows a number as ``form.format(value)``, or a phrase.

    A plain notebook shows the name and what is recorded under it; on the page it stands in the sentence only.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, unique in the book.
    value : number or str
        A number that is not finite shows as a dash and is kept as none: on a corpus where a number cannot be had the
        page says so instead of being lost.  A str is a *phrase*: what the run found in words that the code chose, as
        "loses to the logger"; it is compared word by word with the last accepted run.
    form : str
        Of a number only.

    Raises
    ------
    ValueError
        For another name; a phrase that is empty, runs over a line, holds markup or is nothing but a number; a form
        given with a phrase.

    Examples
    --------
    >>> import cfltr_book as book
    >>> book.record("dcg-of-the-proposed-page", 1.6309, form="{:.2f}")  # prose then shows 1.63
    >>> gap = -0.02
    >>> book.record("who-wins", "ranks A first" if gap > 0 else "ranks B first")
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name is {name!r}: expected lower-case words joined by hyphens")
    kept: dict[str, Any]
    if isinstance(value, str):
        text = _phrase(name, value, form)
        kept = {"kind": "phrase", "value": text}
    else:
        text = form.format(value) if math.isfinite(value) else NOT_AVAILABLE
        kept = {"kind": "number", "value": float(value)}
    folder = os.environ.get("CFLTR_RUN_DIR")
    if folder:
        write_json(Path(folder) / "records" / f"{name}.json", {"name": name, **kept, "text": text})
    # The output that myst-nb's glue writes, for the page, and beside it what a plain notebook shows.
    prefix = "application/papermill.record/"
    bundle = {f"{prefix}text/plain": text, "text/plain": f"{name}: {text}"}
    show(bundle, {"scrapbook": {"name": name, "mime_prefix": prefix}})


def _phrase(name: str, value: str, form: str) -> str:
    """The phrase itself, if a sentence can take it."""
    if form != _NUMBER:
        raise ValueError(f"form of {name}: a phrase is shown as it is; leave form out")
    if not value.strip() or value != " ".join(value.split()):
        raise ValueError(f"value of {name} is {value!r}: expected words on one line, with single spaces between them")
    if re.fullmatch(r"[-+−]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?\s*%?", value):
        raise ValueError(f"value of {name} is {value!r}: record the number itself, and how it is shown with form")
    if match := _MARKUP.search(value):
        raise ValueError(f"value of {name} holds {match[0]!r}: a phrase is plain words, markup stands around it")
    return value
