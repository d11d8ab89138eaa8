"""The place of outcomes where only they are private: counts, clamping, and when it is bought."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import median

import numpy as np
import pytest
from tests.thinned import thinned
from tests.unit.statistics.moments.small_records import NotingGate

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.columns import arm_totals
from counterveil.statistics.linear.effect import Interval
from counterveil.statistics.linear.sensitivity import MeanContrast
from counterveil.statistics.outcome_place import count_octaves

STEPS = (0, OUTCOME_STEPS // 64, OUTCOME_STEPS // 2 - 1, OUTCOME_STEPS // 2, OUTCOME_STEPS)
STUDY = cv.Study("t", "y", (0, 1000), treated=1, control=0, randomised=True)
# A search costs little where the range is right, and shortens much where it is 20 times too wide.
MOST_LONGER, MOST_COST = 1.3, 1.08


ROWS = Table.attach({"t": [0, 1, 0, 1], "y": [0.0] * 4}, STUDY)


def table(steps):
    return replace(ROWS, outcome=np.array(steps))


@pytest.mark.parametrize("pure", thinned([True, False], True))
def test_a_changed_outcome_moves_two_counts_by_one(pure):
    def counts(steps):
        gate = NotingGate()
        centre, _ = count_octaves(gate, table(steps), pure)
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
    "place", [Interval(), Interval(0, 3), Interval(OUTCOME_STEPS // 3, 1), Interval(5, 7)]
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
    place = Interval(OUTCOME_STEPS // 4, 2)
    found = place.within(table([0, OUTCOME_STEPS // 4, OUTCOME_STEPS // 4 + 1, OUTCOME_STEPS]))
    assert found.outcome.tolist() == [0, 0, 4, OUTCOME_STEPS]
    assert found.study.outcome_range == (250, 500)
    assert found.outcome_unit * 4 == ROWS.outcome_unit


def trial(rows, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    t = np.arange(rows) % 2
    y = rng.normal(5 + 0.5 * t, 1.1, rows)
    return {"t": t, "y": np.where(rng.random(rows) < share, y, 0.0)}


FIND = cv.settings.DifferenceInMeans(find_range=True)


def length(data, ends, seed, settings=FIND):
    study = cv.Study("t", "y", ends, treated=1, control=0, randomised=True)
    noise = cv.SeededNoise(seed)
    found = cv.ate(
        data,
        study,
        protects="outcome",
        method="difference_in_means",
        epsilon=1,
        noise=noise,
        settings=settings,
    )
    low, high = found.table[0].interval()
    return high - low, found


def test_a_range_that_is_too_wide_costs_little():
    data = trial(5000)
    right = median(length(data, (0, 10), seed)[0] for seed in range(7))
    wide = median(length(data, (-95, 105), seed)[0] for seed in range(7))
    without = median(length(data, (0, 10), seed, settings=None)[0] for seed in range(7))
    assert wide <= MOST_LONGER * without
    assert right <= MOST_COST * without


@pytest.mark.parametrize(("rows", "ends"), [(300, (0, 10)), (5000, (0, 1))])
def test_few_rows_and_events_are_not_searched(rows, ends):
    assert len(length(trial(rows), ends, 1)[1].releases) == 2


def test_rare_values_far_off_are_not_clamped():
    data = trial(5000, share=0.01)
    found = [length(data, (0, 200), seed)[1] for seed in range(3)]
    assert all(len(one.releases) == 4 and "outcomes_from" not in one.details for one in found)


def test_a_rare_arm_far_from_the_other_is_not_clamped_away():
    t = (np.arange(40_000) < 400).astype(int)
    y = np.random.default_rng(0).normal(8 * t, 1)
    for seed in range(3):
        long, found = length({"t": t, "y": y}, (-100, 100), seed)
        assert abs(found.estimate - 8) < long


def test_few_outcomes_far_off_are_covered_where_no_search_is_asked_for():
    data = trial(5000)
    far = (np.arange(5000) % 100 == 1) * 1.0
    data["y"] = data["y"] + far * 95
    truth = 0.5 + 95 * far.sum() / 2500
    for seed in range(3):
        long, found = length(data, (-95, 105), seed, settings=None)
        assert abs(found.estimate - truth) < long / 2
