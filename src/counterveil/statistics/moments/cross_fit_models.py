"""Both models of a half, made of its released numbers: post-processing throughout.

The outcome's coefficients are left unshrunk: their noise has mean zero, and so has its product with whatever the
penalised propensity model gets wrong, which the interval can then carry as one more variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, pi, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

from counterveil.numerics.arrays import Floats
from counterveil.numerics.shrinkage import Denoised, denoised
from counterveil.privacy import Estimand
from counterveil.results.question import Question
from counterveil.session import Kind, Plan
from counterveil.session.plan import ParallelPlan, in_parallel
from counterveil.statistics.moments.doubly_robust_models import first_models
from counterveil.statistics.moments.doubly_robust_plan import MOST_NOISE, Design
from counterveil.statistics.moments.doubly_robust_releases import Scaling, SecondMoments
from counterveil.statistics.moments.kernels.scores import ScoreModels

# Upper estimate of a squared length: this many standard deviations.
_UPPER = 1.3
# The product's variance is taken this much larger: its pieces come from linear and normal approximations.
_MARGIN = 1.5
# Parts of the bound on the shared error of the second moments that alignment and lengths have.
_ALIGNED, _LENGTHS = 0.4, 0.6
# Scores vary more than the mean weight says, where propensities vary.
_UNEVEN = 1.3
_LEAST_SD, _LARGEST_SD = 1e-4, 4.0
# Logits of a standard deviation beyond this would leave hardly anyone in doubt.
_LARGEST_LOGIT_VARIANCE = 9.0
# Beyond this, the effect is read off the outcome model rather than off the score.
_LARGEST_EFFECT_BIAS = 0.8
_NODES, _MASS = hermegauss(24)
_MASS = _MASS / _MASS.sum()


@dataclass(frozen=True, slots=True)
class Propensity:
    """A released logistic model on standardised rows, or a declared share.

    `kept` is the part of the slopes that shrinkage left.
    """

    slopes: Floats
    intercept: float
    known: float | None
    kept: float = 1.0

    def averages(self, gram: Floats) -> tuple[float, float]:
        """Return the mean propensity and the mean of p(1-p), for logits that are about normal."""
        if self.known is not None:
            return self.known, self.known * (1 - self.known)
        p = expit(self.intercept + sqrt(self.variance(gram)) * _NODES)
        return float(_MASS @ p), float(_MASS @ (p * (1 - p)))

    def variance(self, gram: Floats) -> float:
        """Return the variance of the logits."""
        return float(self.slopes @ gram[1:, 1:] @ self.slopes)


@dataclass(frozen=True, slots=True)
class HalfModels:
    """The models of one half, and what their errors leave in the mean score of the other half.

    `variance` is that of the product of both models' errors, `bias` a bound of what the noise of the second moments
    does to it on average; both are in units of half the outcome's range. An error of the models' effect moves
    the mean score by `effect_bias` times itself. `sd` is about the score's; nearer than `least_clip` it is not clipped.
    """

    models: ScoreModels
    variance: float
    bias: float
    effect_bias: float
    sd: float
    least_clip: float


def half_models(
    second: SecondMoments, scaling: Scaling, propensity: Propensity, estimand: str, least: float
) -> HalfModels:
    """Return the models of a half from its second moments and its propensity model."""
    assert second.matrix is not None
    gram = denoised(second.matrix, second.entry_sd)
    first = first_models(second, scaling, gram)
    effect = first.models.effect
    outcome = gram.inverse @ (second.with_outcome - effect * second.with_treatment)
    slopes, intercept = propensity.slopes, propensity.intercept
    models = ScoreModels(
        scaling.mean, scaling.share, outcome, effect, slopes, intercept, propensity.known, least
    )
    squared = max(first.beta, first.product)
    noise = second.outcome_sd**2 + effect**2 * second.treatment_sd**2 + gram.error * squared
    left = first.residual_variance + noise * gram.trace
    sd = sqrt(_UNEVEN * left * _size(estimand, *propensity.averages(gram.matrix)))
    sd = float(np.clip(sd, _LEAST_SD, _LARGEST_SD))
    least_clip = _UNEVEN * first.least_clip / min(scaling.share, 1 - scaling.share)
    if propensity.known is not None:
        return HalfModels(models, 0.0, 0.0, 0.0, sd, least_clip)
    wrong, size, effect_bias = _imbalance(second, scaling, propensity, gram, estimand, least)
    longest = sqrt(size * squared)
    aligned = min(abs(float(wrong @ outcome)), longest)
    shared = (gram.error * gram.trace + gram.raised) * (_ALIGNED * aligned + _LENGTHS * longest)
    return HalfModels(models, _MARGIN * noise * size, shared, effect_bias, sd, least_clip)


def _imbalance(
    second: SecondMoments,
    scaling: Scaling,
    propensity: Propensity,
    gram: Denoised,
    estimand: str,
    least: float,
) -> tuple[Floats, float, float]:
    """Return coefficients on u of what weighting leaves unbalanced, an upper estimate of their squared length,
    and how far an error of the models' effect moves the mean score, as a part of it.

    With e the propensity and p the model's, outcomes that are wrong by d(u) move the mean score by the mean of
    d f, f = (e - p)/(p(1-p)) for ATE. With u about normal its projection on u is a b + c w: b and w are the true
    logit's slopes and the model's, a and c the means of f's derivatives in the two logits (Stein's identity).
    The true slopes are those of a linear fit of the treatment, divided by the mean of e(1-e). An error in the effect
    moves the outcome's coefficients by itself times that linear fit, the other way.
    """
    matrix = gram.matrix
    linear = gram.inverse @ second.with_treatment
    explained = float(second.with_treatment @ linear) - second.treatment_sd**2 * gram.trace
    share = float(np.clip(scaling.share + linear[0], 0.05, 0.95))
    slope, variance, intercept = _true_logit(max(explained, 0.0), share)
    own = propensity.variance(matrix)
    both = float(second.with_treatment[1:] @ propensity.slopes) / slope
    both = float(np.clip(both, -sqrt(own * variance), sqrt(own * variance)))
    means = _derivatives((intercept, variance), (propensity.intercept, own), both, share, estimand, least)
    f, by_true, by_model, first, second_arm = means
    wrong = np.append(f, by_true * linear[1:] / slope + by_model * propensity.slopes)
    doubt = (by_true / slope * second.treatment_sd) ** 2 * gram.squares
    size = max(float(wrong @ wrong) - doubt, 0.0)
    size += _UPPER * sqrt(2 * doubt * doubt / len(wrong) + 4 * doubt * size / len(wrong))
    effect_bias = slope * (by_true * variance + by_model * both)
    effect_bias += scaling.share * second_arm - (1 - scaling.share) * first
    return wrong, size, float(np.clip(effect_bias, 0.0, _LARGEST_EFFECT_BIAS))


def _true_logit(explained: float, share: float) -> tuple[float, float, float]:
    """Return the mean of e(1-e), the logit's variance and its mean, from the variance of a linear fit."""
    slope, variance, middle = share * (1 - share), 0.0, log(share / (1 - share))
    for _ in range(30):
        variance = min(explained / slope**2, _LARGEST_LOGIT_VARIANCE)
        mean = middle * sqrt(1 + pi * variance / 8)
        e = expit(mean + sqrt(variance) * _NODES)
        slope = (slope + max(float(_MASS @ (e * (1 - e))), 0.02)) / 2
    return slope, variance, mean


def _derivatives(
    true: tuple[float, float],
    model: tuple[float, float],
    both: float,
    share: float,
    estimand: str,
    least: float,
) -> tuple[float, float, float, float, float]:
    """Return the means of f and of its derivatives in the true logit and in the model's, both normal.

    The last two are the means of what an outcome model's error on the treated and on the untreated is weighted by.
    """
    (mean, variance), (own_mean, own) = true, model
    first, second = np.meshgrid(_NODES, _NODES, indexing="ij")
    weight = np.outer(_MASS, _MASS)
    logit = own_mean + sqrt(own) * first
    part = both / sqrt(own) if own > 0 else 0.0
    e = expit(mean + part * first + sqrt(max(variance - part**2, 0.0)) * second)
    free = expit(logit)
    p = np.clip(free, least, 1 - least)
    inside = free == p
    if estimand == "ATE":
        f, by_true = (e - p) / (p * (1 - p)), e * (1 - e) / (p * (1 - p))
        by_model = -1 - (e - p) * (1 - 2 * p) / (p * (1 - p))
        arms = (e - p) / p, (e - p) / (1 - p)
    elif estimand == "ATT":
        f, by_true = (e - p) / (1 - p) / share, e * (1 - e) / (1 - p) / share
        by_model = -(1 - e) * p / (1 - p) / share
        arms = np.zeros_like(f), f
    else:
        f, by_true = (e - p) / p / (1 - share), e * (1 - e) / p / (1 - share)
        by_model = -e * (1 - p) / p / (1 - share)
        arms = f, np.zeros_like(f)
    return (
        float((weight * f).sum()),
        float((weight * by_true).sum()),
        float((weight * by_model * inside).sum()),
        float((weight * arms[0]).sum()),
        float((weight * arms[1]).sum()),
    )


def _size(estimand: str, mean: float, mixed: float) -> float:
    """Return the mean square of a score beside that of a residual; `mixed` is the mean of p(1-p)."""
    if estimand == "ATE":
        return 1 / max(mixed, 0.02)
    odds = mean / max(1 - mean, 0.02)
    return odds if estimand == "ATT" else 1 / max(odds, 0.02)


# What may be chosen about the cross-fitted effect, and the plan that follows from it.


# Squared lengths of treatment and outcome beside a row's in the second moments.
TREATMENT, OUTCOME = 0.25, 1.0
# Shares of the budget by release, chosen on other seeds than those reported; each record pays all of them once.
_FIRST = {"gaussian": (Fraction(6, 100), Fraction(2, 100)), "pure": (Fraction(12, 100), Fraction(5, 100))}
_REST = {"weights": Fraction(25, 100), "gram": Fraction(65, 100), "score": Fraction(10, 100)}
# Of the score's share where noise is pure: the sum, its squares, and the number treated where it has to be known.
_PURE = {"effect": Fraction(17, 20), "squares": Fraction(3, 20)}
_PURE_COUNTED = {"effect": Fraction(3, 4), "squares": Fraction(1, 8), "count": Fraction(1, 8)}
# The penalty at which the noise of a logit has about this standard deviation.
_LOGIT_NOISE = 0.5
_LEAST_PENALTY, _MOST_PENALTY = 1e-5, 0.5
# Squared lengths of standardised rows, as a multiple of their number of features.
_LENGTH = 1.5


def cross_fit_plan(question: Question, declared: bool) -> ParallelPlan:
    """Return the plan: what is released of one half costs nothing beside what is released of the other.

    Where the propensity is `declared`, no model of it is fitted.
    """
    counted = question.estimand is not Estimand.ATE and not declared
    shares = _shares(question.mechanism, declared, counted)
    kinds = {"centre": Kind.VECTOR, "norms": Kind.VECTOR, "weights": Kind.VECTOR, "gram": Kind.VECTOR}
    if question.mechanism == "gaussian":
        kinds["moments"] = Kind.VECTOR
    else:
        kinds["norms"] = Kind.CELLS
    groups = {name: [name] for name in shares}
    groups |= {name: [f"{name} {half}" for half in (1, 2)] for name in ("weights", "gram") if name in shares}
    return in_parallel(Plan.split(question.budget, shares, question.mechanism, kinds), groups)


def _shares(mechanism: str, declared: bool, counted: bool) -> dict[str, Fraction]:
    centre, norms = _FIRST["gaussian" if mechanism == "gaussian" else "pure"]
    left = 1 - centre - norms
    rest = {name: share for name, share in _REST.items() if name != "weights" or not declared}
    total = sum(rest.values(), Fraction(0))
    shares = {"centre": centre, "norms": norms}
    shares |= {name: left * share / total for name, share in rest.items()}
    score = shares.pop("score")
    own = {"moments": Fraction(1)} if mechanism == "gaussian" else _PURE_COUNTED if counted else _PURE
    return shares | {name: score * part for name, part in own.items()}


def noise_of_gram(design: Design, plan: Plan) -> float:
    """Return the operator norm of the noise of a half's second moments; `design` has the rows of a half."""
    reach = (1 + _LENGTH * design.features) * (1 + TREATMENT + OUTCOME)
    share = plan.parts["gram"]
    return 2 * sqrt(design.features + 1) * float(design.gram_noise(share, reach))


def affordable(design: Design, plan: Plan) -> bool:
    """Whether the public numbers afford models of both halves."""
    return noise_of_gram(design, plan) <= MOST_NOISE["pure" if design.pure else "gaussian"]


def outcome_bound_factor(design: Design, plan: Plan) -> float:
    """Return by what the bound of outcomes in the second moments, 2.2 of their deviations, is multiplied.

    Clipping so near takes a hundredth off the coefficients, which nothing puts back; where noise is small, it shows.
    """
    noise = noise_of_gram(design, plan)
    return 1.0 if noise >= 0.3 else 1.4 if noise >= 0.05 else 1.8


def chosen_penalty(design: Design, plan: Plan) -> float:
    """Return the penalty that balances the noise of the weights against what it takes off the model.

    Rows are no longer than sqrt(2), and the weights move by 2 sqrt(2)/(rows penalty): a logit by 4/(rows penalty).
    """
    sd = float(design.sd(plan.parts["weights"], design.features + 1, 4.0))
    return float(np.clip(sd / _LOGIT_NOISE, _LEAST_PENALTY, _MOST_PENALTY))
