"""The score of an effect: what is released of every row once propensities and mean outcomes are known.

A row's score is a line in its outcome for either arm, with coefficients of public and released numbers, in whole
numbers.
"""

# Proof: pair_scores.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import blocks
from counterveil.privacy import Estimand
from counterveil.statistics.outcome_place import Spread
from counterveil.statistics.pairs.models import Models
from counterveil.statistics.pairs.rows import PublicRows
from counterveil.statistics.pairs.sensitivity import HALVINGS, WIDEST

# Scores are whole numbers in [-2**18, 2**18]; slopes have 8 digits more. An outcome has 23 digits from the middle on.
SCORE_BITS, _SLOPE_BITS, _MIDDLE = 18, 8, OUTCOME_STEPS // 2
_SHIFT = _SLOPE_BITS + 23
# Largest slope and offset, in clips.
_STEEPEST = 1024.0
# What is released of scores: the weight of squares beside sums, and how far a replaced pair moves both in all.
Form = tuple[Fraction, Fraction]
# One score a row; and a score for the mean of either arm, zero in the rows of the other one.
WHOLE_SCORES: Form = (Fraction(1, 2), Fraction(2))
ARM_SCORES: Form = (Fraction(1, 4), Fraction(5, 2))
# Largest weights that are tried, for estimands whose weights have no bound.
_CAPS = (2.5, 4.0, 6.0, 9.0, 13.0, 20.0, 50.0)
# Rows on which the expected loss by a clip is computed.
_SAMPLE = 400
# How much of that loss does not cancel between the arms and sides, and the systematic error of a model where weights
# are capped, in standard deviations of outcomes: beside fitted propensities and beside known ones.
_ONE_SIDED, _MODEL_ERROR = (0.7, 1.0), (0.25, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """How an estimand weights rows: the tilt of all, weights of both arms, and those of products of errors.

    With an `arm`, 0 for the treated and 1 for controls, whose mean with a minus, the other one weighs nothing.
    """

    tilt: Floats
    weights: tuple[Floats, Floats]
    errors: tuple[Floats, Floats]
    estimand: Estimand = Estimand.ATE
    arm: int | None = None

    @classmethod
    def of(cls, estimand: Estimand, e: Floats) -> Target:
        """Return the weights at these propensities."""
        nothing = np.zeros(len(e))
        tilt, errors = {
            Estimand.ATE: (np.ones(len(e)), (1 - e, e)),
            Estimand.ATT: (e, (nothing, e)),
            Estimand.ATC: (1 - e, (1 - e, nothing)),
            Estimand.ATO: (e * (1 - e), (e**2 * (1 - e), e * (1 - e) ** 2)),
        }[estimand]
        return cls(tilt, (tilt / e, tilt / (1 - e)), errors, estimand)

    def of_arm(self, arm: int) -> Target:
        """Return the part of one arm; what both make together is the effect of everyone."""
        weights, errors = (
            [own * (place == arm) for place, own in enumerate(both)] for both in (self.weights, self.errors)
        )
        return Target(self.tilt, (weights[0], weights[1]), (errors[0], errors[1]), arm=arm)

    def sizes(self, e: Floats) -> tuple[float, float]:
        """Return both arms' effective numbers of rows."""
        size = float(self.tilt.sum())
        one, other = (float(own @ w**2) for own, w in zip((e, 1 - e), self.weights, strict=True))
        return size**2 / one, size**2 / other

    def start(self, models: Models) -> float:
        """Return what the models say."""
        parts = models.treated, -models.control
        return float(self.tilt @ (sum(parts) if self.arm is None else parts[self.arm])) / float(
            self.tilt.sum()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Lines slope y + offset of either arm, treated first, cut to `clip` around `middle`; y is in [-1, 1].

    The effect is `start` plus the sum of scores over `size`.
    """

    slopes: tuple[Floats, Floats]
    offsets: tuple[Floats, Floats]
    middle: float
    clip: float
    start: float
    size: float
    lost: float = 0.0  # by the clip, expected
    capped: float = 0.0  # variance by capped weights

    def sums(
        self, treated: NDArray[np.bool_], outcome: Integers, form: Form = WHOLE_SCORES
    ) -> list[Fraction]:
        """Return the sums of v and of v^2 with its weight, v being a row's score in parts of the clip."""
        v = self.values(treated, outcome)
        one, squares = 1 << SCORE_BITS, sum(int((v[part] * v[part]).sum()) for part in blocks(len(v)))
        return [Fraction(int(v.sum()), one), form[0] * Fraction(squares, one * one)]

    def values(self, treated: NDArray[np.bool_], outcome: Integers) -> Integers:
        """Return every row's score in whole numbers, clipped."""
        (slope1, offset1), (slope0, offset0) = self._lines()
        moved = outcome - _MIDDLE
        raw = np.where(treated, slope1 * moved + offset1, slope0 * moved + offset0)
        one = 1 << SCORE_BITS
        return np.asarray(np.clip((raw + (1 << (_SHIFT - 1))) >> _SHIFT, -one, one))

    def _lines(self) -> list[tuple[Integers, Integers]]:
        """Return slopes and offsets of both arms in whole numbers; made of public and released numbers."""
        found = []
        for slope, offset in zip(self.slopes, self.offsets, strict=True):
            steep = np.clip(slope / self.clip, -_STEEPEST, _STEEPEST) * 2.0 ** (SCORE_BITS + _SLOPE_BITS)
            high = np.clip((offset - self.middle) / self.clip, -_STEEPEST, _STEEPEST) * 2.0 ** (
                SCORE_BITS + _SHIFT
            )
            found.append((np.rint(steep).astype(np.int64), np.rint(high).astype(np.int64)))
        return found


def best_scores(rows: PublicRows, models: Models, spread: Spread, target: Target, noise: float) -> Scores:
    """Return the scores with the cap of weights and the clip of least expected error; reads no private row.

    `noise` is the variance of the released sum of scores with clip 1.
    """
    e, size, start = models.propensity, float(target.tilt.sum()), target.start(models)
    best: tuple[float, Scores] | None = None
    known = int(models.score is None)
    largest = max(float(one.max()) for one in target.weights)
    for cap in [*(cap for cap in _CAPS if cap < largest), largest]:
        weights = tuple(np.minimum(one, cap) for one in target.weights)
        missed = (e * (target.weights[0] - weights[0]), (1 - e) * (target.weights[1] - weights[1]))
        capped = (_MODEL_ERROR[known] * models.sd * float(missed[0].sum() + missed[1].sum())) ** 2
        for miss, fit in zip(missed, models.arms, strict=True):
            along = rows.z.T @ miss
            capped += float(along @ fit.covariance @ along)
        own = models.sd**2 * float(e @ weights[0] ** 2 + (1 - e) @ weights[1] ** 2)
        lines = _lines(target.estimand, models, weights, start)
        for middle, clip, over in _clips(lines, weights, e, spread, target.arm is None):
            lost = _ONE_SIDED[known] * over
            expected = own + capped + lost**2 + noise * clip**2
            if best is None or expected < best[0]:
                best = expected, Scores(*lines, middle, clip, start, size, lost, capped)
    assert best is not None
    return best[1]


Lines = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def _lines(estimand: Estimand, models: Models, weights: tuple[Floats, ...], start: float) -> Lines:
    """Return slopes and offsets of both arms."""
    (w1, w0), e, m1, m0 = weights, models.propensity, models.treated, models.control
    offsets = -w1 * m1, w0 * m0
    if estimand is Estimand.ATT:
        offsets = -w1 * (m0 + start), w0 * m0
    elif estimand is Estimand.ATC:
        offsets = -w1 * m1, w0 * (m1 - start)
    elif estimand is Estimand.ATO:
        mean = e * m1 + (1 - e) * m0
        offsets = -w1 * (mean + start * (1 - e)), w0 * (mean - start * e)
    return (w1, -w0), offsets


def _clips(
    lines: Lines, weights: tuple[Floats, ...], e: Floats, spread: Spread, centred: bool
) -> list[tuple[float, float, float]]:
    """Return middles, clips and what they are expected to lose; the whole range where outcomes are not searched.

    Scores that are not `centred` have zero as their middle, lest rows of the other arm count.
    """
    if spread.distances is None or spread.shares is None:
        ends = [slope * y + offset for slope, offset in zip(*lines, strict=True) for y in (-1.0, 1.0)]
        low, high = min(float(end.min()) for end in ends), max(float(end.max()) for end in ends)
        low, high = (low, high) if centred else (-max(-low, high), max(-low, high))
        return [((low + high) / 2, max((high - low) / 2, 1e-9), 0.0)]
    inside = spread.distances[spread.shares > 0]
    widest = WIDEST * max(float(one.max()) for one in weights) * float(inside.max())
    at = slice(None, None, max(1, len(e) // _SAMPLE))
    order = [np.argsort(own, kind="stable")[at] for own in weights]
    scores = np.concatenate([own[i] for own, i in zip(weights, order, strict=True)])
    share = np.concatenate([e[order[0]], 1 - e[order[1]]]) * len(e) / len(order[0])
    found = []
    for clip in widest * 2.0 ** (-np.arange(HALVINGS) / 2):
        over = np.maximum(np.outer(scores, spread.distances) - clip, 0.0) @ spread.shares
        found.append((0.0, float(clip), float(share @ over)))
    return found
