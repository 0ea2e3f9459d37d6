"""The health of a click log as a table: a line a check, with its number and what to do."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["green", "amber", "red"]

# Where so many of a ranker's sessions are not as chance would have made them, as much of a page's worth is in doubt.
MATTERS = 0.03


@dataclass(frozen=True)
class LogCheck:
    """One line of a :class:`LogReport`.

    Parameters
    ----------
    check : str
        What was checked.
    status : str
        ``"green"``: nothing was seen; ``"amber"``: mind the remedy, or it could not be checked; ``"red"``: estimates
        from this log are wrong until the remedy is carried out.
    value : str
        The number that decides, in a sentence.
    remedy : str
        What to do; empty where there is nothing to do.
    p_value : float
        How likely chance alone brings so much in a sound log; NaN for a check that is no test.

    Examples
    --------
    >>> from cfltr_core.logs.log_report import LogCheck
    >>> LogCheck(check="bots", status="green", value="No session clicks everything.", p_value=0.4).remedy
    ''
    """

    check: str
    status: Status
    value: str
    remedy: str = ""
    p_value: float = float("nan")


def check_line(
    check: str, p_value: float, *, alpha: float, value: str, remedy: str, status: Status = "red"
) -> LogCheck:
    """The line of a test: of this ``status`` if ``p_value`` is below ``alpha``, else green and without a ``remedy``.

    Examples
    --------
    >>> from cfltr_core.logs.log_report import check_line
    >>> check_line("bots", 0.2, alpha=0.003, value="No session clicks everything.", remedy="Leave them out.").status
    'green'
    """
    speaks = p_value < alpha
    return LogCheck(check, status if speaks else "green", value, remedy if speaks else "", p_value)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogReport:
    """What :func:`check_log` says of a click log: ``print`` shows it, ``frame`` has it as a table.

    Parameters
    ----------
    lines : tuple of LogCheck
        One for each check.
    level : float
        With at most this probability, nominally, a sound log has a line that chance alone turned amber or red.

    Examples
    --------
    >>> from cfltr_core.logs.log_report import LogCheck, LogReport
    >>> report = LogReport(lines=(
    ...     LogCheck(check="links of ranks", status="green", value="All ranks from 1 to 3 are linked."),
    ...     LogCheck(check="period", status="amber", value="There is no period.", remedy="Name the column of the day."),
    ... ), level=0.03)
    >>> report
    1 of 2 checks need attention: 0 red, 1 amber.
    <BLANKLINE>
    AMBER  period: There is no period.
           → Name the column of the day.
    green  links of ranks: All ranks from 1 to 3 are linked.
    >>> report.worst, report.red, report.frame.columns.tolist()
    ('amber', (), ['check', 'status', 'value', 'remedy'])
    """

    lines: tuple[LogCheck, ...]
    level: float

    @property
    def worst(self) -> Status:
        """The worst status of all lines."""
        have = {line.status for line in self.lines}
        return "red" if "red" in have else "amber" if "amber" in have else "green"

    @property
    def red(self) -> tuple[str, ...]:
        """The names of the checks that are red."""
        return tuple(line.check for line in self.lines if line.status == "red")

    @property
    def frame(self) -> pd.DataFrame:
        """The lines as a data frame with the columns ``check``, ``status``, ``value`` and ``remedy``."""
        import pandas as pd

        names = ["check", "status", "value", "remedy"]
        return pd.DataFrame([[getattr(line, name) for name in names] for line in self.lines], columns=names)

    def _sorted(self) -> list[LogCheck]:
        return sorted(self.lines, key=lambda line: ("red", "amber", "green").index(line.status))

    def __repr__(self) -> str:
        red, amber = (sum(line.status == status for line in self.lines) for status in ("red", "amber"))
        out = [
            f"{red + amber} of {len(self.lines)} checks need attention: {red} red, {amber} amber."
            if red + amber
            else f"All {len(self.lines)} checks are green.",
            "",
        ]
        for line in self._sorted():
            name = line.status if line.status == "green" else line.status.upper()
            out.append(f"{name:5s}  {line.check}: {line.value}")
            out += [f"       → {line.remedy}"] if line.remedy else []
        return "\n".join(out)

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td style='text-align: left'>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in ((line.check, line.status, line.value, line.remedy) for line in self._sorted())
        )
        head = "".join(f"<th style='text-align: left'>{name}</th>" for name in self.frame.columns)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
