"""Intervals and bands of outcome-level functions hold as often as they claim, and errors are small."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2, kink, skewed

DESIGNS = {"dataset 1": dataset_1, "dataset 2": dataset_2, "kink": kink, "skewed": skewed}


def held(make, rows, draws, first, epsilon=1, delta="1e-6"):
    """Return how often intervals at points and bands over all points hold, and the root mean squared error."""
    points, bands, errors = [], [], []
    for seed in range(first, first + draws):
        data = make(rows + 300, seed)
        learn = {name: values[:rows] for name, values in data.frame.items()}
        people = {name: data.frame[name][rows:] for name in data.study.covariates}
        truth = data.effects[rows:]
        model = cv.cate(
            learn,
            data.study,
            protects="outcome",
            method="series",
            epsilon=epsilon,
            delta=delta,
            noise=cv.SeededNoise(seed),
        )
        low, high = model.interval(people)
        least, most = model.band(people)
        points.append(np.mean((low <= truth) & (truth <= high)))
        bands.append(bool(((least <= truth) & (truth <= most)).all()))
        errors.append(np.sqrt(np.mean((model.effect(people) - truth) ** 2)))
    return np.mean(points), np.mean(bands), np.mean(errors)


# Twice the errors that `python -m experiments.cate` prints: few draws.
@pytest.mark.parametrize(("design", "largest"), [("skewed", 0.25), ("kink", 0.4)])
def test_intervals_and_bands_hold_at_3000_rows(design, largest):
    points, bands, error = held(DESIGNS[design], 3000, 8, 1000)
    assert points >= 0.93
    assert bands >= 7 / 8
    assert error < largest


def test_thirty_covariates_do_not_hide_the_two_that_matter():
    points, _, error = held(dataset_2, 6000, 2, 1000, epsilon=4)
    assert points >= 0.93
    assert error < 0.8


# Large budgets leave sampling error alone, which is measured in the same outcomes.
@pytest.mark.parametrize(("epsilon", "delta"), [(50, "1e-6"), pytest.param(4, 0, marks=pytest.mark.slow)])
def test_pure_noise_and_large_budgets(epsilon, delta):
    points, bands, _ = held(dataset_1, 3000, 10, 1100, epsilon, delta)
    assert points >= 0.93
    assert bands >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("design", list(DESIGNS))
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_coverage_over_many_draws(design, epsilon):
    many = design == "dataset 2"
    points, bands, _ = held(DESIGNS[design], 3000, 30 if many else 100, 2000, epsilon)
    assert points >= 0.93
    assert bands >= 0.93
