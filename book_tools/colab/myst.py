"""The parts of MyST Markdown that plain notebooks do not know: colon fences, roles and labelled formulas."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

# They split a text into blocks, as MyST does, and leave what stands within a line alone.
PLAIN = MarkdownIt("commonmark").disable("inline")
COLON = MarkdownIt("commonmark").disable("inline").use(colon_fence_plugin)
NAME = re.compile(r"\{([A-Za-z][\w:-]*)\}[ \t]*(.*)")
OPTION = re.compile(r":([A-Za-z][\w-]*):[ \t]*(.*)")
# What a text is made of besides plain words, in the order in which it must be tried.
INLINE = re.compile(
    r"(?P<display>(?<!\\)\$\$(?P<formula>.+?)(?<!\\)\$\$(?:[ \t]*\((?P<label>[\w:.-]+)\))?)"
    r"|(?P<math>(?<![\\$])\$(?!\$)[^$]+?(?<!\\)\$)"
    r"|\{(?P<role>[a-z][\w:.-]*)\}(?P<tick>`+)(?P<content>.+?)(?<!`)(?P=tick)(?!`)"
    r"|(?P<code>(?<!`)(?P<fence>`+)(?!`).+?(?<!`)(?P=fence)(?!`))"
    r"|(?P<image>!)?\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<to>[^()\s]+)\)",
    re.DOTALL,
)
# What only MyST understands; none of it may be left in a copy.
LEFTOVER = re.compile(
    r"^\s*:{3,}.*"  # a colon fence
    r"|^\s*(?:`{3,}|~{3,})\{.*"  # a directive in a code fence
    r"|\{[a-z][\w:.-]*\}`[^`\n]*`?"  # a role
    r"|\{glue.*"
    r"|\$\$[ \t]*\([\w:.-]+\)"  # a label behind a formula
    r"|^\([\w:.-]+\)=\s*$"  # a target
    r"|^\s*\{[.#][^{}\n]*\}\s*$",  # attributes of a block
    re.MULTILINE,
)


@dataclass(frozen=True)
class Directive:
    """A colon fence: ``:::{name} argument``, options, body."""

    name: str
    argument: str
    options: dict[str, str]
    body: str


Block: TypeAlias = str | Directive


def blocks_of(text: str) -> list[Block]:
    """Split ``text`` into plain pieces and directives; a fence that is never closed is a ValueError."""
    blocks: list[Block] = []
    lines, done = text.split("\n"), 0
    for token in COLON.parse(text):
        match = NAME.fullmatch(token.info.strip()) if token.type == "colon_fence" and token.level == 0 else None
        if match is None or token.map is None:
            continue
        start, end = token.map
        last = lines[end - 1].strip()
        if set(last) != {":"} or len(last) < len(token.markup):
            raise ValueError(f"{token.markup}{{{match[1]}}} is never closed; end it with a line {token.markup}")
        if start > done:
            blocks.append("\n".join(lines[done:start]))
        blocks.append(_directive(match[1], match[2], token.content.split("\n")))
        done = end
    return [*blocks, "\n".join(lines[done:])] if lines[done:] else blocks


def split_code(text: str) -> list[tuple[bool, str]]:
    """Split ``text`` into fenced code (True) and everything else (False)."""
    lines = text.split("\n")
    code = {n for token in PLAIN.parse(text) if token.type == "fence" and token.map for n in range(*token.map)}
    return [
        (inside, "\n".join(lines[n] for n in numbers))
        for inside, numbers in groupby(range(len(lines)), key=lambda number: number in code)
    ]


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return ``text`` with everything but its fenced code changed."""
    return "\n".join(part if code else change(part) for code, part in split_code(text))


def _directive(name: str, argument: str, body: list[str]) -> Directive:
    options: dict[str, str] = {}
    while body and (match := OPTION.fullmatch(body[0].strip())):
        options[match[1]] = match[2].strip()
        body = body[1:]
    return Directive(name, argument.strip(), options, "\n".join(body).strip("\n"))
