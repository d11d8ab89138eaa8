"""The simulated study with one discrete confounder."""

import numpy as np
import pytest

from counterveil.data import Table
from counterveil.datasets import synth_strata
from counterveil.errors import DataError


def test_levels_and_truth():
    dataset = synth_strata(seed=3, n=200_000, levels=10, slope=2.0)
    x, t, y = (dataset.frame[name] for name in ("x", "treated", "y"))
    assert set(np.unique(x)) == set(range(10))
    assert 0 <= y.min() < y.max() <= 1
    assert dataset.true_effect == 0.5
    gaps = [y[(x == k) & (t == 1)].mean() - y[(x == k) & (t == 0)].mean() for k in range(10)]
    assert gaps == pytest.approx([0.5] * 10, abs=0.002)
    # Treatment follows the level, so the arms as wholes differ by more than the effect.
    assert t[x == 9].mean() == pytest.approx(1 / (1 + np.exp(-2)), abs=0.01)
    assert Table.attach(dataset.frame, dataset.study).rows == 200_000


@pytest.mark.parametrize("wrong", [{"n": 5}, {"levels": 1}, {"levels": 2.5}])
def test_refusals(wrong):
    with pytest.raises(DataError, match="CV-D043"):
        synth_strata(**wrong)
