"""A search for where outcomes lie shortens intervals of ranges that are too wide, and hides nothing."""

from statistics import median

import numpy as np
import pytest

import counterveil as cv

# A search costs little where the range is right, and shortens much where it is 20 times too wide.
MOST_LONGER, MOST_COST = 1.3, 1.08


def trial(rows, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    t = np.arange(rows) % 2
    y = rng.normal(5 + 0.5 * t, 1.1, rows)
    return {"t": t, "y": np.where(rng.random(rows) < share, y, 0.0)}


FIND = cv.settings.DifferenceInMeans(find_range=True)


def length(data, ends, seed, settings=FIND):
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", ends), assignment=cv.Trial())
    asked = {"protects": "outcome", "method": "difference_in_means", "epsilon": 1, "settings": settings}
    found = cv.ate(data, study, noise=cv.SeededNoise(seed), **asked)
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
