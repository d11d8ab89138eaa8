"""Brute force over small tables: one record or outcome moves the stratified effect and its variance as claimed."""

from fractions import Fraction
from itertools import product

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
from counterveil.numerics.strata import weight_sum
from counterveil.privacy import Estimand
from counterveil.rows.strata.outcome_sensitivity import StrataOutcome
from counterveil.rows.strata.sensitivity import BoundedStrata
from counterveil.rows.strata.statistics import bounded_variance, effect_sum

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


VALUES = (Fraction(0), Fraction(1, 2), Fraction(1))
# (treated, control, h) of every stratum.
DESIGNS = [[(2, 2, 4)], [(1, 3, 4)], [(2, 1, 2), (1, 2, 3)], [(3, 2, Fraction(5, 2))]]


def _statistics(design, outcomes):
    total = sum(Fraction(h) for _, _, h in design)
    effect = variance = Fraction(0)
    rest = list(outcomes)
    for treated, control, h in design:
        means = []
        for m in (treated, control):
            arm, rest = rest[:m], rest[m:]
            mean = sum(arm) / m
            q = Fraction(1, 4) if m == 1 else sum((y - mean) ** 2 for y in arm) * m / (m - 1)
            variance += (Fraction(h) / m) ** 2 * q
            means.append(mean)
        effect += h * (means[0] - means[1])
    return effect / total, variance / total**2


@pytest.mark.parametrize("design", DESIGNS)
def test_all_outcomes(design):
    treated, control, weights = (np.array(column) for column in zip(*design, strict=True))
    total = sum(Fraction(h) for _, _, h in design)
    claim = StrataOutcome.of(Fraction(1), weights.astype(float), treated, control, total)
    rows = claim.rows
    known = {outcomes: _statistics(design, outcomes) for outcomes in product(VALUES, repeat=rows)}
    worst = [Fraction(0), Fraction(0)]
    for outcomes, here in known.items():
        for place, value in product(range(rows), VALUES):
            there = known[(*outcomes[:place], value, *outcomes[place + 1 :])]
            worst = [max(seen, abs(a - b)) for seen, a, b in zip(worst, here, there, strict=True)]
    assert worst[0] <= claim.effect
    assert worst[1] <= claim.variance
    assert float(worst[0] / claim.effect) == pytest.approx(1, abs=1e-9)
    if min(min(t, c) for t, c, _ in design) > 1:
        assert float(worst[1] / claim.variance) == pytest.approx(1, abs=1e-9)


def _of_arms(design, outcomes):
    """Return mean and variance of treated, then of controls."""
    total = sum(Fraction(h) for _, _, h in design)
    found, rest = [Fraction(0)] * 4, list(outcomes)
    for *sizes, h in design:
        for arm, m in enumerate(sizes):
            own, rest = rest[:m], rest[m:]
            mean = sum(own) / m
            q = Fraction(1, 4) if m == 1 else sum((y - mean) ** 2 for y in own) * m / (m - 1)
            found[2 * arm] += h * mean / total
            found[2 * arm + 1] += (Fraction(h) / m) ** 2 * q / total**2
    return found


@pytest.mark.parametrize("design", DESIGNS)
def test_one_outcome_moves_one_arm_by_at_most_its_own_bound(design):
    treated, control, weights = (np.array(column) for column in zip(*design, strict=True))
    total, rows = sum(Fraction(h) for _, _, h in design), int(treated.sum() + control.sum())
    one, other = (
        StrataOutcome.of_arm(Fraction(1), weights.astype(float), counts, total, rows)
        for counts in (treated, control)
    )
    known = {outcomes: _of_arms(design, outcomes) for outcomes in product(VALUES, repeat=rows)}
    worst = [Fraction(0)] * 4
    for outcomes, here in known.items():
        for place, value in product(range(rows), VALUES):
            there = known[(*outcomes[:place], value, *outcomes[place + 1 :])]
            moves = [abs(a - b) for a, b in zip(here, there, strict=True)]
            assert not any(moves[:2]) or not any(moves[2:])
            worst = [max(pair) for pair in zip(worst, moves, strict=True)]
    for (mean, variance), claim in zip((worst[:2], worst[2:]), (one, other), strict=True):
        assert mean <= claim.effect
        assert variance <= claim.variance
        assert float(mean / claim.effect) == pytest.approx(1, abs=1e-9)
