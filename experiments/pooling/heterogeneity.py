"""Coverage of intervals for tau and for one more site, of random effects from noisy answers."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from experiments.pooling.differing import MEAN_EFFECT, drawn, templates
from experiments.runner import Row, Table

CELLS = (
    ("alike", 6, 0.1),
    ("alike", 6, 0.0),
    ("unequal budgets", 12, 0.05),
    ("unequal sizes and budgets", 4, 0.05),
    ("unequal sizes and budgets", 2, 0.1),
)


def cell(design: str, sites: int, tau: float, *, seeds: range) -> Row:
    """Return coverage of mean, one more site and tau, and the median interval of tau."""
    draws, real, kept, ends = len(seeds), templates(design, sites), [], []
    rng = np.random.default_rng([draws, sites])
    for _ in seeds:
        results = drawn(real, rng.normal(MEAN_EFFECT, tau, sites), rng)
        another = float(rng.normal(MEAN_EFFECT, tau))
        pooled = cv.pool(results, method="random_effects")
        (low, high), (least, most) = pooled.untruncated_interval(), pooled.prediction_interval()
        own = pooled.heterogeneity_interval()["tau"]
        kept.append([low <= MEAN_EFFECT <= high, least <= another <= most, own[0] <= tau <= own[1]])
        ends.append([*own, pooled.heterogeneity.tau])
    said = np.median(ends, axis=0).round(3)
    return [design, sites, tau, draws, *np.mean(kept, axis=0).round(3), *said]


TABLE = Table(
    columns=(
        "design | sites | tau | draws | mean covered | one more site covered | tau covered | "
        "tau, low | tau, high | tau, estimate"
    ),
    cells=CELLS,
    row=cell,
    apart=True,
)
