"""The bounds of private inverse weighting against simulation: they hold, and are not empty."""

from math import exp, sqrt

import numpy as np
import pytest
from scipy.special import expit

from counterveil.errors import ParameterError
from counterveil.inference.ipw_bounds import (
    IPWDesign,
    joint_sign_error,
    noise_bias,
    published_sign_error,
    released_sign_error,
    sign_error,
)

DRAWS = 20_000


def study(rows, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    x /= np.maximum(np.linalg.norm(x, axis=1), 1.0)[:, None]
    w = rng.normal(size=columns)
    t = rng.random(rows) < expit(x @ w)
    y = np.clip(0.3 * t + 0.4 * rng.normal(size=rows), -1, 1)
    return x, t, y, w


def clipped_mean(x, t, y, w, clip, estimand):
    p = np.clip(expit(x @ w), clip, 1 - clip)
    own = {"ATE": (1 / p, 1 / (1 - p)), "ATT": (1 + 0 * p, p / (1 - p)), "ATC": ((1 - p) / p, 1 + 0 * p)}[
        estimand
    ]
    return (np.where(t, own[0], -own[1]) * y).mean(axis=-1)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_lemma_3_is_the_mean_of_the_unclipped_bias(estimand):
    x, t, y, w = study(40)
    sigma = 0.8
    z = np.random.default_rng(1).normal(scale=sigma, size=(200_000, x.shape[1]))
    with_noise = w + np.concatenate([z, -z])  # antithetic, to see the mean with fewer draws
    odds = np.exp(np.where(t, -1, 1) * (with_noise @ x.T))
    plain = np.exp(np.where(t, -1, 1) * (w @ x.T))
    moved = np.where(t, 1, -1) * y * (odds - plain)
    if estimand != "ATE":
        moved = moved * (~t if estimand == "ATT" else t)
    found, error = moved.mean(axis=1).mean(), moved.mean(axis=1).std() / sqrt(len(with_noise))
    lemma = noise_bias(y, t, x @ w, np.linalg.norm(x, axis=1), sigma, estimand)
    assert found == pytest.approx(lemma, abs=4 * error)
    assert abs(lemma) > 8 * error
    if estimand != "ATT":
        # The published sign of the exponent for the treated is a misprint.
        growth = sigma**2 * np.linalg.norm(x, axis=1) ** 2 / 2
        alpha = np.where(t, 1, -1) * y * plain * (1 if estimand == "ATE" else t)
        printed = (alpha * np.expm1(np.where(t, -1, 1) * growth)).mean()
        assert abs(found - printed) > 8 * error


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize("fit_rows", [30, 100, 1000])
@pytest.mark.parametrize("clip", [0.05, 0.2])
def test_clipped_bias_never_exceeds_its_bound(estimand, fit_rows, clip):
    design = IPWDesign(fit_rows, 200, 1, 1e-6, 0.5, clip, 1.0)
    x, t, y, w = study(200, seed=3)
    z = np.random.default_rng(2).normal(scale=design.weight_sigma, size=(2000, x.shape[1]))
    noisy = expit((w + z) @ x.T)
    p = np.clip(noisy, clip, 1 - clip)
    weights = {
        "ATE": np.where(t, 1 / p, -1 / (1 - p)),
        "ATT": np.where(t, 1.0, -p / (1 - p)),
        "ATC": np.where(t, (1 - p) / p, -1.0),
    }[estimand]
    means = (weights * y).mean(axis=1)
    exact = clipped_mean(x, t, y, w, clip, estimand)
    assert abs(means.mean() - exact) <= design.bias_bound() + 4 * means.std() / sqrt(len(means))
    assert np.abs(means).max() <= design.support(estimand)


def test_the_bias_bound_is_nearly_reached_at_a_clip():
    design = IPWDesign(200, 200, 1, 1e-6, 0.5, 0.1, 1.0)
    # One row whose fitted logit is where the weight is clipped: noise can only lower its weight.
    logit = np.log(0.1 / 0.9)
    z = np.random.default_rng(3).normal(scale=design.weight_sigma, size=400_000)
    shift = (1 / np.clip(expit(logit + z), 0.1, 0.9)).mean() - 10
    assert 0.9 * design.bias_bound() < abs(shift) <= design.bias_bound()


def test_without_clipping_the_bound_explodes():
    small, large = (IPWDesign(m, 200, 0.2, 1e-6, 0.1, 0.1, 1.0, reach=2.0) for m in (100, 10_000_000))
    assert small.unclipped_bias_bound() > 1e6 > small.bias_bound()
    assert large.unclipped_bias_bound() < 0.01


def two_values(rng, mean, support, low):
    """Return the law on {low, support} with this mean."""
    share = (support - mean) / (support - low)
    return np.where(rng.random(DRAWS) < share, low, support)


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("sigma", [0.02, 0.3, 3.0])
def test_sign_errors_hold_for_the_worst_laws(mean, sigma):
    rng = np.random.default_rng(7)
    worst = joint = released = 0.0
    for low in (-1.0, -3 * sigma, -sigma, -0.1, 0.0):
        if low < -1:
            continue
        v = two_values(rng, mean, 1.0, low)
        after = v + sigma * rng.normal(size=DRAWS)
        worst = max(worst, float((v <= 0).mean()))
        joint = max(joint, float(((v <= 0) & (after <= 0)).mean()))
        released = max(released, float((after <= 0).mean()))
    error = 4 / sqrt(DRAWS)
    assert worst <= sign_error(mean, 1.0) + error <= published_sign_error(mean, 1.0) + error
    assert joint <= joint_sign_error(mean, 1.0, sigma) + error
    assert released <= released_sign_error(mean, 1.0, sigma) + error
    # Some law comes near each of them.
    assert worst >= sign_error(mean, 1.0) - error
    assert released >= 0.8 * released_sign_error(mean, 1.0, sigma) - error


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_sign_error_of_a_small_study_stays_below_its_bounds(estimand):
    design = IPWDesign(3000, 200, 4, 1e-6, 0.5, 0.2, 1.0)
    x, t, _, w = study(200, seed=5)
    y = np.where(t, 0.9, -0.9)
    effect = float(clipped_mean(x, t, y, w, 0.2, estimand))
    rng = np.random.default_rng(4)
    z = rng.normal(scale=design.weight_sigma, size=(4000, x.shape[1]))
    partly = np.array([clipped_mean(x, t, y, w + row, 0.2, estimand) for row in z])
    after = partly + design.release_sigma(estimand) * rng.normal(size=len(z))
    assert (partly <= 0).mean() <= design.sign_error_bound(effect, estimand)
    assert ((partly <= 0) & (after <= 0)).mean() <= design.joint_sign_error_bound(effect, estimand)
    assert (after <= 0).mean() <= design.released_sign_error_bound(effect, estimand) < 1


def test_more_rows_and_more_budget_help():
    few, many = (IPWDesign(n, n, 1, 1e-6, 0.1, 0.1, 0.5) for n in (1000, 100_000))
    assert many.bias_bound() < few.bias_bound()
    assert many.release_sigma() == pytest.approx(few.release_sigma() / 100)
    assert many.released_sign_error_bound(0.5) < few.released_sign_error_bound(0.5)
    assert few.largest_weight("ATT") == pytest.approx(9)
    assert few.sign_error_bound(0.0) == 1
    assert published_sign_error(1.0, 2.0) == pytest.approx(exp(-0.5))


@pytest.mark.parametrize("wrong", [{"delta": 0}, {"clip": 0.5}, {"epsilon": -1}, {"fit_rows": 0}])
def test_designs_out_of_range_are_refused(wrong):
    right = {
        "fit_rows": 10,
        "rows": 10,
        "epsilon": 1,
        "delta": 1e-6,
        "penalty": 1,
        "clip": 0.1,
        "outcome_bound": 1,
    }
    with pytest.raises(ParameterError, match="CV-P422"):
        IPWDesign(**(right | wrong))
    with pytest.raises(ParameterError, match="CV-P422"):
        IPWDesign(**right).support("LATE")
