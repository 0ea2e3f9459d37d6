"""The PDF has the numbers of the site; without TeX it is said what to install; the archive holds the whole site."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import numbered
import pytest
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.errors import UsageError
from book_tools.site import editions, offered
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


def test_the_front_page_leads_to_what_was_made_from_the_same_run(executed: Toy, tmp_path: Path) -> None:
    """After the next build, of the same run; not to one of another run, and not in the archive, which holds none."""
    (executed.root / "index.md").write_text(f"# Toy\n\nA book.\n\n:::{{include}} {offered.INCLUDED}\n:::\n")
    book = Book(executed.root)
    site, made = book.html, book.build / f"{editions.NAME}.zip"

    def build() -> tuple[set[str], str]:
        result = executed.cli("book", "--scale", "smoke")
        assert result.returncode == 0, result.stdout
        page = (site / "index.html").read_text()
        links = set(re.findall(r'href="(editions/[^"]*)"', page))
        assert links == {path.relative_to(site).as_posix() for path in site.glob("editions/*")}
        return links, " ".join(re.sub("<[^>]*>", "", page).split())

    links, page = build()
    assert links == set()
    said = (
        "the repository makes copies of the book: a PDF by make pdf, an ePub by make epub, this site as one archive by"
    )
    assert said in page
    assert executed.cli("offline").returncode == 0
    first = made.read_bytes()
    links, page = build()
    assert links == {f"editions/{made.name}"}
    assert (site / "editions" / made.name).read_bytes() == first
    assert f"this site as one archive ({len(first) / 1e6:.1f} MB). The repository makes a PDF by make pdf, an" in page
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert build()[0] == links
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before, "two builds of one run"
    assert executed.cli("offline").returncode == 0
    with zipfile.ZipFile(made) as archive:
        assert not [name for name in archive.namelist() if "/editions/" in name]
        front = archive.read(f"{editions.NAME}/index.html").decode()
    assert "editions" not in front
    assert "A book." in front
    assert "</footer>" in front, "no more than the box is gone"
    # Another run: its numbers may be others.
    manifest = book.manifest.read_text()
    book.manifest.write_text(manifest + "\n")
    assert offered.offered(book) == []
    book.manifest.write_text(manifest)
    assert offered.offered(book) == [made]
    made.unlink()
    assert offered.offered(book) == []


def test_an_archive_needs_a_site(toy: Toy) -> None:
    result = toy.cli("offline")
    assert result.returncode == 2
    assert "offline: no site to pack; build it with 'make book'" in result.stdout


def test_latex_has_the_numbers_of_the_site_in_its_order(built: Toy, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    converter = programs / "rsvg-convert"
    converter.write_text('#!/bin/sh\nfor last; do :; done\ncp "$last" "${2#--output=}"\n')
    converter.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    result = built.cli("pdf", "--latex", PATH=path, CFLTR_REPOSITORY="")
    assert result.returncode == 0, result.stdout
    text = (built.root / "_build" / f"{editions.NAME}.tex").read_text()

    chapters = built.root / "_build" / "html" / "chapters"
    of_site = [number for page in ("91_alpha", "92_beta") for number in numbered.on_page(chapters / f"{page}.html")]
    assert sorted(of_site) == ["(91.1)", "Exercise 91.1", "Fig. 91.1", "Theorem 91.1"]
    assert numbered.in_latex(text) == of_site
    assert "Notebook to run" not in text
    assert "The end." in text, "the answer to the exercise is included, and what follows it"


def test_without_the_extension_latex_would_number_by_itself() -> None:
    counted = r"\begin{figure}\caption{A}\label{\detokenize{chapters/91_alpha:fig-toy}}\end{figure}"
    assert numbered.in_latex(counted) == []
    assert numbered.in_latex(r"\renewcommand{\thefigure}{91.1}" + counted) == ["Fig. 91.1"]


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


def test_an_epub_declares_what_its_pages_hold_and_loads_nothing_that_is_not_there() -> None:
    sheet = '<link rel="stylesheet" type="text/css" href="../_static/{}.css" />'
    item = '<item id="{0}" href="chapters/{0}.xhtml" media-type="application/xhtml+xml" />'
    page = f'{sheet.format("here")}{sheet.format("gone")}<math ></math><a href="b.html#c">d</a>'
    files = {
        "chapters/a.xhtml": page.encode(),
        "chapters/b.xhtml": b"<p>words</p>",
        "chapters/c.xhtml": f'{page}<svg xmlns="x"></svg>'.encode(),
        "_static/here.css": b"",
        "a.svg": b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x"\n "y">\n<svg><path id="p"/><path d="M0"/></svg>',
        "_static/book.css": b"a:is(b, c) {}",
        "content.opf": ("<dc:date>2026-11-22T23:59:59Z</dc:date>" + "".join(map(item.format, "abc"))).encode(),
    }
    out = {name: content.decode() for name, content in editions.mended(files).items()}
    assert "gone" not in out["chapters/a.xhtml"]
    assert "here" in out["chapters/a.xhtml"]
    assert 'href="b.xhtml#c"' in out["chapters/a.xhtml"]
    assert "DOCTYPE" not in out["a.svg"]
    assert out["a.svg"].endswith('<svg><path d="" id="p"/><path d="M0"/></svg>')
    assert "_static/book.css" not in out
    told = dict(
        re.findall(r'href="chapters/(.)\.xhtml" media-type="[^"]*"(?: properties="([^"]*)")? />', out["content.opf"])
    )
    assert told == {"a": "mathml", "b": "", "c": "mathml svg"}
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
    assert "Notebook to run" not in page
