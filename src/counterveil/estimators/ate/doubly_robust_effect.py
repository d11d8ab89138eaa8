"""The effect and its interval from two looks at the orthogonal score: post-processing of released numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.ate.doubly_robust_models import Nuisances
from counterveil.estimators.ate.doubly_robust_releases import Look
from counterveil.kernels.orthogonal_score import Models, Weights

# Clip of the score at the first look, in multiples of that at the second, and room for wrong predictions there.
_FIRST_REACH, _MARGIN = 1.25, 1.15
_LEAST_CLIP, _LARGEST_CLIP = 0.0005, 2.0
_LEAST_INFORMATION = 0.35
# (t-e)^2 is clipped here; noise in e may carry it beyond one.
_LARGEST_INFORMATION = 1.2

LookAt = Callable[[str, Models, float, float], Look]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect in units of half the outcome's range, and the parts of its uncertainty.

    `sampling`, `noise` and `product` are variances, `bias` is a bound that is added to the half-width.
    """

    value: float
    sampling: float
    noise: float
    product: float
    bias: float
    information: float


@dataclass(frozen=True, slots=True)
class Scorer:
    """What both looks share: weights, number of rows, clip in standard deviations, and the release itself."""

    weights: Weights
    rows: int
    reach: float
    look: LookAt

    def first(self, nuisances: Nuisances) -> tuple[Nuisances, Look]:
        """Return the models around the effect of a first look, and the look; its name is "look"."""
        size = _relative_size(nuisances, self.weights)
        clip = _FIRST_REACH * self.reach * size * _spread(nuisances)
        clip = float(np.clip(clip, self._least_clip(nuisances), _LARGEST_CLIP))
        seen = self.look("look", nuisances.models, clip, _LARGEST_INFORMATION * size)
        return _after_first(nuisances, seen, self._floor(nuisances)), seen

    def last(self, nuisances: Nuisances, first: Look) -> Effect:
        """Return the effect from a last look, called "score"; the models may have been refined since the first."""
        size = _relative_size(nuisances, self.weights)
        predicted = size * _spread(nuisances) * _MARGIN
        measured = sqrt(max(first.square, 0.0) + 1.5 * first.square_sd)
        clip = self.reach * min(predicted, measured)
        clip = float(np.clip(clip, self._least_clip(nuisances), _LARGEST_CLIP))
        seen = self.look("score", nuisances.models, clip, _LARGEST_INFORMATION * size)
        return _effect(nuisances, first, seen, self._floor(nuisances), self.rows)

    def _least_clip(self, nuisances: Nuisances) -> float:
        share = nuisances.models.share
        largest = nuisances.least_clip * max(share, 1 - share) * _relative_size(nuisances, self.weights)
        return max(_LEAST_CLIP, largest)

    def _floor(self, nuisances: Nuisances) -> float:
        part = 1.0 if self.weights.target == "overlap" else 0.7
        return _LEAST_INFORMATION * nuisances.variance * part * _relative_size(nuisances, self.weights)


def _spread(nuisances: Nuisances) -> float:
    """Return an upper estimate of the standard deviation of the unweighted score."""
    return sqrt((nuisances.variance + nuisances.echo) * nuisances.left)


def _relative_size(nuisances: Nuisances, weights: Weights) -> float:
    """Return about how large weights are beside one: a score is that much smaller."""
    if weights.target == "overlap":
        return 1.0
    share = min(max(nuisances.models.share, weights.least), 1 - weights.least)
    middle = float(weights.of(np.array([share]))[0])
    return min(1.4 * middle, 1.0)


def _after_first(nuisances: Nuisances, first: Look, floor: float) -> Nuisances:
    """Return the models around the effect of the first look."""
    weight = _weight(first.weight)
    information = max(first.information - nuisances.echo * weight, floor)
    step = (first.score + nuisances.shared * weight) / information
    sd = first.score_sd / information
    expected = nuisances.wander * nuisances.product / nuisances.variance**2 + 0.0025
    step *= expected / (expected + sd * sd)
    models = nuisances.models
    models = replace(models, effect=models.effect + step, outcome=models.outcome - step * models.shrunk)
    shared = nuisances.shared + step * nuisances.treatment_factor * nuisances.echo
    product = nuisances.product + step**2 * nuisances.gamma_error
    return replace(nuisances, models=models, shared=shared, product=product)


def _effect(nuisances: Nuisances, first: Look, second: Look, floor: float, rows: int) -> Effect:
    # The second look has four times the budget of the first.
    ours = _weights_of_looks(first, second)
    information = ours * second.information + (1 - ours) * first.information
    weight = _weight(ours * second.weight + (1 - ours) * first.weight)
    denominator = max(information - nuisances.echo * weight, floor)
    last = (second.score + nuisances.shared * weight) / denominator
    m = len(nuisances.models.outcome)
    information_variance = ours**2 * second.information_sd**2 + (1 - ours) ** 2 * first.information_sd**2
    information_variance += 2 * (nuisances.echo * weight) ** 2 / m + 0.05 * information**2 / rows
    product = nuisances.product + last**2 * nuisances.gamma
    square = max(second.square, 0.0) + second.square_sd
    noise = second.score_sd**2 + last**2 * information_variance
    models = nuisances.wander * product * weight**2 + 2 * (nuisances.shared * weight) ** 2 / m
    return Effect(
        nuisances.models.effect + last,
        square / max(rows - m - 1, 1) / denominator**2,
        noise / denominator**2,
        models / denominator**2,
        nuisances.bias * weight / denominator,
        denominator,
    )


def _weights_of_looks(first: Look, second: Look) -> float:
    a, b = first.information_sd**2, second.information_sd**2
    return a / (a + b)


def _weight(value: float) -> float:
    return min(max(value, 0.05), 1.0)
