"""Values that programs stumble over, and ways to break a text, a table of facts or a file."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


_CONSTANTS = (
    None, True, False, 0, -1, 1, 2, 7, 10**30, 10**400, -(10**5000), 2**63, 0.5, -0.0, 1e308, -1e308, 5e-324,
    math.nan, math.inf, -math.inf, "", " ", "1e400", "1e999999999", "nan", "-nan", "NaN ", "\u00a0nan", "abc",
    "1/3", "1/0", "9" * 500, "x" * 100_000, "\x00", "a\x1b[31mb", "\ud800", "ate", "record", "outcome", "\u0661",
    b"bytes", np.float64("nan"), np.int64(3), np.float32(0.5), np.bool_(True), np.datetime64("2020-01-01"),
    np.array([1.0, 2.0]), np.array(0.5), np.array([]), np.array([["a"]]), [], [[]], [1, 2], ["y"], [None],
    {}, {"a": 1}, {1: 2}, {"age": 4}, (), (1,), (0, 1), (1, 0), (1, 2, 3), (None, None), ("a", "b"),
    (math.nan, 1), (0, math.inf), (0, 10**400), Fraction(1, 3), Fraction(10**400, 3), Fraction(1, 10**400),
    Decimal("1e-7"), Decimal("sNaN"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999"), complex(1, 2),
    set(), frozenset({1}), range(3), datetime.date(2020, 1, 1), datetime.timedelta(1), Path("x"), Ellipsis, int,
)  # fmt: skip
# Made anew each time: what is changed or used up by one input must not reach the next.
_MADE: tuple[Callable[[], Any], ...] = (
    object, lambda: _nested(3000), lambda: (lambda row: row), lambda: iter([1, 2]), list, dict,
    lambda: np.array([1.0, 2.0]),
)  # fmt: skip


TEXTS = (
    "", " ", "0", "-1", "1", "0.5", "1e400", "1e-400", "1e999999999", "nan", "inf", "-inf", "NaN ", "1/3", "1/0",
    "0x10",
    "1_000", "9" * 400, "9" * 5000, "x" * 20_000, "é", "\u202e", "\udcff", "a\x1b[31mb", "../../etc/passwd", "/", ".",
    "a" * 300, "*", "[", "{", "'", '"', "\\", "None", "True", "[]", "{}", "()", "(1,2", "[[1]]", "{'age': 4}",
    "['age']", "'" * 50, "(" * 3000, "[" * 50_000, "-" * 50_000 + "1", "1+1j", "'\\d'", "lambda: 1", "f'{1}'",
    "ate", "ATT", "record", "outcome", "auto", "stratified", "weighting", "matching", "ipw", "doubly_robust",
    "postgresql://joe:QZXVSECRET@nowhere.invalid:x/db", "a.b." * 5000, "\n", "\t", "a=b", "=",
)  # fmt: skip


def value(rng: random.Random) -> Any:
    """Return a value that a program may stumble over."""
    if rng.random() < 0.1:
        return rng.choice(_MADE)()
    return rng.choice(_CONSTANTS)


def text(rng: random.Random) -> str:
    """Return a text that a program may stumble over."""
    return rng.choice(TEXTS)


def broken_text(rng: random.Random, whole: str) -> str:
    """Return a document with one to three places cut out, doubled, exchanged, or filled with something else."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(whole) + 1)
        to = min(len(whole), at + rng.choice((1, 1, 2, 5, 40)))
        how = rng.randrange(4)
        middle = (whole[at:to] * 2, "", text(rng), rng.choice("[]{}=\"'#\n.,:0e-\0\x7f"))[how]
        whole = whole[:at] + middle + whole[to if how != 3 else at :]
    return whole


def broken_bytes(rng: random.Random, whole: bytes) -> bytes:
    """Return a file with bytes flipped, a piece zeroed, its end cut off, or something put in or after it."""
    data = bytearray(whole)
    how = rng.randrange(6)
    if how < 2 or not data:
        for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
            if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 2:
        del data[rng.randrange(len(data)) :]
    elif how == 3:
        at = rng.randrange(len(data))
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif how == 4:
        at = rng.randrange(len(data))
        data[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
    else:
        data += rng.randbytes(rng.choice((1, 4096)))
    return bytes(data)


def broken_facts(rng: random.Random, facts: Any, plain: bool = True) -> Any:
    """Return a copy of nested facts with one to three of them replaced, left out, renamed or doubled.

    With `plain` only what JSON can hold is put in.
    """
    for _ in range(rng.choice((1, 1, 2, 3))):
        facts = _broken_once(rng, facts, plain)
    return facts


PLAIN = (
    None, True, False, 0, -1, 1, 1e308, -1e308, 1e-308, math.nan, math.inf, 10**400, "", "abc", "1e999999999", "nan",
    "x" * 10_000, [], [[]], {}, {"a": 1}, [1, 2], [0, 1], [None], "\x1b[31m", "\u0000", 5, 0.5, -5.0, "1/3", "1/0",
    "inf",
    "9" * 5000, "-1/7", "record", "outcome", [0, 1e300], {"range": [0, 1]}, {"fill": 0},
)  # fmt: skip


def _broken_once(rng: random.Random, facts: Any, plain: bool) -> Any:
    inside = isinstance(facts, dict | list) and len(facts) > 0 and rng.random() < 0.85
    if not inside:
        return rng.choice(PLAIN) if plain else value(rng)
    if isinstance(facts, list):
        at = rng.randrange(len(facts))
        if rng.random() < 0.2:
            return facts[:at] + facts[at + 1 :] if rng.random() < 0.5 else [*facts, facts[at]]
        return [*facts[:at], _broken_once(rng, facts[at], plain), *facts[at + 1 :]]
    key = rng.choice(list(facts))
    how = rng.random()
    if how < 0.12:
        return {name: item for name, item in facts.items() if name != key}
    if how < 0.2:
        return {(text(rng) if name == key else name): item for name, item in facts.items()}
    return facts | {key: _broken_once(rng, facts[key], plain)}
