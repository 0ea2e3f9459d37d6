"""The validator finds what is no HTML, on the page and the line that has it; what is allowed is not reported."""

from pathlib import Path

import pytest
from toy import Toy

from book_tools.checks import markup_check
from book_tools.checks.judges import find_validator
from book_tools.checks.markup_check import markup_problems
from book_tools.errors import UsageError

PAGE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>T</title></head>\n<body>\n{}\n</body></html>'
)
CLEAN = "<main><article><section><h1>T</h1><p>x<br />y</p></section></article></main>"


@pytest.fixture
def _checker() -> None:
    """Skip where the validator is not installed; where a site is published it has to be."""
    try:
        find_validator()
    except UsageError as error:
        pytest.skip(str(error))


def site(folder: Path, **pages: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        (folder / f"{name}.html").write_text(PAGE.format(content))
    return sorted(folder.glob("*.html"))


@pytest.mark.usefixtures("_checker")
def test_faults_are_found_where_they_are(tmp_path: Path) -> None:
    faults = {
        "ids": '<p id="a">x</p><p id="a">y</p>',
        "nested": "<p>x <ul><li>y</li></ul></p>",
        "unclosed": "<div><p>x</p>",
        "summary": "<details><summary><div>x</div></summary>y</details>",
        "attribute": '<input type="radio" autocomplete="off">',
    }
    found = list(markup_problems(tmp_path, site(tmp_path, clean=CLEAN, **faults)))
    pages = {problem.partition(".html, line ")[0] for problem in found}
    assert pages == set(faults), "of a clean page nothing is said, nor of what is allowed"
    assert any(problem.startswith("ids.html, line 4: Duplicate ID “a”. (at ") for problem in found)


@pytest.mark.usefixtures("_checker")
def test_every_allowance_is_of_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clean page has each of them, so that one that no release says any more is noticed."""
    pages = site(tmp_path, clean=CLEAN)
    allowed = list(markup_check.ALLOWED)
    monkeypatch.setattr(markup_check, "ALLOWED", {})
    problems = list(markup_problems(tmp_path, pages))
    assert [words for words in allowed if not any(words in problem for problem in problems)] == []


@pytest.mark.usefixtures("_checker")
def test_the_command_validates_a_built_site(toy: Toy) -> None:
    site(toy.root / "_build" / "html", index=CLEAN, second='<p id="a">x</p><p id="a">y</p>')
    bad = toy.cli("markup", code=1)
    assert "second.html, line 4: Duplicate ID" in bad
    assert "index.html" not in bad


def test_without_a_site_there_is_nothing_to_look_at_or_to_pack(toy: Toy) -> None:
    for command, purpose in (("markup", "look at"), ("browser", "look at"), ("offline", "pack")):
        assert f"no site to {purpose}; build it with 'make book'" in toy.cli(command, code=2)
