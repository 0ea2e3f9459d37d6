"""What is said of a corpus that cannot be loaded, and of an archive that is not the published one, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfltr_book import load_corpus
from cfltr_book.data.letor.archives import KNOWN, MSLR_LEAKS, verify_archive

CHOICES = (
    "choose yahoo-like, digits or letor:<folder>, a folder below the one that CFLTR_DATA names; "
    "or istella-like, yahoo-like:conflict, istella-like:conflict"
)
OPTIONS = (
    "after the @ stand, with commas between them, the lowest relevant grade (a whole number from 1), normalise, log1p, "
    "drop=ID[+ID…] (features to leave out)"
)


def said(corpus: str) -> str:
    with pytest.raises(ValueError) as found:  # noqa: PT011
        load_corpus(corpus, "smoke", seed=0)
    return str(found.value)


@pytest.mark.parametrize("corpus", ["yahoo", "letor", "letor:", "letor:@2", ""])
def test_an_unknown_corpus(corpus: str) -> None:
    assert said(corpus) == f"corpus is {corpus!r}: {CHOICES}"


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("0", "0"),
        ("1234567", "1234567"),
        ("2.5", "2.5"),
        ("", ""),
        ("2,", ""),
        ("log2", "log2"),
        ("drop", "drop"),
        ("drop=", "drop="),
        ("drop=1+", "drop=1+"),
        ("drop=1+x", "drop=1+x"),
        ("normalise=1", "normalise=1"),
        ("cap=2", "cap=2"),
    ],
)
def test_an_option_that_does_not_exist(
    options: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "a").mkdir()
    assert said(f"letor:a@{options}") == f"corpus is 'letor:a@{options}': {wrong!r} is no option; {OPTIONS}"


@pytest.mark.parametrize(
    ("options", "wrong", "field"),
    [("1,2", "2", "threshold"), ("log1p,log1p", "log1p", "log1p"), ("drop=1,2,drop=3", "drop=3", "drop")],
)
def test_an_option_that_stands_twice(options: str, wrong: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLTR_DATA", "/")
    corpus = f"letor:a@{options}"
    assert said(corpus) == f"corpus is {corpus!r}: {wrong!r} names {field} a second time; keep one of the two"


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CFLTR_DATA", raising=False)
    assert said("letor:a") == (
        "corpus is 'letor:a', but the environment variable CFLTR_DATA is not set: "
        "set it to the folder that holds your collections"
    )
    data = tmp_path.resolve() / "data"
    monkeypatch.setenv("CFLTR_DATA", str(data))
    assert said("letor:a") == (
        f"corpus is 'letor:a', but there is no folder {data}, which CFLTR_DATA names: "
        "set it to the folder that holds your collections"
    )
    data.mkdir()
    for folders, there in (((), "no folder"), (("b", ".hidden"), "b"), (("c",), "b, c")):
        for folder in folders:
            (data / folder).mkdir()
        assert said("letor:a") == (
            f"corpus is 'letor:a', but there is no folder {data / 'a'}: CFLTR_DATA is {data}, which holds {there}; "
            "name one of these, or set CFLTR_DATA to the folder that holds your collection"
        )


def test_a_split_without_relevant_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "a").mkdir()

    def grades(**largest: int) -> None:
        for name, grade in largest.items():
            (tmp_path / "a" / f"{name}.txt").write_text(f"{grade} qid:1 1:1\n0 qid:1 1:2\n")

    grades(train=4, vali=2, test=3)
    assert said("letor:a") == (
        "corpus is 'letor:a', seed 0: the validation split has no relevant document; its largest grade is 2, and a "
        "document is relevant from grade 3 on: lower the threshold, as in letor:a@2"
    )
    assert said("letor:a@4,log1p,drop=7").endswith("from grade 4 on: lower the threshold, as in letor:a@2,log1p,drop=7")
    assert load_corpus("letor:a@2", "smoke", seed=0).validation.binary.tolist() == [1, 0]
    grades(train=1, vali=1, test=0)
    assert said("letor:a") == (
        "corpus is 'letor:a', seed 0: the test split has no relevant document; its largest grade is 0, and a document "
        "is relevant from grade 1 on: no threshold helps, since the test split has grades of 0 only: it needs judged "
        "documents"
    )


PAGES = {
    "MSLR-WEB10K": "the page 'Microsoft Learning to Rank Datasets' of Microsoft Research (Microsoft Research Licence)",
    "MSLR-WEB30K": "the page 'Microsoft Learning to Rank Datasets' of Microsoft Research (Microsoft Research Licence)",
    "Istella-S": "the page 'Istella LETOR' of the Istella search engine (Istella LETOR Licence, non-commercial use)",
    "Istella": "the page 'Istella LETOR' of the Istella search engine (Istella LETOR Licence, non-commercial use)",
    "Yahoo C14B set 1 (.tgz)": "Yahoo Webscope, dataset C14B 'Yahoo! Learning to Rank Challenge' (on request, by its "
    "data sharing agreement)",
    "Yahoo C14B set 1 (.tar.bz2)": "Yahoo Webscope, dataset C14B 'Yahoo! Learning to Rank Challenge' (on request, by "
    "its data sharing agreement)",
}


def test_pages_of_the_archives(tmp_path: Path) -> None:
    assert {archive.collection: archive.page for archive in KNOWN} == PAGES
    assert {archive.collection for archive in KNOWN if archive.leaks == MSLR_LEAKS} == {"MSLR-WEB10K", "MSLR-WEB30K"}
    assert MSLR_LEAKS == (134, 135, 136)
    (tmp_path / "other.zip").write_bytes(b"")
    with pytest.raises(ValueError) as found:  # noqa: PT011
        verify_archive(tmp_path / "other.zip")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    pages = "; ".join(f"{name}: {page}" for name, page in PAGES.items())
    assert str(found.value) == (
        f"path: other.zip (0 bytes, sha256 {empty}) is none of the known archives. {pages}"
    )  # fmt: skip
    (tmp_path / "ISTELLA-letor.tar.gz").write_bytes(b"")
    with pytest.raises(ValueError) as found:  # noqa: PT011
        verify_archive(tmp_path / "ISTELLA-letor.tar.gz")
    assert str(found.value) == (
        "path: ISTELLA-letor.tar.gz is not the Istella that was published: its size differs (0 bytes for "
        f"1,288,401,248; sha256 {empty[:12]}… for d45899d9a6a0…): get it again from {PAGES['Istella']}"
    )
