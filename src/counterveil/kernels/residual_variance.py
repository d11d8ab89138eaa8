"""The variance of a weighted sum from the spread of outcomes around a line in public features.

For each arm, Q is the least over lines (c, b) of the sum of (y_i - c - f_i . b)^2 + (n/s) |b|^2, f_i being the
row's features less the arm's means: a ridge regression of strength s. Without features (s = 0) Q is the
sum of squares around the mean; as s grows, it becomes that of the residuals of a regression. With S the
arm's sum of squared weights, V adds up S Q / (degrees of freedom), the estimate of S times the variance of an
outcome of that arm. Predictions outside the range of outcomes cost more than their square (`ranged_fit`),
so that one outcome moves Q by little more than the range squared, however many features there are.

How far one outcome can move V: `kernels/residual_variance.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.linear_form import exact_dot
from counterveil.kernels.ranged_fit import TRANSITION, RangedFit
from counterveil.kernels.thin_products import gram
from counterveil.kernels.weight_factor import inverse_root

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class ArmPart(Protocol):
    """One arm's part of V."""

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the arm can move, in units of the range squared."""
        ...

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        ...


@dataclass(frozen=True, slots=True)
class ArmSquares:
    """`factor` times the squares of an arm's outcomes around their mean; exact."""

    rows: Rows
    factor: Fraction

    @property
    def largest_move(self) -> Fraction:
        """What one outcome of the arm can move, in units of the range squared."""
        return self.factor * Fraction(len(self.rows) - 1, len(self.rows))

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        y = outcome[self.rows]
        squares = Fraction(exact_dot(y, y)) - Fraction(int(y.sum()) ** 2, len(y))
        return self.factor * squares / Fraction(4) ** steps_bits


@dataclass(frozen=True, slots=True)
class ArmResidual:
    """`factor` times the least cost of a line through an arm's outcomes."""

    fit: RangedFit
    factor: Fraction

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the arm can move, in units of the range squared."""
        return self.factor * self.fit.sensitivity

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        y = np.ldexp(outcome[self.fit.rows].astype(np.float64), -steps_bits)
        return self.factor * Fraction(self.fit.least(y))


@dataclass(frozen=True, slots=True)
class ResidualVariance:
    """V: the sum of both arms' parts. `loading` is what V holds of a mean outcome of variance one.

    With S the sum of squared weights, E V = S (variance around the mean) + loading (variance of the mean)
    when the mean outcome is linear in the features in a random direction.
    """

    arms: tuple[ArmPart, ...]
    loading: float

    def largest_row(self, rows: int) -> Fraction:  # noqa: ARG002 - other forms of variance need it
        """Return twice the bound on what one outcome can move; an outcome is in one arm."""
        return 2 * max(arm.largest_move for arm in self.arms)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared."""
        return sum((arm.value(outcome, steps_bits) for arm in self.arms), Fraction(0))


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One arm's features as far as lines depend on them: centre (p,) and covariance (p, p).

    `weight`: the sum of the arm's squared weights. `roots` keeps for every strength s asked for a W with
    W W' = (I + s covariance)^-1.
    """

    rows: Rows
    centre: Floats
    covariance: Floats
    weight: float
    roots: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, features: NDArray[np.floating], weights: Floats, inside: NDArray[np.bool_]) -> Spectrum:
        """Return the arm of the rows `inside`, with the sum of their squared weights."""
        rows = np.flatnonzero(inside)
        arm = features[rows]
        centre = np.asarray(arm.mean(axis=0, dtype=np.float64))
        arm -= centre.astype(arm.dtype)
        squares = float(weights[rows] @ weights[rows])
        return cls(rows, centre, gram(arm) / len(rows), squares)

    def explained(self, strength: float) -> float:
        """Return how many degrees of freedom the slopes take: the trace of s C (I + s C)^-1."""
        if strength == 0.0:
            return 0.0
        root = self._root(strength)
        return max(len(self.centre) - float(np.einsum("ij,ij->", root, root)), 0.0)

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that a line leaves."""
        return len(self.rows) - 1 - self.explained(strength)

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        # The trace of C (I + s C)^-1.
        left = self.explained(strength) / strength if strength else float(np.trace(self.covariance))
        return self.weight * len(self.rows) * left / self.freedom(strength)

    def largest_move(self, strength: float) -> float:
        """Return nearly what the part's `largest_move` will be: all but its rounding."""
        return self.weight / self.freedom(strength) * (1 + float(TRANSITION) if strength else 1.0)

    def part(self, features: NDArray[np.floating], strength: float) -> ArmPart:
        """Return the arm's part of V with slopes of this strength."""
        factor = Fraction(self.weight / self.freedom(strength))
        if not strength:
            return ArmSquares(self.rows, factor)
        root = self._root(strength)
        return ArmResidual(
            RangedFit(features, self.rows, self.centre, strength, self.covariance, root), factor
        )

    def _root(self, strength: float) -> Floats:
        if strength not in self.roots:
            self.roots[strength] = inverse_root(np.eye(len(self.centre)) + strength * self.covariance)
        return self.roots[strength]


def residual_variance(
    features: NDArray[np.floating], spectra: tuple[Spectrum, ...], strength: float
) -> ResidualVariance:
    """Return V for (n, p) features, with lines of this strength (0: means alone)."""
    return ResidualVariance(
        tuple(spectrum.part(features, strength) for spectrum in spectra),
        sum(spectrum.loading(strength) for spectrum in spectra),
    )
