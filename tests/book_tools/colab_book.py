"""A small book with everything that a copy for Colab has to translate."""

from __future__ import annotations

import json

from toy import FIGURE, RECORD, Toy

ADDRESS = "https://github.com/someone/toy-book"
SITE = "https://someone.github.io/toy-book/"
GUARD = """import importlib.util

if importlib.util.find_spec("cfltr_book") is None:
    raise ModuleNotFoundError("not installed")"""
TEXT = """Text

:::{prf:theorem} Growth
:label: thm-growth

It grows:

$$
y = x
$$ (eq-growth)

:::

By {prf:ref}`thm-growth`, {eq}`eq-growth` and {numref}`fig-toy`, the length is {glue:text}`toy-length`.
So {cite:t}`doe2018`. Go [on](92_beta.ipynb).

:::{exercise}
:label: ex-count

Count.

:::

:::{solution-start} ex-count
:class: dropdown

:::"""
END = "Text\n\n:::{solution-end}\n:::\n\nThe end."
# As cfltr_core.record does: the page takes the number from the output, a copy from the record.
GLUE = """
prefix = "application/papermill.record/"
display({f"{prefix}text/plain": "60.25"}, raw=True,
        metadata={"scrapbook": {"name": "toy-length", "mime_prefix": prefix}})
"""
TITLED = "# @title Three, which is < 4 & > 2\nx = 3\nx"
ENTRY = "@article{doe2018, author={Jane Doe and Al Roe and Bo Moe}, title={T}, journal={J}, year={2018}}"


def write_book(toy: Toy) -> None:
    path = toy.chapter("91_alpha", FIGURE, RECORD + "from IPython.display import display" + GLUE, TEXT, "1 + 1", END)
    content = json.loads(path.read_text())
    cell = content["cells"][2]
    content["cells"].insert(1, {**cell, "source": GUARD, "metadata": {"tags": ["remove-cell"]}})
    cell["metadata"] = {"tags": ["hide-input"]}
    path.write_text(json.dumps(content))
    path = toy.chapter("92_beta", TITLED, "Text\n\nSee {prf:ref}`thm-growth`.")
    content = json.loads(path.read_text())
    content["cells"][2]["metadata"] = {"tags": ["hide-cell", "kept"]}
    path.write_text(json.dumps(content))
    (toy.root / "references.bib").write_text(ENTRY)
    (toy.root / "chapters" / "references.md").write_text("# References\n\n:::{bibliography}\n:::\n")
    toy.contents("91_alpha", "92_beta", "references")
