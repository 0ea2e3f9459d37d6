"""Where a value sits that cannot be written into the key of what is kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cfltr_book.legacy.digests import NotWritten, describe


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


def test_each_object_is_described_once_and_a_circle_says_where_it_returns() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    assert describe([[], circle], "x") == [
        "list",
        [["list", []], ["list", [["int", "1"], ["described above", 3]]]],
    ]


def stuck() -> Any:
    return (i for i in ())


class Stuck:
    part = stuck()


def reads() -> Any:
    return STUCK


def defaults(x: Any = stuck()) -> Any:  # noqa: B008
    return x


def closed(part: Any) -> Callable[[], Any]:
    return lambda: part


STUCK = stuck()
# Where the value that cannot be written sits, and what the message calls it.
PLACES: dict[str, tuple[Any, str]] = {
    "itself": (stuck(), "x"),
    "a list": ([0, stuck()], "x[1]"),
    "a tuple": ((0, stuck()), "x[1]"),
    "a set": ({stuck()}, "x"),
    "a mapping": ({"a": {1: stuck()}}, "x['a'][1]"),
    "a key": ({stuck(): 1}, "x"),
    "an array": (np.array([None, stuck()]), "x"),
    "a class": (Stuck, "x.part"),
    "a base": (type("Below", (Stuck,), {"__module__": __name__}), "x.part"),
    "an object": (Holder(stuck()), "a part of x[2]['held']"),
    "a method": (Holder(stuck()).__init__, "a part of x[2]['held']"),
    "a name of the module": (reads, "STUCK"),
    "a default": (defaults, "a default of x[0][0]"),
    "a closure": (closed(stuck()), "part"),
    "a method of what is built in": ([stuck()].append, "x[0]"),
    "a property": (property(closed(stuck())), "part"),
    "a cached function": (functools.cache(reads), "STUCK"),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_message_says_where_it_sits(place: str) -> None:
    value, name = PLACES[place]
    with pytest.raises(NotWritten) as found:
        describe(value, "x")
    assert str(found.value) == (
        f"{name} is a generator, which cannot be written into the key of a kept result: "
        "pass it as a setting made of numbers, strings, arrays, lists or dictionaries"
    )
