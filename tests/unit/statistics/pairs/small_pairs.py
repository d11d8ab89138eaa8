"""A table of eighty rows whose covariates stay, and every exchange of one row's treatment and outcome."""

from itertools import product

import numpy as np

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table

ROWS = 80
STUDY = cv.Study(
    "t", "y", (-2, 3), {"x": cv.Range(-1, 1), "b": cv.Binary()}, treated=1, control=0, randomised=False
)
# Outcomes in whole steps: both ends, the middle and places beside them.
OUTCOMES = [
    0,
    1,
    OUTCOME_STEPS // 3,
    OUTCOME_STEPS // 2,
    OUTCOME_STEPS // 2 + 77_777,
    OUTCOME_STEPS - 1,
    OUTCOME_STEPS,
]
PAIRS = list(product((False, True), OUTCOMES))


def table(study=STUDY, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"x": np.round(rng.uniform(-1, 1, rows), 3), "b": rng.integers(0, 2, rows)}
    lean = columns["x"] + rng.normal(size=rows)
    return Table.attach(columns | {"t": (lean > 0).astype(int), "y": lean + rng.normal(size=rows)}, study)


def exchanged(made, row):
    """Yield treatments and outcomes with every pair in one row."""
    for treated, outcome in PAIRS:
        t, y = made.treated.copy(), made.outcome.copy()
        t[row], y[row] = treated, outcome
        yield t, y


def exchanged_arms(made, row):
    """Yield arms of three and outcomes with every pair in one row."""
    for arm, outcome in product(range(3), OUTCOMES):
        arms, y = np.arange(made.rows) % 3, made.outcome.copy()
        arms[row], y[row] = arm, outcome
        yield arms, y


def largest(vectors, distance):
    """Return the largest distance between two of the vectors, in exact numbers."""
    return max(
        distance([a - b for a, b in zip(one, other, strict=True)])
        for place, one in enumerate(vectors)
        for other in vectors[:place]
    )


def squared(difference):
    return sum(entry * entry for entry in difference)


def total(difference):
    return sum(abs(entry) for entry in difference)
