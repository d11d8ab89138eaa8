"""One outcome moves two counts of a histogram by one, and clamped outcomes move sums by the width of their window."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned
from tests.unit.estimators.moments.small_records import NotingGate
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.outcome_place import count_octaves
from counterveil.numerics.arm_totals import arm_totals
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.outcome_histograms import OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE_RANGE, OutcomeWindow

STEPS = (0, OUTCOME_STEPS // 64, OUTCOME_STEPS // 2 - 1, OUTCOME_STEPS // 2, OUTCOME_STEPS)
STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1000)), assignment=cv.Trial())
ROWS = Table.attach({"t": [0, 1, 0, 1], "y": [0.0] * 4}, STUDY)


def table(steps):
    return replace(ROWS, outcome=np.array(steps))


@pytest.mark.parametrize("pure", thinned([True, False], True))
def test_a_changed_outcome_moves_two_counts_by_one(pure):
    def counts(steps):
        gate = NotingGate()
        histograms = OutcomeHistograms(pure=pure, rows=public_rows(table(steps)))
        centre, _ = count_octaves(gate, histograms, len(steps))
        return centre, gate.values["centre"], gate.values["spread"]

    known = {steps: counts(steps) for steps in product(STEPS, repeat=4)}
    moved = set()
    for steps, (centre, cells, octaves) in known.items():
        for place, value in product(range(4), STEPS):
            other = known[(*steps[:place], value, *steps[place + 1 :])]
            moved.add(sum(abs(a - b) for a, b in zip(cells, other[1], strict=True)))
            # Octaves are compared around one released centre.
            if centre == other[0]:
                moved.add(sum(abs(a - b) for a, b in zip(octaves, other[2], strict=True)))
    assert moved == {0, 2}


@pytest.mark.parametrize(
    "place", [WHOLE_RANGE, OutcomeWindow(0, 3), OutcomeWindow(OUTCOME_STEPS // 3, 1), OutcomeWindow(5, 7)]
)
def test_clamped_outcomes_move_no_more_than_the_interval_is_wide(place):
    treated = np.array([True, True, False, False])
    narrow = MeanContrast(Fraction(1000) * place.part, 2, 2)
    unit = Fraction(1000, OUTCOME_STEPS) * place.part

    def statistics(steps):
        arms = arm_totals(treated, place.clamped(np.array(steps)))
        variance = arms.treated.variance() / 2 + arms.control.variance() / 2
        return (arms.treated.mean() - arms.control.mean()) * unit, variance * unit**2

    known = {steps: statistics(steps) for steps in product(STEPS, repeat=4)}
    worst = [Fraction(0), Fraction(0)]
    for steps, found in known.items():
        for row, value in product(range(4), STEPS):
            other = known[(*steps[:row], value, *steps[row + 1 :])]
            worst = [max(most, abs(a - b)) for most, a, b in zip(worst, found, other, strict=True)]
    assert worst == [narrow.estimate, narrow.variance]


def test_steps_within_an_interval_are_exact():
    place = OutcomeWindow(OUTCOME_STEPS // 4, 2)
    found = place.truncate(table([0, OUTCOME_STEPS // 4, OUTCOME_STEPS // 4 + 1, OUTCOME_STEPS]))
    assert found.outcome.tolist() == [0, 0, 4, OUTCOME_STEPS]
    assert found.study.outcome_range == (250, 500)
    assert found.outcome_unit * 4 == ROWS.outcome_unit
