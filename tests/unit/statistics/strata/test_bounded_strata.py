"""Brute force over all small tables, and over all counts with the outcomes that are worst for them."""

from fractions import Fraction

import numpy as np
import pytest
from tests.thinned import thinned_rows
from tests.unit.published.small_strata import (
    SMALL,
    WHOLE,
    as_strata,
    neighbours,
    pairs,
    records,
    uneven_table,
)

from counterveil.errors import ParameterError
from counterveil.numerics.strata import bounded_variance, effect_sum, weight_sum
from counterveil.privacy import Estimand
from counterveil.statistics.strata.sensitivity import BoundedStrata

LIMITS = [Fraction(2), Fraction(5, 2), Fraction(3)]
ESTIMANDS = [Estimand.ATE, Estimand.ATT, Estimand.ATC]


def statistics(table, estimand, limit, strata=2):
    made = as_strata(table, strata)
    return (
        float(effect_sum(made, estimand, limit)) / WHOLE,
        float(weight_sum(made, estimand, limit)),
        float(bounded_variance(made, estimand, limit)) / WHOLE**2,
    )


def claims(rows, estimand, limit):
    bound = BoundedStrata(rows, limit, estimand)
    return [float(bound.effect), float(bound.weight), float(bound.variance)]


@pytest.mark.parametrize(("outcomes", "rows"), thinned_rows(SMALL, *SMALL[:4], *SMALL[5:7]))
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_no_small_table_moves_further_than_claimed(outcomes, rows, estimand):
    tables, (i, j) = pairs(outcomes, rows)
    for limit in LIMITS:
        value = np.array([statistics(table, estimand, limit) for table in tables])
        change = np.abs(value[i] - value[j]).max(axis=0)
        assert np.all(change <= claims(rows, estimand, limit))
        if estimand is Estimand.ATE and rows >= 2 * np.ceil(float(limit)) - 1:
            assert change[0] == pytest.approx(2 * float(limit), rel=1e-12)
            assert change[1] == pytest.approx(float(limit), rel=1e-12)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_no_larger_uneven_table_moves_further_than_claimed(estimand):
    generator = np.random.default_rng(53)
    largest = np.zeros(3)
    for _ in range(60):
        strata, limit = int(generator.integers(2, 5)), Fraction(int(generator.integers(8, 24)), 4)
        table = uneven_table(generator, int(generator.integers(7, 41)), strata)
        here = np.array(statistics(table, estimand, limit, strata))
        others = sorted(set(neighbours(table, records((0, WHOLE), strata))))
        for place in generator.permutation(len(others))[:12]:
            change = np.abs(here - statistics(others[place], estimand, limit, strata))
            share = change / claims(len(table), estimand, limit)
            assert np.all(share <= 1)
            largest = np.maximum(largest, share)
    assert np.all(largest > 0.4)


def worst(estimand, w, most):
    """Return the largest gain and loss by an insertion over all counts below `most`, outcomes the worst."""
    t, c = (x.ravel().astype(float) for x in np.meshgrid(np.arange(most), np.arange(most)))

    def h(t, c):
        whole = {"ATE": t + c, "ATT": t, "ATC": c}[estimand]
        limits = {"ATE": np.minimum(w * t, w * c), "ATT": w * c, "ATC": w * t}[estimand]
        return np.where((t > 0) & (c > 0), np.minimum(whole, limits), 0.0)

    def most_squares(m):
        return np.where(m > 1, np.floor(m / 2) * np.ceil(m / 2) / np.maximum(m - 1, 1), 0.25 * (m == 1))

    gain = loss = 0.0
    for o, p, after in ((t, c, h(t + 1, c)), (c, t, h(t, c + 1))):
        before = h(t, c)
        u, v = before / np.maximum(o, 1), after / (o + 1)
        other = (after**2 - before**2) / np.maximum(p, 1) ** 2 * most_squares(p)
        own = np.where(o > 1, v**2, np.where(o == 1, v**2 - u**2 / 4, v**2 / 4))
        fall = most_squares(o) * (u**2 - np.where(o > 1, v**2 * (1 - 1 / np.maximum(o, 1) ** 2), 0.0))
        gain, loss = max(gain, (own + other)[p > 0].max()), max(loss, fall[p > 0].max())
    return gain, loss


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize(
    "limit", ["1", "5/4", "3/2", "2", "21/10", "9/4", "5/2", "3", "4", "6", "19/3", "20"]
)
def test_the_variance_claim_holds_for_all_counts_and_is_nearly_reached(estimand, limit):
    w = Fraction(limit)
    if estimand is Estimand.ATE and w < 2:
        return
    bound = BoundedStrata(0, w, estimand)
    gain, loss = worst(estimand, float(w), 160)
    assert gain <= float(bound.largest_gain) + 1e-9
    assert loss <= float(bound.largest_loss) + 1e-9
    if (2 * w).denominator == 1 and w >= 2:
        assert loss == pytest.approx(float(bound.largest_loss), abs=1e-9)
        assert gain + loss > 0.98 * float(bound.variance)


@pytest.mark.parametrize(("estimand", "limit"), [("ATE", "1.9"), ("ATT", "0.9"), ("ATC", "0")])
def test_limits_below_the_proof_are_refused(estimand, limit):
    with pytest.raises(ParameterError, match="CV-P330"):
        BoundedStrata(10, Fraction(limit), Estimand(estimand))
