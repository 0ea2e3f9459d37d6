"""Formulas of docstrings are found as a reader would find them, and nothing of a docstring is lost or reordered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from docutils.core import publish_doctree

from book_tools.site import api, sphinx_formulas
from book_tools.site.formulas import LOWERED, PLAIN, RAISED, Piece, parts_of, pieces_of, text_of


def docstrings() -> Iterator[tuple[str, str]]:
    for entry in api.entries():
        if not callable(entry.value):
            yield entry.path, api.attribute_doc(entry)
            continue
        yield entry.path, inspect.getdoc(entry.value) or ""
        for name, part in vars(entry.value).items() if inspect.isclass(entry.value) else ():
            function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
            if not name.startswith("_") and (text := inspect.getdoc(function)):
                yield f"{entry.path}.{name}", text


def formulas_in(text: str) -> list[str]:
    """The formulas, each with [lowered] and {raised} parts."""

    def shown(piece: Piece) -> str:
        inner = piece.text + "".join(map(shown, piece.parts))
        return f"[{inner}]" if piece.kind == LOWERED else f"{{{inner}}}" if piece.kind == RAISED else inner

    return ["".join(map(shown, part)) for part in parts_of(text) if not isinstance(part, str)]


def bare(text: str) -> str:
    """What must be the same before and after: all but the signs that only raise and lower, and their brackets."""
    return re.sub(r"[_^{}()]", "", text)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("(1/S) Σ clicks · λ / propensity over S sessions", ["(1/S) Σ clicks · λ / propensity", "S"]),
        ("the risk Σ_d w_d λ(rank(d)), of d", ["Σ[d] w[d] λ(rank(d))", "d"]),
        ("λ(r) = −1 / log₂(1 + r), and 0 beyond rank", ["λ(r) = −1 / log₂(1 + r)"]),
        ("P(click at rank r) = θ_r · (ε₋(r) + relevance).", ["P(click at rank r) = θ[r] · (ε₋(r) + relevance)"]),
        ("a_d² of ĉ_k^{kj}, x_{d_t} and ϱ^(r−1)", ["a[d]²", "ĉ[k]{kj}", "x[d[t]]", "ϱ{r−1}"]),
        ("max(0, 1 − ⟨w, x_d − x_y⟩)", ["max(0, 1 − ⟨w, x[d] − x[y]⟩)"]),
        ("the gap, R(w*) ≤ R(w) + ½‖w‖²; so", ["R(w*) ≤ R(w) + ½‖w‖²"]),
        ("a λ and the n_docs documents", ["λ"]),
        ("A and B, or A log", ["A", "B"]),
        ("1/propensity of each term", ["1/propensity"]),
        # A sentence has none.
        ("A fit that is, e.g., two_layer or fit_deep, at p-value and/or J20: an A/B test of queries/sessions.", []),
        ("Source: Järvelin & Kekäläinen 2002, Eq. 3–4, §5.1; Theorem 14.1 (Bonferroni).", []),
        ("Whole numbers >= 0, shape (n_docs,), in [0, 1] of a user's page; give_up = 0", []),
        ("", []),
    ],
)
def test_what_is_a_formula(text: str, formulas: list[str]) -> None:
    assert formulas_in(text) == formulas


def test_variables_are_letters_and_words_stay_upright() -> None:
    kinds = [(piece.kind, piece.text) for piece in pieces_of("rank · λ/n_docs")]
    assert [piece.text for piece in pieces_of("2αT + f₁") if piece.kind == "variable"] == ["α", "T", "f"]
    assert kinds == [(PLAIN, "rank · "), ("variable", "λ"), (PLAIN, "/"), (PLAIN, "n_docs")]


def test_no_docstring_is_mangled() -> None:
    found = 0
    for name, text in docstrings():
        parts = parts_of(text)
        assert bare("".join(map(text_of, parts))) == bare(text), name
        found += sum(not isinstance(part, str) for part in parts)
        for part in parts:
            # What is outside of all formulas stands there letter by letter.
            assert not isinstance(part, str) or part in text, name
    assert found > 500, "the docstrings of the package are full of formulas"


def test_every_formula_that_stands_apart_is_found_whole() -> None:
    """Between formulas there may be words and remarks, and nothing that only a formula has."""
    for name, text in docstrings():
        head = re.split(r"\n[A-Z][a-z]+\n-{3,}", text)[0]
        for line in re.findall(r"(?m)^ {4}(.*)$", head):
            outside = "".join(part for part in parts_of(line) if isinstance(part, str))
            assert not re.search(r"[Σ∇√‖⟨⟩θλ=·]", outside), (name, outside)


def test_no_sign_of_a_formula_is_left_in_the_text() -> None:
    """Sums, norms and roots stand in formulas only."""
    for name, text in docstrings():
        text = re.sub(r"(?m)^ *(>>>|\.\.\. ).*(\n.+)*|``[^`]*``", "", text)
        outside = " ".join(part for part in parts_of(text) if isinstance(part, str))
        assert not re.search(r"[Σ∇√‖⟨⟩∂]|[θλ]_", outside), (name, re.findall(r".*[Σ∇√‖⟨⟩∂].*|.*[θλ]_.*", outside))


SOURCE = """Sum Σ_d w_d, with ``x_y`` and *R_d*.

::

    V = Σ_q S_q²      (``sessions`` an array)
    W = 1             else

>>> Σ_d
"""


class _App:
    class env:
        docname = "api/ranking"


def test_on_a_page_formulas_are_set_and_code_is_not() -> None:
    tree = publish_doctree(SOURCE, settings_overrides={"report_level": 5})
    sphinx_formulas.set_formulas(_App, tree)  # type: ignore[arg-type]
    (first, *_) = tree.children
    assert [node.astext() for node in first.findall(nodes.inline)] == ["Σd wd"]
    assert [node.astext() for node in first.findall(nodes.subscript)] == ["d", "d"]
    assert [node.astext() for node in first if isinstance(node, nodes.literal | nodes.emphasis)] == ["x_y", "R_d"]
    (apart,) = (node for node in tree.children if "formulas" in node.get("classes", ()))
    rows = [[cell.astext() for cell in row] for row in apart]
    assert rows == [["V = Σq Sq²", "(sessions an array)"], ["W = 1", "else"]]
    assert tree.children[-1].astext() == ">>> Σ_d", "examples stay as they are"


def test_other_pages_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_App.env, "docname", "chapters/01_a")
    tree = publish_doctree(SOURCE, settings_overrides={"report_level": 5})
    before = str(tree)
    sphinx_formulas.set_formulas(_App, tree)  # type: ignore[arg-type]
    assert str(tree) == before
