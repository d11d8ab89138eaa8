"""Means of both arms where only outcomes are private, for ratios, lifts and odds ratios.

An adjusted effect sum_i c_i y_i is split into what its public coefficients c make of either arm,

    T_1 = sum over the treated of c_i y_i,    T_0 = sum over the others of -c_i y_i,

in units of the outcome, so that T_1 - T_0 is the effect. Each is released with noise for its own sensitivity,
(range of outcomes) times the largest |c_i| of its arm, and so is its variance; the measure is made of the
released numbers.

In: public coefficients of weighting, matching or plain means, and private outcomes, read through the gate
alone (it adds noise and lets each planned release through once). Out: the measure with an interval, and both
means.

Why it is right: one outcome is in one arm, so that only the numbers of that arm move (proof:
`rows/linear/arm_pair.proof.md`; `rows/linear/arm_mean.proof.md` for plain means), and both arms' numbers are
released for the price of one (`session/parallel.proof.md`; disjoint releases compose in parallel, McSherry
2009).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import require_covariates
from counterveil.estimators.linear.arm_means import MeanBounds, share_of
from counterveil.estimators.linear.budget_split import effect_plan
from counterveil.estimators.linear.diagnostics import treatment_shares
from counterveil.estimators.linear.linear_estimator import LinearEffect, known_error, release_rows
from counterveil.estimators.linear.matching import matched_effect
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import IndependentArmMeans
from counterveil.privacy.provenance import Estimator, Quantity, QuantityOf, ReleaseRow
from counterveil.results.answering import Facts
from counterveil.results.measures import no_means
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import MeasureResult
from counterveil.rows.linear.arm_mean import ArmMeans, PlainArm, WeightedArm
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.sensitivity import ArmMean
from counterveil.rows.linear.variance_forms import VarianceForm, WithBias
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Released
from counterveil.session.session import in_parallel

ARM_PAIR_PAGE = "rows/linear/arm_pair.proof.md"
PARALLEL_PAGE = "session/parallel.proof.md"
PLAIN_PAGES = ("rows/linear/arm_mean.proof.md", PARALLEL_PAGE)
ARMS = ("treated", "control")
# Members of both groups of releases, the treated first.
MEANS, VARIANCES = (tuple(f"{what} of {arm}" for arm in ARMS) for what in ("mean", "variance"))
# The released mean of each arm and its variance, where that is paid for.
Pairs = list[tuple[Released, Released | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ArmPair:
    """The means of both arms, the treated first, and what to say of them.

    Attributes
    ----------
    means : ArmMeans
        What is summed and released.
    effect : LinearEffect
        The effect that they belong to: its words, and what it allows for bias.
    pages : tuple of str
        Proof pages of the bounds.
    diagnostics : dict
        Tables of the answer, all public.
    """

    means: ArmMeans
    effect: LinearEffect
    pages: tuple[str, ...]
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[MeanBounds, MeanBounds]:
        """How far one outcome moves the numbers of the treated, and of the others."""
        treated, control = self.means.bounds
        return treated, control


def plain_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the measure of the arms' plain means, prepared for its releases."""
    study = public.study
    control, treated = public.arm_sizes
    lo, hi = study.outcome_range
    arms = PlainArm(1, ArmMean(hi - lo, treated)), PlainArm(0, ArmMean(hi - lo, control))
    effect = LinearEffect(
        method=Estimator.MEANS_OF_BOTH_ARMS,
        coefficients=np.empty(0),
        pairs=None,
        not_covered=causal_caveats(study, question.estimand),
        details={"rows": public.rows, "treated": treated, "control": control},
    )
    return measured(public, question, ArmPair(ArmMeans(arms), effect, PLAIN_PAGES))


def weighted_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the measure of the means that balancing weights make of both arms, prepared for its releases."""
    require_covariates(public.study, "weighting")
    settings = question.settings
    if settings is not None and settings.prediction is not None:
        raise no_means("weighting", f"prediction={settings.prediction!r}")
    effect = weighted_effect(public.columns, question)
    assert effect.rows is not None
    pair = split_by_arm(effect.rows, effect)
    diagnostics = effect.diagnostics | treatment_shares(public.columns)
    return measured(public, question, ArmPair(pair.means, effect, pair.pages, diagnostics))


def matched_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the measure of the means that matching makes of both arms, prepared for its releases."""
    require_covariates(public.study, "matching")
    return measured(public, question, split_by_arm(public.columns, matched_effect(public.columns, question)))


def split_by_arm(rows: PublicRows, effect: LinearEffect) -> ArmPair:
    """Return what the coefficients of an effect make of either arm; those of the controls change their sign."""
    treated = split_arm(rows, effect, rows.treated, 1.0)
    control = split_arm(rows, effect, ~rows.treated, -1.0)
    pages = (*effect.pages, ARM_PAIR_PAGE, PARALLEL_PAGE)
    return ArmPair(ArmMeans((treated, control), rows), effect, pages, effect.diagnostics)


def split_arm(rows: PublicRows, effect: LinearEffect, inside: NDArray[np.bool_], sign: float) -> WeightedArm:
    """Return what the coefficients of an effect make of one arm: its weighted mean, and its part of the variance.

    Pairs join rows of one arm and groups of lines hold rows of one arm, so that the variance of the effect is the
    sum of both arms' and one outcome moves the numbers of its own arm alone.

    Parameters
    ----------
    rows : PublicRows
        All rows, in the order of the coefficients.
    effect : LinearEffect
        The estimator.
    inside : ndarray of bool
        Which rows are in the arm.
    sign : float
        1 for the treated, -1 for the others, whose coefficients are negative.
    """
    coefficients = np.where(inside, sign * effect.coefficients, 0.0)
    variance: VarianceForm
    if effect.variance is not None:
        variance = effect.variance.among(inside)
    else:
        assert effect.pairs is not None  # an estimator gives one or the other
        first, second = effect.pairs
        chosen = inside[first]
        variance = paired_variance(coefficients, first[chosen], second[chosen])
    return WeightedArm.of(
        width=rows.study.outcome_bounds.width,
        rows=np.arange(rows.rows),
        form=linear_form(coefficients),
        variance=WithBias(variance, effect.factor),
    )


def measured(public: PublicData, question: Question, pair: ArmPair) -> Prepared[MeasureResult]:
    """Return the measure of both arms' means, which are released in parallel."""
    study = public.study
    share = share_of(pair.bounds, question, pair.effect.expected_part)

    def estimate(gate: Gate) -> Facts:
        released = pair.means.release(gate, with_variance=[share > 0] * 2, means=MEANS, variances=VARIANCES)
        means = released_means(pair.bounds, released, study.outcome_range)
        releases: list[ReleaseRow] = []
        for arm, bounds, (_, variance) in zip(ARMS, pair.bounds, released, strict=True):
            quantities = QuantityOf(Quantity.MEAN_OF, arm), QuantityOf(Quantity.ITS_VARIANCE_OF, arm)
            releases += release_rows(bounds, variance is not None, quantities)
        return Facts(
            measure=question.measure,
            numbers=means,
            method=pair.effect.method,
            releases=tuple(releases),
            not_covered=pair.effect.not_covered,
            details=pair.effect.details
            | pair.effect.with_bias(means.parts(1.0, 1.0)[0])
            | {"mechanism": question.mechanism, "variance_budget_share": float(share)}
            | {"mean_treated": means.values[0], "mean_control": means.values[1]},
            diagnostics=pair.diagnostics,
        )

    return Prepared(
        question=question,
        plan=in_parallel(effect_plan(question, share), {"effect": MEANS, "variance": VARIANCES}),
        estimate=estimate,
        answer=MeasureResult,
        pages=pair.pages,
        remarks=pair.effect.remarks,
    )


def released_means(
    pair: tuple[MeanBounds, MeanBounds], released_pairs: Pairs, outcome_range: tuple[Fraction, Fraction]
) -> IndependentArmMeans:
    """Return what was released as means of both arms with their error."""
    low, high = map(float, outcome_range)
    uncertainties = [
        known_error(*released, bounds.variance_cap)
        for bounds, released in zip(pair, released_pairs, strict=True)
    ]
    values = low + float(released_pairs[0][0]), low + float(released_pairs[1][0])
    sizes = float(1 / pair[0].squares), float(1 / pair[1].squares)
    return IndependentArmMeans(values, (uncertainties[0], uncertainties[1]), (low, high), sizes)
