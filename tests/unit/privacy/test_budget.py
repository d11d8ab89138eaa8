"""Exact budgets."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from counterveil.errors import ParameterError
from counterveil.privacy import Budget, exact


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), "1e-1"]
)
def test_a_tenth_is_a_tenth_however_it_is_written(value):
    assert exact(value, "epsilon") == Fraction(1, 10)


def test_three_tenths_add_up():
    assert sum(Budget(0.1).epsilon for _ in range(3)) == Budget(0.3).epsilon


@pytest.mark.parametrize(
    "value", ["one", float("nan"), float("inf"), "1/0", None, True, "1e999999999", "9" * 1000, Decimal("NaN")]
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ParameterError, match="CV-P003"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    ("epsilon", "delta", "code"), [(0, 0, "CV-P004"), (-1, 0, "CV-P004"), (1, 1, "CV-P005")]
)
def test_out_of_range(epsilon, delta, code):
    with pytest.raises(ParameterError, match=code):
        Budget(epsilon, delta)


def test_round_trip_and_text():
    budget = Budget("1/3", 1e-6)
    assert Budget.from_dict(budget.to_dict()) == budget
    assert str(budget) == "epsilon 0.333333, delta 1e-06"
    assert str(Budget(1)) == "epsilon 1"
