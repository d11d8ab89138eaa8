"""The simulated observational study."""

import numpy as np
import pytest

from counterveil.data import Table
from counterveil.datasets import synth
from counterveil.errors import DataError


def test_shape_study_and_truth():
    dataset = synth()
    assert dataset.true_effect == 0.5
    assert len(dataset.study.covariates) == 20
    assert dataset.study.randomised is False
    table = Table.attach(dict(dataset.frame), dataset.study)
    assert table.rows == 1000
    y = dataset.frame["y"]
    assert 0 < y.min() < y.max() < 5


def test_covariates_drive_treatment_and_outcome():
    dataset = synth(1, n=20_000)
    X = np.column_stack([dataset.frame[f"x{j}"] for j in range(1, 21)] + [np.ones(20_000)])
    t, y = dataset.frame["treated"], dataset.frame["y"]
    slopes = np.linalg.lstsq(np.column_stack([X, t]), y, rcond=None)[0]
    assert slopes[-1] == pytest.approx(0.5, abs=0.005)
    assert (slopes[:20] > -0.01).all()
    assert (slopes[:20] < 0.41).all()
    assert np.std(y - np.column_stack([X, t]) @ slopes) == pytest.approx(0.1 / np.sqrt(12), rel=0.05)
    assert abs(y[t == 1].mean() - y[t == 0].mean() - 0.5) > 0.02  # confounded


def test_seeds():
    one, same, other, fresh = synth(1), synth(1), synth(2), synth(1, outcome_seed=5)
    assert (one.frame["y"] == same.frame["y"]).all()
    assert not (one.frame["x1"] == other.frame["x1"]).all()
    assert (one.frame["x1"] == fresh.frame["x1"]).all()
    assert (one.frame["treated"] == fresh.frame["treated"]).all()
    assert not (one.frame["y"] == fresh.frame["y"]).any()


@pytest.mark.parametrize("wrong", [{"n": 3}, {"covariates": 0}])
def test_sizes_out_of_range_are_refused(wrong):
    with pytest.raises(DataError):
        synth(**wrong)
