"""The scoreboard: every claim with what was predicted and what this run of the book measured."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from book_tools.book import Book, Chapter
from book_tools.colab.marks import LEGEND
from book_tools.notebooks import read_notebook, title_of
from book_tools.parameters import Parameters
from book_tools.site.claim_rows import NUMBERS_FOLDER, claim_row, class_of, withdrawn_row
from book_tools.site.false_alarms import budget
from book_tools.site.standings import NOT_MEASURED, Standing, numbers_of, standings, tally
from book_tools.site.tables import table

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim

# What the short codes stand for; a small book may do without.
SOURCES_PAGE = "chapters/sources"
ROLES = {"published": "Published in one of the four sources", "own": "Our own"}
# The order of the columns and of the filter, with the outcomes that have no place in the tables of totals at the end.
MATHEMATICAL = ("true", "false", "undecided")
EMPIRICAL = ("seen", "smaller than asked", "not seen", "opposite seen", "undecided")
CONTROLS = ("held", "did not hold", "undecided")
OUTCOMES = (
    *("true", "false", "seen", "smaller than asked", "not seen", "opposite seen", "contradicted"),
    *("held", "did not hold", "undecided", "no verdict", NOT_MEASURED),
)
# The buttons stand in the first screen of a phone; what is explained follows, and goes when one is pressed.
INTRODUCTION = (
    "# Scoreboard\n",
    "Every claim that the book puts to the test: what it says, what was predicted before it was measured, and what "
    "this run found ({parameters}).\n",
)
WORDS = (
    "A verdict is computed from the numbers of each seed, never written by hand.\n",
    "- A *mathematical* claim is **true** or **false**. Its chapter has the proof or the counterexample; the run "
    "checks it on numbers, and the check can fail.",
    "- An *empirical* claim is **seen** on `{corpus}`, its **opposite** is **seen** there, or it stays **undecided**: "
    "the interval over the seeds crosses the threshold. That the opposite is seen does not refute a paper that speaks "
    "of other data.",
    "- A claim that one thing is larger than another also says by how much it must be to matter: its margin, set by "
    "this book. A difference that is surely below it is called by the sign of its interval: **smaller than asked** "
    "where it is surely above zero, as claimed; **not seen** where zero is inside; **opposite seen** where it is "
    "surely below zero, by however little. A claim of a value, or of no difference, is **opposite seen** where the "
    "interval lies outside what the claim allows.",
    "- A *control* is a repetition in which an effect must vanish or turn round. It **held** or it **did not hold**.\n",
    "Chapters, this page and `python -m cfltr_book` say these same words. The files of the repository have one word "
    "for all kinds: *supported* for true, seen and held, *inconclusive* for undecided, "
    "*contradicted* for the rest. Of an empirical claim that one thing is larger, *Predicted: contradicted* came true "
    "by any of smaller than asked, not seen and opposite seen.\n",
    f"In the text of the chapters {LEGEND}\n",
    "The ids begin with a short code for the source{sources}. [How a verdict is reached](#sec-verdicts) and "
    "[how you check that it was predicted before](#sec-before) stand at the end of the page.\n",
)
INTERVALS = (
    "(sec-verdicts)=\n## How a verdict is reached\n",
    "Intervals are two-sided Student intervals across seeds, or across what a claim counts in their place. Within a "
    "chapter they hold together at {together:.0%}: each statistical claim of a chapter with m of them is judged at "
    "level 1 − {alpha:g}/m (Bonferroni). A claim falsely *seen* errs on one side only, so that a chapter raises such "
    "an alarm with probability at most {alarm:.1%}. This takes seeds as independent; the seeds of `digits` and of a "
    "`letor:` collection split the same data and are not quite. Seeds that read the same fold of a collection are "
    "averaged and count once. Identities and inequalities are exact: they have no false alarms. Fewer than {few} "
    "seeds or folds that all give the same value decide nothing. Where more of them agree in every digit, as choices "
    "may that are made among a few rankers, the interval is a point: take it for *hardly ever different*. An "
    "ordering claims that the difference matters: a difference that is real but smaller than the stated margin "
    "contradicts it.\n",
)
BEFORE = (
    "(sec-before)=\n## Was it predicted before it was measured?\n",
    "A claim is committed, with its margin and the verdict that is predicted, before a chapter measures it. Git keeps "
    "the order. In a clone with the whole history this lists, oldest first, the commits that changed how often the "
    "name of a claim occurs, and the files; here of `{id}`, and likewise of any other id of this page:\n",
    "```bash\ngit log --reverse --date=iso --format='%n%h %ad %s' --name-only \\\n"
    "  -S'{id}' -- '*claims*.yml' 'chapters/*.ipynb'\n```\n",
    "The first commit should name a file of claims (`cfltr_book/claims/NN.yml`, and before there was one a chapter, "
    "`claims.yml`) and no chapter. `git show HASH -- '*claims*.yml'`, with its hash, shows what was predicted then: "
    "`predicted`, or in older commits without that line `on_record` or `expect`. Where nothing was predicted the "
    "claim says so above. Where a claim *took the place* of a withdrawn one, its id may be older than its statement: "
    "the first commit then shows the old statement, and its own prediction stands in the later commit that has its "
    "present words. Git shows the order of commits. Where one commit brings a claim and its chapter, as "
    "for some of the first chapters, it does not tell which came first; and that nobody measured before committing, it "
    "cannot show.\n",
)
WITHDRAWN = (
    "## Withdrawn\n",
    "Statements that were replaced or dropped after they had been measured, with what they measured then, and why. "
    "They are not measured any more and decide nothing. Of those that were *contradicted* only that is recorded, and "
    "not on which side.\n",
)


def scoreboard(book: Book, parameters: Parameters) -> str:
    """Return the page that lists every claim of the registry, as it is now, with what this run found."""
    from cfltr_book.reporting.claim_registry import FAMILY_ALPHA, withdrawn
    from cfltr_book.reporting.intervals import FEW_UNITS

    found, corpus = standings(book), parameters.corpus
    outcomes = {one.spec.id: one.outcome for one in found}
    chapters = [chapter for chapter in book.chapters() if any(one.chapter == chapter for one in found)]
    numbers = {chapter.number for chapter in book.chapters()}
    gone = [spec for spec in withdrawn().values() if spec.chapter in numbers]
    replaced: dict[str | None, list[str]] = {}
    for spec in gone:
        if spec.withdrawn is not None:
            replaced.setdefault(spec.withdrawn.replaced_by, []).append(spec.id)
    where = ", see [the four sources](sources.md)" if SOURCES_PAGE in book.pages() else ""
    words = {"corpus": corpus, "parameters": parameters, "sources": where}
    parts = [
        *(line.format(**words) for line in INTRODUCTION),
        _filter(found, gone, corpus),
        '<div class="board-about">\n',
        *(line.format(**words) for line in WORDS),
        _totals(found, corpus),
        "</div>\n",
    ]
    for chapter in chapters:
        parts.append(f"## {link_to(chapter)}\n")
        for one in found:
            if one.chapter == chapter:
                parts.append(claim_row(one, parameters, replaced.get(one.spec.id, ()), outcomes))
    if gone:
        parts += WITHDRAWN
        parts += [withdrawn_row(spec, corpus, replaced.get(spec.id, ())) for spec in gone]
    share = {"together": 1 - FAMILY_ALPHA, "alpha": FAMILY_ALPHA, "alarm": FAMILY_ALPHA / 2, "few": FEW_UNITS}
    parts += [line.format(**share) for line in INTERVALS]
    parts += ["## How many false alarms to expect\n", budget(found, parameters).words()]
    parts += [line.format(id=next((one.spec.id for one in found), "ID")) for line in BEFORE]
    return "\n".join(parts)


def numbers_files(book: Book) -> dict[str, str]:
    """Return the numbers that each verdict rests on, by the path of a file below the pages."""
    return {
        f"chapters/{NUMBERS_FOLDER}/{one.spec.id}.csv": numbers_of(one.measurement)
        for one in standings(book)
        if one.measurement
    }


def link_to(chapter: Chapter) -> str:
    """Return a link to a chapter from a page that lies beside it."""
    return f"[{title_of(read_notebook(chapter.source)) or chapter.name}]({chapter.source.name})"


def _totals(found: list[Standing], corpus: str) -> str:
    from cfltr_book.reporting.claim_registry import NO_PREDICTION

    counts = tally(found)
    predicted = Counter(one.group for one in found if one.spec.prediction(corpus) != NO_PREDICTION)
    kept = Counter(one.group for one in found if one.predicted_as_measured(corpus))

    def rows(nature: str, outcomes: tuple[str, ...]) -> list[list[str]]:
        groups = [(name, (role, nature)) for role, name in ROLES.items()]
        groups = groups if nature else [("Controls", ("control", ""))]
        lines = []
        for name, group in groups:
            have = counts.get(group, Counter())
            rest = have.total() - sum(have[outcome] for outcome in outcomes)
            listed = [str(have[outcome]) for outcome in outcomes]
            lines.append([name, str(have.total()), *listed, str(rest), f"{kept[group]} of {predicted[group]}"])
        return lines

    parts = []
    for kind, nature, outcomes in (
        ("Mathematical claims", "mathematical", MATHEMATICAL),
        (f"Empirical claims, on {corpus}", "empirical", EMPIRICAL),
        ("Controls", "", CONTROLS),
    ):
        heads = [outcome.capitalize() for outcome in outcomes]
        parts.append(table([kind, "All", *heads, "Without a verdict", "As predicted"], rows(nature, outcomes)))
    parts.append(
        "*As predicted* counts verdicts that came out as they had been predicted, *of* those claims of the row of "
        "which a verdict had been predicted. The others were written, or set, after a first measurement.\n"
    )
    return "\n".join(parts)


def _filter(found: list[Standing], gone: list[Claim], corpus: str) -> str:
    """Return two rows of buttons that leave only some claims to be seen; the style sheet does it, without a script."""
    from cfltr_book.reporting.wording import CONTROL, OWN, SOURCES, outcome, source_of

    outcomes = {one.outcome for one in found} | {outcome(spec, spec.recorded(spec.scale, corpus)) for spec in gone}
    used = {one.source for one in found} | {source_of(spec.id) for spec in gone}
    sources = {class_of(code): "our own" if code == OWN else name for code, name in SOURCES.items() if code in used}
    if CONTROL in used:
        sources[CONTROL] = "controls"
    # Only of withdrawn claims no more is known than this verdict.
    more = {"contradicted": "contradicted (withdrawn)"}
    verdicts = {class_of(name): more.get(name, name) for name in OUTCOMES if name in outcomes}
    if any(not one.predicted_as_measured(corpus) for one in found):
        verdicts["surprise"] = "not as predicted"
    return _buttons("verdict", verdicts) + _buttons("source", sources)


def _buttons(name: str, choices: dict[str, str]) -> str:
    buttons = "".join(
        f'<label><input type="radio" name="{name}" id="{name}-{key}"'
        f"{' checked' if key == 'all' else ''}> {escape(words)}</label>\n"
        for key, words in {"all": "all", **choices}.items()
    )
    return f'<fieldset class="claim-filter"><legend>{name.capitalize()}</legend>\n{buttons}</fieldset>\n\n'
