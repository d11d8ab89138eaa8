"""Where doubly robust scores are clipped: as near as noisy histograms of their sizes and of outcomes allow.

A clip c costs noise of the released mean proportional to c; what it cuts off moves the mean. With s the
expected standard deviation of scores, n rows and u the noise of a mean of scores clipped at one, the chosen c
has the least

    2 sqrt(s^2 / n + (u c)^2 + missed(c)) + cut(c),

`missed` being the variance of what scores do not correct because their ends are cut off, and `cut` a bound of
how far the mean of what is cut off moves. Everything is post-processing; sizes are in units of the released
scale.

The constants were set on the tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not
depend on them.

The least is about half the width of a 95 percent interval: two standard errors and the bias. In: noisy
histograms and released models; out: a clip. Privacy: the histogram of sizes is proved in
`rows/histogram.proof.md`, the mean of clipped scores in `rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.polynomial.laguerre import laggauss
from scipy.special import ndtr

from counterveil.estimators.histogram import HELD
from counterveil.estimators.moments.arm_fits import ArmFit
from counterveil.estimators.moments.arm_moments import ArmMoments
from counterveil.estimators.moments.outcome_location import OutcomeLocation
from counterveil.estimators.moments.row_scale import RowScale
from counterveil.numerics.arrays import Floats

# Edges of cells of the sizes of scores, in expected standard deviations, and where a cell beyond the last one
# ends.
SIZES = 2.0 ** np.arange(-2, 7.01, 0.5)
_NEXT_EDGE = 1.42
# The middle of a cell, as a part of its upper edge.
_MIDDLE = 1.19
# Part of the size that is cut off a score which moves its mean: scores are cut off on both sides.
_ONE_SIDED = 0.25
# The same of scores that noise hides.
_HIDDEN = 0.5
# From this skewness of the outcomes on all of what is cut off moves the mean.
_SKEWED = 0.5
# Scores farther out than so many expected standard deviations are counted by what clips lose of them.
_FAR = 6.0
# Counts of scores of events (0 or 1) beyond an edge are people from so many standard deviations of their
# noise on.
_STANDS_OUT = 4.0
# The same of other outcomes, far out; half of it where outcomes are uneven.
_FAR_STANDS_OUT = 4
# And nearer than that.
_NEAR_STANDS_OUT = 2
# Tails of other scores are at most this many times what falls with the fourth power.
_TAILS = 4.0
# The largest part of the scores that is cut off.
_MOST_CUT = 0.03
# Scores are clipped so far out that noise adds this part of the sampling error;
_NOISE = 0.25
# where tails are heavy, this part.
_HEAVY_NOISE = 0.5
# A chosen clip is moved out to so many expected standard deviations, as far as the next edge.
_TYPICAL_CLIP = 2.5
# The largest weights, in their standard deviations, where outcomes are uneven.
LARGEST_WEIGHT_SDS = 1.75
# The exponential distribution around its mean, in a few places: weights are skewed like that.
_NODES_FROM_ZERO, _MASSES = laggauss(24)
_NODES = _NODES_FROM_ZERO - 1


@dataclass(frozen=True, slots=True)
class SizeHistogram:
    """Noisy counts of scores by size.

    Attributes
    ----------
    counts, sd : ndarray of shape (cells,), float
        Noisy counts of the cells below the first edge, between every two and above the last; noise of one.
    edges : ndarray of shape (cells - 1,)
        Also the clips that are compared.
    """

    counts: Floats
    sd: float
    edges: Floats


@dataclass(frozen=True, slots=True)
class FarLosses:
    """What clips take off scores of outcomes far out, where noise may hide some.

    Attributes
    ----------
    lost, sd : ndarray of shape (clips,)
        How much the mean score loses, by counts of outcomes, and the noise of that.
    longest : float
        The largest score of such an outcome.
    """

    lost: Floats
    sd: Floats
    longest: float


@dataclass(frozen=True, slots=True)
class ScoreShape:
    """What is expected of the scores before they are seen.

    Attributes
    ----------
    rows : float
        Number of rows n that they are of.
    noise_unit : float
        Noise u of a mean score that is clipped at one.
    typical : float
        Their expected standard deviation s.
    peaked : float
        How peaked they are because an arm is small.
    far : float
        How far they reach with residuals of one standard deviation.
    missed : ndarray of shape (clips,)
        Variance of what lines are off and scores do not correct, by clip.
    far_losses : FarLosses
        What clips take off scores of outcomes far out.
    least : float
        A clip that uneven outcomes need; zero where they are even.
    location : OutcomeLocation
        Where the outcomes lie.
    longest : float
        No score is longer.
    """

    rows: float
    noise_unit: float
    typical: float
    peaked: float
    far: float
    missed: Floats
    far_losses: FarLosses
    least: float
    location: OutcomeLocation
    longest: float = inf


@dataclass(frozen=True, slots=True)
class ScoreClip:
    """Where scores are clipped, and at what price.

    Attributes
    ----------
    clip : float
        Scores are clipped to [-clip, clip].
    lost : float
        Bound of how far that moves their mean.
    missed : float
        Variance of what that leaves uncorrected.
    """

    clip: float
    lost: float
    missed: float


def chosen_clip(sizes: SizeHistogram, shape: ScoreShape) -> ScoreClip:
    """Return where scores are clipped.

    No score is longer than `shape.longest`: cells beyond it are empty, whatever their noisy counts say, and a
    clip there cuts off nothing. A false count far out costs as much as its cell is far. So scores of events,
    which have no tails beyond that, are counted where they stand out of the noise; of others no more lies
    beyond an edge than tails that fall with the fourth power leave.

    A clip may be so far out that noise adds a part of the sampling error. Outcomes that are skewed and no
    more are clipped nearer than `shape.least` where a bound of what that cuts off is shorter than the noise.
    """
    edges = sizes.edges
    location = shape.location
    rows = shape.rows
    typical = shape.typical
    least = shape.least
    events = location.whole and location.hidden is None
    skewed = not location.whole and abs(location.skew) > _SKEWED
    uneven = least > 0 or skewed
    # The last cell that a score may lie in is that of the longest.
    cells = int(np.searchsorted(edges, shape.longest)) + 1
    counts = np.where(np.arange(len(sizes.counts)) < cells, sizes.counts, 0.0)
    above, noise = _above(counts, sizes.sd, cells, rows)
    sure = (
        _STANDS_OUT
        if events
        else np.where(edges > _FAR * typical, _FAR_STANDS_OUT, _NEAR_STANDS_OUT) / (2 if uneven else 1)
    )
    share_above = np.minimum.accumulate(np.where(above > sure * noise, above, 0.0) / rows)
    if not events:
        share_above = np.minimum(share_above, _TAILS * shape.peaked * (typical / edges) ** 4)
    missed = shape.missed + _held(counts / rows, sizes.sd / rows, edges, shape) ** 2
    # What noise hides, if tails fall with the fourth power; all of it, and of what is seen, may lie on one
    # side where outcomes are skewed, which are more peaked and fall like residuals with large weights.
    square = location.skew**2 / 2
    peaked = shape.peaked
    reached = edges / 3
    if skewed:
        peaked = peaked * (1 + square)
        reached = np.maximum(reached, shape.far * min(square, 1.0))
    unseen = np.minimum(noise / rows, peaked * (typical / edges) ** 4) * reached
    unseen *= 1.0 if skewed else 0.0 if uneven else _HIDDEN
    gaps = np.diff(np.append(edges, 1.4 * edges[-1]))
    cut = np.cumsum((share_above * gaps)[::-1])[::-1] * (1.0 if uneven else _ONE_SIDED) + unseen
    cut = np.where(edges < shape.longest, cut, 0.0)
    missed = np.where(edges < shape.longest, missed, 0.0)
    # Half the length of an interval from sampling, noise and what is cut off.
    cost = 2 * np.sqrt(typical**2 / rows + (edges * shape.noise_unit) ** 2 + missed) + cut
    cost += np.where(share_above > _MOST_CUT + noise / rows, np.inf, 0.0)
    best = int(np.argmin(cost)) if np.isfinite(cost).any() else len(edges) - 1
    clip = float(edges[best])
    clip = max(clip, min(_TYPICAL_CLIP * typical, _NEXT_EDGE * clip))
    cost_of_least = 2 * sqrt(typical**2 / rows + (least * shape.noise_unit) ** 2)
    if location.heavy or events or cost_of_least < cost[best]:
        clip = max(clip, least)
    free = (_HEAVY_NOISE if location.heavy else _NOISE) * typical / sqrt(rows) / shape.noise_unit
    clip = min(max(clip, min(free, float(edges[-1]))), shape.longest)
    return ScoreClip(clip, float(np.interp(clip, edges, cut)), float(np.interp(clip, edges, missed)))


def _above(counts: Floats, sd: float, cells: int, rows: float) -> tuple[Floats, Floats]:
    """Return how many scores lie above every edge, and the noise of that.

    Counts of the cells above, and all rows less those of the cells below, are averaged by their precision.
    """
    edge = np.arange(1, len(counts))
    above = (
        edge * np.cumsum(counts[::-1])[::-1][1:] + (cells - edge) * (rows - np.cumsum(counts)[:-1])
    ) / cells
    above = np.where(edge < cells, above, 0.0)
    return above, sd * np.sqrt(np.maximum(edge * (cells - edge), 0) / cells)


def _held(shares: Floats, sd: float, edges: Floats, shape: ScoreShape) -> Floats:
    """Return what clips lose of scores far out, as a standard deviation: what is seen of it, or the noise in that.

    It is seen twice, in counts of outcomes and in those of scores; `shares` are counts over the number of
    rows.
    """
    far = shape.far_losses
    middles = np.minimum(np.append(edges, _NEXT_EDGE * edges[-1])[1:] / _MIDDLE, far.longest)
    lost_by_cell = np.maximum(middles - edges[:, None], 0.0) * (edges > _FAR * shape.typical)
    lost = lost_by_cell @ shares[1:]
    noise = sd * np.sqrt((lost_by_cell**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = 1 / far.sd**2, 1 / noise**2
        joint = (far.lost * precisions[0] + lost * precisions[1]) / sum(precisions)
        return HELD * np.where(
            (far.sd > 0) & (noise > 0), np.maximum(joint, 1 / np.sqrt(sum(precisions))), 0.0
        )


def not_corrected(moments: ArmMoments, fit: ArmFit, arm: int, weights: Floats, clips: Floats) -> Floats:
    """Return the variance of what an arm's line is off by and scores do not correct, since a clip cuts their ends off.

    Scores with weights w lose the part P(|w e| > clip) of what their line is off, at every w; residuals e are
    taken as normal, weights as an exponential distribution with their mean and variance.
    """
    share = moments.shares[arm]
    level = float(fit.level_error[arm])
    along = moments.covariances[arm] @ weights
    spread = sqrt(max(float(weights @ along), 1e-12))
    sizes = 1 / share + spread * _NODES
    beyond = 2 * ndtr(-clips[:, None] / (np.abs(sizes) * sqrt(fit.residual + level)))
    lost = share * _MASSES * sizes * beyond
    slope = float(along @ fit.slopes.covariances[arm] @ along) / spread**2
    return np.asarray(lost.sum(axis=1) ** 2 * level + (lost @ _NODES) ** 2 * slope)


def far_lost(moments: ArmMoments, scale: RowScale, weights: Mapping[int, Floats], clips: Floats) -> FarLosses:
    """Return how much the means of these arms lose by outcomes far out; `weights` are slopes of weights by arm."""
    hidden = scale.location.hidden
    if hidden is None:
        return FarLosses(np.zeros(len(clips)), np.zeros(len(clips)), 0.0)
    spreads = {
        arm: sqrt(max(float(slope @ moments.covariances[arm] @ slope), 1e-12))
        for arm, slope in weights.items()
    }

    def losses(distances: Floats) -> Floats:
        total = np.zeros((len(clips), len(distances)))
        for arm, spread in spreads.items():
            share = moments.shares[arm]
            scores = np.outer(distances / scale.unit, np.abs(1 / share + spread * _NODES))
            total += share * np.maximum(scores - clips[:, None, None], 0.0) @ _MASSES
        return total

    lost, sd = hidden.lost(losses)
    largest = max(1 / moments.shares[arm] + 2 * spread for arm, spread in spreads.items())
    return FarLosses(lost, sd, largest * float(hidden.distances.max(initial=0.0)) / scale.unit)
