"""Whatever double reaches it, the fixed point lies in its range, and no value is made an integer that is not finite."""

import struct

import numpy as np
import pytest

from counterveil.data import OUTCOME_STEPS, Range
from counterveil.data.domains import clamp, to_steps


def doubles():
    """Return every sign and exponent with five mantissas: all kinds of NaN are among them."""
    bits = [
        (sign << 63) | (exponent << 52) | mantissa
        for sign in (0, 1)
        for exponent in range(2048)
        for mantissa in (0, 1, 1 << 51, (1 << 51) + 7, (1 << 52) - 1)
    ]
    return np.frombuffer(struct.pack(f"{len(bits)}Q", *bits), dtype=np.float64)


BOUNDS = [(0, 1), (-3, 5), ("1/3", "2/3"), (-1e300, 1e300), (0, "1e-199"), (1e299, 1e300), (-1, 2**60)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_steps_and_clamped_values_are_total(bounds):
    values, domain = doubles(), Range(*bounds)
    # A cast of what is not finite, or out of range, would raise here.
    with np.errstate(invalid="raise", over="raise"):
        steps, clamped = to_steps(values, domain), clamp(values, domain)
    low, high = domain.floats()
    assert steps.dtype == np.int64
    assert ((steps >= 0) & (steps <= OUTCOME_STEPS)).all()
    assert ((clamped >= low) & (clamped <= high)).all()
    unknown = np.isnan(values)
    assert unknown.sum() == 8
    assert (steps[unknown] == 0).all()
    assert (clamped[unknown] == low).all()
    assert (steps[values >= float(domain.hi)] == OUTCOME_STEPS).all()
    assert (steps[values <= float(domain.lo)] == 0).all()
