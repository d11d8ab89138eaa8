"""The simulated observational study."""

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


@pytest.mark.parametrize("wrong", [{"n": 3}, {"covariates": 0}])
def test_sizes_out_of_range_are_refused(wrong):
    with pytest.raises(DataError):
        synth(**wrong)
