"""What the theme, docutils and pandas write for screen readers is mended, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

from book_tools.site.access import mend_access


def test_each_is_mended_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    kept = '<button class="btn other" aria-label="Search">S</button><th>rank</th><pre>&lt;th&gt;&lt;/th&gt;</pre>'
    written = (
        '<button class="btn search-button-field pst-js-only" title="Search" aria-label="Search" data-x="1">S</button>'
        '<i class="theme-switch fa-sun" title="Light"></i>'
        '<div role="list" class="citation-list"><div class="citation" id="id1" role="doc-biblioentry">A</div></div>'
        "<table><tr><th></th></tr></table>"
    )
    (tmp_path / "chapters").mkdir()
    (tmp_path / "_static").mkdir()
    for place in ("chapters/one.html", "_static/theme.html"):
        (tmp_path / place).write_text(written + kept, encoding="utf-8")
    mend_access(tmp_path)
    assert (tmp_path / "_static" / "theme.html").read_text(encoding="utf-8") == written + kept
    assert (tmp_path / "chapters" / "one.html").read_text(encoding="utf-8") == (
        '<button class="btn search-button-field pst-js-only" title="Search" data-x="1">S</button>'
        '<i class="theme-switch fa-sun"></i>'
        '<div class="citation-list"><div class="citation" id="id1">A</div></div>'
        "<table><tr><td></td></tr></table>" + kept
    )
