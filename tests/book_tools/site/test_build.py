"""The site is built from a complete run, strictly, and is there as a whole or not at all."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from toy import IMAGE_WITHOUT_ALT, Toy

from book_tools.book import Book
from book_tools.files import json_text
from book_tools.parameters import Parameters
from book_tools.site.pages import scoreboard


def page(toy: Toy, name: str) -> BeautifulSoup:
    path = toy.root / "_build" / "html" / "chapters" / f"{name}.html"
    return BeautifulSoup(path.read_text(), "html.parser")


def test_a_site_with_everything_a_reader_needs(executed: Toy) -> None:
    result = executed.cli("book", "--scale", "smoke")
    assert result.returncode == 0, result.stdout
    assert "kept  91_alpha" in result.stdout
    assert "every verdict is the expected one" in result.stdout

    alpha = page(executed, "91_alpha")
    (figure,) = alpha.select("article figure")
    (image,) = figure.select("img")
    assert image["alt"] == "Bar chart with one bar of length 60."
    assert figure["id"] == "fig-toy"
    (link,) = figure.select("figcaption a.download")
    data = (executed.root / "_build" / "html" / "chapters" / str(link["href"])).resolve()
    assert data.read_text() == "name,length\nbar,60.25\n"
    text = " ".join(part.get_text() for part in alpha.select("article p, article .cell_output"))
    assert "Figure: a bar." not in text, "the caption for plain readers is dropped"
    assert "See Fig. 1" in text
    assert 'scale = "smoke"' not in alpha.get_text(), "the injected parameters are not shown"

    assert "yahoo-like" in page(executed, "scoreboard").get_text()
    assert "The chapter 92_beta" in page(executed, "status").get_text()
    assert (executed.root / "_build" / "html" / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert not list((executed.root / "_build").glob(".*")), "no scratch folder is left"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Text\n\nSee {numref}`fig-nowhere`.", "chapters/92_beta.ipynb, cell 2, line 3: WARNING"),
        ("import sys\nprint('oops', file=sys.stderr)", "stderr"),
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


def test_the_scoreboard_lists_every_claim_of_the_registry(toy: Toy) -> None:
    toy.chapter("91_alpha", "x = 1")
    toy.contents("91_alpha", "scoreboard")
    (toy.done("91_alpha") / "claims").mkdir(parents=True)
    record = {
        "id": "toy-one",
        "kind": "ordering",
        "chapter": "91",
        "verdict": "contradicted",
        "gated": True,
        "effect": -0.5,
        "interval": [-0.75, None],
        "level": 0.975,
        "threshold": 0.1,
        "arrays": {},
        "seeds": 5,
        "corpus": "yahoo-like",
    }
    (toy.done("91_alpha") / "claims" / "toy-one.json").write_text(json_text(record))

    def entry(name: str, chapter: str) -> SimpleNamespace:
        return SimpleNamespace(
            id=name,
            chapter=chapter,
            statement=f"{name} holds",
            source="T1, Table 2",
            expected=lambda corpus: "supported",
        )

    registry = {e.id: e for e in (entry("toy-one", "91"), entry("toy-two", "91"), entry("toy-three", "92"))}
    library = SimpleNamespace(registry=lambda: registry, BUDGET="One false alarm in twenty.")
    text = scoreboard(Book(toy.root), Parameters("smoke"), library)
    assert "scale smoke, corpus yahoo-like, seed 0" in text
    assert "| [The chapter 91_alpha](91_alpha.ipynb) | 2 | 0 | 1 | 0 | 0 |" in text
    assert "One false alarm in twenty." in text
    assert "## [The chapter 91_alpha](91_alpha.ipynb)" in text
    assert "- **Contradicted** (expected: supported). toy-one holds *(T1, Table 2)*" in text
    assert "Measured: -0.5, 97.5% interval [-0.75, ∞] over 5 seeds; threshold 0.1. `toy-one`" in text
    assert "- **Not measured** (expected: supported). toy-two holds" in text
    assert "toy-three" not in text, "its chapter is not in the book"
