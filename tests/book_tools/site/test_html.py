"""The look at the built pages finds what a strict build does not; what is too heavy, and what no page loads."""

import random
from pathlib import Path

import pytest

from book_tools.site import html
from book_tools.site.html import html_problems

GOOD = """<html><head><link rel="stylesheet" href="_static/a.css?digest=1"><link rel="canonical"
href="https://book.example/"></head><body><img src="_static/logo.svg" alt=""><article><h1 id="top">T</h1>
<p><img src="_static/logo.svg" alt="Bar chart with one bar of length 60."><a href="#top">up</a>
<a href="sub/two.html#there">on</a> <a href="https://elsewhere.example">out</a> <a href="mailto:a@b.example">m</a>
<a href="#"></a><code>{numref}`x`</code></p></article></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.css").write_text("a { background: url(b.png) } /* http://in.a.comment */")
    (tmp_path / "_static" / "logo.svg").write_text("<svg/>")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.html").write_text('<a name="there" href="../index.html">back</a>')
    (tmp_path / "index.html").write_text(GOOD)
    return tmp_path


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ('<img src="_static/logo.svg">', "image _static/logo.svg has no alternative text"),
        ('<img src="_static/logo.svg" alt="_images/a-long-name-of-a-file.svg">', "has no alternative text"),
        ('<img src="_static/logo.svg" alt="A bar chart.">', "is shorter than 20 characters"),
        ('<a href="three.html">x</a>', "link to three.html, which does not exist"),
        ('<picture><source srcset="no.svg"></picture>', "link to no.svg, which does not exist"),
        ('<picture><source srcset="//cdn.example/x.svg"></picture>', "<source> loads //cdn.example/x.svg"),
        ('<a href="../index.html">x</a>', "link to ../index.html, which does not exist"),
        ('<a href="#nowhere">x</a>', "link to #nowhere, but that page has no such anchor"),
        ('<a href="sub/two.html#nowhere">x</a>', "has no such anchor"),
        ('<script src="https://cdn.example/x.js"></script>', "<script> loads https://cdn.example/x.js"),
        ('<link rel="preload" href="https://cdn.example/f.woff2">', "<link> loads"),
        ("<style>@import 'https://cdn.example/x.css';</style>", "a style loads https://cdn.example/x.css"),
        ('<p style="background: url(//cdn.example/x.png)">x</p>', "a style loads //cdn.example/x.png"),
        ("<p>So {glue:text}`ratio` it is</p>", "unresolved markup 'So {glue:text}`ratio` it is'"),
        ('<span class="problematic">**x</span>', "unresolved markup '**x'"),
    ],
)
def test_what_is_wrong_with_a_page(site: Path, added: str, message: str) -> None:
    (site / "index.html").write_text(GOOD.replace("</article>", f"{added}</article>"))
    problems = html_problems(site)
    assert len(problems) == 1
    assert problems[0].startswith("index.html: ")
    assert message in problems[0]


def test_a_style_sheet_that_loads_from_another_host(site: Path) -> None:
    assert html_problems(site) == [], "a good site"
    (site / "_static" / "a.css").write_text('@font-face { src: url("https://cdn.example/f.woff2") }')
    assert html_problems(site) == ["_static/a.css: loads https://cdn.example/f.woff2 from another host"]


def test_what_a_page_weighs_and_what_is_too_heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "one.html"
    (tmp_path / "noise.png").write_bytes(random.Random(0).randbytes(5000))
    (tmp_path / "even.svg").write_text("<svg>" + " " * 5000 + "</svg>")
    page.write_text('<p>x</p><img src="even.svg">')
    assert html.page_weight(page) < 300, "text is compressed"
    # The same picture twice is sent once; one of another host is not ours.
    page.write_text('<p>x</p><img src="noise.png"><img src="noise.png"><img src="https://elsewhere.example/x.png">')
    assert 5000 < html.page_weight(page) < 5300
    assert html.weight_problems(tmp_path) == []
    monkeypatch.setattr(html, "HEAVIEST_PAGE", 4000)
    (problem,) = html.weight_problems(tmp_path)
    assert problem.startswith("one.html: 5 kB with its pictures")
    monkeypatch.setattr(html, "HEAVIEST_SITE", 4000)
    assert "the site has 0.0 MB" in html.weight_problems(tmp_path)[1]


def test_what_no_page_loads_is_dropped(tmp_path: Path) -> None:
    scripts = tmp_path / "_static" / "mathjax"
    scripts.mkdir(parents=True)
    for name in ("tex-chtml.js", "tex-svg-full.js", "mml-chtml.js", "core.js"):
        (scripts / name).write_text("x")
    theme = tmp_path / "_static" / "theme.js"
    theme.write_text("run()\n//# sourceMappingURL=theme.js.map")
    (tmp_path / "_static" / "theme.js.map").write_text("{}")
    (tmp_path / "index.html").write_text('<script src="_static/mathjax/tex-chtml.js"></script>')
    html.drop_unused(tmp_path)
    assert sorted(path.name for path in scripts.iterdir()) == ["core.js", "tex-chtml.js"]
    assert theme.read_text() == "run()\n"
    assert not theme.with_suffix(".js.map").exists()
