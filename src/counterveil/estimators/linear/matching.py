"""Matching on the propensity score where only outcomes are private: public coefficients, one noisy effect.

    effect = sum_i c_i y_i,

in units of the outcome: every unit is compared with its nearest units of the other arm on the score [2]_,
with replacement [1]_ and a limit on how often a unit serves, after PrivATE (Yuan et al., "PrivATE:
Differentially Private Average Treatment Effect Estimation for Observational Data"), whose published form is
in `published`. c_i grows with how often row i serves (`matching_design.py`).

In: covariates, treatments and the order of rows, which are public, and so are the coefficients; private
outcomes in a range of width B, read through the gate alone (it adds noise and lets each planned release
through once). Out: the effect with an interval. One outcome moves the effect by at most B max |c_i|, to which
the noise is scaled; proof: `rows/linear/linear_estimate.proof.md`. The variance, released as well, comes from
lines in parts of each arm (`rows/linear/residual_variance.proof.md`), or from pairs of neighbours on the
score where lines would take too long. The constants steer the variance's form; privacy does not depend on
them.

References
----------
.. [1] Abadie, A. and Imbens, G. W. (2006). Large sample properties of matching estimators for average treatment
   effects. Econometrica 74, 235-267.
.. [2] Rosenbaum, P. R. and Rubin, D. B. (1983). The central role of the propensity score in observational studies for
   causal effects. Biometrika 70, 41-55.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.estimators.linear.budget_split import effect_plan
from counterveil.estimators.linear.diagnostics import design_diagnostics
from counterveil.estimators.linear.effect import effect_of
from counterveil.estimators.linear.kernels.balancing import arm_rows
from counterveil.estimators.linear.kernels.pairing import consecutive_pairs
from counterveil.estimators.linear.kernels.weight_features import FeatureShares
from counterveil.estimators.linear.linear_estimator import EFFECT_PAGE, LinearEffect
from counterveil.estimators.linear.matching_design import Matched, Scored, chosen_match, scored
from counterveil.estimators.linear.variance_choice import PAGE as VARIANCE_PAGE
from counterveil.estimators.linear.variance_choice import chosen_residual_variance, expected_part
from counterveil.estimators.linear.weighting_design import Weighted, shared_features
from counterveil.estimators.method import Prepared
from counterveil.numerics.products import sums
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.privacy.provenance import Estimator
from counterveil.results.question import Question, adjusted_caveats
from counterveil.results.result import Result
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.public import PublicData, PublicRows
from counterveil.settings import Matching
from counterveil.settings.methods import AUTO, BEST, BY_ARM, assumed_sd

# What a mean outcome is supposed to follow when the bias that matches leave is allowed for. Squares are not
# among it: what outcomes owe to them stays in the variance whole.
_OUTCOME_VARIANCE_SHARES = FeatureShares(0.7, 0.0, 0.05)
# Into how many parts each arm is cut by the size of coefficients, for outcomes may vary more where they are large.
_OUTCOME_VARIANCE_PARTS = 4
# Sums of products of covariates take this many multiplications at most; beyond it they take longer than matching.
_MOST_WORK = 1 << 23


def matching(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the matched effect, prepared for its releases."""
    require_covariates(public.study, "matching")
    return effect_of(public, question, matched_effect(public.columns, question))


def matched_effect(rows: PublicRows, question: Question) -> LinearEffect:
    """Return the linear estimator of the matched effect of these rows; reads public columns only."""
    settings = question.settings or Matching()
    design = scored(rows)
    unit_noise = effect_plan(question, Fraction(0)).noise("effect", Fraction(1)).variance
    matched = chosen_match(
        design,
        settings,
        estimand=question.estimand.value,
        epsilon=float(question.budget.epsilon),
        noise_variance=unit_noise,
        sd=assumed_sd(rows.study.outcome_range),
    )
    coefficients = matched.matching.coefficients
    variance = variance_by_arm(rows, design, settings=settings, coefficients=coefficients, question=question)
    pairs = None
    if variance is None:
        # Neighbours on the score: the variance then holds the chance imbalance that matching on it leaves.
        pairs = consecutive_pairs(design.by_score.by_score(arm) for arm in (False, True))
    return LinearEffect(
        method=Estimator.MATCHING,
        coefficients=coefficients,
        pairs=pairs,
        variance=variance,
        pages=(EFFECT_PAGE,) if variance is None else (EFFECT_PAGE, VARIANCE_PAGE),
        expected_part=1.0 if variance is None else expected_part(variance, coefficients),
        not_covered=matching_caveats(rows.study, matched, by_arm=variance is not None),
        details=matching_details(design, matched, settings),
        diagnostics=design_diagnostics(design.features, design.treated, design.score, coefficients),
    )


def matching_caveats(study: Study, matched: Matched, *, by_arm: bool = False) -> tuple[Fact, ...]:
    """Return what an interval around a matching estimate does not cover; with `by_arm`, one variance a part."""
    listed = [Caveat.MATCHING_BIAS]
    listed += [Caveat.UNMATCHED] if matched.matching.unmatched else []
    listed += [Caveat.UNEVEN_VARIANCE] if by_arm else []
    return adjusted_caveats(study, *listed)


def matching_details(design: Scored, matched: Matched, settings: Matching) -> dict[str, float | str]:
    """Return the single figures of a matching, all public."""
    matches = matched.matching
    treated, control = design.arms
    limits = ["no limit" if limit is None else limit for limit in matched.limits]
    return {
        "rows": treated + control,
        "treated": treated,
        "control": control,
        "neighbours": settings.neighbours,
        "limit": _limit_name(settings),
        "max_uses_treated": limits[0],
        "max_uses_control": limits[1],
        "matches_at_limit": matches.at_limit,
        "unmatched": matches.unmatched,
        "short_of_neighbours": matches.short,
        "max_weight_times_rows": matches.largest * len(matches.coefficients),
    }


def _limit_name(settings: Matching) -> str:
    if settings.limit is None:
        return "none"
    return BEST if settings.limit == AUTO else str(settings.limit)


def variance_by_arm(
    rows: PublicRows,
    design: Scored,
    settings: Matching,
    coefficients: NDArray[np.float64],
    question: Question,
) -> ResidualVariance | None:
    """Return the variance from residual variances in parts of each arm, or None where it comes from pairs of rows.

    Reads public columns only.
    """
    count, columns = design.features.values.shape
    small = count * columns**2 <= _MOST_WORK
    if not (settings.variance_by == BY_ARM or (settings.variance_by == AUTO and small)):
        return None
    imbalance = left_by_matches(rows, design, coefficients, question.estimand)
    return (
        chosen_residual_variance(imbalance, design.treated, question, _OUTCOME_VARIANCE_PARTS)
        if len(imbalance.gaps)
        else None
    )


def left_by_matches(
    rows: PublicRows, design: Scored, coefficients: NDArray[np.float64], estimand: Estimand
) -> Weighted:
    """Return the coefficients of a matched effect with the imbalance that they leave in covariates and score.

    Features are as many as vary over the rows, which may be none.
    """
    features, *_ = shared_features(rows, design.score, _OUTCOME_VARIANCE_SHARES)
    by_arm = np.stack([np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)])
    arms = arm_rows(features, design.treated)
    return Weighted.of(features, arms, weights=coefficients, totals=sums(features, by_arm), estimand=estimand)
