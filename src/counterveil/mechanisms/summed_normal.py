"""Normal noise and l2-ball noise that several sites add up, each drawing a share. Proof: summed_normal.proof.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import ClassVar, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.mechanisms.ball import VectorNoise, check_length, gamma
from counterveil.mechanisms.gaussian import Gaussian
from counterveil.mechanisms.noise import (
    WORD_BITS,
    BitSource,
    Grid,
    SignedUniform,
    certain_floor,
    check_count,
    exact_ball,
)
from counterveil.mechanisms.summed_laplace import certain, check_sites, rounded_plus
from counterveil.numerics.arrays import sqrt_up
from counterveil.privacy import Number

# What every share has at least as its variance, in squared steps: sums of discrete normal numbers so wide are discrete
# normal numbers, and rounded normal ones, but for a factor that a grid step exceeds up to this mu.
_LEAST_VARIANCE, _MOST_MU = 1 << 16, 2000
# A real number as the uniform numbers that it is found from and a ball of it, as narrow as those are.
_Drawn: TypeAlias = tuple[list[SignedUniform], Callable[[], arb]]


@dataclass(frozen=True, slots=True)
class SummedGaussian(Gaussian):
    """Normal noise that several sites add up, each drawing a share of it.

    The shares of `honest` sites have the standard deviation sensitivity / mu together. The methods that draw
    give one site's share; variance and quantiles are those of the sum of all shares.

    Parameters
    ----------
    sensitivity : number
        Largest Euclidean change of the sums, with what rounding to the grid adds, above 0.
    mu : number
        Sensitivity over standard deviation, above 0.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee: at least 1 and at most `sites`.

    Attributes
    ----------
    sensitivity : Fraction
        Largest Euclidean change of the sums.
    mu : Fraction
        Sensitivity over standard deviation.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee.

    Raises
    ------
    CounterveilError
        Parameters that are not positive (CV-P100, CV-P102), a mu beyond the proof (CV-P160), or numbers of
        sites that do not fit (CV-P204).

    Notes
    -----
    Proof: ``mechanisms/summed_normal.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import SummedGaussian
    >>> SummedGaussian(sensitivity=1, mu=1, sites=3, honest=3).variance
    1.0
    """

    name: ClassVar[str] = "summed_gaussian"
    sites: int
    honest: int

    def __init__(self, sensitivity: Number, mu: Number, sites: int, honest: int) -> None:
        Gaussian.__init__(self, sensitivity, mu)
        check_sites(sites, honest)
        if self.mu > _MOST_MU:
            raise refusal("CV-P160", most=_MOST_MU, mu=mu)
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "honest", honest)

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.mu, self.sites, self.honest)

    @property
    def scale(self) -> Fraction:
        """The standard deviation of the sum of all shares."""
        return sqrt_up(Fraction(self.sites, self.honest)) * self.sensitivity / self.mu

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to one site's values plus its share of the noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The site's numbers.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        list of Fraction
            The released numbers.
        """
        return rounded_plus(values, self.draw(len(values), grid, source), grid)

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.object_]:
        """Return one site's shares of the noise of some sums, in grid steps; exact draws.

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
        check_count(count)
        own = (self.sensitivity / self.mu / grid.step) ** 2 / self.honest + _LEAST_VARIANCE
        return np.array(draw_normals(count, ([], partial(exact_ball, own)), source), dtype=object)


@dataclass(frozen=True, slots=True, init=False)
class SummedBall(VectorNoise):
    """Noise of the l2 ball that several sites add up, each drawing a share of it.

    The shares of `honest` sites are l2-ball noise of scale sensitivity / epsilon together. `release_all`
    gives one site's share; the variance is that of the sum of all shares.

    Parameters
    ----------
    sensitivity : number
        Largest change of the vector in the mechanism's norm when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    dimension : int
        Number of coordinates, from 1 to 10000.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee: at least 1 and at most `sites`.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the vector in the mechanism's norm.
    epsilon : Fraction
        Privacy loss of one release.
    dimension : int
        Number of coordinates.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101), a dimension out of range
        (CV-P105), or numbers of sites that do not fit (CV-P204).

    Notes
    -----
    Proof: ``mechanisms/summed_normal.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import SummedBall
    >>> SummedBall(sensitivity=1, epsilon=1, dimension=5, sites=3, honest=3).variance
    6.0
    """

    name: ClassVar[str] = "summed_ball"
    sites: int
    honest: int

    def __init__(self, sensitivity: Number, epsilon: Number, dimension: int, sites: int, honest: int) -> None:
        VectorNoise.__init__(self, sensitivity, epsilon, dimension)
        check_sites(sites, honest)
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "honest", honest)

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.epsilon, self.dimension, self.sites, self.honest)

    @property
    def variance(self) -> float:
        """The variance of one coordinate of the sum of all shares."""
        return (self.dimension + 1) * self.sites / self.honest * float(self.scale) ** 2

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to one site's values plus its share of the noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The site's vector.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        list of Fraction
            The released numbers.

        Raises
        ------
        CounterveilError
            A vector of another length than `dimension` (CV-P111).
        """
        check_length(values, self.dimension)
        uniforms, mixing = draw_gamma(Fraction(self.dimension + 1, 2 * self.honest), source)
        squared = 2 * (self.scale / grid.step) ** 2
        kept: dict[int, arb] = {}

        def variance() -> arb:
            # The same for every coordinate until further bits are read.
            bits = uniforms[0].bits
            if bits not in kept:
                kept[bits] = exact_ball(squared) * mixing() + _LEAST_VARIANCE
            return kept[bits]

        return rounded_plus(values, draw_normals(self.dimension, (uniforms, variance), source), grid)


# Exact draws: discrete normal numbers by rejection from discrete Laplace ones, of a variance that may be random.


def draw_normals(count: int, variance: _Drawn, source: BitSource) -> list[int]:
    """Return independent whole numbers z, each of probability in proportion to exp(-z**2 / (2 variance))."""
    uniforms, ball = variance
    # Any width is right; one near the standard deviation is quick.
    width = 1 + isqrt(certain(lambda: certain_floor(ball().mid()), uniforms, source))
    found: list[int] = []
    while len(found) < count:
        own, chance = _uniform(source), _uniform(source)
        size = certain(partial(_size, own, width), [own], source)
        if own.negative and size == 0:
            continue
        if certain(partial(_accepted, chance, size, width, ball), [chance, *uniforms], source):
            found.append(-size if own.negative else size)
    return found


def draw_gamma(shape: Fraction, source: BitSource) -> _Drawn:
    """Return a number of the Gamma distribution of a rational shape: exponentials, one of them times a Beta number."""
    whole, rest = divmod(shape, 1)
    steps = [_uniform(source) for _ in range(whole)]
    if not rest:
        return steps, partial(gamma, steps)
    last, pair = _uniform(source), [_uniform(source), _uniform(source)]
    while not certain(partial(_inside, pair, rest), pair, source):
        pair = [_uniform(source), _uniform(source)]

    def ball() -> arb:
        x, y = _powers(pair, rest)
        return gamma(steps) + gamma([last]) * x / (x + y)

    return [*steps, last, *pair], ball


def _uniform(source: BitSource) -> SignedUniform:
    return SignedUniform.of_word(source.bits(WORD_BITS))


def _size(own: SignedUniform, width: int) -> int | None:
    """Return a whole number j of probability in proportion to exp(-j / width)."""
    return certain_floor(-width * own.ball().log())


def _accepted(chance: SignedUniform, size: int, width: int, ball: Callable[[], arb]) -> bool | None:
    variance = ball()
    off = size - variance / width
    return _below(chance.ball(), (-(off * off) / (2 * variance)).exp())


def _powers(pair: list[SignedUniform], rest: Fraction) -> tuple[arb, arb]:
    one, other = pair
    return one.ball() ** exact_ball(1 / rest), other.ball() ** exact_ball(1 / (1 - rest))


def _inside(pair: list[SignedUniform], rest: Fraction) -> bool | None:
    x, y = _powers(pair, rest)
    return _below(x + y, arb(1))


def _below(one: arb, other: arb) -> bool | None:
    """Return whether a number is below another, None where their balls do not tell."""
    return True if one < other else False if one > other else None
