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
        control, treated = (projected(u, line) for line in self.lines.values)
        for_control, for_treated = (projected(u, line) for line in self.weights)
        counts = np.where(t == 1, self.people[1], self.people[0])
        own = np.where(t == 1, for_treated * (y - treated), -for_control * (y - control))
        return np.asarray(counts * (treated - control - self.effect) + own)


@dataclass(frozen=True, slots=True)
class Index:
    """A line on z and evenly spaced knots: a row's hats say between which knots its index lies, and where.

    Hats are not negative and add up to one; they are linear in the index between knots, and constant beyond the ends.
    """

    centre: float
    line: Floats
    knots: Floats

    def hats(self, z: Floats) -> Floats:
        """Return every row's hats, (rows, knots), of which at most two are not zero."""
        knots, last = self.knots, len(self.knots) - 1
        place = np.nan_to_num(projected(z, self.line) - self.centre - knots[0]) / (knots[1] - knots[0])
        place = np.clip(place, 0.0, last)
        left = np.minimum(place.astype(np.int64), last - 1)
        rows, part = np.arange(len(place)), place - left
        found = np.zeros((len(place), last + 1))
        found[rows, left], found[rows, left + 1] = 1.0 - part, part
        return found


@dataclass(frozen=True, slots=True)
class BendSums:
    """Sums over the rows of one arm, in units of 4**-TERM_BITS: of h h', h g and h rho."""

    hats: list[list[int]]
    weights: list[int]
    residuals: list[int]


def bend_sums(
    row_blocks: Iterable[Block], knots: int, score: ArmScore, reaches: Floats, shares: Floats, clip: float
) -> list[BendSums]:
    """Return, for the untreated and the treated, sums of hats h, which end the rows, with weights and residuals.

    g is an arm's weight times its share less one, over the arm's reach, and rho a residual over `clip`, both clipped
    to one.
    """
    totals = [[WholeSum() for _ in range(3)] for _ in range(2)]
    for row, t, y in row_blocks:
        u, hats = row[:, :-knots], steps(row[:, -knots:], TERM_BITS)
        weight = [projected(u, line) for line in score.weights]
        rho = whole(score.lines.residual(u, t, y) / clip).astype(np.float64)
        for arm in (0, 1):
            own = t == arm
            g = whole((weight[arm][own] * shares[arm] - 1) / reaches[arm]).astype(np.float64)
            # As in `residual_sums`: doubles add these products exactly.
            for place, term in enumerate((hats[own].T @ hats[own], g @ hats[own], rho[own] @ hats[own])):
                totals[arm][place].add(term.astype(np.int64))
    return [BendSums(*(total.whole().tolist() for total in own)) for own in totals]


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


def score_sums(row_blocks: Iterable[Block], score: ArmScore, clip: float) -> tuple[int, int]:
    """Return the sums of scores over `clip`, clipped to one, and of their squares, in 2**- and 4**-TERM_BITS."""
    total = square = 0
    for u, t, y in row_blocks:
        r = whole(score.of(u, t, y) / clip)
        total, square = total + int(r.sum()), square + int((r * r).sum())
    return total, square


def score_sizes(row_blocks: Iterable[Block], score: ArmScore) -> Iterator[Floats]:
    """Yield the sizes of the scores, a block at a time."""
    for u, t, y in row_blocks:
        yield np.abs(score.of(u, t, y))


def whole(part: Floats) -> NDArray[np.int64]:
    """Return parts of a bound in whole steps, inside [-1, 1] whatever was computed; what is no number counts as 0."""
    found: NDArray[np.int64] = np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _ONE).astype(np.int64)
    return found
