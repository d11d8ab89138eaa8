"""Brute force: one outcome moves means, variances and differences of public arms within their bounds."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.thinned import thinned
from tests.unit.rows.exact_gate import ExactGate, public_rows

from counterveil.data import OUTCOME_STEPS, Outcome, Study, Table, Treatment
from counterveil.estimators.linear.both_means import split_by_arm
from counterveil.estimators.linear.linear_estimator import LinearEffect
from counterveil.estimators.linear.spectrum import Spectrum, residual_variance
from counterveil.numerics.arm_totals import arm_totals
from counterveil.rows.linear.arm_mean import ArmMeans, PlainArm, WeightedArm
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.sensitivity import ArmMean, MeanContrast, SitesContrast
from counterveil.rows.linear.variance_forms import WithBias
from counterveil.rows.linear.weighted_sum import linear_form

VALUES = (0, 1, 2)  # 0, 1/2 and 1 of the range


def assignments(n):
    for size in range(2, n - 1):
        for treated in combinations(range(n), size):
            yield np.isin(np.arange(n), treated)


def statistics(treated, outcome):
    arms = arm_totals(treated, np.asarray(outcome, dtype=np.int64))
    variance = arms.treated.variance() / arms.treated.count + arms.control.variance() / arms.control.count
    return arms.treated.mean() - arms.control.mean(), variance


def worst(treated):
    """Return the largest changes of the effect and of its variance, and the largest variance."""
    n = len(treated)
    known = {y: statistics(treated, y) for y in product(VALUES, repeat=n)}
    effects = variances = Fraction(0)
    for y, (effect, variance) in known.items():
        for place, value in product(range(n), VALUES):
            other = known[(*y[:place], value, *y[place + 1 :])]
            effects, variances = (
                max(effects, abs(effect - other[0])),
                max(variances, abs(variance - other[1])),
            )
    return effects, variances, max(variance for _, variance in known.values())


@pytest.mark.parametrize("n", thinned([4, 5, 6], 4, 5))
def test_no_change_exceeds_the_claim_and_each_is_attained(n):
    for treated in assignments(n):
        if n == 6 and not treated[0]:
            continue  # the mirror image of an assignment already seen
        size = int(treated.sum())
        claim = MeanContrast(Fraction(2), size, n - size)
        assert worst(treated) == (claim.estimate, claim.variance, claim.variance_cap)


def test_of_sites_that_weigh_as_much_as_they_have_rows_the_largest_change_is_claimed():
    sites = ((2, 2), (2, 3))
    claim = SitesContrast(Fraction(2), sites)
    effects, variances, caps = zip(*(worst(np.arange(sum(one)) < one[0]) for one in sites), strict=True)
    first, second = Fraction(4, 9), Fraction(5, 9)
    assert claim.estimate == max(first * effects[0], second * effects[1])
    assert claim.variance == max(first**2 * variances[0], second**2 * variances[1])
    assert claim.variance_cap == first**2 * caps[0] + second**2 * caps[1]
    assert claim.squares == first**2 * Fraction(2, 2) + second**2 * Fraction(5, 6)
    assert claim.sizes == (min(2 / first, 2 / second), min(2 / first, 3 / second))


LEVELS = (0, OUTCOME_STEPS // 2, OUTCOME_STEPS)
WIDTH = 4
STUDY = Study(Treatment("t", arms=("a", "b", "c"), reference="a"), Outcome("y", (1, 1 + WIDTH)))
ASSIGNMENTS = [arm for arm in product(range(3), repeat=6) if all(arm.count(k) == 2 for k in range(3))]


def table(arm, steps):
    values = 1 + WIDTH * np.asarray(steps) / OUTCOME_STEPS
    return Table.attach({"t": [STUDY.arms[k] for k in arm], "y": values}, STUDY)


def plain(arm):
    return [PlainArm(code, ArmMean(Fraction(WIDTH), arm.count(code))) for code in range(3)]


def weighted(arm, rng):
    first = table(arm, [0] * len(arm))
    made = []
    for code in range(3):
        rows = np.flatnonzero(first.arm == code)
        coefficients = rng.dirichlet(np.ones(len(rows)))
        order = rng.permutation(len(rows))
        variance = WithBias(paired_variance(coefficients, order[:-1], order[1:]), Fraction(1))
        made.append(WeightedArm.of(Fraction(WIDTH), rows, linear_form(coefficients), variance))
    return made


def values_of(arm, statistics, steps):
    rows = table(arm, steps)
    weighted_rows = public_rows(rows) if isinstance(statistics[0], WeightedArm) else None
    return exact_means(rows, ArmMeans(tuple(statistics), weighted_rows))


def exact_means(rows, means):
    names = range(len(means.arms))
    gate = ExactGate(rows)
    return means.release(
        gate, with_variance=[True] * len(names), means=names, variances=[f"variance {name}" for name in names]
    )


def check(arm, statistics, levels=LEVELS):
    """Return the largest observed over claimed change of each arm's mean and variance."""
    values = {steps: values_of(arm, statistics, steps) for steps in product(levels, repeat=len(arm))}
    worst = np.zeros((len(statistics), 2))
    for steps, before in values.items():
        for row, level in product(range(len(arm)), levels):
            if level <= steps[row]:
                continue  # seen from the other side
            after = values[(*steps[:row], level, *steps[row + 1 :])]
            for code, one in enumerate(statistics):
                moved = [abs(x - y) for x, y in zip(before[code], after[code], strict=True)]
                if code != arm[row]:
                    assert moved == [0, 0]
                    continue
                bounds = (one.sensitivity.estimate, one.sensitivity.variance)
                assert all(change <= bound for change, bound in zip(moved, bounds, strict=True))
                for place, (change, bound) in enumerate(zip(moved, bounds, strict=True)):
                    worst[code, place] = max(worst[code, place], float(change / bound))
        for code, one in enumerate(statistics):
            assert before[code][1] <= one.sensitivity.variance_cap or isinstance(one, WeightedArm)
    return worst


@pytest.mark.parametrize("arm", thinned([ASSIGNMENTS[0], ASSIGNMENTS[37], ASSIGNMENTS[-1]], ASSIGNMENTS[37]))
def test_plain_means(arm):
    assert np.allclose(check(arm, plain(arm)), 1.0)


def test_plain_means_of_unequal_arms():
    arm = (0, 1, 1, 2, 0, 2, 2)
    assert np.allclose(check(arm, plain(arm), LEVELS[::2]), 1.0)


@pytest.mark.parametrize("seed", range(2))
def test_weighted_means(seed):
    rng = np.random.default_rng(seed)
    arm = (0, 1, 1, 2, 0, 2, 2)
    assert np.allclose(check(arm, weighted(arm, rng), LEVELS[::2]), 1.0)


def test_the_cap_is_attained():
    arm = (0, 0, 0, 1, 1, 2, 2)
    statistics = plain(arm)
    at_ends = values_of(arm, statistics, [0, OUTCOME_STEPS, 0, 0, 0, 0, 0])
    assert at_ends[0][1] == statistics[0].sensitivity.variance_cap == Fraction(16, 9)


PAIR_STUDY = Study("t", Outcome("y", (0, 2)))
ARM = np.array([1, 1, 1, 0, 0, 0, 0])
COEFFICIENTS = np.array([0.75, 0.5, -0.25, -0.375, -0.25, -0.5, 0.125])
PAIRS = (np.array([0, 1, 3, 4, 5]), np.array([1, 2, 4, 5, 6]))


def pair_table(outcomes):
    return Table.attach({"t": ARM, "y": np.array(outcomes, dtype=float)}, PAIR_STUDY)


def effect_with(form):
    """Return an effect whose variance comes from pairs, means or lines; that from pairs allows for bias."""
    effect = LinearEffect("weights", COEFFICIENTS, PAIRS if form == "pairs" else None, ())
    if form == "pairs":
        return replace(effect, bias=0.5)
    features = np.array([[-0.5], [0.25], [0.5], [-0.75], [0.0], [0.5], [0.25]])
    shape = np.ones(1)
    spectra = tuple(Spectrum.of(features, COEFFICIENTS, inside, shape) for inside in (ARM == 1, ARM == 0))
    return replace(effect, variance=residual_variance(features, spectra, 3.0 if form == "lines" else 0.0))


def both_arms(outcomes, effect):
    """Return the means of both arms, the treated first."""
    return split_by_arm(public_rows(pair_table(outcomes)), effect).means


def exact_pair(outcomes, effect):
    return exact_means(None, both_arms(outcomes, effect))


@pytest.mark.parametrize("form", ["pairs", "means", "lines"])
def test_one_outcome_moves_one_arm_within_its_bound(form):
    effect = effect_with(form)
    found = {y: exact_pair(y, effect) for y in product((0, 2), repeat=7)}
    bounds = both_arms((0,) * 7, effect).bounds
    largest = [[Fraction(0)] * 2, [Fraction(0)] * 2]
    for y, before in found.items():
        for row in range(7):
            after = found[(*y[:row], 2 - y[row], *y[row + 1 :])]
            own = 0 if ARM[row] else 1
            assert after[1 - own] == before[1 - own]
            for what in range(2):
                largest[own][what] = max(largest[own][what], abs(after[own][what] - before[own][what]))
    for arm in range(2):
        assert largest[arm][0] == bounds[arm].estimate
        assert largest[arm][1] <= bounds[arm].variance
        assert largest[arm][1] > bounds[arm].variance / 5


@pytest.mark.parametrize("form", ["pairs", "means", "lines"])
def test_both_parts_add_up_to_the_effect_and_its_variance(form):
    effect = effect_with(form)
    outcomes = [0.5, 2, 0, 1, 1.5, 0, 2]
    steps = pair_table(outcomes).outcome
    (one, first), (other, second) = exact_pair(outcomes, effect)
    assert float(one - other) == pytest.approx(COEFFICIENTS @ np.array(outcomes), abs=1e-6)
    whole = paired_variance(COEFFICIENTS, *PAIRS) if form == "pairs" else effect.variance
    raised = WithBias(whole, effect.factor).value(steps, 24) * 4
    assert float(first + second) == pytest.approx(float(raised), rel=1e-5)
    if form == "pairs":
        assert float(first + second) == pytest.approx(1.25 * float(whole.value(steps, 24) * 4), rel=1e-6)
