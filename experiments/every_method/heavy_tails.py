"""`python -m experiments.every_method.heavy_tails [--draws N]`: what does clipping the score take away?

`doubly_robust` with delta = 1e-6, its clip as it is and at a fixed number of standard deviations. The truth is what
least squares gives on all rows (401(k), of which rows are drawn with replacement, and ACIC, whose rows are kept) or
on a million rows (simulated). Cells are mean error / root mean square error / coverage / mean half-width, in the
outcome's units.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from unittest.mock import patch

import numpy as np

import counterveil as cv
from counterveil.data import Range, Study, Table
from counterveil.data.features import feature_map
from counterveil.datasets import pension401k
from experiments.every_method.designs import acic
from experiments.record_effect.designs import EFFECT, frame

EPSILONS = ("2", "8", "50")
RUN = importlib.import_module("counterveil.statistics.moments.orthogonal")
Draw = Callable[[int], Table]


def least_squares(table: Table) -> float:
    """Return the coefficient of the treatment beside all covariates."""
    features = feature_map(table.study, 1)
    x = features.block(table.covariates, slice(0, table.rows))
    low, high = (float(end) for end in table.study.outcome_range)
    y = low + (high - low) * table.outcome / 2**24
    rows = np.column_stack((np.ones(table.rows), table.treated, x))
    return float(np.linalg.lstsq(rows, y, rcond=None)[0][1])


def student(n: int, seed: int) -> Table:
    """Return a study whose outcomes have the tails of a Student mechanism with 2.5 degrees of freedom."""
    r = np.random.default_rng([seed, n])
    x = r.uniform(size=(n, 10))
    t = r.uniform(size=n) < 1 / (1 + np.exp(3 - 1.5 * x[:, :4].sum(axis=1)))
    y = np.clip(x[:, :5].sum(axis=1) + 0.5 * t + r.standard_t(2.5, n) * (1 + 0.5 * t), -30, 60)
    names = [f"x{j}" for j in range(10)]
    study = Study("t", "y", (-30, 60), dict.fromkeys(names, Range(0, 1)), control=0)
    return Table.attach({"t": t.astype(int), "y": y} | dict(zip(names, x.T, strict=True)), study)


def pension() -> tuple[float, Draw]:
    data = pension401k()
    size = len(next(iter(data.frame.values())))

    def draw(seed: int) -> Table:
        rows = np.random.default_rng(seed).integers(0, size, size)
        return Table.attach(
            {name: np.asarray(column)[rows] for name, column in data.frame.items()}, data.study
        )

    return least_squares(Table.attach(data.frame, data.study)), draw


def simulated() -> tuple[float, Draw]:
    return float(np.mean([least_squares(student(100_000, 10**6 + k)) for k in range(10)])), lambda s: student(
        10_000, s
    )


def kept(setting: int) -> tuple[float, Draw]:
    table = acic(setting)(0).table
    return least_squares(table), lambda _: table


def synth() -> tuple[float, Draw]:
    def draw(seed: int) -> Table:
        columns = frame("plain", seed, 4000, 20)
        names = [name for name in columns if name.startswith("x")]
        ends = float(columns["y"].min()) - 0.1, float(columns["y"].max()) + 0.1
        study = Study("treated", "y", ends, dict.fromkeys(names, Range(0, 1)), control=0)
        return Table.attach(columns, study)

    return EFFECT, draw


DESIGNS: dict[str, Callable[[], tuple[float, Draw]]] = {
    "401(k), n = 9,915": pension,
    "Student tails, n = 10,000": simulated,
    "ACIC 1": lambda: kept(1),
    "ACIC 3": lambda: kept(3),
    "Synth, n = 4,000": synth,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.every_method.heavy_tails")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--first", type=int, default=50_000, help="first seed")
    parser.add_argument("--only", nargs="*")
    chosen = parser.parse_args()
    print("| study | clip | " + " | ".join(EPSILONS) + " |\n|---|---|" + "---|" * len(EPSILONS), flush=True)
    for name, make in DESIGNS.items():
        if chosen.only and not any(word in name for word in chosen.only):
            continue
        truth, draw = make()
        # Rows that are kept differ by noise alone.
        draws = max(chosen.draws // 4, 2) if name.startswith("ACIC") else chosen.draws
        tables = {seed: draw(seed) for seed in range(chosen.first, chosen.first + draws)}
        cells = [cell(tables, truth, epsilon) for epsilon in EPSILONS]
        print(f"| {name} | follows noise and tails | " + " | ".join(cells) + " |", flush=True)
        with patch.object(RUN, "longer_reach", lambda reach, *_: reach):
            cells = [cell(tables, truth, epsilon) for epsilon in EPSILONS]
        print(f"| {name} | at most 4 sd | " + " | ".join(cells) + " |", flush=True)


def cell(tables: dict[int, Table], truth: float, epsilon: str) -> str:
    found = []
    for seed, table in tables.items():
        try:
            result = cv.ate(
                table,
                table.study,
                protects="record",
                epsilon=epsilon,
                delta="1e-6",
                method="doubly_robust",
                noise=cv.SeededNoise(seed),
            )
        except cv.CounterveilError:
            return "refused"
        low, high = result.untruncated_interval()
        found.append((result.estimate - truth, (high - low) / 2))
    error, half = np.array(found).T
    covered = float((np.abs(error) <= half).mean())
    return f"{error.mean():.3g} / {np.sqrt((error**2).mean()):.3g} / {covered:.2f} / {half.mean():.3g}"


if __name__ == "__main__":
    main()
