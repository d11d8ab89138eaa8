"""A score for every row whose mean over any set of people estimates the effect on them, from released numbers.

Outcomes are in units of half their range. Plain: psi = (t - e)/(e(1-e)) (y - c) with the share treated e and a
mean outcome c. Adjusted: psi = (t - e(x)) (y - m(x) - b (t - e)) / (e(x)(1 - e(x))), to which b is added back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.statistics.moments.doubly_robust_models import LONGEST_RESIDUAL, carried_by_few
from counterveil.statistics.moments.kernels.scores import LOWEST, Models
from counterveil.statistics.moments.records import Part

# An arm with a smaller part of everybody than this is one of few people.
_FEW = 0.25

Leaving = Callable[[Part], tuple[Floats, ...]]


class Score(Protocol):
    """Scores of rows, from public and released numbers alone."""

    @property
    def offset(self) -> float:
        """What is added to a mean of scores to get an effect."""
        ...

    @property
    def reach(self) -> float:
        """Scores beyond plus or minus this are left to the clip; public."""
        ...

    @property
    def variance(self) -> float:
        """About the variance of the scores, from numbers released before."""
        ...

    @property
    def crowded(self) -> bool:
        """Whether few people carry the scores, so that a multiple of their standard deviation would cut these off."""
        ...

    @property
    def part_reached(self) -> float:
        """The mean square of scores as a part of that of what a histogram shows of them."""
        ...

    @property
    def extra(self) -> float:
        """Variance that errors of numbers released before add to an effect."""
        ...

    @property
    def bias(self) -> float:
        """Bound on what the models' shared noise adds to an effect."""
        ...

    @property
    def models_leave(self) -> Leaving | None:
        """What the models leave of treatment and outcome, as parts of their bounds; None without models."""
        ...

    @property
    def left_bounds(self) -> tuple[float, ...]:
        """The bounds of what the models leave."""
        ...

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        ...

    def placed(self, part: Part, /) -> Floats:
        """Return what a histogram shows of a block of rows: scores, or how far these could reach."""
        ...


@dataclass(frozen=True, slots=True)
class PlainScore:
    """The score of a trial: share treated and mean outcome, without covariates.

    `share_sd` is the noise in the share, zero where the design declares it.
    """

    share: float
    mean: float
    share_sd: float
    square: float  # released mean square of the outcome, for the effect of the share's noise
    models_leave: None = None
    left_bounds: tuple[float, ...] = ()
    part_reached: float = 1.0

    @property
    def offset(self) -> float:
        """Nothing is taken out of a plain score."""
        return 0.0

    @property
    def reach(self) -> float:
        """The largest plain score."""
        return (1 + abs(self.mean)) / min(self.share, 1 - self.share)

    @property
    def crowded(self) -> bool:
        """Whether the mean outcome lies near an end of its range, or few are in one of the arms."""
        return carried_by_few(self.mean) or not _FEW < self.share < 1 - _FEW

    @property
    def variance(self) -> float:
        """About the variance of the scores of the smaller arm, which are the larger ones."""
        return _variance(self.square, self.mean) / min(self.share, 1 - self.share) ** 2

    @property
    def extra(self) -> float:
        """The share's noise meets the distance of a group's mean outcome from that of everybody.

        That is not taken for more than a standard deviation of the outcome.
        """
        return _variance(self.square, self.mean) * (self.share_sd / (self.share * (1 - self.share))) ** 2

    @property
    def bias(self) -> float:
        """None."""
        return 0.0

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        e = self.share
        return np.asarray(np.where(part.treated, 1 / e, -1 / (1 - e)) * (part.y - self.mean))

    placed = value


@dataclass(frozen=True, slots=True)
class AdjustedScore:
    """The doubly robust score of two linear models with one effect in common.

    `weight` multiplies e(1-e)/(e(x)(1-e(x))), e being the share treated; `residual_bound` is where residuals
    are clipped when their sums are released, `residual_variance` no less than their variance; `doubt` is the
    variance of an error of the propensity in a group; `crowded` says that few people carry the outcome.
    """

    standard: Standard
    models: Models
    least: float  # propensities are kept this far from 0 and 1
    residual_bound: float
    residual_variance: float
    doubt: float
    extra: float
    bias: float
    crowded: bool = False

    @property
    def offset(self) -> float:
        """The effect that the outcome's model has in common for all."""
        return self.models.effect

    @property
    def reach(self) -> float:
        """The longest residual with the largest weight; only errors of the models go beyond."""
        return LONGEST_RESIDUAL * self.largest_weight

    @property
    def part_reached(self) -> float:
        """The mean square of residuals as a part of the longest one's, where the histogram has that."""
        return min(self.residual_variance / LONGEST_RESIDUAL**2, 1.0) if self.crowded else 1.0

    @property
    def largest_weight(self) -> float:
        """The largest weight of a residual, at the ends of what released propensities can be."""
        standard, slopes = self.standard, np.abs(self.models.shrunk[1:])
        furthest = np.minimum((1 + np.abs(standard.centre)) / standard.scale, standard.limit)
        spread = min(float(slopes @ furthest), sqrt(standard.squared_length) * float(np.linalg.norm(slopes)))
        middle = self.models.share + float(self.models.shrunk[0])
        return max(
            (1 - e) / (kept * (1 - kept))
            for e in (max(LOWEST, middle - spread), max(LOWEST, 1 - middle - spread))
            for kept in (min(max(e, self.least), 1 - self.least),)
        )

    @property
    def variance(self) -> float:
        """About the variance of the scores."""
        return self.residual_variance * self.weight

    @property
    def weight(self) -> float:
        """A typical weight of a residual."""
        return 1 / (self.models.share * (1 - self.models.share))

    @property
    def left_bounds(self) -> tuple[float, ...]:
        """Bounds of what is left of treatment and outcome, and of the information."""
        share = self.models.share
        return 1.0, self.residual_bound, self.largest_weight * max(share, 1 - share)

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        u, t = self.standard.rows(part.x), part.treated.astype(np.float64)
        return np.asarray(self._weights(u, t) * self.models.residual(u, t, part.y))

    def placed(self, part: Part, /) -> Floats:
        """Return the scores, or where few people carry the outcome what they would be for the longest residual."""
        if not self.crowded:
            return self.value(part)
        return LONGEST_RESIDUAL * self._weights(self.standard.rows(part.x), part.treated.astype(np.float64))

    def _weights(self, u: Floats, t: Floats) -> Floats:
        e = np.clip(self.models.score(u), self.least, 1 - self.least)
        return np.asarray(self.models.treatment_residual(u, t) / (e * (1 - e)))

    def models_leave(self, part: Part) -> tuple[Floats, ...]:
        """Return what the models leave of treatment and outcome, and how much a score moves with the effect.

        All as parts of their bounds. Scores move by the last, the information, where every effect moves by one: by
        less on average where propensities are shrunk or kept away from 0 and 1.
        """
        u, t = self.standard.rows(part.x), part.treated.astype(np.float64)
        left = self.models.treatment_residual(u, t), self.models.residual(u, t, part.y)
        terms = (*left, self._weights(u, t) * (t - self.models.share))
        return tuple(term / bound for term, bound in zip(terms, self.left_bounds, strict=True))


@dataclass(frozen=True, slots=True)
class ArmScore:
    """Outcomes around a released mean, or around the middle of their range, for cells that are arms of groups."""

    mean: float = 0.0
    square: float = 1.0
    offset: float = 0.0
    extra: float = 0.0
    bias: float = 0.0
    models_leave: None = None
    left_bounds: tuple[float, ...] = ()
    part_reached: float = 1.0

    @property
    def crowded(self) -> bool:
        """Whether the mean outcome lies near an end of its range."""
        return carried_by_few(self.mean)

    @property
    def variance(self) -> float:
        """About the variance of the outcomes."""
        return _variance(self.square, self.mean)

    @property
    def reach(self) -> float:
        """The largest distance of an outcome from the mean."""
        return 1 + abs(self.mean)

    def value(self, part: Part, /) -> Floats:
        """Return the outcomes of a block of rows, less the mean."""
        return np.asarray(part.y - self.mean)

    placed = value


def _variance(square: float, mean: float) -> float:
    # Where noise hides the variance, a fifth of half the range stands in.
    return max(square - mean**2, 0.04)
