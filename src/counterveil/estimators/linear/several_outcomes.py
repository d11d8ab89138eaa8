"""Effects on several private outcomes by one public comparison, whose numbers are released together.

    effect on outcome j = sum_i c_i y_ij,

in units of outcome j, with the same public coefficients c for all j. For ratios, or with several arms, the
means of every arm are released in place of differences; one row's outcomes move the numbers of one arm alone,
so that arms are released in parallel, at the price of one.

In: public columns and coefficients; private outcomes y_ij in ranges of width B_j, read through the gate alone
(it adds noise and lets each release of the plan through once; the plan names them and the part of the budget
that each pays). Out: for every outcome an effect with an interval, and its variance where the budget pays for
it.

Why it is private: all outcomes of a row may change at once, each within its own range, which moves effect j
by at most B_j max |c_i|. Noise is scaled to these moves together. Proofs:
`rows/linear/several_outcomes.proof.md`, and `session/parallel.proof.md` for arms. Outcomes may be adjusted
first for their own earlier values, by slopes made of released moments (`rows/earlier_values.proof.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from counterveil.data.domains import Label
from counterveil.estimators.earlier_values import PAGE as EARLIER_PAGE
from counterveil.estimators.earlier_values import PART as EARLIER_PART
from counterveil.estimators.earlier_values import slope_details, with_slopes
from counterveil.estimators.linear import difference_in_means
from counterveil.estimators.linear.arm_means import PAGES as ARM_PAGES
from counterveil.estimators.linear.arm_means import MeanBounds, share_of
from counterveil.estimators.linear.arms_design import arms_design
from counterveil.estimators.linear.both_means import ARM_PAIR_PAGE, PARALLEL_PAGE, split_arm
from counterveil.estimators.linear.linear_estimator import LinearEffect, known_error
from counterveil.estimators.linear.public_comparison import PeriodForm, comparison, public_effect
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.privacy import Budget
from counterveil.privacy.caveats import Fact
from counterveil.privacy.provenance import (
    AnyEstimator,
    Bounded,
    Estimator,
    LessEarlierNumbers,
    OutcomeNumbers,
    Quantity,
    RangePart,
    ReleaseRow,
)
from counterveil.results.answering import Facts
from counterveil.results.arms import OutcomeEffect, OutcomesResult
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.earlier_values import NAME as EARLIER
from counterveil.rows.linear.arm_mean import WeightedArm
from counterveil.rows.linear.sensitivity import ArmMean, MeanContrast
from counterveil.rows.linear.several_outcomes import Group, SeveralComparisons
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Kind, Plan, Released
from counterveil.session.session import in_parallel

PAGE = "rows/linear/several_outcomes.proof.md"
# What both arms are called, the reference first.
_BOTH = ("control", "treated")
# Denominators of shares of the budget go up to this.
_LARGEST_DENOMINATOR = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class ComparedOutcomes:
    """What public columns decide: the groups of releases, the split, and what to say.

    Attributes
    ----------
    groups : tuple of Group
        The comparison of both arms, or the means of all arms.
    labels : tuple
        Labels of the arms whose means are released, the reference first; empty for a difference.
    share : Fraction
        Share of the budget for the variances.
    method : Estimator or LessEarlierNumbers
        Estimator of each outcome.
    pages : tuple of str
        Proof pages of the bounds.
    not_covered : tuple of Fact
        What intervals do not cover.
    details, diagnostics : dict
        Single figures and tables of the answer, all public.
    rows : PublicRows, optional
        The rows in the order of their weights; None for plain means.
    """

    groups: tuple[Group, ...]
    labels: tuple[Label, ...]
    share: Fraction
    method: AnyEstimator
    pages: tuple[str, ...]
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str]
    diagnostics: dict[str, Any] = field(default_factory=dict)
    rows: PublicRows | None = None

    @property
    def squares(self) -> float:
        """The sum of squared coefficients of a comparison, about: four times the largest variance."""
        return 4 * float(sum((group.cap for group in self.groups[:2]), Fraction(0)))


def outcome_effects(public: PublicData, question: Question, outcomes: Outcomes) -> Prepared[OutcomesResult]:
    """Return the effects on all outcomes, prepared for their releases."""
    compared = design(public, question, outcomes)
    adjusts = bool(outcomes.measured_before)
    plan = effects_plan(question, compared, adjusts)

    def estimate(gate: Gate) -> Facts:
        chosen = outcomes
        if adjusts:
            chosen = with_slopes(gate, outcomes, compared.squares, _unit_noise(plan, compared, outcomes))
        comparisons = SeveralComparisons(compared.groups, chosen, compared.rows)
        released = comparisons.release(gate, with_variances=compared.share > 0)
        return Facts(
            released=tuple(_effects(compared, chosen, released)),
            measure=question.measure,
            method=LessEarlierNumbers(compared.method) if adjusts else compared.method,
            releases=_releases(compared, chosen),
            not_covered=compared.not_covered,
            details=compared.details
            | slope_details(chosen)
            | {"mechanism": chosen.drawn(question.mechanism), "variance_budget_share": float(compared.share)},
            diagnostics=compared.diagnostics,
        )

    # Which noise is drawn depends on whether there are slopes, not on what they are.
    slopes = (0,) * len(outcomes.names) if adjusts else ()
    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=OutcomesResult,
        pages=(*compared.pages, *((EARLIER_PAGE,) if adjusts else ())),
        mechanisms=replace(outcomes, slopes=slopes).mechanisms(question.mechanism),
        description={"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]},
    )


def design(public: PublicData, question: Question, outcomes: Outcomes) -> ComparedOutcomes:
    """Return the comparison that the question's method makes of public columns, for the noise of so many outcomes."""
    factor = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(factor).limit_denominator(_LARGEST_DENOMINATOR)
    for_one = replace(question, budget=Budget(epsilon, question.budget.delta))
    if public.study.arms is not None:
        return _several_arms(public, for_one)
    if question.method == "difference_in_means":
        return _plain(public, for_one)
    if question.measure in OF_MEANS:
        return _both_means(public.columns, for_one)
    return _difference(public.columns, for_one)


def _difference(rows: PublicRows, question: Question) -> ComparedOutcomes:
    """Return the weighted difference of two arms."""
    form = comparison(rows, question)
    return ComparedOutcomes(
        groups=(weighted_group("the arms", form),),
        labels=(),
        share=form.share,
        method=form.effect.method,
        pages=(PAGE, *form.effect.pages),
        not_covered=form.effect.not_covered,
        details=_details(form.rows, form.effect),
        diagnostics=form.effect.diagnostics,
        rows=form.rows,
    )


def _plain(public: PublicData, question: Question) -> ComparedOutcomes:
    """Return the difference of two arms' plain means, or for ratios both means."""
    control, treated = public.arm_sizes
    width = public.study.outcome_bounds.width
    caveats = causal_caveats(public.study, question.estimand)
    details: dict[str, float | str] = {"rows": public.rows, "treated": treated, "control": control}
    if question.measure not in OF_MEANS:
        bounds = MeanContrast(width, treated, control)
        return ComparedOutcomes(
            groups=(plain_group("the arms", bounds, 1, 0),),
            labels=(),
            share=difference_in_means.variance_share_of(bounds, question),
            method=Estimator.DIFFERENCE_IN_MEANS,
            pages=(PAGE, difference_in_means.PAGE),
            not_covered=caveats,
            details=details,
        )
    means = [ArmMean(width, size) for size in (control, treated)]
    return ComparedOutcomes(
        groups=tuple(plain_group(name, means[code], code) for code, name in enumerate(_BOTH)),
        labels=_BOTH,
        share=share_of(means, question),
        method=Estimator.MEANS_OF_BOTH_ARMS,
        pages=(PAGE, *ARM_PAGES),
        not_covered=caveats,
        details=details,
    )


def _both_means(rows: PublicRows, question: Question) -> ComparedOutcomes:
    """Return the weighted means of two arms, for ratios."""
    effect = public_effect(rows, question)
    compared = effect.rows or rows
    sides = ((~compared.treated, -1.0), (compared.treated, 1.0))
    arms = [split_arm(compared, effect, *side) for side in sides]
    return ComparedOutcomes(
        groups=tuple(weighted_group(name, arm) for name, arm in zip(_BOTH, arms, strict=True)),
        labels=_BOTH,
        share=share_of([arm.sensitivity for arm in arms], question, effect.expected_part),
        method=effect.method,
        pages=(PAGE, *effect.pages, ARM_PAIR_PAGE, PARALLEL_PAGE),
        not_covered=effect.not_covered,
        details=_details(compared, effect),
        diagnostics=effect.diagnostics,
        rows=compared,
    )


def _several_arms(public: PublicData, question: Question) -> ComparedOutcomes:
    """Return the means of all arms, the reference first."""
    arms = arms_design(public, question)
    labels = public.study.treatment_labels
    groups = tuple(
        weighted_group(repr(label), arm)
        if isinstance(arm, WeightedArm)
        else plain_group(repr(label), arm.sensitivity, arm.place)
        for label, arm in zip(labels, arms.means.arms, strict=True)
    )
    return ComparedOutcomes(
        groups=groups,
        labels=labels,
        share=share_of(arms.means.bounds, question),
        method=arms.method,
        pages=(PAGE, *ARM_PAGES),
        not_covered=arms.not_covered,
        details={"rows": public.rows} | arms.details,
        diagnostics=arms.diagnostics,
        rows=arms.means.rows,
    )


def weighted_group(name: str, statistic: PeriodForm | WeightedArm) -> Group:
    """Return the group of a weighted statistic."""
    group = plain_group(name, statistic.sensitivity)
    if isinstance(statistic, PeriodForm):
        return replace(group, statistic=statistic.outcomes, sizes=statistic.effective_sizes)
    return replace(group, statistic=statistic)


def plain_group(name: str, bounds: MeanBounds | MeanContrast, *arms: int) -> Group:
    """Return the group of plain means of the arms at these places."""
    width = bounds.width
    if isinstance(bounds, MeanContrast):
        sizes: tuple[float, ...] = (bounds.treated, bounds.control)
    else:
        sizes = (float(1 / bounds.squares),)
    return Group(
        name,
        largest=bounds.estimate / width,
        variance=bounds.variance / width**2,
        cap=bounds.variance_cap / width**2,
        arms=arms,
        sizes=sizes,
    )


def _details(rows: PublicRows, effect: LinearEffect) -> dict[str, float | str]:
    """Return the sizes of both arms and the single figures of the estimator."""
    treated = int(rows.treated.sum())
    sizes: dict[str, float | str] = {"rows": rows.rows, "treated": treated, "control": rows.rows - treated}
    return sizes | effect.details


def effects_plan(question: Question, compared: ComparedOutcomes, adjusts: bool = False) -> Plan:
    """Return the split over values and variances of all outcomes; groups are released in parallel.

    Where outcomes are adjusted for what was before, the moments that decide about it come first.
    """
    first = EARLIER_PART if adjusts else Fraction(0)
    shares = {"values": (1 - first) * (1 - compared.share), "variances": (1 - first) * compared.share}
    members = {what: [f"{what} of {group.name}" for group in compared.groups] for what in shares}
    if adjusts:
        shares = {EARLIER: first} | shares
        members = {EARLIER: [EARLIER]} | members
    plan = Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.SEVERAL))
    return in_parallel(plan, members)


def _unit_noise(plan: Plan, compared: ComparedOutcomes, outcomes: Outcomes) -> list[float]:
    """Return the variance of the noise of a comparison of each outcome, in units of its squared range."""
    total = [0.0] * len(outcomes.names)
    # A comparison of several arms is one of two.
    for group in compared.groups[:2]:
        bound = [group.largest] * len(outcomes.names)
        noises = plan.several_noise(f"values of {group.name}", bound, outcomes.weights)
        total = [sum(both) for both in zip(total, (noise.variance for noise in noises), strict=True)]
    return total


def _effects(
    compared: ComparedOutcomes, outcomes: Outcomes, released: list[list[tuple[Released, Released | None]]]
) -> Iterator[OutcomeEffect]:
    """Yield what is known of every outcome: the difference, or the means of an arm and of the reference."""
    for index, (name, (low, high)) in enumerate(zip(outcomes.names, outcomes.ranges, strict=True)):
        width = outcomes.widths[index]
        uncertainties = [
            known_error(*pairs[index], group.cap * width**2)
            for group, pairs in zip(compared.groups, released, strict=True)
        ]
        values = [float(pairs[index][0]) for pairs in released]
        if not compared.labels:
            limits = float(low - high), float(high - low)
            with_events = with_rare_events(uncertainties[0], (low, high), compared.groups[0].sizes)
            yield OutcomeEffect(name, None, Linear(values[0], with_events, limits))
            continue
        for arm in range(1, len(values)):
            means = IndependentArmMeans(
                (float(low) + values[arm], float(low) + values[0]),
                (uncertainties[arm], uncertainties[0]),
                (float(low), float(high)),
                (compared.groups[arm].sizes[0], compared.groups[0].sizes[0]),
            )
            label = compared.labels[arm] if len(values) > 2 else None
            yield OutcomeEffect(name, label, means)


def _releases(compared: ComparedOutcomes, outcomes: Outcomes) -> tuple[ReleaseRow, ...]:
    releases: list[ReleaseRow] = []
    if outcomes.slopes:
        releases.append((Quantity.EARLIER_MOMENTS, Bounded.ONE_ROW_OVER_ROWS))
    count = len(outcomes.names)
    for group in compared.groups:
        releases.append((OutcomeNumbers(count, group.name), RangePart(float(group.largest))))
        if compared.share:
            variances = OutcomeNumbers(count, group.name, variances=True)
            releases.append((variances, RangePart(float(group.variance), squared=True)))
    return tuple(releases)
