"""What a run is asked for: the three parameters that every chapter takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


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
