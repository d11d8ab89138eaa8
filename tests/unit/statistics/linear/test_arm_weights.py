"""Weights of one arm: sums, bounds, balance, and the least supposed error."""

import numpy as np
import pytest
from scipy.optimize import minimize

from counterveil.statistics.linear.kernels.balancing import WeightSettings, arm_weights

SETTINGS, MEANS = WeightSettings(), np.zeros(3)


def sample(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p))
    rows = np.flatnonzero(rng.random(n) < 1 / (1 + np.exp(-features[:, 0])))
    features = features - features.mean(axis=0)
    return features / np.sqrt((features**2).mean(axis=0).sum()), rows


def objective(features, rows, noise_variance):
    total_variance = float((features**2).mean(axis=0).sum())

    def value(w):
        gap = w @ features[rows] - features.mean(axis=0)
        imbalance = SETTINGS.signal**2 / total_variance * float(gap @ gap)
        return imbalance + SETTINGS.residual**2 * float(w @ w) + noise_variance * float(np.max(w)) ** 2

    return value


@pytest.mark.parametrize("noise_variance", [0.0, 0.1, 8.0])
def test_weights_beat_a_general_solver(noise_variance):
    features, rows = sample(30)
    w = arm_weights(features[rows], MEANS, noise_variance=noise_variance, settings=SETTINGS)
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert (w >= 0).all()
    value, m = objective(features, rows, noise_variance), len(rows)
    total_variance = float((features**2).mean(axis=0).sum())

    def lifted(v):
        # The cap as a variable of its own makes the problem smooth.
        gap = v[:-1] @ features[rows] - features.mean(axis=0)
        imbalance = SETTINGS.signal**2 / total_variance * gap @ gap
        return imbalance + SETTINGS.residual**2 * v[:-1] @ v[:-1] + noise_variance * v[-1] ** 2

    start = np.append(np.full(m, 1 / m), 1 / m)
    found = minimize(
        lambda v: 1e3 * lifted(v),
        start,
        bounds=[(0, None)] * (m + 1),
        constraints=[
            {"type": "eq", "fun": lambda v: v[:-1].sum() - 1},
            {"type": "ineq", "fun": lambda v: v[-1] - v[:-1]},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert value(w) <= found.fun / 1e3 * (1 + 1e-5)
    assert value(w) <= value(start[:-1]) * (1 + 1e-12)


def test_noise_flattens_the_weights_and_its_absence_balances_them():
    features, rows = sample(400)
    quiet = arm_weights(features[rows], MEANS, noise_variance=0.0, settings=SETTINGS)
    loud = arm_weights(features[rows], MEANS, noise_variance=1e6, settings=SETTINGS)
    assert np.abs(quiet @ features[rows]).max() < 0.2 * np.abs(features[rows].mean(axis=0)).max()
    assert loud.max() == pytest.approx(1 / len(rows), rel=1e-2)
    assert loud.max() < quiet.max()
