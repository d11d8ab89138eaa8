"""Figures 6 and 7: the smooth sensitivity of matching on Synth, beside a proved one and the noise of each."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

import counterveil as cv
from counterveil.datasets import synth_strata
from counterveil.published.smooth_sensitivity import printed_smooth_change, printed_smoothness
from counterveil.reproduce.protocol import Cell, Row
from counterveil.statistics.strata.smooth_sensitivity import smooth_change
from counterveil.statistics.strata.variance_sensitivity import StratumCounts

if TYPE_CHECKING:
    import pandas as pd

EPSILON, DELTA, STRATA = 1.0, 1e-5, 100
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
SLOPES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
QUICK, FULL = 5, 20
# Balanced data, the slope that is drawn where none is mentioned, and the ends of that draw.
BALANCED, DRAWN = "0", "drawn from [-1, 1]"
# Noise of each release alone at epsilon 1: a Laplace scale of 2 S, a Laplace scale of the range, and all of ours.
MEASURES = ("printed S", "proved S", "noise SD, printed smooth", "noise SD, printed global", "noise SD, ours")


def by_size(quick: bool) -> Sequence[Cell]:
    """Return the cells of Figure 6: sizes, with balanced data and with a drawn slope."""
    return [
        {"figure": 6, "people": size, "slope": slope, "seed": 0, "repetitions": QUICK if quick else FULL}
        for size in SIZES
        for slope in (BALANCED, DRAWN)
    ]


def by_slope(quick: bool) -> Sequence[Cell]:
    """Return the cells of Figure 7: slopes of the propensity at 10,000 people."""
    return [
        {
            "figure": 7,
            "people": 10_000,
            "slope": f"{slope:g}",
            "seed": 0,
            "repetitions": QUICK if quick else FULL,
        }
        for slope in SLOPES
    ]


def run(cell: Cell) -> list[Row]:
    """Return the sensitivities of each drawn data set, in ranges of the outcome, and the noise they lead to."""
    first = int(cell["seed"] or 0)
    slope = None if cell["slope"] == DRAWN else float(cell["slope"] or 0)
    return [
        {"repetition": seed, "measure": name, "value": value}
        for seed in range(first, first + int(cell["repetitions"] or 0))
        for name, value in zip(MEASURES, _measured(int(cell["people"] or 0), slope, seed), strict=True)
    ]


def _measured(people: int, slope: float | None, seed: int) -> tuple[float, ...]:
    data = synth_strata(seed=30_000 + seed, n=people, levels=STRATA, slope=slope)
    level, treated = data.frame["x"], data.frame["treated"]
    everyone = np.bincount(level, minlength=STRATA)
    in_treatment = np.bincount(level, treated, STRATA).astype(np.int64)
    counts = StratumCounts.of(in_treatment, everyone - in_treatment, STRATA)
    beta = printed_smoothness(EPSILON, DELTA)
    printed = printed_smooth_change(counts, beta) / people
    proved = float(smooth_change(counts, Fraction(beta), "ATE", "single")) / people
    ours = cv.ate(
        data.frame, data.study, protects="record", epsilon=1, method="stratified", noise=cv.SeededNoise(seed)
    )
    noise = ours.uncertainty.noise
    return (
        printed,
        proved,
        8**0.5 * printed / EPSILON,
        2**0.5 / EPSILON,
        noise.variance**0.5 if noise else 0.0,
    )


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over data sets, one column a measure."""
    import pandas as pd

    found = []
    for (people, slope), own in rows.groupby(["people", "slope"], sort=False):
        means = {name: own.loc[own["measure"] == name, "value"].mean() for name in MEASURES}
        drawn = own["repetition"].nunique()
        found.append({"people": people, "slope": slope, **means, "repetitions": drawn})
    return pd.DataFrame(found)
