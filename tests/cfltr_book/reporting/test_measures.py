"""Claims as functions: a module of evidence is measured section by section, and says what is wrong with it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import oracles
import pytest
from claim_files import entry, put

import cfltr_book.evidence
from cfltr_book import Run
from cfltr_book.reporting import claim_registry, measures

RUN = Run("smoke", "digits", 3)
TOY = """
from cfltr_book.evidence import measures


@measures("toy-second", section="naive")
def second(run):
    return {"left": [run.seed], "right": [3.0]}


@measures("toy-elsewhere", section="other")
def elsewhere(run):
    raise AssertionError("not of this section")


@measures("toy-first", section="naive")
def first(run):
    return {"left": [1.0], "right": [2.0]}
"""


def claim_of(id: str, chapter: str = "91") -> dict[str, Any]:
    return entry(id, "identity", chapter=chapter, statement=f"{id} is so.", corpora=["digits"], tolerance=1e-9)


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the module ``ch91`` of a toy book that has three claims, and a fourth in another chapter."""
    claims = map(claim_of, ("toy-first", "toy-second", "toy-elsewhere"))
    put(monkeypatch, *claims, claim_of("toy-far", "92"))
    monkeypatch.setattr(measures, "_measures", {})
    monkeypatch.setattr(cfltr_book.evidence, "__path__", [str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> None:
        monkeypatch.delitem(sys.modules, "cfltr_book.evidence.ch91", raising=False)
        (tmp_path / "ch91.py").write_text(text, encoding="utf-8")

    write(TOY)
    monkeypatch.setitem(sys.modules, "cfltr_book.evidence.ch91", ModuleType("forgotten after the test"))
    monkeypatch.delitem(sys.modules, "cfltr_book.evidence.ch91")
    return write


def test_the_claims_of_a_section_are_measured_and_kept_in_their_order(
    evidence: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path / "run"))
    shown = RUN.evidence("ch91", "naive")
    assert [(one.id, one.verdict) for one in shown.results] == [
        ("toy-second", "supported"),
        ("toy-first", "contradicted"),
    ]
    assert str(shown) == str(RUN.evidence(*(RUN.claim(one.id, **one.arrays(RUN)) for one in measured("naive"))))
    kept = {name: json.loads(text) for name, text in oracles.texts(str(tmp_path / "run")).items()}
    assert {name: record["arrays"] for name, record in kept.items()} == {
        "toy-second.json": {"left": [3.0], "right": [3.0]},
        "toy-first.json": {"left": [1.0], "right": [2.0]},
    }


def measured(section: str) -> list[measures.Measure]:
    return measures.measures_of("ch91", section)


def test_a_measure_knows_where_it_stands(evidence: Callable[[str], None]) -> None:
    for one in measured("naive"):
        file, line = one.place
        assert file == "cfltr_book/evidence/ch91.py"
        assert TOY.splitlines()[line - 1] == f'@measures("{one.id}", section="naive")'


def test_a_module_that_is_corrected_is_imported_again(evidence: Callable[[str], None]) -> None:
    assert len(measured("naive")) == 2
    evidence(TOY.replace("[2.0]", "[1.0]"))
    assert [one.verdict for one in RUN.evidence("ch91", "naive").results] == ["supported", "supported"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("toy-first", "toy-third", "id is 'toy-third': no such claim; add it to"),
        ("toy-first", "toy-second", r"toy-second is measured twice, by second and cfltr_book\.evidence\.ch91\.first"),
        ("toy-first", "toy-far", r"ch91\.first measures toy-far, a claim of chapter 92: move it to .*ch92"),
        ('{"left": [1.0], "right": [2.0]}', "[1.0]", "toy-first: first returned a list, expected a mapping with the"),
        ('"right": [2.0]', '"wrong": [2.0]', r"toy-first: a claim of kind identity takes \('left', 'right'\)"),
        ('section="naive"', 'section="late"', "section is 'naive': the sections of ch91.py are late, other"),
    ],
)
def test_what_is_wrong_with_a_module_is_named(
    evidence: Callable[[str], None], old: str, new: str, message: str
) -> None:
    evidence(TOY.replace(old, new))
    with pytest.raises(ValueError, match=message):
        RUN.evidence("ch91", "naive")


def test_a_withdrawn_claim_is_measured_no_more(
    evidence: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_registry, "withdrawn", lambda: {"toy-gone": None})
    evidence(TOY.replace("toy-first", "toy-gone"))
    for measure in (lambda: RUN.evidence("ch91", "naive"), lambda: claim_registry.check_measured("toy-gone")):
        with pytest.raises(ValueError, match="id is 'toy-gone': this claim was withdrawn"):
            measure()


def test_a_module_that_does_not_exist_is_named_and_one_that_it_lacks_stays_so(evidence: Callable[[str], None]) -> None:
    with pytest.raises(ValueError, match=r"module is 'ch99': there is no cfltr_book/evidence/ch99\.py"):
        RUN.evidence("ch99", "naive")
    evidence(f"import no_such_package\n{TOY}")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        RUN.evidence("ch91", "naive")
