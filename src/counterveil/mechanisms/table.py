"""Piecewise polynomials for quantile functions, each with a proved bound on its error.

Cells are ranges of the first 52 bits k of a uniform number u, which then lies in
[k, k + 1] / 2**52. In a cell the quantile is approximated by a polynomial in (k + 1/2 - origin)
with float64 coefficients; `error` bounds everything between the value that Horner's rule returns
in IEEE arithmetic and the quantile at any u of the interval. Terms: `sampler.proof.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from flint import arb, arb_series, ctx
from numpy.typing import NDArray

from counterveil.mechanisms.sampler import TailQuantile

HEAD_BITS = 52
DEGREE = 6
OCTAVES = 24  # deeper tails have probability 2**-24 and are left to the exact path
SUBCELLS = 64
TABLE_PRECISION = 160
_UNIT_ROUNDOFF_BITS = 53


class SmoothLaw(TailQuantile, Protocol):
    """A law whose size |X| has an analytic density on the positive half line."""

    def size_density(self, x: arb_series) -> arb_series:
        """Return the density of |X| as a power series; the constant term may be a wide ball."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One polynomial: k from `start` on, coefficients in powers of (k + 1/2 - origin)."""

    start: int
    origin: float
    coefficients: tuple[float, ...]
    error: float


@dataclass(frozen=True, slots=True)
class Table:
    """Cells sorted by start; coefficients have shape (degree + 1, cells), lowest power first."""

    starts: NDArray[np.int64]
    origins: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, cells: list[Cell]) -> Table:
        """Return the table of these cells, with a first cell that sends the far tail to the exact path."""
        unknown = Cell(0, 0.0, (0.0,), math.inf)
        ordered = sorted([unknown, *cells], key=lambda cell: cell.start)
        width = max(len(cell.coefficients) for cell in ordered)
        padded = [cell.coefficients + (0.0,) * (width - len(cell.coefficients)) for cell in ordered]
        return cls(
            np.array([cell.start for cell in ordered], dtype=np.int64),
            np.array([cell.origin for cell in ordered]),
            np.ascontiguousarray(np.array(padded).T),
            np.array([cell.error for cell in ordered]),
        )

    def evaluate(self, heads: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the approximate quantiles of these heads and the bounds of their errors."""
        index = np.searchsorted(self.starts, heads, side="right") - 1
        # Both numbers are multiples of 1/2 below 2**52, so this difference is exact.
        offset = (heads.astype(np.float64) + 0.5) - self.origins[index]
        value = self.coefficients[-1][index]
        for row in self.coefficients[-2::-1]:
            value = value * offset + row[index]
        return value, self.errors[index]


def smooth_table(law: SmoothLaw) -> Table:
    """Return the table of an analytic law: octaves of u, each cut into equal cells."""
    cells: list[Cell] = []
    with ctx.workprec(TABLE_PRECISION):
        for octave in range(OCTAVES):
            width = 2 ** (HEAD_BITS - 1 - octave) // SUBCELLS
            first = 2 ** (HEAD_BITS - 1 - octave)
            edges = [law.tail_quantile(_head(first + i * width)) for i in range(SUBCELLS + 1)]
            cells.extend(
                _smooth_cell(law, first + i * width, width, edges[i].union(edges[i + 1]))
                for i in range(SUBCELLS)
            )
    return Table.of(cells)


def linear_cell(start: int, stop: int, value: arb, slope: arb) -> Cell:
    """Return the cell of a quantile that equals value + slope * (head - start) on [start, stop].

    `value` and `slope` may depend on the piece but not on the head; `slope` is per unit of the head.
    """
    return _cell(start, float(start), [value, slope], arb(stop - start), abs(slope) / 2)


def blind_cell(start: int) -> Cell:
    """Return a cell that sends every draw to the exact path."""
    return Cell(start, 0.0, (0.0,), math.inf)


def _smooth_cell(law: SmoothLaw, start: int, width: int, sizes: arb) -> Cell:
    """Return the Taylor cell about the middle of [start, start + width]; `sizes` holds its quantiles."""
    middle = start + width // 2
    half = arb(width) / 2
    centre = law.tail_quantile(_head(middle))
    taylor = [centre, *_inverse_derivatives(law, centre)[1 : DEGREE + 1]]
    anywhere = _inverse_derivatives(law, sizes)
    remainder = abs(anywhere[DEGREE + 1]) * half ** (DEGREE + 1)
    # The midpoint k + 1/2 stands for [k, k + 1]: the quantile moves by at most half a unit times its slope.
    return _cell(start, float(middle), taylor, half, remainder + abs(anywhere[1]) / 2)


def _inverse_derivatives(law: SmoothLaw, size: arb) -> list[arb]:
    """Return balls of the Taylor coefficients of the quantile in the head, wherever it equals `size`."""
    length = DEGREE + 2
    density = _padded(law.size_density(arb_series([size, 1], length)), length)
    # The tail falls at the rate of the density: head(x) - head(size) = -2**52 * integral of the density.
    falls = [-(arb(2) ** HEAD_BITS) * density[i - 1] / i for i in range(1, length)]
    return _padded(arb_series([arb(0), *falls], length).reversion(), length)


def _padded(series: arb_series, length: int) -> list[arb]:
    """Return the first `length` coefficients; flint leaves out zeros at the end."""
    known = list(series.coeffs())[:length]
    return known + [arb(0)] * (length - len(known))


def _cell(start: int, origin: float, taylor: list[arb], reach: arb, other: arb) -> Cell:
    """Return the cell with rounded coefficients and the sum of all errors for |offset| <= reach."""
    rounded = tuple(float(coefficient.mid()) for coefficient in taylor)
    error, size, power = other, arb(0), arb(1)
    for coefficient, number in zip(taylor, rounded, strict=True):
        error += abs(coefficient - arb(number)) * power
        size += abs(arb(number)) * power
        power *= reach
    # Horner's rule: each coefficient meets at most 2 degree roundings (one more covers gamma_n > n u).
    error += size * (2 * len(rounded)) * arb(2) ** -_UNIT_ROUNDOFF_BITS
    return Cell(start, origin, rounded, _float_above(error))


def _float_above(ball: arb) -> float:
    """Return a float64 that is not below any point of a non-negative ball; infinity if unknown."""
    if not ball.is_finite():
        return math.inf
    # float() of the upper end may round down; one part in 2**40 more than covers it.
    return float(ball.abs_upper()) * (1 + 2.0**-40) + 2.0**-1000


def _head(head: int) -> arb:
    """Return head / 2**52 as an exact ball."""
    return arb((head, -HEAD_BITS))


def head_floor(u: arb) -> int | None:
    """Return floor(u * 2**52) where it is certain."""
    floor = (u * arb(2) ** HEAD_BITS).floor().unique_fmpz()
    return None if floor is None else int(floor)
