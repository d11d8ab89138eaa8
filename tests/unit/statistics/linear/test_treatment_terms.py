"""Terms that treatment follows beyond a line in the covariates: which are found, and what is returned of them."""

import numpy as np
import pytest
from scipy.special import expit

from counterveil.statistics.linear.kernels.balancing import treatment_terms

N = 4000


def columns(d=8, n=N, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (d, n)).astype(np.float32)
    return x - x.mean(axis=1, keepdims=True)


def terms(x, logit, seed=1):
    """Return the terms of treatments drawn with these log-odds, beyond the line with the slopes of `x[0]`."""
    treated = np.random.default_rng(seed).uniform(size=x.shape[1]) < expit(logit)
    return treatment_terms(x, np.arange(len(x)), treated, expit(0.8 * x[0]))


def arm_correlation(column, other):
    return abs(float(np.corrcoef(column, other)[0, 1]))


@pytest.mark.parametrize(
    "bend", [lambda x: x[2] ** 2, lambda x: x[3] > 0.3, lambda x: x[1] * x[4], lambda x: x[5] ** 3]
)
def test_a_bend_or_product_that_moves_treatment_is_found(bend):
    x = columns()
    moved = bend(x).astype(float)
    moved = (moved - moved.mean()) / moved.std()
    found = terms(x, 0.8 * x[0] + moved)
    # A neighbouring step can stand in for one that is not among the candidates.
    assert max(arm_correlation(column, moved) for column in found.columns) > 0.75
    assert arm_correlation(found.direction, moved) > 0.75


def test_constant_columns_are_no_trouble():
    x = columns()
    x[6] = 0.0
    found = terms(x, 0.8 * x[0] + 2 * x[1] * x[2])
    assert np.isfinite(found.columns).all()
    nothing = terms(np.zeros((2, 50), np.float32), np.zeros(50))
    assert nothing.columns.shape == (0, 50)
    assert nothing.direction is None
