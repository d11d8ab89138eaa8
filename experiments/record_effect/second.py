"""`python -m experiments.record_effect.second [--draws N]`: how much a second interval should allow for hidden bends.

Prints coverage / half-length beside AIPW without privacy, of the first interval and of others with larger multiples of
the bias of bends that noise hides, on people of seed 77,000. One answer makes all of them.
"""

from __future__ import annotations

import argparse
from math import sqrt
from zlib import crc32

import numpy as np

import counterveil as cv
import experiments.causal.designs as people
from counterveil.data import Table
from experiments.causal.designs import Design, bent, births
from experiments.causal.plain import aipw
from experiments.causal.runs import NORMAL
from experiments.record_effect.bends import APART, SEED, SHAPES, bending

PURE, DELTA = "0", "1e-6"
# What the first interval allows for, and candidates for the second.
FIRST, MULTIPLES = 0.5, (0.5, 1.25, 1.5, 2.0)


def cells() -> list[tuple[Design, list[tuple[str, str]]]]:
    """Return designs with their budgets."""
    small = [("1", DELTA), ("2", DELTA)]
    return [
        (bent(1000), [("4", PURE), ("8", PURE), *small, ("4", DELTA)]),
        (bent(2000), [("2", PURE), ("4", PURE), ("8", PURE), ("1", DELTA)]),
        (bent(10_000), [("1", PURE), ("2", PURE)]),
        *((bending(shape, 2000), small) for shape in (*SHAPES, APART)),
        (births(), small),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_effect.second")
    parser.add_argument("--draws", type=int, default=120)
    draws = parser.parse_args().draws
    people.FIRST_SEED = SEED
    print("| | " + " | ".join(f"{times:g}" for times in MULTIPLES) + " | shown |")
    print("|---|" + "---|" * (len(MULTIPLES) + 1))
    for design, budgets in cells():
        tables = [
            Table.attach({**design.columns, "y": design.outcomes(k)}, design.study) for k in range(draws)
        ]
        free = float(np.median([NORMAL * aipw(table, "ATE")[1] for table in tables]))
        for epsilon, delta in budgets:
            found = np.array([answer(design, table, epsilon, delta, k) for k, table in enumerate(tables)])
            covered, lengths = (found[:, 0, None] <= found[:, 1:-1]).mean(axis=0), np.median(found, axis=0)
            said = [f"{c:.2f} / {h / free:.1f}" for c, h in zip(covered, lengths[1:-1], strict=True)]
            title = f"{design.name}, epsilon {epsilon}, delta {delta}"
            print(f"| {title} | {' | '.join(said)} | {found[:, -1].mean():.2f} |", flush=True)


def answer(design: Design, table: Table, epsilon: str, delta: str, draw: int) -> list[float]:
    """Return the size of the error, the half-length for every multiple, and whether a second interval is shown."""
    found = cv.ate(
        table,
        design.study,
        method="doubly_robust",
        protects="record",
        epsilon=epsilon,
        delta=delta,
        noise=cv.SeededNoise(1000 * (crc32(design.name.encode()) % 10_000) + draw),
    )
    known, once = found.uncertainty, float(found.details["hidden_bend_bias"]) / FIRST
    normal = known.known_sd(0.05) ** 2 - (FIRST * once) ** 2
    halves = [NORMAL * sqrt(normal + (times * once) ** 2) + known.bias for times in MULTIPLES]
    error = abs(found.estimate - design.truth("ATE"))
    return [error, *halves, float("curvature_interval" in found.to_dict())]


if __name__ == "__main__":
    main()
