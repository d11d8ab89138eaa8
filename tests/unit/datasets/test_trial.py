"""The simulated trial: known effects, declared design, deterministic."""

import numpy as np
import pytest

from counterveil.data import Table
from counterveil.datasets import simulated_trial
from counterveil.errors import DataError


@pytest.mark.parametrize("outcome", ["binary", "continuous"])
@pytest.mark.parametrize("effect", [-0.4, 0.0, 0.25])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_effect_is_the_one_asked_for(outcome, effect, share):
    dataset = simulated_trial(40_000, effect, outcome, share, seed=3)
    y, treated = dataset.frame["y"], dataset.frame["treated"] == 1
    error = np.sqrt(y[treated].var() / treated.sum() + y[~treated].var() / (~treated).sum())
    assert abs(y[treated].mean() - y[~treated].mean() - effect) < 4 * error
    assert abs(treated.mean() - share) < 4 * np.sqrt(share * (1 - share) / 40_000)
    assert y.min() >= 0
    assert y.max() <= 1
    assert set(np.unique(y)) <= {0, 1} or outcome == "continuous"
    assert np.corrcoef(dataset.frame["x"], y)[0, 1] > 0.2
    assert abs(np.corrcoef(dataset.frame["x"], treated)[0, 1]) < 0.02
    assert dataset.true_effect == effect
    assert Table.attach(dataset.frame, dataset.study).rows == 40_000


def test_small_trials_have_both_arms():
    for seed in range(50):
        treated = simulated_trial(8, 0.0, share=0.1, seed=seed).frame["treated"]
        assert 2 <= treated.sum() <= 6


@pytest.mark.parametrize(
    "wrong", [{"n": 7}, {"n": 10.5}, {"effect": 1.5}, {"outcome": "counts"}, {"share": 0}, {"share": 1.0}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(DataError, match="CV-D043"):
        simulated_trial(**({"n": 100, "effect": 0.1} | wrong))
