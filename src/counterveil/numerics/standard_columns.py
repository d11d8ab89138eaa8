"""Columns of numbers kept as contiguous lines, standardised and clipped, plain or squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.compiled import compiled, run

Lines = NDArray[np.floating]
Places = NDArray[np.intp]

# Standard deviations beyond which a value counts no further where it is clipped: one extreme row must not
# own a feature.
CLIP = 3.0
# A column whose spread is below this share of its size is constant up to rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class StandardColumns:
    """Those of some lines `which` (k,) of `raw` (d, n) that vary, with their means and deviations (k,)."""

    raw: Floats
    which: Places
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, raw: Floats, which: Places) -> StandardColumns:
        """Return the lines of these places, those left out that are constant."""
        mean, variance = moments(raw, which)
        return cls(raw, which, mean, np.sqrt(variance)).only(varying(mean, variance))

    def only(self, kept: NDArray[np.bool_]) -> StandardColumns:
        """Return some of the columns."""
        return StandardColumns(self.raw, self.which[kept], self.mean[kept], self.deviation[kept])

    def clipped(self, k: int) -> Floats:
        """Return the k-th column (n,), standardised and clipped."""
        z = (self.raw[self.which[k]] - self.mean[k]) / self.deviation[k]
        return np.asarray(np.clip(z, -CLIP, CLIP, out=z))

    def sums(self, other: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (k,) the sums of z times `other` (n,), and mean and variance of z z, for clipped columns z."""
        from counterveil.numerics.loops import write_sums

        sums = np.empty((len(self.which), 3))
        run(write_sums, (self.raw, self.which, self.mean, 1.0 / self.deviation, CLIP, other), (sums,))
        along, first, second = sums.T / len(other)
        return along * len(other), 1.0 + first, np.maximum(second - first**2, 0.0)

    def write(self, factor: Floats, lines: Lines) -> None:
        """Write the columns less their means, times `factor` (k,), to `lines` (k, n)."""
        from counterveil.numerics.loops import write_plain

        run(write_plain, (self.raw, self.which, self.mean, factor), (lines,))

    def write_squares(self, shift: Floats, factor: Floats, lines: Lines) -> None:
        """Write the clipped columns' squares less `shift` (k,), times `factor` (k,), to `lines` (k, n)."""
        from counterveil.numerics.loops import write_squares

        inputs = (self.raw, self.which, self.mean, 1.0 / self.deviation, CLIP, shift, factor)
        run(write_squares, inputs, (lines,))


def moments(raw: Floats, which: Places) -> tuple[Floats, Floats]:
    """Return means and variances of the lines `which` (k,) of `raw` (d, n)."""
    from counterveil.numerics.loops import write_moments

    mean, variance = np.empty(len(which)), np.empty(len(which))
    run(write_moments, (raw, which), (mean, variance))
    return mean, variance


def cut_lines(raw: Floats, which: Places, reach: Floats, lines: Lines) -> Floats:
    """Return deviations (k,) of the lines `which` (k,) of `raw` (d, n), which are cut, centred and written to `lines`.

    They are cut at `reach` (k,) standard deviations either side of their mean, and have a largest size of one;
    constant ones are zero.
    """
    from counterveil.numerics.loops import write_cut

    mean, variance = moments(raw, which)
    far, deviations = np.where(varying(mean, variance), reach * np.sqrt(variance), 0.0), np.empty(len(which))
    low, high = (
        np.maximum(raw.min(axis=1)[which] - mean, -far),
        np.minimum(raw.max(axis=1)[which] - mean, far),
    )
    run(write_cut, (raw, which, mean, low, high), (deviations, lines))
    return deviations


def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, lines: Lines) -> None:
    """Write for each of the levels (k,) a line of `high` (k,) where the codes (n,) are it, and of `low` elsewhere."""
    from counterveil.numerics import loops as feature_loops

    run(feature_loops.write_levels, (codes, levels, low, high), (lines,))


def write_above(lines: Lines, which: Places, factor: Floats, above: Lines) -> None:
    """Write what of the lines `which` (k,) is above zero, times `factor` (k,), to `above` (k, n)."""
    from counterveil.numerics import loops as feature_loops

    run(feature_loops.write_above, (lines, which, factor), (above,))


def varying(mean: Floats, variance: Floats) -> NDArray[np.bool_]:
    """Return which columns of these means and variances are not constant up to rounding."""
    return np.asarray(variance > (_CONSTANT * mean) ** 2)


# Columns that lie side by side, centred, scaled and written as rows in one pass.


# Rows that are written together: their lines of memory stay in the nearest cache.
_ROWS = 64


@compiled
def turn(columns: Floats, mean: Floats, factor: Floats, rows: Floats) -> None:
    """Write (columns[j, i] - mean[j]) factor[j] to rows[i, j]."""
    count = columns.shape[1]
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        for j in range(len(columns)):
            own, centre, scale = columns[j], mean[j], factor[j]
            for i in range(start, stop):
                rows[i, j] = (own[i] - centre) * scale
