"""The page of the papers' size: what kept tables answer, and what they cost."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kept_text import same_as_kept
from toy import PAGES, REPOSITORY, Toy

from book_tools.book import Book
from book_tools.site.papers_size import ASKED, _verdict, papers_size, reading_cost
from cfltr_book.legacy.kept_tables import Row, place_of, write_table


def learning_curve(seed: int, n_clicks: int, propdcg: float, weights: str = "ips") -> Row:
    rest = {"eta": 1.0, "assumed": 1.0, "weights": weights, "proprank_dcg": 0.25, "propdcg_dcg": propdcg}
    return {"seed": seed, "n_clicks": n_clicks, **rest}


Write = Callable[..., None]


@pytest.fixture
def write(toy: Toy) -> Write:
    """Write a kept table of one of the book's chapters, 07 or 15."""
    chapters: dict[str, Path] = {}

    def table(chapter: str, scale: str, name: str, rows: list[Row]) -> None:
        chapters[f"{chapter}_far"] = toy.chapter(f"{chapter}_far", "import cfltr_core as cf")
        toy.contents(*chapters, "papers_size", "scoreboard", "status")
        path = place_of(toy.root / "tests" / "reference" / "kept" / chapter, scale, "yahoo-like") / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {"scale": scale, "corpus": "yahoo-like", "seeds": sorted({int(str(row["seed"])) for row in rows})}
        cost = {"seconds_in_all": 5400.0, "peak_bytes": 3 * 2**30, "revision": "0123456789abcdef"}
        write_table(path, rows, {**about, "seeds_asked": [0, 1, 2], **cost})

    return table


def test_a_question_is_answered_at_both_sizes(toy: Toy, write: Write) -> None:
    """Also by a table that goes on in others."""
    toy.chapter("91_alpha")
    toy.contents("91_alpha")
    assert papers_size(Book(toy.root)).endswith("No table is kept.\n")
    at_ci = [learning_curve(seed, 1700, 0.25 + 0.125 * seed) for seed in (1, 2)]
    write("07", "ci", "learning-curves", [*at_ci, learning_curve(1, 1700, 9.0, weights="naive")])
    at_paper = [learning_curve(seed, 1700, 0.5 + 2**-10 * seed) for seed in (0, 1, 2)]
    write("07", "paper", "learning-curves", [*at_paper, learning_curve(0, 45000, 0.125)])
    law = [course(method, 0.5, eta=0.0, optimizer="adam") for method in ("ips", "countersample")]
    write("15", "paper", "optimizers", [course("ips", 0.5), course("countersample", 0.75), *law])
    # One seed has both methods, another one of them.
    some = [course("ips", 0.5), course("countersample", 0.375), course("biased", 0.25), course("ips", 0.5, seed=1)]
    write("15", "ci", "optimizers", [*some, *law])
    gains = [("oblivious", 0.25, 0.01), ("policy-aware", 0.75, 0.01), ("policy-aware", 0.0, 0.0)]
    rows = [{"seed": 0, "epsilon": e, "n_clicks": 1000, "gains": name, "ndcg": ndcg} for name, ndcg, e in gains]
    for scale in ("ci", "paper"):
        write("12", scale, "all-queries", rows)
    write("15", "paper", "severity", [course("ips", 0.5, eta=1.5), course("countersample", 0.625, eta=1.5)])
    # Three rates near the one chosen: a column that the table of the first seed has not.
    further = [{**course(m, v, seed=1), "near": 1e-3} for m, v in (("ips", 0.5), ("countersample", 1.0))]
    write("15", "paper", "optimizers-further", further)
    text = papers_size(Book(toy.root))
    same_as_kept(PAGES / "papers_size.md", text)
    # Two seeds: t = 12.706 on one degree of freedom, differences .125 and .25, so .1875 ± 12.706 · .0884 / √2.
    assert "| 1,700 clicks | +0.1875 [-0.6066, +0.9816], 2 seeds: undecided | +0.2510 [+0.2486, +0.2534]" in text
    # 25 and 50, so 37.5 ± 12.706 · 17.678 / √2.
    assert "-12.5000, one seed | +37.5000 [-121.3276, +196.3276], 2 seeds: undecided" in text


def course(method: str, average: float, *, seed: int = 0, eta: float = 1.0, optimizer: str = "sgd") -> Row:
    return {"seed": seed, "optimizer": optimizer, "method": method, "eta": eta, "average": average}


LOW, HIGH, BEHIND = [1.0, 1.5, 2.0], [4.0, 4.5, 5.0], [-5.0, -4.5, -4.0]


@pytest.mark.parametrize(
    ("small", "large", "verdict"),
    [
        (HIGH, LOW, "Yes, ahead at both sizes; the difference is smaller than at `ci`."),
        (LOW, HIGH, "Yes, ahead at both sizes; the difference is larger than at `ci`."),
        (LOW, BEHIND, "No, ahead at `ci` and behind at the papers' size; the difference is larger than at `ci`."),
        (LOW, [-9.0, 1.0, 12.0], "Not decided at the papers' size; ahead at `ci`."),
        ([-1.0, 1.0], [-1.0, 1.0], "Undecided at both sizes."),
        ([1.0, 2.0], [-1.0], "The opposite sign; one seed cannot say more."),
    ],
)
def test_each_row_ends_in_whether_it_comes_out_the_same(small: list[float], large: list[float], verdict: str) -> None:
    assert _verdict(small, large, same=False) == verdict


def test_every_question_is_of_tables_that_the_chapter_keeps() -> None:
    root = REPOSITORY
    for question in ASKED:
        sources = [*(root / "chapters").glob(f"{question.chapter}_*.ipynb")]
        sources += (root / "cfltr_book" / "experiments").glob(f"ch{question.chapter}.py")
        code = "".join(path.read_text(encoding="utf-8") for path in sources).replace("\\", "")
        assert all(f'"{name}"' in code for name in question.tables)
        kept = [root / folder / question.chapter for folder in ("tests/reference/kept", "cfltr_book/kept")]
        for scale in ("ci", "paper"):
            paths = [place_of(folder, scale, question.corpus) / f"{question.tables[0]}.csv" for folder in kept]
            assert any(path.is_file() for path in paths)


def test_the_cost_of_reading_events_has_a_row_for_each_size(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    assert reading_cost(path) == "", "nothing was measured"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "repeat", "bytes", "terms", "seconds", "cpu", "MiB"])
        writer.writerow([10**5, 0, 4 * 10**5, 1000, 0.5, 1.0, 512])
        writer.writerow([10**5, 1, 4 * 10**5, 1000, 1.5, 3.0, 1536])
        writer.writerow([25 * 10**5, 0, 10**7, 20000, 7.0, 14.0, 2048])
    about = {"processor": "Toy", "cores": 2, "memory_bytes": 8 * 2**30, "duckdb": "1", "ibis-framework": "2"}
    about |= {"revision": "0123456789", "memory_limit": "1GB", "candidates": 200, "page": 10}
    for load in (0.3, 7.5):
        path.with_suffix(".json").write_text(json.dumps({**about, "load": load}))
        text = reading_cost(path)
        assert "3 readings at 2 sizes" in text
        assert "| 100,000 | 1,000 | 2.0 s | 1.0 s | 1.0 GiB |" in text
        assert "| 2,500,000 | 20,000 | 14.0 s | 7.0 s | 2.0 GiB |" in text
        assert ("crowded" in text) == (load > 2)
    assert reading_cost(REPOSITORY / "benchmarks" / "measured" / "events.csv").count(" GiB |") == 4
