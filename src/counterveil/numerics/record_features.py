"""Covariates as columns in [-1, 1], in blocks of rows: numbers, two labels, one column a label, and products.

A row's features depend on that row and on public declarations alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# Rows a block: small enough that a block of features stays in the processor's cache.
BLOCK = 4096


def blocks(rows: int) -> Iterator[slice]:
    """Yield slices that cover `rows` rows in order."""
    for start in range(0, rows, BLOCK):
        yield slice(start, min(start + BLOCK, rows))


@dataclass(frozen=True, slots=True)
class Column:
    """How one column is made of a covariate's values: (value - low) / width on [0, 1], or a label's flag.

    `label` is the code that is flagged, None for numbers; `two_valued` says that only -1 and 1 occur.
    """

    source: str
    low: float
    width: float
    label: int | None
    two_valued: bool


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """Columns and products of two of them; the pair (i, i) is 2 x_i^2 - 1."""

    columns: tuple[Column, ...]
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.columns) + len(self.pairs)

    @property
    def two_valued(self) -> NDArray[np.bool_]:
        """For every feature whether only -1 and 1 occur, so that its square is known."""
        own = [column.two_valued for column in self.columns]
        return np.array(own + [own[i] and own[j] for i, j in self.pairs], dtype=np.bool_)

    def block(self, covariates: Mapping[str, Floats], part: slice) -> Floats:
        """Return the (rows, size) features of a block of rows, each in [-1, 1]."""
        count = len(next(iter(covariates.values()))[part])
        found = np.empty((count, self.size))
        for place, column in enumerate(self.columns):
            values = covariates[column.source][part]
            if column.label is None:
                # Clipped after the division, whose rounding could step over the end.
                found[:, place] = 2.0 * np.clip((values - column.low) / column.width, 0.0, 1.0) - 1.0
            else:
                found[:, place] = np.where(values == column.label, 1.0, -1.0)
        for place, (i, j) in enumerate(self.pairs, len(self.columns)):
            product = found[:, i] * found[:, j]
            found[:, place] = 2.0 * product - 1.0 if i == j else product
        return found


@dataclass(frozen=True, slots=True)
class Standard:
    """Centre and scale of the features, and how far a standardised row may reach.

    Coordinates are clipped to [-limit, limit]; rows longer than the root of `squared_length` are
    shortened to it.
    """

    centre: Floats
    scale: Floats
    limit: float
    squared_length: float

    def coordinates(self, x: Floats) -> Floats:
        """Return (x - centre) / scale, clipped; same shape."""
        z = x - self.centre
        z /= self.scale
        return np.clip(z, -self.limit, self.limit, out=z)

    def rows(self, x: Floats) -> Floats:
        """Return (1, z) with z clipped and shortened; one column more than x."""
        z = self.coordinates(x)
        size = np.einsum("ij,ij->i", z, z)
        factor = np.sqrt(self.squared_length / np.maximum(size, self.squared_length))
        found = np.empty((len(z), z.shape[1] + 1))
        found[:, 0] = 1.0
        np.multiply(z, factor[:, None], out=found[:, 1:])
        return found
