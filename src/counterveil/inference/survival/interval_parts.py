"""Parts that intervals of curves share: widths of sampling error and noise together, and bias of two arms.

    half-width = sqrt((z s)^2 + (q t)^2),

with s and t the standard deviations of sampling error and noise (in units of the estimate), z the normal
quantile of the level and q that of the noise in its standard deviations, q >= z. Out of `quantiles`: z and q.
A normal plus a Laplace number is not beyond this half-width more often than one minus the level; for noise
that is a sum of several Laplace numbers q is Cornish and Fisher's, by its excess kurtosis, where that is
less.

`joint_bias` bounds the bias of a difference of two arms by those of both. That arms differ by no more than a
quarter of what is possible (`APART`) is an assumption on how hazards change within cells: coverage depends on
it, privacy does not. All numbers are released or public.
"""

from __future__ import annotations

from math import log, sqrt

from scipy.special import ndtri

# How far apart arms may be in what changes within cells, as a part of what is possible.
APART = 0.25


def quantiles(level: float, heavy: float) -> tuple[float, float]:
    """Return how many standard deviations of sampling error and of noise an interval takes.

    `heavy` is the excess kurtosis of the noise as a part of Laplace's. That of one Laplace number is taken
    at its own quantile, that of several at Cornish and Fisher's where it is less; a normal plus a Laplace
    number is not beyond the root of both squares more often.
    """
    normal = -float(ndtri((1 - level) / 2))
    several = normal + heavy * (normal**3 - 3 * normal) / 8
    return normal, max(normal, min(several, -log(1 - level) / sqrt(2)))


def joint_bias(first: float, second: float, apart: float = APART) -> float:
    """Return how far the difference of two arms may be off, each of which may be off by so much alone.

    Hazards change within cells in much the same way in both arms: what differs by arm is not taken for more
    than a quarter of what is possible, or than another part `apart`.
    """
    return min(abs(first - second) + apart * (first + second), first + second)
