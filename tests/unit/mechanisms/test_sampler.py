import os
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from counterveil.errors import ParameterError
from counterveil.mechanisms import (
    Ball,
    Gaussian,
    Grid,
    Laplace,
    LaplacePair,
    Lomax,
    RandomizedResponse,
    SeededNoise,
    StableHistogram,
    Staircase,
    SystemNoise,
    mechanism_from_dict,
)
from counterveil.privacy import Budget

MECHANISMS = [
    Laplace("1/3", 1),
    Staircase(2, "1/7"),
    Gaussian(1, "1/3"),
    Lomax(1, "1/10"),
    Ball(1, 1, 4),
    RandomizedResponse(1, 3),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_mechanisms_survive_being_written_down(mechanism):
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


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
    (Lomax.usual(1).distribution, "CV-P112"): [(Fraction(0),)],
    (RandomizedResponse, "CV-P101"): [(0, 2)],
    (RandomizedResponse, "CV-P106"): [(1, 1), (1, 2.0), (1, 10**9)],
    (Ball, "CV-P100"): [(0, 1, 2)],
    (Ball, "CV-P101"): [(1, 0, 2)],
    (Ball, "CV-P105"): [(1, 1, 0), (1, 1, 2.0)],
    (Ball(1, 1, 2).release, "CV-P111"): [([Fraction(0)], Grid(Fraction(1)), SeededNoise(1))],
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
