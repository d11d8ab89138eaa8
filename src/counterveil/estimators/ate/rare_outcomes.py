"""Outcomes that few people carry: a clip that follows a standard deviation would cut these people off."""

from __future__ import annotations

# A mean beyond this part of half the range from its middle: nearly everybody is at one end.
_CROWDED_MEAN = 0.7
# No residual of an outcome in its range is longer, in units of half the range.
LONGEST_RESIDUAL = 2.0


def carried_by_few(mean: float) -> bool:
    """Return whether a released mean outcome, in units of half the range around its middle, lies near an end."""
    return abs(mean) > _CROWDED_MEAN
