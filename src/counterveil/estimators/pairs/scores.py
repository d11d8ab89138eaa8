"""Doubly robust scores of private pairs: their weights, where weights are capped and scores are clipped.

    effect = start + sum_i score_i / size,    score_i = (+-) w_a(x_i) (y_i - m_a(x_i)),    a = A_i,

with + for the treated and - for controls, tilting weights w_a = tilt / P(a | x) of the estimand (Li, Morgan
and Zaslavsky 2018) [1]_, models m_a of mean outcomes (for the ATT, ATC and ATO centred so that the score is
orthogonal: `_lines`), `start` the effect that the models alone say, and `size` the sum of tilts, in people. A
row's score is a line in its outcome, clipped to `middle` +- `clip`. Cap and clip are those of least expected
squared error

    sampling + (bias of the cap)^2 + (loss by the clip)^2 + noise clip^2.

In: public covariates, and models and a histogram that were released before; no private row. Out: lines and
clip that `rows/pairs/scores.py` applies to private rows and sums. Outcomes are in halves of the declared
range.

Whatever clip is taken, a replaced pair moves a clipped score by 2 clips at most: privacy follows from that
(`rows/pairs/pair_scores.proof.md`) and does not depend on the numbers of this module, which were set on
designs of `experiments/third_level`.

References
----------
.. [1] Li, F., Morgan, K. L. and Zaslavsky, A. M. (2018). Balancing covariates via propensity score weighting.
   Journal of the American Statistical Association 113, 390-400.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.outcome_place import Spread
from counterveil.estimators.pairs.features import PairFeatures
from counterveil.estimators.pairs.limits import OCTAVES, WIDEST
from counterveil.estimators.pairs.models import Models
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.rows.pairs.scores import ScoreLines

# Largest weights that are tried, for estimands whose weights have no bound.
_CAPS = tuple(round(2.5 * 2 ** (k / 4), 2) for k in range(18))
# Rows on which the expected loss by a clip is computed.
_SAMPLE = 400
# How much of that loss does not cancel between the arms and sides: beside fitted propensities and beside
# known ones.
_ONE_SIDED = (0.7, 1.0)
# The systematic error of a model where weights are capped, in standard deviations of outcomes, beside the
# same two.
_MODEL_ERROR = (0.25, 0.5)
# No clip, and no sum of hidden squares, is less.
_LEAST_CLIP = 1e-9
# Clips that are tried: so many for each halving.
_CLIPS_AN_OCTAVE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """How an estimand weights rows of these propensities; weights are made when they are read, and not held.

    Attributes
    ----------
    estimand : Estimand
        Whose average effect: everyone's, that of the treated, of the others, or of the overlap.
    propensity : ndarray of float, shape (n,)
        Chances of treatment.
    arm : int, optional
        0 for the mean of the treated, 1 for that of the others with a minus: the other arm weighs nothing.
    """

    estimand: Estimand
    propensity: Floats
    arm: int | None = None

    @property
    def tilt(self) -> Floats:
        """The tilt of all rows."""
        e = self.propensity
        if self.estimand is Estimand.ATE:
            return np.ones(len(e))
        return {Estimand.ATT: e, Estimand.ATC: 1 - e, Estimand.ATO: e * (1 - e)}[self.estimand]

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The weights of both arms."""
        return self._of_arm(self.tilt / self.propensity, self.tilt / (1 - self.propensity))

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """The weights of products of errors in both arms."""
        e = self.propensity
        nothing = np.zeros(len(self.propensity))
        return self._of_arm(
            *{
                Estimand.ATE: (1 - e, e),
                Estimand.ATT: (nothing, e),
                Estimand.ATC: (1 - e, nothing),
                Estimand.ATO: (e**2 * (1 - e), e * (1 - e) ** 2),
            }[self.estimand]
        )

    def _of_arm(self, treated: Floats, control: Floats) -> tuple[Floats, Floats]:
        return (
            treated if self.arm in (None, 0) else np.zeros(len(treated)),
            control if self.arm in (None, 1) else np.zeros(len(control)),
        )

    def of_arm(self, arm: int) -> Target:
        """Return the part of one arm; what both make together is the effect of everyone."""
        return replace(self, arm=arm)

    def sizes(self) -> tuple[float, float]:
        """Return both arms' effective numbers of rows."""
        e = self.propensity
        size = float(self.tilt.sum())
        treated, control = (
            float(chances @ w**2) for chances, w in zip((e, 1 - e), self.weights, strict=True)
        )
        return size**2 / treated, size**2 / control

    def start(self, models: Models) -> float:
        """Return what the models say."""
        means = models.treated, -models.control
        tilt = self.tilt
        return float(tilt @ (sum(means) if self.arm is None else means[self.arm])) / float(tilt.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Scores(ScoreLines):
    """Score lines that were chosen, and what is expected of them.

    The effect is `start` plus the sum of scores over `size`.

    Attributes
    ----------
    slopes, offsets, middle, clip
        As for `ScoreLines`.
    start : float
        What the models say of the effect.
    size : float
        Sum of the tilts of all rows.
    lose : float
        What the clip is expected to take off the sum.
    hidden, hidden_squares : float
        What it may take beside, of outcomes that the histogram's noise may hide, where their squared scores
        add up to so much.
    capped : float
        Variance of the sum by capped weights.
    """

    start: float
    size: float
    lose: float = 0.0
    hidden: float = 0.0
    hidden_squares: float = 1.0
    capped: float = 0.0

    def lost(self, squares: float) -> float:
        """Return what the clip loses where squared scores add up to so much: clipped ones are as large as can be."""
        return self.lose + self.hidden * min(max(squares, 0.0) / self.hidden_squares, 1.0)


@dataclass(frozen=True, slots=True)
class ScoreSample:
    """Evenly spaced rows of both arms, ordered by weight; all arrays have shape (k,).

    Attributes
    ----------
    weights : ndarray of float
        Inverse propensity weights.
    counts : ndarray of float
        Expected number of rows that each sampled row stands for.
    errors : ndarray of float
        Variances of the fitted mean outcomes.
    """

    weights: Floats
    counts: Floats
    errors: Floats


@dataclass(frozen=True, slots=True)
class ClipLoss:
    """What clipping at `clip` around `middle` is expected to take off the sum of scores, and to leave of their squares.

    Attributes
    ----------
    middle, clip : float
        Where scores are cut.
    seen, hidden : tuple of two floats
        Loss, and sum of squared scores in squares of the clip: of outcomes that the released histogram shows,
        and of those that its noise may hide.
    """

    middle: float
    clip: float
    seen: tuple[float, float]
    hidden: tuple[float, float]


def best_scores(
    features: PairFeatures, models: Models, spread: Spread, target: Target, noise: float
) -> Scores:
    """Return the scores with the weight cap and the clip of least expected squared error; reads no private row.

    Parameters
    ----------
    features : PairFeatures
        Features of the rows.
    models : Models
        Their propensities and mean outcomes.
    spread : Spread
        Where outcomes lie.
    target : Target
        How the estimand weights rows.
    noise : float
        Variance of the released sum of scores with clip 1.
    """
    start = target.start(models)
    size = float(target.tilt.sum())
    weights = target.weights
    sample = _sampled(features, models, weights)
    one_sided = _ONE_SIDED[models.score is None]
    e = models.propensity
    largest = max(float(arm.max()) for arm in weights)
    best: tuple[float, Scores] | None = None
    for cap in [*(cap for cap in _CAPS if cap < largest), largest]:
        capped = tuple(np.minimum(arm, cap) for arm in weights)
        cap_error = _cap_error(features, models, spread=spread, weights=weights, capped=capped)
        sampling = models.sd**2 * float(e @ capped[0] ** 2 + (1 - e) @ capped[1] ** 2)
        # An arm's mean is that of an average with the same tilt.
        lines = _lines(target.estimand if target.arm is None else Estimand.ATE, models, capped, start)
        capped_sample = ScoreSample(np.minimum(sample.weights, cap), sample.counts, sample.errors)
        for loss in _clips(lines, capped_sample, spread, centred=target.arm is None):
            scores = Scores(
                *lines,
                middle=loss.middle,
                clip=loss.clip,
                start=start,
                size=size,
                lose=one_sided * loss.seen[0],
                hidden=one_sided * loss.hidden[0],
                hidden_squares=max(loss.hidden[1], _LEAST_CLIP),
                capped=cap_error,
            )
            clip_loss = scores.lost(loss.seen[1] + 2 * sqrt(noise))
            expected = sampling + cap_error + clip_loss**2 + noise * loss.clip**2
            if best is None or expected < best[0]:
                best = expected, scores
    assert best is not None
    return best[1]


# Slopes and offsets of both arms.
Lines = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def _lines(estimand: Estimand, models: Models, weights: tuple[Floats, ...], start: float) -> Lines:
    """Return slopes and offsets of both arms."""
    w1, w0 = weights
    e = models.propensity
    m1 = models.treated
    m0 = models.control
    offsets = -w1 * m1, w0 * m0
    if estimand is Estimand.ATT:
        offsets = -w1 * (m0 + start), w0 * m0
    elif estimand is Estimand.ATC:
        offsets = -w1 * m1, w0 * (m1 - start)
    elif estimand is Estimand.ATO:
        mean = e * m1 + (1 - e) * m0
        offsets = -w1 * (mean + start * (1 - e)), w0 * (mean - start * e)
    return (w1, -w0), offsets


def _clips(lines: Lines, sample: ScoreSample, spread: Spread, *, centred: bool) -> list[ClipLoss]:
    """Return the clips to compare, each with its expected loss.

    Outcomes whose location was not searched (events) are never clipped: the one clip holds all scores.
    Without `centred` the middle is zero, so that rows of the other arm do not count.
    """
    if spread.distances is None or spread.shares is None or spread.hidden is None:
        ends = [slope * y + offset for slope, offset in zip(*lines, strict=True) for y in (-1.0, 1.0)]
        low = min(float(end.min()) for end in ends)
        high = max(float(end.max()) for end in ends)
        if not centred:
            low, high = -max(-low, high), max(-low, high)
        clip = max((high - low) / 2, _LEAST_CLIP)
        return [ClipLoss(middle=(low + high) / 2, clip=clip, seen=(0.0, 0.0), hidden=(0.0, 0.0))]
    # Residuals are as large as distances from the centre, and the errors of the models come on top.
    sizes = np.sqrt(spread.distances**2 + sample.errors[:, None]) * sample.weights[:, None]
    filled = spread.shares + spread.hidden > 0
    longest = float(sample.weights.max()) * float(spread.distances[filled].max())
    widest = WIDEST * max(longest, float(sizes[:, filled].max()))
    losses = []
    for clip in widest * 2.0 ** (-np.arange(_CLIPS_AN_OCTAVE * OCTAVES + 1) / _CLIPS_AN_OCTAVE):
        excess = sample.counts @ np.maximum(sizes - clip, 0.0)
        squares = sample.counts @ np.minimum(sizes / clip, 1.0) ** 2
        losses.append(
            ClipLoss(
                middle=0.0,
                clip=float(clip),
                seen=(float(excess @ spread.shares), float(squares @ spread.shares)),
                hidden=(float(excess @ spread.hidden), float(squares @ spread.hidden)),
            )
        )
    return losses


def _cap_error(
    features: PairFeatures,
    models: Models,
    spread: Spread,
    weights: tuple[Floats, Floats],
    capped: tuple[Floats, ...],
) -> float:
    """Return the expected squared error of the sum because capped weights do not balance.

    With m_i = P(arm) (w_i - capped w_i) it is (error sum |m_i|)^2 plus the variance of the models along sum
    m_i z_i.
    """
    e = models.propensity
    # People whose propensities were kept away from 0 and 1 are corrected in part.
    likely = e if models.modelled is None else models.modelled
    missed = e * weights[0] - likely * capped[0], (1 - e) * weights[1] - (1 - likely) * capped[1]
    # Linear models may miss rare events by as much as their share.
    relative = models.sd / 2 if spread.distances is None else _MODEL_ERROR[models.score is None]
    error = models.sd * relative
    total = error**2 * float(sum(np.abs(miss).sum() ** 2 for miss in missed))
    for miss, fit in zip(missed, models.arms, strict=True):
        direction = features.z[miss != 0].T @ miss[miss != 0]
        # What shrinkage took is mostly noise, which the covariance of errors holds already.
        shrinkage = float(direction @ fit.left) ** 2 - float(direction @ fit.left_covariance @ direction)
        total += float(direction @ fit.covariance @ direction) + max(shrinkage, 0.0)
    return total


def _sampled(features: PairFeatures, models: Models, weights: tuple[Floats, Floats]) -> ScoreSample:
    """Return about `_SAMPLE` rows of each arm, evenly spaced by weight."""
    e = models.propensity
    step = max(1, len(features.z) // _SAMPLE)
    treated, control = (np.argsort(arm, kind="stable")[::step] for arm in weights)
    errors = [
        ((features.z[rows] @ fit.covariance) * features.z[rows]).sum(axis=1)
        for rows, fit in zip((treated, control), models.arms, strict=True)
    ]
    return ScoreSample(
        weights=np.concatenate([weights[0][treated], weights[1][control]]),
        counts=np.concatenate([e[treated], 1 - e[control]]) * len(e) / len(treated),
        errors=np.concatenate(errors),
    )
