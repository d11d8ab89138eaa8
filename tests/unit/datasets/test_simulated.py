"""Simulated studies: known effects, declared designs, refusals."""

import numpy as np
import pytest

from counterveil.data import Table
from counterveil.datasets import simulated_trial, synth, synth_strata
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


def test_an_observational_study_has_its_shape_and_truth():
    dataset = synth()
    assert dataset.true_effect == 0.5
    assert len(dataset.study.covariates) == 20
    assert dataset.study.randomised is False
    table = Table.attach(dict(dataset.frame), dataset.study)
    assert table.rows == 1000
    y = dataset.frame["y"]
    assert 0 < y.min() < y.max() < 5


def test_strata_have_their_levels_and_truth():
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


REFUSED = {
    simulated_trial: [
        {"n": 7},
        {"n": 10.5},
        {"effect": 1.5},
        {"outcome": "counts"},
        {"share": 0},
        {"share": 1.0},
    ],
    synth: [{"n": 3}, {"covariates": 0}],
    synth_strata: [{"n": 5}, {"levels": 1}, {"levels": 2.5}],
}


@pytest.mark.parametrize("make", REFUSED)
def test_settings_out_of_range_are_refused(make):
    for wrong in REFUSED[make]:
        with pytest.raises(DataError, match="CV-D043"):
            make(**({"n": 100, "effect": 0.1} if make is simulated_trial else {}) | wrong)
