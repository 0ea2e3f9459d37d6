"""The pages about the package describe every public name, and code on other pages leads to them."""

from __future__ import annotations

import doctest
import inspect
from types import SimpleNamespace

import pytest
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring
from toy import REPOSITORY

import cfltr_core as cf
from book_tools.book import GENERATED, Book
from book_tools.site import api, sphinx_api
from book_tools.site.api_links import linked


def prepared(*lines: str, obj: object = cf.ndcg) -> list[str]:
    text = list(lines)
    sphinx_api.prepare_docstring(None, "function", "name", obj, None, text)  # type: ignore[arg-type]
    return text


def test_every_public_name_is_described_once_and_listed() -> None:
    pages = api.api_pages()
    everything = "\n".join(text for name, text in pages.items() if name != api.INDEX)
    lines = everything.splitlines()
    for name in cf.__all__:
        described = [line for line in lines if line.endswith(f":: cfltr_core.{name}") and line.startswith(".. ")]
        assert len(described) == 1, name
        assert f":py:obj:`~cfltr_core.{name}`" in pages[api.INDEX], name


def test_the_pages_are_known_to_the_table_of_contents() -> None:
    assert set(api.NAMES) == set(api.api_pages())
    assert set(api.NAMES) <= set(GENERATED)
    assert set(api.NAMES) <= set(Book(REPOSITORY).pages())


def test_what_a_learner_returns_is_described_too() -> None:
    found = {entry.name for entry in api.entries() if not entry.public}
    assert {"LinearFit", "CCPFit", "DeepFit", "Estimate", "ClickSampler"} <= found
    assert len({entry.path for entry in api.entries()}) == len(api.entries())


def test_every_public_name_has_a_first_sentence() -> None:
    assert [entry.name for entry in api.public_entries() if len(api.first_sentence(entry)) < 20] == []


def test_every_public_name_has_an_example_except_those_that_plot_or_are_values() -> None:
    without = [
        entry.name
        for entry in api.public_entries()
        if callable(entry.value) and ">>>" not in (inspect.getdoc(entry.value) or "")
    ]
    assert without == []


def test_the_recipes_run() -> None:
    failed, tried = doctest.testfile(str(api.RECIPES), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
    assert tried >= 8
    text = api.RECIPES.read_text(encoding="utf-8").lower()
    for words in ("own log", "save a model", "conda"):
        assert words in text


def test_formulas_keep_their_lines_and_symbols_are_no_mark_up() -> None:
    assert prepared("With |F| rankers", "", "    L = |a_| +", "        b", "", "and c_ of *all*.") == [
        "With \\|F| rankers",
        "",
        "::",
        "",
        "    L = |a_| +",
        "        b",
        "",
        "and c\\_ of *all*.",
    ]


def test_what_is_marked_up_already_stays() -> None:
    lines = ["``a|b`` and", "", "Examples", "--------", ">>> a_", "|x|"]
    assert prepared(*lines) == lines


def test_a_table_keeps_its_columns() -> None:
    rule = "=====  ====="
    lines = prepared(rule, "a      b", rule, "|x|    1", "       2", rule, "", "then |y|")
    assert [len(line) for line in lines[:6]] == [12, 8, 12, 8, 8, 12]
    assert "|" not in "".join(lines[:6])
    assert "::" not in lines
    assert lines[-1] == "then \\|y|"


def test_references_are_meant_where_they_were_written() -> None:
    assert prepared("See :func:`ranks`.") == ["See :func:`ranks <cfltr_core.ranking.metrics.ranks>`."]
    assert prepared("See :func:`nothing_there`.") == ["See :func:`nothing_there`."]
    inside = prepared("See :meth:`load`.", obj=cf.LinearRanker.save)
    assert inside == ["See :meth:`load <cfltr_core.ranking.linear.LinearRanker.load>`."]


@pytest.mark.parametrize(
    ("kind", "target", "survives"),
    [
        ("func", "cfltr_core.ranking.metrics.nothing_there", False),
        ("func", "nothing_there", False),
        ("class", "ArrayLike", True),
        ("exc", "ValueError", True),
        ("func", "cfltr_core.learning.proprank.training_problem", True),
    ],
)
def test_a_reference_to_something_without_a_page_is_code_and_a_wrong_one_stays_wrong(
    kind: str, target: str, survives: bool
) -> None:
    env = SimpleNamespace(get_domain=lambda name: SimpleNamespace(objects={}))
    node = {"refdomain": "py", "reftype": kind, "reftarget": target, "py:module": "cfltr_core", "refdoc": "x"}
    content = object()
    found = sphinx_api.resolve(None, env, node, content)  # type: ignore[arg-type]
    assert (found is content) == survives


def test_names_in_code_lead_to_their_description() -> None:
    places = {"ndcg": "../api/ranking.html#cfltr_core.ndcg"}
    named = '<span class="n">cf</span><span class="o">.</span><span class="n">{}</span>'
    page = linked(named.format("ndcg") + named.format("other"), places)
    assert page.count("<a ") == 1
    assert f'<a class="api-name" href="{places["ndcg"]}">ndcg</a>' in page
    quoted = '<code class="docutils literal notranslate"><span class="pre">cf.ndcg</span></code>'
    assert linked(quoted, places).count("<a ") == 1
    in_a_link = f'<a href="x">{quoted}</a>'
    assert linked(in_a_link, places) == in_a_link


def test_napoleon_finds_the_sections_of_a_prepared_docstring() -> None:
    lines = prepared(*(inspect.getdoc(cf.fit_proprank) or "").splitlines(), obj=cf.fit_proprank)
    text = str(NumpyDocstring("\n".join(lines), Config(napoleon_use_param=False, napoleon_use_rtype=False)))
    assert ":Parameters:" in text
    assert ":raises ValueError:" in text
