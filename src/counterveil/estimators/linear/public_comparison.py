"""A comparison of both arms by public weights, of any numbers of the rows: changes, or one outcome of many.

    effect = sum_i c_i y_i,    c from covariates and treatments alone,

in units of y. The question's method makes the coefficients once (differences in means, weights for balance,
or matching); whatever numbers the rows have then take the same. Why it is private: one row moves the effect
by the width of the range of y times max |c_i| at most, to which the noise is scaled; proof:
`rows/linear/linear_estimate.proof.md`.

In: public rows and a question; private numbers y are read when `PeriodForm.release` asks the gate, which adds
noise and lets each planned release through once. Out: what is summed, its bounds, and the share of the
privacy budget for its variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from counterveil.estimators.linear import difference_in_means
from counterveil.estimators.linear.budget_split import chosen_share
from counterveil.estimators.linear.linear_estimator import LinearEffect
from counterveil.estimators.linear.matching import matched_effect
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.numerics.balance import effective_size
from counterveil.results.question import Question
from counterveil.rows.linear.moved_rows import without_covariates
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.variance_forms import VarianceForm
from counterveil.rows.linear.weighted_outcomes import WeightedOutcomes
from counterveil.rows.public import PublicRows
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True, eq=False)
class PeriodForm:
    """A linear estimator, what it sums, and the share of the budget for its variance.

    Attributes
    ----------
    outcomes : WeightedOutcomes
        What is summed; the width of its bounds is that of one change where outcomes are changes.
    sensitivity : LinearEstimate
        Its bounds.
    share : Fraction
        Share of the budget for the variance.
    effect : LinearEffect
        The estimator.
    """

    outcomes: WeightedOutcomes
    sensitivity: LinearEstimate
    share: Fraction
    effect: LinearEffect

    @property
    def rows(self) -> PublicRows:
        """The rows that are compared, in the order of the coefficients."""
        return self.outcomes.rows

    @property
    def variance_form(self) -> VarianceForm:
        """How the variance is estimated."""
        return self.outcomes.variance_form

    @property
    def sizes(self) -> tuple[int, int]:
        """How many of those who are compared are treated, and how many are not."""
        treated = int(self.rows.treated.sum())
        return treated, self.rows.rows - treated

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """The same of people who count equally and leave as much variance."""
        return effective_size(self.rows.treated, np.abs(self.effect.coefficients))

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released comparison of the rows' outcomes and, where it is paid for, its variance."""
        return self.outcomes.release(gate, with_variance=self.share > 0, names=names)


def public_effect(rows: PublicRows, question: Question) -> LinearEffect:
    """Return the estimator of the question's method."""
    by_weights = {"weighting": weighted_effect, "matching": matched_effect}
    return by_weights.get(question.method, difference_in_means.weighted_sum)(rows, question)


def comparison(rows: PublicRows, question: Question) -> PeriodForm:
    """Return the comparison by the weights that the question's method finds from public columns."""
    effect = public_effect(rows, question)
    # Without covariates, which have been read: there may be many comparisons.
    compared = without_covariates(effect.rows or rows)
    outcomes = WeightedOutcomes.of(compared, effect.coefficients, effect.variance_form())
    bounds = outcomes.bounds
    share = effect.share
    if share is None:
        share = chosen_share(bounds, question, effect.expected_part)
    return PeriodForm(outcomes, bounds, share, replace(effect, rows=compared))
