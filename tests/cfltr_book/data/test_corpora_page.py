"""The page on the corpora says what its script measures: cheap rows are measured again, by loops."""

import importlib
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import profile_loops
import pytest

from cfltr_book import load_corpus

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "chapters" / "corpora.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("benchmarks.corpus_report")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| \n").split(" | ")]


def rows_after(text: str, words: str = "") -> list[list[str]]:
    """The body of the first table after ``words``."""
    lines = text[text.index(words) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| ---"))
    out = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        out.append(cells(line))
    return out


def test_every_block_is_there_and_filled(report: ModuleType) -> None:
    marks = re.findall(r"<!-- (block|end): (\w+) -->", TEXT)
    assert marks == [(kind, name) for name in report.BLOCKS for kind in ("block", "end")]
    for name in report.BLOCKS:
        assert report.block(TEXT, name).count("\n|") > 3
    with pytest.raises(ValueError, match="has no block 'other'"):
        report.block(TEXT, "other")


def test_the_page_names_every_corpus(report: ModuleType) -> None:
    assert [row[0].strip("`") for row in rows_after(report.block(TEXT, "useful"))] == list(report.NAMES)
    for name in report.NAMES:
        assert f"`{name}`" in TEXT


def test_shape_block_measured_again(report: ModuleType) -> None:
    """List lengths and label shares counted by loops over the documents of seeds 0–2."""
    page = rows_after(report.block(TEXT, "shape"))
    assert page[-2:] == [["Yahoo, published", "23", "26%", "–", "–"], ["Istella-s, published", "103", "89%", "–", "–"]]
    assert len(page) == len(report.NAMES) + 2
    for name, row in [*zip(report.NAMES, page, strict=False)][:2]:
        sizes, zeros, relevant, without = [], 0, 0, 0
        for seed in (0, 1, 2):
            data = load_corpus(name, "ci", seed=seed).train
            grades, offsets = data.relevance.tolist(), data.offsets.tolist()
            for start, end in pairwise(offsets):
                hits = sum(1 for grade in grades[start:end] if grade >= data.threshold)
                zeros += grades[start:end].count(0)
                relevant += hits
                without += hits == 0
                sizes.append(end - start)
        total = sum(sizes)
        assert row == [
            f"`{name}`",
            f"{total / len(sizes):.0f} ({min(sizes)}–{max(sizes)})",
            f"{zeros / total:.0%}",
            f"{relevant / total:.0%}",
            f"{without / len(sizes):.0%}",
        ]


def test_usefulness_holds_on_the_page(report: ModuleType) -> None:
    """The conditions, read back from what the page prints for each generated corpus."""
    for name, *ratios, gain in rows_after(report.block(TEXT, "useful")):
        if name == "`digits`":
            continue
        for ratio in ratios:
            assert 0.3 <= float(ratio.split()[0]) <= 0.8
        mean, low, high = map(float, re.findall(r"-?\d+\.\d+", gain))
        assert low <= mean <= high
        assert mean >= 0.01
        assert low > 0


def test_published_maxima_are_powers_of_whole_numbers(report: ModuleType) -> None:
    """J20, Table 2, as the page turns it back; the sources are typed once more here."""
    yahoo = {0.5: 11.79, 0.75: 40.70, 1.0: 129.00, 1.25: 388.91, 1.5: 1265.55}
    istella = {0.5: 13.04, 0.75: 48.53, 1.0: 177.00, 1.25: 645.60, 1.5: 2081.04}
    page = rows_after(report.block(TEXT, "weights"))
    assert page == [[f"{g:g}", f"{yahoo[g] ** (1 / g):.2f}", f"{istella[g] ** (1 / g):.2f}"] for g in yahoo]
    for printed in (yahoo, istella):
        for gamma, largest in printed.items():
            whole = round(largest ** (1 / gamma))
            # Two decimals are printed.
            assert abs(whole**gamma - largest) <= 0.005 + 1e-9
    # With lists of at most 139 documents: impossible as printed.
    assert round(yahoo[0.75] ** (1 / 0.75)) == 140


def test_the_fit_finds_the_truth_whichever_it_is(report: ModuleType) -> None:
    """Weights made with either curve are fitted by that curve, at the right quality, and by the other not."""
    weights = report.corpus_weights
    data = load_corpus("istella-like", "smoke", seed=0).train
    displayed = weights.displayed_by_quality(data, data.binary, np.random.default_rng(0))
    truth = int(np.flatnonzero(np.isclose(weights.QUALITIES, 0.5))[0])
    attraction, place = displayed[truth].tolist(), list(range(1, displayed.shape[1] + 1))
    assert sum(attraction) == pytest.approx(sum(1.0 if grade >= 3 else 0.1 for grade in data.relevance.tolist()))
    for shift in (0.0, 1.0):
        made = tuple(profile_loops.weight_moments(attraction, place, gamma, shift)[0] for gamma in weights.GAMMAS)
        right, wrong = (weights.fit(displayed, s, made) for s in (shift, 1.0 - shift))
        assert right.worst < 0.002
        assert right.quality == pytest.approx(0.5, abs=0.01)
        np.testing.assert_allclose(right.fitted, made, rtol=0.002)
        assert wrong.worst > 0.05
        free, bound = (weights.any_logger(data, s, made) for s in (shift, 1.0 - shift))
        # More freedom, no larger error; and still not the other curve.
        assert free < 1e-3
        assert 0.03 < bound <= wrong.worst + 1e-9


def test_errata_claim_holds_on_one_population(report: ModuleType) -> None:
    """Seed 0 of both collections: one logger fits with the offset, none that is at least random without."""
    for name in report.corpus_weights.MEAN_WEIGHT:
        with_offset, as_printed = (
            report.corpus_weights.fits(name, 0, shift)["relevance"].worst for shift in (1.0, 0.0)
        )
        assert with_offset < 0.03
        assert as_printed > 0.1
