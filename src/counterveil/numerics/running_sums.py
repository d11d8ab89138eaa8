"""Counts of a table of times, as numbers whose noise hardly grows when many of them are added up.

A survival curve adds up the counts of all cells before a time, and the people at risk are all those after it. Noise on
every count then adds up too. The square root R of the matrix of running sums, whose coefficients are those of
(1 - z)^(-1/2), has running sums of R^(-1) (noise) that grow like the logarithm of their number (Fichtenberger,
Henzinger and Upadhyay 2023), for columns that are a little longer than 1.

A table of J cells and K causes of the event has (K + 1) J + 1 entries: events by cause and cell, censorings by cell,
and people who were followed to the horizon. Sums run forwards over the events of each cause, and backwards over the
censorings, from the horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import numpy as np

from counterveil.numerics.arrays import Floats, sqrt_up

FLAT, SUMS = "flat", "sums"


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


def _rooted(values: Sequence[Fraction], coefficients: tuple[Fraction, ...]) -> list[Fraction]:
    return [
        sum((coefficients[place - k] * values[k] for k in range(place + 1)), Fraction(0))
        for place in range(len(values))
    ]


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

    def numbers(self, counts: Sequence[int | Fraction]) -> list[Fraction]:
        """Return what is released of one table's counts, exactly."""
        exact = [Fraction(count) for count in counts]
        if self.kind == FLAT:
            return exact
        root = root_coefficients(self.cells + 1)
        cells = self.cells
        events = [_rooted(exact[k * cells : (k + 1) * cells], root) for k in range(self.causes)]
        return [*chain.from_iterable(events), *_rooted(exact[: self.causes * cells - 1 : -1], root)]

    def counts(self, numbers: Floats) -> Floats:
        """Return the counts that noisy numbers stand for; (..., entries) both."""
        return numbers @ self.inverse.T

    @property
    def inverse(self) -> Floats:
        """The matrix that turns what is released into counts, (entries, entries)."""
        return _inverse(self.kind, self.cells, self.causes)

    @property
    def l2(self) -> Fraction:
        """How far one person's move from any entry to any other changes the numbers, in Euclidean length."""
        if self.kind == FLAT:
            return sqrt_up(Fraction(2))
        return sqrt_up(2 * sum((one**2 for one in root_coefficients(self.cells + 1)), Fraction(0)))

    @property
    def l1(self) -> Fraction:
        """The same as a sum of absolute changes."""
        if self.kind == FLAT:
            return Fraction(2)
        return 2 * sum(root_coefficients(self.cells + 1), Fraction(0))


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
