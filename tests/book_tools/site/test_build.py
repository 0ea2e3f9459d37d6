"""The site is built from a complete run, strictly, and is there as a whole or not at all."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from toy import FIGURE, IMAGE_WITHOUT_ALT, Toy

from cfltr_book.reporting import claim_registry

BETA = """Text

:::{prf:theorem} Of the other
:label: thm-beta

True{glue:text}`never-run`.
:::

$$a = b$$ (eq-beta)
"""
ALPHA = """Text

See {numref}`fig-toy`, {prf:ref}`thm-beta`, {eq}`eq-beta`, {term}`clicks` and {cite:t}`toy2026` in
[the other](92_beta.ipynb), and [the board](scoreboard.md)."""


def test_one_page_is_built_alone_with_all_that_it_refers_to(executed: Toy) -> None:
    """The other chapter was never run, so that its text alone is there; the site is left as it is."""
    site = executed.root / "_build" / "html"
    site.mkdir()
    (executed.root / "references.bib").write_text(
        "@misc{toy2026, author = {Toy, Tom}, title = {Toys}, year = {2026}}\n"
    )
    (executed.root / "chapters" / "glossary.md").write_text(
        "# Glossary\n\n```{glossary}\nclick\n  A touch.\n\nclicks\n  Several.\n```\n\n```{bibliography}\n```\n"
    )
    executed.contents("91_alpha", "92_beta", "glossary", "scoreboard")
    executed.chapter("91_alpha", FIGURE, ALPHA)
    executed.chapter("92_beta", "x = 4", BETA)
    result = executed.cli("page", "--scale", "smoke", "--chapter", "91")
    assert result.returncode == 0, result.stdout
    told = dict(line.split(": ") for line in result.stdout.splitlines() if line.startswith(("page: ", "executed: ")))
    assert (executed.root / told["executed"]).samefile(executed.done("91_alpha") / "notebook.ipynb")
    page = BeautifulSoup((executed.root / told["page"]).read_text(), "html.parser").article
    assert page is not None
    said = " ".join(page.get_text().split())
    assert "See Fig. 91.1, Theorem 92.1, (92.1), clicks and Toy [2026] in the other, and the board." in said
    addresses = [str(link["href"]) for link in page.select("p a")]
    assert {"92_beta.html#thm-beta", "92_beta.html#equation-eq-beta", "glossary.html#term-clicks"} <= {*addresses}
    assert list(site.iterdir()) == []
    other = (executed.root / told["page"]).with_name("92_beta.html").read_text()
    assert "of this one only the text is here" in other
    assert "x = 4" not in BeautifulSoup(other, "html.parser").get_text()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Text\n\nSee {numref}`fig-nowhere`.", "chapters/92_beta.ipynb, cell 2, line 3: WARNING"),
        (IMAGE_WITHOUT_ALT, "92_beta.ipynb, cell 2 ('from IPython.display import display'): an image without"),
    ],
)
def test_a_page_with_a_fault_leaves_no_site(executed: Toy, source: str, message: str) -> None:
    old = executed.root / "_build" / "html"
    old.mkdir()
    (old / "index.html").write_text("the old site")
    executed.chapter("92_beta", source)
    assert executed.cli("run", "--scale", "smoke").returncode == 0
    result = executed.cli("site")
    assert result.returncode == 1
    assert message in result.stdout
    assert not old.exists()


def test_a_partial_run_gives_no_site_and_touches_nothing(executed: Toy) -> None:
    old = executed.root / "_build" / "html"
    old.mkdir()
    executed.chapter("93_gamma", "x = 1")
    executed.contents("91_alpha", "93_gamma")
    result = executed.cli("site")
    assert result.returncode == 2
    assert "93_gamma: not executed" in result.stdout
    assert "built from a complete run only; nothing was changed" in result.stdout
    assert old.exists()


def test_the_same_artefact_from_two_chapters(executed: Toy) -> None:
    original = executed.root / "chapters" / "91_alpha.ipynb"
    (executed.root / "chapters" / "93_gamma.ipynb").write_bytes(original.read_bytes())
    executed.contents("91_alpha", "93_gamma")
    assert executed.cli("run", "--scale", "smoke").returncode == 0
    result = executed.cli("verify")
    assert result.returncode == 1
    assert "fig-toy: written by both 91_alpha and 93_gamma" in result.stdout


UNMEASURABLE = """
import numpy as np
import cfltr_book as book
rate = np.log10(np.array([-1.0, 10.0]))
"""


def test_a_claim_that_does_not_gate_and_a_number_that_is_not_there_never_cost_the_site(toy: Toy) -> None:
    """With everything that comes with them: what NumPy says of them on the error stream."""
    kinds = {"ordering": "larger=rate, smaller=[0.0, 0.0]", "number": "values=rate"}
    spec = next(
        spec
        for spec in claim_registry.registry().values()
        if spec.kind in kinds and not spec.gates("smoke", "yahoo-like") and spec.gates("ci", "yahoo-like")
    )
    measure = f'book.claim("{spec.id}", scale=scale, corpus=corpus, {kinds[spec.kind]})'
    name = f"{spec.chapter}_toy"
    toy.chapter(name, UNMEASURABLE, measure, 'book.record("toy-rate", rate[0])', "Text\n\nIt is {glue:text}`toy-rate`.")
    toy.contents(name, "scoreboard")
    result = toy.cli("book", "--scale", "smoke")
    assert result.returncode == 0, result.stdout
    assert (
        f"{name}, cell 2: RuntimeWarning: invalid value encountered in log10 (not shown on the page)" in result.stdout
    )
    assert f"chapter {spec.chapter}: 1 no verdict" in result.stdout
    text = toy.page(f"chapters/{name}").get_text()
    assert f"Claim {spec.id}: no verdict." in text
    assert "It is —." in text
    assert "RuntimeWarning" not in text
    assert "No verdict" in toy.page("chapters/scoreboard").get_text()
    # Where the claim must hold the chapter stops, and says which number was not finite.
    result = toy.cli("run", "--scale", "ci")
    assert result.returncode == 1
    assert f"NotMeasured: {spec.id}, " in result.stdout
    assert "[0] is nan" in result.stdout
