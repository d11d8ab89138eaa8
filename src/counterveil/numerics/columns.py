"""Products of tall matrices kept column by column with vectors and with themselves, on one thread.

`columns` is (p, n), one contiguous line for each column of an (n, p) matrix, in single or double precision; the
rows `start` to `stop` of that matrix count. Sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arms import ArmMoments, Balance, compared, left_of_squares
from counterveil.numerics.arrays import Floats, run
from counterveil.numerics.products import Kind

Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are turned into another precision at once: they stay in a core's cache.
_BLOCK = 1 << 16
# Rows and columns beside a sum of products, for the loops work on four at a time.
BUFFER = 3


def scores(columns: Columns, start: int, stop: int, direction: NDArray[P]) -> NDArray[P]:
    """Return the rows' products with a direction (p,), in its precision, of shape (stop - start,)."""
    from counterveil.numerics.loops import add_scores

    found = np.zeros(stop - start, direction.dtype)
    add_scores(columns, start, stop, direction, found)
    return found


def totals(columns: Columns, start: int, stop: int, weights: NDArray[np.floating]) -> Floats:
    """Return the sum of the rows times their weights (stop - start,), of shape (p,).

    Where the weights are in single precision a thousand products are added up in it before they go to the total.
    """
    from counterveil.numerics.loops import add_totals

    found = np.zeros(len(columns))
    add_totals(columns, start, stop, weights, found)
    return found


def products(columns: Columns, start: int, stop: int, kind: Kind = np.float64) -> Floats:
    """Return the sum of the rows' products with themselves, (p, p).

    In single precision a few hundred products are added up before they go to the total, in half the time: for
    steps that later ones correct.
    """
    width, step = len(columns), max(_BLOCK // max(len(columns), 1), 1)
    total = np.zeros((width + BUFFER, width + BUFFER))
    if columns.dtype == kind:
        add_products(total, columns, start, stop)
    else:
        for first in range(start, stop, step):
            block: Columns = columns[:, first : min(first + step, stop)].astype(kind)
            add_products(total, block, 0, block.shape[1])
    whole = total[:width, :width]
    return np.tril(whole) + np.tril(whole, -1).T


def add_products(total: Floats, columns: Columns, start: int, stop: int, sign: float = 1.0) -> None:
    """Add `sign` times those sums to the lower triangle of `total`, which has BUFFER more rows and columns.

    What stands in these, and above the diagonal, does not count.
    """
    from counterveil.numerics import loops as column_loops

    column_loops.add_products(columns, start, stop, sign, total)


# How alike two arms are in covariates kept column by column; see `balance`.


def column_balances(
    raw: Floats, labels: Sequence[int], treated: NDArray[np.bool_], weights: Floats
) -> tuple[Balance, Balance]:
    """Return the balance of columns under equal weights and under non-negative weights (n,).

    `raw` is (d, n), a line for each covariate. `labels` says of each how many codes it holds, which become one
    column each in its place; 0 stands for numbers.
    """
    w = np.stack([used * inside for used in (1.0, weights) for inside in (treated, ~treated)])
    totals, sizes = w.sum(axis=1), np.einsum("ij,ij->i", w, w)
    share = np.divide(w, totals[:, None], out=np.zeros_like(w), where=totals[:, None] > 0)
    mean, variance = _moments(raw, share)
    parts = [
        _levels(raw[j], count, share) if count else (mean[:, j : j + 1], variance[:, j : j + 1])
        for j, count in enumerate(labels)
    ]
    means, variances = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return compared([ArmMoments(*each) for each in zip(means, variances, effective, strict=True)])


def _moments(raw: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the lines' means (4, d), less their first entries, and variances (4, d), under four weights (4, n)."""
    from counterveil.numerics.loops import add_moments

    first, second = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    run(add_moments, (raw, share), (first, second))
    return first, left_of_squares(second, first**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    places = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(places, one, count).astype(np.float64) for one in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(places, minlength=count) / len(places)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, left_of_squares(squares, (mean - centre) ** 2)


# Columns of numbers kept as contiguous lines, standardised and clipped, plain or squared.


Lines = NDArray[np.floating]
Places = NDArray[np.intp]

# Standard deviations beyond which a value counts no further where it is clipped: one extreme row must not
# own a feature.
CLIP = 3.0
# A column whose standard deviation is below this share of its size is constant up to rounding.
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
