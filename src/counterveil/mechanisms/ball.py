"""l2-ball noise: pure epsilon for a vector of known l2 sensitivity. Proof: ball.proof.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from counterveil.errors import ParameterError, shown
from counterveil.mechanisms.gaussian import NormalDistribution
from counterveil.mechanisms.laplace import LaplaceDistribution
from counterveil.mechanisms.noise import Reals
from counterveil.mechanisms.source import (
    WORD_BITS,
    BitSource,
    Grid,
    SignedUniform,
    certain_floor,
    exact_ball,
    positive_epsilon,
    positive_sensitivity,
    split,
    working_bits,
)
from counterveil.privacy import Number, PureEvent

MOST_DIMENSIONS = 10_000


@dataclass(frozen=True, slots=True)
class Ball:
    """Noise of density proportional to exp(-epsilon |z| / sensitivity), |z| the Euclidean norm."""

    sensitivity: Fraction
    epsilon: Fraction
    dimension: int

    def __init__(self, sensitivity: Number, epsilon: Number, dimension: int) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "dimension", _checked_dimension(dimension))

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "ball"

    @property
    def scale(self) -> Fraction:
        """sensitivity / epsilon, the scale of the norm."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """The variance of one coordinate, (dimension + 1) scale^2."""
        return (self.dimension + 1) * float(self.scale) ** 2

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)

    def log_density(self, z: ArrayLike) -> Reals:
        """Return the log density at vectors z, whose last axis has `dimension` entries."""
        norm = np.linalg.norm(np.asarray(z, dtype=np.float64), axis=-1)
        d, scale = self.dimension, float(self.scale)
        sphere = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        constant = sphere + math.lgamma(d) + d * math.log(scale)
        return np.asarray(-norm / scale - constant)

    def release(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> tuple[Fraction, ...]:
        """Return the grid points nearest to values + noise, coordinate by coordinate; an exact draw."""
        if len(values) != self.dimension:
            raise ParameterError(
                "CV-P111",
                "the vector and the noise have different dimensions",
                expected=f"{self.dimension} values",
                got=f"{len(values)} values",
                fix="build the mechanism with the number of values that are released together",
            )
        parts = [split(Fraction(value), grid) for value in values]
        steps = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]
        directions = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]
        ratio = self.scale / grid.step
        while True:
            floors = self._floors(ratio, [rest for _, rest in parts], steps, directions)
            if floors is not None:
                return tuple(grid.value(whole + n) for (whole, _), n in zip(parts, floors, strict=True))
            for uniform in (*steps, *directions):
                uniform.refine(source)

    def _floors(
        self,
        ratio: Fraction,
        rests: list[Fraction],
        steps: list[SignedUniform],
        directions: list[SignedUniform],
    ) -> list[int] | None:
        """Return the floors of rest + ratio * coordinate if all are certain, else None."""
        with ctx.workprec(working_bits(steps[0].bits, ratio)):
            # A sum of exponentials has the Gamma distribution of the norm; normals give a uniform direction.
            norm = sum((LaplaceDistribution().tail_quantile(uniform.ball()) for uniform in steps), arb(0))
            normals = [uniform.signed(NormalDistribution()) for uniform in directions]
            length = sum((normal * normal for normal in normals), arb(0)).sqrt()
            factor = exact_ball(ratio) * norm / length
            floors: list[int] = []
            for rest, normal in zip(rests, normals, strict=True):
                floor = certain_floor(exact_ball(rest) + factor * normal)
                if floor is None:
                    return None
                floors.append(floor)
        return floors

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        return {
            "mechanism": self.name,
            "sensitivity": str(self.sensitivity),
            "epsilon": str(self.epsilon),
            "dimension": str(self.dimension),
        }


def _checked_dimension(value: int) -> int:
    """Return the dimension, or raise CV-P105."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_DIMENSIONS:
        raise ParameterError(
            "CV-P105",
            "the dimension of a vector must be an integer in range",
            expected=f"an int, 1 <= dimension <= {MOST_DIMENSIONS}",
            got=f"dimension={shown(value)}",
            fix="pass the number of values that are released together",
        )
    return value
