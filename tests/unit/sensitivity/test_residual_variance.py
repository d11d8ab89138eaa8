"""Brute force over all small outcomes for the variance around a line in public features."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.kernels import residual_variance as module
from counterveil.kernels.residual_variance import ArmResidual, Spectrum, residual_variance

BITS = 24
ENDS = (0, 2 ** (BITS - 1), 2**BITS)


def arm(n, directions, seed, orthonormal=True):
    """Return an arm with random directions, orthonormal and of sum zero or anything at all."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, directions))
    if orthonormal:
        G = np.linalg.qr(np.column_stack([np.ones(n), G]))[0][:, 1 : directions + 1]
    else:
        G /= 2 * np.linalg.norm(G)
    units = np.trunc(np.ldexp(G.T, 28)).astype(np.int32)
    return ArmResidual.of(np.arange(n), units, 28, Fraction(3, 7))


def worst_move(part, n):
    scale = Fraction(4) ** BITS
    known = {y: part.value(np.array(y)) / scale for y in product(ENDS, repeat=n)}
    return max(
        abs(value - known[(*y[:place], other, *y[place + 1 :])])
        for y, value in known.items()
        for place, other in product(range(n), ENDS)
    )


@pytest.mark.parametrize(("n", "directions"), [(2, 0), (5, 0), (3, 1), (4, 2), (5, 1), (5, 3), (6, 2)])
def test_no_change_exceeds_the_claim_and_it_is_attained(n, directions):
    part = arm(n, directions, seed=n)
    worst = worst_move(part, n)
    assert worst <= part.largest_move
    assert worst >= part.largest_move * Fraction(99999, 100000)


@pytest.mark.parametrize("seed", range(6))
def test_the_claim_holds_for_any_directions(seed):
    part = arm(5, 2, seed, orthonormal=False)
    assert worst_move(part, 5) <= part.largest_move


def test_a_third_of_the_claim_would_be_caught():
    part = arm(5, 2, seed=1)
    assert worst_move(part, 5) > part.largest_move / 3


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_for_large_arms_is_never_below_the_exact_one(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 4)) * [1.0, 0.5, 0.1, 3.0]
    spectrum = Spectrum.of(features, np.full(60, 0.1), np.ones(60, np.bool_))
    exact = spectrum.residual(features, 2.0).largest_move
    monkeypatch.setattr(module, "_EXACT_ROWS", 0)
    bound = spectrum.residual(features, 2.0).largest_move
    assert exact <= bound <= 3 * exact


def two_arms(seed, n=200):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 5))
    features -= features.mean(axis=0)
    features /= np.sqrt((features**2).sum() / n)
    treated = rng.random(n) < 0.4
    weights = np.where(treated, 1, -1) * rng.random(n)
    spectra = tuple(Spectrum.of(features, weights, part) for part in (treated, ~treated))
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
    unit, spread, signal = 2.0**16, 1.5, 2.0
    values = []
    for _ in range(1500):
        slope = rng.normal(size=5) * signal
        y = features @ slope + rng.normal(size=len(features)) * spread
        values.append(
            float(form.value(np.round((y + 100) * unit).astype(np.int64), BITS)) * 4.0**BITS / unit**2
        )
    expected = spread**2 * float(weights @ weights) + signal**2 * form.loading
    assert np.mean(values) == pytest.approx(expected, rel=0.03)
