"""Fixed point: whatever the values, the steps are in range, in order, and stable."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from counterveil.data import OUTCOME_STEPS, Range
from counterveil.data.domains import clamp, to_steps

anything = st.floats(allow_nan=False, allow_infinity=True)
numbers = st.floats(min_value=-1e300, max_value=1e300, allow_subnormal=False)


@st.composite
def ranges(draw):
    low = draw(numbers)
    width = draw(st.floats(min_value=1e-3, max_value=1e6))
    high = low + width * max(1.0, abs(low))
    return Range(low, high if abs(high) <= 1e300 else 1e300) if low < 1e299 else Range(0, low)


def near(bounds):
    """Values around and inside the bounds, where the edges are."""
    low, high = float(bounds.lo), float(bounds.hi)
    edges = [np.nextafter(low, -np.inf), low, np.nextafter(low, np.inf), np.nextafter(high, -np.inf), high]
    inside = st.floats(min_value=0, max_value=1).map(lambda share: low + share * (high - low))
    return st.one_of(anything, inside, st.sampled_from([*edges, np.nextafter(high, np.inf)]))


@given(st.data(), ranges())
def test_steps_are_in_range_monotone_and_stable(data, bounds):
    values = np.sort(np.array(data.draw(st.lists(near(bounds), min_size=1, max_size=50))))
    steps = to_steps(values, bounds)
    assert steps.dtype == np.int64
    assert steps.min() >= 0
    assert steps.max() <= OUTCOME_STEPS
    assert np.all(np.diff(steps) >= 0)
    np.testing.assert_array_equal(
        to_steps(np.clip(values, float(bounds.lo), float(bounds.hi)), bounds), steps
    )
    assert np.all(steps[values >= float(bounds.hi)] == OUTCOME_STEPS)
    assert np.all(steps[values <= float(bounds.lo)] == 0)


@given(st.data(), ranges())
def test_clamping_stays_inside_the_exact_bounds_and_is_idempotent(data, bounds):
    values = np.array(data.draw(st.lists(near(bounds), min_size=1, max_size=20)))
    clamped = clamp(values, bounds)
    low, high = bounds.floats()
    assert clamped.min() >= low
    assert clamped.max() <= high
    assert clamp(clamped, bounds).tobytes() == clamped.tobytes()
    inside = (values >= low) & (values <= high)
    np.testing.assert_array_equal(clamped[inside], values[inside])
