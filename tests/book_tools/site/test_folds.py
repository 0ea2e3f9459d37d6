"""Folded cells, solutions and drop-downs are one kind of element, which opens without a script."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[3]
PAGE = """# A page

:::{exercise}
:label: ex-a

How much?

:::

:::{solution} ex-a
:class: dropdown

Six.

:::

:::{dropdown} What you need
Nothing.

:::
"""
CONF = """
extensions = ["myst_nb", "sphinx_exercise", "sphinx_design", "book_tools.site.sphinx_pages"]
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "off"
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> BeautifulSoup:
    folder = tmp_path_factory.mktemp("folds")
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": PAGE},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {"tags": ["hide-input"], "mystnb": {"code_prompt_show": "S & T", "code_prompt_hide": "S & T"}},
            "source": "1",
            "outputs": [],
            "execution_count": None,
        },
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / "index.ipynb").write_text(json.dumps(notebook))
    (folder / "conf.py").write_text(CONF)
    app = Sphinx(str(folder), str(folder), str(folder / "out"), str(folder / "trees"), "html", status=None)
    app.build()
    assert app.statuscode == 0
    return BeautifulSoup((folder / "out" / "index.html").read_text(), "html.parser")


def test_every_fold_is_the_same_element_under_its_label(page: BeautifulSoup) -> None:
    folds = page.select("details")
    labels = [" ".join(fold.find("summary", recursive=False).get_text().split()) for fold in folds]
    assert labels == ["Solution to Exercise 1", "What you need", "S & T"]
    assert not any(fold.has_attr("open") for fold in folds)
    # A summary holds phrases only, none of them a link, and what is folded stands in the fold.
    assert not page.select("summary p, summary div, summary a")
    assert "Six." in folds[0].get_text()
    assert "Nothing." in folds[1].get_text()
    assert not page.select(".toggle, .admonition.dropdown")


def test_nothing_needs_the_script_of_another_fold() -> None:
    assert not re.search(r"^ *- sphinx_togglebutton", (ROOT / "_config.yml").read_text(), re.MULTILINE)
