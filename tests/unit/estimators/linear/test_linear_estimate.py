"""Brute force for weighted sums and linear maps with public weights, of one outcome, of several and by period."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import isqrt, sqrt

import numpy as np
import pytest
from tests.contract.recording import record
from tests.plain_questions import question
from tests.property.numerics.definitions import coefficients_by_definition, match_sets_by_definition
from tests.thinned import examples, thinned
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Study, Table
from counterveil.data.panels import changes_from
from counterveil.estimators.linear.effect import WithBias
from counterveil.estimators.linear.functions import MAP_STEP, Residuals, functions_of, map_sums
from counterveil.estimators.linear.several_outcomes import comparison, design, effects_plan, periods_plan
from counterveil.estimators.outcome_place import Outcomes
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.matching import matching_coefficients
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.settings import Series

BITS = 24
ONE = 2**BITS
VALUES = (0, ONE // 2, ONE)


def moved(y, place, value):
    other = y.copy()
    other[place] = value
    return other


@pytest.mark.parametrize("seed", thinned(range(6), 0, 1, 2))
def test_no_change_exceeds_the_claim_and_each_is_attained(seed):
    rng = np.random.default_rng(seed)
    n = 5
    c = rng.normal(size=n)
    pairs = [(0, 1), (2, 3), (3, 4), (1, 4)][: 2 + seed % 3]
    first, second = (np.array(part) for part in zip(*pairs, strict=True))
    form, paired = linear_form(c), paired_variance(c, first, second)
    claim = LinearEstimate(Fraction(1), form.largest, form.squares, paired.largest_row(n))
    worst_effect = worst_variance = Fraction(0)
    for values in product(VALUES, repeat=n):
        y = np.array(values, np.int64)
        effect, variance = form.total(y) / ONE, paired.value(y, BITS)
        for place, value in product(range(n), VALUES):
            other = moved(y, place, value)
            worst_effect = max(worst_effect, abs(form.total(other) / ONE - effect))
            worst_variance = max(worst_variance, abs(paired.value(other, BITS) - variance))
    assert worst_effect == claim.estimate
    assert worst_variance == claim.variance


@pytest.mark.parametrize("factor", [Fraction(5, 4), Fraction(2)])
def test_an_allowance_for_bias_raises_variance_claim_and_cap_alike(factor):
    c, pairs = np.array([0.5, -0.25, 1.0, -0.75]), ([0, 1], [2, 3])
    plain = paired_variance(c, *map(np.array, pairs))
    raised, form = WithBias(plain, factor), linear_form(c)
    claim, without = (
        LinearEstimate(Fraction(3), form.largest, form.squares, one.largest_row(4), by)
        for one, by in ((raised, factor), (plain, Fraction(1)))
    )
    assert claim.variance_cap == factor * without.variance_cap
    worst = Fraction(0)
    for values in product(VALUES, repeat=4):
        y = np.array(values, np.int64)
        assert raised.value(y, BITS) == factor * plain.value(y, BITS)
        for place, value in product(range(4), VALUES):
            worst = max(worst, abs(raised.value(moved(y, place, value), BITS) - raised.value(y, BITS)))
    assert 9 * worst == claim.variance == factor * without.variance


def test_the_cap_is_the_variance_of_fair_coins():
    c = np.array([0.5, -0.25, 1.0])
    form = linear_form(c)
    claim = LinearEstimate(Fraction(3), form.largest, form.squares, Fraction(0))
    totals = [float(form.total(np.array(coins)) * 3) for coins in product((0, 1), repeat=3)]
    assert float(claim.variance_cap) == pytest.approx(np.var(totals))


def tau(sets, treated, y):
    """The average of s_j (y_j - mean of y over the match set), as it is defined."""
    kept = {unit: donors for unit, donors in sets.items() if donors}
    if not kept:
        return Fraction(0)
    gaps = [
        (1 if treated[unit] else -1) * (y[unit] - Fraction(sum(y[d] for d in donors), len(donors)))
        for unit, donors in kept.items()
    ]
    return sum(gaps, Fraction(0)) / len(kept)


def check_matching(treated, score, neighbours, capacities, order, estimand="ATE"):
    """Assert that moving one outcome moves tau by at most the sensitivity used, and that it is attained."""
    n = len(score)
    arguments = (np.array(treated), np.array(score, float), neighbours, *capacities)
    form = linear_form(matching_coefficients(*arguments, np.array(order), estimand).coefficients)
    sets = match_sets_by_definition(*arguments, order, estimand)
    # Outcomes in [0, 1]; tau is linear, so outcomes at an end of the range are the worst.
    changes = [abs(tau(sets, treated, [int(i == place) for i in range(n)])) for place in range(n)]
    largest = max(changes)
    # Coefficients are truncated to nine digits; the claim is made of, and for, the truncated ones.
    assert float(largest - form.largest) == pytest.approx(0, abs=2**-27)
    exact = np.array([float(value) for value in coefficients_by_definition(treated, sets)])
    np.testing.assert_allclose(form.units * 2.0**-form.bits, exact, atol=2**-27)
    units = np.abs(form.units)
    worst = max(abs(form.total(np.eye(n, dtype=np.int64)[i] * ONE)) for i in range(n))
    assert worst == form.largest * ONE == Fraction(int(units.max()) * ONE) / Fraction(2) ** form.bits


def data_sets(n):
    for rows in product(product((0, 1, 2), (False, True)), repeat=n):
        score, treated = zip(*rows, strict=True)
        if 0 < sum(treated) < n:
            yield treated, score


LIMITS = ((1, 1), (2, 2), (None, None), (1, 2))


@pytest.mark.parametrize("neighbours", [1, 2])
def test_all_matchings_of_up_to_four_units_in_every_order(neighbours):
    for n in (2, 3, 4):
        for k, (treated, score) in enumerate(data_sets(n)):
            if n == 4 and k % examples(19, 1):
                continue
            # All data sets meet all limits over the run; every order is taken for each pair of them.
            limits = LIMITS[k % len(LIMITS)]
            orders = permutations(range(n)) if n < 4 else [tuple(np.roll(range(n), k)), range(n)[::-1]]
            for order in orders:
                check_matching(treated, score, neighbours, limits, list(order))


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 6])
def test_all_matchings_of_up_to_six_units(n):
    for treated, score in data_sets(n):
        if n == 6 and not treated[0]:
            continue  # mirror images of the others, but for ties and the uneven limit; n = 5 has all
        for limits, neighbours in product(LIMITS, (1, 2)):
            check_matching(treated, score, neighbours, limits, list(range(n)))


@pytest.mark.parametrize("estimand", ["ATT", "ATC"])
def test_other_estimands(estimand):
    for k, (treated, score) in enumerate(data_sets(5)):
        if k % 97 == 0:
            check_matching(treated, score, 2, (2, 1), list(range(5)), estimand)


STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)})
ROWS = 64
MAP_VALUES = (0.0, 0.5, 1.0)
# Rows whose outcomes take every value; the others stay at one.
MOVED = 4


def table(outcomes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.full(ROWS, 0.25)
    y[: len(outcomes)] = outcomes
    frame = {"t": np.arange(ROWS) % 2, "x": rng.uniform(size=ROWS), "y": y}
    return Table.attach(frame, STUDY)


def worst(clip, prediction, columns, white):
    """Return the largest moves of map, squares and counts over all data sets and the claim's bounds."""
    found = {}
    for outcomes in product(MAP_VALUES, repeat=MOVED):
        own = table(outcomes)
        functions = functions_of(own, Series(degree=1))
        residuals = Residuals.of(own, prediction, clip)
        sums = map_sums(functions, columns, white, residuals)
        squares = [int((residuals.steps[own.treated == arm] ** 2).sum()) for arm in (False, True)]
        plain = Residuals.of(own, prediction)
        count = int(np.count_nonzero(np.abs(plain.steps) <= OUTCOME_STEPS // 4))
        found[outcomes] = (sums, squares, count, residuals)
    largest = [0.0, 0.0, 0]
    for outcomes, (sums, squares, count, _) in found.items():
        for place, value in product(range(MOVED), MAP_VALUES):
            other = found[(*outcomes[:place], value, *outcomes[place + 1 :])]
            gap = [a - b for a, b in zip(sums[0], other[0][0], strict=True)]
            largest[0] = max(largest[0], sum(step * step for step in gap))
            apart = [a - b for a, b in zip(squares, other[1], strict=True)]
            largest[1] = max(largest[1], sum(step * step for step in apart))
            largest[2] = max(largest[2], abs(count - other[2]))
    sums, _, _, residuals = found[(0.0,) * MOVED]
    bound = residuals.bound(sqrt_up(Fraction(sums[1])) * Fraction(MAP_STEP))
    return largest, bound, sums


@pytest.mark.parametrize(("clip", "middle"), [(0.2, 0.5), (0.4, 0.25), (2.0, 0.0)])
def test_no_change_exceeds_the_claim(clip, middle):
    functions = functions_of(table((0.0,) * MOVED), Series(degree=1))
    columns = np.arange(2 * functions.size)
    white = np.random.default_rng(3).normal(size=(3, len(columns)))
    largest, bound, _ = worst(clip, np.full(ROWS, middle), columns, white)
    unit = table((0.0,)).outcome_unit
    # In steps of the outcome and of the map; squares of lengths, so that all is in integers.
    claim = bound.values / Fraction(MAP_STEP) / unit
    assert largest[0] <= claim**2
    assert largest[1] <= (bound.squares / unit**2) ** 2
    assert largest[2] <= bound.counts


def test_every_claim_is_attained():
    """The longest column among the rows that move, a clip that both ends reach, and a count that is crossed."""
    own = table((0.0,) * MOVED)
    functions = functions_of(own, Series(degree=1))
    # One number that only looks at the effect's constant: a treated row and a control row are equally long.
    columns = np.array([0])
    white = np.ones((1, 1))
    largest, bound, sums = worst(0.25, np.full(ROWS, 0.5), columns, white)
    unit = own.outcome_unit
    assert isqrt(sums[1]) ** 2 == sums[1]
    assert largest[0] == (bound.values / Fraction(MAP_STEP) / unit) ** 2
    assert largest[2] == bound.counts
    largest, bound, _ = worst(0.5, np.zeros(ROWS), columns, white)
    assert largest[1] == (bound.squares / unit**2) ** 2
    assert functions.size == 2


def test_sums_are_those_of_exact_arithmetic():
    own = table((0.1, 0.9, 0.3, 1.0), seed=5)
    functions = functions_of(own, Series(degree=1))
    columns = np.arange(2 * functions.size)
    white = np.random.default_rng(1).normal(size=(2, len(columns)))
    white /= np.linalg.norm(functions.sample @ white.T, axis=1).max()
    residuals = Residuals.of(own, np.full(ROWS, 0.4), 0.3)
    found = map_sums(functions, columns, white, residuals)
    moved = np.concatenate([z[:, columns] @ white.T for _, z in functions.weighted_blocks()])
    steps = np.trunc(moved * ((1 - 2.0**-40) / MAP_STEP)).astype(int)
    expected = [
        sum(int(w) * int(r) for w, r in zip(column, residuals.steps, strict=True)) for column in steps.T
    ]
    assert found[0] == expected
    assert found[1] == max(sum(int(w) ** 2 for w in row) for row in steps)
    # Columns that are too long for their bits are shortened, and all sums stay within what doubles hold.
    long = map_sums(functions, columns, 1000 * white, residuals)
    assert 0.999 * 4**17 < long[1] <= 4**17


def test_residuals_are_clipped_in_whole_steps():
    own = table((0.0, 1.0, 0.5))
    residuals = Residuals.of(own, np.full(ROWS, 0.5), 0.1)
    assert residuals.steps[:3].tolist() == [-residuals.clip_steps, residuals.clip_steps, 0]
    assert residuals.clip == pytest.approx(0.1, abs=1e-6)
    assert residuals.clip >= 0.1
    # Without a clip nothing is cut, wherever the prediction lies.
    beyond = Residuals.of(own, np.full(ROWS, 7.0))
    assert beyond.steps[:3].tolist() == [-OUTCOME_STEPS, 0, -OUTCOME_STEPS // 2]


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
    return [
        [
            (value * width, variance * width**2)
            for (value, variance), width in zip(pairs, listed().widths, strict=True)
        ]
        for pairs in replace(made, source=rows).exact(listed())
    ]


@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_one_row_moves_all_outcomes_within_their_bounds_in_one_group(measure):
    ends = [(0, -1), (0, 4), (1, -1), (1, 4)]
    made = design(several_table([0] * 5, [0] * 5), several_question(measure), listed())
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
        plan = effects_plan(asked, design(rows, asked, many))
        amount = dict(plan.amounts)["values"]
        bound = [Fraction(1)] * count
        several = plan.several_noise("values of the arms", bound, many.weights)
        alone = effects_plan(asked, design(several_table([0] * 5, [0] * 5), asked, listed()))
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
        plan = effects_plan(asked, design(several_table([0] * 5, [0] * 5), asked, listed((3, 1))))
        first, second = plan.several_noise("values of the arms", [Fraction(1)] * 2, listed((3, 1)).weights)
        assert sqrt(second.variance / first.variance) == pytest.approx(3, rel=0.1)
        if plan.mechanism == "gaussian":
            # Both numbers move by their bounds at once: the length of that in standard deviations is mu.
            length = sqrt(1 / first.variance + 1 / second.variance)
            assert length == pytest.approx(float(dict(plan.amounts)["values"]))


PERIODS = ("a", "b", "y")
TREATED = (1, 1, 0, 0)


def study(**more):
    return study_of("t", "y", (-1, 1), control=0, before=("a", "b"), **more)


def periods_table(rows, told=None):
    columns = dict(zip(PERIODS, zip(*rows, strict=True), strict=True))
    return Table.attach({"t": list(TREATED)} | {k: list(v) for k, v in columns.items()}, told or study())


def periods_question(method="difference_in_means", epsilon=1):
    return question("outcome", method, epsilon=epsilon, estimand="ATT")


@pytest.mark.parametrize("change", [None, (-1, 1)])
def test_no_person_moves_more_than_the_claim(monkeypatch, change):
    told = study(change_range=change)
    rest = ((0, 1, -1), (-1, 1, 1), (1, 0, 0))
    given, bounds = {}, None
    for first in product((-1, 0, 1), repeat=3):
        passed = record(monkeypatch)
        rows = periods_table((first, *rest), told)
        data = {"t": list(TREATED)} | {
            name: [row[k] for row in (first, *rest)] for k, name in enumerate(PERIODS)
        }
        cv.event_study(data, told, protects="outcome", epsilon=100, noise=cv.SeededNoise(0))
        monkeypatch.undo()
        given[first] = {name: float(one.exact[0]) for name, one in passed.items()}
        bounds = {name: float(one.sensitivity) for name, one in passed.items()}
        assert rows.rows == 4
    names = {"period 0", "period 1", "period 2"} if change is None else {"period 0", "period 2"}
    assert {name for name in bounds if name.startswith("period")} == names
    for name, bound in bounds.items():
        all_values = [one[name] for one in given.values()]
        moved = max(all_values) - min(all_values)
        assert moved <= bound * (1 + 1e-9)
        if name.startswith("period"):
            # Two in either arm, and a range of 2 for measurements and for declared changes.
            assert bound == pytest.approx(1.0)
            assert moved == pytest.approx(bound, rel=1e-6)


def test_weights_are_those_of_the_last_change():
    rng = np.random.default_rng(1)
    n = 300
    told = cv.Study(
        cv.Treatment("t", control=0), cv.Change("y", (-4, 4), before=("a", "b")), {"x": cv.Range(0, 1)}
    )
    x = rng.uniform(0, 1, n)
    data = {"t": (rng.uniform(size=n) < 0.3 + 0.4 * x).astype(int), "x": x}
    data |= {name: x + rng.normal(0, 0.5, n) for name in PERIODS}
    rows = changes_from(Table.attach(data, told), 1)
    made = comparison(rows, periods_question("weighting", epsilon=10**12))
    units = made.form.units / 2.0**made.form.bits
    assert units[made.table.treated].sum() == pytest.approx(1, abs=1e-6)
    assert units[~made.table.treated].sum() == pytest.approx(-1, abs=1e-6)
    found = cv.event_study(data, told, protects="outcome", epsilon=1e12, noise=cv.SeededNoise(0))
    change = (made.table.measures[2] - made.table.measures[1]) * 8 / OUTCOME_STEPS
    assert found.effect("y").estimate == pytest.approx(float(units @ change), abs=1e-3)


def test_the_budget_is_split_over_all_periods():
    plan = periods_plan(periods_question(epsilon=4), 5, 2, Fraction(1, 5), by_change=False)
    parts = dict(plan.amounts)
    assert sum(parts.values()) <= 4
    assert parts["period 2"] == parts["period 4"] == pytest.approx(4 * 0.8 / 5)
    assert "variance 2" not in parts
    assert "period 2" not in dict(
        periods_plan(periods_question(), 5, 2, Fraction(1, 5), by_change=True).amounts
    )
