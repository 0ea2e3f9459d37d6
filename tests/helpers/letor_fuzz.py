"""Files that go wrong: ordinary and odd SVMlight texts, damaged at random from a seed; and the judge of a reading."""

import gzip
import re
from pathlib import Path

import letor_literal
import numpy as np

from cfltr_book.data.letor import read_svmlight

SNIPPETS = (
    b" ", b"  ", b"\t", b"\n", b"\r\n", b"\r", b":", b"#", b"# x:1\n", b"qid:", b"qid:1", b"NULL", b"nan", b"inf",
    b"-inf", b"1e400", b"-1e400", b"1.8e308", b"1e-400", b"_", b"1_0", b"0x1", b"\x00", b"\xff", b"\xe9", b"\xa0",
    b"\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1a", b"-", b"+", b".", b"e", b"0", b"1", b"9", b"99999", b"2:", b":2",
    b"1:0.5", b" 1:0.5", b" 3:0.5 2:1", b"99999999999999999999", b"<html>", b"1 2 3", b"\xef\xbb\xbf",
    b"\xd9\xa1", b"\xb2", b"30", b"31", b"-1", b"0.5", b"1.0",
)  # fmt: skip


def number(rng: np.random.Generator) -> str:
    x = rng.normal()
    forms = (
        f"{x:.6f}", f"{x:.3e}", repr(float(x)), "0", "1", f"{x * 1e300:.9e}", f"{abs(x):.2f}", "-0.0", ".5", "5.", "+1",
        "1e400", "NULL", "inf", "1.79769313486232e+308",
    )  # fmt: skip
    common = rng.random() < 0.9
    return forms[rng.integers(3 if common else len(forms))]


def sound_file(rng: np.random.Generator) -> bytes:
    """A file of the language, with the traps that published collections hold."""
    width = int(rng.integers(1, 7))
    end = "\r\n" if rng.random() < 0.3 else "\n"
    dense, tidy = rng.random() < 0.5, rng.random() < 0.6
    lines = []
    qids = rng.choice(10**6, size=int(rng.integers(1, 5)), replace=False).tolist()
    if rng.random() < 0.1:
        qids[0] = 10**30 + 7
    for qid in qids:
        for _ in range(int(rng.integers(1, 4))):
            ids = [i for i in range(1, width + 1) if dense or rng.random() < 0.6]
            if not tidy and rng.random() < 0.4:
                ids = rng.permutation(ids).tolist()
            gap = " " if tidy else ("\t", "  ", " ")[rng.integers(3)]
            words = [str(rng.integers(5)), f"qid:{qid}", *(f"{i}:{number(rng)}" for i in ids)]
            comment = ("", "#docid = GX1 inc = 1 prob = 0.5", " # caf\xe9 1:2")[rng.integers(3)]
            lines.append(gap.join(words) + comment)
            if rng.random() < 0.05:
                lines.append(("", "# only a comment", "   ", "\t")[rng.integers(4)])
    return (end.join(lines) + (end if rng.random() < 0.7 else "")).encode("latin-1")


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """One random change."""
    at, other = sorted(rng.integers(0, len(content) + 1, size=2).tolist())
    kind = rng.integers(10)
    if kind == 0:
        return content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + content[at + 1 :]
    if kind in (2, 3):
        return content[:at] + SNIPPETS[rng.integers(len(SNIPPETS))] + content[at:]
    if kind == 4:
        return content[:at]
    if kind == 5:
        return content[:at] + content[other:]
    lines = content.split(b"\n")
    i, j = rng.integers(0, len(lines), size=2).tolist()
    if kind == 6:
        lines.insert(i, lines[j])
    elif kind == 7:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 8:
        words = lines[i].split(b" ")
        a, b = rng.integers(0, len(words), size=2).tolist()
        words[a], words[b] = words[b], words[a]
        lines[i] = b" ".join(words)
    else:
        words = lines[i].split(b" ")
        words[rng.integers(len(words))] = SNIPPETS[rng.integers(len(SNIPPETS))]
        lines[i] = b" ".join(words)
    return b"\n".join(lines)


def mutant(seed: int) -> bytes:
    """File number ``seed``: sound, damaged up to three times, sometimes zipped and damaged again."""
    rng = np.random.default_rng([seed, 30])
    content = sound_file(rng)
    for _ in range(int(rng.integers(4))):
        content = damage(content, rng)
    if rng.random() < 0.15:
        content = gzip.compress(content, mtime=0)
        if rng.random() < 0.7:
            content = damage(content, rng)
    return content


def judge(content: bytes, folder: Path) -> str:
    """Read ``content`` both ways and compare: "read" or "refused"; AssertionError when they differ."""
    path = folder / "mutant.txt"
    path.write_bytes(content)
    reports = []
    try:
        expected = letor_literal.parse(content)
    except letor_literal.Refused as refused:
        expected, (line,) = None, refused.args
    try:
        data = read_svmlight(path, report=reports.append)
    except ValueError as error:
        message = str(error)
        assert expected is None, f"refused, but it is sound: {message}"
        assert message.startswith("path: mutant.txt"), message
        if content[:2] == b"\x1f\x8b":
            assert re.search(r", line \d+: |holds no (document|feature) in \d+ lines", message), message
        elif line is None:
            assert re.search(r"holds no (document|feature) in \d+ lines", message), message
        else:
            assert message.startswith(f"path: mutant.txt, line {line}: "), (line, message)
        return "refused"
    assert expected is not None, "read, but it is not sound"
    np.testing.assert_array_equal(data.features, np.array(expected["features"], dtype=np.float32))
    assert data.relevance.tolist() == expected["grades"]
    assert data.offsets.tolist() == expected["offsets"]
    assert (reports[0].capped, reports[0].nulls) == (expected["capped"], expected["nulls"])
    return "read"
