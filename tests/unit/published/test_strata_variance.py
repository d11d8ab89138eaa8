"""Brute force over all small tables, random larger ones, and the figures that the proof page names."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from tests.thinned import examples, thinned_rows
from tests.unit.published.small_strata import (
    SMALL,
    WHOLE,
    as_strata,
    count_neighbours,
    counts,
    neighbours,
    pairs,
    records,
    stratum_counts,
    uneven_table,
)

from counterveil.published.strata_sensitivity import (
    local_variance_change,
    pooled_change,
    smooth_variance_change,
)
from counterveil.rows.strata.statistics import order_free_variance, pooled_squares

SQUARED_RANGE = float(WHOLE) ** 2
ESTIMANDS = ("ATE", "ATT", "ATC")
# What the doubles of a test may be wrong by.
CLOSE = 1e-9


def variances(table, strata=2):
    made = as_strata(table, strata)
    return [float(order_free_variance(made, estimand)) / SQUARED_RANGE for estimand in ESTIMANDS]


def pooled(table, strata=2):
    return float(pooled_squares(as_strata(table, strata))) / SQUARED_RANGE


@pytest.mark.parametrize(("outcomes", "rows"), thinned_rows(SMALL, *SMALL[:4], *SMALL[5:8]))
def test_no_small_table_moves_further_than_claimed(outcomes, rows):
    tables, (i, j) = pairs(outcomes, rows)
    value = np.array([variances(table) for table in tables])
    claim = {}
    for table in tables:
        claim.setdefault(counts(table), None)
    claim = {pair: local_variance_change(stratum_counts(pair)) for pair in claim}
    local = np.array([claim[counts(table)] for table in tables])
    assert np.all(np.abs(value[i] - value[j]).max(axis=1) <= local[i] + CLOSE)
    assert value.max() <= rows**2 / 2 + CLOSE


@pytest.mark.parametrize(("outcomes", "rows"), thinned_rows(SMALL, *SMALL[:4], *SMALL[5:7]))
def test_pooled_squares_move_by_five_quarters_at_most_and_reach_it(outcomes, rows):
    tables, (i, j) = pairs(outcomes, rows)
    value = np.array([pooled(table) for table in tables])
    largest = np.abs(value[i] - value[j]).max()
    assert largest <= pooled_change(rows)
    if rows >= 4:
        assert largest == 1.25


def test_no_larger_uneven_table_moves_further_than_claimed():
    generator = np.random.default_rng(41)
    closest = 0.0
    for _ in range(examples(60, 120)):
        strata = int(generator.integers(2, 5))
        table = uneven_table(generator, int(generator.integers(7, 41)), strata)
        local = local_variance_change(stratum_counts(counts(table, strata)))
        here, square = variances(table, strata), pooled(table, strata)
        others = sorted(set(neighbours(table, records((0, WHOLE), strata))))
        for place in generator.permutation(len(others))[:25]:
            there = variances(others[place], strata)
            change = max(abs(a - b) for a, b in zip(here, there, strict=True))
            assert change <= local + CLOSE
            assert abs(square - pooled(others[place], strata)) <= pooled_change(len(table))
            closest = max(closest, change / local)
    # A bound that nothing comes near would prove little.
    assert closest > 0.8


@pytest.mark.parametrize("smoothness", [Fraction(1, 20), Fraction(1, 5), Fraction(1)])
def test_the_bound_is_smooth_over_all_small_counts(smoothness):
    for rows in range(2, 7):
        tables, _ = pairs((0, WHOLE), rows)
        bound = {
            pair: smooth_variance_change(stratum_counts(pair), smoothness)
            for pair in set(map(counts, tables))
        }
        for pair, here in bound.items():
            assert here >= local_variance_change(stratum_counts(pair))
            for other in count_neighbours(pair):
                assert abs(log(here / bound[other])) <= smoothness


def test_the_bound_is_smooth_around_random_counts_and_sometimes_just_so():
    generator = np.random.default_rng(43)
    steepest = 0.0
    for _ in range(examples(30, 60)):
        smoothness = Fraction(int(generator.integers(2, 60)), 100)
        size = int(generator.integers(2, 5))
        pair = tuple(map(tuple, generator.integers(0, generator.integers(2, 25), (size, 2)).tolist()))
        if sum(map(sum, pair)) < 2:
            continue
        here = smooth_variance_change(stratum_counts(pair), smoothness)
        assert here >= local_variance_change(stratum_counts(pair))
        for other in count_neighbours(pair):
            steep = abs(log(here / smooth_variance_change(stratum_counts(other), smoothness)))
            steepest = max(steepest, steep / smoothness)
    assert 0.999 < steepest <= 1


def test_one_flight_of_a_lone_row_is_in_the_bound():
    # At 49 replacements a stratum of 50 and 50 has one treated row and 99 controls; its leaving takes 2525.
    strata = [(50, 50)] * 10
    bound = float(smooth_variance_change(stratum_counts(strata), Fraction(8, 100)))
    reached = np.exp(-0.08 * 49) * 100**2 * (1 / 4 + 50 * 49 / (99 * 98 * 99))
    assert reached <= bound <= 1.1 * reached
    assert 6 < local_variance_change(stratum_counts(strata)) < 6.1


def test_big_strata_are_smooth_at_no_price():
    strata = [(500, 500)] * 10
    assert float(smooth_variance_change(stratum_counts(strata), Fraction(8, 100))) < 6.1
