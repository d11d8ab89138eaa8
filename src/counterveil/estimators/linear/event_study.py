"""Effects by period (event study) where only outcomes are private: both arms are compared in every period.

    effect_p = b_p - b_r,    b_p = sum_i c_i y_ip,

in units of the outcome, with measurements y_ip of person i in period p, public weights c, and r the reference
period. For a balanced panel this is two-way fixed effects with leads and lags of a common adoption date,
which are differences of means of each person's own changes [1]_ [2]_.

In: public weights and treatments; private measurements in a range of width W, read through the gate alone (it
adds noise and lets each release of the plan through once). Out: an effect with an interval for every period
but r.

Why it is private: all P measurements of one person may change at once, and each b_p moves by at most W max
|c_i|. Their parts of the budget add up to it. Proof: `rows/linear/event_study.proof.md`. Measurements are
released, not changes, since with Gaussian noise, in units of what one release of sensitivity one would have,
a difference of two has W sqrt(2 P), where changes, which move by 2 W, would have 2 W sqrt(P - 1).

References
----------
.. [1] Borusyak, K., Jaravel, X. and Spiess, J. (2024). Revisiting event-study designs: robust and efficient
   estimation. Review of Economic Studies 91, 3253-3285.
.. [2] Roth, J., Sant'Anna, P. H. C., Bilinski, A. and Poe, J. (2023). What's trending in difference-in-differences?
   A synthesis of the recent econometrics literature. Journal of Econometrics 235, 2218-2244.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from counterveil.data.panels import study_of_changes
from counterveil.estimators.linear import difference_in_means
from counterveil.estimators.linear.linear_estimator import known_error
from counterveil.estimators.linear.public_comparison import PeriodForm, comparison
from counterveil.estimators.method import Prepared
from counterveil.privacy import Budget
from counterveil.privacy.provenance import Estimator, Quantity, QuantityOf, ReleaseRow, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.arms import EventStudyResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.linear.event_study import PeriodComparisons, ReleasedPeriods, value_name, variance_name
from counterveil.rows.linear.moved_rows import last_changes, people_in_every_period
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Plan

PAGE = "rows/linear/event_study.proof.md"
# Denominators of shares of the budget go up to this.
_LARGEST_DENOMINATOR = 10**6


@dataclass(frozen=True, slots=True)
class MeanChanges:
    """The difference of both arms' means: its bounds, for the width of one change, and the share for its variance."""

    sensitivity: MeanContrast
    share: Fraction

    @property
    def sizes(self) -> tuple[int, int]:
        """How many of those who are compared are treated, and how many are not."""
        return self.sensitivity.sizes


def outcome_event_study(
    public: PublicData, question: Question, base_period: int
) -> Prepared[EventStudyResult]:
    """Return the effects of all periods relative to the one at place `base_period`, prepared for their releases."""
    study = public.study
    before = study.before
    assert before is not None
    # Each of P measurements has about so much of the budget.
    count = study.measured
    share = Fraction(1, count)
    if question.mechanism == "gaussian":
        share = Fraction(count**-0.5).limit_denominator(_LARGEST_DENOMINATOR)
    for_one = replace(question, budget=Budget(question.budget.epsilon * share, question.budget.delta))
    changes: PeriodForm | MeanChanges
    if question.method == "difference_in_means":
        changes = mean_changes(public, for_one)
    else:
        changes = comparison(last_changes(people_in_every_period(public.columns), base_period), for_one)
    effect = changes.effect if isinstance(changes, PeriodForm) else None
    summed = changes.outcomes if isinstance(changes, PeriodForm) else changes.sensitivity
    periods = PeriodComparisons(summed, before, base_period, with_variances=changes.share > 0)
    labels = before.labels(study.outcome)

    def estimate(gate: Gate) -> Facts:
        released = periods.release(gate)
        cap = changes.sensitivity.variance_cap
        width = float(changes.sensitivity.width)
        reference = released.values.get(base_period)
        effects = []
        for period, label in enumerate(labels):
            if period == base_period:
                continue
            value = released.values[period]
            variance = released.variances.get(period)
            change = float(value.value - (0 if reference is None else reference.value))
            linear = Linear(change, known_error(value, variance, cap), (-width, width))
            effects.append(Effect(label, linear, question.level, len(labels) - 1))
        return Facts(
            periods=tuple(effects),
            reference=labels[base_period],
            place=base_period,
            outcome=study.outcome,
            earlier=before.earlier,
            reference_noise=None if reference is None else reference.noise,
            method=Estimator.DIFFERENCE_IN_MEANS if effect is None else effect.method,
            releases=_releases(labels, released),
            not_covered=causal_caveats(study, question.estimand) if effect is None else effect.not_covered,
            details=_details(public.rows, question, changes),
            diagnostics={} if effect is None else effect.diagnostics,
        )

    return Prepared(
        question=question,
        plan=periods_plan(
            question, count, base_period=base_period, share=changes.share, by_change=before.change is not None
        ),
        estimate=estimate,
        answer=EventStudyResult,
        pages=(PAGE, *((difference_in_means.PAGE,) if effect is None else effect.pages)),
        reference=labels[base_period],
        description={"question": "event_study", "reference": base_period},
    )


def mean_changes(public: PublicData, question: Question) -> MeanChanges:
    """Return the difference of means of people with a measurement in every period."""
    people, treated = public.complete_sizes
    bounds = MeanContrast(study_of_changes(public.study).outcome_bounds.width, treated, people - treated)
    return MeanChanges(bounds, difference_in_means.variance_share_of(bounds, question))


def periods_plan(question: Question, count: int, base_period: int, share: Fraction, by_change: bool) -> Plan:
    """Return the split over the measurements of all periods, or the changes, and the variances of the changes."""
    others = [period for period in range(count) if period != base_period]
    values = others if by_change else range(count)
    shares = {value_name(period): (1 - share) / len(values) for period in values}
    shares |= {variance_name(period): share / len(others) for period in others}
    return Plan.split(question.budget, shares, question.mechanism)


def _releases(labels: Sequence[object], released: ReleasedPeriods) -> tuple[ReleaseRow, ...]:
    releases: list[ReleaseRow] = []
    for period, value in released.values.items():
        comparison = QuantityOf(Quantity.COMPARISON_AT, labels[period])
        releases.append((comparison, Sensitivity(float(value.noise.sensitivity))))
    for period, variance in released.variances.items():
        variance_of_change = QuantityOf(Quantity.VARIANCE_OF_CHANGE_AT, labels[period])
        releases.append((variance_of_change, Sensitivity(float(variance.noise.sensitivity))))
    return tuple(releases)


def _details(everyone: int, question: Question, changes: PeriodForm | MeanChanges) -> dict[str, float | str]:
    treated, control = changes.sizes
    rows = treated + control
    details: dict[str, float | str] = {"rows": rows, "treated": treated, "control": control}
    details |= changes.effect.details if isinstance(changes, PeriodForm) else {}
    if rows < everyone:
        details["rows_with_gaps"] = everyone - rows
    return details | {"mechanism": question.mechanism, "variance_budget_share": float(changes.share)}
