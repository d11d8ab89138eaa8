"""Balancing weights: against a general solver, by their optimality conditions, and by invariances; of one arm too."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.thinned import thinned, thinned_rows

from counterveil.errors import ParameterError
from counterveil.estimators.linear.kernels.balancing import (
    WeightSettings,
    arm_weights,
    balance_weights,
    exactly_summing,
)

# Sums of up to a few thousand weights of total one differ from one by at most a few units in the last place.
ROUNDING = 1e-15
# SLSQP stops here: its objective cannot be told from ours below this relative difference.
GENERAL_SOLVER = 1e-6
# The dual bound and the objective are sums of like size: only their rounding may separate them.
CERTIFIED = 1e-9


def design(n, p, seed, confounding=1.5, treated_share=-0.5):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p))
    slope = rng.normal(size=p) * confounding / math.sqrt(p)
    treated = rng.random(n) < 1 / (1 + np.exp(-(features @ slope + treated_share)))
    treated[:2] = (True, False)
    return features, treated


def supposed_error(values, cap, features, treated, noise_variance, settings, goals, near):
    """The objective written out from its definition, one arm at a time."""
    total_variance = features.var(axis=0).sum()
    total, gaps = noise_variance * cap**2, []
    for side, goal in goals.items():
        arm = treated == side
        gaps.append(features[arm].T @ np.abs(values[arm]) - goal)
        total += settings.signal**2 / total_variance * gaps[-1] @ gaps[-1]
        total += settings.residual**2 * ((np.abs(values[arm]) - near[arm]) ** 2).sum()
    if len(gaps) == 2:
        total -= 2 * settings.signal**2 / total_variance * (settings.arm_correlation * gaps[0]) @ gaps[1]
    return total


def by_general_solver(features, treated, noise_variance, settings, goals, near, kept=0.0):
    """Minimise the same objective over (w, t) with SLSQP, arms of `goals` free, the other at `kept`."""
    free = np.isin(treated, list(goals))
    n = len(treated)

    def values(z):
        full = np.full(n, kept)
        full[free] = z[:-1]
        return full

    def objective(z):
        return supposed_error(values(z), z[-1], features, treated, noise_variance, settings, goals, near)

    constraints = [{"type": "ineq", "fun": lambda z: z[-1] - z[:-1]}]
    for side in goals:
        inside = (treated == side)[free]
        constraints.append({"type": "eq", "fun": lambda z, inside=inside: z[:-1][inside].sum() - 1.0})
    start = np.full(int(free.sum()) + 1, 1.0 / n)
    for side in goals:
        start[:-1][(treated == side)[free]] = 1.0 / (treated == side).sum()
    start[-1] = max(start[:-1].max(), kept)
    bounds = [(0.0, 1.0)] * int(free.sum()) + [(kept, 1.0)]
    found = minimize(
        objective, start, bounds=bounds, constraints=constraints, options={"maxiter": 2000, "ftol": 1e-15}
    )
    return objective(found.x)


@pytest.mark.parametrize(
    ("target", "noise_variance", "residual"),
    thinned_rows(
        list(itertools.product(["ATE", "ATT", "ATC"], [0.0, 0.05, 1.0, 30.0], [0.02, 0.125])),
        ("ATE", 0.05, 0.125),
        ("ATE", 30.0, 0.125),
        ("ATT", 0.05, 0.125),
        ("ATC", 30.0, 0.125),
    ),
)
def test_objective_equals_that_of_a_general_solver(target, noise_variance, residual):
    features, treated = design(26, 3, seed=11)
    settings = WeightSettings(signal=0.125, residual=residual)
    means = {True: features[treated].mean(axis=0), False: features[~treated].mean(axis=0)}
    goals = {
        "ATE": {True: features.mean(axis=0), False: features.mean(axis=0)},
        "ATT": {False: means[True]},
        "ATC": {True: means[False]},
    }[target]
    kept = {"ATE": 0.0, "ATT": 1 / treated.sum(), "ATC": 1 / (~treated).sum()}[target]
    near = np.zeros(len(treated))
    got = balance_weights(features, treated, noise_variance=noise_variance, target=target, settings=settings)
    ours = supposed_error(got.values, got.cap, features, treated, noise_variance, settings, goals, near)
    theirs = by_general_solver(features, treated, noise_variance, settings, goals, near, kept)
    assert got.objective == pytest.approx(ours, rel=1e-12)
    assert ours <= theirs * (1 + CERTIFIED)
    assert ours == pytest.approx(theirs, rel=GENERAL_SOLVER)
    assert abs(got.gap) <= CERTIFIED * got.objective


@pytest.mark.parametrize("noise_variance", thinned([0.0, 0.3, 30.0], 0.3))
@pytest.mark.parametrize("arm_correlation", [0.5, 0.95, np.array([0.0, 0.6, 0.9])])
@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_arms_that_are_alike_have_the_objective_of_a_general_solver(noise_variance, arm_correlation, target):
    features, treated = design(26, 3, seed=11)
    settings = WeightSettings(signal=0.125, residual=0.05, arm_correlation=arm_correlation)
    mean = features[treated | (target == "ATE")].mean(axis=0)
    got = balance_weights(features, treated, noise_variance=noise_variance, target=target, settings=settings)
    given = (features, treated, noise_variance, settings, {True: mean, False: mean}, np.zeros(26))
    assert got.objective == pytest.approx(supposed_error(got.values, got.cap, *given), rel=1e-12)
    theirs = by_general_solver(*given)
    assert got.objective <= theirs * (1 + CERTIFIED)
    assert got.objective == pytest.approx(theirs, rel=GENERAL_SOLVER)


def test_with_a_reference_the_objective_equals_that_of_a_general_solver():
    features, treated = design(30, 3, seed=5)
    settings = WeightSettings(signal=0.1, residual=0.05)
    near = np.random.default_rng(6).exponential(size=30)
    for side in (True, False):
        near[treated == side] /= near[treated == side].sum()
    own = {side: features[treated == side].T @ near[treated == side] for side in (True, False)}
    signed = np.where(treated, near, -near)
    for target, goals in ((None, own), ("ATT", dict.fromkeys((True, False), features[treated].mean(axis=0)))):
        given = {"noise_variance": 0.3, "target": target, "reference": signed, "settings": settings}
        got = balance_weights(features, treated, **given)
        theirs = by_general_solver(features, treated, 0.3, settings, goals, near)
        assert got.objective <= theirs * (1 + CERTIFIED)
        assert got.objective == pytest.approx(theirs, rel=GENERAL_SOLVER)


@pytest.mark.parametrize("n", [20, 300, 5000])
@pytest.mark.parametrize("noise_variance", [0.0, 0.3, 8.0, 1e4])
@pytest.mark.parametrize("residual", [0.03, 0.125, 1.0])
def test_weights_are_feasible_and_certified(n, noise_variance, residual):
    features, treated = design(n, 8, seed=n)
    settings = WeightSettings(residual=residual)
    got = balance_weights(features, treated, noise_variance=noise_variance, settings=settings)
    assert (got.values[treated] >= 0).all()
    assert (got.values[~treated] <= 0).all()
    assert abs(math.fsum(got.values[treated]) - 1) <= ROUNDING
    assert abs(math.fsum(got.values[~treated]) + 1) <= ROUNDING
    assert got.cap == np.abs(got.values).max()
    assert got.kkt_residual <= settings.tolerance
    assert -CERTIFIED * got.objective <= got.gap <= CERTIFIED * got.objective


def test_optimality_conditions_hold_row_by_row():
    features, treated = design(4000, 12, seed=3)
    settings, noise_variance = WeightSettings(signal=0.125, residual=0.05), 2.0
    got = balance_weights(features, treated, noise_variance=noise_variance, settings=settings)
    total_variance = features.var(axis=0).sum()
    pressure = 0.0
    for side in (True, False):
        arm = treated == side
        weights = np.abs(got.values[arm])
        imbalance = features[arm].T @ weights - features.mean(axis=0)
        slope = (
            settings.signal**2 / total_variance * features[arm] @ imbalance + settings.residual**2 * weights
        )
        between = (weights > 1e-12) & (weights < got.cap * (1 - 1e-9))
        level = slope[between].mean()
        scale = np.abs(slope - level).max()
        assert between.sum() > 50
        assert np.abs(slope[between] - level).max() <= 1e-9 * scale
        assert (slope[weights <= 1e-12] >= level - 1e-9 * scale).all()
        at_cap = weights >= got.cap * (1 - 1e-9)
        assert (slope[at_cap] <= level + 1e-9 * scale).all()
        pressure += (level - slope[at_cap]).sum()
    # Raising the cap costs 2 v t and saves twice what the rows at the cap press against it.
    assert pressure == pytest.approx(noise_variance * got.cap, rel=1e-8)


@pytest.mark.parametrize("excess", [-1e-6, -1e-13, 0.0, 1e-13, 1e-6])
def test_repair_reaches_the_sum_inside_the_bounds(excess):
    rng = np.random.default_rng(0)
    weights = np.clip(rng.normal(1.0, 1.0, 3000), 0.0, 2.0)
    weights *= (1 + excess) / weights.sum()
    cap = float(weights.max())
    got = exactly_summing(weights, cap)
    assert abs(math.fsum(got) - 1) <= ROUNDING
    assert got.min() >= 0.0
    assert got.max() <= cap
    np.testing.assert_allclose(got, weights, atol=2 * abs(excess) / 1000 + 1e-15)


@pytest.mark.parametrize("change", [{"signal": 0.0}, {"residual": -1.0}, {"tolerance": math.nan}])
def test_wrong_settings_are_refused(change):
    with pytest.raises(ParameterError, match="CV-P260"):
        WeightSettings(**change)


SETTINGS, MEANS = WeightSettings(), np.zeros(3)


def sample(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p))
    rows = np.flatnonzero(rng.random(n) < 1 / (1 + np.exp(-features[:, 0])))
    features = features - features.mean(axis=0)
    return features / np.sqrt((features**2).mean(axis=0).sum()), rows


@pytest.mark.parametrize("noise_variance", [0.0, 0.1, 8.0])
def test_weights_of_one_arm_have_the_objective_of_a_general_solver(noise_variance):
    features, rows = sample(30)
    w = arm_weights(features[rows], MEANS, noise_variance=noise_variance, settings=SETTINGS)
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert (w >= 0).all()
    arm, values = np.isin(np.arange(30), rows), np.zeros(30)
    values[rows] = w
    given = (features, arm, noise_variance, SETTINGS, {True: features.mean(axis=0)}, np.zeros(30))
    ours, theirs = supposed_error(values, w.max(), *given), by_general_solver(*given)
    assert ours <= theirs * (1 + CERTIFIED)
    assert ours == pytest.approx(theirs, rel=GENERAL_SOLVER)


def test_noise_flattens_the_weights_and_its_absence_balances_them():
    features, rows = sample(400)
    quiet = arm_weights(features[rows], MEANS, noise_variance=0.0, settings=SETTINGS)
    loud = arm_weights(features[rows], MEANS, noise_variance=1e6, settings=SETTINGS)
    assert np.abs(quiet @ features[rows]).max() < 0.2 * np.abs(features[rows].mean(axis=0)).max()
    assert loud.max() == pytest.approx(1 / len(rows), rel=1e-2)
    assert loud.max() < quiet.max()
