"""Effects as functions where only outcomes are private: answers, refusals, one effect for all, uses of them."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2
from counterveil.settings import Cate, Series

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


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"method": "t_learner"}, "CV-P018"),
        ({"method": "r_learner", "queries": POINTS}, "CV-P018"),
        ({"method": "series", "protects": "record"}, "CV-P018"),
        ({"settings": Cate()}, "CV-P019"),
        ({"method": "magic"}, "CV-P016"),
    ],
)
def test_refusals_come_before_anything_is_spent(words, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(**words)


def test_too_many_functions_are_refused():
    with pytest.raises(cv.CounterveilError, match="CV-P526"):
        ask(data=dataset_2(400), method="series")


def test_labels_gaps_and_constant_columns():
    rng = np.random.default_rng(2)
    n = 5000
    frame = {
        "age": rng.uniform(20, 80, n),
        "sex": rng.choice(["f", "m"], n),
        "site": rng.choice(["a", "b"], n),
        "empty": np.zeros(n),
        "t": rng.integers(0, 2, n),
    }
    truth = np.where(frame["sex"] == "f", 2.0, 0.0) + np.where(frame["site"] == "b", 1.0, 0.0)
    frame["y"] = frame["t"] * truth + rng.uniform(-1, 1, n)
    domains = {
        "age": cv.Range(18, 90),
        "sex": cv.Categories(["f", "m"]),
        # A label that nobody has.
        "site": cv.Categories(["a", "b", "c"]),
        "empty": cv.Range(0, 1),
    }
    study = cv.Study("t", "y", (-2, 4), domains, control=0, randomised=True)
    found = cv.cate(frame, study, protects="outcome", epsilon=5, noise=cv.SeededNoise(4))
    people = [{"age": 50, "sex": sex, "site": site, "empty": 0} for sex in "fm" for site in "ab"]
    assert found.effect(people) == pytest.approx([2, 3, 0, 1], abs=0.4)
