"""Noise of a known level is taken out of second moments and of coefficients."""

import numpy as np
import pytest

from counterveil.numerics.shrinkage import denoised, floored, shrunk


def wigner(rng, m, sd):
    noise = rng.normal(0, sd, (m, m))
    return np.triu(noise, 1) + np.triu(noise, 1).T + np.diag(rng.normal(0, 2**0.5 * sd, m))


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_the_noise_is_taken_out_and_the_structure_stays(strength):
    rng = np.random.default_rng(1)
    m, sd = 30, 0.05
    truth = np.eye(m)
    truth[1:, 1:] += strength * (np.ones((m - 1, m - 1)) - np.eye(m - 1))
    before, after, claimed = [], [], []
    for _ in range(20):
        noisy = truth + wigner(rng, m, sd)
        found = denoised(noisy, sd)
        before.append(((noisy - truth) ** 2).mean())
        after.append(((found.matrix - truth) ** 2).mean())
        claimed.append(found.error)
    assert np.mean(after) < 0.3 * np.mean(before)
    # The error per entry that is claimed is no less than the true one, and less than that of the noise.
    assert 0.7 * np.mean(after) < np.mean(claimed) < 0.5 * np.mean(before)
    assert found.matrix @ found.inverse == pytest.approx(np.eye(m), abs=1e-9)


def test_without_noise_nothing_is_changed():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2000, 6))
    rows[:, 1] += rows[:, 2]
    exact = np.eye(7)
    exact[1:, 1:] = np.corrcoef(rows.T)
    assert denoised(exact, 1e-9).matrix == pytest.approx(exact, abs=1e-6)


def test_small_eigenvalues_are_raised_and_what_that_leaves_out_is_said():
    matrix = np.diag([1.0, 0.25, 0.05])
    found = floored(matrix, 0.0, 1.0)
    assert np.diag(found.matrix) == pytest.approx([1.0, 0.25, 0.25])
    # A coefficient is made with 0.25 instead of 0.05, so that four fifths of it are left out.
    assert found.raised == pytest.approx(0.05 * 0.8**2)
    assert floored(np.eye(3), 0.0, 1.0).raised == 0.0
    # Where there is little noise, little is raised.
    assert floored(matrix, 0.0, 0.01).matrix == pytest.approx(matrix)


def test_coefficients_drowned_in_noise_go_to_zero_and_clear_ones_stay():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=20)
    errors = {}
    for sd in (0.01, 1.0, 30.0):
        found = [shrunk(truth + rng.normal(0, sd, 20), sd, np.eye(20), 0.01, 1e9) for _ in range(200)]
        distance = np.array([((one.values - truth) ** 2).sum() for one in found])
        errors[sd] = distance.mean()
        # The error that is claimed is an upper estimate.
        assert np.mean([one.error for one in found]) > 0.95 * distance.mean()
        assert distance.mean() < 1.05 * 20 * sd**2
    assert errors[30.0] < 0.2 * 20 * 900
    assert all(0 <= one.factor < 1 for one in found)
