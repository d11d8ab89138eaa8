"""The two models of the orthogonal effect, made of released numbers only: post-processing throughout.

Outcomes are in units of half their range, around a released mean; treatments are 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.numerics.shrinkage import Denoised, floored, shrunk
from counterveil.statistics.moments.doubly_robust_releases import Moments, Residuals, Scaling, SecondMoments
from counterveil.statistics.moments.kernels.scores import Models
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT

# Outcomes that few people carry: a clip that follows a standard deviation would cut these people off.


# Numbers of this module that are choices, and not derived, were set on the tuning seeds of
# `experiments/record_effect/NOTES.md`; those of heavy tails by `experiments/every_method/HEAVY_TAILS.md`.
# A mean beyond this part of half the range from its middle: nearly everybody is at one end.
_CROWDED_MEAN = 0.7
# No residual of an outcome in its range is longer, in units of half the range.
LONGEST_RESIDUAL = 2.0
# An outcome that loses this part of its variance when it is clipped has heavy tails (normal ones lose a twentieth).
_HEAVY = 0.3
# A clip is made so long that noise adds these parts of the sampling error: little, and as much again where tails are
# heavy, because there a near clip moves the effect itself.
_REACH_FACTOR, _HEAVY_FACTOR = 0.2, 1.0
# Clips beyond this many standard deviations cut nobody off.
_LONGEST_REACH = 60.0


def carried_by_few(mean: float) -> bool:
    """Return whether a released mean outcome, in units of half the range around its middle, lies near an end."""
    return abs(mean) > _CROWDED_MEAN


def heavy_tailed(variance: float, clipped: float, noise: float) -> bool:
    """Return whether an outcome's released variance falls by much when it is clipped; `noise` is that of the fall."""
    return variance - clipped > max(_HEAVY * variance, noise)


def longer_reach(reach: float, noise: float, heavy: bool) -> float:
    """Return where the score is clipped, in its standard deviations: at `reach`, or further out where noise allows.

    `noise` is the noise of the mean of a score clipped at one standard deviation, beside the sampling error.
    """
    return max(reach, min((_HEAVY_FACTOR if heavy else _REACH_FACTOR) / noise, _LONGEST_REACH))


# Prior variances of means and mean squares over columns; they say how far noisy ones are drawn in.
_MEAN_VARIANCE, _SQUARE_VARIANCE, _SQUARE = 0.25, 0.04, 0.35
_LEAST_SCALE = 0.2
_SHARES, _LARGEST_MEAN = (0.05, 0.95), 0.7
# Bound of the outcome in the Gram, in standard deviations.
_OUTCOME_REACH = 2.2
# Confounding of a plain comparison that is expected, squared, in units of half the range.
_CONFOUNDING = 0.08**2
# A model never explains more than this many times what there is, whatever the noise says.
_MOST_EXPLAINED = 2.5
_LEAST_BETA, _LEAST_GAMMA = 0.01, 0.002
# Least part of the treatment's variance that covariates leave.
_LEAST_LEFT = 0.5
# Clip of residuals in standard deviations.
RESIDUAL_REACH = 3.5
# What a correction of the outcome's model leaves of the confounding in directions whose variance was raised: with
# variance v raised to f a correction takes away the part v/f, and v (1 - v/f)^k falls this much for each k.
_RAISED_LEFT = 0.75
# An outcome that loses this part of its variance when it is clipped is carried by few people.
_MOST_LOST = 0.5


def standardise(moments: Moments, limit: float) -> Standard:
    """Return centre and scale of the features; noisy moments are drawn towards what is usual."""
    variance = moments.sd**2
    means = moments.means * _MEAN_VARIANCE / (_MEAN_VARIANCE + variance)
    doubt = variance / float(SQUARE_WEIGHT) ** 2
    squares = np.where(
        moments.squares == 1.0,
        1.0,
        (moments.squares * _SQUARE_VARIANCE + _SQUARE * doubt) / (_SQUARE_VARIANCE + doubt),
    )
    scale = np.sqrt(np.clip(squares - means**2, _LEAST_SCALE**2, 1.0))
    return Standard(np.clip(means, -1.0, 1.0), scale, limit, np.inf)


def scaling_of(moments: Moments, squared_reach: float, treatment: float, outcome: float) -> Scaling:
    """Return centres and bounds of treatment and outcome; `treatment` and `outcome` are parts of `squared_reach`."""
    variance = (moments.sd / moments.weight) ** 2
    share = (1 + moments.treatment * 0.25 / (0.25 + variance)) / 2
    share = float(np.clip(share, *_SHARES))
    mean = float(np.clip(moments.outcome * 0.09 / (0.09 + variance), -_LARGEST_MEAN, _LARGEST_MEAN))
    doubt = variance / float(SQUARE_WEIGHT) ** 2
    outcome_variance = max(moments.outcome_square - mean**2, 0.0)
    # Where noise hides the variance of the outcome, a third of the half range stands in.
    outcome_variance = (outcome_variance * 0.01 + 0.1 * doubt) / (0.01 + doubt) + sqrt(doubt) / 2
    crowded, bound = carried_by_few(moments.outcome), 1 + abs(mean)
    if not crowded:
        bound = min(bound, _OUTCOME_REACH * sqrt(max(outcome_variance, 1e-4)))
    return Scaling(
        share,
        mean,
        max(share, 1 - share),
        bound,
        treatment * squared_reach,
        outcome * squared_reach,
        crowded,
        moments.outcome_square - moments.outcome**2,
        sqrt(2 * variance),
    )


def _least_clip(scaling: Scaling, moments: SecondMoments) -> float:
    """Return the least clip of residuals: zero, or their whole reach where few people carry the outcome."""
    least_variance = scaling.variance - 4 * scaling.variance_sd
    lost = moments.outcome + 4 * moments.square_sd < (1 - _MOST_LOST) * least_variance
    return LONGEST_RESIDUAL if scaling.crowded or lost else 0.0


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Both models and what is known about their errors.

    `product` is an upper estimate of the squared error of the outcome model's coefficients; `noise_bias` bounds
    what the shared noise of the Gram does to the product of both errors, `raised_bias` what directions of little
    variance do that neither model sees whole; `shared` is the part of the treatment
    model's noise that the outcome model has as well. `residual_variance` is an upper estimate of the residual variance.
    """

    models: Models
    gram: Denoised
    treatment_sd: float
    treatment_factor: float
    gamma: float  # squared length of the treatment's coefficients
    gamma_error: float
    beta: float  # squared length of the outcome's coefficients
    product: float
    noise_bias: float
    raised_bias: float
    unexplained: float  # part of the outcome's coefficients that was shrunk away
    shared: float
    residual_variance: float
    variance: float  # of the treatment
    step: float = 0.0  # squared length of the last correction of the outcome's coefficients
    least_clip: float = 0.0  # of residuals
    heavy: bool = False  # tails of the outcome

    @property
    def bias(self) -> float:
        """Bound of what does not average out."""
        return self.noise_bias + self.raised_bias

    @property
    def treatment_error(self) -> float:
        """Expected squared error that errors of the treatment's model add to (t-e)^2."""
        return self.treatment_variance * self.gram.trace

    @property
    def treatment_variance(self) -> float:
        """Variance of one coefficient of the treatment model around the truth, Gram error included."""
        return self.treatment_sd**2 + self.gram.error * self.gamma

    @property
    def predicted(self) -> tuple[float, float]:
        """Standard deviation and bias that the two models' errors leave in the effect."""
        return sqrt(self.treatment_variance * self.product) / self.variance, self.bias / self.variance


def public_gram(correlations: Floats, scale_sd: float) -> Denoised:
    """Return the second moments of (1, z) where the correlations of z are public.

    `scale_sd` is the noise of a released centre in units of the scale: rows are standardised a little wrongly.
    """
    m = len(correlations) + 1
    matrix = np.eye(m)
    matrix[1:, 1:] = correlations
    # Wrong are the entries beside the constant, twice, and the diagonal.
    return floored(matrix, 6.0 * scale_sd**2 / m, 2 * scale_sd)


def first_models(moments: SecondMoments, scaling: Scaling, gram: Denoised) -> Nuisances:
    """Return both models from the second moments: the treatment's unshrunk, the outcome's shrunk."""
    inverse = gram.inverse
    treatment = inverse @ moments.with_treatment
    variance = max(scaling.share * (1 - scaling.share), 0.04)
    outcome_variance = float(np.clip(moments.outcome + 2 * moments.square_sd, 0.002, 1.0))
    outcome = shrunk(
        inverse @ moments.with_outcome,
        moments.outcome_sd,
        inverse,
        min(_LEAST_BETA, 0.1 * outcome_variance),
        _MOST_EXPLAINED * outcome_variance,
    )
    own = shrunk(treatment, moments.treatment_sd, inverse, _LEAST_GAMMA, _MOST_EXPLAINED * variance)
    explained = _explained(moments.with_treatment, moments.treatment_sd, gram)
    left = float(np.clip(variance - explained, _LEAST_LEFT * variance, variance))
    effect = _first_effect(
        moments, gram, own.values, outcome.values, left, variance, own.squared, outcome.squared
    )
    squares = gram.error * gram.squares
    error_y = outcome.error + squares * outcome.squared * outcome.factor**2
    error_t = own.error + squares * own.squared * own.factor**2
    product = error_y + effect**2 * error_t
    models = Models(
        scaling.share, scaling.mean, treatment, own.values, outcome.values - effect * own.values, effect
    )
    longest = _longest(models, inverse @ moments.with_outcome, own.squared, error_t, outcome.squared, error_y)
    return Nuisances(
        models,
        gram,
        moments.treatment_sd,
        own.factor,
        own.squared,
        error_t,
        outcome.squared,
        product,
        gram.error * gram.trace * longest,
        gram.raised * longest,
        1 - outcome.factor,
        effect * own.factor * (moments.treatment_sd**2 + gram.error * own.squared) * gram.trace,
        _residual_variance(moments, gram, effect, product, outcome_variance),
        left,
        least_clip=_least_clip(scaling, moments),
        heavy=heavy_tailed(scaling.variance, moments.outcome, scaling.variance_sd + moments.square_sd),
    )


def _first_effect(
    moments: SecondMoments,
    gram: Denoised,
    gamma: Floats,
    beta: Floats,
    left: float,
    variance: float,
    squared_gamma: float,
    squared_beta: float,
) -> float:
    """Return a first effect: adjusted where the noise allows, else the plain comparison."""
    adjusted = (moments.both - float(gamma @ gram.matrix @ beta)) / left
    noise = (
        moments.treatment_sd**2 * squared_beta + moments.outcome_sd**2 * squared_gamma + moments.both_sd**2
    )
    noise /= left**2
    plain, plain_noise = moments.both / variance, (moments.both_sd / variance) ** 2
    part = _CONFOUNDING / (_CONFOUNDING + noise)
    mixed = part * adjusted + (1 - part) * plain * 0.1 / (0.1 + plain_noise)
    return float(np.clip(mixed, -1.2, 1.2))


def _explained(with_rows: Floats, sd: float, gram: Denoised) -> float:
    """Return the variance that a linear model explains, free of what the noise adds."""
    return max(float(with_rows @ gram.inverse @ with_rows) - sd**2 * gram.trace, 0.0)


def _longest(
    models: Models,
    beta: Floats,
    squared_gamma: float,
    gamma_error: float,
    squared_beta: float,
    beta_error: float,
) -> float:
    """Return a bound of gamma' beta, for the bound of gamma' E S^-1 E beta with an error E of the Gram."""
    effect, gamma = models.effect, models.shrunk
    length = squared_beta + effect**2 * squared_gamma - 2 * effect * float(gamma @ beta)
    longest = sqrt(max(squared_gamma, 0.3 * gamma_error) * max(length, 0.25 * squared_beta, 0.3 * beta_error))
    aligned = min(abs(float(models.treatment @ (beta - effect * gamma))), longest)
    return 0.4 * aligned + 0.6 * longest


def _residual_variance(
    moments: SecondMoments, gram: Denoised, effect: float, product: float, outcome_variance: float
) -> float:
    """Return an upper estimate of the variance of y - effect t less its model."""
    whole = moments.outcome - 2 * effect * moments.both + effect**2 * moments.treatment
    mixed = moments.with_outcome - effect * moments.with_treatment
    sd = sqrt(moments.outcome_sd**2 + effect**2 * moments.treatment_sd**2)
    explained = _explained(mixed, sd, gram)
    doubt = sqrt(moments.square_sd**2 + (2 * sd) ** 2 * explained)
    return float(np.clip(max(whole - explained, 0.0) + product + 0.5 * doubt, 1e-5, 2 * outcome_variance))


def residual_clip(nuisances: Nuisances) -> float:
    """Return where residuals are clipped when their moments are released."""
    return float(
        np.clip(RESIDUAL_REACH * sqrt(nuisances.residual_variance), max(nuisances.least_clip, 0.002), 2.5)
    )


def refined(nuisances: Nuisances, residuals: Residuals) -> Nuisances:
    """Return the models with the outcome's coefficients moved by what the residuals still hold."""
    gram = nuisances.gram
    step = shrunk(gram.inverse @ residuals.with_rows, residuals.sd, gram.inverse, 1e-6, 4 * nuisances.product)
    k = step.factor
    # Where a second correction is longer than the noise of the first explains, corrections converge badly.
    again = max(step.squared - nuisances.product, 0.0)
    rate = min(1.0, sqrt(again / nuisances.step)) if nuisances.step > 0 else 0.0
    models = replace(nuisances.models, outcome=nuisances.models.outcome + step.values)
    product = step.error + k**2 * gram.error * gram.squares * step.squared
    # A quarter at least: what was explained is known no better than the coefficients are.
    noise_left = (
        max(residuals.square - step.squared, residuals.square / 4) + product + residuals.square_sd / 2
    )
    return replace(
        nuisances,
        models=models,
        product=min(product, nuisances.product),
        # What the noise of the Gram did to the first coefficients is measured again by the residuals.
        noise_bias=nuisances.noise_bias
        * min(1.0, (1 - k) + k * (nuisances.unexplained + max(gram.leakage, rate))),
        raised_bias=nuisances.raised_bias * (1 - k + k * _RAISED_LEFT),
        unexplained=nuisances.unexplained * (1 - k),
        step=step.squared,
        shared=nuisances.shared * (1 - k),
        residual_variance=float(np.clip(noise_left, 1e-5, nuisances.residual_variance)),
    )


def unadjusted(nuisances: Nuisances, moments: SecondMoments) -> Nuisances:
    """Return models without covariates: a share treated and a mean outcome."""
    size = len(nuisances.models.outcome)
    first = np.eye(size)[0]
    models = replace(
        nuisances.models,
        treatment=first * float(moments.with_treatment[0]),
        shrunk=np.zeros(size),
        outcome=first * float(nuisances.models.outcome[0]),
    )
    corner = np.outer(first, first)
    return replace(
        nuisances,
        models=models,
        gram=Denoised(corner, corner, 0.0),
        treatment_factor=0.0,
        gamma=0.0,
        gamma_error=min(moments.treatment_sd**2, _LEAST_GAMMA),
        product=min(moments.outcome_sd**2, _LEAST_BETA),
        noise_bias=0.0,
        raised_bias=0.0,
        unexplained=0.0,
        shared=0.0,
        residual_variance=float(np.clip(moments.outcome + moments.square_sd, 0.003, 0.5)),
        variance=max(nuisances.models.share * (1 - nuisances.models.share), 0.04),
    )
