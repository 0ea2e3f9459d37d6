"""What figures and sliders share: texts that are checked, pictures drawn into bytes, kept and shown."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfltr_core.files import write_json, write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# The places of two panels, one below the other, as matplotlib tells them: rows, columns, first and last place.
_COLUMN = [(2, 1, 0, 0), (2, 1, 1, 1)]
# Where a copy of a chapter keeps the numbers that its figures have in the book: JSON, by id.
_NUMBERS_VARIABLE = "CFLTR_FIGURE_NUMBERS"


def check_texts(id: str, *, caption: str, alt: str) -> None:
    """Refuse an id, a caption or an alternative text that would leave a reader without them.

    Raises
    ------
    ValueError
        Naming the text, and what it should say.

    Examples
    --------
    >>> check_texts("clicks", caption="Clicks of six users on three documents.", alt="")
    Traceback (most recent call last):
    ...
    ValueError: id is 'clicks': expected fig-words-in-lower-case
    """
    if not re.fullmatch(r"fig-[a-z0-9]+(-[a-z0-9]+)*", id):
        raise ValueError(f"id is {id!r}: expected fig-words-in-lower-case")
    if len(caption.strip()) < 20:
        raise ValueError(f"caption of {id}: say what is shown, on what data, and what bands mean")
    if len(alt.strip()) < 40 or not re.search(r"\d", alt) or alt.strip() == caption.strip():
        raise ValueError(
            f"alt of {id}: expected at least 40 characters with a number in them, not the caption again: "
            "kind of plot, axes, the one fact, its value"
        )


def table_of(data: Any, id: str) -> pd.DataFrame:
    """The numbers of the picture ``id`` as a table, which has at least one row.

    Raises
    ------
    ValueError
        For an empty table, or columns of different length.

    Examples
    --------
    >>> table_of({"document": ["A", "B"], "clicks": [6, 2]}, "fig-clicks").shape
    (2, 2)
    """
    import pandas as pd

    table = pd.DataFrame(data)
    if table.empty:
        raise ValueError(f"data of {id} is empty: pass the numbers that are plotted")
    return table


def drawn(fig: Figure, kind: str, face: str | None = None) -> bytes:
    """The figure as the content of a file of this ``kind``, "svg" or "png": the same bytes in every run.

    Its ``face`` is that of the page in the book, none of its own, and white in a notebook, whose ground may be dark.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig = plt.figure()
    >>> drawn(fig, "svg") == drawn(fig, "svg")
    True
    >>> plt.close(fig)
    """
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    # The fixed salt makes the names inside the SVG, and so its bytes, the same in every run.
    with mpl.rc_context({"svg.hashsalt": "cfltr"}):
        face = face or ("none" if os.environ.get("CFLTR_RUN_DIR") else "white")
        fig.savefig(buffer, format=kind, dpi=150, metadata=metadata, facecolor=face)
    return buffer.getvalue()


def card_of(fig: Figure) -> bytes | None:
    """The picture for the card of a page, a PNG on white; None outside a run.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig = plt.figure()
    >>> card_of(fig) is None  # no book is being run
    True
    >>> plt.close(fig)
    """
    return drawn(fig, "png", "white") if os.environ.get("CFLTR_RUN_DIR") else None


def row_of(fig: Figure, kind: str) -> bytes | None:
    """The picture for a page with room for two panels side by side, where ``fig`` has them one below the other.

    None for any other figure, and outside a run.  It moves the panels of ``fig`` itself: draw the column first.  Panels
    that share an axis of x, which is named below the last, each get its ticks and its name.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, axes = plt.subplots(2, 1)
    >>> row_of(fig, "svg") is None  # no book is being run
    True
    >>> plt.close(fig)
    """
    specs = [axes.get_subplotspec() for axes in fig.axes]
    if not os.environ.get("CFLTR_RUN_DIR") or [spec and spec.get_geometry() for spec in specs] != _COLUMN:
        return None
    above, below = fig.axes
    grid = fig.add_gridspec(1, 2)
    above.set_subplotspec(grid[0])
    below.set_subplotspec(grid[1])
    if above.get_shared_x_axes().joined(above, below):
        above.tick_params(axis="x", which="both", labelbottom=True)
        above.set_xlabel(above.get_xlabel() or below.get_xlabel())
    width, height = fig.get_size_inches()
    fig.set_size_inches(2 * width, 0.6 * height)
    return drawn(fig, kind)


def numbered_caption(caption: str, number: str | None) -> str:
    """A caption as a plain notebook shows it below a figure, in Markdown: behind its number in the book, if known.

    Examples
    --------
    >>> numbered_caption("Clicks of six users.", "Fig. 1.1")
    '**Fig. 1.1.** *Clicks of six users.*'
    """
    return f"**{number}.** *{caption}*" if number else f"*{caption}*"


def publish(
    id: str,
    image: bytes,
    *,
    caption: str,
    alt: str,
    table: pd.DataFrame,
    kind: str,
    card: bytes | None = None,
    row: bytes | None = None,
    **more: Any,
) -> Path | None:
    """Show a picture with its caption; when the book is being run keep both, its card, row, texts and numbers.

    Returns
    -------
    Path or None
        The folder where they are kept, if they are; ``more`` stands there with the texts.

    Examples
    --------
    >>> import pandas as pd
    >>> texts = {"caption": "Clicks of six users.", "alt": "A bar of six clicks."}
    >>> publish("fig-clicks", b"<svg/>", table=pd.DataFrame({"clicks": [6]}), kind="svg", **texts)
    """
    folder = os.environ.get("CFLTR_RUN_DIR")
    base = Path(folder) / "figures" if folder else None
    if base is not None:
        base.mkdir(parents=True, exist_ok=True)
        text = table.to_csv(index=False, float_format="%.12g", lineterminator="\n")
        write_whole(base / f"{id}.{kind}", image)
        if card is not None:
            write_whole(base / f"{id}.card.png", card)
        if row is not None:
            write_whole(base / f"{id}.row.{kind}", row)
        write_whole(base / f"{id}.csv", text)
        record = {"id": id, "caption": caption, "alt": alt, "image": f"{id}.{kind}", "data": f"{id}.csv"}
        write_json(base / f"{id}.json", record | more)
    if kind == "png":
        show({"image/png": image, "text/plain": alt}, {"cfltr": {"figure": id}})
    else:
        show({"image/svg+xml": image.decode("utf-8"), "text/plain": alt}, {"cfltr": {"figure": id}})
    # A copy of a chapter, which stands apart from the book, says what its figures are called there.
    number = json.loads(os.environ.get(_NUMBERS_VARIABLE, "{}")).get(id)
    show({"text/markdown": numbered_caption(caption, number), "text/plain": caption}, {"cfltr": {"caption": id}})
    return base


def show(bundle: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Show a MIME bundle in a notebook; do nothing outside one.

    Examples
    --------
    >>> show({"text/plain": "six clicks"}, {})
    """
    if "IPython" not in sys.modules:
        return
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    if get_ipython() is not None:
        display(dict(bundle), raw=True, metadata=dict(metadata))  # type: ignore[no-untyped-call]
