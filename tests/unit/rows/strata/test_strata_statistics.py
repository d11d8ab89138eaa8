"""The statistics of strata against exact rationals and against definitions row by row."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.data import OUTCOME_STEPS
from counterveil.errors import ParameterError
from counterveil.numerics.strata import RANGE_STEPS, Strata, weight_sum
from counterveil.rows.strata.statistics import (
    ROUNDING,
    bounded_variance,
    effect_sum,
    order_free_variance,
    pooled_squares,
    single_effect_sum,
)

ESTIMANDS = ("ATE", "ATT", "ATC")
LIMITS = (None, Fraction(2), Fraction(7, 3), Fraction(5))


class Cell:
    """`count` rows of one arm, two outcomes among them; everything about it is exact."""

    def __init__(self, generator, largest):
        self.count = int(generator.integers(0, largest))
        first = int(generator.integers(0, self.count + 1))
        self.rows = [
            (first, int(generator.integers(0, RANGE_STEPS + 1))),
            (self.count - first, int(generator.integers(0, RANGE_STEPS + 1))),
        ]
        self.total = sum(many * y for many, y in self.rows)
        self.square = sum(many * y * y for many, y in self.rows)

    @property
    def mean(self):
        return Fraction(self.total, self.count)

    @property
    def squares(self):
        if self.count < 2:
            return Fraction(RANGE_STEPS**2, 4) * self.count
        return (self.square - self.total * self.mean) * Fraction(self.count, self.count - 1)


def made(generator, strata, largest):
    cells = [(Cell(generator, largest), Cell(generator, largest)) for _ in range(strata)]
    cells = [(a, b) for a, b in cells if a.count + b.count]

    def column(read, kind):
        return [np.array([read(pair[arm]) for pair in cells], dtype=kind) for arm in (0, 1)]

    return cells, Strata(
        strata,
        np.arange(len(cells)),
        *column(lambda cell: cell.count, np.int64),
        *column(lambda cell: cell.total, np.int64),
        *column(lambda cell: float(cell.square), np.float64),
    )


def weight(a, b, estimand, limit):
    t, c = a.count, b.count
    whole, limited = {"ATE": (t + c, (t, c)), "ATT": (t, (c,)), "ATC": (c, (t,))}[estimand]
    if not t or not c:
        return Fraction(0)
    return min([Fraction(whole), *([] if limit is None else [limit * rows for rows in limited])])


@pytest.mark.parametrize("largest", [2, 4, 40, 10**4, 10**8])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_sums_are_as_exact_as_they_say(largest, limit, estimand):
    generator = np.random.default_rng([largest, 5])
    for _ in range(5):
        cells, strata = made(generator, 40, largest)
        N, step = strata.rows, Fraction(RANGE_STEPS)
        both = [(weight(a, b, estimand, limit), a, b) for a, b in cells if a.count and b.count]
        h = sum((h for h, _, _ in both), Fraction(0))
        effect = sum((h * (a.mean - b.mean) for h, a, b in both), Fraction(0))
        variance = sum(
            ((h / cell.count) ** 2 * cell.squares for h, a, b in both for cell in (a, b)), Fraction(0)
        )
        assert abs(weight_sum(strata, estimand, limit) - h) <= ROUNDING * N
        assert abs(effect_sum(strata, estimand, limit) - effect) <= ROUNDING * N * step
        scale = N * limit**2 if limit else N**2
        assert abs(bounded_variance(strata, estimand, limit) - variance) <= ROUNDING * scale * step**2
        if limit is None:
            assert order_free_variance(strata, estimand) == bounded_variance(strata, estimand, None)


@pytest.mark.parametrize("largest", [2, 4, 40, 10**4, 10**8])
def test_pooled_squares_take_every_cell_and_bound_the_variance(largest):
    generator = np.random.default_rng([largest, 7])
    cells, strata = made(generator, 60, largest)
    exact = sum((cell.squares for pair in cells for cell in pair), Fraction(0))
    slack = ROUNDING * strata.rows * RANGE_STEPS**2
    assert abs(pooled_squares(strata) - exact) <= slack
    for limit in (Fraction(2), Fraction(4)):
        assert bounded_variance(strata, "ATE", limit) <= limit**2 * (exact + slack)


def test_the_order_of_strata_does_not_move_a_bit():
    _, strata = made(np.random.default_rng(11), 500, 1000)
    turned = Strata(
        strata.public,
        *(
            getattr(strata, name)[::-1].copy()
            for name in ("place", "treated", "control", "treated_sum", "control_sum")
        ),
        strata.treated_square[::-1].copy(),
        strata.control_square[::-1].copy(),
    )
    for statistic in (effect_sum, weight_sum, bounded_variance):
        assert statistic(strata, "ATE", Fraction(3)) == statistic(turned, "ATE", Fraction(3))
    assert pooled_squares(strata) == pooled_squares(turned)


def test_equal_outcomes_have_no_spread_at_all():
    count = np.array([3, 10**6, 7 * 10**7])
    total, square = count * RANGE_STEPS, count.astype(float) * float(RANGE_STEPS) ** 2
    strata = Strata(3, np.arange(3), count, count, total, total, square, square)
    assert pooled_squares(strata) == 0
    assert effect_sum(strata, "ATE") == 0


def matched_rows(treated, control):
    """Return the effect sum of the balanced single matching, row by row."""
    t, c = len(treated), len(control)
    if not t or not c:
        return 0
    plus, minus = [1] * t, [1] * c
    for place in range(c):
        plus[place % t] += 1
    for place in range(t):
        minus[place % c] += 1
    return sum(w * y for w, y in zip(plus, treated, strict=True)) - sum(
        w * y for w, y in zip(minus, control, strict=True)
    )


def test_single_matching_is_that_of_its_rows():
    generator = np.random.default_rng(17)
    rows = [
        [generator.integers(0, RANGE_STEPS + 1, generator.integers(0, 9)).tolist() for _ in "tc"]
        for _ in range(80)
    ]
    rows = [pair for pair in rows if pair[0] or pair[1]]

    def prefix(own, other):
        return sum(own[: len(other) % len(own)]) if own and other else 0

    def column(read, kind=np.int64):
        return [
            np.array([read(*pair) for pair in rows], kind),
            np.array([read(*pair[::-1]) for pair in rows], kind),
        ]

    strata = Strata(
        100,
        np.arange(len(rows)),
        *column(lambda own, _: len(own)),
        *column(lambda own, _: sum(own)),
        *column(lambda own, _: sum(y * y for y in own), np.float64),
        *column(prefix),
    )
    assert single_effect_sum(strata) == sum(matched_rows(*pair) for pair in rows)


def test_steps_are_those_of_the_tables():
    assert RANGE_STEPS == OUTCOME_STEPS


def test_single_matching_refuses_strata_without_prefixes():
    _, strata = made(np.random.default_rng(19), 5, 5)
    with pytest.raises(ParameterError, match="CV-P331"):
        single_effect_sum(strata)
