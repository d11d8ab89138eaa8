import math

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit

from counterveil.errors import ParameterError
from counterveil.numerics.propensity import (
    DEFAULT_TOLERANCE,
    damping,
    fit_multinomial,
    fit_propensity,
    multinomial_scores,
)
from counterveil.numerics.propensity import _Binary as TwoArms
from counterveil.numerics.propensity import _Multinomial as SeveralArms


def sample(n, d, seed, arms=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    logits = np.concatenate([np.zeros((n, 1)), X @ rng.normal(size=(d, arms - 1))], axis=1)
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return X, (rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1)


def exact_gradient(X, arm, weights, penalty):
    """The gradient's norm, with every sum over rows rounded once."""
    weights = np.atleast_2d(weights)
    Z = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    probability = multinomial_scores(X, weights)[:, 1:]
    residual = probability - (arm[:, None] == np.arange(1, len(weights) + 1))
    total = [[math.fsum(residual[:, k] * Z[:, j]) for j in range(Z.shape[1])] for k in range(len(weights))]
    return float(np.linalg.norm(np.array(total) / len(X) + penalty * weights))


@pytest.mark.parametrize("penalty", [1.0, 1e-2, 1e-5])
def test_the_fit_is_the_minimum_of_the_objective(penalty):
    X, arm = sample(300, 4, 1)
    fit = fit_propensity(X, arm == 1, penalty)
    Z = np.concatenate([X, np.ones((300, 1))], axis=1)

    def objective(w):
        z = Z @ w
        return float(np.mean(np.logaddexp(0, z) - z * arm) + penalty / 2 * w @ w)

    def slope(w):
        return Z.T @ (expit(Z @ w) - arm) / 300 + penalty * w

    reference = minimize(objective, np.zeros(5), jac=slope, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(fit.weights, reference.x, atol=1e-4)
    assert objective(fit.weights) <= reference.fun + 1e-14


def worst_cases():
    """Data on which undamped Newton, or an intercept without penalty, runs away."""
    x = np.linspace(-1, 1, 40)[:, None]
    yield "separated", x, (x[:, 0] > 0).astype(int), 1e-8
    yield "all treated", x, np.ones(40, int), 1e-8
    yield "nobody treated", x, np.zeros(40, int), 1e-8
    yield "one row", np.ones((1, 3)), np.array([1]), 1e-8
    yield "no covariates", np.empty((5, 0)), np.array([0, 1, 1, 0, 1]), 1e-6
    yield "twin columns", np.concatenate([x, x, x], axis=1), (x[:, 0] > 0.2).astype(int), 1e-7
    corner = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [1e-9, 0.0]] * 5)
    yield "outlier label", corner, np.array([1, 1, 1, 0] * 5), 1e-8


def step_bound(columns, arms, penalty):
    """Return the proved number of steps that always suffices, for features in [-1, 1]."""
    reach = columns if arms == 2 else 2 * columns
    return math.ceil(9.3 * math.log(arms) * reach / penalty) + 8


@pytest.mark.parametrize(
    ("name", "X", "arm", "penalty"), list(worst_cases()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_tolerance_is_met_on_the_worst_data(name, X, arm, penalty):
    columns = X.shape[1] + 1
    tolerance = DEFAULT_TOLERANCE * math.sqrt(columns)
    two, several = fit_propensity(X, arm == 1, penalty), fit_multinomial(X, arm, 3, penalty)
    for fit, arms in ((two, 2), (several, 3)):
        assert fit.gradient_norm <= tolerance / 2
        assert exact_gradient(X, arm, fit.weights, penalty) <= tolerance
        assert fit.steps <= step_bound(columns, arms, penalty)
        assert fit.steps <= 200  # far below the proved bound


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("arms", [2, 4])
def test_every_step_lowers_the_objective_by_what_the_proof_says(seed, arms):
    X, arm = sample(60, 3, seed, arms)
    penalty = 10.0 ** -(seed + 1)
    objective = TwoArms(X, arm == 1, penalty) if arms == 2 else SeveralArms(X, arm, arms, penalty)
    rng = np.random.default_rng(seed)
    for size in (0.1, 1.0, 10.0, 100.0):
        w = rng.normal(size=(arms - 1) * 4) * size
        gradient, hessian = objective.gradient(w), objective.hessian(w)
        direction = np.linalg.solve(hessian, gradient)
        r, decrement = objective.logit_range(direction), float(gradient @ direction)
        promised = decrement * ((1 + r) * math.log1p(r) - r) / r**2
        after = w - damping(r) * direction
        assert objective.value(w) - objective.value(after) >= promised - 1e-12 * objective.value(w)
        new = objective.gradient(after)
        assert math.sqrt(new @ np.linalg.solve(hessian, new)) <= r * math.sqrt(decrement) * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(("arms", "columns"), [(2, 3), (3, 3), (2, 60), (3, 30)])
def test_derivatives_are_those_of_the_value(arms, columns):
    X, arm = sample(600, columns, 3, arms)
    objective = TwoArms(X, arm == 1, 0.1) if arms == 2 else SeveralArms(X, arm, arms, 0.1)
    w = np.random.default_rng(0).normal(size=(arms - 1) * (columns + 1))
    assert check_grad(objective.value, objective.gradient, w) < 1e-5
    hessian = objective.hessian(w)
    step = 1e-6
    for k in range(len(w)):
        moved = np.eye(len(w))[k] * step
        numeric = (objective.gradient(w + moved) - objective.gradient(w - moved)) / (2 * step)
        np.testing.assert_allclose(hessian[k], numeric, atol=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        {"penalty": 0.0},
        {"penalty": -1.0},
        {"penalty": np.inf},
        {"penalty": np.nan},
        {"tolerance": 1e-15},
        {"tolerance": 0.0},
    ],
)
def test_a_penalty_or_tolerance_out_of_reach_is_refused(change):
    X, arm = sample(10, 2, 9)
    with pytest.raises(ParameterError, match="CV-P301"):
        fit_propensity(X, arm == 1, **({"penalty": 0.1} | change))
    with pytest.raises(ParameterError, match="CV-P301"):
        fit_multinomial(X, arm, 3, **({"penalty": 0.1} | change))


def test_shapes_that_do_not_fit_are_refused():
    X, arm = sample(10, 2, 9)
    for covariates, treated in ((X, arm[:-1]), (X[:, 0], arm), (X[:0], arm[:0])):
        with pytest.raises(ParameterError, match="CV-P302"):
            fit_propensity(covariates, treated == 1, 0.1)
    with pytest.raises(ParameterError, match="CV-P302"):
        fit_multinomial(X, arm, 1, 0.1)
