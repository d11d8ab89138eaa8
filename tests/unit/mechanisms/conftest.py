"""Checks that every noise distribution is put under; the bits are fixed, so that nothing here is random."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from counterveil.mechanisms import Grid, ScaledNoise, SeededNoise
from counterveil.mechanisms.noise import HEAD_BITS, draw_units_exactly, shared_table

LEAST_P_VALUE = 1e-3  # seeds are fixed: a sampler of the right distribution passes for ever


class ScriptedNoise:
    """Words that a test has written down; further bits repeat one pattern."""

    simulated = True

    def __init__(self, words, further=0):
        self.script = np.asarray(words, dtype=np.uint64)
        self.further = further
        self.asked = 0

    def words(self, count):
        return self.script[:count]

    def bits(self, count):
        self.asked += 1
        if self.asked > 100_000:
            raise AssertionError("a draw did not settle")
        return self.further & ((1 << count) - 1)


@pytest.fixture
def scripted():
    return ScriptedNoise


@pytest.fixture
def third():
    """Return the same noise at a third of its scale."""
    return lambda noise: ScaledNoise(noise.unit, noise.scale / 3)


def largest_loss(noise, sensitivity):
    """Return the largest log-ratio over outputs and over neighbours at most `sensitivity` apart."""
    x = np.linspace(-8, 8, 4001)[:, None] * sensitivity
    shift = np.linspace(-1, 1, 81)[None, :] * sensitivity
    return float(np.max(noise.log_density(x) - noise.log_density(x - shift)))


@pytest.fixture
def assert_claim(third):
    """Assert that noise loses its epsilon and no more, and that a third of it loses half as much again."""

    def check(noise, sensitivity, epsilon):
        assert 0.95 * epsilon <= largest_loss(noise, sensitivity) <= float(epsilon) + 1e-12
        assert largest_loss(third(noise), sensitivity) > 1.5 * epsilon

    return check


@pytest.fixture
def assert_paths_agree():
    """Assert that the float64 path and the exact path give the same integers from the same bits."""

    def check(noise, count, bits=24, seed=11):
        grid = Grid.for_scale(noise.scale, bits)
        shared_table(noise.unit)  # or a short draw would take the exact path itself
        fast = noise.draw(count, grid, SeededNoise(seed))
        exact = draw_units_exactly(noise.unit, noise.scale, count, grid, SeededNoise(seed))
        assert np.array_equal(fast, exact)
        assert len(np.unique(fast)) > 3

    return check


@pytest.fixture
def assert_seams_agree():
    """Assert that both paths agree on uniform numbers at and beside the edges of every cell."""

    def check(noise):
        starts, grid = shared_table(noise.unit).starts, Grid.for_scale(noise.scale)
        heads = np.concatenate([starts + beside for beside in (-1, 0, 1)])
        words = (heads[heads >= 0].astype(np.uint64) << np.uint64(11)) | np.uint64(777)
        fast = noise.draw(len(words), grid, ScriptedNoise(words, 12345))
        exact = draw_units_exactly(noise.unit, noise.scale, len(words), grid, ScriptedNoise(words, 12345))
        assert np.array_equal(fast, exact)

    return check


@pytest.fixture
def assert_law():
    """Assert that draws follow the cdf, by Kolmogorov and Smirnov, and that the rounded distribution is exact."""

    def check(noise, seed=5):
        grid = Grid.for_scale(noise.scale)
        draws = noise.draw(40_000, grid, SeededNoise(seed)).astype(float) * float(grid.step)
        assert stats.kstest(draws, noise.cdf).pvalue > LEAST_P_VALUE
        _assert_rounded_law(noise)

    return check


def _assert_rounded_law(noise, bits=12):
    # One word in the middle of each of 2**13 equal parts of the unit interval: the share that
    # rounds to an integer is its probability to within one part at each of its two ends.
    grid = Grid.for_scale(noise.scale, 0)
    parts = 2 ** (bits + 1)
    words = (np.arange(parts, dtype=np.uint64) << np.uint64(63 - bits)) + np.uint64(2 ** (62 - bits))
    units = noise.draw(parts, grid, ScriptedNoise(words)).astype(float)
    for unit in range(-6, 7):
        low, high = noise.cdf((np.array([unit, unit + 1]) - 0.5) * float(grid.step))
        assert abs(np.mean(units == unit) - (high - low)) <= 2 / parts + 1e-12


MOST_CELLS = 300  # tables of more are looked at in this many places


def unbounded_cells(distribution, table):
    """Return the cells whose value is farther from the quantile than claimed, at their ends or in their middle."""
    ends = np.append(table.starts[1:], 2**HEAD_BITS)
    known = np.flatnonzero(np.isfinite(table.errors))
    known = known[:: -(-len(known) // MOST_CELLS)]
    found = set()
    for place in ("first", "middle", "last"):
        heads = {
            "first": table.starts[known],
            "middle": (table.starts[known] + ends[known]) // 2,
            "last": ends[known] - 1,
        }[place]
        values, errors = table.evaluate(heads)
        for cell, head, value, error in zip(known, heads, values, errors, strict=True):
            with ctx.workprec(160):
                quantiles = [distribution.tail_quantile(arb((int(head) + i, -HEAD_BITS))) for i in (0, 1)]
                if not all(abs(one - arb(float(value))) <= arb(float(error)) for one in quantiles):
                    found.add(int(cell))
    return found


@pytest.fixture
def assert_table_bounds():
    """Assert that every cell keeps its claimed error, which is small, and that cells cover nearly all numbers."""

    def check(distribution):
        table = distribution.table()
        assert not unbounded_cells(distribution, table)
        heads = np.random.default_rng(3).integers(0, 2**HEAD_BITS, 20_000)
        values, errors = table.evaluate(heads)
        known = np.isfinite(errors)
        assert known.mean() > 0.999
        assert np.all(errors[known] < 1e-10 * (1 + values[known]))

    return check


@pytest.fixture
def rounded_losses():
    """Return the log-ratios of rounded outputs for two values, of which neither lies on the grid."""

    def losses(noise, shift, step):
        edges = (np.arange(-40, 41) - 0.5) * step
        value = float(Fraction(1, 3)) * step
        here = np.diff(noise.cdf(edges - value))
        there = np.diff(noise.cdf(edges - value - shift))
        seen = (here > 1e-9) & (there > 1e-9)
        return np.abs(np.log(here[seen] / there[seen]))

    return losses
