"""Laplace noise that several sites add up, each drawing a share of it. Proof: summed_laplace.proof.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt
from typing import TypeVar

import numpy as np
from flint import arb, ctx
from numpy.polynomial.laguerre import laggauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray

from counterveil.errors import refusal
from counterveil.mechanisms.noise import Reals
from counterveil.mechanisms.source import (
    GUARD_BITS,
    WORD_BITS,
    BitSource,
    Grid,
    SignedUniform,
    certain_floor,
    check_count,
    exact_ball,
    hash_of,
    positive_epsilon,
    positive_sensitivity,
    special,
)
from counterveil.privacy import Number, PureEvent

MOST_SITES = 100
Found = TypeVar("Found")
# Tails are kept at so many points up to where they leave the doubles, and searched in so many Newton steps at most.
_POINTS, _FAR, _STEPS, _ENOUGH = 3000, 700.0, 60, 1e-13


@dataclass(frozen=True, slots=True)
class SummedLaplace:
    """The sum of the shares of all `sites`; those of `honest` of them are Laplace noise of the scale together.

    `sensitivity` has what rounding to the grid adds in it. One share is drawn at a time; the sum's density is that of
    scale (G - G'), G and G' of the Gamma distribution of shape sites / honest.
    """

    sensitivity: Fraction
    epsilon: Fraction
    sites: int
    honest: int

    def __init__(self, sensitivity: Number, epsilon: Number, sites: int, honest: int) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        if not 1 <= honest <= sites <= MOST_SITES:
            raise refusal("CV-P204", sites=sites, honest=honest, most=MOST_SITES)
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "honest", honest)

    def __hash__(self) -> int:
        return hash_of(self.sensitivity, self.epsilon, self._shape)

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "summed_laplace"

    @property
    def scale(self) -> Fraction:
        """sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return 2 * float(self._shape) * float(self.scale) ** 2

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the sum at x."""
        size = np.abs(np.asarray(x, np.float64)) / float(self.scale)
        return np.log(_scaled_density(float(self._shape), size)) - size - log(self.scale)

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(sum <= x)."""
        x = np.asarray(x, np.float64)
        tail = np.exp(_log_tail(self._shape, np.abs(x) / float(self.scale)))
        return np.where(x < 0, tail, 1 - tail)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(sum <= x) = p."""
        p = np.asarray(p, np.float64)
        with np.errstate(divide="ignore"):
            goal = np.log(np.minimum(p, 1 - p))
        places, tails, _ = _tail_table(self._shape)
        x, shape = np.interp(-goal, -tails, places, right=np.inf), float(self._shape)
        for _ in range(_STEPS):
            near = np.where(np.isfinite(x), x, 0.0)
            log_tail = _log_tail(self._shape, near)
            slope = np.exp(np.log(_scaled_density(shape, near)) - near - log_tail)
            step = np.where(np.isfinite(x), (log_tail - goal) / slope, 0.0)
            x = np.maximum(x + step, 0.0)
            if np.all(np.abs(step) <= _ENOUGH * (1 + near)):
                break
        return np.asarray(np.where(p < 0.5, -x, x) * float(self.scale))

    def kinks(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to one site's values, each plus its share of the noise."""
        shares = self.draw(len(values), grid, source)
        return [
            grid.value(grid.units(value) + int(share)) for value, share in zip(values, shares, strict=True)
        ]

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.object_]:
        """Return one site's shares of the noise of `count` sums, in grid steps; exact draws."""
        check_count(count)
        decay = grid.step / self.scale
        return np.array([draw_share(decay, self.honest, source) for _ in range(count)], dtype=object)

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        return {
            "mechanism": self.name,
            "sensitivity": str(self.sensitivity),
            "epsilon": str(self.epsilon),
            "sites": str(self.sites),
            "honest": str(self.honest),
        }

    @property
    def _shape(self) -> Fraction:
        return Fraction(self.sites, self.honest)


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

    return _certain(first, [u], source)


def _jump(decay: Fraction, source: BitSource) -> int:
    """Return a logarithmic number with a random sign: 1 + floor(ln v / ln q) at q = 1 - exp(-u rate)."""
    u, v = (SignedUniform.of_word(source.bits(WORD_BITS)) for _ in range(2))

    def floor() -> int | None:
        return certain_floor(v.ball().log() / (-(-u.ball() * _rate(decay)).exp()).log1p())

    size = 1 + _certain(floor, [u, v], source)
    return -size if u.negative else size


def _certain(find: Callable[[], Found | None], uniforms: list[SignedUniform], source: BitSource) -> Found:
    """Return what all numbers of the uniforms' intervals lead to, reading further bits while they do not agree."""
    while True:
        with ctx.workprec(uniforms[0].bits + 2 * GUARD_BITS):
            found = find()
        if found is not None:
            return found
        for uniform in uniforms:
            uniform.refine(source)


# The sum in double precision, for intervals: |x|^(r - 1/2) K_(r - 1/2)(|x|) / (sqrt(pi) Gamma(r) 2^(r - 1/2)).


def _scaled_density(shape: float, size: Reals) -> Reals:
    """Return the density of G - G' at sizes x >= 0, times exp(x)."""
    order = shape - 0.5
    safe = np.maximum(size, 1e-12)
    constant = 0.5 * log(pi) + lgamma(shape) + order * log(2)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.exp(order * np.log(safe) - constant) * special("kve", order, safe)
    # So near to zero that the Bessel function leaves the doubles, the density is that at zero.
    limit = exp(lgamma(order) - lgamma(shape)) / (2 * sqrt(pi))
    return np.where(np.isfinite(found), found, limit * np.exp(np.minimum(safe, 1.0)))


def _log_tail(shape: Fraction, size: Reals) -> Reals:
    """Return ln P(G - G' > size) for sizes from 0 on."""
    places, tails, slopes = _tail_table(shape)
    at = np.clip(np.searchsorted(places, size, "right") - 1, 0, _POINTS - 2)
    width = places[at + 1] - places[at]
    t = np.minimum((size - places[at]) / width, 1.0)
    # Hermite's cubic through ln(tail) + size, which hardly bends.
    ends = (1 + 2 * t) * (1 - t) ** 2 * (tails + places)[at] + t**2 * (3 - 2 * t) * (tails + places)[at + 1]
    bend = width * t * (1 - t) * ((1 - t) * slopes[at] - t * slopes[at + 1])
    return np.asarray(np.where(size <= places[-1], ends + bend - size, -np.inf))


@lru_cache(maxsize=16)
def _tail_table(shape: Fraction) -> tuple[Reals, Reals, Reals]:
    """Return places from 0 on, ln of the tails there, and the slopes of ln(tail) + place."""
    r = float(shape)
    places = np.expm1(np.linspace(0.0, log(1 + 200 * _FAR), _POINTS)) / 200
    nodes, weights = leggauss(12)
    widths = np.diff(places)
    offsets = widths[:, None] * (nodes + 1) / 2
    parts = (_scaled_density(r, places[:-1, None] + offsets) * np.exp(-offsets) @ weights) * widths / 2
    far, far_weights = laggauss(32)
    scaled = np.empty(_POINTS)
    scaled[-1] = _scaled_density(r, places[-1] + far) @ far_weights
    for i in range(_POINTS - 2, -1, -1):
        scaled[i] = parts[i] + scaled[i + 1] * np.exp(-widths[i])
    return places, np.log(scaled) - places, 1 - _scaled_density(r, places) / scaled
