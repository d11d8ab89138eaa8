"""Draws of a design, saved as they are made: a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from zlib import crc32

from experiments.every_method.asking import FREE, LARGE, METHODS, Asked, Draw, Known, draw, free
from experiments.every_method.designs import Design, Instance
from experiments.runner import save, saved

EPSILONS = ("0.5", "1", "2", "4", "8")
DELTAS = ("0", "1e-6")
_FEWEST = 3


@dataclass(frozen=True)
class Row:
    """One saved answer; `refusal` is the code of an error, and then the figures are nan."""

    draw: int
    method: str
    epsilon: str
    delta: str
    error: float
    half: float
    adjusted: int
    valid: int
    chosen: str
    refusal: str


def file_of(folder: Path, design: Design) -> Path:
    name = "".join(letter if letter.isalnum() else "-" for letter in design.name)
    return folder / f"{name}.csv"


def questions(methods: list[str]) -> Iterator[tuple[str, str, str]]:
    for name in methods:
        if name in FREE:
            yield name, "", ""
        else:
            # Pure noise is the same with and without a delta: it is drawn once.
            deltas = DELTAS[:1] if METHODS[name].pure else DELTAS
            yield from ((name, epsilon, delta) for epsilon in EPSILONS for delta in deltas)


def draws_of(asked: Asked, design: Design, draws: int, rows: int) -> int:
    part = asked.large if rows >= LARGE else asked.part
    return max(_FEWEST, ceil(draws * design.draws * part))


def run(design: Design, folder: Path, draws: int, methods: list[str]) -> None:
    """Make the answers that are not saved yet."""
    path = file_of(folder, design)
    done = {(row.draw, row.method, row.epsilon, row.delta) for row in saved(path, Row)}
    kept: Instance | None = None
    for number in range(ceil(draws * design.draws)):
        wanted = [one for one in questions(methods) if (number, *one) not in done]
        if not wanted:
            continue
        if kept is None or not design.fixed:
            kept = design.load(number)
        instance = kept
        limits = {
            name: draws_of(METHODS[name], design, draws, instance.table.rows)
            for name in methods
            if name not in FREE
        }
        wanted = [one for one in wanted if one[0] in FREE or number < limits[one[0]]]
        known: Known = {}
        for name, epsilon, delta in wanted:
            if name in FREE:
                found: Draw | str = free(instance, name)
            else:
                # The same seed for every method: what is chosen gives the answer that it gives by name.
                seed = 1000 * (crc32(design.name.encode()) % 10_000) + number
                found = draw(instance, name, epsilon, delta, seed, known)
            save(path, _row(number, name, epsilon, delta, found))
        print(f"{design.name}: draw {number}", file=sys.stderr, flush=True)


def _row(number: int, name: str, epsilon: str, delta: str, found: Draw | str) -> Row:
    if isinstance(found, str):
        return Row(number, name, epsilon, delta, float("nan"), float("nan"), 0, 0, "", found)
    figures = found.error, found.half, int(found.adjusted), int(found.valid), found.chosen
    return Row(number, name, epsilon, delta, *figures, "")
