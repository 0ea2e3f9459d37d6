"""Figures with a knob: one picture for each of a few values, which a page without a kernel can turn through.

:func:`slider` is a method of :class:`cfltr_book.reporting.run.Run`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_book.reporting.pictures import card_of, check_texts, drawn, publish, table_of
from cfltr_book.reporting.standing import Standing
from cfltr_core.files import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Fewer are no slider, and every frame is a file that a reader fetches.
FEWEST, MOST = 3, 9
# What is said while the knob moves is heard at every step.
LONGEST_FACT = 120
# What a plain text would show as it stands.
_MARKUP = re.compile(r"[*_`$<\[\]{}\\|~]|\n")


@dataclass(frozen=True)
class _Frame:
    """What ``draw`` gave for one value."""

    figure: Figure
    table: pd.DataFrame
    fact: str
    alt: str


def slider(
    self: Standing,
    draw: Callable[[float], tuple[Figure, Any, str, str]],
    id: str,
    *,
    knob: str,
    values: Sequence[float],
    caption: str,
    start: float | None = None,
    form: str = "{:g}",
    dense: bool = False,
    seeds: Iterable[int] | None = None,
) -> None:
    """Show a figure with a knob, and keep a frame for each of its ``values`` when the book is being run.

    A notebook, paper and a page without scripts show the frame of ``start``, an ordinary figure
    (:func:`cfltr_book.reporting.figures.figure`); the page of the book has a slider that exchanges it.  All frames
    are drawn on the same axes: the limits of each are widened until they hold what any frame shows.

    Parameters
    ----------
    draw : callable
        Of a value: a new matplotlib figure, its data (columns of equal length), the one fact that is read out when
        the knob comes to rest there, in at most 120 characters, and the alternative text, as of any figure.
    id : str
        ``fig-…``, unique in the book.
    knob : str
        What the knob is, in plain words that name its symbol.  It heads the first column of the data.
    values : increasing numbers
        Three to nine.
    caption : str
        Markdown that holds for every frame; a sentence that names the knob and its range is added.
    start : float, optional
        One of ``values``; the middle one if it is left out.
    form : str
        How a value is written, by ``form.format(value)``.
    dense : bool
        PNG instead of SVG, for thousands of marks.
    seeds : iterable of int, optional
        Those that the frames show: the caption then says corpus, scale and seeds (:meth:`setting_of`).

    Raises
    ------
    ValueError
        For texts that would leave a reader without them, values that make no slider, and frames whose axes differ
        in number, size, scale or labels.

    Examples
    --------
    >>> import cfltr_book as book
    >>> def examined(eta):
    ...     ranks = [1, 2, 3]
    ...     shares = [rank**-eta for rank in ranks]
    ...     ax = book.curves(ranks, {"examined": shares}, xlabel="rank", ylabel="share of users")
    ...     fact = f"{shares[2]:.0%} of the users look at rank 3"
    ...     alt = f"Line chart of the share of users who look at ranks 1 to 3: {fact}."
    ...     return ax.figure, {"rank": ranks, "share": shares}, fact, alt
    >>> book.Run("smoke", "digits").slider(
    ...     examined, "fig-examined", knob="severity of position bias η", values=[0, 0.5, 1, 2], start=1,
    ...     caption="Share of the users who look at each rank.",
    ... )
    """
    import matplotlib.pyplot as plt
    import pandas as pd

    if seeds is not None:
        caption = f"{caption.rstrip()} {self.setting_of(seeds)}."
    texts, first = _checked_values(values, start, form, id)
    if not knob.strip() or _MARKUP.search(knob):
        raise ValueError(f"knob of {id} is {knob!r}: expected plain words on one line")
    frames: list[_Frame] = []
    open_before = set(plt.get_fignums())
    try:
        for value, text in zip(values, texts, strict=True):
            frames.append(_drawn_frame(draw, value, id=id, place=f"{knob} = {text}", caption=caption))
        _same_axes([frame.figure for frame in frames], texts, id)
        kind = "png" if dense else "svg"
        images = [drawn(frame.figure, kind) for frame in frames]
        card = card_of(frames[first].figure)
    finally:
        for number in set(plt.get_fignums()) - open_before:
            plt.close(number)
    if any(knob in frame.table.columns for frame in frames):
        raise ValueError(f"data of {id} has a column {knob!r} of its own: that is the name of the knob's")
    if len({frame.alt for frame in frames}) < len(frames):
        raise ValueError(f"alt of {id}: two frames have the same one; write it from the numbers of the frame")
    table = pd.concat([frame.table for frame in frames], keys=list(values), names=[knob]).reset_index(level=0)
    names = [f"{id}.{kind}" if i == first else f"{id}.{i}.{kind}" for i in range(len(frames))]
    told = [
        {"text": text, "fact": frame.fact, "alt": frame.alt, "image": name}
        for text, frame, name in zip(texts, frames, names, strict=True)
    ]
    whole = (
        f"{caption.rstrip()} On the book's site a slider takes the {knob} from {texts[0]} to {texts[-1]}; "
        f"without the slider it is {texts[first]}."
    )
    about = {"knob": knob, "start": first, "frames": told}
    folder = publish(
        id, images[first], caption=whole, alt=frames[first].alt, table=table, kind=kind, card=card, slider=about
    )
    if folder is not None:
        for name, image in zip(names, images, strict=True):
            write_whole(folder / name, image)


def _checked_values(values: Sequence[float], start: float | None, form: str, id: str) -> tuple[list[str], int]:
    """How each value is written, and the place of the one that is shown first."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not FEWEST <= len(numbers) <= MOST:
        raise ValueError(f"values of {id}: expected {FEWEST} to {MOST} numbers, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"values[{place}] of {id} is {numbers[place]}: expected a finite number")
    falls = np.flatnonzero(np.diff(numbers) <= 0)
    if len(falls):
        place = int(falls[0]) + 1
        raise ValueError(f"values[{place}] of {id} is {values[place]}, not above the one before: sort the values")
    texts = [form.format(value) for value in values]
    if len(set(texts)) < len(texts):
        raise ValueError(f"form of {id} is {form!r}, which writes two values alike: {', '.join(texts)}")
    if start is None:
        return texts, len(numbers) // 2
    places = np.flatnonzero(numbers == start)
    if not len(places):
        raise ValueError(f"start of {id} is {start}: choose one of the values, {', '.join(texts)}")
    return texts, int(places[0])


def _drawn_frame(
    draw: Callable[[float], tuple[Figure, Any, str, str]], value: float, *, id: str, place: str, caption: str
) -> _Frame:
    """What ``draw`` gives for ``value``, with its texts and its data checked."""
    found = draw(value)
    if not isinstance(found, tuple) or len(found) != 4:
        raise ValueError(f"draw of {id} at {place}: expected it to return figure, data, fact, alt")
    fig, data, fact, alt = found
    try:
        check_texts(id, caption=caption, alt=alt)
        table = table_of(data, id)
    except ValueError as error:
        raise ValueError(f"at {place}: {error}") from None
    if not fact.strip() or len(fact) > LONGEST_FACT or _MARKUP.search(fact):
        raise ValueError(
            f"fact of {id} at {place} is {fact!r}: expected plain words on one line, at most {LONGEST_FACT} characters"
        )
    return _Frame(fig, table, fact.strip(), alt)


def _same_axes(figures: Sequence[Figure], texts: Sequence[str], id: str) -> None:
    """Widen the limits of all axes to those that hold every frame; refuse frames that differ in more than limits."""
    first = [_face(axes) for axes in figures[0].axes]
    for fig, text in zip(figures, texts, strict=True):
        if tuple(fig.get_size_inches()) != tuple(figures[0].get_size_inches()) or len(fig.axes) != len(first):
            raise ValueError(f"frames of {id}: {text} has another size or number of axes than {texts[0]}")
        for i, axes in enumerate(fig.axes):
            differing = [part for part, value in _face(axes).items() if value != first[i][part]]
            if differing:
                raise ValueError(
                    f"frames of {id}: axes {i} of {text} and {texts[0]} differ in {', '.join(differing)}; "
                    "what the knob changes is what is drawn, not what it is drawn on"
                )
    for together in zip(*(fig.axes for fig in figures), strict=True):
        for side in ("x", "y"):
            limits = np.array([getattr(axes, f"get_{side}lim")() for axes in together])
            low, high = limits.min(), limits.max()
            turned = limits[0, 0] > limits[0, 1]
            for axes in together:
                getattr(axes, f"set_{side}lim")((high, low) if turned else (low, high))


def _face(axes: Axes) -> dict[str, str]:
    """What is written on the axes, and how they count."""
    return {
        "the scale of x": axes.get_xscale(),
        "the scale of y": axes.get_yscale(),
        "the label of x": axes.get_xlabel(),
        "the label of y": axes.get_ylabel(),
    }
