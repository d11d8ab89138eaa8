"""The round number to whose multiples outcomes seem to be rounded, as noisy counts by cell show it.

Rounded outcomes make cells fuller that hold more multiples of the round number u than their neighbours. With e_j
how much more cell j should then hold than the mean of the two beside it, d_j how much more it does, and v_j the
variance of d_j by chance and noise, u is taken where

    sum_j e_j d_j / v_j > max(3.5 sqrt(sum_j e_j^2 / v_j), 0.2 sum_j e_j^2 / v_j):

it surely shows, and a fifth of outcomes or more are rounded. In: noisy counts of both arms and edges in units of the
outcome. Out: u in these units, 0 for none. Quantiles then allow for where within a cell outcomes lie.
"""

from __future__ import annotations

from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.inference.survival.recorded_units import FEWEST_CELLS, ROUNDING
from counterveil.inference.survival.within_cells import points_of
from counterveil.numerics.arrays import Floats

# Round numbers from this part of a mean cell on are looked for.
_FINEST = 0.3
# Standard deviations of chance and noise by which rounding must show.
_SEEN = 3.5
# Part of outcomes that must be rounded.
_PART_ROUNDED = 0.2
# Variance of a cell less the mean of the two beside it, in variances of one: 1 + 2 / 4.
_BESIDE_VARIANCE = 1.5
# The least density of outcomes, where noise left none.
_LEAST_DENSITY = 1e-12


def heaped_unit(edges: Floats, counts: Floats, design: Floats, noise_sd: float) -> float:
    """Return the largest round number to whose multiples outcomes seem to be rounded; 0 for none.

    Counts (2, J) of cells between edges (J + 1,), in units of the outcome. Cells that hold more multiples
    of such a number than the cells beside them hold more people. How much more a cell holds of its length
    than the two beside it is compared with how many more multiples it has. The first and the last cell,
    which hold outcomes beyond the range, say nothing.
    """
    points = points_of(np.diff(edges))
    edges = edges[np.append(~points, True)]
    counts = _with_their_points(counts, points)
    lengths = np.diff(edges)[1:-1]
    if len(lengths) < FEWEST_CELLS:
        return 0.0
    # Whole numbers with cells of their own are no crowds within others.
    whole_numbers = bool(points[1:-1].any())
    dense = np.clip(_around(counts[:, 1:-1] / lengths), _LEAST_DENSITY, None)
    above = _beside(counts[:, 1:-1] / lengths)
    variances = (
        (np.maximum(dense * lengths[1:-1], 1.0) * design[:, None] + noise_sd**2)
        / lengths[1:-1] ** 2
        * _BESIDE_VARIANCE
    )
    largest_unit = 0.0
    first = 10.0 ** floor(np.log10(lengths.mean() * _FINEST))
    for unit in (first * step * ten for ten in (1, 10) for step in (1, 2, 5)):
        held = np.diff(np.floor(edges / unit + ROUNDING))[1:-1] * unit / lengths
        expected = dense * _beside(held[None])
        power = float(np.sum(expected**2 / variances))
        evidence = float(np.sum(expected * above / variances))
        is_seen = power > 0 and evidence > max(_SEEN * sqrt(power), _PART_ROUNDED * power)
        if is_seen and not (whole_numbers and unit >= 1):
            largest_unit = unit
    return largest_unit


def _with_their_points(counts: Floats, points: NDArray[np.bool_]) -> Floats:
    """Return the counts (2, J) of cells, of which those of points are added to the cell before, which they end."""
    cell = np.maximum(np.cumsum(~points) - 1, 0)
    return np.array([np.bincount(cell, weights=of_arm, minlength=int((~points).sum())) for of_arm in counts])


def _beside(cells: Floats) -> Floats:
    """Return how much more every inner cell has than the two beside it have on average."""
    return np.asarray(cells[:, 1:-1] - (cells[:, 2:] + cells[:, :-2]) / 2)


def _around(cells: Floats) -> Floats:
    """Return the mean of every inner cell and the two beside it."""
    return np.asarray((cells[:, 1:-1] * 2 + cells[:, 2:] + cells[:, :-2]) / 4)
