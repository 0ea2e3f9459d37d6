"""Theorems, equations, figures and exercises have the number of their chapter, whatever its place in the book."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from toy import FIGURE, RECORD, Toy

from book_tools.colab.labels import read_labels
from book_tools.messages import PARSER
from book_tools.site.sphinx_pages import chapter_of

ALPHA = """Text

:::{{prf:definition}}
:label: def-{name}

D.

:::

:::{{prf:theorem}}
:label: thm-{name}

T.

$$
x
$$ (eq-{name})

$$
y
$$ (eq-{name}-two)

:::

:::{{exercise}}
:label: ex-{name}

E.

:::

:::{{solution}} ex-{name}
:class: dropdown

S.

:::"""
REFERENCES = """Text

## A heading

{prf:ref}`def-five`, {prf:ref}`thm-five`, {eq}`eq-five`, {eq}`eq-five-two`, {numref}`fig-toy`.

{prf:ref}`thm-late`, {eq}`eq-late-two`."""


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("chapters/11_policy_aware", 11),
        ("05_svm", 5),
        ("chapters/notation", None),
        ("index", None),
        ("11_parts/overview", None),
        ("chapters/1st_steps", None),
    ],
)
def test_the_number_of_a_page_is_that_of_its_file(page: str, number: int | None) -> None:
    assert chapter_of(page) == number


def test_everything_is_numbered_by_chapter(toy: Toy) -> None:
    toy.chapter("05_five", FIGURE, RECORD, ALPHA.format(name="five"))
    toy.chapter("91_late", ALPHA.format(name="late"), REFERENCES)
    (toy.root / "chapters" / "back.md").write_text("# Back matter\n\n" + ALPHA.format(name="back").replace("Text", ""))
    toy.contents("91_late", "back", "05_five")
    result = toy.cli("book", "--scale", "smoke", CFLTR_REPOSITORY="")
    assert result.returncode == 0, result.stdout

    labels = read_labels(toy.root / "_build" / "html")
    assert {name: target.text for name, target in labels.numbered.items()} == {
        "def-five": "Definition 5.1",
        "thm-five": "Theorem 5.1",
        "ex-five": "Exercise 5.1",
        "fig-toy": "Fig. 5.1",
        "def-late": "Definition 91.1",
        "thm-late": "Theorem 91.1",
        "ex-late": "Exercise 91.1",
        "def-back": "Definition 1",
        "thm-back": "Theorem 1",
        "ex-back": "Exercise 1",
    }
    assert {name: target.text for name, target in labels.equations.items()} == {
        "eq-five": "(5.1)",
        "eq-five-two": "(5.2)",
        "eq-late": "(91.1)",
        "eq-late-two": "(91.2)",
        "eq-back": "(1)",
        "eq-back-two": "(2)",
    }
    article = BeautifulSoup((toy.root / "_build/html/chapters/91_late.html").read_text(), PARSER).select_one("article")
    assert article is not None
    text = " ".join(article.get_text().split())
    assert "Definition 5.1, Theorem 5.1, (5.1), (5.2), Fig. 5.1. Theorem 91.1, (91.2)." in text
    assert "Solution to Exercise 91.1" in text
    headings = [heading.get_text().rstrip("#") for heading in article.select("h1, h2")]
    assert headings == ["The chapter 91_late", "A heading"], "titles keep the number that they are written with"
    copy = (toy.root / "_build/html/colab/91_late.ipynb").read_text()
    assert "Definition 5.1, Theorem 5.1, (5.1), (5.2), Fig. 5.1." in copy
    assert "\\\\tag{91.2}" in copy
