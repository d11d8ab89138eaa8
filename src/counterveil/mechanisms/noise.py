"""Sources of random bits, grids, the exact sampler, and its fast form for vectors."""

from __future__ import annotations

import math
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import Any, ClassVar, Protocol

import numpy as np
from flint import arb, arb_series, ctx, fmpq
from numpy.typing import ArrayLike, NDArray

from counterveil.errors import refusal
from counterveil.privacy import Number, exact

WORD_BITS = 64


class BitSource(Protocol):
    """Independent fair bits.

    See Also
    --------
    SystemNoise : The operating system's generator.
    SeededNoise : A reproducible stream for tests.
    """

    @property
    def simulated(self) -> bool:
        """Whether the bits can be reproduced, so that the noise could be subtracted."""
        ...

    def bits(self, count: int) -> int:
        """Return a uniform integer.

        Parameters
        ----------
        count : int
            Number of bits.

        Returns
        -------
        int
            Uniform in [0, 2**count).
        """
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform integers of 64 bits.

        Parameters
        ----------
        count : int
            Number of integers.

        Returns
        -------
        ndarray of uint64
            Uniform in [0, 2**64).
        """
        ...


class SystemNoise:
    """The operating system's random generator; the default source of noise.

    Nothing is buffered, so a forked process repeats nothing.

    Examples
    --------
    >>> from counterveil.mechanisms import SystemNoise
    >>> 0 <= SystemNoise().bits(3) < 8
    True
    """

    simulated = False

    def bits(self, count: int) -> int:
        """Return a uniform integer.

        Parameters
        ----------
        count : int
            Number of bits.

        Returns
        -------
        int
            Uniform in [0, 2**count).

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        check_count(count)
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform integers of 64 bits.

        Parameters
        ----------
        count : int
            Number of integers.

        Returns
        -------
        ndarray of uint64
            Uniform in [0, 2**64).

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        check_count(count)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemNoise()"


class SeededNoise:
    """A reproducible stream of random bits for tests and experiments; its releases are not private.

    Whoever knows the seed can subtract the noise. Results say so, and a ledger on disk refuses it (CV-L008).
    One object is one stream: a second call with the same object draws on.

    Parameters
    ----------
    seed : int
        Seed of the stream, at least 0.

    Attributes
    ----------
    seed : int
        Seed of the stream.
    simulated : bool
        True.

    Raises
    ------
    CounterveilError
        A seed that is no integer of at least 0 (CV-P113).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> first, second = (
    ...     cv.ate(data.frame, data.study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1))
    ...     for _ in range(2)
    ... )
    >>> first.estimate == second.estimate
    True
    """

    simulated = True

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise refusal("CV-P113", seed=seed)
        self.seed = seed
        self._stream = np.random.PCG64(seed)

    def bits(self, count: int) -> int:
        """Return a uniform integer.

        Parameters
        ----------
        count : int
            Number of bits.

        Returns
        -------
        int
            Uniform in [0, 2**count).

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        check_count(count)
        size = -(-count // WORD_BITS)
        joined = 0
        for word in self.words(size):
            joined = (joined << WORD_BITS) | int(word)
        return joined >> (size * WORD_BITS - count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform integers of 64 bits.

        Parameters
        ----------
        count : int
            Number of integers.

        Returns
        -------
        ndarray of uint64
            Uniform in [0, 2**64).

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        check_count(count)
        words: NDArray[np.uint64] = self._stream.random_raw(count)
        return words

    def __repr__(self) -> str:
        return f"SeededNoise({self.seed})"


def check_count(count: int) -> None:
    """Raise CV-P108 for a negative number of bits or draws."""
    if count < 0:
        raise refusal("CV-P108", count=count)


# The process's global generators, for code of others that draws from them.
#
# Nothing of ours draws from them. A learner that a user brings may: what one piece of data makes it draw would then
# reach the next piece through the generator's state. Starting every piece from one fixed state cuts that way.


_FIXED = 0


@contextmanager
def fixed_ambient_generators() -> Iterator[Callable[[], None]]:
    """Run a block with the global generators of Python and numpy in one fixed state.

    Nothing of the package draws from them; a learner that a user brings may. Afterwards they are put back as
    they were before the block. The block is given a function that puts them into the fixed state again.

    Yields
    ------
    callable
        Puts the generators into the fixed state.

    Examples
    --------
    >>> import random
    >>> from counterveil.mechanisms import fixed_ambient_generators
    >>> with fixed_ambient_generators() as start_again:
    ...     first = random.random()
    ...     start_again()
    ...     second = random.random()
    >>> first == second
    True
    """
    plain, vectors = random.getstate(), np.random.get_state()
    _fix()
    try:
        yield _fix
    finally:
        random.setstate(plain)
        np.random.set_state(vectors)


def _fix() -> None:
    random.seed(_FIXED)
    np.random.seed(_FIXED)


DEFAULT_BITS = 24  # a step of 2**-24 scales adds less than 1e-14 of the noise's variance


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of a step, on which numbers are released.

    Attributes
    ----------
    step : Fraction
        Distance of neighbouring points, above 0, in units of the released number. It must come from public
        numbers.

    Raises
    ------
    CounterveilError
        A step that is not positive (CV-P107).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil.mechanisms import Grid
    >>> Grid(Fraction(1, 4)).units(Fraction(3, 10))
    1
    """

    step: Fraction

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise refusal("CV-P107", step=self.step)

    @classmethod
    def for_scale(cls, scale: Fraction, bits: int = DEFAULT_BITS) -> Grid:
        """Return the grid whose step is the largest power of two that is at most scale / 2**bits.

        Parameters
        ----------
        scale : Fraction
            Scale of the noise, above 0.
        bits : int, default 24
            Binary digits below the scale. With 24, rounding adds less than 1e-14 of the noise's variance.

        Returns
        -------
        Grid
            The grid.

        Raises
        ------
        CounterveilError
            A scale that is not positive (CV-P107).

        Examples
        --------
        >>> from fractions import Fraction
        >>> from counterveil.mechanisms import Grid
        >>> Grid.for_scale(Fraction(1)).step == Fraction(1, 2**24)
        True
        """
        if scale <= 0:
            return cls(Fraction(scale))
        target = Fraction(scale) / Fraction(2) ** bits
        power = target.numerator.bit_length() - target.denominator.bit_length()
        step = Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)
        return cls(step if step <= target else step / 2)

    def units(self, value: Fraction) -> int:
        """Return the grid point nearest to a value, in steps; halves go up.

        Parameters
        ----------
        value : Fraction
            The value.

        Returns
        -------
        int
            Number of steps from zero.
        """
        return (value / self.step + Fraction(1, 2)).__floor__()

    def value(self, units: int) -> Fraction:
        """Return the number that lies some steps from zero.

        Parameters
        ----------
        units : int
            Number of steps.

        Returns
        -------
        Fraction
            The number.
        """
        return units * self.step


def positive_sensitivity(value: Number) -> Fraction:
    """Return the sensitivity as an exact rational, or raise CV-P100."""
    sensitivity = exact(value, "sensitivity")
    if sensitivity <= 0:
        raise refusal("CV-P100", value=value)
    return sensitivity


def positive_epsilon(value: Number) -> Fraction:
    """Return epsilon as an exact rational, or raise CV-P101."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise refusal("CV-P101", value=value)
    return epsilon


class Hashed:
    """Something that keeps its hash: intervals look noises up by theirs, and those of rationals are slow."""

    __slots__ = ("_hash",)
    _hash: int

    def _hash_of(self, *numbers: Fraction | int) -> int:
        """Return a hash of rationals, found once."""
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(tuple([(x.numerator, x.denominator) for x in numbers])))
            return self._hash


# The special functions of scipy, loaded at their first use: the import alone costs a fifth of a second.


def special(function: str, *arguments: Any) -> NDArray[np.float64]:
    """Return scipy.special.<function>(*arguments) as float64."""
    from scipy import special as scipy_special

    return np.asarray(getattr(scipy_special, function)(*arguments), dtype=np.float64)


# Exact draws: random bits pushed through a quantile function in ball arithmetic.
#
# A uniform number is known only as an interval; more bits narrow it. The interval goes through
# the distribution's quantile function with rigorous error bounds, and bits are added until the grid point
# of (value + noise) is the same for every number of the interval. The page `sampler.proof.md`
# says why the released integer then has exactly the distribution of the rounded continuous mechanism.


# Proof: sampler.proof.md

TAIL_BITS = WORD_BITS - 1  # of the first word, one bit is the sign
GUARD_BITS = 64  # working precision beyond the bits of the uniform number
_SIGN_SHIFT = WORD_BITS - 1
_TAIL_MASK = (1 << TAIL_BITS) - 1


class TailQuantile(Protocol):
    """A distribution that is symmetric about zero, without an atom, given by the quantiles of its size."""

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball that holds every x with P(|X| > x) in the ball u; not finite if unknown."""
        ...


@dataclass(slots=True)
class SignedUniform:
    """A sign and a number u of (0, 1) that is known to lie in [head, head + 1] / 2**bits."""

    negative: bool
    head: int
    bits: int

    @classmethod
    def of_word(cls, word: int) -> SignedUniform:
        """Return the sign and the first 63 bits of u that one random word holds."""
        return cls(bool(word >> _SIGN_SHIFT), word & _TAIL_MASK, TAIL_BITS)

    def refine(self, source: BitSource) -> None:
        """Narrow u by 64 further bits."""
        self.head = (self.head << WORD_BITS) | source.bits(WORD_BITS)
        self.bits += WORD_BITS

    def ball(self) -> arb:
        """Return the interval of u as an exact ball."""
        return arb((2 * self.head + 1, -self.bits - 1), (1, -self.bits - 1))


def signed_draws(distribution: TailQuantile, uniforms: Sequence[SignedUniform]) -> list[arb]:
    """Return balls that hold the draws of `distribution` that these numbers stand for."""
    intervals = [uniform.ball() for uniform in uniforms]
    sizes = [distribution.tail_quantile(interval) for interval in intervals]
    return [-size if uniform.negative else size for size, uniform in zip(sizes, uniforms, strict=True)]


def exact_ball(value: Fraction) -> arb:
    """Return a ball that holds a rational, at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def certain_floor(ball: arb) -> int | None:
    """Return the floor shared by every number of the ball, None if there is more than one."""
    if not ball.is_finite():
        return None
    floor = ball.floor().unique_fmpz()
    return None if floor is None else int(floor)


def working_bits(bits: int, ratio: Fraction) -> int:
    """Return a precision at which rounding is negligible beside the unknown bits of u."""
    size = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return bits + GUARD_BITS + max(0, size)


def settle(
    distribution: TailQuantile,
    ratio: Fraction,
    offsets: Sequence[Fraction],
    uniforms: Sequence[SignedUniform],
    source: BitSource,
) -> list[int]:
    """Return floor(offset + ratio * X) for every draw.

    Further bits are read in the order of the draws, only while one is not certain.
    """
    settled = []
    floors = _certain_floors(distribution, ratio, offsets, uniforms)
    for first_floor, offset, uniform in zip(floors, offsets, uniforms, strict=True):
        floor = first_floor
        while floor is None:
            uniform.refine(source)
            (floor,) = _certain_floors(distribution, ratio, [offset], [uniform])
        settled.append(floor)
    return settled


def _certain_floors(
    distribution: TailQuantile,
    ratio: Fraction,
    offsets: Sequence[Fraction],
    uniforms: Sequence[SignedUniform],
) -> list[int | None]:
    """Return floor(offset + ratio * X) of draws of which as many bits are known; None where these leave it open."""
    with ctx.workprec(working_bits(uniforms[0].bits, ratio)):
        scale = exact_ball(ratio)
        draws = signed_draws(distribution, uniforms)
        return [
            certain_floor(exact_ball(offset) + scale * draw)
            for offset, draw in zip(offsets, draws, strict=True)
        ]


def split(value: Fraction, grid: Grid) -> tuple[int, Fraction]:
    """Return (n, rest) with value / step + 1/2 = n + rest and 0 <= rest < 1.

    Only the rest takes part in ball arithmetic, so the size of the value does not change the precision.
    """
    top, bottom = value.numerator * grid.step.denominator, value.denominator * grid.step.numerator
    whole, rest = divmod(2 * top + bottom, 2 * bottom)
    return whole, Fraction(rest, 2 * bottom)


# Vectors of exact draws: a certified float64 path, and the exact path wherever it is not certain.
#
# Both paths read the same words. A draw is settled in float64 only when its proved error bound lies clear of every
# rounding boundary; otherwise the exact path continues with the very same bits. The integers are therefore those of
# the exact sampler, not approximations of them.


# Piecewise polynomials for quantile functions, each with a proved bound on its error.
#
# Cells are ranges of the first 52 bits k of a uniform number u, which then lies in
# [k, k + 1] / 2**52. In a cell the quantile is approximated by a polynomial in (k + 1/2 - origin)
# with float64 coefficients; `error` bounds everything between the value that Horner's rule returns
# in IEEE arithmetic and the quantile at any u of the interval. Terms: `sampler.proof.md`.


HEAD_BITS = 52
# Few cells of a high degree: at the usual grid deeper tails, of probability 2**-12, are most of what is left to the
# exact path, and a table takes as long to build as some 700 exact draws. Flint has ten terms of a series.
DEGREE = 8
OCTAVES = 12
SUBCELLS = 8
TABLE_PRECISION = 128
_UNIT_ROUNDOFF_BITS = 53


class SmoothDistribution(TailQuantile, Protocol):
    """A distribution whose size |X| has an analytic density on the positive half line."""

    def size_density(self, x: arb_series) -> arb_series:
        """Return the density of |X| as a power series; the constant term may be a wide ball."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One polynomial: k from `start` on, coefficients in powers of (k + 1/2 - origin)."""

    start: int
    origin: float
    coefficients: tuple[float, ...]
    error: float


@dataclass(frozen=True, slots=True)
class Table:
    """Cells sorted by start; coefficients have shape (degree + 1, cells), lowest power first."""

    starts: NDArray[np.int64]
    origins: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, cells: list[Cell]) -> Table:
        """Return the table of these cells, with a first cell that sends the far tail to the exact path."""
        unknown = Cell(0, 0.0, (0.0,), math.inf)
        ordered = sorted([unknown, *cells], key=lambda cell: cell.start)
        width = max(len(cell.coefficients) for cell in ordered)
        padded = [cell.coefficients + (0.0,) * (width - len(cell.coefficients)) for cell in ordered]
        return cls(
            np.array([cell.start for cell in ordered], dtype=np.int64),
            np.array([cell.origin for cell in ordered]),
            np.ascontiguousarray(np.array(padded).T),
            np.array([cell.error for cell in ordered]),
        )

    def evaluate(self, heads: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the approximate quantiles of these heads and the bounds of their errors."""
        index = np.searchsorted(self.starts, heads, side="right") - 1
        # Both numbers are multiples of 1/2 below 2**52, so this difference is exact.
        offset = (heads.astype(np.float64) + 0.5) - self.origins[index]
        value = self.coefficients[-1][index]
        for row in self.coefficients[-2::-1]:
            value = value * offset + row[index]
        return value, self.errors[index]


def smooth_table(distribution: SmoothDistribution) -> Table:
    """Return the table of an analytic distribution: octaves of u, each cut into equal cells."""
    cells: list[Cell] = []
    with ctx.workprec(TABLE_PRECISION):
        for octave in range(OCTAVES):
            width = 2 ** (HEAD_BITS - 1 - octave) // SUBCELLS
            first = 2 ** (HEAD_BITS - 1 - octave)
            edges = [distribution.tail_quantile(_head(first + i * width)) for i in range(SUBCELLS + 1)]
            cells.extend(
                _smooth_cell(distribution, first + i * width, width, edges[i].union(edges[i + 1]))
                for i in range(SUBCELLS)
            )
    return Table.of(cells)


def linear_cell(start: int, stop: int, value: arb, slope: arb) -> Cell:
    """Return the cell of a quantile that equals value + slope * (head - start) on [start, stop].

    `value` and `slope` may depend on the piece but not on the head; `slope` is per unit of the head.
    """
    return _cell(start, float(start), [value, slope], arb(stop - start), abs(slope) / 2)


def blind_cell(start: int) -> Cell:
    """Return a cell that sends every draw to the exact path."""
    return Cell(start, 0.0, (0.0,), math.inf)


def _smooth_cell(distribution: SmoothDistribution, start: int, width: int, sizes: arb) -> Cell:
    """Return the Taylor cell about the middle of [start, start + width]; `sizes` holds its quantiles."""
    middle = start + width // 2
    half = arb(width) / 2
    centre = distribution.tail_quantile(_head(middle))
    taylor = [centre, *_inverse_derivatives(distribution, centre)[1 : DEGREE + 1]]
    anywhere = _inverse_derivatives(distribution, sizes)
    remainder = abs(anywhere[DEGREE + 1]) * half ** (DEGREE + 1)
    # The midpoint k + 1/2 stands for [k, k + 1]: the quantile moves by at most half a unit times its slope.
    return _cell(start, float(middle), taylor, half, remainder + abs(anywhere[1]) / 2)


def _inverse_derivatives(distribution: SmoothDistribution, size: arb) -> list[arb]:
    """Return balls of the Taylor coefficients of the quantile in the head, wherever it equals `size`."""
    length = DEGREE + 2
    density = _padded(distribution.size_density(arb_series([size, 1], length)), length)
    # The tail falls at the rate of the density: head(x) - head(size) = -2**52 * integral of the density.
    falls = [-(arb(2) ** HEAD_BITS) * density[i - 1] / i for i in range(1, length)]
    return _padded(arb_series([arb(0), *falls], length).reversion(), length)


def _padded(series: arb_series, length: int) -> list[arb]:
    """Return the first `length` coefficients; flint leaves out zeros at the end."""
    if series.prec < length:  # flint cuts series off at the length of its context, without a word
        raise ValueError("fewer terms than a bound of the error needs")
    known = list(series.coeffs())[:length]
    return known + [arb(0)] * (length - len(known))


def _cell(start: int, origin: float, taylor: list[arb], reach: arb, other: arb) -> Cell:
    """Return the cell with rounded coefficients and the sum of all errors for |offset| <= reach."""
    rounded = tuple(float(coefficient.mid()) for coefficient in taylor)
    error, size, power = other, arb(0), arb(1)
    for coefficient, number in zip(taylor, rounded, strict=True):
        error += abs(coefficient - arb(number)) * power
        size += abs(arb(number)) * power
        power *= reach
    # Horner's rule: each coefficient meets at most 2 degree roundings (one more covers gamma_n > n u).
    error += size * (2 * len(rounded)) * arb(2) ** -_UNIT_ROUNDOFF_BITS
    return Cell(start, origin, rounded, _float_above(error))


def _float_above(ball: arb) -> float:
    """Return a float64 that is not below any point of a non-negative ball; infinity if unknown."""
    if not ball.is_finite():
        return math.inf
    # float() of the upper end may round down; one part in 2**40 more than covers it.
    return float(ball.abs_upper()) * (1 + 2.0**-40) + 2.0**-1000


def _head(head: int) -> arb:
    """Return head / 2**52 as an exact ball."""
    return arb((head, -HEAD_BITS))


def head_floor(u: arb) -> int | None:
    """Return floor(u * 2**52) where it is certain."""
    floor = (u * arb(2) ** HEAD_BITS).floor().unique_fmpz()
    return None if floor is None else int(floor)


BLOCK = 2**20  # draws whose words are read at once; bounds the memory
CHUNK = 2**15  # draws evaluated at once; keeps the work in the cache
FEW = 256  # fewer draws than this do not build a table; those that come often are vectors of some hundred
MOST_TABLES = 64
_HALF = Fraction(1, 2)
# Outside this range of scale / step a float64 product could overflow or lose its relative accuracy.
_RATIO_RANGE = (Fraction(1, 2**200), Fraction(2**100))
_SPREAD = 1 + 2.0**-20  # more than covers the roundings made while the bound itself is computed
_ROUNDINGS = (
    2.0**-51
)  # of the ratio, its product with the quantile, the shift and their sum: 2**-52 beside size + 1
_MARGIN = 0.5 - 2.0**-40
_FITS = 2**62  # sums of a draw and a value below this fit in 64 bits


class TabledDistribution(TailQuantile, Protocol):
    """A distribution that also has a certified table; distributions are compared by value, so tables are shared."""

    def table(self) -> Table:
        """Return a newly built table."""
        ...

    def __hash__(self) -> int: ...


_TABLES: dict[TabledDistribution, Table] = {}


def release_values(
    distribution: TabledDistribution,
    scale: Fraction,
    values: Sequence[Fraction],
    grid: Grid,
    source: BitSource,
) -> list[Fraction]:
    """Return the grid points nearest to value + scale * X, with an exact draw X of its own for every value."""
    parts = [split(value, grid) for value in values]
    table, ratio = _table_for(distribution, scale, len(values), grid)
    drawn = _in_blocks(distribution, ratio, len(values), source, table, [rest for _, rest in parts])
    return [grid.value(whole + int(own)) for (whole, _), own in zip(parts, drawn, strict=True)]


def draw_units(
    distribution: TabledDistribution, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return `count` draws of scale * X rounded to the grid, in steps; Python ints if one needs 63 bits."""
    table, ratio = _table_for(distribution, scale, count, grid)
    return _in_blocks(distribution, ratio, count, source, table)


def draw_units_exactly(
    distribution: TailQuantile, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return what `draw_units` returns, bit for bit, without its float64 path."""
    return _in_blocks(distribution, scale / grid.step, count, source, None)


def shared_table(distribution: TabledDistribution) -> Table:
    """Return the table of a distribution, built at its first use."""
    if distribution not in _TABLES:
        while len(_TABLES) >= MOST_TABLES:
            del _TABLES[next(iter(_TABLES))]
        _TABLES[distribution] = distribution.table()
    return _TABLES[distribution]


def _table_for(
    distribution: TabledDistribution, scale: Fraction, count: int, grid: Grid
) -> tuple[Table | None, Fraction]:
    """Return the table for so many draws, None where the exact path takes them all, and the scale in steps."""
    ratio = scale / grid.step
    if not _RATIO_RANGE[0] <= ratio <= _RATIO_RANGE[1]:
        return None, ratio
    return _TABLES.get(distribution) if count < FEW else shared_table(distribution), ratio


def _in_blocks(
    distribution: TailQuantile,
    ratio: Fraction,
    count: int,
    source: BitSource,
    table: Table | None,
    offsets: Sequence[Fraction] | None = None,
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return floor(offset + ratio * X) for every draw, offsets being in [0, 1), or 1/2.

    Each block reads its words first and further bits after them.
    """
    check_count(count)
    units = np.zeros(count, dtype=np.int64)
    large: dict[int, int] = {}
    for start in range(0, count, BLOCK):
        words = source.words(min(BLOCK, count - start))
        block = units[start : start + len(words)]
        own = None if offsets is None else offsets[start : start + len(words)]
        open_ = (
            np.arange(len(words))
            if table is None
            else _settle_in_float(table, float(ratio), words, _shifts(own, len(words)), block)
        )
        for first in range(0, len(open_), CHUNK):
            indices = open_[first : first + CHUNK]
            rests = [_HALF if own is None else own[i] for i in indices]
            uniforms = [SignedUniform.of_word(int(words[i])) for i in indices]
            settled = settle(distribution, ratio, rests, uniforms, source)
            for i, drawn in zip(indices, settled, strict=True):
                if abs(drawn) < _FITS:
                    block[i] = drawn
                else:
                    large[start + int(i)] = drawn
    if not large:
        return units
    wide = units.astype(object)
    for i, drawn in large.items():
        wide[i] = drawn
    return wide


def _shifts(offsets: Sequence[Fraction] | None, count: int) -> NDArray[np.float64]:
    """Return offset - 1/2, rounded once: Python divides whole numbers correctly."""
    if offsets is None:
        return np.zeros(count)
    return np.array([(2 * one.numerator - one.denominator) / (2 * one.denominator) for one in offsets])


def _settle_in_float(
    table: Table,
    ratio: float,
    words: NDArray[np.uint64],
    shifts: NDArray[np.float64],
    units: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Write every draw that float64 settles into `units`; return the indices of the others."""
    undecided: list[NDArray[np.int64]] = []
    tail, unseen = np.uint64((1 << TAIL_BITS) - 1), np.uint64(TAIL_BITS - HEAD_BITS)
    for start in range(0, len(words), CHUNK):
        chunk = words[start : start + CHUNK]
        heads = ((chunk & tail) >> unseen).astype(np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            quantile, error = table.evaluate(heads)
            size = quantile * ratio
            bound = (error * ratio + (np.abs(size) + 1.0) * _ROUNDINGS) * _SPREAD
            centre = np.where(chunk >> np.uint64(TAIL_BITS), -size, size) + shifts[start : start + CHUNK]
            nearest = np.rint(centre)
            # A bound that is not a number compares as False, so nothing unknown is ever accepted.
            settled = np.abs(centre - nearest) + bound < _MARGIN
        units[start : start + len(chunk)] = np.where(settled, nearest, 0.0).astype(np.int64)
        undecided.append(start + np.flatnonzero(~settled))
    return np.concatenate(undecided) if undecided else np.empty(0, dtype=np.int64)


Reals = NDArray[np.float64]

_LEAST_SCALE = 1e-150  # its square is a double too


class UnitDistribution(TabledDistribution, Protocol):
    """A symmetric distribution of scale one; the float64 methods serve intervals and tests, never a draw."""

    @property
    def variance(self) -> float:
        """The variance; infinite where it does not exist."""
        ...

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        ...

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        ...

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        ...

    def breakpoints(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of [low, high] where the density is not smooth, sorted; None where they exceed `most`."""
        ...


class Peaked:
    """A unit distribution that is smooth but for its peak."""

    __slots__ = ()

    def table(self: SmoothDistribution) -> Table:
        """Return a newly built table."""
        return smooth_table(self)

    def breakpoints(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)


class Described:
    """A mechanism whose facts are its name in records and its fields."""

    __slots__ = ()
    name: ClassVar[str]

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text; `mechanism_from_dict` reads it back.

        Returns
        -------
        dict of str to str
            Name of the mechanism and its parameters.
        """
        own = {each.name: str(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]
        return {"mechanism": self.name, **own}


class Noise(Hashed, ABC):
    """Additive noise scale * X, with X from a distribution of scale one."""

    __slots__ = ()

    @property
    @abstractmethod
    def unit(self) -> UnitDistribution:
        """The distribution of scale one."""

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The exact factor of the unit distribution."""

    @property
    def _width(self) -> float:
        """The scale as a double that can be divided by: large epsilons give some smooth noise less than that."""
        return max(float(self.scale), _LEAST_SCALE)

    @property
    def standard(self) -> tuple[Noise, float]:
        """The noise of scale one, and the scale: noises that share the first are evaluated together."""
        return _of_scale_one(self.unit), self._width

    @property
    def variance(self) -> float:
        """The variance of the noise; rounding to the grid adds at most step**2 / 4."""
        return self.unit.variance * self._width**2

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the noise at x.

        Parameters
        ----------
        x : array-like
            Points, in units of the released number.

        Returns
        -------
        ndarray
            Log densities, of the shape of the points.
        """
        scale = self._width
        return self.unit.log_density(_reals(x) / scale) - log(scale)

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(noise <= x).

        Parameters
        ----------
        x : array-like
            Points, in units of the released number.

        Returns
        -------
        ndarray
            Probabilities, of the shape of `x`.
        """
        return self.unit.cdf(_reals(x) / self._width)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(noise <= x) = p.

        Parameters
        ----------
        p : array-like
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles, in units of the released number.
        """
        p = _reals(p)
        size = self.unit.upper_quantile(2 * np.minimum(p, 1 - p))
        return np.where(p < 0.5, -size, size) * self._width

    def breakpoints(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of an interval where the density is not smooth.

        Parameters
        ----------
        low, high : float
            Ends of the interval, in units of the released number.
        most : int
            The largest number of points to list.

        Returns
        -------
        ndarray or None
            Points in order; None where there are more than `most`.
        """
        scale = self._width
        found = self.unit.breakpoints(low / scale, high / scale, most)
        return None if found is None else found * scale

    def release(self, value: Fraction, grid: Grid, source: BitSource) -> Fraction:
        """Return the grid point nearest to value plus noise; an exact draw.

        Parameters
        ----------
        value : Fraction
            The number to release.
        grid : Grid
            Grid of the released number; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        Fraction
            The released number.
        """
        return self.release_all([value], grid, source)[0]

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to values plus noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The numbers to release, with independent noise.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        list of Fraction
            The released numbers.
        """
        return release_values(self.unit, self.scale, values, grid, source)

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return noise to add to values that are whole numbers of steps, in grid steps; exact draws.

        Values must be below 2**62 steps in size. The array is int64, or holds Python ints where a draw needs
        more than 62 bits.

        Parameters
        ----------
        count : int
            Number of draws.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        ndarray
            Whole numbers of steps.

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        return draw_units(self.unit, self.scale, count, grid, source)


@dataclass(frozen=True, slots=True, init=False)
class PureNoise(Noise, Described):
    """Noise of a known sensitivity and a pure epsilon.

    Parameters
    ----------
    sensitivity : number
        Largest change of the number when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the number when one person's data change.
    epsilon : Fraction
        Privacy loss of one release.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101).
    """

    sensitivity: Fraction
    epsilon: Fraction

    def __init__(self, sensitivity: Number, epsilon: Number) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.epsilon)


@dataclass(frozen=True, slots=True)
class ScaledNoise(Noise):
    """The noise of a smooth-sensitivity mechanism at one scale; as public as that scale is.

    `Lomax.distribution` returns it.

    Attributes
    ----------
    distribution : UnitDistribution
        The distribution of scale one.
    factor : Fraction
        Its exact factor: smooth sensitivity over smoothness.
    """

    distribution: UnitDistribution
    factor: Fraction

    def __hash__(self) -> int:
        return self._hash_of(self.factor)

    @property
    def unit(self) -> UnitDistribution:
        """The distribution of scale one."""
        return self.distribution

    @property
    def scale(self) -> Fraction:
        """The exact factor of the unit distribution."""
        return self.factor


@lru_cache(maxsize=1024)
def _of_scale_one(unit: UnitDistribution) -> ScaledNoise:
    """Return the noise of scale one, the same object for the same distribution."""
    return ScaledNoise(unit, Fraction(1))


def _reals(x: ArrayLike) -> Reals:
    return np.asarray(x, dtype=np.float64)
