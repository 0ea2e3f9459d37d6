"""Moves every slider of a page by the keyboard: picture, spoken value and description must follow.

To its first and its last frame, and one step back: three frames of each, by the keys that a reader presses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

# What is on the page of one figure with a knob: what was written for it, and what is seen and spoken now.
STATE = """
const about = arguments[0], figure = document.getElementById(JSON.parse(about.textContent).id);
const input = figure.querySelector("input[type=range]");
const seen = [...figure.querySelectorAll("img")].filter((image) => image.checkVisibility());
const box = input.getBoundingClientRect();
const still = seen[0].getBoundingClientRect();
return {
  written: JSON.parse(about.textContent),
  frame: Number(figure.dataset.frame),
  spoken: input.getAttribute("aria-valuetext") || "",
  told: figure.querySelector("[role=status]").textContent,
  value: figure.querySelector("output").textContent,
  images: seen.map((image) => ({
    source: image.getAttribute("src") || "", alt: image.alt, loaded: image.complete && image.naturalWidth > 0,
    height: Math.round(image.getBoundingClientRect().height),
  })),
  inside: box.left >= 0 && box.right <= document.documentElement.clientWidth,
  above: box.bottom <= still.top,
};
"""
# Shown first in a fold, a slider would have no size; whoever can reach it has opened the fold.
UNFOLD = """
for (let fold = arguments[0].closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
return document.getElementById(JSON.parse(arguments[0].textContent).id).querySelector("input[type=range]");
"""


def slider_problems(browser: Chrome, patience: float) -> Iterator[str]:
    """Move every slider of the open page; yield what does not follow within ``patience`` seconds."""
    for about in browser.find_elements(By.CSS_SELECTOR, "script.frames"):
        name = "a slider"
        try:
            control: WebElement | None = browser.execute_script(UNFOLD, about)
            if control is None:
                yield "a figure with frames has no slider; did its script fail?"
                continue
            before: dict[str, Any] = browser.execute_script(STATE, about)
            written = before["written"]
            name, frames = f"slider {written['id']}", written["frames"]
            last = len(frames) - 1
            if before["frame"] != written["start"]:
                yield f"{name} starts at frame {before['frame']}, not at {written['start']}"
            if not before["inside"]:
                yield f"{name} is wider than the screen"
            if not before["above"]:
                yield f"{name} stands below its picture"
            heights = {image["height"] for image in before["images"]}
            sources = [image["source"] for image in before["images"]]
            for key, wanted in ((Keys.HOME, 0), (Keys.END, last), (Keys.ARROW_LEFT, last - 1)):
                control.send_keys(key)
                state = _settled(browser, about, wanted, frames[wanted]["alt"], patience)
                yield from (f"{name} at {frames[wanted]['text']}: {said}" for said in _wrong(state, frames[wanted]))
                heights |= {image["height"] for image in state["images"]}
                sources += [image["source"] for image in state["images"]]
            if len(heights) > 1:
                yield f"{name}: its pictures are {sorted(heights)} px high, and the page jumps"
            if len(set(sources)) < len(sources) - (written["start"] in (0, last, last - 1)):
                yield f"{name}: two frames show one picture"
        except TimeoutException:
            yield f"{name} does not follow the keyboard"


def _settled(browser: Chrome, about: WebElement, wanted: int, alt: str, patience: float) -> dict[str, Any]:
    """Wait until the picture of the frame is shown and its description was spoken; return what is seen."""

    def there(browser: WebDriver) -> dict[str, Any] | Literal[False]:
        state: dict[str, Any] = browser.execute_script(STATE, about)
        return state if state["frame"] == wanted and state["told"] == alt else False

    found: dict[str, Any] = WebDriverWait(browser, patience, poll_frequency=0.05).until(there)
    return found


def _wrong(state: dict[str, Any], frame: dict[str, str]) -> Iterator[str]:
    if state["spoken"] != f"{frame['text']}: {frame['fact']}":
        yield f"the spoken value is {state['spoken']!r}"
    if state["value"] != frame["text"]:
        yield f"the value beside it is {state['value']!r}"
    if len(state["images"]) != 1:
        yield f"{len(state['images'])} pictures are seen"
        return
    image = state["images"][0]
    if not image["loaded"]:
        yield f"its picture {image['source']} did not load"
    if image["alt"] != frame["alt"]:
        yield "its picture has the description of another frame"
