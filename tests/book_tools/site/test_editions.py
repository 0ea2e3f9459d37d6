"""The PDF has the numbers of the site; without TeX it is said what to install; the archive holds the whole site."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.labels import read_labels
from book_tools.errors import UsageError
from book_tools.site import editions
from book_tools.site.map import LEGEND, drawn


def test_without_tex_the_message_names_what_to_install(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="apt-get install --no-install-recommends texlive-xetex") as raised:
        editions.make_pdf(Book(toy.root))
    assert raised.value.exit_code == 2


def test_the_archive_is_the_site_and_the_same_twice(built: Toy, tmp_path: Path) -> None:
    site = built.root / "_build" / "html"
    made = built.root / "_build" / f"{editions.NAME}.zip"
    twice = []
    for _ in range(2):
        assert built.cli("offline").returncode == 0
        twice.append(made.read_bytes())
        made.unlink()
    assert twice[0] == twice[1]
    (tmp_path / "a.zip").write_bytes(twice[0])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path)
    unpacked = tmp_path / editions.NAME
    files = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert {path.relative_to(unpacked): path.read_bytes() for path in unpacked.rglob("*") if path.is_file()} == files


def test_an_archive_needs_a_site(toy: Toy) -> None:
    result = toy.cli("offline")
    assert result.returncode == 2
    assert "offline: no site to pack; build it with 'make book'" in result.stdout


FIGURE_IN_LATEX = (
    r"\\renewcommand\{\\thefigure\}\{([\d.]+)\}(?:(?!thefigure).)*?\\label\{\\detokenize\{[^}]*?(fig-[^}]*)\}\}"
)
EQUATION_IN_LATEX = r"\\tag\{([\d.]+)\}\s*\\label\{equation:[^}]*?:([\w-]+)\}"


def numbers_in_latex(text: str) -> dict[str, str]:
    """Return the numbers of figures and equations in LaTeX, by their labels."""
    found = re.findall(FIGURE_IN_LATEX, text, re.DOTALL) + re.findall(EQUATION_IN_LATEX, text)
    return {label: number for number, label in found}


def test_latex_has_the_numbers_of_the_site(built: Toy, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    converter = programs / "rsvg-convert"
    converter.write_text('#!/bin/sh\nfor last; do :; done\ncp "$last" "${2#--output=}"\n')
    converter.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    result = built.cli("pdf", "--latex", PATH=path, CFLTR_REPOSITORY="")
    assert result.returncode == 0, result.stdout
    text = (built.root / "_build" / f"{editions.NAME}.tex").read_text()

    labels = read_labels(built.root / "_build" / "html")
    of_site = {name: re.sub(r"[^\d.]", "", target.text).strip(".") for name, target in labels.equations.items()}
    for name, target in labels.numbered.items():
        number = target.text.split()[-1]
        if name.startswith("fig-"):
            of_site[name] = number
        else:
            # Of theorems and exercises LaTeX has kind and number in words.
            assert f"{target.text.split()[0]} {number}" in text, name
    assert numbers_in_latex(text) == of_site
    assert len(of_site) == 2
    assert "Download as a notebook" not in text
    assert "The end." in text, "the answer to the exercise is included, and what follows it"


def test_without_the_extension_latex_would_number_by_itself() -> None:
    counted = r"\begin{figure}\caption{A}\label{\detokenize{chapters/91_alpha:fig-toy}}\end{figure}"
    assert numbers_in_latex(counted) == {}
    assert numbers_in_latex(r"\renewcommand{\thefigure}{91.1}" + counted) == {"fig-toy": "91.1"}


def test_what_is_no_xhtml_is_taken_out() -> None:
    page = '<div><style scoped>\n.x {}\n</style><table class="dataframe" border="1"><tr><td>1</td></tr></table></div>'
    assert editions.repaired(page) == '<div><table class="dataframe"><tr><td>1</td></tr></table></div>'


def test_the_map_of_an_epub_has_words_and_no_lines() -> None:
    """Its lines need the style of the site; links, questions and roots stay."""
    text = drawn(Book(REPOSITORY))
    page = editions.repaired(text)
    assert "<svg" not in page
    assert LEGEND not in page
    words = re.sub(r"<svg.*?</svg>", "", text).replace(f"<p>{LEGEND}</p>\n", "")
    assert "\n".join(page.split()) == "\n".join(words.split())
    assert page.count("Builds on ") == len(Book(REPOSITORY).chapters())


def test_an_epub_declares_formulas_and_loads_nothing_that_is_not_there() -> None:
    sheet = '<link rel="stylesheet" type="text/css" href="../_static/{}.css" />'
    item = '<item id="a" href="chapters/a.xhtml" media-type="application/xhtml+xml" />'
    page = f'{sheet.format("here")}{sheet.format("gone")}<math ></math><a href="b.html#c">d</a>'
    files = {
        "chapters/a.xhtml": page.encode(),
        "_static/here.css": b"",
        "a.svg": b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x"\n "y">\n<svg><path id="p"/><path d="M0"/></svg>',
        "_static/book.css": b"a:is(b, c) {}",
        "content.opf": f"<dc:date>2026-11-22T23:59:59Z</dc:date>{item}".encode(),
    }
    out = {name: content.decode() for name, content in editions.mended(files).items()}
    assert "gone" not in out["chapters/a.xhtml"]
    assert "here" in out["chapters/a.xhtml"]
    assert 'href="b.xhtml#c"' in out["chapters/a.xhtml"]
    assert "DOCTYPE" not in out["a.svg"]
    assert out["a.svg"].endswith('<svg><path d="" id="p"/><path d="M0"/></svg>')
    assert "_static/book.css" not in out
    assert 'properties="mathml"' in out["content.opf"]
    assert "23:59:59" not in out["content.opf"]


def test_styles_and_scripts_of_the_site_are_left_out_of_an_epub() -> None:
    ours = {f"_static/{path.name}" for path in (REPOSITORY / "_static").iterdir() if path.suffix in (".css", ".js")}
    assert set(editions.SITE_ONLY) == ours


def test_without_its_package_the_epub_says_what_installs_it(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editions, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="'make epub' installs it"):
        editions.make_epub(Book(toy.root))


def test_the_epub_has_the_numbers_of_the_site_and_is_the_same_twice(built: Toy) -> None:
    pytest.importorskip("latex2mathml")
    made = built.root / "_build" / f"{editions.NAME}.epub"
    twice = []
    for _ in range(2):
        result = built.cli("epub", CFLTR_REPOSITORY="")
        assert result.returncode == 0, result.stdout
        twice.append(made.read_bytes())
    assert twice[0] == twice[1]
    with zipfile.ZipFile(made) as archive:
        assert archive.infolist()[0].filename == "mimetype"
        page = archive.read("chapters/91_alpha.xhtml").decode()
    for words in ("Theorem 91.1", "Fig. 91.1", "(91.1)", "Exercise 91.1", "<math ", "The end."):
        assert words in page
    assert "Download as a notebook" not in page
