"""Ledger files with bytes changed, cut, swapped or gone, and places where no ledger can be."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import Answer, Attempt

import counterveil as cv

_PLACES: tuple[Any, ...] = (
    "", "a" * 5000, "a/" * 3000, "a\0b", "/", ".", "/dev/null", "/proc/self/mem", "\ud800",
    "no/such/folder/ledger.db", 5,
    None, b"x", "postgresql://joe:QZXVSECRET@127.0.0.1:1/x", "postgres://joe:QZXVSECRET@[::1/x", "postgresql://\0",
    "postgresql://joe:QZXVSECRET@nowhere.invalid:port/x?sslmode=\x1b[2J", "file:x?mode=memory", "x?mode=ro",
)  # fmt: skip
# The files of a ledger as it was made, its checkpoint among them.
_SOUND: dict[str, bytes] = {}


def prepare(folder: Path) -> None:
    """Make one sound ledger with a few answers, and keep all of its files."""
    (folder / "book").mkdir()
    place = folder / "book" / "ledger.db"
    people = trials.people(random.Random(3), 40)
    with cv.open_ledger(place, create=True) as ledger:
        ledger.register("people", trials.BUDGET)
        ledger.publish("people", trials.STUDY.public_columns("outcome"))
        for number in range(6):
            cv.ate(
                people, trials.STUDY, protects="outcome", epsilon="1/7", method="difference_in_means", ledger=ledger,
                dataset="people", request_id=f"r{number}",
            )  # fmt: skip
    _SOUND.update({path.name: path.read_bytes() for path in (folder / "book").iterdir()})


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return the use of a broken ledger."""
    place = rng.choice(_PLACES) if rng.random() < 0.15 else _damaged(rng, folder)
    people = trials.people(rng, 40)
    use = rng.randrange(4)
    create = rng.random() < 0.3

    def attempt() -> Answer:
        if use == 0:
            answer = cv.ate(
                people, trials.STUDY, protects="outcome", epsilon="1/7", method="difference_in_means", ledger=place,
                dataset=rng.choice(("people", None)), request_id=rng.choice((None, "r1", "r9")),
            )  # fmt: skip
            return Answer([str(answer)])
        with cv.open_ledger(place, create=create) as ledger:
            texts = [str(ledger.datasets()), str(ledger.head_hash())]
            if use == 1:
                texts.append(str(ledger.verify()))
            if use == 2:
                texts += [json.dumps(dict(entry.facts), default=str) for entry in ledger.entries()]
            if use == 3:
                texts.append(str(ledger.account("people")))
            return Answer(texts)

    return attempt


def _damaged(rng: random.Random, folder: Path) -> Path:
    home = folder / "book"
    for path in home.iterdir():
        path.unlink()
    for name, content in _SOUND.items():
        (home / name).write_bytes(content)
    path, data = home / "ledger.db", _SOUND["ledger.db"]
    how = rng.random()
    if how < 0.35:
        # The first page holds the schema.
        path.write_bytes(nasty.broken_bytes(rng, data[:4096]) + data[4096:])
    elif how < 0.85:
        path.write_bytes(nasty.broken_bytes(rng, data))
    elif how < 0.9:
        path.write_bytes(data[:4096] + data[8192:12288] + data[4096:8192] + data[12288:])
    elif how < 0.95:
        path.with_name(path.name + "-wal").write_bytes(rng.randbytes(5000))
    elif how < 0.98:
        (home / rng.choice(list(_SOUND))).unlink()
    return path
