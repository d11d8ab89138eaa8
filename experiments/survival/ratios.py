"""Hazard ratios and medians of private records: coverage, size, and length beside lifelines."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.data.follow_up import USUAL_CELLS, TimeCells
from counterveil.inference.survival.answers import answers_of
from counterveil.inference.survival.crossings import Crossing, CrossingGap
from counterveil.inference.survival.hazard_ratio import HazardRatio
from counterveil.inference.survival.tables import NoisyTables
from counterveil.privacy import Budget
from experiments.runner import Row, Table
from experiments.survival.designs import HORIZON, Columns, Trial
from experiments.survival.tables import counted, drawn

LEVEL = 0.95
_SECOND = 0.4
DESIGNS = {
    "n = 500": Trial(500, 0.2, left=0.2),
    "n = 2,000": Trial(2000, 0.2, left=0.2),
    "n = 10,000": Trial(10_000, 0.2, left=0.2),
    "n = 2,000, 60 % censored": Trial(2000, 0.6, left=0.2),
    "n = 2,000, 5 % treated": Trial(2000, 0.2, left=0.2, share=0.05),
    "n = 2,000, rare events": Trial(2000, 0.2, left=0.95),
}


def ratios(name: str, *, seeds: range) -> Row:
    """Return coverage, size and lengths of hazard ratio, of a median and of the difference of medians.

    Sizes are of equal hazards, and of the check of proportionality under a ratio of .7. Lengths are medians over
    draws, as multiples of those of lifelines.
    """
    design = DESIGNS[name]
    found = np.array([_one(design, seed) for seed in seeds])
    null = np.array([_null(replace(design, ratio=1.0), seed) for seed in seeds])
    theirs = np.array([_lifelines(design, seed) for seed in seeds[:40]])
    cover, length = np.mean(found[:, ::2], axis=0), np.median(found[:, 1::2], axis=0)
    beside = length / np.median(theirs, axis=0)
    size, check = null.mean(axis=0), found[:, 6].mean()
    return [name, cover[0], size[0], check, beside[0], cover[1], beside[1], cover[2], size[1], beside[2]]


def _tables(design: Trial, seed: int) -> NoisyTables:
    return drawn(design, seed, "record", Budget(1), USUAL_CELLS)[0]


def _medians(tables: NoisyTables) -> tuple[Crossing, Crossing]:
    return Crossing(answers_of(tables), 0, 0.5), Crossing(answers_of(tables), 1, 0.5)


def _one(design: Trial, seed: int) -> list[float]:
    tables = _tables(design, seed)
    ratio, (control, treated) = HazardRatio(tables), _medians(tables)
    low, high = ratio.interval(LEVEL)
    truths = [_median(design, arm) for arm in (0, 1)]
    found = [float(low <= design.ratio <= high), np.log(high) - np.log(low) if low else np.inf]
    gap = CrossingGap(treated, control)
    for known, truth in ((control, truths[0]), (gap, truths[1] - truths[0])):
        ends = known.interval(LEVEL)
        found += [float(ends[0] <= truth <= ends[1]), ends[1] - ends[0]]
    return [*found, float(ratio.proportionality.p_value < 1 - LEVEL)]


def _null(design: Trial, seed: int) -> list[bool]:
    tables = _tables(design, seed)
    control, treated = _medians(tables)
    low, high = CrossingGap(treated, control).interval(LEVEL)
    return [HazardRatio(tables).p_value < 1 - LEVEL, not low <= 0 <= high]


def _median(design: Trial, arm: int) -> float:
    rate = -np.log(design.left) * (design.ratio if arm else 1.0)
    return float((np.log(2) / rate) ** (1 / design.shape))


def _lifelines(design: Trial, seed: int) -> list[float]:
    """Return the lengths of the log hazard ratio, of the control's median and of the difference."""
    import pandas as pd
    from lifelines import CoxPHFitter, KaplanMeierFitter
    from lifelines.utils import median_survival_times

    data = to_horizon(design.draw(seed))
    cox = CoxPHFitter().fit(pd.DataFrame(data), "time", "event")
    found, sides = [2 * 1.96 * float(cox.standard_errors_["arm"])], []
    for arm in (0, 1):
        own = data["arm"] == arm
        fitted = KaplanMeierFitter().fit(data["time"][own], data["event"][own])
        low, high = median_survival_times(fitted.confidence_interval_).to_numpy()[0]
        middle: Any = fitted.median_survival_time_
        sides.append((middle - low, high - middle, high - low))
    found += [sides[0][2], np.hypot(sides[1][0], sides[0][1]) + np.hypot(sides[1][1], sides[0][0])]
    return [float(one) for one in found]


def competing(name: str, *, seeds: range) -> Row:
    """Return coverage of the incidence of one of two causes, its difference and its hazard ratio, and sizes."""
    found = np.array([_causes(DESIGNS[name], seed) for seed in seeds])
    null = np.array([_causes(replace(DESIGNS[name], ratio=1.0), seed) for seed in seeds])
    plain = [_causes(DESIGNS[name], seed, 1e6)[4] for seed in seeds[:40]]
    cover, size = found[:, :3].mean(axis=0), null[:, 3].mean()
    length = np.median(found[:, 4]) / np.median(plain)
    return [name, cover[0], cover[1], 1 - null[:, 1].mean(), cover[2], size, length]


def _causes(design: Trial, seed: int, epsilon: float = 1.0) -> list[float]:
    """Return what is covered of the second cause, which 40 % of events have, and the length of the difference."""
    data = design.draw(seed)
    cause = 1 + (np.random.default_rng([seed, 7]).random(design.rows) < _SECOND)
    # Tables are drawn anew with noise in double precision, which is fast.
    found, event = _made(replace(design, ratio=1.0), epsilon)
    counts = counted(data | {"event": data["event"] * cause}, event, found.tables.cut)
    counts += np.random.default_rng([seed, 3]).laplace(0, found.tables.noise_sd / 2**0.5, counts.shape)
    found = replace(found, tables=replace(found.tables, numbers=tuple(map(tuple, counts.tolist()))))
    truths = [_SECOND * (1 - design.survival(arm, HORIZON)) for arm in (0, 1)]
    told = (
        found.incidence("other", "treated"),
        found.incidence_difference("other"),
        found.hazard_ratio("other"),
    )
    ends = [one.interval() for one in told]
    values = (truths[1], truths[1] - truths[0], design.ratio)
    held = [float(low <= truth <= high) for (low, high), truth in zip(ends, values, strict=True)]
    return [*held, float(told[2].p_value < 1 - LEVEL), ends[1][1] - ends[1][0]]


@cache
def _made(design: Trial, epsilon: float) -> tuple[cv.results.SurvivalResult, TimeCells]:
    study = design.study(causes=["one", "other"])
    noise = cv.SeededNoise(1)
    found = cv.survival(design.draw(0), study, protects="record", epsilon=epsilon, noise=noise)
    assert study.event is not None
    return found, study.event


def to_horizon(data: Columns) -> Columns:
    """Return the same people, censored at the horizon."""
    late = data["time"] > HORIZON
    return data | {"time": np.minimum(data["time"], HORIZON), "event": np.where(late, 0, data["event"])}


RATIOS = Table(
    columns=(
        "design | HR cover :.3f | size :.3f | check :.3f | length :.3f | median cover :.3f | "
        "length :.3f | difference cover :.3f | size :.3f | length :.3f"
    ),
    cells=[(name,) for name in DESIGNS],
    row=ratios,
)
COMPETING = Table(
    columns=(
        "design | incidence :.3f | difference :.3f | size :.3f | HR :.3f | size :.3f | "
        "length of the difference :.3f"
    ),
    cells=[(name,) for name in ("n = 500", "n = 2,000", "n = 2,000, 5 % treated", "n = 2,000, rare events")],
    row=competing,
)
