"""Shrinkage by groups: strong groups stay, empty ones vanish, and limits hold the truth."""

import numpy as np
import pytest

from counterveil.numerics.denoising import denoised, floored, shrunk
from counterveil.numerics.noise_shape import largest_move, matrix_power, noise_shape
from counterveil.numerics.shrinkage import Normal, Prior, shrink, spike_and_slab, upper_variances


def problem(noise, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.concatenate(([1.0], [0.5, -0.4, 0.3], np.zeros(6)))
    y = theta + noise * rng.normal(size=10)
    prior = Prior(np.ones(10), np.array([-1, 0, 0, 0, 1, 1, 1, 2, 2, 2]), np.zeros(3, dtype=np.intp))
    return theta, Normal.of(np.eye(10), y, noise**2 * np.eye(10)), prior


def test_response_says_what_is_left_of_the_truth():
    _, normal, prior = problem(0.3)
    found = shrink(normal, prior)
    variances = prior.variances(found.scales)
    expected = variances / (variances + 0.09)
    assert np.diag(found.response) == pytest.approx(expected)
    assert np.diag(found.posterior) == pytest.approx(variances * 0.09 / (variances + 0.09))


def test_upper_limits_exceed_the_scales_and_reach_hidden_signals():
    reached = []
    for seed in range(20):
        theta, normal, prior = problem(0.5, seed)
        found = shrink(normal, prior)
        upper = upper_variances(normal, prior, found.scales, 0)
        assert (upper[1:] >= prior.variances(found.scales)[1:] - 1e-12).all()
        reached.append(upper[1] >= np.mean(theta[1:4] ** 2))
    assert np.mean(reached) > 0.7


def test_likelihood_is_that_of_the_normal_law():
    _, normal, prior = problem(0.2)
    y = normal.score * 0.04

    def exact(v):
        return -0.5 * float((y**2 / (v + 0.04)).sum() + np.log(v + 0.04).sum())

    one, two = prior.variances(np.array([0.1, 0.2, 0.3])), prior.variances(np.array([0.3, 0.02, 0.1]))
    assert normal.likelihood(one) - normal.likelihood(two) == pytest.approx(exact(one) - exact(two))


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


SCALES = (0.03, 0.3, 3.0)


def observed(truth, sd, seed=0):
    rng = np.random.default_rng(seed)
    information = np.eye(len(truth)) / sd**2
    return information, information @ (truth + sd * rng.normal(size=len(truth)))


def test_few_groups_of_many_are_found():
    truth = np.zeros(31)
    truth[[0, 3, 7]] = 2.0, 1.8, -2.5
    groups = np.arange(31)
    information, score = observed(truth, 0.3)
    found = spike_and_slab(information, score, groups, np.ones(31), SCALES)
    assert found.included[[3, 7]] == pytest.approx([1, 1], abs=0.05)
    others = np.setdiff1d(np.arange(1, 31), [3, 7])
    assert found.included[others].mean() < 0.2
    measured = score * 0.3**2
    assert np.sum((found.weights - truth) ** 2) < 0.4 * np.sum((measured - truth) ** 2)
    # Free weights stay as measured.
    assert found.weights[0] == pytest.approx(measured[0])


def test_one_scale_without_a_spike_is_a_ridge_regression():
    """With evidence beyond doubt the spike is out, and one scale gives the posterior mean of a normal prior."""
    truth = np.array([0.0, 5.0, -4.0])
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    information = root @ root.T * 50 + 20 * np.eye(3)
    score = information @ truth
    found = spike_and_slab(information, score, np.array([1, 1, 1]), np.ones(3), (2.0,))
    expected = np.linalg.solve(information + np.eye(3) / 2.0, score)
    assert found.weights == pytest.approx(expected, rel=1e-6)
    assert found.variances == pytest.approx(np.full(3, 2.0))


def test_huge_evidence_does_not_overflow():
    information, score = observed(np.array([0.0, 1e4, 0.0]), 1e-3)
    found = spike_and_slab(information, score, np.array([0, 1, 2]), np.ones(3), SCALES)
    assert np.isfinite(found.weights).all()
    assert found.included[1] == pytest.approx(1)


def moves_and_loss(seed=0, rows=400, size=5):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    phi = np.stack([x**power for power in range(size)], axis=1)
    gram = phi.T @ phi
    return phi @ np.linalg.inv(gram), gram / rows


def cost(shape, moves, loss):
    """The mean squared error of predictions, once the shape is scaled to hide every move."""
    return np.trace(shape @ loss) * largest_move(moves, matrix_power(shape, -0.5)) ** 2


def test_the_shape_costs_less_than_others():
    moves, loss = moves_and_loss()
    best = cost(noise_shape(moves, loss, 40), moves, loss)
    for other in (np.eye(5), moves.T @ moves, np.linalg.inv(loss)):
        assert best < 0.9 * cost(other, moves, loss)
    rng = np.random.default_rng(1)
    for _ in range(20):
        turned = noise_shape(moves, loss, 40)
        change = rng.normal(size=(5, 5)) * 0.1
        near = (np.eye(5) + change) @ turned @ (np.eye(5) + change).T
        assert best < 1.04 * cost(near, moves, loss)


def test_scaled_by_the_largest_move_every_move_is_hidden():
    moves, loss = moves_and_loss(5)
    shape = noise_shape(moves, loss, 12)
    scaled = shape * largest_move(moves, matrix_power(shape, -0.5)) ** 2
    sizes = np.einsum("ij,jk,ik->i", moves, np.linalg.inv(scaled), moves)
    assert sizes.max() == pytest.approx(1)


def test_one_number_and_moves_that_span_less_than_the_space():
    assert noise_shape(np.array([[1.0], [-2.0]]), np.eye(1), 5).shape == (1, 1)
    flat = np.zeros((10, 3))
    flat[:, 0] = np.linspace(-1, 1, 10)
    assert np.isfinite(noise_shape(flat, np.eye(3), 12)).all()
