"""Coverage of intervals for tau and for one more site, of random effects from noisy answers.

python -m experiments.pooling.heterogeneity [draws]   # rewrites heterogeneity.csv; 200 draws: 3 minutes
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

import counterveil as cv
from experiments.pooling.differing import MEAN_EFFECT, drawn, templates

CELLS = (
    ("alike", 6, 0.1),
    ("alike", 6, 0.0),
    ("unequal budgets", 12, 0.05),
    ("unequal sizes and budgets", 4, 0.05),
    ("unequal sizes and budgets", 2, 0.1),
)


def cell(design: str, sites: int, tau: float, draws: int) -> list[Any]:
    """Return coverage of mean, one more site and tau, and the median interval of tau."""
    rng, real, kept, ends = np.random.default_rng([draws, sites]), templates(design, sites), [], []
    for _ in range(draws):
        results = drawn(real, rng.normal(MEAN_EFFECT, tau, sites), rng)
        another = float(rng.normal(MEAN_EFFECT, tau))
        pooled = cv.pool(results, method="random_effects")
        (low, high), (least, most) = pooled.untruncated_interval(), pooled.prediction_interval()
        own = pooled.heterogeneity_interval()["tau"]
        kept.append([low <= MEAN_EFFECT <= high, least <= another <= most, own[0] <= tau <= own[1]])
        ends.append([*own, pooled.heterogeneity.tau])
    said = np.median(ends, axis=0).round(3)
    return [design, sites, tau, draws, *np.mean(kept, axis=0).round(3), *said]


def main() -> None:
    """Write a row a cell."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    header = ["design", "sites", "tau", "draws", "mean covered", "one more site covered", "tau covered"]
    rows = [[*header, "tau, low", "tau, high", "tau, estimate"]]
    for one in CELLS:
        rows.append(cell(*one, draws))
        print(*rows[-1], sep=", ", flush=True)
    with Path(__file__).with_name("heterogeneity.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
