"""Each fault that only a browser sees is found, on the page and in the view that has it, and nothing else."""

import json
import re
import shutil
from importlib.metadata import files
from pathlib import Path

import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from toy import REPOSITORY, Toy

from book_tools.checks.browser import chromium, find_programs, serving
from book_tools.checks.browser_check import QUERIES, search_problems, site_problems
from book_tools.checks.judges import find_axe
from book_tools.errors import UsageError

SCORER = REPOSITORY / "book_tools" / "site" / "search_scorer.js"
# The head of a page as Sphinx writes it; what of a page is not inside a formula is left alone.
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>T</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="_static/favicon.svg"><link rel="stylesheet" href="_static/book.css">
<script>window.MathJax = {"options": {"processHtmlClass": "tex2jax_process|math"}}</script>
<script defer src="_static/mathjax/tex-chtml.js"></script></head>
<body><article class="bd-article tex2jax_ignore mathjax_ignore">CONTENT</article></body></html>"""
# A figure with a knob, as staged pages have it; the middle one of its frames is the still.
TOLD = [
    {
        "text": str(i),
        "fact": f"{i} bars are long",
        "alt": f"A drawing of three bars, of which {i} are long.",
        "source": s,
    }
    for i, s in enumerate(("_static/logo.svg?0", None, "_static/logo.svg?2", "_static/logo.svg?3"))
]


def with_slider(script: str = '<script src="_static/sliders.js"></script>', **last: str) -> str:
    """A figure with frames, of which the last is changed."""
    frames = [*TOLD[:-1], TOLD[-1] | last]
    about = json.dumps({"id": "fig-x", "knob": "number of long bars n", "start": 1, "frames": frames})
    return (
        f'<link rel="stylesheet" href="_static/sliders.css">{script}<figure id="fig-x">'
        f'<img src="_static/logo.svg" alt="{TOLD[1]["alt"]}" style="width: 90px">'
        "<figcaption>Bars.</figcaption></figure>"
        f'<script type="application/json" class="frames">{about}</script>'
    )


PAGES = yaml.safe_load(Path(__file__).with_name("browser_pages.yml").read_text(encoding="utf-8"))
FAULTS = PAGES["faults"]
WRITTEN = {"LINKED": PAGES["linked"], "WIDE": PAGES["wide"], "ALT": 'alt="A drawing of three bars, each shorter."'}
WRITTEN |= {name: "+".join(f"x_{{{i}}}" for i in range(n)) for name, n in (("LONGER", 16), ("LONG", 60))}


def content(text: str, slider: dict[str, str] | None = None) -> str:
    """What a page of the file holds, with what its words in capitals stand for."""
    for name, written in (*WRITTEN.items(), ("SLIDER", with_slider(**(slider or {})))):
        text = text.replace(name, written)
    return text


CLEAN, WIDE = (content(PAGES[name]) for name in ("clean", "wide"))
PREVIEWS = {
    "index": r'<p>Theorem 1: <span class="math">\(x\)</span></p>',
    "preview-empty": "",
    "preview-formula": r'<p>So <span class="math">\(a \nosuch b\)</span>.</p>',
}


def write_site(folder: Path, pages: dict[str, str]) -> Path:
    """Write a site of the given contents, with the style sheet and the pictures of the book."""
    shutil.copytree(REPOSITORY / "_static", folder / "_static")
    tall = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="300"><rect width="60" height="290"/></svg>'
    (folder / "_static" / "tall.svg").write_text(tall)
    (mathjax,) = (f for f in files("sphinx-mathjax-offline") or () if f.name == "tex-chtml.js")
    (folder / "_static" / "mathjax").symlink_to(Path(str(mathjax.locate())).parent)
    for name, content in pages.items():
        text = PAGE.replace("CONTENT", content).replace('"NAME"', f'"{name}"')
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    (folder / "previews").mkdir()
    for name, content in PREVIEWS.items():
        script = f"bookPreviews.take({json.dumps({'#t': content})})"
        (folder / "previews" / f"{name}.js").write_text(script, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def _browser() -> None:
    try:
        find_programs()
        find_axe()
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def found(_browser: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, str]]]:
    """Return (view, problem) by page of a site with one clean page and one page for each fault."""
    faulty = {name: content(fault["content"], fault.get("slider")) for name, fault in FAULTS.items()}
    site = write_site(tmp_path_factory.mktemp("browser") / "site", {"index": CLEAN, **faulty})
    by_page: dict[str, list[tuple[str, str]]] = {}
    # What never comes is waited for as long as there is patience: the default is for the pages of the book.
    for problem in site_problems(site, patience=8.0):
        match = re.fullmatch(r"(\S+)\.html, (\d+ px, \w+): (.*)", problem, re.DOTALL)
        assert match is not None, problem
        by_page.setdefault(match[1], []).append((match[2].replace(" px,", ""), match[3]))
    return by_page


def test_a_clean_page_passes_in_every_view(found: dict[str, list[tuple[str, str]]]) -> None:
    assert "index" not in found
    assert set(found) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_where_it_is(found: dict[str, list[tuple[str, str]]], fault: str) -> None:
    reasons = FAULTS[fault]["said"]
    width, theme = FAULTS[fault]["views"].split()
    widths = ("390", "1280") if width == "*" else (width,)
    themes = ("light", "dark") if theme == "*" else (theme,)
    seen = found[fault]
    assert {view for view, _ in seen} == {f"{width} {theme}" for width in widths for theme in themes}, seen
    for reason in reasons:
        assert {view for view, problem in seen if re.search(reason, problem)} == {view for view, _ in seen}, seen
    assert [p for _, p in seen if not any(re.search(reason, p) for reason in reasons)] == []


RESULTS = """<link rel="icon" href="data:,"><body><script>
const found = FOUND[new URLSearchParams(location.search).get("q")];
const list = found.map(([to, shown]) => `<li><a href="${to}">${to}</a><p class="context">${shown}</p></li>`).join("");
const said = found.length ? "Found." : "";
document.body.innerHTML = `<p class="search-summary">${said}</p><ul class="search">${list}</ul>`;
if (!found.every(([, shown]) => shown)) nothing.there();
</script>"""


@pytest.mark.usefixtures("_browser")
def test_the_search_must_find_pages_before_names_and_show_what_it_found(tmp_path: Path) -> None:
    found = {
        "save model": [("chapters/guide.html#save", "save"), ("api/index.html", "save")],
        "own log": [("chapters/guide.html#x", "own"), ("api/clicks.html", "log"), ("chapters/01_clicks.html", "log")],
        "propensity": [("api/clicks.html", "p"), ("chapters/02_ips.html", "")],
        "fit_proprank": [],
    }
    assert found.keys() == QUERIES.keys()
    site = tmp_path / "site"
    (site / "api").mkdir(parents=True)
    (site / "search.html").write_text(RESULTS.replace("FOUND", json.dumps(found)))
    with serving(site) as origin, chromium() as browser:
        browser.set_script_timeout(3.0)
        assert list(search_problems(browser, site, origin)) == [], "without names there is nothing to be ordered"
        (site / "api" / "index.html").write_text("")
        problems = list(search_problems(browser, site, origin))
        failed = problems.pop(2)
        assert re.fullmatch(r"search.html: 'propensity': console severe: .*nothing is not defined", failed)
        assert [
            re.match(r"search.html: (?:finds nothing for )?('[\w ]+')(.{,12})", one).groups() for one in problems
        ] == [
            ("'own log'", " finds api/c"),
            ("'propensity'", " shows nothi"),
            ("'propensity'", " finds api/c"),
            ("'propensity'", " leads to no"),
            ("'propensity'", " finds api/c"),
            ("'fit_proprank'", ""),
        ]


# A chapter as the theme writes it, with a term of the glossary.
CHAPTER = f"""<nav>save a model</nav><main><article><section id="top"><h1>Top<a class="headerlink">#</a></h1>
<p>A model, {"and more " * 40} in the end saved.</p>
<section id="model"><h2>Model</h2><p>Its weights.</p><section id="keep"><h3>Keep</h3>
<p>Then <b>save</b> the <span class="math">\\(w\\)</span> model. {"And so on. " * 40}</p></section></section>
<section id="again"><h2>Again</h2><p>Save the model.</p><script>save(model)</script></section></section>
<dl><dt id="term-bias">bias</dt><dd>What a mean is off.</dd></dl></article></main>"""


@pytest.mark.usefixtures("_browser")
def test_of_a_page_the_place_of_the_words_is_shown_and_linked(tmp_path: Path) -> None:
    script = SCORER.read_text(encoding="utf-8")
    head = '<meta charset="utf-8"><body><script>const Search = {}</script>'
    (tmp_path / "search.html").write_text(f"{head}<script>{script}</script>", encoding="utf-8")
    show = """const [html, words, anchor, done] = arguments;
        document.body.innerHTML = `<li><a href="x.html${anchor}">X</a></li>`;
        document.querySelector("li").append(Search.makeSearchSummary(html, new Set(words), anchor));
        setTimeout(() => {
          const link = document.querySelector("a");
          done([link.getAttribute("href"), link.textContent, document.querySelector("p.context").textContent]);
        })"""
    with serving(tmp_path) as origin, chromium() as browser:
        browser.get(f"{origin}/search.html")

        def shown(words: str, anchor: str = "", page: str = CHAPTER) -> tuple[str, str, str]:
            address, title, text = browser.execute_async_script(show, page, words.split(), anchor)
            return address, title, text

        # The first section where both stand together, and neither the whole chapter nor the code of a script.
        address, title, text = shown("save model")
        assert (address, title) == ("x.html#keep", "X › Keep")
        assert text.startswith("Then save the … model. And so on.")
        assert text.endswith(" …")
        assert len(text) < 300
        assert shown("weight")[:2] == ("x.html#model", "X › Model")
        assert shown("top")[:2] == ("x.html", "X")
        assert shown("end")[2].startswith("… and more and more ")
        assert shown("nowhere")[2].startswith("A model, and more")
        assert shown("bias", "#term-bias") == ("x.html#term-bias", "X", "bias What a mean is off.")
        assert shown("list", page="<main><p>A list.</p></main>") == ("x.html", "X", "A list.")


@pytest.mark.usefixtures("_browser")
def test_a_slider_by_its_keys_without_scripts_and_on_paper(tmp_path: Path) -> None:
    site = write_site(tmp_path / "site", {"index": with_slider()})
    with serving(site) as origin, chromium() as browser:
        # Opened from a folder too.
        for address in (f"{origin}/index.html", (site / "index.html").as_uri()):
            browser.get(address)
            control = browser.find_element(By.CSS_SELECTOR, "input[type=range]")
            # The style begins it with a capital, and some browsers say it as it is seen.
            assert control.accessible_name.lower() == "number of long bars n"
            assert control.get_attribute("aria-valuetext") == "1: 1 bars are long"
            heard = browser.find_element(By.CSS_SELECTOR, "[role=status]")
            assert heard.get_attribute("textContent") == "", "nothing is read out before the knob is turned"
            control.send_keys(Keys.ARROW_RIGHT)
            WebDriverWait(browser, 10).until(
                lambda _, heard=heard: heard.get_attribute("textContent") == TOLD[2]["alt"]
            )
            assert control.get_attribute("aria-valuetext") == "2: 2 bars are long"
            assert seen(browser) == [("logo.svg?2", TOLD[2]["alt"])]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            assert seen(browser) == [("logo.svg", TOLD[1]["alt"])], "on paper there is the still"
            assert not control.is_displayed()
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        browser.get(f"{origin}/index.html")
        figure = browser.find_element(By.TAG_NAME, "figure")
        assert [image.accessible_name for image in figure.find_elements(By.TAG_NAME, "img")] == [TOLD[1]["alt"]]
        assert figure.find_elements(By.TAG_NAME, "input") == []
        assert figure.text == "Bars."


@pytest.mark.usefixtures("_browser")
def test_paper_shows_the_path(tmp_path: Path) -> None:
    body = (
        '<link rel="stylesheet" href="_static/book.css"><div class="bd-header">H</div><div class="bd-article">'
        '<p id="path">P</p><button>B</button><details id="shut"><summary>S</summary>x</details>'
        '<details id="open" open><summary>O</summary>y</details></div>'
    )
    site = write_site(tmp_path / "site", {"index": body})
    with serving(site) as origin, chromium() as browser:
        browser.get(f"{origin}/index.html")
        parts = [browser.find_element(By.CSS_SELECTOR, part) for part in ("#path", "#open", "#shut", "button")]
        assert all(part.is_displayed() for part in parts)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert [part.is_displayed() for part in parts] == [True, True, False, False]
        assert not browser.find_element(By.CSS_SELECTOR, ".bd-header").is_displayed()


def seen(browser: Chrome) -> list[tuple[str, str]]:
    """The pictures that are shown, by the ends of their addresses, with their descriptions."""
    images = browser.find_elements(By.TAG_NAME, "img")
    return [
        (str(image.get_dom_attribute("src")).rpartition("/")[2], str(image.get_dom_attribute("alt")))
        for image in images
        if image.is_displayed()
    ]


@pytest.mark.usefixtures("_browser")
def test_the_command_fails_on_a_fault_and_says_each_page(toy: Toy) -> None:
    html = toy.root / "_build" / "html"
    html.parent.mkdir()
    write_site(html, {"index": CLEAN, "second": WIDE})
    said = toy.cli("browser", code=1)
    assert "  index.html: ok, 4 formulas\n" in said
    assert "second.html, 390 px, light: wider than the screen" in said
    assert "2 pages in 4 views each: " in said
