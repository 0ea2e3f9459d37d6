"""The book to be kept: as a PDF, as an ePub, and as one archive of the site that works from a folder."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from book_tools.book import Book
from book_tools.colab.repository import origin_of
from book_tools.errors import BookError, UsageError
from book_tools.execution.lock import exclusive
from book_tools.execution.state import state_of
from book_tools.files import files_below
from book_tools.site.access import NO_HTML
from book_tools.site.api import NAMES
from book_tools.site.build import SCRATCH_PREFIX, jupyter_book
from book_tools.site.offered import BOX, FOLDER, NAME, note_edition
from book_tools.site.pages import generated_pages, write_accompanying
from book_tools.site.stage import stage
from cfltr_core.files import write_whole

PROGRAMS = ("latexmk", "xelatex", "rsvg-convert")
PACKAGES = (
    "texlive-xetex texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended latexmk tex-gyre "
    "fonts-freefont-otf fonts-dejavu-core librsvg2-bin"
)
# The time in an archive: its files have the same bytes whenever it is made.
MOMENT = (1980, 1, 1, 0, 0, 0)
# How LaTeX sets the book: titles have their numbers already, and 88 columns of code fit into a line.
ELEMENTS = {
    "papersize": "a4paper",
    "extraclassoptions": "openany,oneside",
    "figure_align": "H",
    "fncychap": "",
    "fvset": r"\fvset{fontsize=\footnotesize}",
    "makeindex": "",
    "printindex": "",
    "preamble": "\n".join(
        [
            r"\setcounter{secnumdepth}{-2}",
            r"\setcounter{tocdepth}{1}",
            # The slanted letters for comments in code lack them.
            r"\usepackage{newunicodechar}",
            r"\newunicodechar{⟨}{\ensuremath{\langle}}",
            r"\newunicodechar{⟩}{\ensuremath{\rangle}}",
            # The marks of sentences.
            r"\newunicodechar{✓}{\ensuremath{\checkmark}}",
            r"\newunicodechar{✗}{\ensuremath{\times}}",
            r"\newunicodechar{○}{\ensuremath{\circ}}",
        ]
    ),
}
# When an ePub was made, as it says itself.
DATE = re.compile(r'((?:<dc:date>|<meta property="dcterms:modified">))[^<]*(<)')
# The box of the front page that leads to editions.
FRONT, OFFER = Path("index.html"), re.compile(rf"{re.escape(BOX)}.*?</div>\s*".encode(), re.DOTALL)
Change = Callable[[dict[str, Any]], None]


def make_pdf(book: Book, latex_only: bool = False) -> None:
    """Write the PDF below ``_build`` from the run, with the numbers of the site, and the LaTeX that it is made from.

    Raises
    ------
    UsageError
        Without TeX, saying what to install.
    """
    needed = PROGRAMS[-1:] if latex_only else PROGRAMS
    missing = [program for program in needed if shutil.which(program) is None]
    if missing:
        raise UsageError(
            f"pdf: {', '.join(missing)} not found; the PDF needs TeX. On Debian and Ubuntu, as root: "
            f"'apt-get update && apt-get install --no-install-recommends {PACKAGES}' (85 MB). "
            "Nothing else of the book needs it"
        )
    with _built(book, "latex", _for_latex) as folder:
        (source,) = sorted(folder.glob("*.tex"))
        shutil.copy2(source, book.build / f"{NAME}.tex")
        if latex_only:
            return
        command = ["latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "-silent", source.name]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        said = source.with_suffix(".log").read_text(encoding="utf-8", errors="replace").splitlines()
        made = source.with_suffix(".pdf")
        faults = [line for line in said if line.startswith("!") or "undefined references" in line]
        faults += [line for line in said if line.startswith("Missing character")]
        if faults or not made.is_file():
            raise BookError(*list(dict.fromkeys(faults))[:20], "pdf: XeLaTeX failed, or left something out")
        pages = re.search(r"Output written on .*?\((\d+) pages", "".join(said[-20:]))
        _keep(book, made, f"{NAME}.pdf", f", {pages[1]} pages" if pages else "")


def make_epub(book: Book) -> None:
    """Write the ePub below ``_build`` from the run, with formulas as MathML; the same bytes for the same run."""
    if find_spec("latex2mathml") is None:
        raise UsageError("epub: latex2mathml, which writes formulas as MathML, is missing; 'make epub' installs it")
    with _built(book, "epub", _for_epub) as folder:
        # Sphinx packs the files as it finds them, with the time of the day.
        (made,) = sorted(folder.glob("*.epub"))
        with zipfile.ZipFile(made) as archive:
            files = {about.filename: archive.read(about) for about in archive.infolist()}
        made.unlink()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            # This one comes first, and as it is: by it a file is known to be an ePub.
            _add(archive, "mimetype", files.pop("mimetype"), zipfile.ZIP_STORED)
            for name, content in sorted(mended(files).items()):
                _add(archive, name, content)
        _keep(book, made, f"{NAME}.epub", f", {len(files)} files")


# What an ePub may not hold, and what takes its place: what is no HTML either, the buttons of the scoreboard, names that
# only HTML knows, links to pages of the site.
REPAIRS = (
    *NO_HTML,
    (re.compile(r'<fieldset class="claim-filter">.*?</fieldset>', re.DOTALL), ""),
    (re.compile("&nbsp;"), "&#160;"),
    (re.compile(r'(href="(?!https?:)[^"#:]*)\.html(?=[#"])'), r"\1.xhtml"),
    # The picture of the map, row by row, and its legend: they need the style of the site.
    (re.compile(r'<svg aria-hidden="true" width="\d+" height="100%">.*?</svg>', re.DOTALL), ""),
    (re.compile(r'(?<=<div class="book-map">)\s*<p>.*?</p>', re.DOTALL), ""),
    # The arrows of folds.
    (re.compile(r"<svg\b[^>]*\bsd-octicon\b.*?</svg>", re.DOTALL), ""),
)
SHEET = re.compile(r'<link rel="stylesheet"[^>]*?href="([^"?]*)[^>]*>')
# The style of the site, in selectors that the standard of an ePub does not know yet, and its scripts.
SITE_ONLY = tuple(f"_static/{name}" for name in ("book.css", "pages.css", "sliders.css", "previews.js", "sliders.js"))
# What the list of contents has to say of a page, and what shows that it holds for it.
INLINE = {"mathml": "<math ", "svg": "<svg "}
PATH = re.compile(rb"<path(?![^>]*\sd=)([^>]*)")
DOCTYPE = re.compile(rb"<!DOCTYPE svg[^>]*>\s*")


def repaired(page: str) -> str:
    """Return a page of the ePub without what is no XHTML."""
    for pattern, replacement in REPAIRS:
        page = pattern.sub(replacement, page)
    return page


def mended(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of an ePub as its standard wants them: no foreign mark-up; formulas and pictures declared."""
    files = {name: content for name, content in files.items() if name not in SITE_ONLY}
    out, declared = {}, {}
    for name, content in files.items():
        if name.endswith(".xhtml"):
            folder = posixpath.dirname(name)

            def sheet(link: re.Match[str], folder: str = folder) -> str:
                return link[0] if posixpath.normpath(posixpath.join(folder, link[1])) in files else ""

            text = SHEET.sub(sheet, repaired(content.decode("utf-8")))
            declared[name] = " ".join(what for what, mark in INLINE.items() if mark in text)
            content = text.encode("utf-8")
        elif name.endswith(".svg"):
            # An empty path is drawn nowhere, but has to say so.
            content = PATH.sub(rb'<path d=""\1', DOCTYPE.sub(b"", content))
        out[name] = content
    for name in [name for name in out if name.endswith(".opf")]:
        text = DATE.sub(r"\g<1>2026-01-01T00:00:00Z\g<2>", out[name].decode("utf-8"))
        for gone in SITE_ONLY:
            text = re.sub(rf'\s*<item [^>]*href="{re.escape(gone)}"[^>]*/>', "", text)
        for page, inline in sorted(declared.items()):
            item = f'href="{page}" media-type="application/xhtml+xml"'
            text = text.replace(f"{item} />", f'{item} properties="{inline}" />' if inline else f"{item} />")
        out[name] = text.encode("utf-8")
    return out


def make_offline(book: Book) -> None:
    """Write one archive of the built site, which works from any folder and needs no network."""
    if not (book.html / "index.html").is_file():
        raise UsageError("offline: no site to pack; build it with 'make book'")
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=book.build) as scratch:
        made = Path(scratch) / "site.zip"
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in files_below(book.html):
                place = path.relative_to(book.html)
                # Editions would be in themselves; the front page leads to none of them then.
                if place.parts[0] != FOLDER:
                    content = path.read_bytes()
                    content = OFFER.sub(b"", content) if place == FRONT else content
                    _add(archive, f"{NAME}/{place.as_posix()}", content)
        _keep(book, made, f"{NAME}.zip", f"; unpack it and open {NAME}/index.html")


@contextmanager
def _built(book: Book, builder: str, change: Change) -> Iterator[Path]:
    """Stage the run, change the settings, and yield the folder that the strict build with ``builder`` filled."""
    state = state_of(book)
    if state.parameters is None or state.problems:
        raise UsageError(*state.problems, "an edition is made from a complete run only; nothing was changed")
    with exclusive(book):
        pages = generated_pages(book, state.parameters)
        stage(book, pages, origin_of(book), state.parameters, launch=False)
        write_accompanying(book, state.parameters)
        config = book.stage / book.config.name
        settings = yaml.safe_load(config.read_text(encoding="utf-8"))
        change(settings)
        revision = origin_of(book).revision
        settings["sphinx"]["config"]["today"] = f"Revision {revision[:12]}" if revision else "No revision"
        write_whole(config, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
        _leave_out_api(book)
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=book.build) as scratch:
            yield jupyter_book(book, Path(scratch), builder)


def _for_latex(settings: dict[str, Any]) -> None:
    settings["latex"] = {"latex_engine": "xelatex", "use_jupyterbook_latex": False}
    config = settings["sphinx"]["config"]
    config["extensions"].append("book_tools.site.sphinx_print")
    config["nb_mime_priority_overrides"] = [["latex", "image/svg+xml", 5]]
    config |= {"latex_use_xindy": False, "latex_domain_indices": False, "latex_elements": ELEMENTS}


def _leave_out_api(book: Book) -> None:
    """Take the pages about the package out of the staged contents: they are to be looked up, not to be read."""
    path = book.stage / book.toc.name
    contents = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group in [contents, *contents.get("parts", [])]:
        group["chapters"] = [page for page in group.get("chapters", []) if page["file"] not in NAMES]
    contents["parts"] = [part for part in contents.get("parts", []) if part["chapters"]]
    for key in ("chapters", "parts"):
        if not contents[key]:
            del contents[key]
    write_whole(path, yaml.safe_dump(contents, sort_keys=False, allow_unicode=True))


def _for_epub(settings: dict[str, Any]) -> None:
    config = settings["sphinx"]["config"]
    config["extensions"].remove("sphinx-mathjax-offline")
    config["extensions"].append("book_tools.site.sphinx_epub")
    # The page of a term lists no page numbers here, and addresses are links already.
    config |= {"html_math_renderer": "mathml", "version": "1", "epub_show_urls": "no", "epub_use_index": False}
    config |= {"epub_identifier": NAME, "epub_scheme": "ID", "epub_uid": NAME, "epub_theme": "epub"}
    config["nb_mime_priority_overrides"] = [["epub", "image/svg+xml", 5], ["epub", "text/html", 10]]


def _add(archive: zipfile.ZipFile, name: str, content: bytes, how: int = zipfile.ZIP_DEFLATED) -> None:
    about = zipfile.ZipInfo(name, MOMENT)
    about.compress_type, about.external_attr = how, 0o644 << 16
    archive.writestr(about, content)


def _keep(book: Book, made: Path, name: str, more: str) -> None:
    target = book.build / name
    os.replace(made, target)
    note_edition(book, target)
    print(f"{target.relative_to(book.root)}: {target.stat().st_size / 1e6:.1f} MB{more}", flush=True)
