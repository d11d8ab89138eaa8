"""Brute force over small outcomes, and adversarial large ones, for the variance around a line in public features."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from counterveil.errors import InternalError
from counterveil.estimators.linear.spectrum import Spectrum, residual_variance
from counterveil.rows.linear.ranged_fit import TRANSITION, cost
from counterveil.rows.linear.residual_variance import GroupSquares

BITS = 24
ENDS = (0, 2 ** (BITS - 1), 2**BITS)


def line(n, columns, strength, seed):
    """Return the problem of one arm of n rows with random features, and those features less their means.

    One feature after the other is fitted half as closely.
    """
    features = np.random.default_rng(seed).normal(size=(n, columns))
    spectrum = Spectrum.of(features, np.full(n, 0.5), np.ones(n, np.bool_), 0.5 ** np.arange(columns))
    return spectrum.part(features, strength), features - features.mean(axis=0)


def worst_move(part, n):
    every = list(product(ENDS, repeat=n))
    known = dict(zip(every, part.values([np.array(y) for y in every], BITS), strict=True))
    return max(
        abs(value - known[(*y[:place], other, *y[place + 1 :])])
        for y, value in known.items()
        for place, other in product(range(n), ENDS)
    )


@pytest.mark.parametrize("n", [2, 3, 5])
def test_around_the_mean_no_change_exceeds_the_claim_and_it_is_attained(n):
    part = GroupSquares(np.arange(n), Fraction(3, 7))
    assert worst_move(part, n) == part.largest_move


@pytest.mark.parametrize(
    ("n", "columns", "strength"), [(4, 1, 10.0), (4, 2, 1e4), (5, 1, 1e5), (5, 3, 300.0)]
)
def test_around_a_line_no_change_exceeds_the_claim(n, columns, strength):
    part, _ = line(n, columns, strength, seed=n)
    worst = worst_move(part, n)
    assert part.largest_move / 3 < worst <= part.largest_move


def whole_form(strength, sizes):
    """Return V over groups of rows of these sizes, each with a line and weights of its own."""
    rng, ends = np.random.default_rng(9), np.cumsum(sizes)
    features = rng.normal(size=(ends[-1], 1))
    weights = np.repeat(rng.random(len(sizes)), sizes)
    groups = np.searchsorted(ends, np.arange(ends[-1]), side="right")
    spectra = [Spectrum.of(features, weights, groups == place, np.ones(1)) for place in range(len(sizes))]
    return residual_variance(features, tuple(spectra), strength)


@pytest.mark.parametrize(("strength", "sizes"), [(0.0, (2, 2, 2, 2)), (30.0, (3, 3, 2))])
def test_over_several_groups_no_change_exceeds_the_largest_of_them(strength, sizes):
    """An outcome is in one group: the groups' bounds are not added up, however many there are."""
    form, n = whole_form(strength, sizes), sum(sizes)
    known = {y: form.value(np.array(y), BITS) for y in product((0, 2**BITS), repeat=n)}
    worst = max(
        abs(value - known[(*y[:place], 2**BITS - y[place], *y[place + 1 :])])
        for y, value in known.items()
        for place in range(n)
    )
    claim = form.largest_row(n) / 2
    assert claim / 3 < worst <= claim
    assert claim == max(part.largest_move for part in form.groups)
    if not strength:
        assert worst == claim


@pytest.mark.parametrize(("columns", "strength"), [(3, 1e4), (3, 1e9), (130, 1e3)])
def test_the_metric_is_as_near_to_that_of_least_squares_as_it_says(columns, strength):
    """Features in single precision, far from zero, of which two are nearly the same."""
    n = 400
    features = np.random.default_rng(5).normal(3, 1, size=(n, columns)).astype(np.float32)
    features[:, 1] = features[:, 0] + 1e-3 * features[:, 1]
    fit = (
        Spectrum.of(features, np.ones(n), np.ones(n, np.bool_), np.ones(columns)).part(features, strength).fit
    )
    wide = (features.astype(np.longdouble) - fit.centre) * np.sqrt(fit.strengths).astype(np.longdouble)
    metric = np.eye(columns) + wide.T @ wide / n
    root = fit.root.astype(np.longdouble)
    assert (
        np.linalg.norm((root.T @ metric @ root - np.eye(columns)).astype(float)) <= fit.metric_error <= 0.01
    )


def test_lines_that_rounding_would_hide_are_refused():
    with pytest.raises(InternalError, match="CV-X005"):
        line(30, 6, 1e14, 1)


def test_around_a_line_the_claim_is_nearly_attained():
    part, _ = line(400, 3, 100.0, seed=2)
    high = np.full(400, 2**BITS)
    low = high.copy()
    low[7] = 0
    move = abs(np.subtract(*part.values([low, high], BITS)))
    assert 0.95 * part.largest_move <= move <= part.largest_move


def ridge(y, Z, strengths):
    """Return the least sum of squares with the same penalty, wherever predictions lie."""
    n = len(y)
    centred = y - y.mean()
    inverse = np.linalg.inv(Z.T @ Z + n * np.diag(1 / strengths))
    return centred @ centred - centred @ Z @ inverse @ Z.T @ centred


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_that_move_least_squares_far_do_not_move_this_beyond_the_claim(seed):
    n, strength = 300, 1e4
    features = np.random.default_rng(seed).normal(size=(n, 40))
    Z = features - features.mean(axis=0)
    part = Spectrum.of(features, np.full(n, 0.5), np.ones(n, np.bool_), np.ones(40)).part(features, strength)
    row = int((Z**2).sum(axis=1).argmax())
    pull = Z @ np.linalg.solve(Z.T @ Z + n / strength * np.eye(40), Z[row])
    y = (pull < 0) * 1.0
    y[row] = 1.0
    other = y.copy()
    other[row] = 0.0
    steps = [np.ldexp(one, BITS).astype(np.int64) for one in (y, other)]
    move = abs(np.subtract(*part.values(steps[:2], BITS)))
    strengths = np.full(40, strength)
    squares = abs(ridge(y, Z, strengths) - ridge(other, Z, strengths)) * float(part.factor)
    assert move <= part.largest_move < squares / 2


def test_cost_is_the_squared_residual_inside_and_more_outside():
    y, m = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 1, 41), np.linspace(-2, 3, 1001)))
    value, slope, curvature = cost(y, m)
    inside = (m >= 0) & (m <= 1)
    assert (value[inside] == (y - m)[inside] ** 2).all()
    assert (value >= (y - m) ** 2).all()
    step = 1e-6
    assert np.allclose(slope, (cost(y, m + step)[0] - cost(y, m - step)[0]) / (2 * step), atol=1e-3)
    assert curvature.min() == 1.0
    assert curvature.max() == pytest.approx(1 + 1 / float(TRANSITION))
    by_prediction = value.reshape(1001, 41)
    assert np.diff(by_prediction, 2, axis=0).min() > 0  # convex
    assert np.ptp(by_prediction, axis=1).max() == pytest.approx(1 + float(TRANSITION), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_cost_is_found(seed):
    rng = np.random.default_rng(seed)
    part, Z = line(30, 6, 10.0 ** rng.integers(1, 6), seed)
    # Outcomes at the ends of the range pull predictions outside.
    y = rng.integers(0, 2, 30).astype(float)

    def total(point):
        value, slope, _ = cost(y, point[-1] + Z @ point[:-1])
        penalty = 30 / part.fit.strengths
        gradient = np.append(slope @ Z + 2 * penalty * point[:-1], slope.sum())
        return value.sum() + (penalty * point[:-1]) @ point[:-1], gradient

    found = minimize(total, np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10_000})
    assert part.fit.least(y)[0] == pytest.approx(found.fun, abs=2 * part.fit.slack)
    assert part.fit.least(y)[0] >= ridge(y, Z, part.fit.strengths) - part.fit.slack


def two_arms(seed, n=200):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 5))
    features -= features.mean(axis=0)
    features /= np.sqrt((features**2).sum() / n)
    treated = rng.random(n) < 0.4
    weights = np.where(treated, 1, -1) * rng.random(n)
    shape = np.array([3.0, 1.0, 1.0, 0.1, 0.01])
    spectra = tuple(Spectrum.of(features, weights, part, shape) for part in (treated, ~treated))
    return rng, features, treated, weights, spectra


@pytest.mark.parametrize("strength", [0.0, 1e9])
def test_agrees_with_least_squares(strength):
    rng, features, treated, weights, spectra = two_arms(1)
    outcome = rng.integers(0, 2**BITS, len(features))
    expected = 0.0
    for part in (treated, ~treated):
        columns = [np.ones((part.sum(), 1))] + ([features[part]] if strength else [])
        X = np.hstack(columns)
        residual = outcome[part] - X @ np.linalg.lstsq(X, outcome[part].astype(float), rcond=None)[0]
        expected += (weights[part] ** 2).sum() * (residual @ residual) / (part.sum() - X.shape[1])
    form = residual_variance(features, spectra, strength)
    assert float(form.value(outcome, BITS)) * 4.0**BITS == pytest.approx(expected, rel=1e-6)


def test_expectation_is_variance_plus_loading():
    rng, features, _, weights, spectra = two_arms(2)
    form = residual_variance(features, spectra, 3.0)
    unit, sd, signal = 2.0**16, 1.5, 2.0
    values = []
    for _ in range(1500):
        slope = rng.normal(size=5) * signal
        y = features @ slope + rng.normal(size=len(features)) * sd
        values.append(
            float(form.value(np.round((y + 100) * unit).astype(np.int64), BITS)) * 4.0**BITS / unit**2
        )
    expected = sd**2 * float(weights @ weights) + signal**2 * form.loading
    assert np.mean(values) == pytest.approx(expected, rel=0.03)
