"""A page is not heavier than it may be, and what no page loads is not published."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from book_tools.site import html


def test_a_page_weighs_what_it_and_its_pictures_take_on_the_way(tmp_path: Path) -> None:
    page = tmp_path / "one.html"
    noise = random.Random(0).randbytes(5000)
    (tmp_path / "noise.png").write_bytes(noise)
    (tmp_path / "even.svg").write_text("<svg>" + " " * 5000 + "</svg>")
    page.write_text("<p>x</p>")
    alone = html.page_weight(page)
    # The same picture twice is sent once; one of another host is not ours.
    page.write_text('<p>x</p><img src="noise.png"><img src="noise.png"><img src="https://elsewhere.example/x.png">')
    assert 5000 < html.page_weight(page) < 5000 + alone + 100
    page.write_text('<p>x</p><img src="even.svg">')
    assert html.page_weight(page) < alone + 100, "text is compressed"


def test_too_heavy_a_page_and_too_heavy_a_site_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.html").write_text('<img src="noise.png">')
    (tmp_path / "two.html").write_text("<p>x</p>")
    (tmp_path / "noise.png").write_bytes(random.Random(0).randbytes(5000))
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
