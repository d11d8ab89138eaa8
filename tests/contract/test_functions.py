"""Contracts of effects as functions and at queries: what is fitted, its covariance, and answers by bins and folds."""

from importlib import import_module
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from tests.contract.trials import LOW, WIDTH, ask, people, study

import counterveil as cv
from counterveil.estimators.moments.learner_fit import LearnerFit, Passes, System, effect_weights
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy.caveats import FoldModels
from counterveil.results.functions import one_effect_model

# The package's front door `cate` hides the folder of that name.
fitting = import_module("counterveil.estimators.moments.learner_fit")
LARGE = people(10_000, 31)
GRID = {"x": np.array([-0.5, 0.25, 1.0, 1.75, 2.5]), "site": np.array(["a", "b", "c", "a", "b"])}
OWN = 0.9 * (1 + 0.3 * GRID["x"])
# Sampling at 10,000 rows, one in five treated.
NEAR = 0.2


def ask_cate(method, data=LARGE, declared=None, **extra):
    budget = {"protects": "record", "epsilon": 200, "delta": 1e-6} | extra
    return cv.cate(data, declared or study(), method=method, noise=cv.SeededNoise(2), **budget)


@pytest.mark.parametrize("method", ["t_learner", "r_learner"])
def test_effects_as_functions_are_near_the_truth(method):
    model = ask_cate(method)
    assert model.heterogeneous
    assert_allclose(model.effect(GRID), OWN, atol=NEAR)
    low, high = model.interval(GRID)
    middle, half = model.effect(GRID), (high - low) / 2
    assert_allclose((low + high) / 2, middle, atol=1e-9)
    assert ((low <= OWN) & (high >= OWN)).sum() >= 4
    # An interval is shorter than the effects differ, and no shorter than a fifth of the sampling error in an arm.
    assert half.max() < 0.6
    sd = LARGE["y"][LARGE["t"] == 1].std()
    assert half.min() > norm.ppf(0.975) * sd / sqrt(2000) / 5
    wide = model.interval(GRID, 0.99)
    assert_allclose((wide[1] - wide[0]) / 2 / half, norm.ppf(0.995) / norm.ppf(0.975), rtol=1e-6)
    band = model.band(GRID)
    assert ((band[1] - band[0]) / 2 > half).all()
    mean, least, most = model.average(GRID)
    assert mean == pytest.approx(middle.mean())
    assert least < mean < most


def test_covariance_of_an_effect_from_looks():
    """Two passes averaged by variance; noise, sampling and what shrinkage leaves out."""
    passes = Passes((np.array([1.0, 2.0]), np.array([3.0, 1.0])), (0.02, 0.01), (0.01, 0.003), (0.0, 0.06))
    mean, noise, extra, lost = passes.averaged()
    # The square of what a clip takes off is shared by both coordinates.
    share = np.array([1 / 0.03, 1 / 0.0148]) / (1 / 0.03 + 1 / 0.0148)
    assert_allclose(mean, share @ np.array([[1.0, 2.0], [3.0, 1.0]]))
    assert noise == pytest.approx(share[0] ** 2 * 0.02 + share[1] ** 2 * 0.01)
    assert extra == pytest.approx(share[0] ** 2 * 0.01 + share[1] ** 2 * 0.003)
    assert lost == pytest.approx(share[1] * 0.06)
    gram = np.array([[0.5, 0.1], [0.1, 0.3]])

    system = System((gram,), np.eye(2), None, 1, 500, 0.001)
    covariance = (noise + extra) * np.eye(2) + (0.4 / 500 + lost**2) * gram
    posterior, response = np.array([[0.2, 0.01], [0.01, 0.1]]), np.array([[0.9, 0.02], [0.01, 0.8]])
    shrunken = SimpleNamespace(
        posterior=posterior, response=response, weights=np.array([0.3, 0.7]), scales=None
    )
    fit = LearnerFit(shrunken, None, 0.4)
    upper = np.array([0.05, 0.08])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "upper_variances", lambda *arguments: upper)
        found = effect_weights(system, fit, passes)
    gain = posterior @ gram @ np.linalg.inv(covariance)
    left = np.eye(2) - response
    total = gain @ covariance @ gain.T + left @ np.diag(upper) @ left.T
    assert_allclose(found[0], [0.7])
    assert_allclose(found[1], total[1:, 1:])
    assert_allclose(found[2], ((noise + extra) * gain @ gain.T)[1:, 1:])


def test_a_released_effect_as_a_model():
    known = Uncertainty(None, 0.04, 0.04, extra=0.01, bias=0.3)
    said = {"method": "m", "guarantee": None, "spent": None, "releases": (), "not_covered": (), "details": {}}
    said |= {"diagnostics": {}, "interval_target": None, "condition": None, "assumptions": FoldModels.OUTCOME}
    result = SimpleNamespace(
        uncertainty=known,
        std_error=SimpleNamespace(noise=0.1),
        estimate=1.5,
        not_covered=(),
        provenance=lambda: said,
    )
    made = one_effect_model(study(randomised=True), 0.9, result)
    assert made.weights[0] == 1.5
    ends = [sqrt(made.covariance[0, 0]) * norm.ppf(0.95) + bias for bias in (-0.3, 0.3)]
    assert norm.sf(ends, scale=sqrt(0.05)).sum() == pytest.approx(0.1)
    assert made.noise_covariance[0, 0] == pytest.approx(0.01)
    assert made.assumptions is FoldModels.OUTCOME


def test_the_outcome_s_origin_does_not_matter():
    """The same people with outcomes moved along their range have the same effects."""
    data = people(2000, 37)
    near = ask_cate("t_learner", data).effect(GRID)
    moved = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (LOW + 100, LOW + WIDTH + 100)), study().covariates
    )
    shifted = data | {"y": data["y"] + 100}
    assert_allclose(ask_cate("t_learner", shifted, moved).effect(GRID), near, atol=1e-6)


@pytest.mark.parametrize("centre", ["pooled", "arms"])
def test_an_average_does_not_depend_on_the_outcome_s_origin(centre):
    settings = cv.settings.Trial("none", centre)
    data = people(800, 35, confounded=False)
    moved = cv.Study(
        treatment=cv.Treatment("t", control=0),
        outcome=cv.Outcome("y", (LOW - 50, LOW + WIDTH - 50)),
        assignment=cv.Trial(),
    )
    near = ask(data, study(randomised=True), "trial", "record", epsilon=3, settings=settings)
    far = ask(data | {"y": data["y"] - 50}, moved, "trial", "record", epsilon=3, settings=settings)
    assert far.estimate == pytest.approx(near.estimate, abs=1e-6)
    assert far.interval() == pytest.approx(near.interval(), abs=1e-5)
