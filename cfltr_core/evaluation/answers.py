"""What is said of a difference: one of five answers, and the sentences that go with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cfltr_core.evaluation.query_intervals import LEAST_CLICKS, POWER, Interval, hides_the_answer

Answer = Literal["better by at least δ", "better", "no difference that matters", "worse", "undecided"]


def answer_of(low: float, high: float, smallest: float) -> Answer:
    """The answer of an interval from ``low`` to ``high``, δ being the ``smallest`` difference that matters.

    Examples
    --------
    >>> from cfltr_core.evaluation.answers import answer_of
    >>> answer_of(0.04, 0.09, 0.03), answer_of(0.01, 0.09, 0.03), answer_of(0.01, 0.02, 0.03)
    ('better by at least δ', 'better', 'no difference that matters')
    """
    if low >= smallest:
        return "better by at least δ"
    if -smallest < low and high < smallest:
        return "no difference that matters"
    return "better" if low > 0 else "worse" if high < 0 else "undecided"


@dataclass(frozen=True, repr=False, kw_only=True)
class Decision(Interval):
    """What a log says of a new ranker against the one in production.

    :func:`~cfltr_core.evaluation.decisions.decide` makes it, ``print`` says it.

    Parameters
    ----------
    difference : float
        Of the metric a session, on what was shown; positive if the new ranker is better, also for a metric that is
        better when smaller.
    interval : (float, float)
        In which the difference lies with probability ``level`` at least, whatever was never shown.
    sampling : (float, float)
        The same with what was never shown as never clicked: the part of the interval that chance alone makes.
    unseen : (float, float)
        What documents that were never shown could add, at least (≤ 0) and at most (≥ 0).
    of_clicks, of_theta : float
        The two parts of the square of ``standard_error``: of the clicks, and of the error of the curve.
    quantile : float
        By which ``standard_error`` is multiplied in ``sampling``.
    effective_clicks : float
        To how many clicks of equal weight those amount at which the rankers differ (Kish).
    effective_queries : float
        The same for queries; Student's law has fewer degrees of freedom.
    answer : str
        The first of these that holds: ``"better by at least δ"`` if the interval lies above δ; ``"no difference that
        matters"`` if it is within ±δ; ``"better"`` or ``"worse"`` if it lies above or below 0; else ``"undecided"``.
    support : float in [0, 1]
        Share of the new ranker's weights |λ| on documents that the log can tell of: those with an exposure.
    sessions_more : float
        With ``"undecided"``: a whole number of further sessions like these, from ``smallest`` and the standard error
        and never from the difference, or infinite if no number would do.  Else 0.
    smallest, level : float
        δ, and the level of the interval.
    n_sessions, n_clicks, n_queries : int
        Of the log, down to the rank that counted; queries that were asked.
    metric : str
    periods : mapping of names to Decision
        Of each period, at a level that holds for all of them together; empty if they were not asked for.
    ab_test : Decision, optional
        Of the same two rankers by their own sessions; what is missing is counted in sessions of the whole log.
    notes : tuple of str
        What else is to be known, in sentences.
    red : tuple of str
        Checks that are red in the report on the log, if one was given: not to be used before they are mended.
    """

    answer: Answer
    support: float
    sessions_more: float
    smallest: float
    level: float
    n_sessions: int
    n_clicks: int
    n_queries: int
    metric: str
    periods: Mapping[Any, Decision] = field(default_factory=dict)
    ab_test: Decision | None = None
    notes: tuple[str, ...] = ()
    red: tuple[str, ...] = ()

    def __repr__(self) -> str:
        answer = f"not to be used, {self.answer}" if self.red else self.answer
        return f"Decision({answer}: {self.metric} {self._numbers} a session, δ = {self.smallest:g})"

    def __str__(self) -> str:
        return self.summary

    @property
    def _numbers(self) -> str:
        return f"{self.difference:+.3g} [{self.interval[0]:.3g}, {self.interval[1]:.3g}]"

    @property
    def summary(self) -> str:
        """What was asked, the answer in words, what it rests on and what it leaves open: a sentence or two a line."""
        by = f", by {len(self.periods)} periods with displays of their own" if self.periods else ""
        asked = (
            f"Asked: the {self.metric} of the new ranker minus that of production, a session (+ is better), for "
            f"queries like the {self.n_queries:,} that were asked{by}."
        )
        if self.red:
            asked = f"Not to be used: the log's report is red at {', '.join(self.red)}. Do first what it asks.\n{asked}"
        said = f"{self.answer[0].upper()}{self.answer[1:]}, with δ = {self.smallest:g}"
        if self.interval == (0.0, 0.0):
            return f"{asked}\n{said}: both rankers give the same {self.metric}, whatever is clicked."
        low, high = self.interval
        lines = [asked, f"{said}: {self.difference:+.3g}, {100 * self.level:.4g} % interval {low:+.3g} to {high:+.3g}."]
        if self.answer == "better":
            lines.append("Whether it is better by δ is open.")
        if self.answer == "no difference that matters" and not low <= 0 <= high:
            lines.append(f"It is {'better' if low > 0 else 'worse'}, but by less than δ.")
        if self.answer == "undecided" and self.ab_test is None:
            lines.append(self._what_is_missing())
        if self.unseen != (0.0, 0.0):
            lines.append(
                f"Documents that were never shown could add {self.unseen[0]:+.3g} to {self.unseen[1]:+.3g}, which the "
                f"interval holds, each end with an error of its own; chance alone makes {self.sampling[0]:+.3g} to "
                f"{self.sampling[1]:+.3g}. They have {1 - self.support:.1%} of the new ranker's weight."
            )
        for name, one in self.periods.items():
            lines.append(f"Period {name}: {one._numbers}, {one.answer}.")
        if self.ab_test is not None:
            lines.append(
                "A/B test, by the clicks of each ranker's own sessions, query by query and by the same curve: "
                f"{self.ab_test._numbers}, {self.ab_test.answer}."
            )
            if self.ab_test.answer == "undecided":
                lines.append(self.ab_test._what_is_missing())
            if low > self.ab_test.interval[1] or high < self.ab_test.interval[0]:
                lines.append("The two intervals exclude each other: decide by neither before you know which is wrong.")
        told = f"{self.share_of_theta:.0%} of the variance is that of θ̂" if self.share_of_theta > 0 else "θ is taken "
        told += "" if self.share_of_theta > 0 else "as known"
        lines += [
            *self.notes,
            f"The queries amount to {self.effective_queries:,.0f} of equal weight. The interval is for queries like "
            "these; were exactly these asked again, a narrower one would do.",
            f"{self.n_sessions:,} sessions with {self.n_clicks:,} clicks; where the rankers differ, they are worth "
            f"{self.effective_clicks:,.0f} clicks of equal weight; {told}.",
        ]
        return "\n".join(lines)

    def _what_is_missing(self) -> str:
        more = f"some {self.sessions_more:,.0f} sessions more"
        if 0 < self.effective_clicks < LEAST_CLICKS:
            return (
                f"Not enough data: {LEAST_CLICKS} clicks of equal weight where the rankers differ are the least that "
                f"an interval is made of; {more} would have them."
            )
        if math.isfinite(self.sessions_more):
            among = " among shown documents" if self.unseen != (0.0, 0.0) else ""
            return (
                f"Not enough data: {more} would show a difference of δ{among} with probability {POWER:g}, if they ask "
                "other queries like these; of the same queries it takes more."
            )
        sure = answer_of(*self.sampling, self.smallest) != "undecided"
        if sure or hides_the_answer(self, smallest=self.smallest):
            return (
                "However many sessions come, what was never shown leaves it open: show it, by shuffling deeper in a "
                "small share of the sessions, or say how attractive a document can be, by ceiling=…."
            )
        if self.effective_queries > 1 and math.isfinite(self.standard_error):
            return "Not enough data: θ̂ is too uncertain for δ, however many sessions come; give θ̂ more sessions."
        return "Not enough data: fewer than two queries have clicks where the rankers differ; no spread can be told."
