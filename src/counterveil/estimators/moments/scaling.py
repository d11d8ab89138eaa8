"""Centres, scales and bounds of features, treatment and outcome, from released noisy moments.

Outcomes are in units of half their range, treatments 0 and 1. A noisy moment x is shrunk towards a typical
value: with prior variance v and noise variance s^2, a mean becomes x v / (v + s^2).

Constants say what is typical of columns. They were set on the tuning seeds of
`experiments/record_effect/RESULTS.md`, those of heavy tails by `experiments/every_method/RESULTS.md`; privacy
does not depend on them.

Shrinking minimises the expected squared error where the typical value is right, and is post-processing.
Releases that are made here are means and mean squares of bounded columns, proved private in
`rows/moments/record_moments.proof.md`, and counts of rows by length, in `rows/histogram.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.data.features import counted_features
from counterveil.estimators.moments.adjustment_budget import Design, gram_noise_norm
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.rows.moments.feature_moments import RecordMeans, release_moments
from counterveil.rows.moments.joint_gram import Scaling
from counterveil.rows.moments.row_lengths import EDGES, release_length_counts
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.records import Records
from counterveil.session import Gate

# Prior variance of a feature's mean, around 0.
_MEAN_PRIOR = 0.25
# Prior of a feature's mean square: its mean and its variance.
_SQUARE_PRIOR_MEAN = 0.35
_SQUARE_PRIOR = 0.04
# Prior variances of the means of 2t - 1 and of y.
_TREATMENT_PRIOR = 0.25
_OUTCOME_PRIOR = 0.09
# Prior of the outcome's variance, its mean (a standard deviation of a third of the half range) and its variance.
_VARIANCE_PRIOR_MEAN = 0.1
_VARIANCE_PRIOR = 0.01
_MIN_SCALE = 0.2  # of a feature
# A share treated is taken to lie between these, and a mean outcome no farther from the middle of its range.
_SHARE_LIMITS = (0.05, 0.95)
_MAX_MEAN = 0.7
_OUTCOME_CLIP_SDS = 2.2  # clip of the outcome in the Gram matrix
# A mean outcome farther than this from the middle of the range: nearly everybody is at one end.
_NEAR_BOUND = 0.7
# Rows are not shortened below |z|^2 / p = 1 + sqrt(this / p), the variance of the square of a standardised
# coordinate: shortening bends the features, most where there are few of them.
_VARIANCE_OF_SQUARES = 2.0
# Rows beyond an edge may seem to be more than that share by so many standard deviations of noise, see `first_few`.
_ROWS_SHOWN_SDS = -1.6


@dataclass(frozen=True, slots=True)
class RowLimit:
    """How rows are limited from some noise of the Gram matrix on.

    Attributes
    ----------
    least_noise : float
        Norm of the Gram matrix's noise from which on it holds.
    clip : float
        Where coordinates are clipped, in standard deviations.
    shortened : float
        Share of the rows that is shortened.
    """

    least_noise: float
    clip: float
    shortened: float


# Noise grows with the longest row; what shortening takes away of the confounding stays far below it.
_ROW_LIMITS = (
    RowLimit(least_noise=0.6, clip=2.0, shortened=0.2),
    RowLimit(least_noise=0.35, clip=2.0, shortened=0.1),
    RowLimit(least_noise=0.25, clip=2.0, shortened=0.05),
    RowLimit(least_noise=0.1, clip=2.5, shortened=0.005),
    RowLimit(least_noise=0.0, clip=4.0, shortened=0.001),
)


def standard_rows(gate: Gate, records: Records, design: Design) -> tuple[RecordMeans, Standard]:
    """Return the released moments of every column, and the map from features to standardised rows z.

    Coordinates of z are clipped, and rows shortened, the more the noisier the Gram matrix of the design will
    be.
    """
    noise_norm = gram_noise_norm(design)
    limit = next(limit for limit in _ROW_LIMITS if noise_norm >= limit.least_noise)
    moments = release_moments(gate, records, counted_features(records.features))
    standard = standardise(moments, limit.clip)
    length = squared_max_length(gate, records, standard, pure=design.pure, share=limit.shortened)
    return moments, replace(standard, squared_length=length)


def squared_max_length(gate: Gate, records: Records, standard: Standard, pure: bool, share: float) -> float:
    """Return the |z|^2 beyond which rows are shortened: about a part `share` of them, from a noisy histogram."""
    size = records.features.size
    released = release_length_counts(gate, records, standard, pure)
    edges = np.append(EDGES, EDGES[-1])
    per_feature, _ = first_few(
        released.floats(), released.variance, share * records.count, shown=_ROWS_SHOWN_SDS, edges=edges
    )
    return size * max(per_feature, 1 + sqrt(_VARIANCE_OF_SQUARES / size))


def first_few(
    counts: Floats, variance: float, most: float, shown: float, edges: Floats
) -> tuple[float, float]:
    """Return the first edge of a noisy histogram beyond which few rows lie, and how many do.

    Parameters
    ----------
    counts, variance : ndarray, float
        Noisy counts of the cells, and the variance of the noise of one.
    most : float
        How many rows are few.
    shown : float
        Standard deviations of noise by which the rows beyond the edge must be fewer.
    edges : ndarray
        Lower edges of the cells but the first, and an end.
    """
    # Cells are added up from above, where there are few rows: noise of the full ones does not enter.
    above = np.cumsum(counts[::-1])[::-1][1:]
    sds = np.sqrt(variance * np.arange(len(above), 0, -1))
    few = np.flatnonzero(above <= most - shown * sds)
    first = int(few[0]) if len(few) else len(above)
    return float(edges[first]), float(above[first]) if len(few) else 0.0


def standardise(moments: RecordMeans, limit: float) -> Standard:
    """Return centre and scale of the features; coordinates are clipped to [-limit, limit]."""
    means, squares = shrunk_towards_prior(moments.means, moments.squares, moments.sd)
    return Standard(means, np.sqrt(np.clip(squares - means**2, _MIN_SCALE**2, 1.0)), limit, np.inf)


def shrunk_towards_prior(means: Floats, squares: Floats, sd: float) -> tuple[Floats, Floats]:
    """Return noisy means and mean squares of features shrunk towards their priors; a square of one is exact."""
    square_noise = (sd / float(SQUARE_WEIGHT)) ** 2
    shrunk_squares = (squares * _SQUARE_PRIOR + _SQUARE_PRIOR_MEAN * square_noise) / (
        _SQUARE_PRIOR + square_noise
    )
    means = np.clip(means * _MEAN_PRIOR / (_MEAN_PRIOR + sd**2), -1.0, 1.0)
    return means, np.where(squares == 1.0, 1.0, shrunk_squares)


def scaling_of(moments: RecordMeans, squared_max_norm: float, treatment: float, outcome: float) -> Scaling:
    """Return centres and bounds of treatment and outcome in a joint Gram matrix.

    Parameters
    ----------
    moments : RecordMeans
        Released.
    squared_max_norm : float
        Bound of the squared length of a row of features.
    treatment, outcome : float
        Squared lengths of treatment and outcome, as parts of `squared_max_norm`.
    """
    noise = (moments.sd / moments.weight) ** 2
    square_noise = noise / float(SQUARE_WEIGHT) ** 2
    share = (1 + moments.treatment * _TREATMENT_PRIOR / (_TREATMENT_PRIOR + noise)) / 2
    share = float(np.clip(share, *_SHARE_LIMITS))
    mean = float(np.clip(moments.outcome * _OUTCOME_PRIOR / (_OUTCOME_PRIOR + noise), -_MAX_MEAN, _MAX_MEAN))
    near_bound = is_near_bound(moments.outcome)
    bound = 1 + abs(mean)
    if not near_bound:
        variance = max(moments.outcome_square - mean**2, 0.0)
        variance = (variance * _VARIANCE_PRIOR + _VARIANCE_PRIOR_MEAN * square_noise) / (
            _VARIANCE_PRIOR + square_noise
        ) + sqrt(square_noise) / 2
        bound = min(bound, _OUTCOME_CLIP_SDS * sqrt(max(variance, 1e-4)))
    return Scaling(
        share=share,
        mean=mean,
        treatment_bound=max(share, 1 - share),
        outcome_bound=bound,
        a=treatment * squared_max_norm,
        b=outcome * squared_max_norm,
        near_bound=near_bound,
        variance=moments.outcome_square - moments.outcome**2,
        variance_sd=sqrt(2 * noise),
    )


def is_near_bound(mean: float) -> bool:
    """Return whether a released mean outcome, in units of half the range around its middle, lies near an end."""
    return abs(mean) > _NEAR_BOUND


def inner_share(share: float) -> float:
    """Return a share treated, away from 0 and 1."""
    return min(max(share, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))
