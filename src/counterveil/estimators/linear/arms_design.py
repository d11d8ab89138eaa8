"""Public coefficients of the means of several arms: plain, weighted for balance, or matched on the score.

    mean of arm k = sum over arm k of c_i y_i,    c_i >= 0 with the total one,

in units of the outcome y, estimates what everybody's mean outcome would be in that arm. The coefficients are
1 / n_k (plain), those of least supposed squared error whose weighted features are near everybody's means
(`balanced_arms`, `kernels/balancing.py`), or those of matching on the arm's multinomial propensity score
(`matched_arm.py`). One outcome moves the mean of its own arm alone, by at most (range of outcomes) times max
c_i. Proofs: `rows/linear/arm_mean.proof.md` and `rows/linear/linear_estimate.proof.md`.

In: covariates and arms, which are public where outcomes alone are private, so that choosing coefficients
costs no privacy. Out: an `ArmsDesign`, which says what is to be summed and released, and tables about it.
`_SUPPOSED_SHARE` (the part of the budget supposed to go to variances while coefficients are chosen) steers
weights; privacy does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import Features, covariate_features
from counterveil.estimators.linear.arm_balance import arm_balance
from counterveil.estimators.linear.budget_split import effect_plan
from counterveil.estimators.linear.kernels.balancing import WeightSettings, arm_weights
from counterveil.estimators.linear.kernels.pairing import covariate_pairs, score_pairs
from counterveil.estimators.linear.matched_arm import matched_coefficients
from counterveil.estimators.linear.spline_score import ScoredRows, arm_terms
from counterveil.estimators.linear.weighting_design import features_of
from counterveil.numerics.arrays import Floats
from counterveil.numerics.propensity import fit_multinomial
from counterveil.privacy import exact
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.privacy.provenance import Estimator
from counterveil.results.question import Question, adjusted_caveats, causal_caveats
from counterveil.rows.linear.arm_mean import ArmMeans, PlainArm, WeightedArm
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.sensitivity import ArmMean
from counterveil.rows.linear.variance_forms import WithBias
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicData, PublicRows
from counterveil.settings import Arms, Weighting
from counterveil.settings.methods import assumed_sd

# The share of the budget that is supposed to go to variances while coefficients are chosen.
_SUPPOSED_SHARE = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class ArmsDesign:
    """The means of all arms, the reference first, and what to say about them.

    Attributes
    ----------
    method : str
        Name of the method, for the answer.
    means : ArmMeans
        What is summed and released.
    not_covered : tuple of Fact
        What intervals do not cover.
    details, diagnostics : dict
        Single figures and tables of the answer, all public.
    """

    method: Estimator
    means: ArmMeans
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)


def arms_design(public: PublicData, question: Question) -> ArmsDesign:
    """Return the design of the question's method; all but plain means read covariates, which attaches the rows."""
    if question.method == "weighting":
        return _weighted(public.columns, question)
    if question.method == "matching":
        return _matched(public.columns, question)
    width = public.study.outcome_bounds.width
    arms = tuple(PlainArm(index, ArmMean(width, size)) for index, size in enumerate(public.arm_sizes))
    caveats = causal_caveats(public.study, question.estimand)
    return ArmsDesign(Estimator.MEANS_OF_THE_ARMS, ArmMeans(arms), caveats)


def _weighted(people: PublicRows, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    scores = _scores(people, covariate_features(people))
    sd = assumed_sd(people.study.outcome_range)
    supposed = WeightSettings(sd, sd)
    width = people.study.outcome_bounds.width
    bias = settings.allowed_bias(people.study.randomised is True, len(people.study.covariates))
    factor = 1 + exact(bias, "bias") ** 2
    statistics = []
    for rows, weights, balanced in balanced_arms(people, scores, _unit_noise(question), supposed):
        # Rows alike in all that is balanced: what varies within a pair is what weighting leaves to chance.
        pairs = covariate_pairs(np.zeros(len(rows), dtype=np.intp), balanced)
        variance = WithBias(paired_variance(weights, *pairs), factor)
        statistics.append(WeightedArm.of(width, rows, linear_form(weights), variance))
        del balanced
    caveats: list[Fact] = [Caveat.IMBALANCE]
    caveats += [BiasBeyond(bias, of_each_arm=True)] if bias else []
    features = covariate_features(people)
    design = _adjusted(
        Estimator.WEIGHTING_OF_ARMS,
        people,
        features=features,
        scores=scores,
        statistics=statistics,
        caveats=caveats,
    )
    return replace(design, details={"bias_allowed_standard_errors": bias})


def balanced_arms(
    people: PublicRows, scores: Floats, noise_variance: float, supposed: WeightSettings
) -> Iterator[tuple[NDArray[np.intp], Floats, NDArray[np.floating]]]:
    """Yield every arm's rows (m,), their weights towards everybody, and their features (m, p) that are balanced."""
    for code in range(scores.shape[1]):
        inside = people.arm == code
        score = scores[:, code]
        scored = ScoredRows(inside, score, arm_terms(people, inside, score))
        rows = np.flatnonzero(inside)
        # Features take the most memory: those of everybody and of two arms are not held at once.
        balanced, _, means = features_of(people, scored, Weighting(), rows)
        del scored
        assert means is not None
        weights = arm_weights(balanced, means, noise_variance=noise_variance, settings=supposed)
        yield rows, weights, balanced
        del balanced


def _matched(people: PublicRows, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    features = covariate_features(people)
    scores = _scores(people, features)
    width = people.study.outcome_bounds.width
    statistics = []
    limits = []
    for code in range(scores.shape[1]):
        matched = matched_coefficients(
            people.arm == code,
            scores[:, code],
            features=features.values,
            neighbours=settings.neighbours,
            sd=assumed_sd(people.study.outcome_range),
            noise_variance=_unit_noise(question),
        )
        pairs = score_pairs(np.zeros(len(matched.rows), dtype=np.intp), scores[matched.rows, code])
        variance = WithBias(paired_variance(matched.coefficients, *pairs), Fraction(1))
        form = linear_form(matched.coefficients)
        statistics.append(WeightedArm.of(width, matched.rows, form, variance))
        limits.append(f"{people.study.treatment_labels[code]}: {matched.limit}")
    caveats = [Caveat.MATCHING_BIAS]
    design = _adjusted(
        Estimator.MULTINOMIAL_MATCHING,
        people,
        features=features,
        scores=scores,
        statistics=statistics,
        caveats=caveats,
    )
    return replace(design, details={"neighbours": settings.neighbours, "max_uses": "; ".join(limits)})


def _adjusted(
    method: Estimator,
    people: PublicRows,
    features: Features,
    scores: Floats,
    statistics: list[WeightedArm],
    caveats: Sequence[Fact],
) -> ArmsDesign:
    return ArmsDesign(
        method,
        ArmMeans(tuple(statistics), people),
        adjusted_caveats(people.study, *caveats),
        diagnostics=arm_balance(
            features, scores, [(arm.rows, arm.form) for arm in statistics], people.study.treatment_labels
        ),
    )


def _scores(people: PublicRows, features: Features) -> Floats:
    return fit_multinomial(
        features.values, people.arm, len(people.study.treatment_labels), 1 / people.rows
    ).scores


def _unit_noise(question: Question) -> float:
    """Return the variance of the noise of a mean whose sensitivity is one."""
    return effect_plan(question, _SUPPOSED_SHARE).noise("effect", Fraction(1)).variance
