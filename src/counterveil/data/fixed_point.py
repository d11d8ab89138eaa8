"""Outcomes in fixed point: whole steps between two public bounds, so that sums are exact.

The map is the same for every row and looks at that row alone. Whatever the row holds, the result
is an integer in [0, OUTCOME_STEPS]; this, and nothing about floating point, is what a sensitivity
proof needs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Range

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

OUTCOME_STEPS = 2**24


def outcome_unit(bounds: Range) -> Fraction:
    """Return the exact width of one step: an outcome is about lo + unit * steps."""
    return bounds.width / OUTCOME_STEPS


def to_steps(values: Floats, bounds: Range) -> Integers:
    """Return each value, clamped and rounded down to whole steps, in [0, OUTCOME_STEPS].

    Defined for every double. A NaN, which no reader lets through, gives 0: nothing that is not finite is ever made an
    integer, since processors disagree on the result.
    """
    low, high = float(bounds.lo), float(bounds.hi)
    steps_per_unit = float(OUTCOME_STEPS / bounds.width)
    # Subtraction and multiplication round monotonically, so the whole map is monotone.
    steps = np.floor((_between(values, low, high) - low) * steps_per_unit)
    # The upper bound itself is a full number of steps, whichever way the product was rounded.
    steps[values >= high] = OUTCOME_STEPS
    return np.clip(steps, 0, OUTCOME_STEPS).astype(np.int64)


def clamp(values: Floats, bounds: Range) -> Floats:
    """Return each value moved to the nearer bound where it lies outside; infinities are outside, a NaN is below."""
    found = _between(values, *bounds.floats())
    # Adding zero makes one zero of the two, so that equal values are equal to the bit.
    found += 0.0
    return found


def _between(values: Floats, low: float, high: float) -> Floats:
    """Return a copy of the values between the bounds; what is not above the lower one, as a NaN is not, becomes it."""
    # By comparison: on signalling NaNs, the maximum differs between processors.
    found: Floats = np.where(values > low, values, low)
    np.minimum(found, high, out=found)
    return found
