"""The effect on everyone, the treated or the untreated where everything about a person is private.

Second moments of covariates and outcome are released arm by arm, which costs no more than one matrix for all;
lines of both arms are refined on moments of their residuals; weights balance each arm against the people
asked about (`arm_models`). The effect is that of the lines, plus the mean of a doubly robust score [1]_ [2]_,
which is released with its square and clipped where a histogram of sizes says (`score_clip`):

    effect = effect of lines + mean(score) - expected shared error of lines and weights,
    variance = var(score) / n + noise + product of both models' errors.

Numbers inside this module are in units of half the outcome's range; the answer is in units of the outcome.

Private are all covariates, treatments and outcomes; the number of rows n and declared ranges are public. The
mean of scores is clipped so that a replaced row moves it by at most twice the clip over n. Proofs of privacy:
`rows/moments/arm_grams.proof.md` (second moments and residuals by arm),
`rows/moments/orthogonal_score.proof.md` (scores and their squares) and `rows/histogram.proof.md`
(histograms).

References
----------
.. [1] Robins, J. M., Rotnitzky, A. and Zhao, L. P. (1994). Estimation of regression coefficients when some
   regressors are not always observed. Journal of the American Statistical Association 89, 846-866.
.. [2] Chernozhukov, V., Newey, W. K. and Singh, R. (2022). Automatic debiased machine learning of causal and
   structural effects. Econometrica 90, 967-1027.
.. [3] Dwork, C., Talwar, K., Thakurta, A. and Zhang, L. (2014). Analyze Gauss: optimal bounds for
   privacy-preserving principal component analysis. STOC 2014, 11-20. On noisy second moments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt

import numpy as np

from counterveil.data.features import require_covariates
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.adjusted_answers import (
    PAGES,
    adjusted_facts,
    adjustment,
    chain_of,
    mechanisms_of,
    unaffordable,
)
from counterveil.estimators.moments.arm_chain import RESIDUAL_PASSES, ArmDesign, Spending, arms_affordable
from counterveil.estimators.moments.arm_models import ArmModels, arm_models
from counterveil.estimators.moments.balanced_weights import expected_shared
from counterveil.estimators.moments.confounding_bound import with_confounding_bound
from counterveil.estimators.moments.contrast import ARMS, POOLED, compare, is_worthwhile
from counterveil.estimators.moments.longest_score import longest_score
from counterveil.estimators.moments.score_clip import (
    LARGEST_WEIGHT_SDS,
    SIZES,
    ScoreClip,
    ScoreShape,
    SizeHistogram,
    chosen_clip,
    far_lost,
    not_corrected,
)
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.moments.score_sizes import release_sizes
from counterveil.rows.moments.score_sums import ScoreMoments, release_arm_score
from counterveil.rows.public import PublicData
from counterveil.rows.records import Records
from counterveil.session import Gate
from counterveil.settings import DoublyRobust

# Standard deviations of its noise by which the mean square of the scores is raised.
_SQUARE_RAISED_SDS = 0.7
# Scores are taken to have at least this part of the variance that was expected of them.
_LEAST_VARIANCE = 0.1


def doubly_robust(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the adjusted effect, or what the settings say where adjustment is not affordable."""
    require_covariates(public.study, "doubly_robust")
    settings = question.settings or DoublyRobust()
    spending = adjustment(public, question, settings)
    if arms_affordable(spending.design):
        return adjusted_effect(public, question, spending)
    if settings.kappa is None:
        raise unaffordable(spending.design)
    centre = ARMS if is_worthwhile(public.rows, question.budget, question.mechanism) else POOLED
    bound = partial(with_confounding_bound, question=question, rows=public.rows, kappa=settings.kappa)
    return replace(compare(public, question, centre), finish=bound)


def adjusted_effect(public: PublicData, question: Question, spending: Spending) -> Prepared[Result]:
    """Return the adjusted effect on the people that the estimand names, prepared for its releases."""
    study = public.study
    design = spending.design
    chain = chain_of(study, design)

    def estimate(gate: Gate) -> Facts:
        effect = arm_effect(gate, Records.at(gate, spending.features), chain, question.estimand)
        low, high = study.outcome_range
        unit = float(high - low) / 2
        sampling, noise, product = (
            part * unit**2 for part in (effect.sampling, effect.noise, effect.product)
        )
        # Pure noise is one of the coordinates of a ball: mean and mean square of the score.
        extra, ball, dimensions = (product, noise, 2) if design.pure else (noise + product, 0.0, 0)
        bias = effect.bias * unit
        return Facts(
            # Overlap weights are lines where propensities are.
            adjusted_facts(
                study,
                spending.features,
                chain,
                inverse=question.estimand is not Estimand.ATO,
                ends=effect.ends,
            ),
            estimate=effect.value * unit,
            uncertainty=Uncertainty(
                noise=None,
                variance=sampling,
                variance_cap=sampling,
                variance_noise=None,
                extra=extra,
                bias=bias,
                ball_variance=ball,
                ball_dimensions=dimensions,
            ),
            details={
                "adjusted": True,
                "rows": design.rows,
                "features": design.features,
                "mechanism": design.drawn,
                "share_treated": effect.share,
                "residual_passes": len(RESIDUAL_PASSES),
                "se_sampling": sqrt(sampling),
                "se_score_noise": sqrt(noise),
                "se_models": sqrt(product),
                "model_bias_bound": bias,
                "moved_by_squares_and_products": effect.nonlinear_shift * unit,
            },
        )

    return Prepared(
        question=replace(question, mechanism=design.mechanism),
        plan=chain.plan(),
        estimate=estimate,
        pages=PAGES,
        mechanisms=mechanisms_of(design),
    )


@dataclass(frozen=True, slots=True)
class ScoredEffect:
    """The effect in units of half the outcome's range, and the parts of its uncertainty.

    Attributes
    ----------
    value : float
        The effect.
    sampling, noise, product : float
        Variances: of who is in the sample, of the score's noise, and of the product of both models' errors.
    bias : float
        A bound that is added to the half-width.
    share : float
        Share treated.
    nonlinear_shift : float
        How far squares and products move the effect, a part of the bias.
    ends : OutcomesAtEnds or None
        How many outcomes crowd at the ends of their range.
    """

    value: float
    sampling: float
    noise: float
    product: float
    bias: float
    share: float
    nonlinear_shift: float = 0.0
    ends: OutcomesAtEnds | None = None


def arm_effect(gate: Gate, records: Records, design: ArmDesign, estimand: Estimand) -> ScoredEffect:
    """Return the effect from the mean of the scores, clipped where a histogram of their sizes says."""
    models = arm_models(gate, records, design, estimand)
    moments = models.moments
    score = models.balanced.score
    # Weights have the mean one over their arm's share.
    slopes = score.weights[:, 1:]
    spreads = np.sqrt(np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes))
    squares = 1 / moments.shares**2 + spreads**2
    variance = models.fit.residual * float(moments.shares @ squares)
    edges = sqrt(variance) * SIZES
    counts, sd = release_sizes(
        gate, models.records, models.scale.rows, score=score, edges=edges, pure=design.pure
    )
    largest_weight = float((1 / moments.shares + LARGEST_WEIGHT_SDS * spreads).max())
    shape = ScoreShape(
        rows=models.records.count,
        noise_unit=design.score_unit,
        typical=sqrt(variance),
        peaked=float(moments.shares @ squares**2) * (models.fit.residual / variance) ** 2,
        far=sqrt(models.fit.residual) * float((1 / moments.shares + spreads).max()),
        missed=np.sum(
            [not_corrected(moments, models.fit, arm, weights=slopes[arm], clips=edges) for arm in (0, 1)],
            axis=0,
        ),
        far_losses=far_lost(moments, models.scale, {0: slopes[0], 1: slopes[1]}, edges),
        # Uneven outcomes are clipped no nearer than they reach, times about the largest of their weights.
        least=models.scale.least_clip(models.fit.levels) * largest_weight,
        location=models.scale.location,
        longest=longest_score(score, models.scale.rows),
    )
    clip = chosen_clip(SizeHistogram(counts, sd, edges), shape)
    released = release_arm_score(gate, models.records, models.scale.rows, score=score, clip=clip.clip)
    return scored_effect(models, released, clip, variance)


def scored_effect(
    models: ArmModels, released: ScoreMoments, clip: ScoreClip, variance: float
) -> ScoredEffect:
    """Return the effect from the released mean of the scores; `variance` is what was expected of a score's."""
    balanced = models.balanced
    rows = models.records.count
    coefficients = balanced.score.weights.size
    square = max(released.square, 0.0) + _SQUARE_RAISED_SDS * released.square_sd
    score_variance = max(square - released.score**2, _LEAST_VARIANCE * variance)
    sampling = score_variance / max(rows - coefficients, rows / 2)
    # What clips leave uncorrected adds to the errors of both arms alike.
    arms = len(balanced.arms)
    product = sum(arm.product + clip.missed / arms for arm in balanced.arms)
    # Scores whose mean is off zero are cut off more on one side.
    lost = clip.lost * (1 + 2 * min(abs(released.score) / sqrt(variance), 1.0))
    unit = models.scale.unit
    return ScoredEffect(
        value=(balanced.score.effect + released.score - balanced.shared) * unit,
        sampling=(sampling + balanced.sampling) * unit**2,
        noise=released.sd**2 * unit**2,
        product=(product + expected_shared(balanced.shared)) * unit**2,
        bias=(balanced.bias + balanced.nonlinear_shift + lost) * unit,
        share=float(models.moments.shares[1]),
        nonlinear_shift=balanced.nonlinear_shift * unit,
        ends=models.scale.location.ends,
    )
