"""Loops that turn columns of numbers, one contiguous line each, into lines of features.

`raw` is (d, n); the lines `which` (k,) of it are used, with one entry for each in every other vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled_any_order

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Lines = NDArray[np.floating]


@compiled_any_order
def write_moments(raw: Floats, which: Places, mean: Floats, variance: Floats) -> None:
    """Write means and variances."""
    for k in range(len(which)):
        own = raw[which[k]]
        total, squares = 0.0, 0.0
        for i in range(len(own)):
            total += own[i]
        centre = total / len(own)
        for i in range(len(own)):
            squares += (own[i] - centre) * (own[i] - centre)
        mean[k], variance[k] = centre, squares / len(own)


@compiled_any_order
def write_sums(
    raw: Floats, which: Places, mean: Floats, factor: Floats, limit: float, other: Floats, sums: Floats
) -> None:
    """Write to `sums` (k, 3), z being (raw - mean) factor within the limit: sums of z other, z z - 1, its square."""
    for k in range(len(which)):
        own, centre, scale = raw[which[k]], mean[k], factor[k]
        along, first, second = 0.0, 0.0, 0.0
        for i in range(len(own)):
            z = min(max((own[i] - centre) * scale, -limit), limit)
            beyond = z * z - 1.0
            along += z * other[i]
            first += beyond
            second += beyond * beyond
        sums[k, 0], sums[k, 1], sums[k, 2] = along, first, second


@compiled_any_order
def write_plain(raw: Floats, which: Places, mean: Floats, factor: Floats, lines: Lines) -> None:
    """Write (raw - mean) factor to `lines` (k, n)."""
    for k in range(len(which)):
        own, out, centre, scale = raw[which[k]], lines[k], mean[k], factor[k]
        for i in range(len(own)):
            out[i] = (own[i] - centre) * scale


@compiled_any_order
def write_squares(
    raw: Floats,
    which: Places,
    mean: Floats,
    factor: Floats,
    limit: float,
    shift: Floats,
    share: Floats,
    lines: Lines,
) -> None:
    """Write (z z - shift) share to `lines` (k, n), with z = (raw - mean) factor held within the limit."""
    for k in range(len(which)):
        own, out, centre, scale = raw[which[k]], lines[k], mean[k], factor[k]
        taken, stretched = shift[k], share[k]
        for i in range(len(own)):
            z = min(max((own[i] - centre) * scale, -limit), limit)
            out[i] = (z * z - taken) * stretched


@compiled_any_order
def write_cut(
    raw: Floats, which: Places, mean: Floats, low: Floats, high: Floats, deviations: Floats, lines: Lines
) -> None:
    """Write to `lines` (k, n) the lines of `raw` less their means, cut below `low` and above `high`, and centred again.

    They are divided by their largest size, `low` and `high` being attained; what is constant becomes zero. Their
    standard deviations are written to `deviations` (k,).
    """
    for k in range(len(which)):
        own, out, centre, least, most = raw[which[k]], lines[k], mean[k], low[k], high[k]
        total, squares = 0.0, 0.0
        for i in range(len(own)):
            z = min(max(own[i] - centre, least), most)
            total += z
            squares += z * z
        middle = total / len(own)
        largest = max(most - middle, middle - least)
        factor = 1.0 / largest if largest > 0.0 else 0.0
        deviations[k] = factor * np.sqrt(max(squares / len(own) - middle * middle, 0.0))
        for i in range(len(own)):
            out[i] = (min(max(own[i] - centre, least), most) - middle) * factor


@compiled_any_order
def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, lines: Lines) -> None:
    """Write to `lines` (k, n) for each of the levels (k,) `high` (k,) where the codes (n,) are it, `low` elsewhere."""
    for k in range(len(levels)):
        level, other, own, out = float(levels[k]), low[k], high[k], lines[k]
        for i in range(len(codes)):
            out[i] = own if codes[i] == level else other


@compiled_any_order
def write_above(lines: Lines, which: Places, factor: Floats, above: Lines) -> None:
    """Write to `above` (k, n) what of the lines is above zero, times `factor` (k,)."""
    for k in range(len(which)):
        own, out, scale = lines[which[k]], above[k], lines.dtype.type(factor[k])
        zero = own[0] - own[0]
        for i in range(len(own)):
            out[i] = max(own[i], zero) * scale
