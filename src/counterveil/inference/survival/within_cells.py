"""How far a curve may be from a straight line within a cell, judged by what the cells beside it hold.

    bias <= part * (what the cell holds),
    part about r (1 + r) / 8 in inner cells,  r (1 + 3 r) / 6 in the first and the last,

with r in [0, 1] by how much a cell holds less or more than its neighbours, as a part of the larger. A table
says how much happens in a cell, not when within it: a smooth curve bends by about as much as neighbouring
cells differ. The part is 1 where a cell is so much fuller than those beside it that everything may lie at one
place. In: noisy counts (B, J) with variances. Out: parts (B, J) without unit.

The constants are numbers of standard deviations of noise from which a change counts as seen. They decide how
wide intervals are, and so their coverage; privacy does not depend on them, as all counts were released
before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# A cell is dense that holds twice what those beside it hold, and so many standard deviations more.
_SURELY = 4.0
# How many standard deviations of chance a change may be that is not seen.
_HIDDEN = 2.0
# By how many standard deviations of chance a change that is seen may be larger.
_UNSURE = 1.5


# Cells of points are two steps of 2^-24 of the range long, all others at least 2^-15 of it.
_POINT = 2.0**-20
# What a cell holds at least, where noise left nothing.
_LEAST_HELD = 1e-9


def uneven(held: Floats, variances: Floats, rounded: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """Return how far from evenly what cells hold may be spread in them, and where smoothly; both (B, J).

    The first is a part of what the cell holds, in [0, 1].

    Where what a cell holds is by a part r less or more than the larger of it and its neighbour, a smooth
    sum is up to about r / 8 (1 + r) from its chord. In the first and the last cell, where nothing is seen
    beyond, powers are up to r / 6 (1 + 3 r) from it. Between neighbours of which one holds less and one
    more, levels may also change at once in the cell. Of a cell that surely holds more than twice what those
    beside it hold nothing is supposed: all may lie at one place. What chance and noise, with these
    variances, add to squared changes is taken off. Where outcomes may be `rounded`, a cell that holds more
    than those beside it, of which one holds less than both of its own, may hold a crowd; so may the first
    and the last, with outcomes beyond the range, unless they surely hold less than twice their neighbour;
    so may a cell between two dense ones, or between one and a cell that holds less than half of it, as a
    part of them; and changes at the ends count that chance may hide.
    """
    if held.shape[1] < 2:
        return np.ones_like(held), np.zeros(held.shape, dtype=bool)
    padded, padded_variances = (
        np.pad(values, ((0, 0), (1, 1)), mode="reflect") for values in (held, variances)
    )
    change = np.diff(padded, axis=1)
    chance = padded_variances[:, 1:] + padded_variances[:, :-1]
    sure = np.sqrt(np.clip(change**2 - chance, 0.0, None))
    hidden = np.zeros_like(sure)
    hidden[:, [0, -1]] = rounded * _HIDDEN * np.sqrt(chance[:, [0, -1]])
    changes = np.maximum(sure, hidden) / np.maximum(np.maximum(padded[:, 1:], padded[:, :-1]), _LEAST_HELD)
    r = np.minimum(np.maximum(changes[:, 1:], changes[:, :-1]), 1.0)
    inner = np.ones(held.shape[1], dtype=bool)
    inner[[0, -1]] = False
    smooth = np.where(inner, r / 8 * (1 + r), r / 6 * (1 + 3 * r))
    before = sure[:, :-1]
    after = sure[:, 1:]
    larger_change = np.where(sure > 0, sure + _UNSURE * np.sqrt(chance), 1e-300)
    step = 1 / (1 / larger_change[:, :-1] + 1 / larger_change[:, 1:]) / np.maximum(held, _LEAST_HELD)
    outer = np.pad(np.abs(change), ((0, 0), (1, 1)))
    gradual = 3 * np.minimum(outer[:, :-3], outer[:, 3:]) / np.maximum(before + after, 1e-300)
    step *= np.clip(1 - gradual, 0.0, 1.0) * (change[:, 1:] * change[:, :-1] > 0)
    is_dense = held > padded[:, 2:] + padded[:, :-2] + _SURELY * np.sqrt(variances)
    if rounded:
        unclear = np.sqrt(variances + 2 * (padded_variances[:, 2:] + padded_variances[:, :-2]))
        is_dense[:, [0, -1]] |= (held > padded[:, 2:] + padded[:, :-2] - _HIDDEN * unclear)[:, [0, -1]]
        before_it, after_it = (
            np.pad(is_dense, ((0, 0), (1, 1)))[:, inner_cells] for inner_cells in (slice(-2), slice(2, None))
        )
        is_dense |= before_it & (after_it | (held > 2 * padded[:, 2:])) | after_it & (
            held > 2 * padded[:, :-2]
        )
    beyond = np.pad(change, ((0, 0), (1, 1)))
    excess = np.clip(held - np.minimum(padded[:, 2:], padded[:, :-2]), 0.0, None) / np.maximum(
        held, _LEAST_HELD
    )
    troughs = ((beyond[:, :-3] < 0) & (before > 0)) | ((beyond[:, 3:] > 0) & (after > 0))
    excess *= rounded & troughs
    abrupt = np.where(is_dense, 1.0, np.maximum(step, excess))
    return np.clip(np.maximum(smooth, abrupt), 0.0, 1.0), inner & (smooth > abrupt)


def points_of(lengths: Floats) -> NDArray[np.bool_]:
    """Return which cells are points: so short that all that they hold is at their upper end."""
    return np.asarray(lengths < _POINT * lengths.sum())
