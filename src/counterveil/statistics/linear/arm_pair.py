"""Means of both arms where only outcomes are private, for ratios and odds ratios.

One outcome is in one arm, so that both means are released for the price of one (`session/parallel.proof.md`); an
adjusted effect is split into what its weights make of either arm. Lineage: disjoint releases compose in parallel
(McSherry 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.encoding import outcome_unit
from counterveil.data.features import require_covariates
from counterveil.inference import Uncertainty
from counterveil.inference.measures import ApartMeans
from counterveil.numerics.arms import Arm, TwoArms
from counterveil.numerics.linear_form import LinearForm, linear_form, paired_variance
from counterveil.results.answering import Facts, settled
from counterveil.results.measures import no_means
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import MeasureResult
from counterveil.session import BaseSession, Gate, Released
from counterveil.session.plan import in_parallel
from counterveil.statistics.linear.arm_means import Bounds, share_of
from counterveil.statistics.linear.budget import effect_plan
from counterveil.statistics.linear.difference_in_means import arm_sums, number_treated
from counterveil.statistics.linear.effect import LinearEffect, VarianceForm, WithBias, treatment_shares
from counterveil.statistics.linear.kernels.residual_variance import ResidualVariance
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.sensitivity import ArmMean, LinearEstimate
from counterveil.statistics.linear.weighting import weighted_effect

PAGES = ("statistics/linear/arm_mean.proof.md", "session/parallel.proof.md")
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1
ARMS = ("treated", "control")
# Members of both groups of releases, the treated first.
MEANS, VARIANCES = (tuple(f"{what} of {arm}" for arm in ARMS) for what in ("mean", "variance"))
# Both arms' exact means, above the lower end of the range, and their variances.
Values = tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
# The released mean of each arm and its variance, where that is paid for.
Pairs = list[tuple[Released, Released | None]]


@dataclass(frozen=True, slots=True)
class ArmPair:
    """The statistics of both arms, the treated first: their bounds, their exact values, and what to say of them."""

    bounds: tuple[Bounds, Bounds]
    values: Callable[[], Values]
    effect: LinearEffect
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitArm:
    """What the coefficients of an effect make of one arm."""

    form: LinearForm
    variance: VarianceForm
    sensitivity: LinearEstimate

    def values(self, table: Table) -> tuple[Fraction, Fraction]:
        """Return the exact mean, above the lower end of the range, and its variance."""
        variance = self.variance.value(table.outcome, _STEP_BITS) * self.sensitivity.width**2
        return self.form.total(table.outcome) * table.outcome_unit, variance


def plain_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the arms' means; outcomes are private, who was treated is public."""
    source, study = session.batches, session.study
    ((treated,),) = source.run(number_treated)
    sizes = int(treated), source.rows - int(treated)
    lo, hi = study.outcome_range
    unit = outcome_unit(study.outcome_bounds)

    def values() -> Values:
        (sums,) = source.run(arm_sums)
        arms = TwoArms.of(sums)
        return plain_mean(arms.treated, unit), plain_mean(arms.control, unit)

    said = LinearEffect(
        "means of both arms",
        np.empty(0),
        None,
        causal_caveats(study, question.estimand),
        {"rows": source.rows, "treated": sizes[0], "control": sizes[1]},
    )
    bounds = ArmMean(hi - lo, sizes[0]), ArmMean(hi - lo, sizes[1])
    return measured(session, question, ArmPair(bounds, values, said, PAGES))


def plain_mean(arm: Arm, unit: Fraction) -> tuple[Fraction, Fraction]:
    """Return the mean of an arm, above the lower end of the range, and its variance; outcomes in steps of `unit`."""
    return arm.mean() * unit, arm.variance() / arm.count * unit**2


def weighted_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the means that balancing weights make of both arms."""
    require_covariates(session.study, "weighting")
    settings = question.settings
    if settings is not None and settings.prediction is not None:
        raise no_means("weighting", f"prediction={settings.prediction!r}")
    return _of_effect(session, question, weighted_effect(session.table, question))


def matched_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the means that matching makes of both arms."""
    require_covariates(session.study, "matching")
    return _of_effect(session, question, matched_effect(session.table, question))


def _of_effect(session: BaseSession, question: Question, effect: LinearEffect) -> MeasureResult:
    table = effect.table or session.table
    return measured(session, question, split_by_arm(table, effect))


# Proof: arm_pair.proof.md
def split_by_arm(table: Table, effect: LinearEffect) -> ArmPair:
    """Return what the coefficients of an effect make of either arm; those of the controls change their sign."""
    one, other = (
        split_arm(table, effect, inside, sign)
        for inside, sign in ((table.treated, 1.0), (~table.treated, -1.0))
    )
    pages = (*effect.pages, "statistics/linear/arm_pair.proof.md", PAGES[1])
    bounds = one.sensitivity, other.sensitivity
    return ArmPair(bounds, lambda: (one.values(table), other.values(table)), effect, pages)


def split_arm(table: Table, effect: LinearEffect, inside: NDArray[np.bool_], sign: float) -> SplitArm:
    """Return what the coefficients of an effect make of the rows `inside`, times a sign."""
    own = np.where(inside, sign * effect.coefficients, 0.0)
    form, variance = linear_form(own), _variance(effect, own, inside)
    width, row = table.study.outcome_bounds.width, variance.largest_row(table.rows)
    return SplitArm(form, variance, LinearEstimate(width, form.largest, form.squares, row, effect.factor))


def _variance(
    effect: LinearEffect, coefficients: NDArray[np.float64], inside: NDArray[np.bool_]
) -> VarianceForm:
    """Return the part of the effect's variance that is due to the rows of one arm."""
    form: VarianceForm
    if isinstance(effect.variance, ResidualVariance):
        # The rows of a group are all of one arm.
        form = effect.variance.among(inside)
    else:
        assert effect.pairs is not None
        first, second = effect.pairs
        kept = inside[first]
        form = paired_variance(coefficients, first[kept], second[kept])
    return WithBias(form, effect.factor)


def measured(session: BaseSession, question: Question, pair: ArmPair) -> MeasureResult:
    """Return the measure of both arms' means after they are released in parallel."""
    share = share_of(pair.bounds, question, pair.effect.expected_part)
    plan = in_parallel(effect_plan(question, share), {"effect": MEANS, "variance": VARIANCES})
    shares = treatment_shares(session.table) if pair.effect.table is not None else {}

    def compute(gate: Gate) -> Facts:
        found = release(gate, pair.bounds, pair.values(), share > 0)
        means, releases = released_means(pair.bounds, found, session.study.outcome_range), []
        for arm, bounds, (_, variance) in zip(ARMS, pair.bounds, found, strict=True):
            releases.append((f"mean of {arm}", f"sensitivity {float(bounds.estimate):.6g}"))
            if variance is not None:
                releases.append((f"its variance, {arm}", f"sensitivity {float(bounds.variance):.6g}"))
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
            diagnostics=pair.effect.diagnostics | shares,
        )

    return settled(
        MeasureResult, session, question, plan, compute, pages=pair.pages, remarks=pair.effect.remarks
    )


def release(gate: Gate, pair: tuple[Bounds, Bounds], values: Values, with_variance: bool) -> Pairs:
    """Return the released mean of either arm and, where it is paid for, its variance."""
    found: Pairs = []
    for place, ((mean, variance), bounds) in enumerate(zip(values, pair, strict=True)):
        noisy = gate.release(MEANS[place], mean, bounds.estimate)
        other = gate.release(VARIANCES[place], variance, bounds.variance) if with_variance else None
        found.append((noisy, other))
    return found


def released_means(
    pair: tuple[Bounds, Bounds], found: Pairs, outcome_range: tuple[Fraction, Fraction]
) -> ApartMeans:
    """Return what was released as means of both arms with their error."""
    low, high = map(float, outcome_range)
    known = []
    for bounds, (mean, variance) in zip(pair, found, strict=True):
        cap = float(bounds.variance_cap)
        own = (cap, None) if variance is None else (float(variance), variance.noise)
        known.append(Uncertainty(mean.noise, own[0], cap, own[1]))
    values = low + float(found[0][0]), low + float(found[1][0])
    sizes = float(1 / pair[0].squares), float(1 / pair[1].squares)
    return ApartMeans(values, (known[0], known[1]), (low, high), sizes)
