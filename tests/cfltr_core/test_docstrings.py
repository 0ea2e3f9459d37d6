"""Every public name explains its arguments and shows, in an example that runs by itself, how it is used.

Public is what stands in an ``__all__``, and what a user holds who uses it: the classes of this package that public
functions return and public classes keep.  ``pytest --doctest-modules`` runs the examples and compares what they print;
here they must import what they use, so that a reader can copy them from a page.
"""

import builtins
import doctest
import inspect
import re
import symtable
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

import pytest

import cfltr_book.data.letor
import cfltr_book.theory
import cfltr_core

HEADING = re.compile(r"^Examples\n-+$", re.MULTILINE)
# Below *Parameters*, up to the next heading; in it, the names of an entry stand at the margin, before a colon.
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^([\w*]+(?:, \w+)*)(?: :.*)?$", re.MULTILINE)
LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
REFERENCE = re.compile(r":(?:func|meth):`~?(?:[\w.]*\.)?(\w+)`")
FINDER = doctest.DocTestParser()


def text_of(thing: Any) -> str:
    """The docstring without its examples; none is inherited."""
    return HEADING.split(inspect.cleandoc(thing.__doc__ or ""))[0]


def examples_of(thing: Any) -> list[doctest.Example]:
    """What stands below the heading *Examples*; prompts elsewhere do not count."""
    parts = HEADING.split(inspect.cleandoc(thing.__doc__ or ""))
    return FINDER.get_examples(parts[1]) if len(parts) == 2 else []


def code_of(thing: Any) -> str:
    return "".join(example.source for example in examples_of(thing))


def output_of(thing: Any) -> str:
    return "".join(example.want for example in examples_of(thing))


def is_ours(thing: Any) -> bool:
    return isinstance(thing, type) and thing.__module__.startswith(("cfltr_core", "cfltr_book"))


def named_in(annotation: Any, module: str) -> Iterator[type]:
    """The classes of this package that an annotation names."""
    for word in re.findall(r"\w+", annotation if isinstance(annotation, str) else ""):
        found = vars(sys.modules[module]).get(word)
        if is_ours(found):
            yield found


EXPORTED = {
    name: getattr(package, name)
    for package in (cfltr_core, cfltr_book, cfltr_book.theory, cfltr_book.data.letor)
    for name in package.__all__
}
FUNCTIONS = {name: thing for name, thing in EXPORTED.items() if isinstance(thing, FunctionType)}
CONSTANTS = sorted(name for name, thing in EXPORTED.items() if not isinstance(thing, (type, FunctionType)))


def held() -> dict[str, type]:
    """Public classes, those that functions return and constants hold, and those that classes keep in their fields."""
    waiting = [thing for thing in EXPORTED.values() if isinstance(thing, type)]
    for function in FUNCTIONS.values():
        waiting += named_in(inspect.signature(function).return_annotation, function.__module__)
    for name, module in list(sys.modules.items()):
        if name.startswith(("cfltr_core.", "cfltr_book.")):
            for constant in set(CONSTANTS) & set(inspect.get_annotations(module)):
                waiting += named_in(inspect.get_annotations(module)[constant], name)
    out: dict[str, type] = {}
    while waiting:
        kind = waiting.pop()
        if kind.__name__ in out or kind.__name__.startswith("_"):
            continue
        out[kind.__name__] = kind
        for annotation in inspect.get_annotations(kind).values():
            waiting += named_in(annotation, kind.__module__)
    return dict(sorted(out.items()))


CLASSES = held()


def members_of(kind: type) -> Iterator[tuple[str, Any, type]]:
    """``(name, function, family)`` of each public method and property; the family is the base that began it."""
    ours = [base for base in kind.__mro__ if is_ours(base)]
    for name in sorted({name for base in ours for name in vars(base) if not name.startswith("_")}):
        owners = [base for base in ours if name in vars(base)]
        thing = vars(owners[0])[name]
        function = thing.fget if isinstance(thing, property) else getattr(thing, "__func__", thing)
        if isinstance(function, FunctionType):
            yield name, function, owners[-1]


MEMBERS = {
    f"{kind.__name__}.{name}": (kind, name, function, family)
    for kind in CLASSES.values()
    for name, function, family in members_of(kind)
}


def parameters_of(thing: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def explained_by(text: str) -> set[str]:
    """The words that are entries of the parameters, or stand in the text as ``code``."""
    marked = LITERAL.findall(text)
    for section in SECTION.findall(text):
        marked += ENTRY.findall(section)
    return {word for part in marked for word in re.findall(r"\w+", part)}


def unexplained(parameters: list[str], *texts: str, shared: Mapping[str, Any]) -> list[str]:
    """The parameters that none of ``texts`` explains, nor the docstring of a function that these refer to."""
    known = set().union(*map(explained_by, texts))
    for text in texts:
        known |= set().union(
            *(explained_by(text_of(shared[name])) for name in REFERENCE.findall(text) if name in shared)
        )
    return [name for name in parameters if name not in known]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_an_example_and_explains_its_parameters(name: str) -> None:
    function = FUNCTIONS[name]
    assert re.search(rf"\b{name}\(", code_of(function)), f"{name}: the docstring has no Examples in which it is called"
    missing = unexplained(parameters_of(function), text_of(function), shared=FUNCTIONS)
    assert not missing, f"{name}: the docstring says nothing of {missing}"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_an_example_and_explains_its_fields(name: str) -> None:
    kind = CLASSES[name]
    makers = [FUNCTIONS[word] for word in REFERENCE.findall(text_of(kind)) if word in FUNCTIONS]
    if name in EXPORTED:
        shown = re.search(rf"\b{name}\b", code_of(kind) + output_of(kind)) is not None
    else:
        shown = any(map(code_of, (kind, *makers)))
    assert shown or inspect.isabstract(kind), f"{name}: give Examples, or name the :func: that makes it and has them"
    bases = [text_of(base) for base in kind.__mro__ if is_ours(base)]
    if not inspect.isabstract(kind):
        missing = unexplained(parameters_of(kind), *bases, shared=FUNCTIONS)
        assert not missing, f"{name}: the docstring says nothing of {missing}"


@pytest.mark.parametrize("name", MEMBERS)
def test_a_method_explains_its_parameters(name: str) -> None:
    kind, method, function, family = MEMBERS[name]
    assert function.__doc__, f"{name} has no docstring"
    texts = [text_of(vars(base)[method]) for base in kind.__mro__ if is_ours(base) and method in vars(base)]
    missing = unexplained(parameters_of(function), *texts, text_of(family), shared=FUNCTIONS)
    assert not missing, f"{name}: no docstring of it says anything of {missing}"


def test_every_method_is_used_in_an_example_of_its_family() -> None:
    unused = {f"{family.__name__}.{method}" for _, method, _, family in MEMBERS.values()}
    for kind, method, function, family in MEMBERS.values():
        makers = [FUNCTIONS[word] for word in REFERENCE.findall(text_of(kind)) if word in FUNCTIONS]
        if any(re.search(rf"\.{method}\b", code_of(thing)) for thing in (kind, function, *makers)):
            unused.discard(f"{family.__name__}.{method}")
    assert sorted(unused) == []


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_used_in_an_example(name: str) -> None:
    assert any(
        re.search(rf"\b(cf|book)\.{name}\b", code_of(thing)) for thing in (*FUNCTIONS.values(), *CLASSES.values())
    )


def borrowed_by(examples: list[doctest.Example]) -> set[str]:
    """The names that examples use and neither define nor import: where they are copied, they are not there."""
    top = symtable.symtable("".join(example.source for example in examples), "examples", "exec")
    own = {found.get_name() for found in top.get_symbols() if found.is_assigned() or found.is_imported()}
    tables, used = [top], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {found.get_name() for found in table.get_symbols() if table is top or found.is_global()}
    return used - own - {*dir(builtins)}


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_examples_can_be_copied(name: str) -> None:
    """That they run, and print what they say, is tried where they stand."""
    assert borrowed_by(examples_of({**FUNCTIONS, **CLASSES}[name])) == set(), name


# --- the checks themselves ----------------------------------------------------------------------------


def vague(scores: list[float], cutoff: int, ridge: float) -> None:
    """Ridge regression of scores, with ridge > 0.

    Parameters
    ----------
    scores : (n,)
        Their cutoff : is explained elsewhere.

    Examples
    --------
    >>> other = math.floor(2.5)
    """


def sharing(scores: list[float], cutoff: int) -> None:
    """Of the first ``cutoff``; arguments are those of :func:`vague`.

    Example: >>> sharing([1], 1)
    """


def test_what_is_not_explained_is_found() -> None:
    assert unexplained(parameters_of(vague), text_of(vague), shared={}) == ["cutoff", "ridge"]
    assert unexplained(parameters_of(sharing), text_of(sharing), shared={"vague": vague}) == []
    assert unexplained(["score"], text_of(vague), shared={}) == ["score"], "a part of a word is no explanation"
    assert (len(examples_of(vague)), examples_of(sharing)) == (1, []), "only a section of examples counts"
    assert borrowed_by(examples_of(vague)) == {"math"}


def test_classes_that_users_hold_are_found() -> None:
    assert {"ClickLog", "Estimate", "LinearFit", "CCPFit", "AliasTable", "Corpus", "Scale", "ReaderOptions"} <= set(
        CLASSES
    )
    assert {"Estimate.interval", "LinearFit.decision_function", "MixturePolicy.sample", "Runs.average"} <= set(MEMBERS)
    assert MEMBERS["MixturePolicy.exposure"][3].__name__ == "LoggingPolicy"
