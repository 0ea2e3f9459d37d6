"""Claims of the papers, each with a verdict that is computed from what a chapter measured.

A chapter calls :func:`claim` with arrays, one number per seed; the verdict is computed here and cannot be passed in.
What the registry states before, which arrays each kind of claim takes, and when it is *supported*, stands in
:mod:`cfltr_book.reporting.claim_registry`.

*contradicted* is an interval wholly on the other side; an interval that crosses is *inconclusive*.  So an ordering
whose effect is real but smaller than ``margin`` is contradicted: the claim is that the effect matters.

A few seeds may all give the same value.  Their Student interval then has no width, and would judge as if the value
were known exactly.  With fewer than ``FEW_UNITS`` of them the verdict is *inconclusive* instead, the interval unbounded
as for one seed, and the result says why (:func:`cfltr_book.reporting.intervals.look`).  Rounding alone decides nothing.

Numbers that allow no verdict (none at all, not finite, without a logarithm) stop a chapter where the claim must hold.
Elsewhere the claim is recorded with *no verdict* and the reason, and the chapter goes on.

The record of a claim holds what was measured and nothing that the registry says of it: a page or a check that needs
the statement, the expected verdict or where it must hold reads the registry as it is then.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import ARRAYS, EXACT, SCALE_ORDER, VERDICTS, Claim, level_of
from cfltr_book.reporting.intervals import below, log_slopes, look
from cfltr_book.reporting.wording import describe, required, spelt_out
from cfltr_core.checks import FloatArray
from cfltr_core.files import write_json

# Not among the verdicts, because none may be expected: the numbers did not allow one.
NO_VERDICT = "no verdict"


class NotMeasured(ValueError):
    """The numbers of a claim allow no verdict: there are none, or some are not finite or have no logarithm."""


@dataclass(frozen=True)
class ClaimResult:
    """A ``verdict`` on the claim ``id``, with the ``effect`` that it rests on and its ``interval`` at ``level``.

    ``seeds`` is the number of values, and ``units`` how many of these count by themselves.  ``reason`` says why there
    is no verdict, or why a few equal values leave the claim open, and is otherwise empty.  :func:`claim` makes it.

    Examples
    --------
    >>> import cfltr_book as book
    >>> result = book.claim("N-naive-expectation", scale="smoke", corpus="digits", left=[1 / 3], right=[2 / 6])
    >>> result.markdown().startswith("**Claim `N-naive-expectation`: supported.**")
    True
    >>> result.measured
    'largest |left − right| 0 in 1 case; must not exceed 1e-12'
    >>> result.threshold == result.spec.tolerance
    True
    """

    id: str
    verdict: str
    effect: float
    interval: tuple[float, float] | None
    level: float | None
    seeds: int
    units: int | None = None  # as many values the interval has seen: fewer than seeds where these share folds
    reason: str = ""

    def _repr_mimebundle_(self, **selection: Any) -> tuple[dict[str, str], dict[str, Any]]:
        # The mark lets the pages write the text anew from the registry, without running the chapter again.
        return {"text/markdown": self._repr_markdown_(), "text/plain": repr(self)}, {"cfltr": {"claim": self.id}}

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def markdown(self, *, scoreboard: str | None = None, anchor: bool = False) -> str:
        """The claim with its verdict as a paragraph.

        ``scoreboard`` is the address of a page on which every claim has the anchor ``claim-<id>``: the id becomes a
        link to it.  With ``anchor`` the paragraph bears that anchor itself.
        """
        spec = self.spec
        name = f"`{self.id}`"
        if scoreboard is not None:
            name = f'<a href="{scoreboard}#claim-{self.id}">{name}</a>'
        if anchor:
            name = f'<span id="claim-{self.id}"></span>{name}'
        return f"**Claim {name}: {self.verdict}.** {spec.statement} *({spelt_out(spec.source)}; {self.measured})*"

    @property
    def spec(self) -> Claim:
        """The claim itself."""
        return claim_registry.registry()[self.id]

    @property
    def threshold(self) -> float:
        """The tolerance or margin that was set before."""
        return self.spec.tolerance if self.spec.kind in EXACT else self.spec.margin

    @property
    def measured(self) -> str:
        """The effect in words, with its interval and what was required, or why there is no verdict."""
        spec = self.spec
        if self.verdict == NO_VERDICT:
            return self.reason
        text = f"{describe(spec)} {self.effect:.3g}"
        if self.reason:
            text += f"; {self.reason}"
        elif self.interval is not None and self.level is not None:
            ends = "[{:.3g}, {:.3g}]".format(*self.interval).replace("inf", "∞")
            shared = "" if self.units in (None, self.seeds) else f" in {self.units} folds"
            text += f", {self.level:.1%} interval {ends} over {spec.counted(self.seeds)}{shared}"
        else:
            text += f" in {self.seeds} case{'s' * (self.seeds != 1)}"
        return f"{text}; {required(spec)}"


@dataclass(frozen=True)
class Measurement:
    """What a chapter measured for one claim, and where: the content of a claim's file.

    ``arrays`` holds lists, as JSON does; None stands for a number that was not finite.
    """

    result: ClaimResult
    scale: str
    corpus: str
    arrays: Mapping[str, Any]

    def as_record(self) -> dict[str, Any]:
        """The measurement as JSON takes it."""
        return {**asdict(self.result), "scale": self.scale, "corpus": self.corpus, "arrays": dict(self.arrays)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Measurement:
        """The measurement that :meth:`as_record` wrote; KeyError for a missing field, ValueError for a wrong verdict.

        JSON knows no infinity: an end of an interval that is null is infinite, and an effect that is null is NaN.
        """
        known = {field.name: record[field.name] for field in fields(ClaimResult)}
        outcomes = (*VERDICTS, NO_VERDICT)
        if known["verdict"] not in outcomes:
            raise ValueError(f"its verdict is {known['verdict']!r}, expected one of {', '.join(outcomes)}")
        if known["interval"] is not None:
            low, high = known["interval"]
            known["interval"] = (-math.inf if low is None else low, math.inf if high is None else high)
        if known["effect"] is None:
            known["effect"] = math.nan
        return cls(ClaimResult(**known), record["scale"], record["corpus"], dict(record["arrays"]))


def verdict_of(spec: Claim, arrays: Mapping[str, ArrayLike], *, level: float | None = None) -> ClaimResult:
    """Compute the verdict of a claim from measured arrays; ``level`` defaults to :func:`level_of`.

    Beside the arrays of its kind a statistical claim takes ``units``, a label for each seed: values of seeds that
    share a label are averaged first and count once, as in :func:`mean_interval`.  The labels stand among the arrays
    because the verdict rests on them too: whoever has the arrays of a record can compute it again.

    Raises
    ------
    NotMeasured
        A ValueError: there are no values, some are not finite, or a slope is asked of values without a logarithm.
    ValueError
        For missing or unknown arrays, or shapes that disagree.
    """
    units = None if spec.kind in EXACT else arrays.get("units")
    if units is not None:
        arrays = {name: values for name, values in arrays.items() if name != "units"}
    a = _checked(spec, arrays)
    if spec.kind in EXACT:
        difference = np.subtract(*a)
        # With 0.0 added, no excess at all is printed as 0 and not as -0.
        effect = float(np.abs(difference).max() if spec.kind == "identity" else difference.max()) + 0.0
        verdict = "supported" if effect <= spec.tolerance else "contradicted"
        return ClaimResult(spec.id, verdict, effect, None, None, a[0].size)
    sample = log_slopes(*a) if spec.kind == "limit" else a[0] - a[1] if len(a) == 2 else a[0]
    used = level_of(spec) if level is None else level
    try:
        effect, low, high, n_units, reason = look(sample, used, units=units)
    except ValueError as error:
        raise ValueError(f"{spec.id}, {error}") from None
    centre = spec.value if spec.kind in ("number", "limit") else 0.0
    bottom = spec.margin if spec.kind == "ordering" else centre - spec.margin
    top = math.inf if spec.kind == "ordering" else centre + spec.margin
    verdict = _side(below(bottom, low) and below(high, top), below(high, bottom) or below(top, low))
    return ClaimResult(spec.id, verdict, effect, (low, high), used, sample.size, n_units, reason)


def judge(spec: Claim, arrays: Mapping[str, ArrayLike]) -> ClaimResult:
    """As :func:`verdict_of`; numbers that allow no verdict give a result that says so instead of an error."""
    try:
        return verdict_of(spec, arrays)
    except NotMeasured as error:
        return ClaimResult(spec.id, NO_VERDICT, math.nan, None, None, 0, reason=str(error))


def swapped(arrays: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """The arrays of an ordering claim with its two methods exchanged: its verdict must then turn round."""
    return {**arrays, "larger": arrays["smaller"], "smaller": arrays["larger"]}


def claim(id: str, *, scale: str, corpus: str, units: ArrayLike | None = None, **arrays: ArrayLike) -> ClaimResult:
    """Judge one claim in a chapter and keep the record when the book is being run.

    Parameters
    ----------
    id : str
        A claim of the registry.
    scale, corpus : str
        The chapter's parameters; the record says whether the verdict must hold on them.
    units : (n_seeds,) numbers, optional
        For statistical claims: a label for each seed, as :func:`cfltr_book.data.corpora.units_of` gives them, where the
        values come from the lists of ``corpus``.  Seeds with equal labels count once.  An exact claim holds for
        each seed by itself and takes no notice.
    **arrays
        As the table of :mod:`cfltr_book.reporting.claim_registry` says for the claim's kind; one number per seed where
        statistical.

    Raises
    ------
    ValueError
        For an unknown id or scale and for arrays that do not fit the kind; for numbers that allow no verdict only
        where the claim must hold.  Elsewhere they give the result *no verdict*, which says why.

    Examples
    --------
    >>> import cfltr_book as book
    >>> result = book.claim("N-naive-expectation", scale="smoke", corpus="digits", left=[1 / 3], right=[2 / 6])
    >>> result.verdict, result.effect
    ('supported', 0.0)
    """
    claim_registry.check_measured(id)
    if scale not in SCALE_ORDER:
        raise ValueError(f"scale is {scale!r}: choose one of {', '.join(SCALE_ORDER)}")
    spec = claim_registry.registry()[id]
    if units is not None and spec.kind not in EXACT:
        arrays["units"] = units
    result = (verdict_of if spec.gates(scale, corpus) else judge)(spec, arrays)
    folder = os.environ.get("CFLTR_RUN_DIR")
    if folder:
        lists = {name: np.asarray(values, dtype=np.float64).tolist() for name, values in arrays.items()}
        write_json(Path(folder) / "claims" / f"{id}.json", Measurement(result, scale, corpus, lists).as_record())
    return result


def _side(yes: bool, no: bool) -> str:
    return "supported" if yes else "contradicted" if no else "inconclusive"


def _checked(spec: Claim, arrays: Mapping[str, ArrayLike]) -> list[FloatArray]:
    wanted = ARRAYS[spec.kind]
    if set(arrays) != set(wanted):
        raise ValueError(f"{spec.id}: a claim of kind {spec.kind} takes {wanted}, got {tuple(arrays)}")
    out = [np.asarray(arrays[name], dtype=np.float64) for name in wanted]
    for name, values in zip(wanted, out, strict=True):
        if values.size == 0:
            raise NotMeasured(f"{spec.id}, {name}: expected finite numbers, at least one")
        if not np.isfinite(values).all():
            index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            place = f"[{', '.join(map(str, index))}]"
            raise NotMeasured(f"{spec.id}, {name}: expected finite numbers, but {name}{place} is {values[index]}")
    if spec.kind == "limit":
        if out[1].ndim != 2 or out[0].shape != out[1].shape[1:] or len(out[0]) < 3:
            raise ValueError(f"{spec.id}: expected x (m,) and errors (seeds, m) with m >= 3")
        if np.ptp(out[0]) == 0:
            raise NotMeasured(f"{spec.id}, x: all values are {out[0][0]}; a slope needs different ones")
        if (out[0] <= 0).any() or (out[1] <= 0).any():
            raise NotMeasured(f"{spec.id}: x and errors must be positive for a log-log slope")
        return out
    if len(out) == 2 and out[0].shape != out[1].shape:
        raise ValueError(f"{spec.id}: {wanted[0]} and {wanted[1]} differ in shape, {out[0].shape}, {out[1].shape}")
    if spec.kind not in EXACT and out[0].ndim != 1:
        raise ValueError(f"{spec.id}: expected one number per seed, got shape {out[0].shape}")
    return out
