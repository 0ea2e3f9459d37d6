"""How many claims of each of the four sources came out how: one line below each, on the page that lists them."""

from __future__ import annotations

import re

from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.parameters import Parameters
from book_tools.site.scoreboard import EMPIRICAL, MATHEMATICAL, SOURCES_PAGE
from book_tools.site.standings import Standing, listed, standings, tally
from cfltr_core.files import write_whole

# The page includes these files, which lie beside it while the site is built; each is named by the code of a source.
INCLUDED = re.compile(r"^:::\{include\} (counts_(\w+)\.md)\n:::$", re.MULTILINE)


def write_source_counts(book: Book, parameters: Parameters) -> None:
    """Lay the counts beside the staged page of the sources, for each source for which it includes them."""
    page = book.stage / f"{SOURCES_PAGE}.md"
    wanted = INCLUDED.findall(page.read_text(encoding="utf-8")) if page.is_file() else []
    if wanted:
        from cfltr_book.reporting.wording import SOURCES

        found, codes = standings(book), {code.lower(): code for code in SOURCES}
        for name, code in wanted:
            if code not in codes:
                raise BookError(f"{page.name}: includes {name}; a code is one of {', '.join(codes)}")
            of_one = [one for one in found if one.source == codes[code]]
            write_whole(page.parent / name, source_counts(of_one, parameters))


def source_counts(found: list[Standing], parameters: Parameters) -> str:
    """Return how the claims of one source came out in this run, as a paragraph."""
    counts = {nature: several for (_, nature), several in tally(found).items()}
    parts = []
    if "mathematical" in counts:
        proved = counts["mathematical"]
        parts.append(f"{proved.total()} that can be proved or refuted ({listed(proved, MATHEMATICAL)})")
    if "empirical" in counts:
        seen = counts["empirical"]
        parts.append(f"{seen.total()} about data, here `{parameters.corpus}` ({listed(seen, EMPIRICAL)})")
    from cfltr_book.legacy.kept_questions import number_of

    number = number_of(len(found), "claim")
    return f"The book checks {number} of this source{': ' if parts else ''}{' and '.join(parts)}.\n"
