"""Whether the search of a site lists what explains before names of the package, and a name that is asked for first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

# A site without these has nothing to be ordered.
PAGES = ("search.html", "api/index.html")
# What readers typed who did not find what they looked for, each with the pages of which one should come first.
QUERIES = {
    "save model": ("chapters/",),
    "own log": ("chapters/guide", "chapters/16_"),
    "propensity": ("chapters/",),
    "fit_proprank": ("api/",),
}
# The script of the search is done when it has said how many pages it found.
FOUND = """
if (!document.querySelector(".search-summary")?.textContent) return null;
return [...document.querySelectorAll("ul.search > li > a")].map((link) => link.getAttribute("href"));
"""


def search_problems(browser: Chrome, site: Path, origin: str) -> Iterator[str]:
    """Ask the search of the site and yield where something else comes first, or a name before a page of text."""
    if not all((site / page).is_file() for page in PAGES):
        return
    for query, wanted in QUERIES.items():
        browser.get(f"{origin}/search.html?q={quote(query)}")
        try:
            links = WebDriverWait(browser, browser.timeouts.script).until(lambda found: found.execute_script(FOUND))
        except TimeoutException:
            yield f"search.html: finds nothing for {query!r}"
            continue
        if not links[0].startswith(wanted):
            yield f"search.html: {query!r} finds {links[0]} first, and not a page of {' or '.join(wanted)}"
        names = [index for index, link in enumerate(links) if link.startswith("api/")]
        texts = [index for index, link in enumerate(links) if link.startswith("chapters/")]
        if "api/" not in wanted and names and texts and names[0] < texts[-1]:
            yield f"search.html: {query!r} finds {links[names[0]]} before {links[texts[-1]]}"
