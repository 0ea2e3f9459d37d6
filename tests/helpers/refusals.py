"""Bad input: that a call is refused, with a message that begins with the name of the argument."""

import re
from collections.abc import Callable
from typing import Any

import pytest


def refuses(start: str, function: Callable[..., object], *given: Any, **named: Any) -> None:
    """``function(*given, **named)`` is an error of value or type; ``start`` names argument and place, in plain text."""
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(start)}"):
        function(*given, **named)


def refused(function: Callable[..., object], *given: Any, **named: Any) -> str:
    """The message with which ``function(*given, **named)`` is an error of value or type."""
    with pytest.raises((ValueError, TypeError)) as found:
        function(*given, **named)
    return str(found.value)
