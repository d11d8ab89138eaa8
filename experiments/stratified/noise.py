"""How much noise strata of given counts call for: the published smooth sensitivity against ours."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Table, strata_of_table
from counterveil.data.layout import Layout
from counterveil.datasets import synth_strata
from counterveil.mechanisms import Lomax, Staircase
from counterveil.privacy import Estimand
from counterveil.published.strata import (
    printed_noise_scale,
    printed_smooth_change,
    printed_smoothness,
)
from counterveil.published.strata_sensitivity import StratumCounts, smooth_change
from counterveil.rows.strata.sensitivity import BoundedStrata
from experiments import runner

DELTA = 1e-5


def _equal(strata: int, treated: int, control: int, empty: int = 0) -> StratumCounts:
    return StratumCounts.of(np.full(strata, treated), np.full(strata, control), strata + empty)


def _synth() -> StratumCounts:
    data = synth_strata(seed=0, n=10_000)
    strata = strata_of_table(Table.attach(data.frame, data.study), Layout.of(data.study))
    return StratumCounts.of(strata.treated, strata.control, strata.public)


def designs() -> dict[str, StratumCounts]:
    return {
        "10 strata of 50/50": _equal(10, 50, 50),
        "10 strata of 50/50 and an empty one": _equal(10, 50, 50, empty=1),
        "100 strata of 50/50": _equal(100, 50, 50),
        "100 strata of 50/50 and an empty one": _equal(100, 50, 50, empty=1),
        "Synth, 100 strata, n = 10,000": _synth(),
        "8 strata of 17/76": _equal(8, 17, 76),
    }


def deviations(counts: StratumCounts, epsilon: Fraction) -> tuple[float, float, float]:
    """Return the noise's standard deviation: as published, smooth with Lomax noise, bounded weights."""
    beta = printed_smoothness(float(epsilon), DELTA)
    scale = printed_noise_scale(printed_smooth_change(counts, beta), float(epsilon))
    usual = Lomax.default(epsilon)
    bound = smooth_change(counts, usual.smoothness, "ATE", "all")
    limited = BoundedStrata(counts.rows, Fraction(4), Estimand.ATE).effect
    return (
        sqrt(2) * scale / counts.rows,
        sqrt(usual.distribution(bound).variance) / counts.rows,
        sqrt(Staircase(limited, epsilon).variance) / counts.rows,
    )


def row(name: str, epsilon: Fraction, *, seeds: range) -> runner.Row:
    """Return the standard deviations of a design; nothing is drawn."""
    return [name, str(epsilon), *deviations(designs()[name], epsilon)]


TABLE = runner.Table(
    columns=(
        "strata | epsilon | published, delta 1e-5 :.4f | smooth, Lomax, delta 0 :.4f | "
        "weights up to 4, delta 0 :.4f"
    ),
    cells=lambda: [(name, Fraction(epsilon)) for name in designs() for epsilon in (1, 3)],
    row=row,
    title="## Standard deviation of the noise, outcomes in [0, 1]",
)
