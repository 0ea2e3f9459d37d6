"""Which function measures which claim; the functions stand in :mod:`cfltr_book.evidence`, one module a chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from cfltr_book.reporting import claim_registry

PACKAGE = "cfltr_book.evidence"
Measuring = TypeVar("Measuring", bound=Callable[[Any], Mapping[str, ArrayLike]])


@dataclass(frozen=True)
class Measure:
    """The claim ``id`` is measured by ``function``, in the section ``section`` of its chapter."""

    id: str
    section: str
    function: Callable[[Any], Mapping[str, ArrayLike]]

    @property
    def module(self) -> str:
        """The module of the function, by its full name."""
        return self.function.__module__

    @property
    def place(self) -> tuple[str, int]:
        """The file of the function below the top folder of the repository, and its first line, counted from 1."""
        return f"{self.module.replace('.', '/')}.py", self.function.__code__.co_firstlineno

    def arrays(self, run: Any) -> Mapping[str, ArrayLike]:
        """What the function measures for ``run``: the arrays of the claim's kind, by name.

        Raises
        ------
        ValueError
            If the function returns anything but a mapping.
        """
        found = self.function(run)
        if not isinstance(found, Mapping):
            kind = claim_registry.registry()[self.id].kind
            raise ValueError(
                f"{self.id}: {self.function.__name__} returned a {type(found).__name__}, expected a mapping with the "
                f"arrays {', '.join(claim_registry.ARRAYS[kind])}"
            )
        return found


# Every measure whose module has been imported, by the id of its claim, in the order in which they stand.
_measures: dict[str, Measure] = {}


def measures(id: str, *, section: str) -> Callable[[Measuring], Measuring]:
    """Let the decorated function measure a claim: it takes a run and returns the arrays of the claim's kind.

    Parameters
    ----------
    id : str
        A claim of the chapter NN, where the function stands in ``cfltr_book/evidence/chNN.py``.
    section : str
        By this name the chapter asks for the claims that one table shows (:meth:`cfltr_book.Run.evidence`).

    Raises
    ------
    ValueError
        When the module is imported: for an id that the registry does not have, a claim of another chapter, and a claim
        that another function measures too.
    """

    def register(function: Measuring) -> Measuring:
        measure = Measure(id, section, function)
        name = f"{measure.module}.{function.__name__}"
        claim_registry.check_measured(id)
        chapter = claim_registry.registry()[id].chapter
        if measure.module != f"{PACKAGE}.ch{chapter}":
            raise ValueError(f"{name} measures {id}, a claim of chapter {chapter}: move it to {PACKAGE}.ch{chapter}")
        # A module that is imported again, as after an error, brings each function a second time.
        before = _measures.pop(id, measure)
        if before.function.__name__ != function.__name__:
            raise ValueError(f"{id} is measured twice, by {before.function.__name__} and {name}")
        _measures[id] = measure
        return function

    return register


def measure_of(id: str) -> Measure | None:
    """The measure of the claim ``id``, or None where a cell of its chapter measures it."""
    module = f"{PACKAGE}.ch{claim_registry.registry()[id].chapter}"
    if find_spec(module):
        import_module(module)
    return _measures.get(id)


def measures_of(module: str, section: str) -> list[Measure]:
    """The measures of one section of ``cfltr_book/evidence/<module>.py``, in the order in which they stand.

    Raises
    ------
    ValueError
        Without such a module, and for a section in which nothing is measured.
    """
    name = f"{PACKAGE}.{module}"
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ValueError(f"module is {module!r}: there is no cfltr_book/evidence/{module}.py") from None
    all_here = [measure for measure in _measures.values() if measure.module == name]
    found = [measure for measure in all_here if measure.section == section]
    if not found:
        sections = ", ".join(dict.fromkeys(measure.section for measure in all_here))
        raise ValueError(f"section is {section!r}: the sections of {module}.py are {sections or 'none'}")
    return found
