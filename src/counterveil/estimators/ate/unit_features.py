"""The covariates of a study as features whose bounds are public, for questions that protect whole records.

Nothing is read off the data: a number is scaled by its declared range and centred at the middle of it,
a two-label covariate is -1/2 or 1/2, any other one has a column for each declared label, less one over
their number. A row's features depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories, Range, Study, Table

Floats = NDArray[np.float64]

# Rows whose features are written at once.
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class UnitFeatures:
    """The public shape of the features: for every covariate its first column and its number of labels.

    `labels` is 0 for covariates that take one column.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]

    @classmethod
    def of(cls, study: Study) -> UnitFeatures:
        """Return the shape that a study's declarations give; no row is looked at."""
        sizes = [len(d.labels) if isinstance(d, Categories) else 0 for d in study.covariates.values()]
        return cls(tuple(study.covariates), tuple(sizes))

    @property
    def columns(self) -> int:
        """Number of columns, without a constant one."""
        return sum(max(1, size) for size in self.labels)

    @property
    def squared_reach(self) -> Fraction:
        """A bound on the squared Euclidean length of every row."""
        return sum((Fraction(1) if size else Fraction(1, 4) for size in self.labels), Fraction(0))

    @property
    def middle(self) -> Floats:
        """What was taken off every column: with it added, features lie in [0, 1]."""
        return np.concatenate([np.full(max(1, size), 1.0 / size if size else 0.5) for size in self.labels])

    def values(self, table: Table) -> Floats:
        """Return the (rows, columns) features of a table."""
        return self.values_of(table.covariates, table.study)

    def values_of(self, columns: Mapping[str, Floats], study: Study) -> Floats:
        """Return the (rows, columns) features of columns of numbers and codes."""
        rows = len(columns[self.names[0]])
        found = np.empty((rows, self.columns))
        # A column of the whole matrix at a time would go through all of its memory once a column.
        for first in range(0, rows, _BLOCK):
            part = slice(first, first + _BLOCK)
            self._write({name: columns[name][part] for name in self.names}, study, found[part])
        return found

    def _write(self, columns: Mapping[str, Floats], study: Study, found: Floats) -> None:
        """Write the features of columns to (rows, columns) `found`."""
        place = 0
        for name, size in zip(self.names, self.labels, strict=True):
            column, domain = columns[name], study.covariates[name]
            if size:
                found[:, place : place + size] = (column[:, None] == np.arange(size)) - 1.0 / size
            elif isinstance(domain, Range):
                low, high = domain.floats()
                # Clipped after the division, whose rounding could step over the end.
                found[:, place] = np.clip((column - low) / (high - low), 0.0, 1.0) - 0.5
            else:
                found[:, place] = column - 0.5
            place += max(1, size)

    def index_range(self, weights: Floats) -> tuple[float, float]:
        """Return the smallest and largest weighted sum of features that any row could have."""
        low = high = 0.0
        place = 0
        for size in self.labels:
            own = weights[place : place + max(1, size)]
            ends = own - own.mean() if size else np.array([-own[0] / 2, own[0] / 2])
            low, high = low + float(ends.min()), high + float(ends.max())
            place += max(1, size)
        return low, high
