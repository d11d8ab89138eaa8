"""Outcomes that few people have: what they say about the effect is not clipped away."""

import numpy as np
import pytest
from tests.thinned import thinned

import counterveil as cv
from counterveil.statistics.moments.functions import ArmProducts, mean_outcome

ROWS, CONTROL, TREATED = 20_000, 0.02, 0.04


def average(seed, method):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(ROWS, 2)), rng.uniform(size=ROWS) < 0.5
    y = (rng.uniform(size=ROWS) < np.where(t, TREATED, CONTROL)).astype(float)
    frame = {"t": t.astype(int), "y": y, "x0": x[:, 0], "x1": x[:, 1]}
    covariates = {"x0": cv.Range(0, 1), "x1": cv.Range(0, 1)}
    study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates=covariates, control=0)
    model = cv.cate(frame, study, epsilon=4, method=method, noise=cv.SeededNoise(seed))
    assert model.heterogeneous
    return *model.average(frame), y[t].mean() - y[~t].mean()


@pytest.mark.parametrize("method", thinned(["t_learner", "r_learner"], "t_learner"))
def test_the_average_effect_on_a_rare_outcome_is_kept(method):
    found = [average(seed, method) for seed in range(6)]
    off = [estimate - plain for estimate, _, _, plain in found]
    assert abs(np.mean(off)) < 0.1 * (TREATED - CONTROL)
    assert sum(low <= TREATED - CONTROL <= high for _, low, high, _ in found) >= 5


def test_the_mean_outcome_is_read_off_the_constant_feature():
    constant, level = 0.5, -0.9
    gram = np.array([[constant**2 / 2, 0.0], [0.0, 0.1]])
    products = np.array([constant * level / 2, 0.0])
    moments = ArmProducts((gram, gram), (products, products), 1.0, 0.0, 0.0)
    assert mean_outcome(moments, constant) == pytest.approx(level)
