"""What lines in public features take of a variance: degrees of freedom, and what a mean outcome leaves in it.

The variance of an effect sum_i c_i y_i is estimated group by group (an arm, or a part of one) by

    V = sum over groups of (S / df) Q,    S = sum of c_i^2 in the group,    df = n - 1 - (df of slopes),

Q being the least sum of the group's squared residuals around a line in its features plus a ridge penalty on
slopes (`rows/linear/residual_variance.py`). For a group of n rows with feature covariance C, features fitted
with closeness D^2 (the shape, on a diagonal), ridge strength s and W W' = (I + s D C D)^-1,

    degrees of freedom of slopes = trace(I - W W'),
    loading = S n trace(C - C (C + (s D^2)^-1)^-1 C) / df.

`loading` is what V holds on average of a mean outcome that is linear in the features in a random direction,
with variance one: the line leaves that part of it. Both follow from the ridge fit being linear in the
outcomes.

In: features, weights and arms, all public. Out: numbers that `variance_choice.py` compares, and the form of
V, whose sensitivity is proved in `rows/linear/residual_variance.proof.md`. No outcome is read here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arm_rows import ArmRows, inverse_root
from counterveil.numerics.arrays import Floats
from counterveil.rows.linear.ranged_fit import TRANSITION, RangedFit, Rows
from counterveil.rows.linear.residual_variance import GroupResidual, GroupSquares, ResidualVariance


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One group's features as far as lines depend on them: centre (p,) and covariance (p, p).

    `weight`: the sum of the group's squared weights. `shape` (p,): how closely each feature is fitted beside
    the others. `roots` keeps for every strength s asked for a W with W W' = (I + s D covariance D)^-1, D^2
    having the shape on its diagonal, and `taken` what slopes of that strength take. `held` are the rows with
    their sums, where these may have been found in single precision.
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
        return cls(
            rows=rows,
            centre=centre,
            covariance=covariance,
            weight=float(weights[rows] @ weights[rows]),
            shape=shape,
            held=held,
        )

    def explained(self, strength: float) -> float:
        """Return how many degrees of freedom the slopes take."""
        return self._taken(strength)[0] if strength else 0.0

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that a line leaves."""
        return len(self.rows) - 1 - self.explained(strength)

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        remaining = self._taken(strength)[1] if strength else float(np.diagonal(self.covariance).sum())
        return self.weight * len(self.rows) * remaining / self.freedom(strength)

    def weighted_squares(self, strength: float) -> float:
        """Return the second moments of all features added up, each times its strength."""
        return strength * float(self.shape @ (np.diagonal(self.covariance) + self.centre**2))

    def largest_move(self, strength: float) -> float:
        """Return nearly what the part's `largest_move` will be: all but its rounding."""
        return self.weight / self.freedom(strength) * (1 + float(TRANSITION) if strength else 1.0)

    def part(self, features: NDArray[np.floating], strength: float) -> GroupSquares | GroupResidual:
        """Return the group's part of V with slopes of this strength."""
        factor = Fraction(self.weight / self.freedom(strength))
        if not strength:
            return GroupSquares(self.rows, factor)
        exact = self._exact()
        fit = RangedFit(
            features=features,
            rows=self.rows,
            centre=self.centre,
            strengths=strength * self.shape,
            covariance=exact.covariance,
            root=exact._root(strength),
        )
        return GroupResidual(fit, factor)

    def _exact(self) -> Spectrum:
        """Return the same from products in double precision, which a line's bound on its error takes for granted."""
        if self.held is None or self.held.kind is np.float64:
            return self
        covariance = self.held.exact_products / len(self.rows) - np.outer(self.centre, self.centre)
        return replace(self, covariance=covariance, held=None, roots={}, taken={})

    def _root(self, strength: float) -> Floats:
        if strength not in self.roots:
            scale = np.sqrt(strength * self.shape)
            metric = np.eye(len(self.centre)) + scale[:, None] * self.covariance * scale
            self.roots[strength] = inverse_root(metric)
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
