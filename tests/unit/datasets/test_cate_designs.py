"""The simulated studies whose effect differs between people."""

import numpy as np
import pytest

from counterveil.data import Table
from counterveil.datasets import dataset_1, dataset_2, kink, skewed
from counterveil.errors import DataError

DESIGNS = [dataset_1, dataset_2, kink, skewed, lambda n, seed: skewed(n, seed, covariates=30)]


@pytest.mark.parametrize("design", DESIGNS)
def test_outcomes_stay_in_the_public_range_and_effects_are_those_of_the_function(design):
    for seed in range(20):
        data = design(500, seed)
        low, high = (float(end) for end in data.study.outcome_range)
        assert low <= data.frame["y"].min()
        assert data.frame["y"].max() <= high
        assert (data.effects == data.effect_at(data.frame)).all()
        assert data.true_effect == pytest.approx(data.effects.mean())
        assert 0.4 < data.frame["treated"].mean() < 0.9
    assert Table.attach(dict(data.frame), data.study).rows == 500


def test_treatment_depends_on_the_covariates_and_the_outcome_has_the_effect():
    data = dataset_1(40_000, 3)
    x = np.column_stack([np.ones(40_000), data.frame["x1"], data.frame["x2"]])
    slopes = np.linalg.lstsq(x, data.frame["treated"], rcond=None)[0]
    assert slopes[0] == pytest.approx(0.5, abs=0.02)
    assert (slopes[1:] > -0.02).all()
    assert (slopes[1:] < 0.17).all()
    left = data.frame["y"] - data.effects * data.frame["treated"]
    fitted = x @ np.linalg.lstsq(x, left, rcond=None)[0]
    assert np.std(left - fitted) == pytest.approx(3**-0.5, rel=0.02)


def test_seeds_and_refusals():
    assert (dataset_2(50, 1).frame["y"] == dataset_2(50, 1).frame["y"]).all()
    assert not (dataset_2(50, 1).frame["y"] == dataset_2(50, 2).frame["y"]).all()
    for wrong in (lambda: dataset_1(3), lambda: skewed(50, 0, covariates=7)):
        with pytest.raises(DataError):
            wrong()
