"""Coverage of effects by group where people come in clusters."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from tools.loose_study import study_of

import counterveil as cv
from experiments.runner import Row, Table

EFFECTS, SD = (0.05, 0.1), 0.12


@dataclass(frozen=True)
class Cell:
    """One row: "within" groups cut through clusters, in halves; "rare" ones at 15%; "whole" are groups of clusters."""

    protects: str
    epsilon: float
    clusters: int
    size: int
    icc: float
    unequal: bool
    groups: str


CELLS = (
    Cell("outcome", 1, 50, 20, 0.1, False, "within"),
    Cell("outcome", 1, 60, 20, 0.1, False, "whole"),
    Cell("outcome", 1, 16, 20, 0.3, True, "rare"),
    Cell("record", 2, 50, 40, 0.1, False, "within"),
    Cell("record", 2, 60, 40, 0.1, False, "whole"),
    Cell("record", 4, 16, 60, 0.3, True, "whole"),
    Cell("record", 4, 16, 100, 0.3, True, "rare"),
)


def people(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    """Return one data set."""
    spread = np.exp(0.6 * rng.normal(0, 1, cell.clusters)) if cell.unequal else np.ones(cell.clusters)
    sizes = np.maximum(np.rint(cell.size * spread / spread.mean()), 2).astype(int)
    school = np.repeat(np.arange(cell.clusters), sizes)
    arm = rng.permutation(np.arange(cell.clusters) % 2)[school]
    group = (rng.random(len(school)) < (0.15 if cell.groups == "rare" else 0.5)).astype(int)
    if cell.groups == "whole":
        group = rng.permutation(np.arange(cell.clusters) % 2)[school]
    shared = sqrt(cell.icc) * rng.normal(0, 1, cell.clusters)[school]
    own = sqrt(1 - cell.icc) * rng.normal(0, 1, len(school))
    y = 0.5 + np.array(EFFECTS)[group] * arm + SD * (shared + own)
    return {"arm": arm, "y": np.clip(y, 0, 1), "g": group, "school": school}


def coverage(cell: Cell, draws: int, seed: int) -> tuple[list[float], list[float], float]:
    """Return coverage and mean half-width of both groups, and coverage of the intervals together."""
    covered, widths, together = np.zeros(2), np.zeros(2), 0
    clusters = {"cluster": "school", "assigned_by_cluster": True}
    study = study_of("arm", "y", (0, 1), {"g": cv.Categories([0, 1])}, control=0, randomised=True, **clusters)
    for draw in range(draws):
        data = people(cell, np.random.default_rng(1000 * seed + draw))
        asked: dict[str, Any] = {"protects": cell.protects, "epsilon": cell.epsilon}
        found = cv.groups(data, study, by="g", noise=cv.SeededNoise(draw), **asked)
        ends, wide = (np.array([*found.interval(simultaneous=both).values()]) for both in (False, True))
        covered += (ends[:, 0] <= EFFECTS) & (ends[:, 1] >= EFFECTS)
        together += bool(((wide[:, 0] <= EFFECTS) & (wide[:, 1] >= EFFECTS)).all())
        widths += (ends[:, 1] - ends[:, 0]) / 2
    return [*covered / draws], [*widths / draws], together / draws


def row(place: int, cell: Cell, *, seeds: range) -> Row:
    """Return coverage and half-widths of both groups, and coverage of the intervals together."""
    covered, widths, together = coverage(cell, len(seeds), place)
    pairs = [", ".join(f"{one:.3f}" for one in pair) for pair in (covered, widths)]
    size = f"{cell.size}{', unequal' * cell.unequal}"
    return [cell.protects, cell.epsilon, cell.clusters, size, cell.icc, cell.groups, *pairs, together]


TABLE = Table(
    columns=(
        "protects | epsilon :g | clusters | size | ICC :g | groups | coverage | half-width | "
        "simultaneous :.3f"
    ),
    cells=list(enumerate(CELLS)),
    row=row,
)
