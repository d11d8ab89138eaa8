"""Rows for second moments: standardised columns and their products, mixed, clipped and weighted to a bounded length.

Everything here is a function of one row and of public or released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.statistics.moments.regression_columns import Columns

# What responses add to the squared length of a row, in parts of what the other columns have; set on the tuning designs
# of `experiments/regressions`.
_RESPONSES = 0.75


@dataclass(frozen=True, slots=True)
class Rows:
    """How a row's columns become a working row u, all of it public or released.

    With z = (x - centre) / scale and products of these, f = (1, z, products), a working row is mix f. Responses that
    are numbers are clipped to `windows`. Rows whose squared length, responses left out, is beyond `length` are weighted
    down to it; responses are multiplied by `factors`.
    """

    columns: Columns
    centre: Floats
    scale: Floats
    mix: Floats
    windows: Floats
    length: float
    factors: Floats

    @classmethod
    def standardised(cls, columns: Columns, centre: Floats, scale: Floats) -> Rows:
        """Return rows that are standardised and nothing else."""
        size = 1 + len(columns.names)
        return cls(columns, centre, scale, np.eye(size), np.full(size, np.inf), np.inf, np.ones(size))

    @property
    def reaches(self) -> Floats:
        """The largest size of every entry of f, by the declared ranges."""
        single = (1 + np.abs(self.centre)) / self.scale
        return np.array([1.0, *single, *(single[i] * single[j] for i, j in self.columns.products)])

    @property
    def explained(self) -> NDArray[np.bool_]:
        """Which working columns are responses or products of two of them: lengths leave these out."""
        single = self.columns.responses
        return np.array([False, *single, *(single[i] and single[j] for i, j in self.columns.products)])

    @property
    def joint(self) -> NDArray[np.bool_]:
        """Which working columns are products of a response and another column."""
        single = self.columns.responses
        return np.array(
            [False] * (1 + len(single)) + [single[i] != single[j] for i, j in self.columns.products]
        )

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which working columns are responses that are numbers."""
        found = np.zeros(len(self.mix), dtype=np.bool_)
        found[1 : 1 + self.columns.singles] = np.array(self.columns.responses) & ~self.columns.two_valued
        return found

    @property
    def bounds(self) -> Floats:
        """The largest size of every working column that lengths leave out, zero for others; before factors."""
        whole = np.minimum(np.abs(self.mix) @ self.reaches, self.windows)
        return np.where(self.explained, whole, 0.0)

    def unweighted(self, x: Floats) -> tuple[Floats, Floats]:
        """Return (size, rows) working rows of (rows, columns) x, clipped but not weighted, and z (columns, rows)."""
        z = (x.T - self.centre[:, None]) / self.scale[:, None]
        reach = self.reaches[1 : 1 + len(z), None]
        np.clip(z, -reach, reach, out=z)
        f = np.vstack((np.ones(len(x)), z, *(z[i] * z[j] for i, j in self.columns.products)))
        u = np.empty_like(f)
        for place, weights in enumerate(self.mix):
            u[place] = combined(f, weights)
        bounded = self.explained
        limits = self.bounds[bounded, None]
        u[bounded] = np.clip(u[bounded], -limits, limits)
        return u, z

    def lengths(self, u: Floats, z: Floats) -> Floats:
        """Return a bound of every row's squared length, the constant included, from columns that are no responses."""
        found = np.zeros(u.shape[1])
        for place in np.flatnonzero(~self.explained & ~self.joint):
            found += u[place] * u[place]
        for i, j, bound in self._pairs():
            found += (bound * z[j if self.columns.responses[i] else i]) ** 2
        return found

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return the products of a response and another column, with the bound of the response."""
        reaches = self.reaches[1:]
        return [
            (i, j, float(reaches[i if self.columns.responses[i] else j]))
            for i, j in self.columns.products
            if self.columns.responses[i] != self.columns.responses[j]
        ]

    @property
    def usual_length(self) -> float:
        """The squared length that is expected of a row with columns of variance one."""
        own = int(np.count_nonzero(~self.explained & ~self.joint))
        return own + sum(bound**2 for _, _, bound in self._pairs())

    @property
    def longest(self) -> float:
        """A bound of the squared length of every row that the declared ranges allow."""
        reach = np.abs(self.mix) @ self.reaches
        own = float(np.sum(reach[~self.explained & ~self.joint] ** 2))
        singles = self.reaches[1:]
        return own + sum(float(singles[i] * singles[j]) ** 2 for i, j, _ in self._pairs())

    def cut(self, windows: Floats, length: float) -> Rows:
        """Return the same with windows and a length, and factors that leave responses their part of it."""
        found = replace(self, windows=windows, length=min(length, self.longest))
        bounds = found.bounds
        most = sqrt(_RESPONSES * found.length / max(int(np.count_nonzero(bounds)), 1))
        return replace(found, factors=most / np.maximum(bounds, most))

    @property
    def squared_reach(self) -> Fraction:
        """A bound on the squared length of a weighted row."""
        own = self.factors * self.bounds
        return Fraction(self.length) + sum((Fraction(float(one)) ** 2 for one in own), Fraction(0))

    def weighted(self, x: Floats) -> Floats:
        """Return the (rows, size) weighted working rows of (rows, columns) x."""
        u, z = self.unweighted(x)
        weights = np.sqrt(np.minimum(1.0, self.length / self.lengths(u, z)))
        u *= self.factors[:, None]
        u *= weights
        return u.T

    @property
    def basis(self) -> Floats:
        """The constant and every named column as combinations of working columns, (size, size)."""
        return np.asarray(
            self.columns.basis(self.centre, self.scale) @ np.linalg.inv(self.mix) / self.factors
        )


def combined(f: Floats, weights: Floats) -> Floats:
    """Return weights f, added up in order: to the bit the same wherever a row stands in a block."""
    found = np.zeros(f.shape[1])
    for place in np.flatnonzero(weights):
        found += weights[place] * f[place]
    return found
