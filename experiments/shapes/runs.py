"""Which cells are run, and their draws, saved as they are made: a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, product
from math import inf, isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from experiments.shapes.designs import DESIGNS, Sample
from experiments.shapes.ways import ROWS, Found, Way, answer, ways

EPSILONS = ("0.5", "2", "8")
DELTAS = ("0", "1e-6")
DRAWS = 100
# Cells that miss more often than they should are drawn again, with new seeds, and judged by all draws.
MORE_DRAWS = 400
COVERS = 0.93


@dataclass(frozen=True)
class Cell:
    """One way to ask on one shape, design and size, with one budget."""

    way: str
    shape: int
    design: int
    rows: int
    epsilon: str
    delta: str

    @property
    def key(self) -> str:
        return "|".join(str(part) for part in asdict(self).values())

    @property
    def seed(self) -> int:
        return crc32(self.key.encode())


def covering(asked: dict[str, Way]) -> list[Cell]:
    """Return one cell for each way and shape, with the other factors so that every two of them meet.

    Greedy: each cell takes the levels that make the most pairs that have not met yet, of any two factors, and of these
    a number of rows that few cells have; the largest, which takes longest, is to be in about a sixth of them.
    """
    met: set[tuple[Any, ...]] = set()
    taken: dict[tuple[Any, int], float] = defaultdict(float)
    cells = []
    for name, way in asked.items():
        family = len(way.shapes), way.shapes[0].name
        for shape in range(len(way.shapes)):
            options = [
                Cell(name, shape, *levels) for levels in product(way.designs, way.rows, EPSILONS, DELTAS)
            ]
            # Ties go to different levels for different cells.
            start = crc32(f"{name} {shape}".encode()) % len(options)
            options = options[start:] + options[:start]
            best = max(
                options, key=lambda cell: (len(_pairs(cell, family) - met), -taken[way.rows, cell.rows])
            )
            taken[way.rows, best.rows] += 2.5 if best.rows == ROWS[-1] else 1.0
            met |= _pairs(best, family)
            cells.append(best)
    return cells


def _pairs(cell: Cell, family: Any) -> set[tuple[Any, ...]]:
    levels = {**asdict(cell), "shape": (family, cell.shape)}
    return set(combinations(levels.items(), 2))


@dataclass
class Tally:
    """What the draws of one kind of answer came to."""

    draws: int = 0
    refused: int = 0
    invalid: int = 0
    effects: int = 0
    covered: int = 0
    square: float = 0.0
    lengths: tuple[float, ...] = ()

    def add(self, found: Found | str) -> None:
        self.draws += 1
        if isinstance(found, str):
            self.refused += 1
            return
        self.invalid += not found.valid
        self.effects += len(found.ends)
        self.covered += sum(bool(low <= 0 <= high) for low, high in found.ends)
        self.square += float(np.mean(np.square(found.errors)))
        self.lengths += (float(np.mean([high - low for low, high in found.ends])),)

    @property
    def answered(self) -> int:
        return self.draws - self.refused

    @property
    def coverage(self) -> float:
        return self.covered / self.effects if self.effects else float("nan")

    @property
    def rmse(self) -> float:
        return (self.square / self.answered) ** 0.5 if self.answered else float("nan")

    @property
    def length(self) -> float:
        """The median length; intervals may have no end."""
        return float(np.median(self.lengths)) if self.lengths else float("nan")

    def kept(self) -> dict[str, Any]:
        """Return what the table keeps."""
        length = self.length
        return {
            "draws": self.draws,
            "refused": self.refused,
            "invalid": self.invalid,
            "coverage": None if not self.effects else round(self.coverage, 4),
            "rmse": None if not self.answered else float(f"{self.rmse:.4g}"),
            "length": (float(f"{length:.4g}") if isfinite(length) else "none" if length == inf else None),
        }


@dataclass
class Outcome:
    """The three kinds of answers of a cell, the zero estimator's error and the codes of refusals."""

    ours: Tally
    free: Tally
    plain: Tally
    zero: Tally
    codes: tuple[str, ...] = ()


def samples(way: Way, cell: Cell, draws: range) -> Iterator[tuple[int, Sample]]:
    """Yield the people of each draw of a cell, with the seed of its noise."""
    for draw in draws:
        seed = (cell.seed + 7919 * draw) % 2**31
        yield seed, Sample(way.shapes[cell.shape], DESIGNS[cell.design], seed, cell.rows)


def run(cell: Cell, draws: int, first: int = 0, before: Outcome | None = None) -> Outcome:
    """Return what a cell's draws came to, from draw `first` on, added to those before."""
    way = ways()[cell.way]
    found = before or Outcome(Tally(), Tally(), Tally(), Tally())
    codes = set(found.codes)
    epsilon, delta = float(cell.epsilon), float(cell.delta)
    for seed, sample in samples(way, cell, range(first, first + draws)):
        ours = answer(way, sample, cell.epsilon, cell.delta, seed)
        found.ours.add(ours)
        if isinstance(ours, str):
            codes.add(ours)
        if way.free:
            found.free.add(way.free(sample))
        if way.plain:
            found.plain.add(way.plain(sample, way.level, epsilon, delta, seed))
        truth = sample.average()
        found.zero.add(Found([-truth], [(-truth, -truth)]))
    found.codes = tuple(sorted(codes))
    return found


def judged_again(found: Outcome) -> bool:
    """Return whether more draws have to say if a cell covers."""
    ours = found.ours
    return ours.effects > 0 and ours.invalid < ours.answered and ours.coverage < COVERS


def whole(cell: Cell, draws: int, more: int) -> dict[str, Any]:
    """Return what the table keeps of a cell."""
    found = run(cell, draws)
    if more and judged_again(found):
        found = run(cell, more, draws, found)
    kept = {name: getattr(found, name).kept() for name in ("ours", "free", "plain")}
    return {
        "cell": asdict(cell),
        "seed": cell.seed,
        **kept,
        "zero": found.zero.kept()["rmse"],
        "codes": found.codes,
    }


def saved(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the cells that a folder holds."""
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text())


def make(cell: Cell, folder: Path, draws: int, more: int) -> None:
    """Save a cell, unless it is there; a file is written whole or not at all."""
    path = folder / f"{cell.seed:010d}.json"
    if path.exists():
        return
    made = json.dumps(whole(cell, draws, more))
    part = path.with_suffix(".part")
    part.write_text(made)
    part.replace(path)
