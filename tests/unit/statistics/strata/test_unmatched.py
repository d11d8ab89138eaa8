"""Brute force over all small tables and random larger counts."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from tests.unit.statistics.strata.small_strata import (
    WHOLE,
    as_strata,
    count_neighbours,
    counts,
    pairs,
    stratum_counts,
)

from counterveil.numerics.strata import unmatched_rows
from counterveil.statistics.strata.sensitivity import local_unmatched_change, smooth_unmatched_change

ESTIMANDS = ("ATE", "ATT", "ATC")


def unmatched(pair, estimand):
    people = {"ATE": lambda t, c: t + c, "ATT": lambda t, c: t, "ATC": lambda t, c: c}[estimand]
    return sum(people(t, c) for t, c in pair if not (t and c))


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("rows", range(2, 7))
def test_no_small_table_moves_further_than_claimed_and_one_reaches_all_rows(estimand, rows):
    tables, (i, j) = pairs((0, WHOLE), rows)
    value = np.array([unmatched_rows(as_strata(table), estimand) for table in tables])
    assert value.tolist() == [unmatched(counts(table), estimand) for table in tables]
    known = {
        pair: local_unmatched_change(stratum_counts(pair), estimand) for pair in set(map(counts, tables))
    }
    local = np.array([known[counts(table)] for table in tables])
    change = np.abs(value[i] - value[j])
    assert np.all(change <= local[i])
    assert change.max() == rows


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_the_bound_is_smooth_and_nothing_reachable_exceeds_it(estimand):
    generator = np.random.default_rng(47)
    steepest = 0.0
    for _ in range(60):
        smoothness = Fraction(int(generator.integers(2, 80)), 100)
        size = int(generator.integers(2, 5))
        pair = tuple(map(tuple, generator.integers(0, generator.integers(2, 12), (size, 2)).tolist()))
        if not sum(map(sum, pair)):
            continue
        here = smooth_unmatched_change(stratum_counts(pair), smoothness, estimand)
        around = count_neighbours(pair)
        local = max(abs(unmatched(pair, estimand) - unmatched(other, estimand)) for other in around)
        assert local <= local_unmatched_change(stratum_counts(pair), estimand) <= here
        for other in around:
            there = smooth_unmatched_change(stratum_counts(other), smoothness, estimand)
            steepest = max(steepest, abs(log(here / there)) / smoothness)
    assert 0.999 < steepest <= 1


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_the_bound_is_smooth_over_all_small_counts(estimand):
    for rows in range(1, 7):
        pairs_of_counts = {
            ((a, b), (c, rows - a - b - c))
            for a in range(rows + 1)
            for b in range(rows + 1 - a)
            for c in range(rows + 1 - a - b)
        }
        bound = {
            pair: smooth_unmatched_change(stratum_counts(pair), Fraction(1, 5), estimand)
            for pair in pairs_of_counts
        }
        for pair, here in bound.items():
            assert all(abs(log(here / bound[other])) <= 0.2 for other in count_neighbours(pair))


def test_closed_form_on_even_strata():
    # k replacements reach (1, 50 + k) from k = 49 on; before, one move matches or unmatches one row.
    bound = smooth_unmatched_change(stratum_counts([(50, 50)] * 10), Fraction(8, 100), "ATE")
    assert float(bound) == pytest.approx(max(1, exp(-0.08 * 49) * 100), rel=1e-6)


def test_only_the_missing_arm_of_the_asked_people_counts():
    few_controls = stratum_counts([(40, 2), (40, 30)])
    treated = smooth_unmatched_change(few_controls, Fraction(1, 5), "ATT")
    untreated = smooth_unmatched_change(few_controls, Fraction(1, 5), "ATC")
    assert float(treated) == pytest.approx(42 * exp(-0.2), rel=1e-6)
    assert untreated < 2
