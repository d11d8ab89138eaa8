"""Answers of every design, level, estimand and budget, saved as they are made: an interrupted run goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import CounterveilError
from experiments.causal.designs import Design
from experiments.causal.plain import aipw, means
from experiments.runner import save, saved

EPSILONS = {"outcome": ("0.5", "1", "2", "4"), "record": ("1", "2", "4", "8")}
DELTAS = {"outcome": ("0",), "record": ("1e-6", "0")}
FREE = {
    "AIPW (not private)": partial(aipw, degree=1),
    "AIPW, squares and products (not private)": partial(aipw, degree=2),
    "difference in means (not private)": means,
}
NORMAL = 1.959963984540054
ADJUSTED, PLAIN, ZERO = "auto", "difference in means", "zero"


@dataclass(frozen=True)
class Row:
    """One saved answer; `refusal` is the code of an error, and then the figures are nan."""

    design: str
    level: str
    estimand: str
    method: str
    epsilon: str
    delta: str
    draw: int
    error: float
    half: float
    valid: int  # whether the interval claims to be one for the effect
    chosen: str
    refusal: str


Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Asked:
    """What is asked of every draw: all budgets of a level where none are named."""

    levels: list[str]
    estimands: list[str]
    methods: list[str]
    epsilons: list[str]
    deltas: list[str]


def wanted(design: Design, asked: Asked) -> Iterator[Key]:
    """Yield level, estimand, method, epsilon and delta of every answer to one draw."""
    for level in asked.levels:
        chosen = design.estimands if level in design.levels else ()
        for estimand in (name for name in chosen if name in asked.estimands):
            for name in (*FREE, ZERO):
                yield level, estimand, name, "", ""
            for epsilon in asked.epsilons or EPSILONS[level]:
                for method in asked.methods:
                    for delta in asked.deltas or DELTAS[level]:
                        yield level, estimand, method, epsilon, delta
                yield level, estimand, PLAIN, epsilon, "0"


def run(design: Design, path: Path, draws: int, asked: Asked) -> None:
    """Make the answers that are not saved yet."""
    done = {
        (row.level, row.estimand, row.method, row.epsilon, row.delta, row.draw)
        for row in saved(path, Row)
        if row.design == design.name
    }
    for number in range(draws):
        keys = [key for key in wanted(design, asked) if (*key, number) not in done]
        if not keys:
            continue
        y = design.outcomes(number)
        table = Table.attach({**design.columns, design.study.outcome: y}, design.study)
        for key in keys:
            save(path, answer(design, table, key, number))
        print(f"{design.name}: draw {number}", file=sys.stderr, flush=True)


def answer(design: Design, table: Table, key: Key, draw: int) -> Row:
    """Return one answer with its error."""
    level, estimand, method, epsilon, delta = key
    truth = design.truth(estimand)
    head = (design.name, level, estimand, method, epsilon, delta, draw)
    if method == ZERO:
        return Row(*head, -truth, 0.0, 0, "", "")
    if method in FREE:
        estimate, se = FREE[method](table, estimand)
        return Row(*head, estimate - truth, NORMAL * se, 1, "", "")
    named = {"outcome": "difference_in_means", "record": "trial"}[level] if method == PLAIN else method
    settings = cv.settings.Trial("none", "pooled") if named == "trial" else None
    if method == PLAIN:
        estimand = "ATE"
    try:
        found = cv.ate(
            table,
            design.study,
            method=named,
            settings=settings,
            protects=level,
            estimand=estimand,
            epsilon=epsilon,
            delta=delta,
            noise=cv.SeededNoise(1000 * (crc32(design.name.encode()) % 10_000) + draw),
        )
    except CounterveilError as refusal:
        return Row(*head, float("nan"), float("nan"), 0, "", refusal.code)
    low, high = found.untruncated_interval()
    valid = int(found.interval_target is None)
    return Row(*head, found.estimate - truth, (high - low) / 2, valid, found.method, "")
