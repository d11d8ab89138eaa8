"""The variance of a weighted sum from the variance of outcomes around a line in public features.

For each group of rows, an arm or a part of one,
Q is the least over lines (c, b) of the sum of (y_i - c - f_i . b)^2 and of (n/s) b_j^2 / shape_j,
f_i being the row's features less the group's means: a ridge regression of strength s, in which features of a
large shape are fitted more closely. Without features (s = 0) Q is the sum of squares around the
mean; as s grows, it becomes that of the residuals of a regression. With S the
group's sum of squared weights, V adds up S Q / (degrees of freedom), the estimate of S times the variance of an
outcome of that group. Predictions outside the range of outcomes cost more than their square (`ranged_fit`),
so that one outcome moves Q by little more than the range squared, however many features there are.

How far one outcome can move V: `statistics/linear/kernels/residual_variance.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.linear_form import exact_dot
from counterveil.statistics.linear.kernels.ranged_fit import TRANSITION, RangedFit
from counterveil.statistics.linear.kernels.small_systems import ArmRows, inverse_root

Rows = NDArray[np.intp]


class GroupPart(Protocol):
    """What one group of rows, an arm or a part of it, adds to V."""

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the group can move, in units of the range squared."""
        ...

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        ...


@dataclass(frozen=True, slots=True)
class GroupSquares:
    """`factor` times the squares of a group's outcomes around their mean; exact."""

    rows: Rows
    factor: Fraction

    @property
    def largest_move(self) -> Fraction:
        """What one outcome of the group can move, in units of the range squared."""
        return self.factor * Fraction(len(self.rows) - 1, len(self.rows))

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        y = outcome[self.rows]
        squares = Fraction(exact_dot(y, y)) - Fraction(int(y.sum()) ** 2, len(y))
        return self.factor * squares / Fraction(4) ** steps_bits


@dataclass(frozen=True, slots=True)
class GroupResidual:
    """`factor` times the least cost of a line through a group's outcomes."""

    fit: RangedFit
    factor: Fraction

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the group can move, in units of the range squared."""
        return self.factor * self.fit.sensitivity

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the part for integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        y = np.ldexp(outcome[self.fit.rows].astype(np.float64), -steps_bits)
        return self.factor * Fraction(self.fit.least(y))


@dataclass(frozen=True, slots=True)
class ResidualVariance:
    """V: the sum of all groups' parts. `loading` is what V holds of a mean outcome of variance one.

    With S the sum of squared weights, E V = S (variance around the mean) + loading (variance of the mean)
    when the mean outcome is linear in the features in a random direction.
    """

    groups: tuple[GroupPart, ...]
    loading: float

    def largest_row(self, rows: int) -> Fraction:  # noqa: ARG002 - other forms of variance need it
        """Return twice the bound on what one outcome can move; an outcome is in one group."""
        return 2 * max(group.largest_move for group in self.groups)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared."""
        return sum((group.value(outcome, steps_bits) for group in self.groups), Fraction(0))


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One group's features as far as lines depend on them: centre (p,) and covariance (p, p).

    `weight`: the sum of the group's squared weights. `shape` (p,): how closely each feature is fitted beside the
    others. `roots` keeps for every strength s asked for a W with W W' = (I + s D covariance D)^-1, D^2 having
    the shape on its diagonal, and `taken` what slopes of that strength take.
    `held` are the rows with their sums, where these may have been found in single precision.
    """

    rows: Rows
    centre: Floats
    covariance: Floats
    weight: float
    shape: Floats
    held: ArmRows | None = field(default=None, compare=False, repr=False)
    roots: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)
    taken: dict[float, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        features: NDArray[np.floating],
        weights: Floats,
        inside: NDArray[np.bool_],
        shape: Floats,
        held: ArmRows | None = None,
    ) -> Spectrum:
        """Return the group of the rows `inside`, with the sum of their squared weights; `held` are these rows' sums."""
        rows = np.flatnonzero(inside)
        held = ArmRows.of(features, rows) if held is None else held
        centre = held.totals / len(rows)
        covariance = held.products / len(rows) - np.outer(centre, centre)
        return cls(rows, centre, covariance, float(weights[rows] @ weights[rows]), shape, held)

    def explained(self, strength: float) -> float:
        """Return how many degrees of freedom the slopes take."""
        return self._taken(strength)[0] if strength else 0.0

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that a line leaves."""
        return len(self.rows) - 1 - self.explained(strength)

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        left = self._taken(strength)[1] if strength else float(np.diagonal(self.covariance).sum())
        return self.weight * len(self.rows) * left / self.freedom(strength)

    def reach(self, strength: float) -> float:
        """Return the second moments of all features added up, each times its strength."""
        return strength * float(self.shape @ (np.diagonal(self.covariance) + self.centre**2))

    def largest_move(self, strength: float) -> float:
        """Return nearly what the part's `largest_move` will be: all but its rounding."""
        return self.weight / self.freedom(strength) * (1 + float(TRANSITION) if strength else 1.0)

    def part(self, features: NDArray[np.floating], strength: float) -> GroupPart:
        """Return the group's part of V with slopes of this strength."""
        factor = Fraction(self.weight / self.freedom(strength))
        if not strength:
            return GroupSquares(self.rows, factor)
        own = self._exact()
        root = own._root(strength)
        return GroupResidual(
            RangedFit(features, self.rows, self.centre, strength * self.shape, own.covariance, root), factor
        )

    def _exact(self) -> Spectrum:
        """Return the same from products in double precision, which a line's bound on its error takes for granted."""
        if self.held is None or self.held.kind is np.float64:
            return self
        covariance = self.held.exact_products / len(self.rows) - np.outer(self.centre, self.centre)
        return replace(self, covariance=covariance, held=None, roots={}, taken={})

    def _root(self, strength: float) -> Floats:
        if strength not in self.roots:
            scale = np.sqrt(strength * self.shape)
            self.roots[strength] = inverse_root(
                np.eye(len(self.centre)) + scale[:, None] * self.covariance * scale
            )
        return self.roots[strength]

    def _taken(self, strength: float) -> tuple[float, float]:
        """Return the degrees of freedom that slopes take, and what a line leaves of the features' variance.

        The first is the trace of I - W W', the second that of C - C (C + 1/(s shape))^-1 C.
        """
        if strength not in self.taken:
            root = self._root(strength)
            by_slope = np.maximum(1.0 - np.einsum("ij,ij->i", root, root), 0.0)
            self.taken[strength] = float(by_slope.sum()), float((by_slope / (strength * self.shape)).sum())
        return self.taken[strength]


def residual_variance(
    features: NDArray[np.floating], spectra: tuple[Spectrum, ...], strength: float
) -> ResidualVariance:
    """Return V for (n, p) features, with lines of this strength (0: means alone)."""
    return ResidualVariance(
        tuple(spectrum.part(features, strength) for spectrum in spectra),
        sum(spectrum.loading(strength) for spectrum in spectra),
    )
