"""Laplace noise that several sites add up, each drawing a share of it. Proof: summed_laplace.proof.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt
from typing import ClassVar, TypeVar

import numpy as np
from flint import arb, ctx
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.mechanisms.laplace import Laplace, LaplaceDistribution
from counterveil.mechanisms.noise import (
    GUARD_BITS,
    WORD_BITS,
    BitSource,
    Grid,
    Reals,
    SignedUniform,
    certain_floor,
    check_count,
    exact_ball,
    special,
)
from counterveil.privacy import Number, PureEvent

MOST_SITES = 100
Found = TypeVar("Found")
# Tails are kept at so many points up to where they leave the doubles.
_POINTS, _FAR = 20_000, 700.0


@dataclass(frozen=True, slots=True)
class SummedDistribution(LaplaceDistribution):
    """G - G' for G, G' of the Gamma distribution of a shape of at least one, in double precision: for intervals alone.

    Its density is |x|^(r - 1/2) K_(r - 1/2)(|x|) / (sqrt(pi) Gamma(r) 2^(r - 1/2)), r being the shape.
    """

    shape: Fraction

    @property
    def variance(self) -> float:
        """The variance."""
        return 2 * float(self.shape)

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        return np.log(_scaled_density(float(self.shape), np.abs(x))) - np.abs(x)

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        places, tails = _tails(self.shape)
        tail = np.exp(np.interp(np.abs(x), places, tails, right=-np.inf))
        return np.where(x < 0, tail, 1 - tail)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        places, tails = _tails(self.shape)
        with np.errstate(divide="ignore"):
            return np.interp(-np.log(u / 2), -tails, places, right=np.inf)


@dataclass(frozen=True, slots=True)
class SummedLaplace(Laplace):
    """Laplace noise that several sites add up, each drawing a share of it.

    The shares of `honest` sites are Laplace noise of scale sensitivity / epsilon together. The methods that
    draw give one site's share; variance and quantiles are those of the sum of all shares.

    Parameters
    ----------
    sensitivity : number
        Largest change of the sum, with what rounding to the grid adds, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee: at least 1 and at most `sites`.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the sum.
    epsilon : Fraction
        Privacy loss of one release.
    sites : int
        Number of sites that draw shares.
    honest : int
        Number of sites whose shares together give the guarantee.

    Raises
    ------
    CounterveilError
        Parameters that are not positive (CV-P100, CV-P101), or numbers of sites that do not fit (CV-P204).

    Notes
    -----
    Proof: ``mechanisms/summed_laplace.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import SummedLaplace
    >>> SummedLaplace(sensitivity=1, epsilon=1, sites=3, honest=3).variance
    2.0
    """

    name: ClassVar[str] = "summed_laplace"
    sites: int
    honest: int

    def __init__(self, sensitivity: Number, epsilon: Number, sites: int, honest: int) -> None:
        Laplace.__init__(self, sensitivity, epsilon)
        check_sites(sites, honest)
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "honest", honest)

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.epsilon, self.unit.shape)

    @property
    def unit(self) -> SummedDistribution:
        """The distribution of the sum at scale one."""
        return SummedDistribution(Fraction(self.sites, self.honest))

    @property
    def event(self) -> PureEvent:  # type: ignore[override]
        """What one release costs: discrete noise has not the profile of Laplace noise."""
        return PureEvent(self.epsilon)

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
        decay = grid.step / self.scale
        return np.array([draw_share(decay, self.honest, source) for _ in range(count)], dtype=object)


def check_sites(sites: int, honest: int) -> None:
    """Raise CV-P204 for numbers of sites that do not fit."""
    if not 1 <= honest <= sites <= MOST_SITES:
        raise refusal("CV-P204", sites=sites, honest=honest, most=MOST_SITES)


def rounded_plus(values: Sequence[Fraction], shares: Iterable[int], grid: Grid) -> list[Fraction]:
    """Return the grid points nearest to values, each plus a share in steps."""
    return [grid.value(grid.units(one) + int(own)) for one, own in zip(values, shares, strict=True)]


# Exact draws: a share is a Poisson number of jumps of the logarithmic distribution, each with a sign.


def draw_share(decay: Fraction, honest: int, source: BitSource) -> int:
    """Return A - B for independent A, B that are negative binomial of shape 1/honest and p = exp(-decay)."""
    return sum(_jump(decay, source) for _ in range(_poisson(decay, Fraction(2, honest), source)))


def _rate(decay: Fraction) -> arb:
    """Return a ball of -ln(1 - exp(-decay))."""
    return -(-(-exact_ball(decay)).expm1()).log()


def _poisson(decay: Fraction, factor: Fraction, source: BitSource) -> int:
    """Return a Poisson number of mean factor * _rate(decay): the first j whose cumulated probability exceeds u."""
    u = SignedUniform.of_word(source.bits(WORD_BITS))

    def first() -> int | None:
        mean, place, j = exact_ball(factor) * _rate(decay), u.ball(), 0
        term = total = (-mean).exp()
        while not place < total:
            if not place > total:
                return None
            j += 1
            term = term * mean / j
            total = total + term
        return j

    return certain(first, [u], source)


def _jump(decay: Fraction, source: BitSource) -> int:
    """Return a logarithmic number with a random sign: 1 + floor(ln v / ln q) at q = 1 - exp(-u rate)."""
    u, v = (SignedUniform.of_word(source.bits(WORD_BITS)) for _ in range(2))

    def floor() -> int | None:
        return certain_floor(v.ball().log() / (-(-u.ball() * _rate(decay)).exp()).log1p())

    size = 1 + certain(floor, [u, v], source)
    return -size if u.negative else size


def certain(find: Callable[[], Found | None], uniforms: list[SignedUniform], source: BitSource) -> Found:
    """Return what all numbers of the uniforms' intervals lead to, reading further bits while they do not agree."""
    while True:
        with ctx.workprec(max((one.bits for one in uniforms), default=WORD_BITS) + 2 * GUARD_BITS):
            found = find()
        if found is not None:
            return found
        for uniform in uniforms:
            uniform.refine(source)


def _scaled_density(shape: float, size: Reals) -> Reals:
    """Return the density of G - G' at sizes x >= 0, times exp(x)."""
    order, safe = shape - 0.5, np.maximum(size, 1e-12)
    constant = 0.5 * log(pi) + lgamma(shape) + order * log(2)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.exp(order * np.log(safe) - constant) * special("kve", order, safe)
    # So near to zero that the Bessel function leaves the doubles, the density is that at zero.
    limit = exp(lgamma(order) - lgamma(shape)) / (2 * sqrt(pi))
    return np.where(np.isfinite(found), found, limit * np.exp(np.minimum(safe, 1.0)))


@lru_cache(maxsize=16)
def _tails(shape: Fraction) -> tuple[Reals, Reals]:
    """Return places from 0 on, and ln P(G - G' > place), which is all but linear between them."""
    places = np.expm1(np.linspace(0.0, log(1 + 200 * _FAR), _POINTS)) / 200
    nodes, weights = leggauss(6)
    widths = np.diff(places, append=places[-1] + 60)
    offsets = widths[:, None] * (nodes + 1) / 2
    scaled = (
        (_scaled_density(float(shape), places[:, None] + offsets) * np.exp(-offsets) @ weights) * widths / 2
    )
    falls = np.exp(-widths)
    for i in range(_POINTS - 2, -1, -1):
        scaled[i] += scaled[i + 1] * falls[i]
    return places, np.log(scaled) - places
