"""l2-ball noise: pure epsilon for a vector of known l2 sensitivity. Proof: ball.proof.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from counterveil.errors import refusal
from counterveil.mechanisms.gaussian import NormalDistribution
from counterveil.mechanisms.laplace import LaplaceDistribution
from counterveil.mechanisms.noise import (
    WORD_BITS,
    BitSource,
    Described,
    Grid,
    Hashed,
    Reals,
    SignedUniform,
    certain_floor,
    exact_ball,
    positive_epsilon,
    positive_sensitivity,
    signed_draws,
    split,
    working_bits,
)
from counterveil.privacy import Number, PureEvent

MOST_DIMENSIONS = 10_000


@dataclass(frozen=True, slots=True, init=False)
class VectorNoise(Hashed, Described):
    """Noise of density proportional to exp(-epsilon |z| / sensitivity) for some norm of the vector z.

    Parameters
    ----------
    sensitivity : number
        Largest change of the vector in the mechanism's norm when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    dimension : int
        Number of coordinates, from 1 to 10000.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the vector in the mechanism's norm.
    epsilon : Fraction
        Privacy loss of one release.
    dimension : int
        Number of coordinates.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101), or a dimension out of range
        (CV-P105).
    """

    sensitivity: Fraction
    epsilon: Fraction
    dimension: int

    def __init__(self, sensitivity: Number, epsilon: Number, dimension: int) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "dimension", checked_dimension(dimension))

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.epsilon, self.dimension)

    @property
    def scale(self) -> Fraction:
        """The scale of the norm, sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Ball(VectorNoise):
    """Noise of the l2 ball: epsilon-DP for a vector of known Euclidean sensitivity.

    Density proportional to exp(-epsilon |z|_2 / sensitivity); the variance of a coordinate is (d + 1)
    (sensitivity / epsilon)^2.

    Parameters
    ----------
    sensitivity : number
        Largest change of the vector in the mechanism's norm when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    dimension : int
        Number of coordinates, from 1 to 10000.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the vector in the mechanism's norm.
    epsilon : Fraction
        Privacy loss of one release.
    dimension : int
        Number of coordinates.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101), or a dimension out of range
        (CV-P105).

    Notes
    -----
    Proof: ``mechanisms/ball.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import Ball
    >>> Ball(sensitivity=1, epsilon=1, dimension=5).variance
    6.0
    """

    name: ClassVar[str] = "ball"

    @property
    def variance(self) -> float:
        """The variance of one coordinate, (dimension + 1) scale^2."""
        return (self.dimension + 1) * float(self.scale) ** 2

    def log_density(self, z: ArrayLike) -> Reals:
        """Return the log density at vectors z.

        Parameters
        ----------
        z : array-like
            Vectors; the last axis has `dimension` entries.

        Returns
        -------
        ndarray
            Log densities, without the last axis.
        """
        norm = np.linalg.norm(np.asarray(z, dtype=np.float64), axis=-1)
        d, scale = self.dimension, float(self.scale)
        sphere = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        constant = sphere + math.lgamma(d) + d * math.log(scale)
        return np.asarray(-norm / scale - constant)

    def release(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> tuple[Fraction, ...]:
        """Return the grid points nearest to values plus noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The vector to release.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        tuple of Fraction
            The released numbers.

        Raises
        ------
        CounterveilError
            A vector of another length than `dimension` (CV-P111).
        """
        check_length(values, self.dimension)
        steps = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]
        directions = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]

        def noise(ratio: Fraction) -> list[arb]:
            # Normals give a uniform direction.
            normals = signed_draws(NormalDistribution(), directions)
            length = sum((normal * normal for normal in normals), arb(0)).sqrt()
            factor = exact_ball(ratio) * gamma(steps) / length
            return [factor * normal for normal in normals]

        return nearest_points(values, self.scale, grid, [*steps, *directions], noise, source)


def gamma(steps: Sequence[SignedUniform]) -> arb:
    """Return a ball of a sum of exponentials, which has the Gamma distribution of that many."""
    exponential = LaplaceDistribution()
    intervals = [uniform.ball() for uniform in steps]
    return sum((exponential.tail_quantile(interval) for interval in intervals), arb(0))


def nearest_points(
    values: Sequence[Fraction],
    scale: Fraction,
    grid: Grid,
    uniforms: Sequence[SignedUniform],
    noise: Callable[[Fraction], list[arb]],
    source: BitSource,
) -> tuple[Fraction, ...]:
    """Return the grid points nearest to values + noise, reading further bits until all of them are certain.

    `noise` returns balls of the noise in steps of the grid, given the scale in steps.
    """
    parts, ratio = [split(Fraction(value), grid) for value in values], scale / grid.step
    while True:
        with ctx.workprec(working_bits(uniforms[0].bits, ratio)):
            added = noise(ratio)
            floors = [
                certain_floor(exact_ball(rest) + own) for (_, rest), own in zip(parts, added, strict=True)
            ]
        known = [floor for floor in floors if floor is not None]
        if len(known) == len(parts):
            return tuple(grid.value(whole + n) for (whole, _), n in zip(parts, known, strict=True))
        for uniform in uniforms:
            uniform.refine(source)


def check_length(values: Sequence[Fraction], dimension: int) -> None:
    """Raise CV-P111 for a vector of another length."""
    if len(values) != dimension:
        raise refusal("CV-P111", dimension=dimension, values=len(values))


def checked_dimension(value: int) -> int:
    """Return the dimension, or raise CV-P105."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_DIMENSIONS:
        raise refusal("CV-P105", most_dimensions=MOST_DIMENSIONS, value=value)
    return value
