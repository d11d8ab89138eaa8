"""Counts of a table of times, as numbers whose noise hardly grows when many of them are added up.

A survival curve adds up the counts of all cells before a time, and the people at risk are all those after it. Noise on
every count then adds up too. The square root R of the matrix of running sums, whose coefficients are those of
(1 - z)^(-1/2), has running sums of R^(-1) (noise) that grow like the logarithm of their number (Fichtenberger,
Henzinger and Upadhyay 2023) [1]_, for columns that are a little longer than 1.

A table of J cells and K causes of the event has (K + 1) J + 1 entries: events by cause and cell, censorings by cell,
and people who were followed to the horizon. Sums run forwards over the events of each cause, and backwards over the
censorings, from the horizon. Which numbers are made of exact counts, and how far a row moves them, stands in
`rows/time_tables.py`; here is what released numbers stand for.

References
----------
.. [1] Fichtenberger, H., Henzinger, M. and Upadhyay, J. (2023). Constant matters: fine-grained error bound on
   differentially private continual observation. ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from counterveil.numerics.arrays import Floats

# Forms of release: counts, or the root of their running sums.
FLAT = "flat"
SUMS = "sums"


@lru_cache(maxsize=64)
def root_coefficients(count: int) -> tuple[Fraction, ...]:
    """Return the first coefficients of (1 - z)^(-1/2): 1, 1/2, 3/8, ..."""
    coefficients = [Fraction(1)]
    for k in range(1, count):
        coefficients.append(coefficients[-1] * Fraction(2 * k - 1, 2 * k))
    return tuple(coefficients[:count])


def _toeplitz(coefficients: tuple[Fraction, ...]) -> Floats:
    count = len(coefficients)
    numbers = np.array([float(one) for one in coefficients])
    matrix = np.zeros((count, count))
    for k in range(count):
        matrix[np.arange(k, count), np.arange(count - k)] = numbers[k]
    return matrix


@dataclass(frozen=True, slots=True)
class Form:
    """How a table of `cells` time cells is released: its counts ("flat") or their running sums' root ("sums")."""

    kind: str
    cells: int
    causes: int = 1

    @property
    def entries(self) -> int:
        """Numbers of one table: events by cause, censorings, people followed to the horizon."""
        return (self.causes + 1) * self.cells + 1

    def counts(self, numbers: Floats) -> Floats:
        """Return the counts that noisy numbers stand for; (..., entries) both."""
        return numbers @ self.inverse.T

    @property
    def inverse(self) -> Floats:
        """The matrix that turns what is released into counts, (entries, entries)."""
        return _inverse(self.kind, self.cells, self.causes)


@lru_cache(maxsize=64)
def _inverse(kind: str, cells: int, causes: int) -> Floats:
    lost = causes * cells
    inverse = np.eye(lost + cells + 1)
    if kind == SUMS:
        root = root_coefficients(cells + 1)
        inverse[:lost, :lost] = np.kron(np.eye(causes), np.linalg.inv(_toeplitz(root[:cells])))
        # The released order is from the horizon backwards.
        inverse[lost:, lost:] = np.linalg.inv(_toeplitz(root))[::-1]
    inverse.setflags(write=False)
    return inverse
