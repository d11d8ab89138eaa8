"""The chain of releases of the private effect from moments by arm, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import counted_features
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap, Standard
from counterveil.privacy import Estimand
from counterveil.session import Gate
from counterveil.statistics.moments.arm_bends import bent
from counterveil.statistics.moments.arm_models import (
    ArmMoments,
    Fit,
    arm_moments,
    explained_by,
    first_fit,
    refined,
    residual_clip,
)
from counterveil.statistics.moments.arm_plan import ArmDesign
from counterveil.statistics.moments.arm_releases import (
    WHOLE,
    Look,
    Scale,
    ScoreMoments,
    release_arm_grams,
    release_arm_residuals,
    release_arm_score,
    release_look,
    release_place,
    release_sizes,
)
from counterveil.statistics.moments.arm_weights import Guard, Weighted, weighted
from counterveil.statistics.moments.doubly_robust_releases import (
    release_norms,
)
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/NOTES.md`.
# Prior variances of means and mean squares over columns; they say how far noisy ones are drawn in.
_MEAN_VARIANCE, _SQUARE_VARIANCE, _SQUARE = 0.25, 0.04, 0.35
# A column is looked at again within so many standard deviations of its mean; one with less than this scale in it is
# taken to have this scale.
_WINDOW, _LEAST_SCALE = 3.0, 0.2
# Clip of the outcome in the Grams, in its standard deviations, and the farthest that it is where tails are heavy.
_OUTCOME_REACH, _FARTHEST = 2.5, 6.0
# Cells of the sizes of scores, in expected standard deviations.
_SIZES = 2.0 ** np.arange(-2, 5.01, 0.5)
# Part of the size that is cut off a score which moves its mean: scores are cut off on both sides.
_ONE_SIDED = 0.25
# The same of scores that noise hides.
_HIDDEN = 0.5
# The largest part of the scores that is cut off.
_MOST_CUT = 0.03
# The standard deviation of what is left of the expected shared error once that is taken off, beside it.
_SHARED = 1.2
# Scores are clipped so far out that noise adds this part of the sampling error, or this where tails are heavy.
_NOISE, _HEAVY_NOISE = 0.25, 1.0
# How far weights reach, in their standard deviations, where outcomes are uneven.
_WEIGHT_REACH = 1.75


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """The effect in units of half the outcome's range, and the parts of its uncertainty.

    `sampling`, `noise` and `product` are variances, `bias` is a bound that is added to the half-width, of which `bends`
    is due to bends along the index; `hidden` squared is the part of `product` for bends that noise hides, `undetected`
    what a second interval allows for them in its place, `known` the squared correlation of the index with what it
    stands for, `doubt` the product of what noise may hide of the curves of residuals and of treatment along it.
    """

    value: float
    sampling: float
    noise: float
    product: float
    bias: float
    share: float
    bends: float
    hidden: float
    undetected: float
    known: float
    doubt: float


def arm_effect(gate: Gate, records: Records, design: ArmDesign, estimand: Estimand, room: float) -> ArmEffect:
    """Return the effect: two looks at the covariates, the outcome's place, lengths, Grams, residuals, score."""
    seen, first = _windows(gate, records, design)
    scale, share, share_sd = _scale(gate, seen, first, design)
    grams, sd = release_arm_grams(gate, seen, scale)
    moments = arm_moments(grams, sd, scale, share, share_sd)
    fit = first_fit(moments, sqrt(2) * sd / scale.outcome)
    for place in range(design.passes):
        name = f"residual {place + 1}"
        clip = max(residual_clip(fit), scale.least_clip(fit.levels))
        residuals = release_arm_residuals(gate, name, seen, scale, fit.lines(moments), clip)
        fit = refined(moments, fit, residuals)
    explained = explained_by(moments, fit.slopes.values)
    guard = Guard(design.inflation(explained / (explained + fit.residual)), design.shared)
    found = weighted(moments, fit, estimand, records.count, guard)
    least = scale.least_clip(fit.levels) * _far_weight(moments, found.score.weights)
    clip = max(residual_clip(fit), scale.least_clip(fit.levels))
    scale, found = bent(gate, seen, scale, moments, fit, found, clip, room)
    return _scored(gate, seen, scale, design, moments, fit, found, least)


def _windows(gate: Gate, records: Records, design: ArmDesign) -> tuple[Records, Look]:
    """Return the rows with numbers taken within windows around their means, and the first look."""
    plain = Records(records.source, FeatureMap(records.features.columns))
    numbers = ~plain.features.two_valued
    look = release_look(gate, "centre", plain, int(numbers.sum()), numbers, share=True)
    doubt = look.sd / float(SQUARE_WEIGHT)
    means = np.clip(look.means, -1.0, 1.0)
    spread = np.sqrt(np.clip(look.squares - means**2, doubt, 1.0))
    reach = np.minimum(max(_WINDOW, design.limit) * spread, 1 + np.abs(means))
    windows = tuple(
        (float(m), float(r)) if number else (0.0, 1.0)
        for m, r, number in zip(means, reach, numbers, strict=True)
    )
    return Records(records.source, replace(records.features, windows=windows)), look


def _scale(gate: Gate, records: Records, first: Look, design: ArmDesign) -> tuple[Scale, float, float]:
    """Return how rows enter the Grams, and the share treated with its noise."""
    everything = np.ones(records.features.size, dtype=np.bool_)
    look = release_look(
        gate, "features", records, counted_features(records.features), everything, share=False
    )
    standard = _standard(look, records.features.two_valued, design.limit)
    place = release_place(gate, records, design.pure, design.place_cells) if design.searched else WHOLE
    length = release_norms(gate, records, standard, design.pure, design.shortened)
    size = records.features.size
    length = size * min(length / size, design.limit**2, design.longest)
    standard = replace(standard, squared_length=length)
    reach = max(_OUTCOME_REACH, min(place.reach, _FARTHEST)) if place.heavy else _OUTCOME_REACH
    reach = 1.0 if place.whole else reach
    scale = Scale(standard, place, design.constant * length, design.outcome * length, reach)
    return scale, first.treated, first.treated_sd


def _standard(look: Look, two_valued: NDArray[np.bool_], limit: float) -> Standard:
    """Return centre and scale of the features; noisy moments are drawn towards what is usual."""
    variance, doubt = look.sd**2, (look.sd / float(SQUARE_WEIGHT)) ** 2
    means = np.clip(look.means * _MEAN_VARIANCE / (_MEAN_VARIANCE + variance), -1.0, 1.0)
    drawn = (look.squares * _SQUARE_VARIANCE + _SQUARE * doubt) / (_SQUARE_VARIANCE + doubt)
    squares = np.where(two_valued, 1.0, drawn)
    least = np.where(two_valued, _LEAST_SCALE**2, np.clip(sqrt(doubt), 1e-3, _LEAST_SCALE**2))
    return Standard(means, np.sqrt(np.clip(squares - means**2, least, 1.0)), limit, np.inf)


def _scored(
    gate: Gate,
    records: Records,
    scale: Scale,
    design: ArmDesign,
    moments: ArmMoments,
    fit: Fit,
    found: Weighted,
    least: float,
) -> ArmEffect:
    """Return the effect from the mean of the scores, clipped where a histogram of their sizes says."""
    typical = fit.residual * float((1 / moments.shares).sum())
    edges = sqrt(typical) * _SIZES
    counts, sd = release_sizes(gate, records, scale, found.score, edges, design.pure)
    unit = design.score_unit
    spare = _HEAVY_NOISE if scale.place.heavy else _NOISE
    clip, lost = chosen_clip(counts, sd, edges, unit, records.count, sqrt(typical), least, spare)
    seen = release_arm_score(gate, records, scale, found.score, clip)
    return _effect(seen, found, moments, scale, records.count, typical, lost)


def _far_weight(moments: ArmMoments, weights: Floats) -> float:
    """Return about the largest weight of a row in either arm."""
    slopes = weights[:, 1:]
    spread = np.sqrt(np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes))
    return float((1 / moments.shares + _WEIGHT_REACH * spread).max())


def chosen_clip(
    counts: Floats,
    sd: float,
    edges: Floats,
    unit: float,
    rows: int,
    typical: float,
    least: float,
    spare: float,
) -> tuple[float, float]:
    """Return where scores are clipped, and a bound of how far that moves their mean.

    `least` is a clip that uneven outcomes need, and zero where they are even; a clip may be so far out that noise adds
    the part `spare` of the sampling error.
    """
    cells, place, heavy = len(counts), np.arange(1, len(counts)), least > 0
    above = (
        place * np.cumsum(counts[::-1])[::-1][1:] + (cells - place) * (rows - np.cumsum(counts)[:-1])
    ) / cells
    noise = sd * np.sqrt(place * (cells - place) / cells)
    sure = np.where(edges > 6 * typical, 2 if heavy else 4, 1 if heavy else 2) * noise
    part = np.minimum.accumulate(np.where(above > sure, above, 0.0) / rows)
    # What noise hides, if tails fall with the fourth power.
    hidden = np.minimum(noise / rows, (typical / edges) ** 4) * edges / 3 * (0.0 if heavy else _HIDDEN)
    gaps = np.diff(np.append(edges, 1.4 * edges[-1]))
    cut = np.cumsum((part * gaps)[::-1])[::-1] * (1.0 if heavy else _ONE_SIDED) + hidden
    # Half the length of an interval from sampling, noise and what is cut off.
    cost = 2 * np.sqrt(typical**2 / rows + (edges * unit) ** 2) + cut
    cost += np.where(part > _MOST_CUT + noise / rows, np.inf, 0.0)
    best = int(np.argmin(cost)) if np.isfinite(cost).any() else len(edges) - 1
    clip = float(edges[best])
    clip = max(clip, min(2.5 * typical, 1.42 * clip))
    free = spare * typical / sqrt(rows) / unit
    clip = max(clip, min(free, float(edges[-1])), least)
    return clip, float(np.interp(clip, edges, cut))


def _effect(
    seen: ScoreMoments,
    found: Weighted,
    moments: ArmMoments,
    scale: Scale,
    rows: int,
    typical: float,
    lost: float,
) -> ArmEffect:
    coefficients = found.score.weights.size
    square = max(seen.square, 0.0) + 0.7 * seen.square_sd
    sampling = max(square - seen.score**2, 0.1 * typical) / max(rows - coefficients, rows / 2)
    unit = scale.unit
    # Scores whose mean is off zero are cut off more on one side.
    lost *= 1 + 2 * min(abs(seen.score) / sqrt(typical), 1.0)
    return ArmEffect(
        (found.score.effect + seen.score - found.shared) * unit,
        (sampling + found.sampling) * unit**2,
        seen.sd**2 * unit**2,
        (found.product + (_SHARED * found.shared) ** 2) * unit**2,
        (found.bias + lost) * unit,
        float(moments.shares[1]),
        found.bends * unit,
        found.hidden * unit,
        found.undetected * unit,
        found.known,
        found.doubt,
    )
