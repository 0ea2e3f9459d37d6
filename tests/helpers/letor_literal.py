"""The SVMlight language of the reader, character by character, and what its options do, in loops."""

import gzip
import itertools
import math
import zlib

import numpy as np


class Refused(Exception):
    """The text is not of the language; the argument is the line, from 1, or None."""


def is_number(word: str) -> bool:
    """[+-] digits [. digits] [e [+-] digits], with a digit on one side of the point at least."""
    rest = word[1:] if word[:1] in ("+", "-") else word
    mantissa, exponent = rest, None
    for letter in "eE":
        if letter in rest:
            mantissa, _, exponent = rest.partition(letter)
            break
    if exponent is not None:
        digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if not is_digits(digits):
            return False
    whole, _, fraction = mantissa.partition(".")
    return (whole + fraction) != "" and is_digits(whole or "0") and is_digits(fraction or "0")


def is_digits(word: str) -> bool:
    return word != "" and all(letter in "0123456789" for letter in word)


def parse(content: bytes, most: int = 10_000, cap: float = float(np.finfo(np.float32).max)) -> dict:
    """Features (lists as wide as the largest id), grades, offsets, and counts of capped values and NULLs."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error):
            raise Refused(None) from None
    if content[:3] == b"\xef\xbb\xbf":
        content = content[3:]
    rows, grades, offsets, seen = [], [], [], []
    capped = nulls = 0
    for number, line in enumerate(content.decode("latin-1").split("\n"), start=1):
        words = line.split("#")[0].strip(" \t\r").replace("\t", " ").split(" ")
        words = [word for word in words if word != ""]
        if not words:
            continue
        if not is_number(words[0]) or float(words[0]) not in range(31):
            raise Refused(number)
        if len(words) < 2 or words[1][:4] != "qid:":
            raise Refused(number)
        digits = words[1][4:]
        digits = digits[1:] if digits[:1] in ("+", "-") else digits
        if not is_digits(digits) or len(digits) > 4300:  # what Python takes for a whole number
            raise Refused(number)
        row: dict[int, float] = {}
        for word in words[2:]:
            index, colon, value = word.partition(":")
            if colon == "" or not is_digits(index) or not 1 <= int(index) <= most or int(index) in row:
                raise Refused(number)
            if value in ("NULL", "null"):
                nulls += 1
                row[int(index)] = 0.0
                continue
            unsigned = value[1:] if value[:1] in ("+", "-") else value
            if not is_number(value) and unsigned.lower() not in ("inf", "infinity"):
                raise Refused(number)
            x = float(value)
            if abs(x) > cap:
                capped += 1
                x = math.copysign(cap, x)
            row[int(index)] = x
        qid = int(words[1][4:])
        if not seen or seen[-1] != qid:
            if qid in seen:
                raise Refused(number)
            seen.append(qid)
            offsets.append(len(rows))
        rows.append(row)
        grades.append(int(float(words[0])))
    width = max((max(row, default=0) for row in rows), default=0)
    if width == 0:
        raise Refused(None)
    features = [[row.get(i, 0.0) for i in range(1, width + 1)] for row in rows]
    return {
        "features": features,
        "grades": grades,
        "offsets": [*offsets, len(rows)],
        "capped": capped,
        "nulls": nulls,
    }


def transform(features: list, offsets: list, drop: tuple = (), log1p: bool = False, normalise: bool = False) -> list:
    """What the options make of float32 features; every step in float64."""
    kept = [[float(np.float32(x)) for i, x in enumerate(row, start=1) if i not in drop] for row in features]
    if log1p:
        kept = [[math.copysign(float(np.log1p(abs(x))), x) for x in row] for row in kept]
    if not normalise:
        return kept
    out = []
    for begin, end in itertools.pairwise(offsets):
        for row in kept[begin:end]:
            new = []
            for i, x in enumerate(row):
                column = [other[i] for other in kept[begin:end]]
                low, high = min(column), max(column)
                new.append(0.0 if high == low else (x - low) / (high - low))
            out.append(new)
    return out
