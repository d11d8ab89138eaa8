"""At tiny epsilons staircase noise has more steps than memory holds: intervals failed after the charge."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.session import SeededNoise

ROWS = 200
STUDY = cv.Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates={"b": cv.Binary()},
    control=0,
    randomised=True,
)


def people():
    draw = np.random.default_rng(0)
    return {"b": draw.integers(0, 2, ROWS), "t": np.arange(ROWS) % 2, "y": draw.random(ROWS)}


@pytest.mark.parametrize("epsilon", ["1e-12"])
@pytest.mark.parametrize(
    ("method", "protects"),
    [("difference_in_means", "outcome"), ("stratified", "record"), ("trial", "record")],
)
def test_noise_that_dwarfs_everything_gets_its_interval(method, protects, epsilon):
    found = cv.ate(people(), STUDY, protects=protects, method=method, epsilon=epsilon, noise=SeededNoise(2))
    half = found.uncertainty.half_width(0.95)
    # No noise of this epsilon is shorter, whatever the method: a mean of the rows moves by at least 1/n.
    assert half > 0.5 / (ROWS * float(epsilon))
    low, high = found.interval()
    assert low < high or abs(found.estimate) > half


def test_noise_with_few_rows_and_many_steps_beside_the_sampling_error():
    found = cv.ate(
        people(), STUDY, protects="record", method="stratified", epsilon="1e-12", noise=SeededNoise(2)
    )
    assert found.p_value > 0.01
    assert str(found)
