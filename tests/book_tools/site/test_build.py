"""The site is built from a complete run, strictly, and is there as a whole or not at all."""

import pytest
from bs4 import BeautifulSoup
from toy import FIGURE, IMAGE_WITHOUT_ALT, Toy

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
    told = dict(line.split(": ") for line in result.splitlines() if line.startswith(("page: ", "executed: ")))
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
    executed.cli("run", "--scale", "smoke")
    assert message in executed.cli("site", code=1)
    assert not old.exists()


def test_a_partial_run_gives_no_site_and_touches_nothing(executed: Toy) -> None:
    old = executed.root / "_build" / "html"
    old.mkdir()
    executed.chapter("93_gamma", "x = 1")
    executed.contents("91_alpha", "93_gamma")
    result = executed.cli("site", code=2)
    assert "93_gamma: not executed" in result
    assert "built from a complete run only; nothing was changed" in result
    assert old.exists()
