"""The PDF has the numbers of the site; without TeX it is said what to install; the archive holds the whole site."""

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from toy import Toy

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.site import edition_links, editions


def test_without_tex_the_message_names_what_to_install(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="apt-get install --no-install-recommends texlive-xetex") as raised:
        editions.make_pdf(Book(toy.root))
    assert raised.value.exit_code == 2


def test_the_archive_is_the_site_and_the_same_twice(rebuilt: Toy, tmp_path: Path) -> None:
    site = rebuilt.root / "_build" / "html"
    made = rebuilt.root / "_build" / f"{editions.NAME}.zip"
    twice = []
    for _ in range(2):
        rebuilt.cli("offline")
        twice.append(made.read_bytes())
        made.unlink()
    assert twice[0] == twice[1]
    (tmp_path / "a.zip").write_bytes(twice[0])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path)
    unpacked = tmp_path / editions.NAME
    files = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert {path.relative_to(unpacked): path.read_bytes() for path in unpacked.rglob("*") if path.is_file()} == files


def test_the_front_page_leads_to_what_was_made_from_the_same_run(rebuilt: Toy) -> None:
    """After the next build, of the same run; not to one of another run, and not in the archive, which holds none."""
    book = Book(rebuilt.root)
    site, made = book.html, book.build / f"{editions.NAME}.zip"

    def others() -> dict[str, bytes]:
        changed = {"index.html", "searchindex.js", made.name}
        return {p.as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file() and p.name not in changed}

    assert "editions/" not in (site / "index.html").read_text()
    before = others()
    rebuilt.cli("offline")
    first = made.read_bytes()
    rebuilt.cli("site", CFLTR_REPOSITORY="")
    assert others() == before, "two builds of one run"
    page = (site / "index.html").read_text()
    assert set(re.findall(r'href="(editions/[^"]*)"', page)) == {f"editions/{made.name}"}
    assert [(path.name, path.read_bytes()) for path in site.glob("editions/*")] == [(made.name, first)]
    words = f"this site as one archive ({len(first) / 1e6:.1f} MB). The repository makes a PDF by make pdf."
    assert words in " ".join(re.sub("<[^>]*>", "", page).split())
    rebuilt.cli("offline")
    with zipfile.ZipFile(made) as archive:
        assert not [name for name in archive.namelist() if "/editions/" in name]
        front = archive.read(f"{editions.NAME}/index.html").decode()
    assert [part in front for part in ("editions", "A book.", "</footer>")] == [False, True, True]
    # Another run: its numbers may be others.
    assert edition_links.current_editions(book) == [made]
    book.manifest.write_text(book.manifest.read_text() + "\n")
    assert edition_links.current_editions(book) == []


# The numbers of figures, equations, theorems and exercises.
NUMBERED = re.compile(
    r"\\renewcommand\{\\thefigure\}\{(?P<figure>[\d.]+)\}"
    r"|\\tag\{(?P<equation>[\d.]+)\}"
    r"|\\label\{[^{}]*:[^{}:]+\}\s*\\begin\{sphinxadmonition\}\{note\}\{?\s*(?P<name>[A-Z]\w+ [\d.]*\d)"
)


def test_latex_has_the_numbers_of_the_site_in_its_order(rebuilt: Toy, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    converter = programs / "rsvg-convert"
    converter.write_text('#!/bin/sh\nfor last; do :; done\ncp "$last" "${2#--output=}"\n')
    converter.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    rebuilt.cli("pdf", "--latex", PATH=path, CFLTR_REPOSITORY="")
    text = (rebuilt.root / "_build" / f"{editions.NAME}.tex").read_text()

    found = [
        match["name"] or (f"Fig. {match['figure']}" if match["figure"] else f"({match['equation']})")
        for match in NUMBERED.finditer(text)
    ]
    assert found == ["Theorem 1", "(1)", "Fig. 91.1", "Theorem 91.1", "(91.1)", "Exercise 91.1"]
    # Launch lines, the code of the figure and a cell that is folded whole are left out; what is open, and the answer
    # to the exercise, are printed.
    parts = ("Notebook to run", r"fig\PYGZhy{}toy", r"\PYG{n}{x}", r"\PYG{l+m+mi}{1}", "The end.")
    assert [part in text for part in parts] == [False, False, False, True, True]
