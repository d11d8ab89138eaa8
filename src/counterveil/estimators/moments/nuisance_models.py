"""Linear outcome and treatment models from released second moments, with bounds on their errors.

Everything here is post-processing of released numbers, in units of half the outcome's range. With S = E[u u']
(denoised), c_t = E[u t], c_y = E[u y] and effect tau,

    gamma = S^-1 c_t                (treatment model, unshrunk),
    beta  = S^-1 c_y - tau gamma    (outcome model, shrunk).

The error of the score estimate is the product of both models' errors; `Nuisances` carries upper estimates of
its parts. Constants steer shrinkage alone, and no guarantee depends on them. They were set on the tuning
seeds of `experiments/record_effect/RESULTS.md`; those of heavy tails by
`experiments/every_method/RESULTS.md`.

Letters: u = (1, z) with z standardised covariates, t the treatment and y the outcome, E the mean over all
rows, denoised a released matrix with the noise's part taken off. In: noisy moments; out: gamma, beta and
bounds of their errors. Privacy of the moments: `rows/moments/free_gram.proof.md`, of residuals'
`rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import Denoised, shrunk
from counterveil.rows.moments.joint_gram import Scaling, SecondMoments
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.residual_products import ResidualProducts

LONGEST_RESIDUAL = 2.0  # no residual of an outcome in its range is longer, in half ranges
# Clip of residuals, in their standard deviations; in half ranges no more and no less than the next two.
RESIDUAL_CLIP_SDS = 3.5
_MAX_RESIDUAL_CLIP = 2.5
_MIN_RESIDUAL_CLIP = 0.002
# A first effect is taken for no larger, in half ranges.
_MAX_EFFECT = 1.2
# Prior variance of the confounding of the unadjusted difference, in squares of half the range.
_CONFOUNDING_PRIOR = 0.08**2
# Prior variance of the unadjusted difference itself.
_DIFFERENCE_PRIOR = 0.1
# A model explains at most this many times the variance there is, whatever the noise says.
_MAX_EXPLAINED = 2.5
# Least squared lengths that coefficients of the outcome and of the treatment are supposed to have.
_MIN_BETA_SQUARED = 0.01
_MIN_GAMMA_SQUARED = 0.002
_MIN_TREATMENT_RESIDUAL = 0.5  # share of the treatment's variance that covariates leave
# Share of the confounding that a correction leaves in directions whose variance v was raised to f: a
# correction takes away v/f, and v (1 - v/f)^k falls by this factor for each k.
_RAISED_LEFT = 0.75
# An outcome that loses this share of its variance by clipping is heavy-tailed.
_MAX_LOST = 0.5


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Both models and upper estimates of their errors.

    Attributes
    ----------
    models : LinearModels
    gram : Denoised
        Estimate of S, its inverse and its squared error.
    treatment_sd : float
        Noise SD of an entry of c_t.
    gamma, gamma_error : float
        Squared length of the treatment coefficients, and of their error.
    beta : float
        Squared length of the outcome coefficients.
    product : float
        Squared error of the outcome coefficients, tau's part included.
    noise_bias : float
        Bound on the bias from the Gram noise that both models share.
    raised_bias : float
        Bound on the bias from directions of little variance, whose eigenvalues were raised.
    unexplained : float
        Share of the outcome coefficients that shrinkage took away.
    residual_variance : float
        Of the outcome.
    variance : float
        Of the treatment, given covariates.
    step : float
        Squared length of the last correction of the outcome coefficients.
    least_clip : float
        Residuals are clipped no lower than this.
    hidden : float
        Outcome variance that clipping in the Gram matrix removed, or the noise in that.
    """

    models: LinearModels
    gram: Denoised
    treatment_sd: float
    gamma: float
    gamma_error: float
    beta: float
    product: float
    noise_bias: float
    raised_bias: float
    unexplained: float
    residual_variance: float
    variance: float
    step: float = 0.0
    least_clip: float = 0.0
    hidden: float = 0.0

    @property
    def bias(self) -> float:
        """Bound on what does not average out."""
        return self.noise_bias + self.raised_bias

    @property
    def treatment_variance(self) -> float:
        """Variance of one treatment coefficient around the truth, Gram error included."""
        return self.treatment_sd**2 + self.gram.error * self.gamma


def first_models(moments: SecondMoments, scaling: Scaling, gram: Denoised) -> Nuisances:
    """Return both models from the second moments: the treatment's unshrunk, the outcome's shrunk."""
    gamma = gram.inverse @ moments.with_treatment
    beta = gram.inverse @ moments.with_outcome
    treatment_variance = max(scaling.share * (1 - scaling.share), 0.04)
    outcome_variance = float(np.clip(moments.outcome + 2 * moments.square_sd, 0.002, 1.0))
    shrunk_beta = shrunk(
        beta,
        moments.outcome_sd,
        gram.inverse,
        least=min(_MIN_BETA_SQUARED, 0.1 * outcome_variance),
        most=_MAX_EXPLAINED * outcome_variance,
    )
    shrunk_gamma = shrunk(
        gamma,
        moments.treatment_sd,
        gram.inverse,
        least=_MIN_GAMMA_SQUARED,
        most=_MAX_EXPLAINED * treatment_variance,
    )
    explained = _explained_variance(moments.with_treatment, moments.treatment_sd, gram)
    residual_treatment = float(
        np.clip(
            treatment_variance - explained, _MIN_TREATMENT_RESIDUAL * treatment_variance, treatment_variance
        )
    )
    adjusted = (
        moments.both - float(shrunk_gamma.values @ gram.matrix @ shrunk_beta.values)
    ) / residual_treatment
    adjusted_noise = (
        moments.treatment_sd**2 * shrunk_beta.squared
        + moments.outcome_sd**2 * shrunk_gamma.squared
        + moments.both_sd**2
    ) / residual_treatment**2
    effect = _combine(
        adjusted,
        adjusted_noise,
        moments.both / treatment_variance,
        (moments.both_sd / treatment_variance) ** 2,
    )
    gram_error = gram.error * gram.squares
    beta_error = shrunk_beta.error + gram_error * shrunk_beta.squared * shrunk_beta.factor**2
    gamma_error = shrunk_gamma.error + gram_error * shrunk_gamma.squared * shrunk_gamma.factor**2
    product = beta_error + effect**2 * gamma_error
    models = LinearModels(
        share=scaling.share,
        mean=scaling.mean,
        treatment=gamma,
        shrunk=shrunk_gamma.values,
        outcome=shrunk_beta.values - effect * shrunk_gamma.values,
        effect=effect,
    )
    alignment = _max_alignment(
        models,
        beta,
        gamma_squared=shrunk_gamma.squared,
        gamma_error=gamma_error,
        beta_squared=shrunk_beta.squared,
        beta_error=beta_error,
    )
    return Nuisances(
        models=models,
        gram=gram,
        treatment_sd=moments.treatment_sd,
        gamma=shrunk_gamma.squared,
        gamma_error=gamma_error,
        beta=shrunk_beta.squared,
        product=product,
        noise_bias=gram.error * gram.trace * alignment,
        raised_bias=gram.raised * alignment,
        unexplained=1 - shrunk_beta.factor,
        residual_variance=_residual_variance(
            moments, gram, effect, product=product, outcome_variance=outcome_variance
        ),
        variance=residual_treatment,
        least_clip=LONGEST_RESIDUAL if _is_heavy_tailed(moments, scaling) else 0.0,
        hidden=max(
            scaling.variance - moments.outcome, float(np.hypot(scaling.variance_sd, moments.square_sd))
        ),
    )


def _is_heavy_tailed(moments: SecondMoments, scaling: Scaling) -> bool:
    """Return whether few people carry the outcome: clipping took much of its variance, beyond four SDs of noise."""
    min_variance = scaling.variance - 4 * scaling.variance_sd
    lost = moments.outcome + 4 * moments.square_sd < (1 - _MAX_LOST) * min_variance
    return scaling.near_bound or lost


def _combine(adjusted: float, adjusted_noise: float, plain: float, plain_noise: float) -> float:
    """Return a first effect: the adjusted one as far as its noise allows, else the shrunk unadjusted difference."""
    weight = _CONFOUNDING_PRIOR / (_CONFOUNDING_PRIOR + adjusted_noise)
    effect = weight * adjusted + (1 - weight) * plain * _DIFFERENCE_PRIOR / (_DIFFERENCE_PRIOR + plain_noise)
    return float(np.clip(effect, -_MAX_EFFECT, _MAX_EFFECT))


def _explained_variance(cross_moments: Floats, sd: float, gram: Denoised) -> float:
    """Return c' S^-1 c less its expectation under noise of variance sd^2."""
    return max(float(cross_moments @ gram.inverse @ cross_moments) - sd**2 * gram.trace, 0.0)


def _max_alignment(
    models: LinearModels,
    beta: Floats,
    *,
    gamma_squared: float,
    gamma_error: float,
    beta_squared: float,
    beta_error: float,
) -> float:
    """Return a bound on gamma' (beta - tau gamma), which a Gram error E turns into the bias gamma' E S^-1 E beta.

    0.4 of the estimated product and 0.6 of the Cauchy-Schwarz bound.
    """
    effect = models.effect
    gamma = models.shrunk
    outcome_squared = beta_squared + effect**2 * gamma_squared - 2 * effect * float(gamma @ beta)
    cauchy_schwarz = sqrt(
        max(gamma_squared, 0.3 * gamma_error) * max(outcome_squared, 0.25 * beta_squared, 0.3 * beta_error)
    )
    estimated = min(abs(float(models.treatment @ (beta - effect * gamma))), cauchy_schwarz)
    return 0.4 * estimated + 0.6 * cauchy_schwarz


def _residual_variance(
    moments: SecondMoments, gram: Denoised, effect: float, product: float, outcome_variance: float
) -> float:
    """Return an upper estimate of Var(y - tau t - model)."""
    total = moments.outcome - 2 * effect * moments.both + effect**2 * moments.treatment
    cross = moments.with_outcome - effect * moments.with_treatment
    sd = sqrt(moments.outcome_sd**2 + effect**2 * moments.treatment_sd**2)
    explained = _explained_variance(cross, sd, gram)
    noise_sd = sqrt(moments.square_sd**2 + (2 * sd) ** 2 * explained)
    upper = max(total - explained, 0.0) + product + 0.5 * noise_sd
    return float(np.clip(upper, 1e-5, 2 * outcome_variance))


def residual_clip(nuisances: Nuisances) -> float:
    """Return where residuals are clipped when their moments are released."""
    lowest = max(nuisances.least_clip, _MIN_RESIDUAL_CLIP)
    return float(np.clip(RESIDUAL_CLIP_SDS * sqrt(nuisances.residual_variance), lowest, _MAX_RESIDUAL_CLIP))


def refined(nuisances: Nuisances, residuals: ResidualProducts) -> Nuisances:
    """Return the models after one correction: outcome coefficients move by the shrunk regression of the residuals.

    With k the shrinkage factor of the correction, a share 1 - k of the old errors stays.
    """
    gram = nuisances.gram
    step = shrunk(
        gram.inverse @ residuals.products,
        residuals.sd,
        gram.inverse,
        least=1e-6,
        most=4 * nuisances.product,
    )
    k = step.factor
    # A second correction longer than the noise of the first explains shows that corrections converge slowly.
    excess = max(step.squared - nuisances.product, 0.0)
    rate = min(1.0, sqrt(excess / nuisances.step)) if nuisances.step > 0 else 0.0
    product = step.error + k**2 * gram.error * gram.squares * step.squared
    # At least a quarter remains: what was explained is known no better than the coefficients.
    remaining = max(residuals.square - step.squared, residuals.square / 4)
    residual_variance = remaining + product + residuals.square_sd / 2
    noise_left = (1 - k) + k * (nuisances.unexplained + max(gram.leakage, rate))
    return replace(
        nuisances,
        models=replace(nuisances.models, outcome=nuisances.models.outcome + step.values),
        product=min(product, nuisances.product),
        noise_bias=nuisances.noise_bias * min(1.0, noise_left),
        raised_bias=nuisances.raised_bias * (1 - k + k * _RAISED_LEFT),
        unexplained=nuisances.unexplained * (1 - k),
        step=step.squared,
        residual_variance=float(np.clip(residual_variance, 1e-5, nuisances.residual_variance)),
    )
