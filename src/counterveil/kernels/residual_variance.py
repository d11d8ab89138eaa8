"""The variance of a weighted sum from the spread of outcomes around a line in public features.

For each arm, or each of several groups of its rows,
Q is the least over lines (c, b) of the sum of (y_i - c - f_i . b)^2 and of (n/s) b_j^2 / shape_j,
f_i being the row's features less the arm's means: a ridge regression of strength s, in which features of a
large shape are fitted more closely. Without features (s = 0) Q is the sum of squares around the
mean; as s grows, it becomes that of the residuals of a regression. With S the
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
from counterveil.kernels.weight_arms import ArmRows
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

    `weight`: the sum of the arm's squared weights. `shape` (p,): how closely each feature is fitted beside the
    others. `roots` keeps for every strength s asked for a W with W W' = (I + s D covariance D)^-1, D^2 having
    the shape on its diagonal.
    """

    rows: Rows
    centre: Floats
    covariance: Floats
    weight: float
    shape: Floats
    roots: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        features: NDArray[np.floating],
        weights: Floats,
        inside: NDArray[np.bool_],
        shape: Floats,
        held: ArmRows | None = None,
    ) -> Spectrum:
        """Return the arm of the rows `inside`, with the sum of their squared weights; `held` are these rows' sums."""
        rows = np.flatnonzero(inside)
        held = ArmRows.of(features, rows) if held is None else held
        centre = held.totals / len(rows)
        covariance = held.products / len(rows) - np.outer(centre, centre)
        return cls(rows, centre, covariance, float(weights[rows] @ weights[rows]), shape)

    def explained(self, strength: float) -> float:
        """Return how many degrees of freedom the slopes take."""
        return float(self._taken(strength).sum()) if strength else 0.0

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that a line leaves."""
        return len(self.rows) - 1 - self.explained(strength)

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        # The trace of C - C (C + 1/(s shape))^-1 C: what a line leaves of each feature's variance.
        left = self._taken(strength) / (strength * self.shape) if strength else np.diagonal(self.covariance)
        return self.weight * len(self.rows) * float(left.sum()) / self.freedom(strength)

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
            RangedFit(features, self.rows, self.centre, strength * self.shape, self.covariance, root), factor
        )

    def _root(self, strength: float) -> Floats:
        if strength not in self.roots:
            scale = np.sqrt(strength * self.shape)
            self.roots[strength] = inverse_root(
                np.eye(len(self.centre)) + scale[:, None] * self.covariance * scale
            )
        return self.roots[strength]

    def _taken(self, strength: float) -> Floats:
        """Return (p,) the part of a degree of freedom that each slope takes: the diagonal of I - W W'."""
        root = self._root(strength)
        return np.asarray(np.maximum(1.0 - np.einsum("ij,ij->i", root, root), 0.0))


def residual_variance(
    features: NDArray[np.floating], spectra: tuple[Spectrum, ...], strength: float
) -> ResidualVariance:
    """Return V for (n, p) features, with lines of this strength (0: means alone)."""
    return ResidualVariance(
        tuple(spectrum.part(features, strength) for spectrum in spectra),
        sum(spectrum.loading(strength) for spectrum in spectra),
    )
