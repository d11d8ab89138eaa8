"""A score for every row whose mean over any set of people estimates the effect on them, from released numbers.

Outcomes are in units of half their range. Plain: psi = (t - e)/(e(1-e)) (y - c) with the share treated e and a
mean outcome c. Adjusted: psi = (t - e(x)) (y - m(x) - b (t - e)) / (e(x)(1 - e(x))), to which b is added back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.statistics.moments.doubly_robust_models import RESIDUAL_REACH, carried_by_few
from counterveil.statistics.moments.kernels.scores import Models
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


@dataclass(frozen=True, slots=True)
class AdjustedScore:
    """The doubly robust score of two linear models with one effect in common.

    `weight` multiplies e(1-e)/(e(x)(1-e(x))), e being the share treated; `residual_bound` is where residuals
    are clipped when their sums are released; `doubt` is the variance of an error of the propensity in a group.
    """

    standard: Standard
    models: Models
    least: float  # propensities are kept this far from 0 and 1
    attenuation: float
    residual_bound: float
    doubt: float
    extra: float
    bias: float

    @property
    def offset(self) -> float:
        """The effect that the outcome's model has in common for all."""
        return self.models.effect

    @property
    def reach(self) -> float:
        """A bound that only wild scores exceed."""
        return 2 / self.least

    @property
    def crowded(self) -> bool:
        """The bound of residuals, from which the variance is made, sees to that."""
        return False

    @property
    def variance(self) -> float:
        """About the variance of the scores."""
        return (self.residual_bound / RESIDUAL_REACH) ** 2 * self.weight

    @property
    def weight(self) -> float:
        """A typical weight of a residual."""
        return 1 / (self.attenuation * self.models.share * (1 - self.models.share))

    @property
    def left_bounds(self) -> tuple[float, ...]:
        """Bounds of what is left of treatment and outcome."""
        return 1.0, self.residual_bound

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        u, t = self.standard.rows(part.x), part.treated.astype(np.float64)
        e = np.clip(self.models.score(u), self.least, 1 - self.least)
        turned = 1 / (e * (1 - e) * self.attenuation)
        return np.asarray(turned * self.models.treatment_residual(u, t) * self.models.residual(u, t, part.y))

    def models_leave(self, part: Part) -> tuple[Floats, ...]:
        """Return what the models leave of treatment and outcome, as parts of their bounds."""
        u, t = self.standard.rows(part.x), part.treated.astype(np.float64)
        return self.models.treatment_residual(u, t), self.models.residual(u, t, part.y) / self.residual_bound


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


def _variance(square: float, mean: float) -> float:
    # Where noise hides the variance, a fifth of half the range stands in.
    return max(square - mean**2, 0.04)
