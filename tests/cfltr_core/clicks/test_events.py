"""What read_events accepts and what it refuses: sources, messages, the report."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import oracles
import pandas as pd
import pytest
from event_damage import shoes
from kept_text import same_as_kept
from refusals import refused, refuses

import cfltr_core as cf
from cfltr_core.clicks import event_sources
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_lists import shown_lists

PAGES = {1: "ABC", 2: "BCA", 3: "CAB", 4: "ABC"}
CLICKED = {(1, "A"), (2, "B"), (2, "C"), (3, "C")}


def rows() -> pd.DataFrame:
    """Four sessions of one query; the last one without a click."""
    return shoes(PAGES, CLICKED)


def features() -> pd.DataFrame:
    return pd.DataFrame({"query": ["shoes"] * 3, "document": ["B", "C", "A"], "age": [2, 3, 1], "new": [True] * 3})


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'cfltr-core[logs]'")):
        cf.read_events(rows(), features())
    assert "make setup" in event_sources.INSTALL


@pytest.fixture
def ibis() -> object:
    return pytest.importorskip("ibis", reason="the extra logs is not installed")


def same(one: Events, other: Events) -> bool:
    names = ("features", "offsets", "document", "rank", "ranker", "period", "part_number", "impressions", "clicks")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
        and one.report == other.report
        and one.index.equals(other.index)
    )


@pytest.mark.usefixtures("ibis")
@pytest.mark.parametrize("text", [True, False], ids=["text", "numbers"])
def test_every_source_gives_the_same(tmp_path: Path, text: bool) -> None:
    import ibis

    frame, table = rows(), features()
    if not text:
        for each in (frame, table):
            each["query"], each["document"] = 7, each["document"].map({"A": 1, "B": 2, "C": 3})
    frame = frame.assign(ranker=["old", "new", "new", "old"] * 3, period=1).sort_values(["session", "position"])
    frame["ranker"] = frame["session"].map({1: "old", 2: "new", 3: "new", 4: "old"})
    frame.to_parquet(tmp_path / "events.parquet")
    frame[:6].to_parquet(tmp_path / "part-1.parquet")
    frame[6:].to_parquet(tmp_path / "part-2.parquet")
    (tmp_path / "folder").mkdir()
    frame.to_parquet(tmp_path / "folder" / "all.parquet")
    frame.to_csv(tmp_path / "events.csv", index=False)
    table.to_csv(tmp_path / "features.csv", index=False)
    table.to_csv(tmp_path / "features.tsv.gz", index=False, sep="\t")
    table.to_parquet(tmp_path / "features.parquet")
    con = ibis.duckdb.connect()
    con.con.register("log", frame)
    con.con.register("candidates", table)
    wanted = cf.read_events(frame, table)
    categories = frame.astype({"query": "category", "document": "category", "ranker": "category"})
    sources = {
        "shuffled": frame.sample(frac=1, random_state=0),
        "categories": categories,
        "true and false": frame.assign(clicked=frame.clicked == 1),
        "fractions": frame.assign(position=frame.position.astype(float), clicked=frame.clicked.astype(float)),
        "more columns": frame.assign(other="x"),
        "Parquet": tmp_path / "events.parquet",
        "glob": str(tmp_path / "part-*.parquet"),
        "list": [tmp_path / "part-2.parquet", tmp_path / "part-1.parquet"],
        "folder": tmp_path / "folder",
        "CSV": tmp_path / "events.csv",
        "Ibis": con.table("log"),
        "Ibis frame": ibis.memtable(frame),
    }
    # How a source is read does not hang on what identifies its rows: numbers are tried where they are told by types.
    told = sources if text else {name: sources[name] for name in ("categories", "fractions", "Parquet", "CSV", "Ibis")}
    for name, source in told.items():
        assert same(cf.read_events(source, table), wanted), name
    for name, lists in {
        "shuffled": table.sample(frac=1, random_state=1),
        "categories": table.astype({"query": "category", "document": "category"}),
        "CSV": str(tmp_path / "features.csv"),
        "TSV": tmp_path / "features.tsv.gz",
        "Parquet": tmp_path / "features.parquet",
        "Ibis": con.table("candidates"),
    }.items():
        assert same(cf.read_events(frame, lists), wanted), name
    theirs = {"session": "page id", "position": "the rank", "clicked": "drop table log", "ranker": 'a "b" c'}
    renamed = frame.rename(columns=theirs)
    assert same(cf.read_events(renamed, table, columns=theirs), wanted)
    con.disconnect()


@pytest.mark.usefixtures("ibis")
@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["2024-W1", "w2"], ("2024-W1", "w2")),
        (pd.Categorical(["new", "old"]), ("new", "old")),
        (pd.PeriodIndex(["2024-01", "2024-02"], freq="M"), ("2024-01", "2024-02")),
        (pd.to_datetime(["2024-01-01", "2024-01-08"]), (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-08"))),
        (np.array([2**63, 2**64 - 1], dtype=np.uint64), (2**63, 2**64 - 1)),
        (np.array([-5, 3], dtype=np.int8), (-5, 3)),
    ],
    ids=["text", "categories", "months", "times", "large", "small"],
)
def test_periods_and_sessions_of_many_kinds(names: pd.Index, found: tuple[object, ...]) -> None:
    frame = rows()
    some = pd.Series(names)
    frame["period"] = some[(frame.session > 2).astype(int)].reset_index(drop=True)
    events = cf.read_events(frame, features())
    assert events.periods == found
    assert events.n_sessions == len(PAGES)
    if not isinstance(found[0], pd.Timestamp):
        two = frame.assign(session=frame["period"])[frame.session.isin([1, 4])]
        assert cf.read_events(two, features()).n_sessions == 2


@pytest.mark.usefixtures("ibis")
@pytest.mark.parametrize("text", [True, False], ids=["text", "numbers"])
def test_parts_by_query_have_whole_queries(text: bool) -> None:
    query = np.repeat([f"q{i}" for i in range(60)] if text else range(60), 5)
    frame = pd.DataFrame({"session": range(300), "query": query, "document": 1, "position": 1, "clicked": [0, 1] * 150})
    lists = frame[["query", "document"]].drop_duplicates().assign(x=1.0)
    shares = (0.5, 0.2, 0.3)
    events = cf.read_events(frame, lists, split=shares, split_by="query")
    dealt = [oracles.session_part(name.item() if not text else name, shares) for name in events.queries]
    assert events.part_number.tolist() == [dealt[int(d)] for d in events.document]
    assert events.sessions["sessions"].tolist() == [5] * 60
    assert events.report.lines["split"] == "0.5 : 0.2 : 0.3, whole queries, by a number made of the query's id alone"
    refuses("split_by is 'day': choose one of 'session', 'query'", cf.read_events, frame, lists, split_by="day")


@pytest.mark.usefixtures("ibis")
@pytest.mark.oracle("event_lists.shown_lists")
def test_without_features_the_candidates_are_what_was_shown() -> None:
    import ibis

    frame = rows()
    events, known = cf.read_events(frame, split=None), cf.read_events(frame, features(), split=None)
    shown = oracles.shown_of(frame[["query", "document"]].values.tolist())
    pairs = [[query, name] for query, names in shown for name in names]
    assert shown_lists(ibis.memtable(frame))["index"].values.tolist() == pairs
    assert events.index.values.tolist() == pairs
    assert (events.feature_names, events.features.tolist()) == (("shown",), [[1.0]] * 3)
    for name in ("document", "rank", "impressions", "clicks", "offsets"):
        np.testing.assert_array_equal(getattr(events, name), getattr(known, name))
    for wrong, message in (
        ({"query": 1.5}, "source: column 'query' holds float64"),
        ({"document": None}, "source: document is missing (session 1"),
    ):
        refuses(message, cf.read_events, frame.assign(**wrong))
    holes = frame.assign(query=frame["query"].where(frame["session"] > 1))
    refuses("source: query is missing in 3 of 12 rows", cf.read_events, holes)


@pytest.mark.usefixtures("ibis")
def test_names_that_look_like_sql_are_names() -> None:
    name = "x'; DROP TABLE events; --"
    frame = rows().replace({"shoes": name, "A": '"A"'})
    events = cf.read_events(frame, features().replace({"shoes": name, "A": '"A"'}), split=None)
    assert events.queries.tolist() == [name]
    assert events.n_clicks == len(CLICKED)


@pytest.mark.usefixtures("ibis")
def test_the_report_counts_what_was_seen_and_what_was_left_out() -> None:
    more = shoes({9: "AX"}).replace({"X": "gone"})
    frame = pd.concat([rows(), more]).assign(period=lambda f: (f.session > 2).astype(int))
    lists = pd.concat(
        [features(), pd.DataFrame({"query": ["hats", "shoes"], "document": ["A", "Z"], "age": 1, "new": False})]
    )
    refuses("source: a displayed document has no features in 1 of 5", cf.read_events, frame, lists)
    events = cf.read_events(frame, lists, unknown="drop")
    sessions = [events.sessions.query("part == @i").sessions.sum() for i in range(len(events.parts))]
    parts = ", ".join(f"{name} {n}" for name, n in zip(events.parts, sessions, strict=True))
    assert str(events.report).splitlines() == [
        "events       12 in 4 sessions, 4 clicks, 1 sessions without a click",
        "positions    1 … 3",
        "queries      2, of which 1 without a session, 1 with one candidate",
        "documents    5, of which 2 never shown",
        "periods      0 queries showed other documents in one period than in another",
        "left out     1 sessions (2 events), 20 % of what was read: a document had no features",
        "period 0     2 sessions, 2 with a click",
        "period 1     2 sessions, 1 with a click",
        f"parts        {parts}",
        "split        0.6 : 0.2 : 0.2, whole sessions, by a number made of the session's id alone",
    ]
    assert events.report.dropped_sessions == 1


@pytest.mark.usefixtures("ibis")
def test_changing_candidates_are_counted_by_period() -> None:
    frame = shoes({1: "AB", 2: "BA", 3: "CB", 4: "BC"}, {(1, "A")}).assign(period=[0] * 4 + [1] * 4)
    events = cf.read_events(frame, features())
    assert events.report.lines["periods"].startswith("1 queries showed other")
    assert events.periods == (0, 1)
    assert len(cf.display_counts(events).start) - 1 == 4  # A and B, then B and C
    assert cf.read_events(frame[frame.session < 3], features()).report.lines["periods"].startswith("0 queries")


def put(column: str, row: int, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A damage that changes one value."""

    def damage(frame: pd.DataFrame) -> pd.DataFrame:
        out = frame.astype({column: object})
        out.loc[row, column] = value
        return out

    return damage


def moved(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(position=frame.position - 1)


def cut(frame: pd.DataFrame) -> pd.DataFrame:
    last = frame.session.map(frame[frame.clicked == 1].groupby("session").position.max())
    return frame[~(frame.position > last)]


DAMAGES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "no column": lambda f: f.drop(columns="position"),
    "two columns of a name": lambda f: f.rename(columns={"query": "clicked"}),
    "a column without a name": lambda f: f.rename(columns={"query": 5}),
    "no row": lambda f: f[:0],
    "null session": put("session", 3, None),
    "null query": put("query", 3, None),
    "null position": put("position", 4, None),
    "null clicked": put("clicked", 1, None),
    "null period": lambda f: f.assign(period=[1] * 11 + [None]),
    "text and numbers": put("position", 2, "three"),
    "text positions": lambda f: f.assign(position=f.position.astype(str).replace("3", "three")),
    "text clicks": lambda f: f.assign(clicked=f.clicked.map({0: "no", 1: "yes"})),
    "fractions as names": lambda f: f.assign(session=f.session + 0.5),
    "other names than the features": lambda f: f.assign(document=f.document.map({"A": 1, "B": 2, "C": 3})),
    "endless positions": put("position", 2, np.inf),
    "huge positions": put("position", 2, 10**12),
    "positions from 0": moved,
    "negative positions": put("position", 0, -1),
    "clicked twice": put("clicked", 0, 2),
    "a gap": lambda f: f.drop(index=4),
    "two documents at one place": put("position", 4, 1),
    "a row twice": lambda f: pd.concat([f, f[5:6]]),
    "asked twice": lambda f: f.assign(session=f.session.replace(4, 1)),
    "a document twice": put("document", 5, "B"),
    "several queries": put("query", 5, "hats"),
    "several lengths": lambda f: f.assign(length=[3, 3, 3, 3, 3, 4, *[3] * 6]),
    "a page shorter than its length": lambda f: f.assign(length=[3] * 6 + [5] * 3 + [3] * 3),
    "a negative length": lambda f: f.assign(length=-1),
    "a document without features": put("document", 0, "Q"),
    "no click": lambda f: f.assign(clicked=0),
    "filtered": lambda f: f[f.session < 4],
    "cut": cut,
    "many periods": lambda f: pd.concat([f.assign(session=f.session + 10 * p, period=p) for p in range(1001)]),
}
WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "no column": lambda f: f.drop(columns="query"),
    "no feature": lambda f: f[["query", "document"]],
    "no row": lambda f: f[:0],
    "twice": lambda f: pd.concat([f, f[:1]]),
    "null": put("document", 1, None),
    "mixed": put("document", 1, 5),
    "text": lambda f: f.assign(age="old"),
    "nan": put("age", 1, np.nan),
    "nan in numbers": lambda f: f.assign(age=[1.0, np.nan, 2.0]),
    "too large": lambda f: f.assign(age=1e300),
}


@pytest.mark.usefixtures("ibis")
def test_damaged_events_and_features_are_refused() -> None:
    """With the column, how many rows it concerns, the first of them and the remedy."""
    found = {name: refused(cf.read_events, damage(rows()), features()) for name, damage in DAMAGES.items()}
    assert all(message.startswith("source: ") for message in found.values())
    found |= {f"features, {name}": refused(cf.read_events, rows(), bad(features())) for name, bad in WRONG.items()}
    text = "".join(f"{name}: {message}\n" for name, message in found.items())
    # What pandas calls a column of text depends on its version.
    same_as_kept(Path(__file__).with_name("damaged_events.txt"), text.replace("holds str,", "holds object,"))


@pytest.mark.usefixtures("ibis")
@pytest.mark.parametrize("name", ["ranker", "period"])
def test_a_part_of_the_log_that_was_filtered_is_refused(name: str) -> None:
    """A hundred pages of each ranker, half of them clicked; of one the others are gone, or what stood below."""
    rng = np.random.default_rng(0)
    clicked = rng.random((300, 3)) < 0.25
    chosen = {(s, d) for s, page in enumerate(clicked) for d, c in zip("ABC", page, strict=True) if c}
    frame = shoes(dict.fromkeys(range(300), "ABC"), chosen).assign(**{name: lambda f: f.session // 150})
    assert cf.read_events(frame, features()).n_sessions == 300
    second = frame[name] == 1
    some = frame.session.map(frame.groupby("session").clicked.sum()) > 0
    with pytest.raises(ValueError, match=rf"none of \d+ sessions of {name} 1 is without a click: the log was filtered"):
        cf.read_events(frame[~second | some], features())
    last = frame.session.map(frame[frame.clicked == 1].groupby("session").position.max())
    with pytest.raises(ValueError, match=rf"all \d+ pages of {name} 1 with a click end in one: the pages were cut"):
        cf.read_events(frame[~second | ~(frame.position > last)], features())


@pytest.mark.usefixtures("ibis")
def test_wrong_arguments(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text("no Parquet")
    (tmp_path / "some.csv").write_text("session\n1\n")
    read = cf.read_events
    refuses("source is int", read, 5, features())
    refuses("features is int", read, rows(), 5)
    refuses("source: there is no Parquet or CSV", read, tmp_path / "no.parquet", features())
    refuses("features: there is no file at", read, rows(), tmp_path / "no.csv")
    refuses("source: there is no column 'query'", read, tmp_path / "some.csv", features())
    for source, message in (
        (tmp_path / "broken.parquet", "could not be read"),
        (sorted(tmp_path.iterdir()), "one kind"),
    ):
        with pytest.raises(ValueError, match=message):
            read(source, features())
    others = features().assign(document=["x", "y", "z"])
    refuses("source: a displayed document has no features in 4 of 4", read, rows(), others, unknown="drop")
    refuses("columns['rank'] is", read, rows(), features(), columns={"rank": "position"})
    refuses("split is (0.5, 0.5): expected", read, rows(), features(), split=(0.5, 0.5))
    refuses("split[0] is 2.0, outside [0, 1]", read, rows(), features(), split=(2, -1, 0))
    refuses("unknown is 'skip'", read, rows(), features(), unknown="skip")
    refuses("memory is 'much'", read, rows(), features(), memory="much")
    events = read(rows(), features(), split=(1, 0, 0))
    assert events.part("train").n_sessions == len(PAGES)
    refuses("name is 'tests'", events.part, "tests")
    refuses("queries[0] is 'hats'", events.subset, queries=["hats"])
    for empty in (lambda: events.part("test"), lambda: events.subset(queries=[])):
        with pytest.raises(ValueError, match="has no session"):
            empty()


def test_an_empty_split_needs_no_library() -> None:
    """Arguments are checked before anything is imported or read."""
    refuses("split is", cf.read_events, rows(), features(), split=(0.1, 0.1, 0.1))
