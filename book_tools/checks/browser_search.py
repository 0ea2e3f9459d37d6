"""Whether the search of a site lists what explains before names of the package, and a name that is asked for first.

And whether it shows of each page where its words stand, leads there, and fails in none of its scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from book_tools.checks.browser import console_problems

# A site without these has nothing to be ordered.
PAGES = ("search.html", "api/index.html")
# What readers typed who did not find what they looked for, each with the pages of which one should come first.
QUERIES = {
    "save model": ("chapters/",),
    "own log": ("chapters/guide", "chapters/16_"),
    "propensity": ("chapters/",),
    "fit_proprank": ("api/",),
}
FOUND = Path(__file__).with_name("browser_found.js").read_text(encoding="utf-8")


def search_problems(browser: Chrome, site: Path, origin: str) -> Iterator[str]:
    """Ask the search of the site and yield where something else comes first, or a name before a page of text."""
    if not all((site / page).is_file() for page in PAGES):
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
