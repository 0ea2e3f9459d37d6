"""A small book with everything that a copy for Colab has to translate."""

import json

from toy import FIGURE, PAGES, RECORD, Toy

from book_tools.site.edition_links import INCLUDED
from cfltr_book.reporting import claim_registry

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="{}" height="20"/></svg>'
LENGTHS = (30, 60, 75)
ROW = '<svg xmlns="http://www.w3.org/2000/svg" width="180" height="20"/>'
# The toy's figure with a knob, of whose three frames the middle one is the still, and as a row for wide pages.
DRAWN = f"""{FIGURE.strip()}
(folder / "fig-toy.row.svg").write_text({ROW!r})
for index, length in ((0, {LENGTHS[0]}), (2, {LENGTHS[2]})):
    (folder / f"fig-toy.{{index}}.svg").write_text({SVG!r}.format(length))
about["slider"] = {{"knob": "length of the bar", "start": 1, "frames": [
    {{"text": f"{{length}} %", "fact": f"it is </script> {{length}} long",
     "alt": f"Bar chart with one bar of length {{length}}.", "image": name}}
    for length, name in zip({LENGTHS}, ("fig-toy.0.svg", "fig-toy.svg", "fig-toy.2.svg"))
]}}
_ = (folder / "fig-toy.json").write_text(json.dumps(about))"""

ADDRESS = "https://github.com/someone/toy-book"
SITE = "https://someone.github.io/toy-book/"
GUARD = """import importlib.util

if importlib.util.find_spec("cfltr_book") is None:
    raise ModuleNotFoundError("not installed")"""
TEXT = (PAGES / "colab_text.md").read_text(encoding="utf-8").removesuffix("\n")
END = "Text\n\n:::{solution-end}\n:::\n\nThe end."
# As cfltr_core.record does: the page takes the number from the output, a copy from the record.
GLUE = """
prefix = "application/papermill.record/"
display({f"{prefix}text/plain": "60.25"}, raw=True,
        metadata={"scrapbook": {"name": "toy-length", "mime_prefix": prefix}})
"""
TITLED = "# @title Three, which is < 4 & > 2\nx = 3\nx"
ENTRY = "@article{doe2018, author={Jane Doe and Al Roe and Bo Moe}, title={T}, journal={J}, year={2018}}"


OF_FIRST = [one for one in claim_registry.registry().values() if one.chapter == "01"]
# Claims of chapter 1, on record as supported: one with which the run agrees, one that turned, one that is not measured.
AGREES, TURNS = [one.id for one in OF_FIRST if one.kind == "identity"][:2]
UNMEASURED = next(one.id for one in OF_FIRST if one.kind in claim_registry.EXACT and one.id not in (AGREES, TURNS))
# And one that needs no verdict at scale smoke.
LATER = next(one.id for one in OF_FIRST if one.kind == "ordering" and one.scale == "ci")
MEASURED = (
    """
import numpy as np
import cfltr_book as book
run = book.Run(scale, corpus, seed)
rate = np.log10(np.array([-1.0, 10.0]))
""",
    f"""
run.claim("{AGREES}", left=[1.0], right=[1.0])
run.claim("{TURNS}", left=[1.0], right=[2.0])
run.claim("{LATER}", larger=rate, smaller=[0.0, 0.0])
""",
    'run.record("toy-rate", rate[0])',
    "Text\n\n"
    + "\n\n".join(f"Sentence {n}{{claim}}`{id}\nsupported`." for n, id in enumerate((AGREES, TURNS, UNMEASURED)))
    + "\n\nIt is {glue:text}`toy-rate`.",
)


def write_book(toy: Toy) -> None:
    path = toy.chapter("91_alpha", DRAWN, RECORD + "from IPython.display import display" + GLUE, TEXT, "1 + 1", END)
    content = json.loads(path.read_text())
    cell = content["cells"][2]
    content["cells"].insert(1, {**cell, "source": GUARD, "metadata": {"tags": ["remove-cell"]}})
    cell["metadata"] = {"tags": ["hide-input"]}
    path.write_text(json.dumps(content))
    path = toy.chapter(
        "92_beta", TITLED, "Text\n\n:::{dropdown} What you need\nNothing.\n\n:::\n\nSee {prf:ref}`thm-growth`."
    )
    content = json.loads(path.read_text())
    content["cells"][2]["metadata"] = {"tags": ["hide-cell", "kept"]}
    path.write_text(json.dumps(content))
    toy.chapter("01_toy", *MEASURED)
    (toy.root / "index.md").write_text(f"# Toy\n\nA book.\n\n:::{{include}} {INCLUDED}\n:::\n")
    (toy.root / "references.bib").write_text(ENTRY)
    theorem = ":::{prf:theorem}\n:label: thm-back\n\n$$\nx\n$$ (eq-back)\n\n:::"
    (toy.root / "chapters" / "references.md").write_text(f"# References\n\n:::{{bibliography}}\n:::\n\n{theorem}\n")
    toy.contents("01_toy", "92_beta", "references", "91_alpha", "scoreboard", "status")
