"""Rows of two arms: exact sums of their second moments and residuals, and the score of every row.

All parameters are public or were released before; a row's terms depend on that row alone. Outcomes are in units of a
released scale, around a released centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import WholeSum, projected, steps
from counterveil.statistics.moments.kernels.scores import TERM_BITS, Block

_ONE = 1 << TERM_BITS


@dataclass(frozen=True, slots=True)
class ArmLines:
    """Lines on u = (1, z) that predict the outcome in each arm, (2, m): the untreated first."""

    values: Floats

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return every row's outcome less the prediction for its own arm."""
        control, treated = (projected(u, line) for line in self.values)
        return np.asarray(y - np.where(t == 1, treated, control))


@dataclass(frozen=True, slots=True)
class ArmScore:
    """The augmented inversely weighted score of a row (Robins, Rotnitzky and Zhao 1994), less an effect.

    Weights are lines on u, (2, m), one for each arm; `people` says how much a row of each arm counts in the population
    asked about.
    """

    lines: ArmLines
    weights: Floats
    people: tuple[float, float]
    effect: float

    def of(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return the score of every row; its mean plus the effect is the estimate."""
        control, treated, own = self._parts(u, t, y)
        counts = np.where(t == 1, self.people[1], self.people[0])
        return np.asarray(counts * (treated - control - self.effect) + np.where(t == 1, own, -own))

    def average(self, u: Floats, t: Floats, y: Floats, level: float) -> Floats:
        """Return every row's score of the average of both arms' means, less a level; everyone is asked about."""
        control, treated, own = self._parts(u, t, y)
        return np.asarray((treated + control + own) / 2 - level)

    def _parts(self, u: Floats, t: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what both lines predict, and the weighted residual of a row's own arm."""
        control, treated = (projected(u, line) for line in self.lines.values)
        for_control, for_treated = (projected(u, line) for line in self.weights)
        own = np.where(t == 1, for_treated * (y - treated), for_control * (y - control))
        return control, treated, own


def residual_sums(
    row_blocks: Iterable[Block], lines: ArmLines, clip: float, reach: float
) -> tuple[list[int], int]:
    """Return the sums of u rho / (reach clip) over the untreated, then over the treated, and of (rho / clip)^2.

    Residuals rho are clipped to [-clip, clip]; |u| <= reach. The first are in units of 2**-(2 TERM_BITS), the second
    of 4**-TERM_BITS.
    """
    total, square = WholeSum(), 0
    for u, t, y in row_blocks:
        rho = whole(lines.residual(u, t, y) / clip)
        # |direction| and |rho| are at most 2**20, so that 4096 products stay below 2**53: doubles add them exactly.
        direction = steps(u / reach, TERM_BITS)
        sums = [(rho * (t == arm)).astype(np.float64) @ direction for arm in (0, 1)]
        total.add(np.concatenate(sums).astype(np.int64))
        square += int((rho * rho).sum())
    return list(np.atleast_1d(total.whole())), square


@dataclass(frozen=True, slots=True)
class Average:
    """Where scores of the average of both arms' means lie: a level, and a clip around it."""

    level: float
    clip: float


def score_sums(
    row_blocks: Iterable[Block], score: ArmScore, clip: float, average: Average | None = None
) -> tuple[int, int, int]:
    """Return the sums of scores over `clip`, clipped to one, and of their squares, in 2**- and 4**-TERM_BITS.

    The third is that of (1 + s)/2 in 2**-(1 + TERM_BITS), s being scores of an `average` over its clip.
    """
    total = square = other = 0
    for u, t, y in row_blocks:
        r = whole(score.of(u, t, y) / clip)
        total, square = total + int(r.sum()), square + int((r * r).sum())
        if average is not None:
            other += int((_ONE + whole(score.average(u, t, y, average.level) / average.clip)).sum())
    return total, square, other


def score_sizes(row_blocks: Iterable[Block], score: ArmScore) -> Iterator[Floats]:
    """Yield the sizes of the scores, a block at a time."""
    for u, t, y in row_blocks:
        yield np.abs(score.of(u, t, y))


def whole(part: Floats) -> NDArray[np.int64]:
    """Return parts of a bound in whole steps, inside [-1, 1] whatever was computed; what is no number counts as 0."""
    found: NDArray[np.int64] = np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _ONE).astype(np.int64)
    return found
