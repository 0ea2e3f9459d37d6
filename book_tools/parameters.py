"""What a run is asked for: the three parameters that every chapter takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from book_tools.errors import UsageError


@dataclass(frozen=True)
class Parameters:
    """Scale, corpus and seed of a run; the defaults are those written in the chapters."""

    scale: str = "ci"
    corpus: str = "yahoo-like"
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as papermill and the manifest take them."""
        return asdict(self)

    def __str__(self) -> str:
        return f"scale {self.scale}, corpus {self.corpus}, seed {self.seed}"


KNOWN = tuple(field.name for field in fields(Parameters))


def with_assignments(parameters: Parameters, assignments: list[str]) -> Parameters:
    """Return ``parameters`` changed by ``NAME=VALUE`` strings; an unknown name is an error.

    papermill itself only logs a line when a notebook does not know a parameter, so a slip would go unseen.
    """
    values = parameters.as_dict()
    problems = []
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            problems.append(f"--parameter {assignment}: expected NAME=VALUE, for example seed=1")
        elif name not in KNOWN:
            problems.append(
                f"--parameter {assignment}: the chapters have no parameter {name!r}; use one of {', '.join(KNOWN)}"
            )
        else:
            values[name] = value
    try:
        values["seed"] = int(values["seed"])
    except ValueError:
        problems.append(f"seed={values['seed']!r}: the seed is a whole number, 0 for the numbers on the site")
    if problems:
        raise UsageError(*problems)
    return Parameters(**values)
