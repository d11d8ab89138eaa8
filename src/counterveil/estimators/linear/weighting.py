"""Effects by balancing weights where only outcomes are private: public coefficients, a noisy effect.

    effect = sum_i c_i y_i,    c = argmin of supposed squared bias + sampling variance + noise variance,

in units of the outcome: weights that minimise variance subject to balance (stable balancing weights [2]_),
here with squared imbalance in the objective as in kernel optimal matching [1]_, and with the privacy noise,
which the largest weight sets, as a third term (`kernels/balancing.py` has the formula).

In: covariates, treatments and the order of rows, which are public, and so are the weights; private outcomes
in a range of width B, read through the gate alone (it adds noise and lets each planned release through once).
Out: the effect with an interval. Why it is private: one outcome moves the effect by at most B max |c_i|, to
which the noise is scaled; proofs: `rows/linear/linear_estimate.proof.md`, and
`rows/linear/residual_variance.proof.md` for the released variance. What is supposed of outcomes steers
weights and lengths of intervals; privacy does not depend on it.

References
----------
.. [1] Kallus, N. (2020). Generalized optimal matching methods for causal inference. Journal of Machine Learning
   Research 21, 1-54.
.. [2] Zubizarreta, J. R. (2015). Stable weights that balance covariates for estimation with incomplete outcome data.
   Journal of the American Statistical Association 110, 910-922.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from counterveil.data import Range, Study
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.diagnostics import covariate_diagnostics
from counterveil.estimators.linear.effect import effect_of
from counterveil.estimators.linear.kernels.pairing import covariate_pairs
from counterveil.estimators.linear.linear_estimator import EFFECT_PAGE, LinearEffect
from counterveil.estimators.linear.spline_score import ScoredRows, spline_score
from counterveil.estimators.linear.variance_choice import PAGE as VARIANCE_PAGE
from counterveil.estimators.linear.variance_choice import chosen_residual_variance, expected_part
from counterveil.estimators.linear.weighting_design import Weighted, weighted
from counterveil.estimators.method import Prepared
from counterveil.privacy.caveats import Caveat, Fact, LinearIn, OtherFunctions, ResidualImbalance
from counterveil.privacy.provenance import Estimator, PublicPrediction
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, design_says
from counterveil.results.result import Result
from counterveil.rows.linear.moved_rows import residuals, treated_first
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.public import PublicData, PublicRows
from counterveil.settings import Weighting
from counterveil.settings.methods import BY_ARM, BY_ROW, FOR_VALUE_ALONE, IN_TRIALS, asked_share


def weighting_design(rows: PublicRows, settings: Weighting) -> ScoredRows:
    """Return the arms and scores that weights are made from."""
    if rows.score is not None:
        return ScoredRows(rows.treated, rows.score)
    # What a trial's treatment seems to follow is chance.
    leaves = "tree_leaves" in settings.balanced and rows.study.randomised is not True
    return spline_score(rows, "selected_terms" in settings.balanced, leaves)


def weighting(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the weighted effect, prepared for its releases."""
    require_covariates(public.study, "weighting")
    return effect_of(public, question, weighted_effect(public.columns, question))


def weighted_effect(rows: PublicRows, question: Question) -> LinearEffect:
    """Return the linear estimator of the weighted effect of these rows; reads public columns only."""
    settings = _supposing(question.settings or Weighting(), question, rows.study)
    ordered = treated_first(residual_rows(rows, settings))
    design = weighting_design(ordered, settings)
    share = asked_share(question.settings)
    noise_variance = unit_noise(question, share, design.arms)
    balanced = weighted(
        ordered, design, settings=settings, estimand=question.estimand, noise_variance=noise_variance
    )
    by_row = settings.variance_by == BY_ROW
    variance = None if by_row else chosen_residual_variance(balanced, ordered.treated, question)
    not_covered = caveats(rows.study, balanced, settings)
    details = weighting_details(design, balanced)
    coefficients = balanced.weights
    score = design.score
    # Weights that are the inverse of known scores need no allowance; those that noise or balance moved do.
    bias = settings.allowed_bias(rows.study.randomised is True, len(rows.study.covariates))
    bias *= balanced.distance if settings.bias is None else 1.0
    features = balanced.features
    assumptions = design_says(rows.study) if rows.study.unconfounded else LinearIn(features.shape[1])
    # Features take the most memory: little else is held beside them, and they are not held beside what follows.
    del balanced, design
    pairs = covariate_pairs(ordered.treated, features) if by_row else None
    del features
    return LinearEffect(
        method=Estimator.WEIGHTING if rows.study.score is None else Estimator.KNOWN_SCORES,
        coefficients=coefficients,
        pairs=pairs,
        variance=variance,
        pages=(EFFECT_PAGE,) if by_row else (EFFECT_PAGE, VARIANCE_PAGE),
        expected_part=1.0 if variance is None else expected_part(variance, coefficients),
        not_covered=not_covered,
        details=details,
        diagnostics=covariate_diagnostics(ordered, score, coefficients),
        rows=ordered,
        remarks=_remarks(settings),
        share=share,
        bias=bias,
        assumptions=assumptions,
    )


def _supposing(settings: Weighting, question: Question, study: Study) -> Weighting:
    """Return the settings with what is supposed of outcomes where the interval holds what less balance leaves.

    The largest variance there can be holds it. So does, in a trial, one variance an arm, which keeps as much
    of what covariates explain as the imbalance calls for. Pairs of rows do not, nor do variances of either
    arm's mean, for which the imbalance of that arm counts.
    """
    value_alone = asked_share(question.settings) == 0
    interval_holds = value_alone or (settings.variance_by == BY_ARM and question.measure not in OF_MEANS)
    default_sds = settings.assumed_sds(study.outcome_range)
    factor = FOR_VALUE_ALONE if value_alone else 1.0
    signal_factor = factor * (IN_TRIALS if interval_holds and study.unconfounded else 1.0)
    return replace(
        settings,
        signal=settings.signal or signal_factor * default_sds[0],
        residual=settings.residual or factor * default_sds[1],
    )


def unit_noise(question: Question, share: Fraction | None, arms: tuple[int, int]) -> float:
    """Return the variance of the effect's noise at sensitivity one, `share` of the budget being the variance's.

    Where the share is to be chosen it depends on the weights, and the weights on the noise; the share that
    equal weights would get is near enough.
    """
    if share is not None:
        return effect_plan(question, share).noise("effect", Fraction(1)).variance
    treated_share = Fraction(1, arms[0])
    control_share = Fraction(1, arms[1])
    largest = max(treated_share, control_share)
    equal = LinearEstimate(Fraction(1), largest, treated_share + control_share, 2 * largest**2)
    share = chosen_share(equal, question)
    return effect_plan(question, share).noise("effect", Fraction(1)).variance


def residual_rows(rows: PublicRows, settings: Weighting) -> PublicRows:
    """Return the rows with the prediction subtracted from their outcomes, where the settings name one."""
    if settings.prediction is None or settings.residual_range is None:
        return rows
    if not isinstance(rows.study.covariates.get(settings.prediction), Range):
        raise refusal("CV-P222", prediction=settings.prediction)
    return residuals(rows, settings.prediction, settings.residual_range)


def caveats(study: Study, weights: Weighted, settings: Weighting) -> tuple[Fact, ...]:
    """Return what an interval around a weighted effect does not cover."""
    clamped = Caveat.CLAMPING if settings.prediction is None else Caveat.CLAMPING_OF_PREDICTED
    return (
        *(() if study.unconfounded else (Caveat.CONFOUNDING,)),
        ResidualImbalance(weights.imbalance),
        OtherFunctions(tuple(settings.balanced)),
        *(() if settings.variance_by == BY_ROW else (Caveat.UNEVEN_VARIANCE,)),
        clamped,
    )


def weighting_details(design: ScoredRows, weights: Weighted) -> dict[str, float | str]:
    """Return the single figures of a weighting, all public."""
    treated, control = design.arms
    largest = float(abs(weights.weights).max())
    return {
        "rows": treated + control,
        "treated": treated,
        "control": control,
        "residual_imbalance": weights.imbalance,
        **({"selected_terms": len(design.followed.columns)} if design.followed else {}),
        "max_weight_times_rows": largest * (treated + control),
        "max_weight_ratio": largest * min(treated, control),
    }


def _remarks(settings: Weighting) -> tuple[PublicPrediction, ...]:
    return () if settings.prediction is None else (PublicPrediction(settings.prediction),)
