"""Mutations of documents: of their bytes, and of the values in them; seeded, so that every failure can be repeated."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

CANARY = "CANARY-4711"  # stands in private cells alone
_FOREIGN = "foreign text"
ESCAPE = "\x1b"
_DEEP: Any = 1
for _ in range(60):
    _DEEP = [_DEEP]

# Values that have hung, crashed or fooled a reader somewhere.
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, 10**24, -(10**24), 0.5, -0.0, 5, 1e308, -1e308, 1e-320, 1e99),
    *(float("nan"), float("inf"), -float("inf")),
    *(
        "",
        " ",
        "1e999999999",
        "1e-999999999",
        "9" * 5000,
        "1/0",
        "-1/3",
        "1/3",
        "nan",
        "inf",
        "0x10",
        "1_0",
        "٣",
    ),
    *(
        "\x1b[2J\x1b[31m",
        "a\nb",
        "\x00",
        "\x7f",
        "\x9b31m",
        "\u202egnp",
        "\ud800",
        "x" * 30_000,
        "../../etc/passwd",
    ),
    *(
        "order='hiv_case_no'#",
        "__class__",
        "CV-F004",
        "CV-F999",
        "North",
        "outcome",
        "record",
        "ATT",
        "finite-sample",
    ),
    *(
        [],
        {},
        [[]],
        [1, 2],
        {"a": {"b": 1}},
        {"mechanism": "staircase"},
        {"\x1b[1m": 1},
        _DEEP,
        list(range(2000)),
    ),
)
_WORDS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\x1b[2J",
        b"NaN",
        b"Infinity",
        b"1e999999999",
        b"9" * 6000,
        b"{" * 3000,
        b"[" * 3000,
    ),
    *(
        b'"',
        b"}",
        b"]",
        b",",
        b":",
        b"\\u001b[31m",
        b"\\ud800",
        b"\xed\xa0\x80",
        b"null",
        b"true",
        b'{"a":1,"a":2}',
    ),
)
_TOML = (
    *(
        '"1e999999999"',
        "1e999999",
        "nan",
        "inf",
        "[]",
        "{}",
        "1979-05-27",
        "true",
        '"\\u001b[31m"',
        '"' + "x" * 9000 + '"',
    ),
    *(
        "[" * 200 + "]" * 200,
        ".".join(["a"] * 3000),
        "-1",
        "0",
        "10" * 400,
        '"1/0"',
        "'''",
        '"../../x"',
        "{a.b.c = 1}",
    ),
)


def mutated_json(text: str, source: random.Random) -> bytes:
    """Return the bytes of a JSON document with one to three mutations."""
    if source.random() < 0.25:
        return mutated_bytes(text.encode("utf-8"), source)
    document = json.loads(text)
    for _ in range(source.choice((1, 1, 2, 3))):
        document = _changed(document, source)
    written = json.dumps(document, ensure_ascii=source.random() < 0.7)
    return written.encode("utf-8", "surrogatepass")


def mutated_toml(text: str, source: random.Random) -> bytes:
    """Return the bytes of a TOML document with one mutation of a line, or of its bytes."""
    if source.random() < 0.3:
        return mutated_bytes(text.encode("utf-8"), source)
    lines = text.splitlines()
    place = source.randrange(len(lines))
    key, sign, _ = lines[place].partition("=")
    choice = source.randrange(5)
    if choice == 0:
        del lines[place]
    elif choice == 1:
        lines.insert(place, lines[source.randrange(len(lines))])
    elif choice == 2:
        lines.insert(place, f"{source.choice(_TOML)} = 1")
    elif sign:
        lines[place] = f"{key}= {source.choice(_TOML)}"
    else:
        lines[place] = f"[{source.choice(('x', 'question', 'sites', 'policy', '[a', 'a.' * 500 + 'a'))}]"
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def mutated_bytes(data: bytes, source: random.Random) -> bytes:
    """Return bytes that were cut, flipped, repeated, re-encoded or sprinkled with hostile words."""
    place = source.randrange(len(data) + 1)
    choice = source.randrange(6)
    if choice == 0:
        return data[:place]
    if choice == 1:
        changed = bytearray(data)
        for _ in range(source.randrange(1, 20)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        return bytes(changed)
    if choice == 2:
        return data[:place] + source.choice(_WORDS) + data[place:]
    if choice == 3:
        return data.decode("utf-8").encode(source.choice(("utf-16", "latin-1", "utf-32")), "replace")
    if choice == 4:
        return data + data[place:]
    return re.sub(
        rb"[0-9]+", lambda _: source.choice((b"0", b"1e308", b"-5", b"7" * 400)), data, count=place % 7 + 1
    )


def _changed(document: Any, source: random.Random) -> Any:
    """Return a copy in which one value or key somewhere is another, gone, moved or doubled."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return source.choice(HOSTILE)
    table, key = source.choice(places)
    choice = source.randrange(6)
    if choice == 0:
        del table[key]
    elif choice == 1 and isinstance(table, dict):
        table[source.choice(("more", _FOREIGN, "\x1b[1m", "estimate", "settings", "accept"))] = table[key]
    elif choice == 2:
        other, place = source.choice(places)
        other[place], table[key] = copy.deepcopy(table[key]), copy.deepcopy(other[place])
    elif choice == 3 and isinstance(table[key], int | float) and not isinstance(table[key], bool):
        table[key] = table[key] * source.choice((-1, 0, 2, 1e3, 1e-3, 1e9, 1e300, 1.0000001))
    elif choice == 4 and isinstance(table[key], str):
        text = table[key]
        place = source.randrange(len(text) + 1)
        table[key] = (
            text[:place] + source.choice((_FOREIGN, "\x1b[31m", "e9", "/0", " ", "9", "")) + text[place:]
        )
    else:
        table[key] = copy.deepcopy(source.choice(HOSTILE))
    return document


def _places(value: Any) -> Any:
    """Yield every table or list of a document with each of its keys."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend(found.values())
            yield from ((found, key) for key in found)
        elif isinstance(found, list):
            waiting.extend(found)
            yield from ((found, place) for place in range(len(found)))
