"""Effects as functions where only outcomes are private: answers, refusals, one effect for all, uses of them."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2
from counterveil.settings import Series

DATA = dataset_1(3000, 3)
POINTS = {"x1": np.linspace(0.05, 0.95, 10), "x2": np.full(10, 0.4)}


def ask(epsilon=1, seed=1, data=DATA, study=None, **words):
    words = {"delta": "1e-6", "protects": "outcome"} | words
    return cv.cate(data.frame, study or data.study, epsilon=epsilon, noise=cv.SeededNoise(seed), **words)


@pytest.fixture(scope="module")
def model():
    return ask()


def test_truth_lies_in_intervals_and_bands(model):
    truth = DATA.effect_at(POINTS)
    assert model.heterogeneous
    assert np.sqrt(np.mean((model.effect(POINTS) - truth) ** 2)) < 0.5
    low, high = model.interval(POINTS)
    least, most = model.band(POINTS)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9
    assert (least <= low).all()
    assert (high <= most).all()
    mean, one, two = model.average(POINTS)
    assert one < mean < two


def test_intervals_hold_those_around_the_effect_as_measured(model):
    """Intervals are about the effect before it was shrunk, and the shrunken effect is their middle."""
    low, high = model.interval(POINTS)
    measured = replace(model, weights=model.weights + model.shrinkage, shrinkage=None)
    least, most = measured.interval(POINTS)
    assert (low <= least + 1e-12).all()
    assert (most <= high + 1e-12).all()
    assert (low + high) / 2 == pytest.approx(model.effect(POINTS))
    moved = np.abs(measured.effect(POINTS) - model.effect(POINTS))
    assert (high - low) / 2 == pytest.approx((most - least) / 2 + moved)


def test_few_rows_for_many_covariates_give_one_adjusted_effect():
    data = dataset_2(600, 1)
    found = ask(4, data=data)
    assert not found.heterogeneous
    assert "ONE EFFECT FOR ALL" in str(found)
    people = {name: data.frame[name][:5] for name in data.study.covariates}
    for asked in (found.interval, found.band, found.average):
        with pytest.raises(cv.CounterveilError, match="CV-P528"):
            asked(people)
    same = cv.ate(
        data.frame, data.study, protects="outcome", epsilon=4, method="weighting", noise=cv.SeededNoise(1)
    )
    assert found.effect(people) == pytest.approx(np.full(5, same.estimate))
    (one,) = found.table
    assert one.interval() == pytest.approx(same.interval(), rel=1e-6)
    # A named method is not replaced by another.
    assert ask(4, data=data, method="series", settings=Series(degree=1)).heterogeneous


def test_too_many_functions_are_refused():
    with pytest.raises(cv.CounterveilError, match="CV-P526"):
        ask(data=dataset_2(400), method="series")
