"""How a record's columns become a row of a regression's moment matrix, of bounded length.

With x the columns of a private record in [-1, 1] (`regression_columns`), z = (x - centre) / scale and f = (1,
z, products of z),

    u = mix f, responses in it clipped to windows,    w = sqrt(q) factors u,    q = min(1, length / |u|^2),

|u| leaving out what regressions may explain (responses, that is outcomes and arms): no row is given less
weight for the value of its response, since a weight that depends on it would bias the regression. So

    |w|^2 <= length + sum over responses of (factor bound)^2,

which is `squared_max_norm`, the number that noise is scaled by. centre and scale are in half ranges, windows
in the units of u (standard deviations at first), length in squared units of u, and mix combines columns; all
of these and factors are public or were released, so that a row depends on its own record alone. u stays
inside the process; `regression_moments` releases the mean of w w'.
Proof: `rows/moments/regression_moments.proof.md`. Where rows are shortened trades noise against weight;
privacy holds for every choice.
"""

# Proof: regression_moments.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.regression_columns import Columns, combined
from counterveil.rows.records import TableRecords


@dataclass(frozen=True, slots=True)
class WorkingRows:
    """How a row's columns become a working row u, all of it public or released.

    With z = (x - centre) / scale and products of these, f = (1, z, products), a working row is mix f. Rows whose
    squared length, responses left out, is beyond `length` are weighted down to it.

    Attributes
    ----------
    columns : Columns
        What x holds.
    centre, scale : ndarray of float64, (columns,)
        Released.
    mix : ndarray of float64, (size, size)
        The combinations of f that are taken.
    windows : ndarray of float64, (size,)
        Where responses that are numbers are clipped.
    length : float
        The longest squared length.
    factors : ndarray of float64, (size,)
        What responses are multiplied by.
    """

    columns: Columns
    centre: Floats
    scale: Floats
    mix: Floats
    windows: Floats
    length: float
    factors: Floats

    @classmethod
    def standardised(cls, columns: Columns, centre: Floats, scale: Floats) -> WorkingRows:
        """Return rows that are standardised and nothing else."""
        size = 1 + len(columns.names)
        return cls(
            columns,
            centre,
            scale,
            mix=np.eye(size),
            windows=np.full(size, np.inf),
            length=np.inf,
            factors=np.ones(size),
        )

    @property
    def largest_sizes(self) -> Floats:
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
        are_numbers = np.zeros(len(self.mix), dtype=np.bool_)
        are_numbers[1 : 1 + self.columns.singles] = (
            np.array(self.columns.responses) & ~self.columns.two_valued
        )
        return are_numbers

    @property
    def bounds(self) -> Floats:
        """The largest size of every working column that lengths leave out, zero for others; before factors."""
        largest = np.minimum(np.abs(self.mix) @ self.largest_sizes, self.windows)
        return np.where(self.explained, largest, 0.0)

    def unweighted(self, x: Floats) -> tuple[Floats, Floats]:
        """Return (size, rows) working rows of (rows, columns) x, clipped but not weighted, and z (columns, rows)."""
        z = (x.T - self.centre[:, None]) / self.scale[:, None]
        largest = self.largest_sizes[1 : 1 + len(z), None]
        np.clip(z, -largest, largest, out=z)
        f = np.vstack((np.ones(len(x)), z, *(z[i] * z[j] for i, j in self.columns.products)))
        u = np.empty_like(f)
        for entry, weights in zip(u, self.mix, strict=True):
            combined(f, weights, entry)
        bounded = self.explained
        limits = self.bounds[bounded, None]
        u[bounded] = np.clip(u[bounded], -limits, limits)
        return u, z

    def lengths(self, u: Floats, z: Floats) -> Floats:
        """Return a bound of every row's squared length, the constant included, from columns that are no responses."""
        squared_lengths = np.zeros(u.shape[1])
        for column in np.flatnonzero(~self.explained & ~self.joint):
            squared_lengths += u[column] * u[column]
        for i, j, bound in self._pairs():
            squared_lengths += (bound * z[j if self.columns.responses[i] else i]) ** 2
        return squared_lengths

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return the products of a response and another column, with the bound of the response."""
        largest_sizes = self.largest_sizes[1:]
        return [
            (i, j, float(largest_sizes[i if self.columns.responses[i] else j]))
            for i, j in self.columns.products
            if self.columns.responses[i] != self.columns.responses[j]
        ]

    @property
    def default_length(self) -> float:
        """The squared length that is expected of a row with columns of variance one."""
        plain = int(np.count_nonzero(~self.explained & ~self.joint))
        return plain + sum(bound**2 for _, _, bound in self._pairs())

    @property
    def longest(self) -> float:
        """A bound of the squared length of every row that the declared ranges allow."""
        largest = np.abs(self.mix) @ self.largest_sizes
        single_squares = float(np.sum(largest[~self.explained & ~self.joint] ** 2))
        singles = self.largest_sizes[1:]
        return single_squares + sum(float(singles[i] * singles[j]) ** 2 for i, j, _ in self._pairs())

    @property
    def squared_max_norm(self) -> Fraction:
        """A bound on the squared length of a weighted row."""
        of_responses = self.factors * self.bounds
        return Fraction(self.length) + sum(
            (Fraction(float(bound)) ** 2 for bound in of_responses), Fraction(0)
        )

    def _with_weights(self, x: Floats) -> tuple[Floats, Floats]:
        u, z = self.unweighted(x)
        weights = np.minimum(1.0, self.length / self.lengths(u, z))
        return u * self.factors[:, None], weights

    def weighted(self, x: Floats) -> Floats:
        """Return the (rows, size) weighted working rows of (rows, columns) x."""
        u, weights = self._with_weights(x)
        return np.asarray((u * np.sqrt(weights)).T)

    def working(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield working rows (size, rows) before they are weighted, and their weights, a block at a time."""
        for block in records.parts():
            yield self._with_weights(self.columns.block(block))
