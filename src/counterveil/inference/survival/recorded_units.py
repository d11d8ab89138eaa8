"""The unit in which times were recorded, as released tables show it: whole days, weeks or months of a year.

Where curves may fall at multiples of a unit u alone, edges of cells stand for the last multiple before them.
A cell between edges a and b holds floor(b / u) - floor(a / u) multiples, one more or less than its neighbours
by where its edges lie; that events follow this number rather than the length b - a gives the unit away. u is
taken where events per multiple are smoother than events per length by a sum of squares, in variances of
chance and noise, that is larger by `_BETTER`.

In: noisy tables, edges in the unit of the data. Out: u in that unit, 0 where times may be anywhere. It
decides how wide intervals are; it reads released numbers alone, and privacy does not depend on it or on its
constants.
"""

from __future__ import annotations

import numpy as np

from counterveil.inference.survival.tables import NoisyTables, blocks_of
from counterveil.numerics.arrays import Floats

# Units that times are recorded in: whole ones, quarters, months and weeks of a year.
_UNITS = (1.0, 1 / 4, 1 / 12, 1 / 52)
# Cells that are needed to tell.
FEWEST_CELLS = 4
# How much less rough events must be, as a sum of squares in standard deviations.
_BETTER = 8.0
# Times that are so little above a whole number are that number.
ROUNDING = 1e-9


def recorded_unit(tables: NoisyTables) -> float:
    """Return the unit whose multiples times may be, 0 where they are between.

    Where cells hold unequal numbers of multiples for their lengths, the events tell. Where the declared
    ends are whole, cells do not tell whole times from others: then they may be whole.
    """
    edges = np.array(tables.edges)
    blocks = blocks_of(tables)
    events = blocks.events.sum(axis=0)
    noise = len(blocks.counts) * blocks.event_variances[-1]
    lengths = np.diff(edges)
    variances = np.maximum(events, 1.0) + noise
    if tables.convention == "end" or len(lengths) < FEWEST_CELLS:
        return 0.0
    least = _roughness(events, variances, lengths) - _BETTER
    longest = 0.0
    for unit in _UNITS:
        held = np.diff(np.floor(edges / unit + ROUNDING))
        if edges[-1] / unit % 1 > ROUNDING:
            continue
        if unit == 1 and np.abs(held - lengths).max() < ROUNDING:
            return 1.0
        rough = _roughness(events, variances, held)
        if rough < least:
            least = rough
            longest = unit
    return longest


def _roughness(events: Floats, variances: Floats, sizes: Floats) -> float:
    """Return how far events are from a smooth number for each size, as a sum of squares in standard deviations."""
    full = sizes > 0
    rates = events[full] / sizes[full]
    spread = variances[full] / sizes[full] ** 2
    apart = rates[1:-1] - (rates[2:] + rates[:-2]) / 2
    smooth = np.sum(apart**2 / (spread[1:-1] + (spread[2:] + spread[:-2]) / 4))
    return float(smooth + np.sum(events[~full] ** 2 / variances[~full]))
