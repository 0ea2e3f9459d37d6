"""The site is built from a complete run, strictly, and is there as a whole or not at all."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from toy import FIGURE, IMAGE_WITHOUT_ALT, Toy

from cfltr_book.reporting import claim_registry


def test_one_page_is_built_alone_whatever_it_refers_to(executed: Toy) -> None:
    """It is there although its links lead nowhere and the other chapter was never run; the site is left as it is."""
    site = executed.root / "_build" / "html"
    site.mkdir()
    executed.chapter("91_alpha", FIGURE, "Text\n\nSee {numref}`fig-toy` and {eq}`eq-toy` in [another](92_beta.ipynb).")
    executed.chapter("92_beta", "x = 4")
    result = executed.cli("page", "--scale", "smoke", "--chapter", "91")
    assert result.returncode == 0, result.stdout
    told = dict(line.split(": ") for line in result.stdout.splitlines() if line.startswith(("page: ", "executed: ")))
    assert (executed.root / told["executed"]).samefile(executed.done("91_alpha") / "notebook.ipynb")
    text = BeautifulSoup((executed.root / told["page"]).read_text(), "html.parser").get_text()
    assert "See Fig. 91.1 and" in text
    assert list(site.iterdir()) == []
    assert not (executed.root / "_build" / "page" / "chapters" / "92_beta.html").exists()


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
