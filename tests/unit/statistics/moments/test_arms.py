"""Sums by arm of private records: one record moves them within their bounds, and their means are the arms'."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import OUTCOME_STEPS
from counterveil.errors import CounterveilError
from counterveil.numerics.columns import Arm, cell_totals
from counterveil.statistics.moments.trial import bounds, three_sums

WEIGHTS = (Fraction(1), Fraction(1, 3))
LABELS = (0, 1, 2)


def vector(records):
    arms = np.array([arm for arm, *_ in records])
    found = []
    for place, weight in enumerate(WEIGHTS):
        steps = np.array([OUTCOME_STEPS * record[place + 1] // 2 for record in records])
        for totals in cell_totals(arms, 3, steps):
            found += [weight * one for one in three_sums(Arm(*map(int, totals)))]
    return found


def test_one_record_moves_the_sums_of_all_arms_within_both_bounds():
    rest = ((0, 0, 1), (1, 2, 0), (2, 1, 1))
    found = [vector((kind, *rest)) for kind in product(LABELS, (0, 1, 2), (0, 1, 2))]
    total, length = bounds(WEIGHTS)
    changes = [[abs(a - b) for a, b in zip(one, two, strict=True)] for one, two in product(found, repeat=2)]
    assert max(sum(change) for change in changes) == total
    longest = max(sum(one**2 for one in change) for change in changes)
    assert longest == 2 * (1 + Fraction(1, 9))
    assert longest <= length**2 <= longest * (1 + Fraction(1, 10**6))


def people(n=6000):
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 3, n)
    y = np.clip(40 + np.array([0, 5, -5])[arm] + 12 * rng.normal(size=n), 0, 100)
    return {"arm": arm, "y": y, "z": (rng.random(n) < 0.2 + 0.1 * arm).astype(float)}


def declared(**more):
    return cv.Study("arm", **({"outcome": "y", "outcome_range": (0, 100)} | more), arms=LABELS, reference=0)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_effects_of_private_arms_are_answered_around_the_truth(delta):
    study = declared(randomised=True)
    ask = {"protects": "record", "epsilon": 1, "delta": delta, "noise": cv.SeededNoise(1)}
    found = cv.arms(people(), study, **ask)
    for effect, truth in zip(found.pairwise(), (5, -5, -10), strict=True):
        low, high = effect.interval(simultaneous=True)
        assert low < truth < high < low + 3.5
    assert sum(mean.size for mean in found.means) == pytest.approx(6000, abs=100)
    assert type(found).from_dict(found.to_dict()).interval() == found.interval()


def test_a_dose_response_is_one_band_over_the_doses():
    study = declared(randomised=True)
    found = cv.arms(people(), study, protects="record", epsilon=1, noise=cv.SeededNoise(1))
    rows = found.dose_response({0: 10, 1: 0, 2: 5})
    assert [row["dose"] for row in rows] == [0, 5, 10]
    for row, truth in zip(rows, (45, 35, 40), strict=True):
        assert row["band_low"] < row["conf_low"] < row["estimate"] < row["conf_high"] < row["band_high"]
        assert row["band_low"] - 0.5 < truth < row["band_high"] + 0.5
    assert found.slope({0: 10, 1: 0, 2: 5}).interval()[0] < -0.5


def test_means_are_the_arms_own_where_noise_is_small():
    data, study = people(300), declared(randomised=True)
    found = cv.arms(data, study, protects="record", epsilon=10**6, noise=cv.SeededNoise(1))
    for arm, mean in enumerate(found.means):
        own = data["y"][data["arm"] == arm]
        assert mean.estimate == pytest.approx(own.mean(), rel=1e-4)
        assert float(mean.std_error) == pytest.approx(own.std() / len(own) ** 0.5, rel=1e-2)


def test_an_arm_lost_in_noise_has_the_whole_range():
    data = people(90)
    found = cv.arms(
        data, declared(randomised=True), protects="record", epsilon="1/5", noise=cv.SeededNoise(1)
    )
    assert all(mean.interval() == (0.0, 100.0) for mean in found.means)


def test_several_outcomes_of_private_arms_are_ratios_too():
    study = declared(outcome=None, outcome_range=None, outcomes={"y": (0, 100), "z": (0, 1)}, randomised=True)
    words = {"protects": "record", "epsilon": 2, "noise": cv.SeededNoise(1)}
    found = cv.outcomes(people(), study, importance={"z": 2}, **words)
    for (outcome, arm), truth in {("y", 1): 5, ("y", 2): -5, ("z", 1): 0.1, ("z", 2): 0.2}.items():
        low, high = found.effect(outcome, arm).interval()
        assert low < truth < high
    low, high = found.as_measure("ratio").effect("z", 2).interval()
    assert low < 2 < high < low + 0.6


def test_what_is_no_trial_is_refused_or_named():
    words = {"protects": "record", "epsilon": 1, "noise": cv.SeededNoise(1)}
    for more, code in (({}, "CV-S050"), ({"method": "weighting"}, "CV-P016")):
        with pytest.raises(CounterveilError, match=code):
            cv.arms(people(100), declared(), **words, **more)
    assert cv.arms(people(), declared(), method="difference_in_means", **words).interval_target is not None
