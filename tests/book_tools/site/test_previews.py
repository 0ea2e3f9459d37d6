"""What a link leads to is kept for every page in a script that is the same in every build."""

import json
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from book_tools.site.previews import FOLDER, SHOWN, preview_of, write_previews

THEOREM = """<div class="proof theorem admonition" id="thm-x">
<p class="admonition-title"><span class="caption-number">Theorem 2.1 </span></p>
<section class="theorem-content" id="proof-content"><div>By <a class="reference internal" href="#eq">(2.1)</a>
<img src="../_images/a.svg" alt="A line."/></div></section>
</div>"""
TERM = '<dl><dt id="term-log">log<a class="headerlink" href="#term-log">#</a></dt><dd><p>What is kept.</p></dd></dl>'
HEADING = '<section id="sec-x"><h2>A heading</h2></section>'
NAME = (
    '<dt class="sig sig-object py" id="cfltr_core.ndcg"><span>ndcg</span>(scores)</dt>'
    "<dd><p>nDCG of a list.</p><p>More of it.</p><dl><dt>Parameters</dt><dd>…</dd></dl></dd>"
)


def place(text: str) -> Tag:
    (found,) = BeautifulSoup(text, "html.parser").select(SHOWN)
    return found


def test_a_preview_has_neither_links_nor_anchors_and_of_a_name_the_first_paragraph() -> None:
    shown = preview_of(place(THEOREM), "chapters")
    parts = ("Theorem 2.1", "By (2.1)", 'data-src="_images/a.svg"', "<a", "id=")
    assert [part in shown for part in parts] == [True, True, True, False, False]
    assert preview_of(place(TERM), "chapters") == "<dl><dt>log</dt><dd><p>What is kept.</p></dd></dl>"
    shown = preview_of(place(NAME), "api")
    assert [part in shown for part in ("nDCG of a list.", "More", "Parameters")] == [True, False, False]


def test_links_are_marked_and_one_script_is_written_for_each_page(tmp_path: Path) -> None:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "a.html").write_text(THEOREM + TERM + HEADING)
    link = '<a class="reference internal" href="chapters/a.html#{}">x</a>'
    (tmp_path / "index.html").write_text("".join(map(link.format, ("thm-x", "sec-x", "term-log", "thm-x"))))
    write_previews(tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert page.count("data-preview") == 3
    script = (tmp_path / FOLDER / "index.js").read_text()
    assert "</" not in script
    found = json.loads(script.removeprefix("bookPreviews.take(").removesuffix(");\n"))
    # Headings have no preview.
    assert list(found) == ["chapters/a.html#term-log", "chapters/a.html#thm-x"]
    # The theorem refers to an equation that is not there, so its page has no script.
    assert not (tmp_path / FOLDER / "chapters" / "a.js").exists()
