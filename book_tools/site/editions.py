"""The book to be kept: as a PDF, and as one archive of the site that works from a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from book_tools.book import Book
from book_tools.colab.repository import origin_of
from book_tools.errors import BookError, UsageError
from book_tools.execution.state import exclusive, fresh_run
from book_tools.files import files_below
from book_tools.site.api import NAMES
from book_tools.site.build import SCRATCH_PREFIX, jupyter_book
from book_tools.site.edition_links import BOX, FOLDER, NAME, note_edition
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
# How LaTeX sets the book: what the configuration has besides that of the site.
LATEX = Path(__file__).with_name("latex.yml")
HEADING = re.compile("^(?=##)", re.MULTILINE)
# The box of the front page that leads to editions.
FRONT, OFFER = Path("index.html"), re.compile(rf"{re.escape(BOX)}.*?</div>\s*".encode(), re.DOTALL)


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
    with _latex(book) as folder:
        (source,) = sorted(folder.glob("*.tex"))
        shutil.copy2(source, book.build / f"{NAME}.tex")
        if latex_only:
            return
        command = ["latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "-silent", source.name]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        said = source.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
        made = source.with_suffix(".pdf")
        faults = re.findall(r"^!.*|^.*undefined references.*|^Missing character.*", said, re.MULTILINE)
        if faults or not made.is_file():
            raise BookError(*list(dict.fromkeys(faults))[:20], "pdf: XeLaTeX failed, or left something out")
        _keep(book, made, f"{NAME}.pdf", "")


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
                    about = zipfile.ZipInfo(f"{NAME}/{place.as_posix()}", MOMENT)
                    about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(about, content)
        _keep(book, made, f"{NAME}.zip", f"; unpack it and open {NAME}/index.html")


@contextmanager
def _latex(book: Book) -> Iterator[Path]:
    """Stage the run for LaTeX, and yield the folder that the strict build filled."""
    parameters = fresh_run(book, "the PDF is made from a complete run only; nothing was changed")
    with exclusive(book):
        pages = generated_pages(book, parameters)
        stage(book, pages, origin_of(book), parameters, launch=False)
        write_accompanying(book, parameters)
        path = book.stage / book.config.name
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        printed = yaml.safe_load(LATEX.read_text(encoding="utf-8"))
        revision = origin_of(book).revision
        settings["latex"] = printed["latex"]
        config = settings["sphinx"]["config"]
        config["extensions"] += printed["extensions"]
        config |= printed["config"]
        config["today"] = f"Revision {revision[:12]}" if revision else "No revision"
        write_whole(path, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
        _leave_out_api(book)
        first = book.stage / f"{book.pages()[0]}.md"
        # Its sections would be chapters, each of them on a page of its own.
        title, _, text = first.read_text(encoding="utf-8").partition("\n")
        write_whole(first, f"{title}\n\n## About this book\n{HEADING.sub('#', text)}")
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=book.build) as scratch:
            yield jupyter_book(book, Path(scratch), "latex")


def _leave_out_api(book: Book) -> None:
    """Take the pages about the package out of the staged contents: they are to be looked up, not to be read."""
    path = book.stage / book.toc.name
    contents = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group in [contents, *contents.get("parts", [])]:
        group["chapters"] = [page for page in group.get("chapters", []) if page["file"] not in NAMES]
    contents["parts"] = [part for part in contents.get("parts", []) if part["chapters"]]
    contents = {key: value for key, value in contents.items() if value}
    write_whole(path, yaml.safe_dump(contents, sort_keys=False, allow_unicode=True))


def _keep(book: Book, made: Path, name: str, more: str) -> None:
    target = book.build / name
    os.replace(made, target)
    note_edition(book, target)
    print(f"{target.relative_to(book.root)}: {target.stat().st_size / 1e6:.1f} MB{more}", flush=True)
