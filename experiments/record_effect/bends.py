"""`python -m experiments.record_effect.bends [--draws N]`: bends of one index, of several shapes.

Treatment and outcome follow the same function of an index of five covariates; its shape, the number of rows and the
budget vary. In the last, each covariate bends by itself. Prints coverage / bias / half-length of 95 % intervals for
the ATE, beside AIPW on the covariates without privacy. Settings of bends were chosen here and on people of seed 77,000
of `experiments/causal`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import expit

import counterveil as cv
from counterveil.data import Table
from experiments.causal.designs import Design, normal, simulated
from experiments.causal.plain import aipw

SEED = 77_000
EPSILONS = ("1", "2", "4", "8")
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "line": lambda v: v,
    "kink": lambda v: np.abs(v) + 0.3 * v,
    "hinge": lambda v: 1.5 * np.maximum(v - 0.3, 0.0),
    "cube": lambda v: 0.5 * v + 0.3 * v**3,
    "step": lambda v: 1.5 * (v > 0.2),
    "sine": lambda v: np.sin(2 * v),
}
APART = "kinks apart"


def bending(shape: str, n: int) -> Design:
    """Return people whose treatment and outcome follow a function of one index, which has variance one."""
    rng = np.random.default_rng([SEED, 11, 0, n])
    x, slopes = rng.uniform(-1, 1, (n, 5)), rng.normal(size=5)
    length = np.sqrt(slopes @ slopes)
    if shape == APART:
        curve = SHAPES["kink"](np.sqrt(3) * x) @ slopes / length
    else:
        curve = SHAPES[shape](np.sqrt(3) * (x @ slopes) / length)
    treated = rng.uniform(size=n) < expit(1.2 * (curve - curve.mean()))
    return simulated(shape, x, treated, (curve, curve + 1.0), normal(0.7, n), (-5, 9))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_effect.bends")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="*", default=[2000, 10_000])
    chosen = parser.parse_args()
    print("| shape | rows | AIPW | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |")
    print("|---|---|---|" + "---|" * len(EPSILONS))
    for n in chosen.rows:
        for shape in (*SHAPES, APART):
            design = bending(shape, n)
            tables = [
                Table.attach({**design.columns, "y": design.outcomes(k)}, design.study)
                for k in range(chosen.draws)
            ]
            free = [aipw(table, "ATE") for table in tables]
            found = [cell(design, [(value, 1.96 * se) for value, se in free])]
            found += [
                cell(design, [private(table, e, k) for k, table in enumerate(tables)]) for e in EPSILONS
            ]
            print(f"| {shape} | {n:,} | " + " | ".join(found) + " |", flush=True)


def private(table: Table, epsilon: str, draw: int) -> tuple[float, float]:
    """Return estimate and half-length."""
    answer = cv.ate(
        table,
        table.study,
        method="doubly_robust",
        protects="record",
        epsilon=epsilon,
        delta="1e-6",
        noise=cv.SeededNoise(5000 + draw),
    )
    low, high = answer.uncut_interval()
    return answer.estimate, (high - low) / 2


def cell(design: Design, answers: list[tuple[float, float]]) -> str:
    estimates, halves = np.array(answers).T
    errors = estimates - design.truth("ATE")
    covered = (np.abs(errors) <= halves).mean()
    return f"{covered:.2f} / {errors.mean():.3f} / {np.median(halves):.3f}"


if __name__ == "__main__":
    main()
