"""Open every page of the built site in a browser, as a reader on a phone or at a desk, by day and by night.

``check_html`` reads the files; this sees what only a browser knows: scripts that fail, formulas that do not
come out, pages wider than the screen, code that is cut off, colours that cannot be told apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bs4 import BeautifulSoup
from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from book_tools.book import Book
from book_tools.checks.browser import chromium, console_problems, serving
from book_tools.checks.judges import find_axe
from book_tools.errors import BookError, UsageError
from book_tools.messages import PARSER
from book_tools.site.html import alternative_text_problem, built_pages

WIDTHS = {390: 844, 1280: 900}
THEMES = ("light", "dark")
BROWSERS_AT_A_TIME = 2
# Seconds until a page must have come to rest, and axe have judged it, on a machine that has other work, too.
PATIENCE = 90.0

# What is run on a page.
SETTLE, PROBE, PREVIEWS, AXE, SLIDERS, FOUND = (
    Path(__file__).with_name(f"browser_{name}.js").read_text(encoding="utf-8")
    for name in ("settle", "probe", "previews", "axe", "sliders", "found")
)
# A site without these has nothing to be ordered.
SEARCHED = ("search.html", "api/index.html")
# What readers typed who did not find what they looked for, each with the pages of which one should come first.
QUERIES = {
    "save model": ("chapters/",),
    "own log": ("chapters/guide", "chapters/16_"),
    "propensity": ("chapters/",),
    "fit_proprank": ("api/",),
}
# How grave a finding is, in axe's words; of the others it says itself that they hinder few.
GRAVE = {"serious", "critical"}
# Addresses that stand for data in the page itself.
INLINE = {"data", "blob", "about"}


@dataclass(frozen=True)
class View:
    """One way of looking at a page."""

    width: int
    theme: str

    def __str__(self) -> str:
        return f"{self.width} px, {self.theme}"


VIEWS = tuple(View(width, theme) for width in WIDTHS for theme in THEMES)
# On a desk's screen code and its results are seen whole; a phone scrolls them in boxes of their own.
DESK = max(WIDTHS)


def check_in_browser(book: Book) -> None:
    """Visit every page of the built site; print a line for each, and raise with every problem found."""
    if not (book.html / "index.html").is_file():
        raise UsageError("browser: no site to look at; build it with 'make book'")
    problems = site_problems(book.html)
    if problems:
        raise BookError(*problems, f"browser: {len(problems)} problems")


def site_problems(site: Path, patience: float = PATIENCE) -> list[str]:
    """Return everything wrong with the pages below ``site``, as ``page, width, theme: reason``."""
    pages = built_pages(site)
    axe = find_axe().read_text(encoding="utf-8")
    waiting = iter(pages)

    def problems_of_some(origin: str) -> list[str]:
        """Take the next page in a browser of its own, until none is left."""
        found: list[str] = []
        with chromium() as browser:
            # The patience is for pages: what a cold browser takes for its own start is none of theirs.
            _prepare(browser)
            browser.set_page_load_timeout(patience)
            browser.set_script_timeout(patience)
            for path in waiting:
                name = path.relative_to(site).as_posix()
                written = len(BeautifulSoup(path.read_text(encoding="utf-8"), PARSER).select(".math"))
                problems = []
                for view in VIEWS:
                    seen = _visit(browser, f"{origin}/{quote(name)}", origin, view, written, axe)
                    problems += [f"{name}, {view}: {problem}" for problem in dict.fromkeys(seen)]
                if name == "search.html":
                    problems += search_problems(browser, site, origin)
                print(f"  {name}: {f'{len(problems)} problems' if problems else 'ok'}, {written} formulas", flush=True)
                found += problems
        return found

    with serving(site) as origin, ThreadPoolExecutor(BROWSERS_AT_A_TIME) as pool:
        parts = pool.map(problems_of_some, [origin] * min(BROWSERS_AT_A_TIME, len(pages)))
        found = [problem for part in parts for problem in part]
    print(f"browser: {len(pages)} pages in {len(VIEWS)} views each: {len(found)} problems", flush=True)
    return found


def _visit(browser: Chrome, address: str, origin: str, view: View, written: int, axe: str) -> Iterator[str]:
    """Open one page in one view and yield what is wrong with it; on a desk's screen ``axe`` judges it too."""
    metrics = {"width": view.width, "height": WIDTHS[view.width], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": view.theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    try:
        browser.get(address)
        _wait_until_loaded(browser, address)
        failure = browser.execute_async_script(SETTLE)
        if failure:
            yield f"the page failed while loading: {failure}"
        yield from _page_problems(browser.execute_script(PROBE), view, written)
        if view.theme == THEMES[0]:
            yield from browser.execute_async_script(PREVIEWS)["problems"]
            yield from browser.execute_async_script(SLIDERS, 500 * browser.timeouts.script)
        if view.width == DESK:
            yield from _axe_problems(browser, axe)
    except TimeoutException:
        yield "the page did not come to rest; a script or a request of it never ends"
    yield from console_problems(browser)
    yield from _request_problems(browser, origin)


def _wait_until_loaded(browser: Chrome, address: str) -> None:
    """Wait for the page's own scripts: on a busy machine the driver may come back while they are still to run."""
    state = "return [location.href, document.readyState]"
    wait = WebDriverWait(browser, browser.timeouts.script, poll_frequency=0.02)
    wait.until(lambda browser: browser.execute_script(state) == [address, "complete"])


def _page_problems(seen: dict[str, Any], view: View, written: int) -> Iterator[str]:
    if seen["theme"] not in (None, view.theme):
        yield f"shown in the theme {seen['theme']!r}, not in the one that the reader's system asks for"
    if view.width < DESK and seen["buttons"] > WIDTHS[view.width]:
        yield f"the buttons of the page end at {seen['buttons']} px, below the first screen of {WIDTHS[view.width]} px"
    if seen["overflow"]:
        over = seen["overflow"]
        yield f"wider than the screen: {over['width']} px on {over['room']} px, because of {over['culprit']}"
    if view.width == DESK:
        yield from (f"cut off, a reader has to scroll sideways: {text!r}" for text in seen["cut"])
    formulas = seen["formulas"]
    if len(formulas) != written:
        yield f"{written} formulas are written in the page, {len(formulas)} are there when it is shown"
    for formula in formulas:
        text = formula["text"]
        if formula["typeset"] != 1:
            yield f"formula not typeset: {text!r}; is a delimiter or the script for formulas missing?"
        elif formula["error"]:
            yield f"formula with an error: {formula['error']!r} in {text!r}"
        elif formula["cut"]:
            yield f"formula cut off: {text!r}; it does not fit in its line"
    yield from (f"a formula outside of any mark-up for formulas: {text!r}" for text in seen["raw"])
    for image in seen["images"]:
        if not image["loaded"]:
            yield f"image {image['source']} did not load"
        problem = alternative_text_problem(image["alt"])
        if problem:
            yield f"image {image['source']} {problem}"


def _axe_problems(browser: Chrome, script: str) -> Iterator[str]:
    """Run axe on the page that is shown and yield its grave findings, one line for each rule."""
    browser.execute_script(script)
    found = browser.execute_async_script(AXE)
    if isinstance(found, str):
        raise BookError(f"browser: axe-core failed: {found}")
    for finding in found:
        if finding["impact"] in GRAVE:
            yield f"axe, {finding['impact']}: {finding['help']} ({finding['number']} places, as {finding['first']!r})"


def _request_problems(browser: Chrome, origin: str) -> Iterator[str]:
    """Yield every request that failed, and every one that leaves the server of the site."""
    addresses: dict[str, str] = {}
    for entry in browser.get_log("performance"):  # type: ignore[no-untyped-call]
        event = json.loads(entry["message"])["message"]
        what = event["params"]
        if event["method"] == "Network.requestWillBeSent":
            address = addresses[what["requestId"]] = what["request"]["url"]
            parts = urlsplit(address)
            if parts.scheme not in INLINE and f"{parts.scheme}://{parts.netloc}" != origin:
                yield f"asks another host: {address[:200]}"
        elif event["method"] == "Network.webSocketCreated":
            yield f"asks another host: {what['url']}"
        elif event["method"] == "Network.responseReceived" and what["response"]["status"] >= 400:
            yield f"request failed: {what['response']['url'][:200]} gave {what['response']['status']}"
        elif event["method"] == "Network.loadingFailed" and not what.get("canceled"):
            address = addresses.get(what["requestId"], "an unknown address")
            yield f"request failed: {address[:200]}: {what['errorText']}"


def _prepare(browser: Chrome) -> None:
    """Leave the page that the browser starts with, and drop what was logged until then."""
    browser.get("about:blank")
    # As on a phone, where a bar for scrolling takes no room: then 390 pixels are 390.
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    for log in ("browser", "performance"):
        browser.get_log(log)  # type: ignore[no-untyped-call]


def search_problems(browser: Chrome, site: Path, origin: str) -> Iterator[str]:
    """Ask the search of the site and yield where something else comes first, or a name before a page of text.

    Yielded is also where it shows nothing of a page, leads to no section, or fails in one of its scripts.
    """
    if not all((site / page).is_file() for page in SEARCHED):
        return
    for query, wanted in QUERIES.items():
        browser.get(f"{origin}/search.html?q={quote(query)}")
        patience = WebDriverWait(browser, browser.timeouts.script)
        try:
            patience.until(lambda there: (there.execute_script(FOUND) or {}).get("links"))
            with suppress(TimeoutException):
                patience.until(lambda there: not there.execute_script(FOUND)["bare"])
        except TimeoutException:
            yield f"search.html: finds nothing for {query!r}"
            continue
        # An excerpt moves the link of its page to where it stands there.
        seen = browser.execute_script(FOUND)
        links, bare = seen["links"], seen["bare"]
        if bare:
            yield f"search.html: {query!r} shows nothing of {len(bare)} pages that it finds, as of {bare[0]!r}"
        yield from (f"search.html: {query!r}: {problem}" for problem in dict.fromkeys(console_problems(browser)))
        if not links[0].startswith(wanted):
            yield f"search.html: {query!r} finds {links[0]} first, and not a page of {' or '.join(wanted)}"
        names = [index for index, link in enumerate(links) if link.startswith("api/")]
        texts = [index for index, link in enumerate(links) if link.startswith("chapters/")]
        if texts and not any("#" in links[index] for index in texts):
            yield f"search.html: {query!r} leads to no section, only to the tops of pages, as {links[texts[0]]}"
        if "api/" not in wanted and names and texts and names[0] < texts[-1]:
            yield f"search.html: {query!r} finds {links[names[0]]} before {links[texts[-1]]}"
