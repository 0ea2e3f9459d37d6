"""What readers and their screen readers need and the theme, docutils, Sphinx or pandas get wrong, mended in the pages.

Each is a fixed piece of their mark-up.  Where a new release writes another one, the checks of the pages say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from book_tools.site.html import rewrite_pages

OPENING, FORMULA, CLOSING = r"[(\[‘“]", r'<span class="math [^"]*">([^<]*)</span>', r"[.,;:?!)\]’”]"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
# A name of a row that has at most as many characters is kept on one line; a longer one would widen the table.
SHORT = 10
# A formula of so many characters, as TeX writes it, is surely shorter than a line on a phone.
WHOLE = 30
SECTION = re.compile(r"<section\b([^>]*)>|</section>")
# What stands in the pages as they write it, and what takes its place.
MENDED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # The name of the button must contain the words that are seen on it; without a label they are its name.
    (re.compile(r'(<button class="[^"]*\bsearch-button-field\b[^"]*"[^>]*?) aria-label="Search"'), r"\1"),
    # The icon of the present theme would be read as text that the name of its button does not contain.
    (re.compile(r'(<i class="theme-switch [^>]*?) +title="[^"]*"'), r"\1"),
    # A list of references holds blocks, which are no items; the roles promise a list of items.
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r'(<div class="citation" id="[^"]*") role="doc-biblioentry"'), r"\1"),
    # The style that pandas puts before a table, and attributes of tables for what the style of the book says.
    (re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL), ""),
    (re.compile(r'(<table\b[^>]*?) border="\d+"'), r"\1"),
    (re.compile(r' (?:v|h)align="[^"]*"'), ""),
    # The same name for the box of every theorem: a name may stand on a page once only.
    (re.compile(r' id="(?:proof|exercise|solution)(?:-content)?"'), ""),
    # The element is one already.
    (re.compile(r'(<main\b[^>]*?) role="main"'), r"\1"),
    # Pages that list things have no title to print.
    (re.compile(r'(<div id="jb-print-docs-body" class="onlyprint">\s*)<h1></h1>'), r"\1"),
    # The corner of a table heads nothing.
    (re.compile(r"<th></th>"), "<td></td>"),
    # A formula is a box, and a line may break beside it, though neither after the parenthesis that opens before it nor
    # before the stop that follows it.  A word joiner does not keep them together, a style does.
    # On a phone, where a long formula breaks between its symbols, a short one stays whole.
    (
        re.compile(rf"{OPENING}+{FORMULA}{CLOSING}*|{FORMULA}{CLOSING}+"),
        lambda found: f'<span class="unbroken{" whole" * (len(found[1] or found[2]) <= WHOLE)}">{found[0]}</span>',
    ),
    # The columns of a table on a phone are as narrow as their longest word: "w > 0" would take three lines.
    (
        re.compile(rf"(?<=<th>)[^<]{{1,{SHORT}}}(?=</th>\s*<td>)"),
        lambda name: name[0].replace(" ", NO_BREAK_SPACE),
    ),
)


def mend_access(html: Path) -> None:
    """Mend every page below ``html``, in place."""
    rewrite_pages(html, lambda page, _: mended(page))


def mended(page: str) -> str:
    """Return the HTML of a page without the faults of :data:`MENDED`, and without sections that have no name."""
    for pattern, replacement in MENDED:
        page = pattern.sub(replacement, page)
    return without_empty_sections(page)


def without_empty_sections(page: str) -> str:
    """Return the page with a box for every section that has no name: one of a theorem, which has no heading."""
    named: list[bool] = []

    def box(tag: re.Match[str]) -> str:
        if tag[1] is None:
            return tag[0] if not named or named.pop() else "</div>"
        named.append(" id=" in tag[1])
        return tag[0] if named[-1] else f"<div{tag[1]}>"

    return SECTION.sub(box, page)
