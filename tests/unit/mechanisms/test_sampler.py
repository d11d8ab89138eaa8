"""The sampler: its laws, its fast path where float64 is least certain, and generators around it."""

import os
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from counterveil.errors import ParameterError
from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    Grid,
    Laplace,
    LaplacePair,
    Lomax,
    RandomizedResponse,
    SeededNoise,
    StableHistogram,
    Staircase,
    SummedBall,
    SummedGaussian,
    SummedLaplace,
    SystemNoise,
    fixed_ambient_generators,
    mechanism_from_dict,
)
from counterveil.mechanisms import noise as fast
from counterveil.mechanisms.gaussian import NormalDistribution
from counterveil.mechanisms.laplace import LaplaceDistribution
from counterveil.mechanisms.noise import HEAD_BITS, draw_units_exactly, shared_table, smooth_table
from counterveil.privacy import Budget, LaplaceEvent, PureEvent

from .conftest import unbounded_cells

MECHANISMS = [
    Laplace("1/3", 1),
    Staircase(2, "1/7"),
    Gaussian(1, "1/3"),
    Lomax(1, "1/10"),
    Ball(1, 1, 4),
    RandomizedResponse(1, 3),
    LaplacePair("1/2", "1/4", 1),
    Box(1, 2, 3),
    SummedLaplace(1, 1, 3, 2),
    SummedGaussian(1, 1, 3, 2),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_mechanisms_survive_being_written_down(mechanism):
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


def test_what_is_charged_is_the_event():
    assert LaplacePair("1/2", "1/4", 1).event == LaplaceEvent(Fraction(1, 4))
    assert Box(1, 2, 3).event == PureEvent(Fraction(2))


@pytest.mark.parametrize(
    "facts", [{}, {"mechanism": "cauchy"}, {"mechanism": "laplace"}, {"mechanism": "ball", "dimension": "x"}]
)
def test_facts_of_no_mechanism_are_refused(facts):
    with pytest.raises(ParameterError, match="CV-P109"):
        mechanism_from_dict(facts)


# By law and code, the arguments that are refused.
REFUSED = {
    (Laplace, "CV-P100"): [(0, 1), (-1, 1)],
    (Laplace, "CV-P101"): [(1, 0), (1, -2)],
    (Staircase, "CV-P100"): [(0, 1)],
    (Staircase, "CV-P101"): [(1, 0)],
    (Gaussian, "CV-P100"): [(0, 1)],
    (Gaussian, "CV-P102"): [(1, 0), (1, -1)],
    (Gaussian.calibrated, "CV-P102"): [(1, Budget(1))],
    (LaplacePair, "CV-P100"): [(0, 1, 1), (1, 1, 0)],
    (LaplacePair, "CV-P101"): [(1, 0, 1)],
    (LaplacePair, "CV-P201"): [(1, 1, 2)],
    (Lomax, "CV-P101"): [(0, 1)],
    (Lomax, "CV-P103"): [(1, 0), (1, -1), (1, 1), (1, "99/100")],
    (Lomax.default(1).distribution, "CV-P112"): [(Fraction(0),)],
    (RandomizedResponse, "CV-P101"): [(0, 2)],
    (RandomizedResponse, "CV-P106"): [(1, 1), (1, 2.0), (1, 10**9)],
    (Ball, "CV-P100"): [(0, 1, 2)],
    (Ball, "CV-P101"): [(1, 0, 2)],
    (Ball, "CV-P105"): [(1, 1, 0), (1, 1, 2.0)],
    (Ball(1, 1, 2).release, "CV-P111"): [([Fraction(0)], Grid(Fraction(1)), SeededNoise(1))],
    (Box, "CV-P105"): [(1, 1, 0)],
    (Box(1, 1, 2).release, "CV-P111"): [([Fraction(0)], Grid(Fraction(1)), SeededNoise(1))],
    (SummedLaplace, "CV-P204"): [(1, 1, 2, 3)],
    (SummedGaussian, "CV-P204"): [(1, 1, 2, 3)],
    (SummedGaussian, "CV-P160"): [(1, 2001, 3, 2)],
    (SummedBall, "CV-P204"): [(1, 1, 3, 2, 3)],
    (StableHistogram, "CV-P"): [(1, 0), (1, -1), (1, "0.3"), ("1e-6", "1e-6"), (0, "1e-6")],
}


@pytest.mark.parametrize(("law", "code"), REFUSED)
def test_parameters_out_of_range_are_refused(law, code):
    for arguments in REFUSED[law, code]:
        with pytest.raises(ParameterError, match=code):
            law(*arguments)


def test_a_first_word_of_zeros_reads_on_until_the_tail_is_known(scripted):
    # The interval [0, 2**-63] has no finite quantile; the pattern of ones that follows ends it.
    source = scripted([0], further=2**64 - 1)
    units = Laplace(1, 1).draw(1, Grid(Fraction(1)), source)
    assert source.asked >= 1
    assert units[0] == round(63 * np.log(2))


def test_draws_too_large_for_int64_stay_exact(scripted):
    noise = Lomax(1, "1/2").distribution(Fraction(1))
    units = noise.draw(2, Grid.for_scale(noise.scale, 40), scripted([1, 2**62], further=12345))
    assert units.dtype == object
    assert units[0] > 2**62
    assert 0 < units[1] < 2**50


@pytest.mark.parametrize(("further", "expected"), [(0, 1), (2**64 - 1, 0)])
def test_a_word_that_straddles_a_boundary_is_decided_by_further_bits(further, expected, scripted):
    # Half a step lies at the quantile of the middle of the word's interval, to 100 digits.
    with ctx.workprec(400):
        middle = -(arb((2**63 + 1, -64))).log()
        mantissa, exponent = middle.mid().man_exp()
    grid = Grid(2 * Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
    source = scripted([2**62], further)
    assert Laplace(1, 1).draw(1, grid, source)[0] == expected
    assert source.asked == 1
    for neighbour, units in ((2**62 - 1, 1), (2**62 + 1, 0)):
        settled = scripted([neighbour], further)
        assert Laplace(1, 1).draw(1, grid, settled)[0] == units
        assert settled.asked == 0


def test_a_fine_grid_reads_as_many_bits_as_it_needs(scripted):
    source = scripted([2**62])
    Laplace(1, 1).draw(1, Grid(Fraction(1, 2**200)), source)
    assert source.asked >= 3


def test_the_sign_is_the_first_bit(scripted):
    units = Laplace(1, 1).draw(2, Grid(Fraction(1, 1024)), scripted([2**61, 2**63 + 2**61]))
    assert units[0] == -units[1] == round(1024 * 2 * np.log(2))


def test_blocks_and_chunks_leave_no_seam(monkeypatch):
    from counterveil.mechanisms import noise as fast

    noise, grid = Gaussian(1, 1), Grid(Fraction(1, 2**10))
    fast.shared_table(noise.unit)
    whole = noise.draw(5000, grid, SeededNoise(9))
    monkeypatch.setattr(fast, "BLOCK", 700)
    monkeypatch.setattr(fast, "CHUNK", 64)
    assert np.array_equal(noise.draw(5000, grid, SeededNoise(9)), whole)


def test_ratios_beyond_float64_use_the_exact_path():
    units = Laplace(1, 1).draw(3, Grid(Fraction(1, 2**400)), SeededNoise(1))
    assert all(isinstance(unit, int) for unit in units)
    assert np.all(Laplace(1, 1).draw(3, Grid(Fraction(2**400)), SeededNoise(1)) == 0)


@pytest.mark.parametrize("source", [SystemNoise(), SeededNoise(3)])
def test_bits_and_words_are_fair(source):
    words = source.words(20_000)
    assert words.dtype == np.uint64
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 6 * 0.5 / np.sqrt(64 * 20_000)
    for count in (1, 7, 64, 200):
        drawn = [source.bits(count) for _ in range(400)]
        assert max(drawn) < 2**count
        assert abs(np.mean([value >> (count - 1) for value in drawn]) - 0.5) < 6 * 0.5 / 20
    assert source.bits(0) == 0


def test_only_the_seed_is_simulated_and_it_repeats():
    assert not SystemNoise().simulated
    assert SeededNoise(1).simulated
    assert np.array_equal(SeededNoise(5).words(9), SeededNoise(5).words(9))
    assert not np.array_equal(SeededNoise(5).words(9), SeededNoise(6).words(9))
    assert not np.array_equal(SystemNoise().words(9), SystemNoise().words(9))
    first = SeededNoise(5)
    assert first.bits(128) == int(SeededNoise(5).words(2)[0]) * 2**64 + int(SeededNoise(5).words(2)[1])


def test_a_forked_process_draws_other_bits():
    reader, writer = os.pipe()
    source = SystemNoise()
    source.words(4)
    if (child := os.fork()) == 0:
        os.write(writer, source.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 32) != source.words(4).tobytes()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_seed_that_is_no_number_is_refused(seed):
    with pytest.raises(ParameterError, match="CV-P113"):
        SeededNoise(seed)


@pytest.mark.parametrize("source", [SystemNoise(), SeededNoise(3)])
def test_a_negative_count_is_refused(source):
    with pytest.raises(ParameterError, match="CV-P108"):
        source.words(-1)
    with pytest.raises(ParameterError, match="CV-P108"):
        Laplace(1, 1).draw(-1, Grid(Fraction(1)), source)


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(4), Fraction(10**12, 7), Fraction(1, 10**9)]
)
@pytest.mark.parametrize("bits", [0, 24])
def test_the_step_is_the_largest_power_of_two_that_fits(scale, bits):
    step = Grid.for_scale(scale, bits).step
    assert step <= scale / 2**bits < 2 * step
    assert step.numerator == 1 or step.denominator == 1
    assert (step.numerator * step.denominator).bit_count() == 1


def test_values_round_to_the_nearest_point():
    grid = Grid(Fraction(1, 10))
    assert [grid.units(Fraction(v, 100)) for v in (14, 15, -15, -16)] == [1, 2, -1, -2]
    assert grid.value(-3) == Fraction(-3, 10)


@pytest.mark.parametrize("make", [lambda: Grid(Fraction(0)), lambda: Grid.for_scale(Fraction(-1))])
def test_a_step_that_is_not_positive_is_refused(make):
    with pytest.raises(ParameterError, match="CV-P107"):
        make()


FAST_MECHANISMS = [
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


@pytest.mark.parametrize("noise", FAST_MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
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


@pytest.mark.parametrize("noise", FAST_MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
@pytest.mark.parametrize("bits", [2, 24, 38])
def test_values_off_the_grid_are_released_as_on_the_exact_path(noise, bits, scripted, monkeypatch):
    grid, words = Grid.for_scale(noise.scale, bits), SeededNoise(4).words(400)
    shared_table(noise.unit)
    values = [Fraction(13 * i - 900, 7 + i % 5) * grid.step for i in range(len(words))]
    released = noise.release_all(values, grid, scripted(words, 12345))
    assert released == exactly(noise, values, grid, scripted(words, 12345), monkeypatch)


@pytest.mark.parametrize("noise", FAST_MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
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
            mantissa, exponent = fast.signed_draws(noise.unit, [uniform])[0].mid().man_exp()
        size = ratio * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        values.append((Fraction(1, 2) - size + hair * (i % 7 - 3)) * grid.step)
    for further in (0, 2**63, 2**64 - 1):
        released = noise.release_all(values, grid, scripted(words, further))
        assert released == exactly(noise, values, grid, scripted(words, further), monkeypatch)


@pytest.mark.parametrize("noise", FAST_MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
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


@pytest.mark.parametrize("noise", FAST_MECHANISMS, ids=lambda noise: type(noise.unit).__name__)
def test_one_release_and_a_vector_of_draws_read_a_word_alike(noise, scripted):
    grid = Grid.for_scale(noise.scale, 2)  # so coarse that rounding down would show
    words = SeededNoise(7).words(40)
    drawn = noise.draw(len(words), grid, scripted(words))
    for word, units in zip(words, drawn, strict=True):
        value = Fraction(5) * grid.step
        assert noise.release(value, grid, scripted([word])) == value + int(units) * grid.step


def _draw(many):
    with fixed_ambient_generators():
        first = (random.random(), np.random.rand())
        for _ in range(many):
            random.random()
            np.random.rand()
        return first


def test_what_ran_before_does_not_matter():
    found = []
    for seed in (1, 2, 3):
        random.seed(seed)
        np.random.seed(seed)
        found.append(_draw(seed))
    assert found[0] == found[1] == found[2]


def test_every_piece_of_a_block_starts_alike():
    with fixed_ambient_generators() as start_again:
        pieces = []
        for many in (1, 5, 2):
            start_again()
            pieces.append((random.random(), np.random.rand(many)[0]))
    assert pieces[0] == pieces[1] == pieces[2]


def test_the_state_outside_is_kept_also_after_an_error():
    random.seed(5)
    np.random.seed(5)
    expected = (random.random(), np.random.rand())
    random.seed(5)
    np.random.seed(5)
    with pytest.raises(ValueError, match="inside"), fixed_ambient_generators():
        raise ValueError("inside")
    assert (random.random(), np.random.rand()) == expected
