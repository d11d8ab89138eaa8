"""Contract of functions where only outcomes are private: weights, covariance and intervals, worked out apart."""

from math import sqrt

import numpy as np
import pytest
from numpy.polynomial import legendre
from numpy.testing import assert_allclose
from scipy.stats import norm
from tests.contract.trials import HIGH, LOW, WIDTH, people, study

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.linear import series
from counterveil.estimators.linear.series_features import functions_of
from counterveil.privacy import Unit
from counterveil.rows.linear.linear_map import Residuals
from counterveil.rows.public import PublicRows
from counterveil.session import BaseSession, Gate, Kind, Plan, SeededNoise
from counterveil.settings import Series

LARGE = people(10_000, 31)
GRID = {"x": np.array([-0.5, 0.25, 1.0, 1.75, 2.5]), "site": np.array(["a", "b", "c", "a", "b"])}
OWN = 0.9 * (1 + 0.3 * GRID["x"])
# Sampling at 10,000 rows, one in five treated.
NEAR = 0.2
# At this price noise is far below sampling.
SHARP = {"epsilon": 2000, "delta": 1e-6}


def asked(data=LARGE, seed=2, **extra):
    words = SHARP | {"settings": Series(degree=2, products=False)} | extra
    return cv.cate(data, study(), protects="outcome", noise=cv.SeededNoise(seed), **words)


def features(x, site):
    """The functions by their definitions: polynomials between the extremes of x, contrasts of the sites."""
    u = 2 * (x - LARGE["x"].min()) / np.ptp(LARGE["x"]) - 1
    first, second = u * sqrt(3), legendre.legval(u, [0, 0, 1]) * sqrt(5)
    # Helmert's contrasts of three labels, each of mean square one over the labels.
    one = np.select([site == "a", site == "b"], [1.0, -1.0], 0.0) * sqrt(3 / 2)
    two = np.select([site == "c"], [-2.0], 1.0) * sqrt(1 / 2)
    return {"x": first, "x^2": second, "site 1": one, "site 2": two}


def regression(data):
    """The weighted regression by its definition: rows Z, weights that bound leverage, and the weights of the effect."""
    public = PublicRows(Table.attach(data, study()), Unit.OUTCOME)
    made = functions_of(public, Series(degree=2, products=False))
    phi = np.column_stack([np.ones(len(data["x"])), *features(data["x"], data["site"]).values()])
    z = np.hstack([phi, made.residual[:, None] * phi])
    leverage = np.einsum("ij,jk,ik->i", z, np.linalg.inv(z.T @ z), z)
    average = leverage.mean()
    weights = np.minimum(1.0, average / leverage)
    root = np.sqrt(weights)[:, None]
    theta = np.linalg.lstsq(root * z, root[:, 0] * (data["y"] - (LOW + HIGH) / 2), rcond=None)[0]
    return z, weights, theta


def test_measured_effects_are_those_of_the_regression():
    model = asked()
    theta = regression(LARGE)[2][5:]
    phi = np.column_stack([np.ones(5), *features(GRID["x"], GRID["site"]).values()])
    measured = model.basis.features(table_columns(GRID)) @ (model.weights + model.shrinkage)
    # Residuals beyond the clip are few, and its effect is far below sampling.
    assert_allclose(measured, phi @ theta, atol=0.02)
    assert_allclose(model.effect(GRID), OWN, atol=NEAR)


def table_columns(points):
    codes = np.array(["abc".index(site) for site in points["site"]], dtype=float)
    return {"x": points["x"], "site": codes}


def test_sampling_covariance_is_that_of_each_arm():
    model = asked()
    z, weights, theta = regression(LARGE)
    residual = LARGE["y"] - (LOW + HIGH) / 2 - z @ theta
    inverse = np.linalg.inv(z.T @ (z * weights[:, None]))
    moves = z * weights[:, None] @ inverse
    t = LARGE["t"] == 1
    expected = sum(np.mean(residual[arm] ** 2) * moves[arm].T @ moves[arm] for arm in (t, ~t))[5:, 5:]
    points = np.column_stack([np.ones(5), *features(GRID["x"], GRID["site"]).values()])
    sd = np.sqrt(np.einsum("ij,jk,ik->i", points, expected, points))
    own = model.basis.features(table_columns(GRID))
    covariance = model.covariance - model.noise_covariance
    assert_allclose(np.sqrt(np.einsum("ij,jk,ik->i", own, covariance, own)), sd, rtol=0.03)
    # One variance for both arms would be too short: treated outcomes spread twice as much and are one in five.
    pooled = np.mean(residual**2) * (moves.T @ moves)[5:, 5:]
    assert (sd > 1.15 * np.sqrt(np.einsum("ij,jk,ik->i", points, pooled, points))).all()


def test_intervals_are_made_of_covariance_shrinkage_and_what_the_basis_leaves_out():
    model = asked(epsilon=4)
    own = model.basis.features(table_columns(GRID))
    higher = model.higher[0].features(table_columns(GRID))
    variance = np.einsum("ij,jk,ik->i", own, model.covariance, own) + higher**2 @ model.higher[1]
    half = norm.ppf(0.975) * np.sqrt(variance) + np.abs(own @ model.shrinkage)
    low, high = model.interval(GRID)
    assert_allclose((high - low) / 2, half, rtol=1e-9)
    assert_allclose((low + high) / 2, model.effect(GRID), atol=1e-9)
    least, most = model.band(GRID)
    assert ((most - least) > (high - low)).all()


def test_noise_is_as_large_as_it_claims():
    """The spread of measured effects over noise alone, the data being the same, beside the claimed covariance."""
    data = people(3000, 33)
    models = [asked(data, seed, epsilon=2) for seed in range(24)]
    own = models[0].basis.features(table_columns(GRID))
    measured = np.array([own @ (model.weights + model.shrinkage) for model in models])
    claimed = [np.einsum("ij,jk,ik->i", own, model.noise_covariance, own) for model in models]
    # Functions that were not measured do not have noise of their own: where they differ, spread is larger.
    ratio = measured.var(axis=0, ddof=1) / np.mean(claimed, axis=0)
    assert 0.5 < np.mean(ratio) < 2.0


def test_levels_sizes_and_squares_by_their_definitions():
    public = PublicRows(Table.attach(LARGE, study()), Unit.OUTCOME)
    plan = Plan.split(
        cv.Budget(10**6, "1e-6"),
        dict.fromkeys(("levels", "squares", *series.search_names("size")), 1),
        "gaussian",
        dict.fromkeys(("levels", "squares"), Kind.VECTOR),
    )
    budget = cv.Budget(10**6, "1e-6")
    gate = Gate(plan, SeededNoise(1), rows=BaseSession(LARGE, study(), budget=budget))
    t = LARGE["t"] == 1
    levels = series.release_levels(gate, "levels", public)
    assert_allclose(levels, [LARGE["y"][~t].mean(), LARGE["y"][t].mean()], atol=1e-3)
    around = np.full(len(t), 0.5)
    residuals = Residuals.of(public, around, 1.0)
    squares, _ = residuals.release_squares(gate, "squares")
    clipped = np.clip(LARGE["y"] - 0.5, -1, 1) ** 2
    assert_allclose(squares, [clipped[~t].mean(), clipped[t].mean()], atol=1e-3)
    size = series.find_size(gate, "size", Residuals.of(public, around), 0.1)
    above = np.mean(np.abs(LARGE["y"] - 0.5) > size)
    # One step of the grid is a sixth, so that fewer than a tenth lie above and more than a twentieth.
    assert 0.03 < above <= 0.1
    assert size < WIDTH


def test_binary_outcomes_are_not_shifted_by_clipping():
    rng = np.random.default_rng(7)
    n = 20_000
    x, t = rng.uniform(size=n), rng.integers(0, 2, n)
    for base, slope in ((0.03, 0.06), (0.3, 0.4)):
        frame = {"x": x, "t": t, "y": (rng.uniform(size=n) < base + slope * t * x) * 1.0}
        declared = cv.Study(
            cv.Treatment("t", control=0),
            cv.Outcome("y", (0, 1)),
            {"x": cv.Range(0, 1)},
            assignment=cv.Trial(),
        )
        model = cv.cate(frame, declared, protects="outcome", epsilon=20, delta=1e-6, noise=cv.SeededNoise(1))
        at = {"x": np.linspace(0.1, 0.9, 5)}
        assert_allclose(model.effect(at), slope * at["x"], atol=0.035)
        assert model.average({"x": x[:2000]})[0] == pytest.approx(slope / 2, abs=0.012)
