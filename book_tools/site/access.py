"""What a screen reader needs and the theme, docutils or pandas get wrong, mended in the built pages.

Each is a fixed piece of their mark-up.  Where a new release writes another one, the browser check says so.
"""

from __future__ import annotations

import re
from pathlib import Path

from cfltr_core.files import write_whole

# What stands in the pages as those three write it, and what takes its place.
MENDED = (
    # The name of the button must contain the words that are seen on it; without a label they are its name.
    (re.compile(r'(<button class="[^"]*\bsearch-button-field\b[^"]*"[^>]*?) aria-label="Search"'), r"\1"),
    # The icon of the present theme would be read as text that the name of its button does not contain.
    (re.compile(r'(<i class="theme-switch [^>]*?) +title="[^"]*"'), r"\1"),
    # A list of references holds blocks, which are no items; the roles promise a list of items.
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r'(<div class="citation" id="[^"]*") role="doc-biblioentry"'), r"\1"),
    # The corner of a table heads nothing.
    (re.compile(r"<th></th>"), "<td></td>"),
)


def mend_access(html: Path) -> None:
    """Mend every page below ``html``, in place."""
    for path in sorted(html.rglob("*.html")):
        if "_static" not in path.relative_to(html).parts:
            before = path.read_text(encoding="utf-8")
            after = before
            for pattern, replacement in MENDED:
                after = pattern.sub(replacement, after)
            if after != before:
                write_whole(path, after)
