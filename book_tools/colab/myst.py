"""The parts of MyST Markdown that plain notebooks do not know: colon fences, roles and labelled formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

OPEN = re.compile(r"(:{3,})\{([A-Za-z][\w:-]*)\}[ \t]*(.*)")
OPTION = re.compile(r":([A-Za-z][\w-]*):[ \t]*(.*)")
CODE_FENCE = re.compile(r"(`{3,}|~{3,})")
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
    plain: list[str] = []
    lines = iter(text.split("\n"))
    code: str | None = None
    for line in lines:
        code = _code_after(line, code)
        match = OPEN.fullmatch(line.rstrip()) if code is None else None
        if match is None:
            plain.append(line)
            continue
        if plain:
            blocks.append("\n".join(plain))
            plain = []
        blocks.append(_directive(match, _body(lines, match)))
    if plain:
        blocks.append("\n".join(plain))
    return blocks


def split_code(text: str) -> list[tuple[bool, str]]:
    """Split ``text`` into fenced code (True) and everything else (False)."""
    parts: list[tuple[bool, list[str]]] = []
    code: str | None = None
    for line in text.split("\n"):
        before, code = code, _code_after(line, code)
        inside = before is not None or code is not None
        if not parts or parts[-1][0] != inside:
            parts.append((inside, []))
        parts[-1][1].append(line)
    return [(inside, "\n".join(lines)) for inside, lines in parts]


def _body(lines: Iterator[str], opening: re.Match[str]) -> list[str]:
    fence, name = opening[1], opening[2]
    body: list[str] = []
    code: str | None = None
    for line in lines:
        code = _code_after(line, code)
        bare = line.strip()
        if code is None and bare and set(bare) == {":"} and len(bare) >= len(fence):
            return body
        body.append(line)
    raise ValueError(f"{fence}{{{name}}} is never closed; end it with a line {fence}")


def _directive(opening: re.Match[str], body: list[str]) -> Directive:
    options: dict[str, str] = {}
    while body and (match := OPTION.fullmatch(body[0].strip())):
        options[match[1]] = match[2].strip()
        body = body[1:]
    return Directive(opening[2], opening[3].strip(), options, "\n".join(body).strip("\n"))


def _code_after(line: str, code: str | None) -> str | None:
    """Return the fence of the code that is open after ``line``, given the one that was open before it."""
    match = CODE_FENCE.match(line.lstrip())
    if match is None:
        return code
    fence = match[1]
    if code is None:
        return fence
    closes = fence[0] == code[0] and len(fence) >= len(code) and line.strip() == fence
    return None if closes else code
