"""The fit in whole sums: the gradient is within its tolerance, and no division of the rows changes a bit."""

from math import sqrt

import numpy as np
import pytest
from scipy.special import expit

from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.propensity import fit_propensity
from counterveil.numerics.whole_logistic import ROWS_AT_ONCE, fit_in_looks, logistic_sums, look_of


def people(rows, columns=3, steep=2.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random((rows, columns)) - 0.5
    return z, rng.random(rows) < expit(steep * z.sum(axis=1))


def fitted(z, treated, penalty, order=None, size=ROWS_AT_ONCE):
    """Return the weights and at how many places the rows were looked at."""
    order = np.arange(len(z)) if order is None else order
    places = []

    def look(weights):
        places.append(weights)
        parts = [order[start : start + size] for start in range(0, len(z), size)]
        sums = logistic_sums(((z[part], treated[part]) for part in parts), weights)
        return look_of(sums, len(z), weights, penalty)

    def reach(direction):
        return np.abs(direction[:-1]).sum() / 2 + abs(direction[-1])

    return fit_in_looks(look, reach, len(z), z.shape[1] + 1, penalty), len(places)


@pytest.mark.parametrize("penalty", [1e-8, 1e-3, 0.3])
def test_the_gradient_is_within_its_tolerance(penalty):
    z, treated = people(5000)
    weights, looks = fitted(z, treated, penalty)
    x = np.column_stack([z, np.ones(len(z))])
    gradient = x.T @ (expit(x @ weights) - treated) / len(z) + penalty * weights
    assert np.linalg.norm(gradient) <= checked_tolerance(len(z), 4, 2, penalty, None)
    assert weights == pytest.approx(fit_propensity(z, treated, penalty).weights, abs=1e-8 / sqrt(penalty))
    assert looks <= 8


@pytest.mark.parametrize("penalty", [1e-9, 1e-6])
def test_arms_that_a_line_parts_are_fitted_all_the_same(penalty):
    z, _ = people(300, 2)
    # The whole step from zero goes too far here, and is shortened.
    for treated in (z[:, 0] > 0, z[:, 0] > 0.45, np.ones(300, dtype=bool)):
        weights, looks = fitted(z, treated, penalty)
        x = np.column_stack([z, np.ones(len(z))])
        gradient = x.T @ (expit(x @ weights) - treated) / len(z) + penalty * weights
        assert np.linalg.norm(gradient) <= checked_tolerance(300, 3, 2, penalty, None)
        assert looks < 60


def test_blocks_and_their_order_change_no_bit():
    z, treated = people(400)
    known, _ = fitted(z, treated, 1e-3)
    for seed, size in ((1, 3), (2, 17), (3, 200)):
        order = np.random.default_rng(seed).permutation(len(z))
        assert (fitted(z, treated, 1e-3, order, size)[0] == known).all()
