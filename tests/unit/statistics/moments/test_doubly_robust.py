"""The orthogonal private effect through the front door."""

import numpy as np
import pytest
from tests.unit.statistics.moments.robust_data import (
    DELTA,
    EFFECT,
    ask,
    columns,
    confounded,
    covered,
    difference,
    least_squares,
    mixed,
)

import counterveil as cv
from counterveil.session import SeededNoise


@pytest.mark.parametrize(("epsilon", "delta"), [(2, DELTA), (8, 0)])
def test_it_removes_confounding_and_covers(epsilon, delta):
    found = [ask(confounded(), seed, epsilon=epsilon, delta=delta) for seed in range(12)]
    errors = np.array([one.estimate - EFFECT for one in found])
    assert np.sqrt((errors**2).mean()) < 0.15 * abs(difference(confounded()) - EFFECT)
    assert covered(found, least_squares(*columns(confounded()))[0]) >= 11
    assert all(one.details["adjusted"] is True for one in found)


def test_with_a_vast_budget_it_is_ordinary_least_squares():
    reference, error = least_squares(*columns(confounded()))
    sharp = ask(confounded(), epsilon=2000)
    assert sharp.estimate == pytest.approx(reference, abs=3e-4)
    assert sharp.std_error.total == pytest.approx(error, rel=0.1)
    assert sharp.std_error.noise < 0.1 * sharp.std_error.sampling


def test_numbers_labels_and_categories_are_adjusted_for():
    frame, study = mixed()
    t, y = frame["t"] == 1, frame["y"]
    raw = y[t].mean() - y[~t].mean()
    assert raw - EFFECT > 0.8
    found = [
        cv.ate(
            frame, study, protects="record", method="doubly_robust", estimand="ATO", epsilon=1, delta=DELTA,
            settings=cv.settings.DoublyRobust(degree=1), noise=SeededNoise(s),
        )
        for s in range(8)
    ]  # fmt: skip
    assert np.abs([one.estimate - EFFECT for one in found]).mean() < 0.1 * (raw - EFFECT)
    assert found[0].details["features"] == 4
    flags = np.column_stack([frame["x"], frame["b"], frame["c"] == "u", frame["c"] == "v"])
    assert covered(found, least_squares(flags, frame["t"], y)[0]) == 8


def test_degree_two_removes_what_lines_cannot():
    frame, study = mixed()
    x = (frame["x"] - 41.5) / 23.5
    rng = np.random.default_rng(0)
    t = rng.random(len(x)) < 1 / (1 + np.exp(-3 * (x**2 - 0.33)))
    bent = frame | {"t": t.astype(int), "y": 4 + 2 * x**2 + EFFECT * t + rng.normal(0, 0.3, len(x))}
    found = {}
    for degree in (1, 2, "auto"):
        settings = cv.settings.DoublyRobust(degree=degree)
        found[degree] = cv.ate(
            bent, study, protects="record", method="doubly_robust", estimand="ATO", epsilon=8, delta=DELTA,
            settings=settings, noise=SeededNoise(3),
        )  # fmt: skip
    assert abs(found[1].estimate - EFFECT) > 0.3
    assert abs(found[2].estimate - EFFECT) < 0.05
    # Four features, their squares where they are numbers, and products across covariates.
    assert found[2].details["features"] == found["auto"].details["features"] == 4 + 1 + 5
