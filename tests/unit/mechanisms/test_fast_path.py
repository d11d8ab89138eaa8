"""Vectors of draws where float64 is least certain, the law of what it accepts, and tables that are wrong."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from counterveil.mechanisms import Gaussian, Grid, Laplace, Lomax, SeededNoise, Staircase
from counterveil.mechanisms import noise as fast
from counterveil.mechanisms.gaussian import NormalDistribution
from counterveil.mechanisms.laplace import LaplaceDistribution
from counterveil.mechanisms.noise import HEAD_BITS, draw_units_exactly, shared_table, smooth_table

from .conftest import unbounded_cells

MECHANISMS = [
    Laplace(1, "1/3"),
    Staircase(1, 1),
    Gaussian(1, "1/3"),
    Lomax(1, "1/10").distribution(Fraction(1)),
]


def words_at_boundaries(noise, grid):
    """Return, of many words, those whose draw lies nearest to the middle between two grid points."""
    words = SeededNoise(4).words(100_000)
    heads = ((words << np.uint64(1)) >> np.uint64(12)).astype(np.int64)
    quantiles, errors = shared_table(noise.unit).evaluate(heads)
    sizes = np.where(np.isfinite(errors), quantiles * float(noise.scale / grid.step), 0.0)
    return words[np.argsort(0.5 - np.abs(sizes - np.rint(sizes)))[:150]]


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
@pytest.mark.parametrize("bits", [36, 40])
def test_draws_next_to_a_boundary_are_those_of_the_exact_path(noise, bits, scripted):
    grid = Grid.for_scale(noise.scale, bits)
    words = words_at_boundaries(noise, grid)
    for further in (0, 2**64 - 1):
        fast = noise.draw(len(words), grid, scripted(words, further))
        exact = draw_units_exactly(noise.unit, noise.scale, len(words), grid, scripted(words, further))
        assert np.array_equal(fast, exact)


def exactly(noise, values, grid, source, monkeypatch):
    """Return what is released when no draw may be settled in float64."""
    with monkeypatch.context() as patch:
        patch.setattr(fast, "_table_for", lambda _, scale, __, own: (None, scale / own.step))
        return noise.release_all(values, grid, source)


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
@pytest.mark.parametrize("bits", [2, 24, 38])
def test_values_off_the_grid_are_released_as_on_the_exact_path(noise, bits, scripted, monkeypatch):
    grid, words = Grid.for_scale(noise.scale, bits), SeededNoise(4).words(400)
    shared_table(noise.unit)
    values = [Fraction(13 * i - 900, 7 + i % 5) * grid.step for i in range(len(words))]
    released = noise.release_all(values, grid, scripted(words, 12345))
    assert released == exactly(noise, values, grid, scripted(words, 12345), monkeypatch)


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
def test_values_at_a_boundary_are_released_as_on_the_exact_path(noise, scripted, monkeypatch):
    # Each value plus its draw lies a hair beside the middle between two grid points.
    grid, words = Grid.for_scale(noise.scale), SeededNoise(4).words(100)
    ratio, hair = noise.scale / grid.step, Fraction(1, 2**60)
    shared_table(noise.unit)
    values = []
    for i, word in enumerate(words):
        with ctx.workprec(300):
            uniform = fast.SignedUniform.of_word(int(word))
            uniform.head, uniform.bits = (uniform.head << 200) + 2**199, uniform.bits + 200
            mantissa, exponent = uniform.signed(noise.unit).mid().man_exp()
        size = ratio * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        values.append((Fraction(1, 2) - size + hair * (i % 7 - 3)) * grid.step)
    for further in (0, 2**63, 2**64 - 1):
        released = noise.release_all(values, grid, scripted(words, further))
        assert released == exactly(noise, values, grid, scripted(words, further), monkeypatch)


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
@pytest.mark.parametrize("rest", [Fraction(1, 2), Fraction(1, 3), Fraction(0)])
def test_what_float64_accepts_has_the_exact_law(noise, rest):
    # floor(rest + ratio X) is at least m for uniform numbers below P(|X| > (m - rest) / ratio), which balls hold.
    table, ratio = shared_table(noise.unit), Fraction(3)

    def accepted(head):
        """Return what float64 makes of a head, None where it leaves it to the exact path."""
        units, word = np.full(1, -1), np.array([head << (63 - HEAD_BITS)], dtype=np.uint64)
        left = fast._settle_in_float(table, float(ratio), word, np.array([float(rest) - 0.5]), units)
        return None if len(left) else int(units[0])

    def first(wanted):
        """Return the first head of which something holds that holds of all heads after it."""
        low, high = 2 ** (HEAD_BITS - fast.OCTAVES) + 2, 2**HEAD_BITS - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if wanted(accepted(middle)) else (middle, high)
        return high

    for m in range(1, 4):
        open_ = first(lambda found, m=m: found is None or found < m)
        after = first(lambda found, m=m: found is not None and found < m)
        assert accepted(open_ - 1) >= m
        assert accepted(after) == m - 1
        assert after - open_ < 1e-8 * 2**HEAD_BITS
        with ctx.workprec(200):
            bound = (arb(m) - arb(rest.numerator) / rest.denominator) / int(ratio)
            ends = [noise.unit.tail_quantile(arb((head, -HEAD_BITS))) for head in (open_, after)]
        assert ends[0] >= bound >= ends[1]


@pytest.mark.parametrize("distribution", [LaplaceDistribution(), NormalDistribution(), Staircase(1, 1).unit])
def test_a_wrong_entry_of_a_table_is_noticed(distribution):
    table = distribution.table()
    known = np.flatnonzero(np.isfinite(table.errors))
    for cell in known[:: max(1, len(known) // 7)]:
        for power, wrong in ((0, 4 * table.errors[cell]), (1, 1e-5 * table.coefficients[1, cell])):
            coefficients = table.coefficients.copy()
            coefficients[power, cell] += wrong
            assert unbounded_cells(distribution, replace(table, coefficients=coefficients)) == {cell}
        # The bits that are not looked at move a quantile by half its slope.
        errors = table.errors.copy()
        errors[cell] = abs(table.coefficients[1, cell]) / 4
        assert unbounded_cells(distribution, replace(table, errors=errors)) == {cell}


def test_series_that_flint_cuts_off_make_no_table(monkeypatch):
    monkeypatch.setattr(fast, "DEGREE", ctx.cap)
    with pytest.raises(ValueError, match="fewer terms"):
        smooth_table(LaplaceDistribution())


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
def test_one_release_and_a_vector_of_draws_read_a_word_alike(noise, scripted):
    grid = Grid.for_scale(noise.scale, 2)  # so coarse that rounding down would show
    words = SeededNoise(7).words(40)
    drawn = noise.draw(len(words), grid, scripted(words))
    for word, units in zip(words, drawn, strict=True):
        value = Fraction(5) * grid.step
        assert noise.release(value, grid, scripted([word])) == value + int(units) * grid.step
