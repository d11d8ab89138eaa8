"""The orthogonal private effect: what public numbers decide, and what its models say of themselves."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.moments.robust_data import DELTA

from counterveil.numerics.shrinkage import floored
from counterveil.privacy import Budget
from counterveil.statistics.moments.orthogonal import (
    Design,
    ResidualProducts,
    Scaling,
    SecondMoments,
    affordable,
    fewest_rows,
    first_models,
    gram_index,
    refined,
    split,
)


def test_the_public_rule_is_the_documented_one():
    # Rows from which a budget affords d features at delta 1e-6.
    known = ((5, 1, 229), (20, "0.5", 2974), (20, 1, 1560), (20, 4, 441), (20, 8, 241), (58, 2, 3918))
    for d, epsilon, rows in known:
        assert fewest_rows(Design(10, d, Budget(epsilon, DELTA), "gaussian")) == pytest.approx(rows, rel=0.01)
    pure = Design(14_000, 20, Budget(1), "staircase")
    assert fewest_rows(pure) == pytest.approx(13_983, rel=0.03)
    assert gram_index(pure) > gram_index(Design(14_000, 20, Budget(1, DELTA), "gaussian"))
    assert affordable(Design(1560, 20, Budget(1, DELTA), "gaussian"))


@pytest.mark.parametrize("mechanism", ["gaussian", "staircase"])
def test_shares_add_up_and_small_budgets_spend_them_on_the_matrix(mechanism):
    budgets = {"gaussian": (Budget(1, DELTA), Budget(8, DELTA)), "staircase": (Budget(2), Budget(50))}[
        mechanism
    ]
    found = [split(Design(10_000, 20, budget, mechanism)) for budget in budgets]
    for one, budget in zip(found, budgets, strict=True):
        assert sum(share for _, share in one.shares) == Fraction(1)
        assert one.plan(budget, mechanism).budget == budget
    small, large = (dict(one.shares) for one in found)
    assert small["gram"] > large["gram"]
    assert small["score"] < large["score"]


@pytest.mark.parametrize(("least", "seen"), [(0.5, True), (0.01, False)])
def test_directions_that_no_model_sees_whole_stay_in_the_interval(least, seen):
    matrix = np.diag([1.0, 1.0, least])
    moments = SecondMoments(
        matrix, np.array([0.0, 0.05, 0.05 * least]), np.array([0.0, 0.1, 0.1 * least]), 0.25, 0.05, 0.1,
        0.01, 1e-6, 1e-6, 1e-6, 1e-6,
    )  # fmt: skip
    nuisances = first_models(moments, Scaling(0.5, 0.0, 0.5, 1.0, 1.0, 1.0), floored(matrix, 1e-6, 0.2))
    assert (nuisances.raised_bias == 0) == seen
    again = refined(nuisances, ResidualProducts(np.array([0.0, 0.0, 1e-4]), 0.05, 1e-6, 1e-6))
    # A correction with the same matrix sees them no better; of the noise's part little is left.
    assert again.raised_bias >= 0.7 * nuisances.raised_bias
    assert again.noise_bias < nuisances.noise_bias
    assert again.bias == again.noise_bias + again.raised_bias
