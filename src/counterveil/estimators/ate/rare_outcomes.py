"""Outcomes that few people carry: a clip that follows a standard deviation would cut these people off."""

from __future__ import annotations

# A mean beyond this part of half the range from its middle: nearly everybody is at one end.
_CROWDED_MEAN = 0.7
# No residual of an outcome in its range is longer, in units of half the range.
LONGEST_RESIDUAL = 2.0
# An outcome that loses this part of its variance when it is clipped has heavy tails (normal ones lose a twentieth).
_HEAVY = 0.3
# A clip is made so long that noise adds these parts of the sampling error: little, and as much again where tails are
# heavy, because there a near clip moves the effect itself.
_ROOM, _HEAVY_ROOM = 0.2, 1.0
# Clips beyond this many standard deviations cut nobody off.
_LONGEST_REACH = 60.0


def carried_by_few(mean: float) -> bool:
    """Return whether a released mean outcome, in units of half the range around its middle, lies near an end."""
    return abs(mean) > _CROWDED_MEAN


def heavy_tailed(variance: float, clipped: float, noise: float) -> bool:
    """Return whether an outcome's released variance falls by much when it is clipped; `noise` is that of the fall."""
    return variance - clipped > max(_HEAVY * variance, noise)


def longer_reach(reach: float, noise: float, heavy: bool) -> float:
    """Return where the score is clipped, in its standard deviations: at `reach`, or further out where noise allows.

    `noise` is the noise of the mean of a score clipped at one standard deviation, beside the sampling error.
    """
    return max(reach, min((_HEAVY_ROOM if heavy else _ROOM) / noise, _LONGEST_REACH))
