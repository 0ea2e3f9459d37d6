"""What axe-core finds on a page: contrast, names, roles, structure, as people with a screen reader meet them.

axe-core is a script, https://github.com/dequelabs/axe-core.  It comes from the system, as the browser does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from selenium.webdriver import Chrome

from book_tools.checks.npm import npm_file
from book_tools.errors import BookError

# The file itself, where it lies elsewhere.
VARIABLE = "AXE_CORE"
PLACE = Path("axe-core") / "axe.min.js"
# How grave a finding is, in axe's words; of the others it says itself that they hinder few.
GRAVE = {"serious", "critical"}

# Colours on their way from one theme to the other, and folds that fade in, would be judged half-way.
STILL = """
const still = "* {animation: none !important; transition: none !important}";
document.head.insertAdjacentHTML("beforeend", `<style>${still}</style>`);
"""
# Images without alternative text and formulas with an error are reported by checks that say more.
ASK = """
const done = arguments[arguments.length - 1];
const options = { resultTypes: ["violations"], rules: { "image-alt": { enabled: false } } };
axe.run({ exclude: [["mjx-merror"]] }, options).then(
  ({ violations }) => done(violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, number: nodes.length, first: nodes[0].html.slice(0, 120),
  }))),
  (error) => done(String(error)),
);
"""


def find_axe() -> Path:
    """Return the path of the script, or raise with what to install."""
    return npm_file("browser: axe-core, which judges how accessible a page is", PLACE, VARIABLE, "axe-core@4")


def axe_problems(browser: Chrome, script: str) -> Iterator[str]:
    """Run axe on the page that is shown and yield its grave findings, one line for each rule."""
    browser.execute_script(STILL)
    browser.execute_script(script)
    found = browser.execute_async_script(ASK)
    if isinstance(found, str):
        raise BookError(f"browser: axe-core failed: {found}")
    for finding in found:
        if finding["impact"] in GRAVE:
            yield f"axe, {finding['impact']}: {finding['help']} ({finding['number']} places, as {finding['first']!r})"
