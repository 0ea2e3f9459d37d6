"""The pages about the package describe every public name, and code on other pages leads to them."""

import doctest
import re
from types import SimpleNamespace

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from toy import REPOSITORY

import cfltr_core as cf
from book_tools.book import GENERATED, PACKAGES, Book
from book_tools.site import api, sphinx_api


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
    found = [entry.name for entry in api.entries() if not entry.public]
    assert {"LinearFit", "Estimate", "ClickSampler"} <= set(found), "what a learner returns is described too"
    assert len({entry.path for entry in api.entries()}) == len(api.entries())


def test_the_recipes_run() -> None:
    failed, tried = doctest.testfile(str(api.RECIPES), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
    assert tried >= 8


RULE = "=====  ====="


@pytest.mark.parametrize(
    ("written", "prepared"),
    [
        # Formulas keep their lines, symbols are no mark-up, and what is marked up already stays.
        (
            "With |F| rankers\n\n    L = |a_| +\n        b\n",
            "With \\|F| rankers\n\n.. code-block:: text\n\n    L = |a_| +\n        b\n",
        ),
        ("and c_ of *all*.", "and c\\_ of *all*."),
        ("``a|b`` and\n\nExamples\n--------\n>>> a_\n|x|", None),
    ],
)
def test_a_docstring_is_prepared(written: str, prepared: str | None) -> None:
    lines = written.splitlines()
    sphinx_api.prepare_docstring(None, "function", "name", cf.ndcg, None, lines)  # type: ignore[arg-type]
    assert "\n".join(lines).strip() == (prepared or written).strip()


def test_a_table_keeps_its_columns() -> None:
    lines = [RULE, "a      b", RULE, "|x|    1", "       2", RULE, "", "then |y|"]
    sphinx_api.prepare_docstring(None, "function", "name", cf.ndcg, None, lines)  # type: ignore[arg-type]
    assert [len(line) for line in lines[:6]] == [12, 8, 12, 8, 8, 12]
    assert "|" not in "".join(lines[:6])
    assert lines[-1] == "then \\|y|"


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("ndcg", "api/ranking"),
        ("cfltr_core.ranking.metrics.ndcg", "api/ranking"),
        ("LinearFit.save", "api/learning"),
        ("cfltr_core.learning.proprank.training_problem", None),
    ],
)
def test_a_reference_leads_to_what_is_described_or_is_code(target: str, page: str | None) -> None:
    places = {"cfltr_core.ndcg": "api/ranking", "cfltr_core.learning.linear.LinearFit.save": "api/learning"}
    described = {name: SimpleNamespace(docname=place, node_id=name) for name, place in places.items()}
    env = SimpleNamespace(get_domain=lambda name: SimpleNamespace(objects=described))
    app = SimpleNamespace(builder=SimpleNamespace(get_relative_uri=lambda here, there: there))
    node = {"refdomain": "py", "reftarget": target, "refdoc": "x"}
    content = nodes.literal("", target)
    found = sphinx_api.resolve(app, env, node, content)  # type: ignore[arg-type]
    assert (found is content) if page is None else found["refuri"].startswith(page)  # type: ignore[index]


def test_every_reference_in_a_docstring_names_something_of_the_packages() -> None:
    sources = [path for name in PACKAGES for path in (REPOSITORY / name).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    defined = {path.stem for path in sources} | {path.parent.name for path in sources}
    defined |= {name for text in texts for name in re.findall(r"^\s*(?:def |class )?(\w+)\s*[(:=]", text, re.MULTILINE)}
    named = {name for text in texts for name in re.findall(r":(?:func|class|meth|attr|data|mod):`~?([\w.]+)`", text)}
    assert sorted(name for name in named if name.rpartition(".")[2] not in defined) == []


def test_names_in_code_lead_to_their_description() -> None:
    places = {"ndcg": "../api/ranking.html#cfltr_core.ndcg"}
    named = '<span class="n">cf</span><span class="o">.</span><span class="n">{}</span>'
    page = api.linked(named.format("ndcg") + named.format("other"), places)
    assert page.count("<a ") == 1
    assert f'<a class="api-name" href="{places["ndcg"]}">ndcg</a>' in page
    quoted = '<code class="docutils literal notranslate"><span class="pre">cf.ndcg</span></code>'
    assert api.linked(quoted, places).count("<a ") == 1
    in_a_link = f'<a href="x">{quoted}</a>'
    assert api.linked(in_a_link, places) == in_a_link
