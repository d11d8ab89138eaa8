"""Coverage of ratios that are pooled from the arm means of several sites with different risks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isinf

import numpy as np

import counterveil as cv
from counterveil.inference.measures import ODDS, RATIO, Quotient
from counterveil.results import MeasureResult
from experiments.measures.ratios import EFFECT, trial

# Rows and risk without treatment of each site.
SITES = {"three sites": ((1500, 0.1), (600, 0.05), (300, 0.2)), "rare, four sites": ((1000, 0.01),) * 4}
FIRST_SEED = 300_000


def coverage(draws: int) -> Iterator[str]:
    """Yield a line for each cell: how often pooled intervals cover, and how long they are."""
    study = cv.Study("t", "y", (0, 1), randomised=True)
    yield "sites             protects  epsilon   ratio  odds ratio  no upper end  median length"
    cells = product(SITES.items(), ("outcome", "record"), (0.5, 2.0))
    for cell, ((name, sites), protects, epsilon) in enumerate(cells):
        sizes, chances = (np.array(numbers) for numbers in zip(*sites, strict=True))
        risk = float(sizes @ chances / sizes.sum())
        truths = {RATIO: EFFECT, ODDS: EFFECT * (1 - risk) / (1 - EFFECT * risk)}
        covered, lengths = dict.fromkeys(truths, 0), []
        for number in range(draws):
            first = FIRST_SEED + 10_000 * cell + 10 * number
            results = [
                cv.ate(
                    trial(first + place, rows, chance, 0.5),
                    study,
                    protects=protects,
                    epsilon=epsilon,
                    measure=RATIO,
                    noise=cv.SeededNoise(first + place),
                )
                for place, (rows, chance) in enumerate(sites)
            ]
            found = cv.pool(results, method="all")
            assert isinstance(found, MeasureResult)
            assert found.means is not None
            for kind, truth in truths.items():
                covered[kind] += Quotient(found.means, kind).p_value(0.95, truth) >= 0.05
            if len(lengths) < 5:
                low, high = found.interval()
                lengths.append(high - low)
        open_ends = np.mean([isinf(length) for length in lengths])
        yield (
            f"{name:16}  {protects:8} {epsilon:8.1f} {covered[RATIO] / draws:7.3f} {covered[ODDS] / draws:11.3f} "
            f"{open_ends:13.0%} {np.median(lengths):14.2f}"
        )
