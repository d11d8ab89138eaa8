"""Scores of people whose mean over a group is its effect, and what released numbers say of their size.

Outcomes are in units of half their range. How scores of rows are made stands in `rows.moments.cell_scores`;
here is what released numbers say of them: their variance, the largest that there can be, what noise may hide
of them, and by how much errors of shares and models make a group's mean uncertain (`extra`, a variance, and
`bias`).

In: released shares, means and models. Out: variances and bounds of scores, without reading a row, so that it
is post-processing. Privacy of sums of scores by group: `rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np

from counterveil.estimators.moments.nuisance_models import LONGEST_RESIDUAL
from counterveil.estimators.moments.scaling import is_near_bound
from counterveil.numerics.products import Standard
from counterveil.rows.moments.cell_scores import AdjustedRows, MeanRows, PlainRows
from counterveil.rows.moments.linear_models import LOWEST, LinearModels

# An arm with a smaller part of everybody than this is one of few people.
_FEW = 0.25
# Where noise hides the variance of outcomes, a fifth of half the range stands in for their standard deviation.
_HIDDEN_VARIANCE = 0.04


@dataclass(frozen=True, slots=True)
class PlainScore:
    """The score of a trial: share treated and mean outcome, without covariates.

    Attributes
    ----------
    share, mean : float
        Released.
    share_sd : float
        Noise in the share, zero where the design declares it.
    square, square_sd : float
        Released mean square of the outcome, for the effect of the share's noise, and its noise.
    part_reached : float
        The mean square of scores as a part of what a histogram has of them.
    """

    share: float
    mean: float
    share_sd: float
    square: float
    square_sd: float = 0.0
    part_reached: float = 1.0

    @property
    def rows(self) -> PlainRows:
        """How scores of rows are made."""
        return PlainRows(self.share, self.mean)

    @property
    def offset(self) -> float:
        """Nothing is taken out of a plain score."""
        return 0.0

    @property
    def largest_score(self) -> float:
        """The largest plain score."""
        return (1 + abs(self.mean)) / min(self.share, 1 - self.share)

    @property
    def heavy_tailed(self) -> bool:
        """Whether the mean outcome lies near an end of its range, or few are in one of the arms."""
        return is_near_bound(self.mean) or not _FEW < self.share < 1 - _FEW

    @property
    def variance(self) -> float:
        """About the variance of the scores of the smaller arm, which are the larger ones."""
        return _variance(self.square, self.mean) / min(self.share, 1 - self.share) ** 2

    def unseen(self, seen: float) -> float:
        """Return the mean square of scores that a histogram with this variance may not show, or the noise in it."""
        weight = 1 / (self.share * (1 - self.share))
        return max(weight * (self.square - self.mean**2) - seen, weight * self.square_sd)

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


@dataclass(frozen=True, slots=True)
class AdjustedScore:
    """The doubly robust score of two linear models with one effect in common.

    Attributes
    ----------
    standard : Standard
        The map from covariates to what the models read.
    models : LinearModels
        Of treatment and outcome.
    least : float
        Propensities are kept this far from 0 and 1.
    residual_bound : float
        Where residuals are clipped when their sums are released.
    residual_variance : float
        No less than their variance.
    propensity_error_variance : float
        Variance of the error of a group's propensity.
    extra, bias : float
        Variance and bound of the bias that errors of the models add to a group's mean score.
    heavy_tailed : bool
        Whether few people carry the outcome.
    hidden : float
        Mean square of outcomes that noise may hide.
    """

    standard: Standard
    models: LinearModels
    least: float
    residual_bound: float
    residual_variance: float
    propensity_error_variance: float
    extra: float
    bias: float
    heavy_tailed: bool = False
    hidden: float = 0.0

    @property
    def rows(self) -> AdjustedRows:
        """How scores of rows are made; where few carry the outcome a histogram has those of the longest residual."""
        return AdjustedRows(
            self.standard,
            self.models,
            self.least,
            residual_bound=self.residual_bound,
            weight_bound=self.largest_weight,
            placed_residual=LONGEST_RESIDUAL if self.heavy_tailed else None,
        )

    def unseen(self, _seen: float) -> float:
        """Return the mean square of scores that noise may hide."""
        return 0.0 if self.heavy_tailed else self.weight * self.hidden

    @property
    def offset(self) -> float:
        """The effect that the outcome's model has in common for all."""
        return self.models.effect

    @property
    def largest_score(self) -> float:
        """The longest residual with the largest weight; only errors of the models go beyond."""
        return LONGEST_RESIDUAL * self.largest_weight

    @property
    def part_reached(self) -> float:
        """The mean square of residuals as a part of the longest one's, where the histogram has that."""
        return min(self.residual_variance / LONGEST_RESIDUAL**2, 1.0) if self.heavy_tailed else 1.0

    @property
    def largest_weight(self) -> float:
        """The largest weight of a residual, at the ends of what released propensities can be."""
        standard = self.standard
        slopes = np.abs(self.models.shrunk[1:])
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


@dataclass(frozen=True, slots=True)
class MeanScore:
    """Outcomes around a released mean, or around the middle of their range, for cells that are arms of groups."""

    mean: float = 0.0
    square: float = 1.0
    square_sd: float = 0.0
    offset: float = 0.0
    extra: float = 0.0
    bias: float = 0.0
    part_reached: float = 1.0

    @property
    def rows(self) -> MeanRows:
        """How scores of rows are made."""
        return MeanRows(self.mean)

    @property
    def heavy_tailed(self) -> bool:
        """Whether the mean outcome lies near an end of its range."""
        return is_near_bound(self.mean)

    @property
    def variance(self) -> float:
        """About the variance of the outcomes."""
        return _variance(self.square, self.mean)

    def unseen(self, seen: float) -> float:
        """Return the mean square of outcomes that a histogram with this variance may not show, or the noise in it."""
        return max(self.square - self.mean**2 - seen, self.square_sd)

    @property
    def largest_score(self) -> float:
        """The largest distance of an outcome from the mean."""
        return 1 + abs(self.mean)


# Scores of rows, from public and released numbers alone.
Score: TypeAlias = PlainScore | AdjustedScore | MeanScore


def _variance(square: float, mean: float) -> float:
    return max(square - mean**2, _HIDDEN_VARIANCE)
