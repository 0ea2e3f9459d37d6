"""Turn the MyST Markdown of a chapter into Markdown that Colab and plain Jupyter show as it is meant.

Directives become bold headings, quotations and folded parts; roles become their text with a link to the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from book_tools.colab.labels import Labels, Target
from book_tools.colab.marks import ROLE
from book_tools.colab.myst import INLINE, PLAIN, Directive, blocks_of, outside_code

# The headings of what stands as a quotation.
REMARKS = {"margin": "", **{name: f"**{name.capitalize()}.**" for name in ("note", "tip", "important", "warning")}}
# The kinds of places that a role can name, in words, and the roles that name each; those of a number may give a text
# with a gap for it.
KINDS = {
    "equations": "equation",
    "numbered": "theorem, exercise or figure",
    "sections": "section",
    "terms": "term of the glossary",
}
ROLES = {"eq": "equations", "prf:ref": "numbered", "numref": "numbered", "ref": "sections", "term": "terms"}
NUMBERED_ROLES = {"eq", "prf:ref", "numref"}
BARE_LINES = re.compile(r"^(?:\([\w:.-]+\)=|\+\+\+.*|%.*)[ \t]*\n?", re.MULTILINE)
EXPLICIT = re.compile(r"(?P<text>.*\S)\s*<(?P<label>[^<>]+)>", re.DOTALL)
DISPLAY = re.compile(r"(?<!\\)\$\$.+?(?<!\\)\$\$", re.DOTALL)
COMMENT = re.compile(r"(?<!\\)%")


@dataclass
class Portable:
    """The translation of one chapter: ``page`` as in the table of contents, its recorded numbers, the site.

    ``mark`` gives for the content of a mark what stands in its place, and where that leads on the site.
    """

    page: str
    labels: Labels
    records: Mapping[str, str]
    site: str | None
    mark: Callable[[str], Target]
    cited: Iterator[list[Target]] = field(init=False)
    has_marks: bool = False

    def __post_init__(self) -> None:
        self.cited = iter(self.labels.citations.get(self.page, []))

    def text(self, source: str) -> str:
        """Return ``source`` without anything that only MyST understands; what has no counterpart is a ValueError."""
        parts = (
            self._directive(block) if isinstance(block, Directive) else self._plain(block)
            for block in blocks_of(source)
        )
        return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")

    def all_cited(self) -> None:
        """Raise when the page cites more often than its text did: then citations were paired wrongly."""
        if next(self.cited, None) is not None:
            raise ValueError("the page has more citations than the text; cite in the text only, not in an output")

    def link(self, target: Target) -> str:
        """Return the words of ``target`` as a link to it, or as plain words when the site has no address."""
        return f"[{target.text}]({self.site}{target.place})" if self.site and target.place else target.text

    # Directives

    def _directive(self, directive: Directive) -> str:
        name = directive.name
        if name == "list-table":
            return self._table(directive)
        if name == "dropdown":
            return _folded(self._inline(directive.argument) or "More", self.text(directive.body))
        if name in REMARKS:
            return _quoted(REMARKS[name], self.text(f"{directive.argument}\n\n{directive.body}".strip()))
        # Each part is translated once, in its order: a citation takes the next one of the page.
        title, body = self._title(directive), self.text(directive.body)
        if name == "solution-end":
            return ""
        if name == "prf:proof":
            return _paragraphs(f"**Proof{title}.**", body)
        if name == "exercise":
            return _paragraphs(f"**{self._number(directive)}{title}.**", body)
        if name.startswith("prf:"):
            return _quoted(f"**{self._number(directive)}{title}.**", body)
        if name in ("solution", "solution-start"):
            heading = f"Solution to {self._target('numbered', directive.argument).text}"
            folded = name == "solution" and "dropdown" in directive.options.get("class", "")
            return _folded(heading, body) if folded else _paragraphs(f"**{heading}.**", body)
        raise ValueError(f"the directive {{{name}}} has no counterpart in a plain notebook; write it in another way")

    def _number(self, directive: Directive) -> str:
        if "nonumber" in directive.options:
            return directive.name.removeprefix("prf:").capitalize()
        if "label" not in directive.options:
            raise ValueError(f"{{{directive.name}}} has no label, so that its number is not known; give it one")
        return self._target("numbered", directive.options["label"]).text

    def _title(self, directive: Directive) -> str:
        argument = self._inline(directive.argument).strip()
        return f" ({argument})" if argument else ""

    def _table(self, directive: Directive) -> str:
        rows: list[list[str]] = []
        for token in PLAIN.parse(directive.body):
            # A list of rows, each a list of cells, each a paragraph.
            if token.type == "list_item_open" and token.level in (1, 3):
                if token.level == 1:
                    rows.append([])
                else:
                    rows[-1].append("")
            elif token.type == "inline":
                if token.level != 5:
                    raise ValueError(f"{{list-table}}: expected '* - cell' or '  - cell', found {token.content!r}")
                rows[-1][-1] += " ".join(token.content.split())
        if directive.options.get("header-rows") != "1" or len({len(row) for row in rows}) != 1:
            raise ValueError("{list-table}: a plain table has one header row, and rows of one length")
        cells = [[_cell(self._inline(cell)) for cell in row] for row in rows]
        cells.insert(1, ["---"] * len(cells[0]))
        title = [f"**{self._inline(directive.argument)}**"] if directive.argument else []
        return _paragraphs(*title, "\n".join(f"| {' | '.join(row)} |" for row in cells))

    # Inline

    def _plain(self, text: str) -> str:
        return outside_code(text, lambda part: self._inline(BARE_LINES.sub("", part + "\n")[:-1]))

    def _inline(self, text: str) -> str:
        return INLINE.sub(self._piece, text)

    def _piece(self, match: re.Match[str]) -> str:
        if match["display"]:
            return self._formula(match["formula"], match["label"]) if match["label"] else match[0]
        if match["role"]:
            return self._role(match["role"], " ".join(match["content"].split()))
        if match["to"]:
            return self._relative(match)
        return match[0]

    def _formula(self, formula: str, label: str | None) -> str:
        if label is None:
            return f"$${formula}$$"
        number = self._target("equations", label).text.strip("()")
        end = "\n" if formula.endswith("\n") else " "
        return f"$${formula.rstrip()} \\tag{{{number}}}{end}$$"

    def _role(self, role: str, content: str) -> str:
        explicit = EXPLICIT.fullmatch(content)
        words, label = (explicit["text"], explicit["label"].strip()) if explicit else (None, content)
        if role == "glue:text":
            if content not in self.records:
                raise ValueError(f"{{glue:text}}`{content}`: the chapter records no such number; see record(…)")
            return self.records[content]
        if role in ("cite:t", "cite:p", "cite"):
            pieces = next(self.cited, None)
            if pieces is None:
                raise ValueError(f"{{{role}}}`{content}`: not found on the built page")
            return "".join(self.link(piece) for piece in pieces)
        if role == ROLE:
            self.has_marks = True
            return self.link(self.mark(content))
        if role not in ROLES:
            raise ValueError(f"the role {{{role}}} has no counterpart in a plain notebook; write it in another way")
        target = self._target(ROLES[role], label)
        text = words or (label if role == "term" else target.text)
        if role in NUMBERED_ROLES:
            text = re.sub(r"%s|\{number\}", target.text.rpartition(" ")[2], text)
        return self.link(Target(target.place, text))

    def _target(self, kind: str, label: str) -> Target:
        """Return the place of this ``kind`` that is called so; a term of the glossary in any case of its letters."""
        places: dict[str, Target] = getattr(self.labels, kind)
        if kind == "terms":
            places, label = {name.lower(): target for name, target in places.items()}, label.lower()
        if label not in places:
            raise ValueError(f"{label}: the built site has no such {KINDS[kind]}")
        return places[label]

    def _relative(self, match: re.Match[str]) -> str:
        """Let a link to another page of the book lead to the site: the file is not beside the copy."""
        parts = urlsplit(match["to"])
        if parts.scheme or parts.netloc:
            return match[0]
        if match["image"]:
            raise ValueError(f"{match[0]}: the picture is not beside the copy; draw it in a cell")
        path, folder = parts.path, posixpath.dirname(self.page)
        page = posixpath.normpath(posixpath.join(folder, re.sub(r"\.(ipynb|md)$", "", path))) if path else self.page
        if page not in self.labels.pages:
            raise ValueError(f"{match[0]}: {path} is no page of the book, and not beside the copy")
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        return self.link(Target(f"{page}.html{anchor}", self._inline(match["text"])))


def _cell(text: str) -> str:
    """Make the bars of a table's cell harmless: in a formula an escaped bar would be another symbol."""

    def piece(match: re.Match[str]) -> str:
        return match[0].replace("|", r"\vert ") if match["math"] else match[0]

    return re.sub(r"(?<!\\)\|", r"\\|", INLINE.sub(piece, text))


def _paragraphs(*parts: str) -> str:
    return "\n" + "\n\n".join(part for part in parts if part) + "\n"


def _quoted(*parts: str) -> str:
    """Return the parts as one quotation; a formula goes on one line, or '>' would become part of it."""
    text = "\n\n".join(part for part in parts if part)
    for formula in DISPLAY.findall(text):
        if "\n" in formula and COMMENT.search(formula):
            raise ValueError("a formula in a quotation holds a comment (%); take it out")
        text = text.replace(formula, " ".join(formula.split()))
    return "\n" + "\n".join(f"> {line}".rstrip() for line in text.split("\n")) + "\n"


def _folded(summary: str, body: str) -> str:
    return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
