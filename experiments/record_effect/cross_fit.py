"""Cross-fitting beside doubly_robust.

Coverage / root mean square error / median width of 95 % intervals on simulated studies, each draw with data and noise
of its own; seeds are not those that settings were chosen on.
"""

from __future__ import annotations

import numpy as np

import counterveil as cv
from experiments.record_effect.designs import instance
from experiments.runner import Row, Table

FIRST_SEED = 50_000
EPSILONS = ("1", "4")
PUBLISHED = "published"
KINDS = ("plain", "aligned", "nonlinear", "correlated")
# Heading, method, estimand, delta.
METHODS = (
    ("doubly_robust", "doubly_robust", "ATE", "1e-6"),
    ("doubly_robust ATT", "doubly_robust", "ATT", "1e-6"),
    ("cross_fit", "cross_fit", "ATE", "1e-6"),
    ("cross_fit ATT", "cross_fit", "ATT", "1e-6"),
    ("cross_fit ATC", "cross_fit", "ATC", "1e-6"),
    ("doubly_robust pure", "doubly_robust", "ATE", "0"),
    ("cross_fit pure", "cross_fit", "ATE", "0"),
    ("cross_fit, as published", PUBLISHED, "ATE", "1e-6"),
)


# Asked of every kind of study; the others of the plain one alone, whose effect does not vary.
EVERYWHERE = ("doubly_robust", "cross_fit")


def cell(kind: str, rows: int, seeds: range, epsilon: str, words: tuple[str, str, str]) -> str:
    """Return one cell of the table."""
    method, estimand, delta = words
    errors, halves = [], []
    for seed in seeds:
        study = instance(kind, seed, rows, 20, False)
        try:
            asked = {"epsilon": epsilon, "delta": delta, "estimand": estimand, "noise": cv.SeededNoise(seed)}
            source = study.table, study.table.study
            if method == PUBLISHED:
                result = cv.published.cross_fit(*source, accept="unproved", **asked)
            elif method == "cross_fit":
                result = cv.published.cross_fit_proved(*source, **asked)
            else:
                result = cv.ate(*source, protects="record", method=method, **asked)
        except cv.CounterveilError as refused:
            return f"refused ({refused.code})"
        low, high = result.untruncated_interval()
        errors.append(result.estimate - study.truth)
        halves.append((high - low) / 2)
    error, half = np.array(errors), np.array(halves)
    covered = float((np.abs(error) <= half).mean())
    return f"{covered:.2f} / {float(np.sqrt((error**2).mean())):.3g} / {2 * float(np.median(half)):.3g}"


def row(rows: int, kind: str, name: str, words: tuple[str, str, str], *, seeds: range) -> Row:
    """Return the cells of a method for every epsilon."""
    return [rows, kind, name, *(cell(kind, rows, seeds, epsilon, words) for epsilon in EPSILONS)]


TABLE = Table(
    columns=("rows :,", "study", "method", *(f"epsilon {epsilon}" for epsilon in EPSILONS)),
    cells=[
        (rows, kind, name, (method, estimand, delta))
        for rows in (10_000, 100_000)
        for kind in KINDS
        for name, method, estimand, delta in METHODS
        if kind == KINDS[0] or name in EVERYWHERE
    ],
    row=row,
    draws=40,
    first_seed=FIRST_SEED,
    apart=True,
)
