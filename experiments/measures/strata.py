"""Coverage of ratios that are standardised over strata, where the larger risks are treated more often."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

import counterveil as cv
from counterveil.inference.measures import ODDS, RATIO, Quotient
from counterveil.results import MeasureResult
from experiments.measures.ratios import EFFECT

# Risk without treatment and share treated in each stratum.
RISKS, SHARES = np.array([0.05, 0.1, 0.2, 0.3]), np.array([0.35, 0.4, 0.5, 0.6])
FIRST_SEED = 400_000


def people(seed: int, rows: int) -> dict[str, np.ndarray]:
    """Return people in four strata; their sizes and treatments are drawn once."""
    fixed, drawn = np.random.default_rng(rows), np.random.default_rng(seed)
    place = fixed.integers(0, 4, rows)
    treated = (fixed.random(rows) < SHARES[place]).astype(np.int64)
    chance = RISKS[place] * np.where(treated == 1, EFFECT, 1.0)
    labels = np.array(["a", "b", "c", "d"])
    return {"s": labels[place], "t": treated, "y": (drawn.random(rows) < chance).astype(np.int64)}


def coverage(draws: int) -> Iterator[str]:
    """Yield a line for each cell: how often intervals cover, and how long they are."""
    study = cv.Study("t", "y", (0, 1), {"s": cv.Categories(["a", "b", "c", "d"])})
    yield "rows    epsilon   ratio  odds ratio  median length"
    for cell, (rows, epsilon) in enumerate(product((500, 5000), (0.5, 4.0))):
        place = np.searchsorted(["a", "b", "c", "d"], people(0, rows)["s"])
        risk = float(RISKS[place].mean())
        truths = {RATIO: EFFECT, ODDS: EFFECT * (1 - risk) / (1 - EFFECT * risk)}
        covered, lengths = dict.fromkeys(truths, 0), []
        for seed in range(FIRST_SEED + 1000 * cell, FIRST_SEED + 1000 * cell + draws):
            found = cv.ate(
                people(seed, rows),
                study,
                protects="outcome",
                epsilon=epsilon,
                method="stratified",
                measure=RATIO,
                noise=cv.SeededNoise(seed),
            )
            assert isinstance(found, MeasureResult)
            assert found.means is not None
            for kind, truth in truths.items():
                covered[kind] += Quotient(found.means, kind).p_value(0.95, truth) >= 0.05
            if len(lengths) < 5:
                low, high = found.interval()
                lengths.append(high - low)
        yield (
            f"{rows:6,} {epsilon:8.1f} {covered[RATIO] / draws:7.3f} {covered[ODDS] / draws:11.3f} "
            f"{np.median(lengths):14.2f}"
        )
