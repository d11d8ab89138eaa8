"""Coverage of ratios and odds ratios of a trial's arms: risks, sizes of arms, people and budgets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isinf

import numpy as np

import counterveil as cv
from counterveil.inference.measures import ODDS, RATIO, Quotient
from counterveil.results import MeasureResult

RISKS, SHARES, SIZES, EPSILONS = (0.5, 0.1, 0.01), (0.5, 0.2), (500, 5000, 50_000), (0.5, 1.0, 4.0)
# The risk of the treated beside that of the controls.
EFFECT = 1.3
# The cells of the short table.
KEY = [
    (0.5, 0.5, 500, 1.0),
    (0.01, 0.2, 500, 4.0),
    (0.1, 0.2, 5000, 0.5),
    (0.01, 0.2, 5000, 0.5),
    (0.01, 0.5, 5000, 4.0),
    (0.01, 0.2, 50_000, 1.0),
]


def trial(seed: int, rows: int, risk: float, share: float) -> dict[str, np.ndarray]:
    """Return arms of fixed sizes and outcomes that are 0 or 1."""
    generator = np.random.default_rng(seed)
    treated = np.zeros(rows, np.int64)
    treated[: round(share * rows)] = 1
    chance = np.where(treated == 1, EFFECT * risk, risk)
    return {"t": treated, "y": (generator.random(rows) < chance).astype(np.int64)}


def coverage(draws: int, whole: bool) -> Iterator[str]:
    """Yield a line for each cell: how often intervals cover, and how often they have no upper end."""
    study = cv.Study("t", "y", (0, 1), randomised=True)
    cells = list(product(RISKS, SHARES, SIZES, EPSILONS)) if whole else KEY
    yield "protects   risk  treated    rows  epsilon   ratio  odds ratio  no upper end  median length"
    for cell, (protects, (risk, share, rows, epsilon)) in enumerate(product(("outcome", "record"), cells)):
        truths = {RATIO: EFFECT, ODDS: EFFECT * (1 - risk) / (1 - EFFECT * risk)}
        covered, lengths = dict.fromkeys(truths, 0), []
        for seed in range(1000 * cell, 1000 * cell + draws):
            method = {"outcome": "difference_in_means", "record": "trial"}[protects]
            found = cv.ate(
                trial(seed, rows, risk, share),
                study,
                protects=protects,
                epsilon=epsilon,
                method=method,
                measure=RATIO,
                noise=cv.SeededNoise(seed),
            )
            assert isinstance(found, MeasureResult)
            assert found.means is not None
            for kind, truth in truths.items():
                # A value is in the interval where its p-value is above 1 - level.
                covered[kind] += Quotient(found.means, kind).p_value(0.95, truth) >= 0.05
            if len(lengths) < 5:
                low, high = found.interval()
                lengths.append(high - low)
        open_ends = np.mean([isinf(length) for length in lengths])
        yield (
            f"{protects:8} {risk:6.2f} {share:8.0%} {rows:7,} {epsilon:8.1f} {covered[RATIO] / draws:7.3f} "
            f"{covered[ODDS] / draws:11.3f} {open_ends:13.0%} {np.median(lengths):14.2f}"
        )
