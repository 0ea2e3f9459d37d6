"""What the theme, docutils, Sphinx and pandas write is mended, and nothing else is touched."""

from pathlib import Path

import pytest

from book_tools.site.access import mend_access

MATH = '<span class="math notranslate nohighlight">\\(x &lt; y\\)</span>'
UNBROKEN = '<span class="unbroken whole">'


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


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        *((f"{MATH}{stop} A", f"{UNBROKEN}{MATH}{stop}</span> A") for stop in ".,;:?!)]’”"),
        (f"({MATH} or {MATH}).", f"{UNBROKEN}({MATH}</span> or {UNBROKEN}{MATH}).</span>"),
        (f"“{MATH}”, A", f"{UNBROKEN}“{MATH}”,</span> A"),
        # A formula of 31 characters breaks between its symbols on a phone.
        *(
            (f"{MATH.replace('x', 'x' * n)}.", f'<span class="unbroken{whole}">{MATH.replace("x", "x" * n)}.</span>')
            for n, whole in ((19, " whole"), (20, ""))
        ),
        # What begins a word of its own may begin a line, and so may what a link holds.
        (f"{MATH}-optimal, {MATH} (2)", None),
        ('<span class="pasted-text">3</span>. A', None),
        (f"<p>{MATH}</p>.", None),
        ("<th>w &gt; 0</th>\n      <td>1</td>", "<th>w\u00a0&gt;\u00a00</th>\n      <td>1</td>"),
        # A long name breaks, and so do names of columns.
        ("<th>the deployed ranker</th>\n      <td>1</td>", None),
        ("<th>rank of A</th>\n      <th>rank of B</th>", None),
    ],
)
def test_lines_break_where_a_reader_expects_it(tmp_path: Path, written: str, mended: str | None) -> None:
    page = tmp_path / "one.html"
    page.write_text(written, encoding="utf-8")
    mend_access(tmp_path)
    assert page.read_text(encoding="utf-8") == (written if mended is None else mended)
