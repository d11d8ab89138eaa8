"""Brute force for comparisons of several outcomes that are released together, and the noise that they have."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from tests.plain_questions import question
from tests.unit.rows.exact_gate import ExactGate, public_data

import counterveil as cv
from counterveil.data import Study, Table
from counterveil.estimators.linear.several_outcomes import design, effects_plan
from counterveil.rows.linear.several_outcomes import SeveralComparisons
from counterveil.rows.outcome_numbers import Outcomes

RANGES = {"a": (0, 1), "b": (-1, 4)}
ARM = [1, 1, 0, 0, 0]
SEVERAL = Study("t", outcome=cv.Outcomes(RANGES), assignment=cv.Trial())


def listed(weights=(1, 1)):
    ends = tuple((Fraction(low), Fraction(high)) for low, high in RANGES.values())
    return Outcomes(("a", "b"), ends, tuple(map(Fraction, weights)))


def several_question(measure="difference", **budget):
    return question("outcome", "difference_in_means", measure=measure, **{"epsilon": 2} | budget)


def several_table(a, b):
    return Table.attach({"t": ARM, "a": np.array(a, float), "b": np.array(b, float)}, SEVERAL)


def exact(made, rows):
    """Return the values and variances of every group and outcome, in the outcomes' units."""
    comparisons = SeveralComparisons(made.groups, listed())
    return [
        [
            (value * width, variance * width**2)
            for (value, variance), width in zip(pairs, listed().widths, strict=True)
        ]
        for pairs in comparisons.exact(ExactGate(rows))
    ]


@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_one_row_moves_all_outcomes_within_their_bounds_in_one_group(measure):
    ends = [(0, -1), (0, 4), (1, -1), (1, 4)]
    made = design(public_data(several_table([0] * 5, [0] * 5)), several_question(measure), listed())
    found = {
        rows: exact(made, several_table(*zip(*rows, strict=True)))
        for rows in product(ends, repeat=5)
        if rows[4] == ends[0]
    }
    largest = np.zeros((len(made.groups), 2))
    for rows, before in found.items():
        for row, new in product(range(4), ends):
            after = found[(*rows[:row], new, *rows[row + 1 :])]
            moved = [before[g] != after[g] for g in range(len(made.groups))]
            assert sum(moved) <= 1
            for g, group in enumerate(made.groups):
                for j, width in enumerate(listed().widths):
                    change = [abs(x - y) for x, y in zip(before[g][j], after[g][j], strict=True)]
                    assert change[0] <= group.largest * width
                    assert change[1] <= group.variance * width**2
                    assert after[g][j][1] <= group.cap * width**2
                    largest[g, j] = max(largest[g, j], change[0])
    for g, group in enumerate(made.groups):
        assert largest[g] == pytest.approx([float(group.largest * width) for width in listed().widths])


@pytest.mark.parametrize("count", [5, 20])
def test_gaussian_noise_grows_with_the_root_of_the_number_and_pure_noise_less_than_with_it(count):
    names = [f"y{j}" for j in range(count)]
    many = Outcomes(tuple(names), ((Fraction(0), Fraction(1)),) * count, (Fraction(1),) * count)
    study = Study("t", outcome=cv.Outcomes(dict.fromkeys(names, (0, 1))), assignment=cv.Trial())
    rows = Table.attach({"t": ARM} | {name: [0, 1, 0, 1, 0] for name in names}, study)
    for budget, most in (
        ({"epsilon": 1, "delta": "1e-6"}, 1.1 * sqrt(count)),
        ({"epsilon": 1}, 0.53 * count),
    ):
        asked = several_question(**budget)
        plan = effects_plan(asked, design(public_data(rows), asked, many))
        amount = dict(plan.amounts)["values"]
        bound = [Fraction(1)] * count
        several = plan.several_noise("values of the arms", bound, many.weights)
        alone = effects_plan(asked, design(public_data(several_table([0] * 5, [0] * 5)), asked, listed()))
        one = (
            type(several[0])(1, amount, 1)
            if count and not asked.budget.delta
            else type(several[0])(1, amount)
        )
        assert sqrt(several[3].variance / one.variance) <= most
        assert alone.budget == asked.budget


def test_noise_is_in_proportion_to_one_over_the_weights():
    for budget in ({"epsilon": 1, "delta": "1e-6"}, {"epsilon": 1}):
        asked = several_question(**budget)
        plan = effects_plan(
            asked, design(public_data(several_table([0] * 5, [0] * 5)), asked, listed((3, 1)))
        )
        first, second = plan.several_noise("values of the arms", [Fraction(1)] * 2, listed((3, 1)).weights)
        assert sqrt(second.variance / first.variance) == pytest.approx(3, rel=0.1)
        if plan.mechanism == "gaussian":
            # Both numbers move by their bounds at once: the length of that in standard deviations is mu.
            length = sqrt(1 / first.variance + 1 / second.variance)
            assert length == pytest.approx(float(dict(plan.amounts)["values"]))
