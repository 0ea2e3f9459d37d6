"""Alternative text, caption and data reach the page through the notebook's metadata."""

from pathlib import Path
from typing import Any

import pytest
from claim_files import entry, put
from nbformat import NotebookNode, from_dict

from book_tools.colab.marks import rewrite_claims
from book_tools.errors import BookError
from book_tools.execution.artefacts import Figure
from book_tools.notebooks import drop_numeric_warnings
from book_tools.site.dress import dress, label_folds, quote_records
from cfltr_book.reporting import claim_registry, claims, evidence

ALT = "Line chart: the error falls from 3 to 1."


def figure(name: str) -> Figure:
    return Figure(name, "Errors *fall*.", ALT, Path(f"{name}.svg"), Path(f"{name}.csv"))


def image(**mark: str) -> dict[str, Any]:
    data = {"image/svg+xml": "<svg/>", "text/html": "<b>", "text/plain": ALT}
    return {"output_type": "display_data", "data": data, "metadata": {"cfltr": mark} if mark else {}}


def caption(name: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/markdown": "*x*"}, "metadata": {"cfltr": {"caption": name}}}


def notebook(*cells: list[dict[str, Any]]) -> NotebookNode:
    """A title, and a code cell for each list of outputs."""
    code = {"cell_type": "code", "metadata": {}, "source": "\nplot(it)\nmore"}
    title = {"cell_type": "markdown", "metadata": {}, "source": "# T"}
    every = [title, *({**code, "outputs": outputs} for outputs in cells)]
    return from_dict({"cells": every, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(
    ("cells", "figures", "message"),
    [
        ([[image()]], [], r"91.ipynb, cell 1 \('plot\(it\)'\): an image without alternative text"),
        ([[image(figure="fig-a"), image()]], ["fig-a"], "an image without alternative text"),
        ([[image(figure="fig-a"), image(figure="fig-b")]], ["fig-a", "fig-b"], "a cell shows one figure"),
        ([[image(figure="fig-a")], [image(figure="fig-a")]], ["fig-a"], "cell 2 .* a second time"),
        ([[]], ["fig-a"], "fig-a was saved but is not shown"),
    ],
)
def test_a_figure_that_does_not_fit_its_record(
    cells: list[list[dict[str, Any]]], figures: list[str], message: str
) -> None:
    with pytest.raises(BookError, match=message):
        dress(notebook(*cells), "91.ipynb", [figure(name) for name in figures])


def test_a_claim_is_shown_as_the_registry_has_it_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(words: str) -> claims.ClaimResult:
        found = put(monkeypatch, entry("toy-one", margin=1.0, value=1.0, statement=words))
        return claims.verdict_of(found["toy-one"], {"values": [1.0, 1.001]})

    def shown(thing: Any) -> dict[str, Any]:
        data, metadata = thing._repr_mimebundle_()
        return {"output_type": "execute_result", "data": data, "metadata": metadata, "execution_count": 1}

    result = publish("Old words.")
    one, table = shown(result), shown(evidence.Evidence([result], corpus="digits", scale="ci"))
    page = notebook([table], [one], [table])
    publish("New words.")
    measured = [claims.Measurement(result, "ci", "digits", {})]
    rewrite_claims(page, measured)
    # It leads to the scoreboard; the first place where it is shown bears the anchor, and no other.
    link = '<a href="scoreboard.html#claim-toy-one">{}</a>'
    html = table["data"]["text/html"].replace("Old", "New").replace("(toy-one;", f"({link.format('toy-one')};")
    text = one["data"]["text/markdown"].replace("Old", "New").replace("`toy-one`", link.format("`toy-one`"))
    first, second, third = (next(iter(cell.outputs[0].data.values())) for cell in page.cells[1:])
    assert first == html.replace("<tbody><tr>", '<tbody><tr id="claim-toy-one">')
    assert (second, third) == (text, html)
    # A claim that the registry lost stays as it was; the check of the run names it.
    monkeypatch.setattr(claim_registry, "registry", dict)
    rewrite_claims(page, measured)
    assert next(iter(page.cells[2].outputs[0].data.values())) == text


def test_numeric_warnings_and_nothing_else_leave_the_page() -> None:
    def stderr(text: str) -> dict[str, Any]:
        return {"output_type": "stream", "name": "stderr", "text": text}

    warned = "RuntimeWarning: divide by zero\n  1 / x\n"
    out = {"output_type": "stream", "name": "stdout", "text": warned}
    book = notebook([stderr(warned * 2), out], [stderr(f"before\n{warned}UserWarning: look\n  here()\n")], [])
    assert drop_numeric_warnings(book) == [f"cell {n}: RuntimeWarning: divide by zero" for n in (1, 1, 2)]
    assert book.cells[1].outputs == [out]
    assert [output.text for output in book.cells[2].outputs] == ["before\nUserWarning: look\n  here()\n"]


@pytest.mark.parametrize(
    ("source", "tags", "label", "shown"),
    [
        ("# @title Where it comes from\n\nx = 1\ny = 2", ["hide-input"], "Where it comes from", "x = 1\ny = 2"),
        ("# @title  Proof: $a < b$ \nx = 1", ["other", "hide-cell"], "Proof: $a < b$", "x = 1"),
        # Without a title the builder's own words stand; without a fold there is nothing to label.
        ("x = 1", ["hide-input"], None, "x = 1"),
        ("# a comment\n# @title Too late", ["hide-input"], None, "# a comment\n# @title Too late"),
        ("# @title Nothing folds it\nx = 1", [], None, "# @title Nothing folds it\nx = 1"),
    ],
)
def test_the_first_line_of_a_folded_cell_becomes_the_label(
    source: str, tags: list[str], label: str | None, shown: str
) -> None:
    book = notebook([])
    cell = book.cells[1]
    cell["source"], cell["metadata"] = source, from_dict({"tags": tags, "mystnb": {"image": {"alt": ALT}}})
    label_folds(book)
    prompts = {} if label is None else {"code_prompt_show": label}
    assert cell.source == shown
    assert cell.metadata.mystnb == {"image": {"alt": ALT}, **prompts}


def test_what_is_recorded_stands_in_its_sentence_to_the_letter() -> None:
    prefix, texts = "application/papermill.record/", ["0.50", "1,234", "it isn't", "—"]
    about = {"scrapbook": {"name": "a-name", "mime_prefix": prefix}}
    recorded = {"output_type": "display_data", "metadata": about}
    book = notebook([{**recorded, "data": {f"{prefix}text/plain": text, "text/plain": "x"}} for text in texts])
    quote_records(book)
    assert [one.data for one in book.cells[1].outputs] == [{f"{prefix}text/plain": repr(text)} for text in texts]
