"""Least squares from moments: as other programs compute it without noise, and covering with noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from counterveil.inference.anderson_rubin import anderson_rubin, joint_p_value, joint_statistic
from counterveil.inference.linear_fit import least_squares, two_stage
from counterveil.inference.moments import NoisyMoments

TIGHT = 1e-8


def people(n=400, seed=0, strength=0.6):
    rng = np.random.default_rng(seed)
    x, z, hidden = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.normal(size=n)
    d = z @ np.array([strength, 0.5 * strength]) + 0.4 * x[:, 0] + hidden + rng.normal(size=n)
    y = 1 + 0.7 * d + x @ np.array([0.5, -0.3]) - hidden + rng.normal(size=n)
    return x, z, d, y


def moments_of(columns, sd=0.0, rng=None):
    """Return moments of columns, with symmetric noise of this standard deviation off the diagonal."""
    matrix = columns.T @ columns / len(columns)
    noise = np.full(matrix.shape, sd)
    np.fill_diagonal(noise, np.sqrt(2) * sd)
    if rng is not None:
        drawn = np.triu(rng.normal(size=matrix.shape)) * noise
        matrix = matrix + drawn + np.triu(drawn, 1).T
    return NoisyMoments(matrix, noise, len(columns))


def picked(size, *places):
    return np.eye(size)[list(places)]


def whole(x, z, d, y):
    return np.column_stack((np.ones(len(y)), x, z, d, y))


def test_without_noise_it_is_the_textbook():
    x, z, d, y = people()
    columns = np.column_stack((np.ones(len(y)), x, d))
    fit = least_squares(moments_of(whole(x, z, d, y)), picked(7, 0, 1, 2, 5), picked(7, 6)[0])
    exact = np.linalg.lstsq(columns, y, rcond=None)[0]
    assert fit.coefficients == pytest.approx(exact, rel=TIGHT)
    variance = np.sum((y - columns @ exact) ** 2) / (len(y) - 4)
    assert np.diag(fit.covariance) == pytest.approx(
        variance * np.diag(np.linalg.inv(columns.T @ columns)), rel=TIGHT
    )
    assert fit.variance == pytest.approx(variance, rel=TIGHT)
    assert fit.total == pytest.approx(y.var(), rel=TIGHT)
    assert not fit.noise.any()
    # The first stage by hand, then least squares on what it predicts.
    given = np.column_stack((np.ones(len(y)), x, z))
    predicted = given @ np.linalg.lstsq(given, columns, rcond=None)[0]
    exact = np.linalg.lstsq(predicted, y, rcond=None)[0]
    fit = two_stage(
        moments_of(whole(x, z, d, y)), picked(7, 0, 1, 2, 5), picked(7, 3, 4, 0, 1, 2), picked(7, 6)[0]
    )
    variance = np.sum((y - columns @ exact) ** 2) / (len(y) - 4)
    assert fit.coefficients == pytest.approx(exact, rel=TIGHT)
    wanted = variance * np.diag(np.linalg.inv(predicted.T @ predicted))
    assert np.diag(fit.covariance) == pytest.approx(wanted, rel=TIGHT)


def test_first_order_noise_is_the_derivative():
    x, z, d, y = people()
    # With so many rows there is no sampling error beside the noise.
    known = replace(moments_of(whole(x, z, d, y), 1e-6), rows=10**12)
    for fit, again in (
        (lambda m: least_squares(m, picked(7, 0, 1, 2, 5), picked(7, 6)[0]), 4),
        (lambda m: two_stage(m, picked(7, 0, 1, 2, 5), picked(7, 3, 4, 0, 1, 2), picked(7, 6)[0]), 4),
    ):
        covariance = np.zeros((again, again))
        for i in range(7):
            for j in range(i, 7):
                moved = known.matrix.copy()
                moved[i, j] += 1e-6
                moved[j, i] = moved[i, j]
                change = (
                    fit(NoisyMoments(moved, known.noise, known.rows)).coefficients - fit(known).coefficients
                ) / 1e-6
                covariance += np.outer(change, change) * known.noise[i, j] ** 2
        assert fit(known).noise == pytest.approx(covariance, rel=1e-3, abs=1e-18)


@pytest.mark.parametrize("sd", [0.002, 0.06])
def test_intervals_cover_and_noise_brings_no_bias(sd):
    rng = np.random.default_rng(3)
    truth = np.array([0.0, 0.6, 0.6, -0.3])
    inside, found = [], []
    for _ in range(150):
        shared = rng.normal(size=(2000, 1))
        x = 0.7 * shared + 0.7 * rng.normal(size=(2000, 3))
        y = x @ truth[1:] + 0.5 * rng.normal(size=2000)
        fit = least_squares(
            moments_of(np.column_stack((np.ones(2000), x, y)), sd, rng),
            picked(5, 0, 1, 2, 3),
            picked(5, 4)[0],
        )
        errors = np.array([fit.error(one)[0] for one in np.eye(4)])
        inside.append(np.abs(fit.coefficients - truth) <= 1.96 * errors)
        found.append(fit.coefficients)
    assert 0.93 <= np.mean(inside) <= 0.99
    spread = np.std(found, axis=0) / np.sqrt(150)
    assert np.all(np.abs(np.mean(found, axis=0) - truth) <= 3.5 * spread)


def test_noise_that_hides_the_regressors_is_told():
    x, _, _, y = people()
    columns = np.column_stack((np.ones(len(y)), x, x[:, 0] + 0.01 * x[:, 1], y))
    rng = np.random.default_rng(0)
    fits = [
        least_squares(moments_of(columns, 0.05, rng), picked(5, 0, 1, 3), picked(5, 4)[0]) for _ in range(200)
    ]
    hidden = [fit for fit in fits if not fit.identified]
    # Noise pretends that they are independent in about 1 of 700 releases.
    assert len(hidden) >= 197
    assert all(fit.error(np.eye(3)[1])[0] == np.inf for fit in hidden)


def test_one_instrument_gives_fieller_s_interval():
    x, z, d, y = people(strength=0.3)
    columns, level = whole(x, z, d, y), 0.9
    known = moments_of(columns, 0.01, np.random.default_rng(0))
    instruments, exogenous = picked(7, 3), picked(7, 0, 1, 2)
    both = np.vstack((instruments, exogenous))
    fits = [least_squares(known, both, picked(7, place)[0]) for place in (5, 6)]
    joint = least_squares(known, both, picked(7, 6)[0] - picked(7, 5)[0])
    q = student.ppf(0.95, fits[0].freedom) ** 2
    a, b = (fit.coefficients[0] for fit in fits)
    va, vb = (fit.covariance[0, 0] for fit in fits)
    vab = (va + vb - joint.covariance[0, 0]) / 2
    ends = np.roots([a**2 - q * va, -2 * (a * b - q * vab), b**2 - q * vb])
    fit = two_stage(known, picked(7, 0, 1, 2, 5), both, picked(7, 6)[0])
    centre = (fit.coefficients[-1], fit.error(np.eye(4)[-1])[0])
    found = anderson_rubin(known, picked(7, 5)[0], instruments, exogenous, picked(7, 6)[0], level, centre)
    assert len(found) == 1
    assert sorted(found[0]) == pytest.approx(sorted(ends.real), rel=1e-4)


def test_weak_instruments_leave_values_unbounded():
    x, z, d, y = people(strength=0.0)
    known = moments_of(whole(x, z, d, y), 0.02, np.random.default_rng(1))
    found = anderson_rubin(
        known, picked(7, 5)[0], picked(7, 3), picked(7, 0, 1, 2), picked(7, 6)[0], 0.95, (0.0, 1.0)
    )
    assert any(np.isinf(end) for ends in found for end in ends)
    first = least_squares(known, np.vstack((picked(7, 3), picked(7, 0, 1, 2))), picked(7, 5)[0])
    assert joint_statistic(first, 1) < 10


def test_instruments_that_contradict_each_other_leave_nothing():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(2000, 2))
    d = z.sum(axis=1) + 0.1 * rng.normal(size=2000)
    y = z[:, 0] - z[:, 1] + 0.1 * rng.normal(size=2000)
    known = moments_of(np.column_stack((np.ones(2000), z, d, y)), 1e-4, rng)
    found = anderson_rubin(
        known, picked(5, 3)[0], picked(5, 1, 2), picked(5, 0), picked(5, 4)[0], 0.95, (0.0, 0.1)
    )
    assert found == ()


@pytest.mark.parametrize("strength", [0.0, 0.03, 0.3])
def test_the_test_of_no_effect_agrees_with_the_values_kept(strength):
    x, z, d, y = people(strength=strength)
    known = moments_of(whole(x, z, d, y), 0.01, np.random.default_rng(2))
    columns = (picked(7, 3), picked(7, 0, 1, 2), picked(7, 6)[0])
    p = joint_p_value(known, *columns)
    for level in (1 - 1.01 * p, 1 - 0.99 * p):
        found = anderson_rubin(known, picked(7, 5)[0], *columns, level, (0.0, 1.0))
        assert any(low <= 0 <= high for low, high in found) == (level > 1 - p)


def test_intervals_of_nearly_collinear_terms_cover():
    rng, truth, held, plain = np.random.default_rng(3), np.array([0.0, 0.5, -0.5]), [], []
    for _ in range(300):
        x, other, error = rng.normal(size=(3, 1000))
        z = 0.98 * x + np.sqrt(1 - 0.98**2) * other
        columns = np.column_stack((np.ones(1000), x, z, 0.5 * x - 0.5 * z + error))
        fit = least_squares(moments_of(columns, 0.005, rng), picked(4, 0, 1, 2), picked(4, 3)[0])
        if not fit.identified:
            continue
        own, distance = np.array([0.0, 1.0, 0.0]), float(fit.coefficients[1] - truth[1])
        below, above = fit.interval_distances(own, 1.96)
        held.append(-above <= distance <= below)
        plain.append(abs(distance) <= 1.96 * fit.error(own)[0])
        # A value at an end is as many standard errors away.
        for end in (below, -above):
            assert np.isinf(end) or fit.standard_errors(own, end) <= 1.96 * (1 + TIGHT)
    assert len(held) > 100
    assert np.mean(held) > 0.935 > np.mean(plain)
