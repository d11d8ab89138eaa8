"""What cells hide: intervals and the log-rank test with an allowance for it, and without one on whole cells.

Cells do not say when in them people were censored. Where hazards change fast within a cell and the arms lose people at
different rates, that moves curves and the log-rank statistic.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from counterveil.inference.survival.answers import answers_of
from counterveil.inference.survival.log_rank import log_rank_of
from counterveil.inference.survival.tables import NoisyTables
from counterveil.privacy import Budget
from experiments.runner import Row, Table
from experiments.survival.designs import Trial
from experiments.survival.tables import drawn

LEVEL = 0.95
# Hostile designs: a steep hazard, and treated people who are lost five times as fast. The last are harmless.
DESIGNS = [
    *((Trial(40_000, 0.4, 0.5, 1.0, shape, lost_ratio=5.0), 12) for shape in (0.4, 1.0, 2.0)),
    (Trial(40_000, 0.4, 0.5, 1.0, 0.4, lost_ratio=5.0), 48),
    (Trial(40_000, 0.4, 0.5, 1.0, 0.4, lost_ratio=0.2), 5),
    (Trial(5_000, 0.6, 0.5, 1.0, 0.4, lost_ratio=5.0), 12),
    (Trial(500, 0.6, 0.5, 1.0, 0.4, lost_ratio=5.0), 12),
    *((Trial(rows, 0.3, 0.45, 1.0, 1.0), 12) for rows in (500, 5_000, 40_000)),
]


def grouping(design: Trial, cells: int, *, seeds: range) -> Row:
    """Return size and power of the log-rank test, coverage and half-widths of curves and restricted means.

    Records are private at epsilon 1. "Before" is on whole cells without an allowance. Power is that at a ratio of
    hazards near to which half of the tests reject.
    """
    null = [_both(design, cells, seed) for seed in seeds]
    events = design.rows * (1 - design.censored) / 2
    other = replace(design, ratio=float(np.exp(-2 * 2 / np.sqrt(events))))
    power = np.mean([_tested(other, cells, seed) for seed in seeds], axis=0)
    size, curve, half, mean, length = np.mean(null, axis=0)
    lost = f"{design.censored:.0%}, {design.lost_ratio:g}"
    return [design.rows, cells, design.shape, lost, *size, *power, *curve, *half, *mean, *length]


def _tables(design: Trial, cells: int, seed: int) -> tuple[NoisyTables, NoisyTables]:
    return tuple(drawn(design, seed, "record", Budget(1), cells, whole)[0] for whole in (False, True))  # type: ignore[return-value]


def _tested(design: Trial, cells: int, seed: int) -> list[float]:
    """Return whether the test rejects, and whether it would on whole cells without an allowance."""
    ours, whole = map(log_rank_of, _tables(design, cells, seed))
    return [one.p_value < 1 - LEVEL for one in (ours, replace(whole, bias=0.0))]


def _both(design: Trial, cells: int, seed: int) -> np.ndarray:
    """Return what the test, curves and means do, ours and before: five pairs."""
    found = np.zeros((5, 2))
    found[0] = _tested(design, cells, seed)
    for place, tables in enumerate(_tables(design, cells, seed)):
        answers, times = answers_of(tables), tables.edges[:: tables.cut]
        bare = {"bias": 0.0} if place else {}
        inside, halves = [], []
        for arm, at in product((0, 1), range(1, cells + 1)):
            low, high = replace(answers.at(arm, at), **bare).interval(LEVEL)
            inside.append(low <= design.survival(arm, times[at]) <= high)
            halves.append((high - low) / 2)
        found[1:3, place] = np.mean(inside), np.mean(halves)
        bare |= {"curvature": 0.0} if place else {}
        ends = [replace(answers.area(arm), **bare).interval(LEVEL) for arm in (0, 1)]
        gap = replace(answers.area_gap(), **bare).interval(LEVEL)
        truths = [design.mean(0), design.mean(1), design.mean_gap]
        held = [low <= truth <= high for (low, high), truth in zip((*ends, gap), truths, strict=True)]
        found[3:, place] = np.mean(held), (gap[1] - gap[0]) / 2
    return found


TABLE = Table(
    columns=(
        "n | cells | shape :g | lost, ratio | size :.0% | before :.0% | power :.0% | "
        "before :.0% | curves :.0% | before :.0% | half-width :.4f | before :.4f | means :.0% | "
        "before :.0% | half-width :.4f | before :.4f"
    ),
    cells=DESIGNS,
    row=grouping,
)
