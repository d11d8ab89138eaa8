"""Vectors of draws where float64 is least certain: next to the rounding boundaries of the grid."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.mechanisms import Gaussian, Grid, Laplace, Lomax, SeededNoise, Staircase
from counterveil.mechanisms.fast import draw_units_exactly, shared_table

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


@pytest.mark.parametrize("noise", MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
def test_one_release_and_a_vector_of_draws_read_a_word_alike(noise, scripted):
    grid = Grid.for_scale(noise.scale, 2)  # so coarse that rounding down would show
    words = SeededNoise(7).words(40)
    drawn = noise.draw(len(words), grid, scripted(words))
    for word, units in zip(words, drawn, strict=True):
        value = Fraction(5) * grid.step
        assert noise.release(value, grid, scripted([], further=int(word))) == value + int(units) * grid.step
