"""A NaN that is spelled in text gets past no reader, and moves no release further than another value would."""

from functools import cache

import numpy as np
import pytest

import counterveil as cv

STUDY = cv.Study(
    "t", "y", (0, 1), {"x": cv.Range(0, 1)}, control=0, missing=dict.fromkeys("xy", cv.drafting.Fill("1/2")),
)  # fmt: skip
ROWS = 2000
# One person of 2000 moves these estimates by about 1e-3; a NaN moved the first by .02 and more.
MOST = 0.005


def people():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, ROWS)
    t = (rng.uniform(size=ROWS) < 0.3 + 0.4 * x).astype(int)
    y = np.clip(0.3 * x + 0.2 * t + rng.normal(0, 0.1, ROWS), 0, 1)
    return {"t": t.tolist(), "y": [repr(float(v)) for v in y], "x": [repr(float(v)) for v in x]}


@cache
def released(column, cell):
    rows = people()
    rows[column][7] = cell
    return [
        cv.ate(
            rows, STUDY, protects="record", epsilon=8, method="doubly_robust", noise=cv.SeededNoise(seed)
        ).estimate
        for seed in range(2)
    ]


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("cell", ["NAN", "-nan"])
def test_a_nan_moves_a_release_no_further_than_a_number_does(column, cell):
    np.testing.assert_allclose(released(column, cell), released(column, "0.25"), rtol=0, atol=MOST)
    # Not by chance: it is the value filled in.
    assert released(column, cell) == released(column, "0.5")
