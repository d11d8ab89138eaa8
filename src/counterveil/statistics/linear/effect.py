"""Releases sum c_i Y_i for coefficients that are functions of public covariates and treatments alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Categories, Table
from counterveil.data.features import Features, column_names
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.numerics.arms import Balance, balances, effective_size, overlap_counts
from counterveil.numerics.arrays import Floats
from counterveil.numerics.columns import column_balances
from counterveil.numerics.linear_form import LinearForm, linear_form, paired_variance
from counterveil.numerics.partial_shares import partial_shares
from counterveil.privacy import exact
from counterveil.privacy.caveats import Fact
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Released
from counterveil.statistics.linear.budget import NAMES, TYPICAL_SD, effect_plan, variance_share
from counterveil.statistics.linear.place import PLACE_PAGE, find_interval, mechanisms, place_part, searched
from counterveil.statistics.linear.sensitivity import LinearEstimate

PAGE = "statistics/linear/linear_estimate.proof.md"
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1
# How much longer (squared) than the shortest an interval may be expected to be, for the estimate's sake.
SLACK = 1.01


class VarianceForm(Protocol):
    """An exact estimate of the variance of a linear form, and how far one outcome can move it."""

    def largest_row(self, rows: int) -> Fraction:
        """Return twice the largest move, in units of the range squared."""
        ...

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the estimate for outcomes in steps, in units of the range squared."""
        ...


@dataclass(frozen=True, slots=True)
class WithBias:
    """A variance with an allowance for bias: `factor` times the variance of another form.

    The part above one is the square of the bias that is allowed for. Bound and value grow by the same factor.
    """

    form: VarianceForm
    factor: Fraction

    def largest_row(self, rows: int) -> Fraction:
        """Return twice the largest move, in units of the range squared."""
        return self.factor * self.form.largest_row(rows)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the estimate for outcomes in steps, in units of the range squared."""
        return self.factor * self.form.value(outcome, steps_bits)


@dataclass(frozen=True, slots=True)
class LinearEffect:
    """A public linear estimator: its coefficients, the pairs for its variance, and what to say about it.

    `pages` prove the sensitivities, also that of a `variance` of another form than by pairs. `table` stands
    in for the session's where outcomes were moved row by row, by a public rule. `share` of the budget goes
    to the variance; None chooses, supposing that `expected_part` of the outcomes' variance is left in it: the
    least whose interval is expected to exceed the shortest by no more than the factor `SLACK`, squared lengths.
    `bias` is what the interval allows for bias, in standard errors from sampling; `assumes` what it rests on beyond.
    """

    method: str
    coefficients: NDArray[np.float64]
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    variance: VarianceForm | None = None
    pages: tuple[str, ...] = (PAGE,)
    table: Table | None = None
    remarks: tuple[str, ...] = ()
    share: Fraction | None = None
    expected_part: float = 1.0
    bias: float = 0.0
    assumes: Fact | None = None

    @property
    def factor(self) -> Fraction:
        """Variance and squared bias together, beside the variance alone."""
        return 1 + exact(self.bias, "bias") ** 2

    def variance_form(self) -> VarianceForm:
        """Return the form that estimates the variance, with what is allowed for bias."""
        if self.variance is not None:
            form = self.variance
        else:
            assert self.pairs is not None  # an estimator gives one or the other
            form = paired_variance(self.coefficients, *self.pairs)
        return WithBias(form, self.factor) if self.bias else form

    def with_bias(self, sampling_sd: float) -> dict[str, float]:
        """Return what to say of the bias that is allowed for, which the standard error from sampling holds."""
        return {"bias_allowance": sampling_sd * sqrt(1 - 1 / self.factor)} if self.bias else {}


def sensitivity_of(table: Table, form: LinearForm, variance: VarianceForm) -> LinearEstimate:
    """Return the sensitivities of the form and of its variance."""
    lo, hi = table.study.outcome_range
    factor = variance.factor if isinstance(variance, WithBias) else Fraction(1)
    return LinearEstimate(hi - lo, form.largest, form.squares, variance.largest_row(table.rows), factor)


def chosen_share(sensitivity: LinearEstimate, question: Question, part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variance: an interval that is short, or nearly so.

    `part` of the outcomes' variance is expected to be left in the one released.
    """
    typical = Fraction(part) * TYPICAL_SD**2 * sensitivity.width**2 * sensitivity.squares * sensitivity.factor
    return variance_share(sensitivity, question, typical, SLACK)


def linear_effect(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private."""
    table = effect.table or session.table
    form = linear_form(effect.coefficients)
    variance_form = effect.variance_form()
    sensitivity = sensitivity_of(table, form, variance_form)
    sizes = effective_size(table.treated, np.abs(effect.coefficients))
    share, part = _shares(table, sensitivity, effect, question, min(sizes))
    plan = effect_plan(question, share, part)
    shares = treatment_shares(session.table)

    def compute(gate: Gate) -> Facts:
        place = find_interval(gate, table, plan, sensitivity, min(sizes))
        bounds = replace(sensitivity, width=sensitivity.width * place.part)
        released, variance = release(
            gate, place.within(table), form, variance_form if share > 0 else None, bounds
        )
        cap = float(bounds.variance_cap)
        own = (cap, None) if variance is None else (float(variance), variance.noise)
        known = Uncertainty(released.noise, own[0], cap, own[1], place.hidden(table.study) ** 2)
        return Facts(
            estimate=float(released),
            uncertainty=with_rare_events(known, session.study.outcome_range, sizes),
            method=effect.method,
            releases=(*searched(plan), *_releases(bounds, variance is not None)),
            not_covered=effect.not_covered + place.said(table.study),
            details=effect.details
            | effect.with_bias(known.sampling_sd)
            | place.details(table.study)
            | {"mechanism": question.mechanism, "variance_budget_share": plan.parts.get(NAMES[1], 0.0)},
            diagnostics=effect.diagnostics | shares,
            assumes=effect.assumes,
            independent_variance=True,
        )

    pages, drawn = (*effect.pages, *([PLACE_PAGE] if part else [])), mechanisms(plan)
    # The terms are not those of the table, whose outcomes may be residuals of a prediction.
    return settled(
        Result, session, question, plan, compute, pages=pages, remarks=effect.remarks, mechanisms=drawn
    )


def _shares(
    table: Table, sensitivity: LinearEstimate, effect: LinearEffect, question: Question, smaller: float
) -> tuple[Fraction, Fraction]:
    """Return the variance's share of the budget that the place of outcomes leaves, and the part of that place."""
    if effect.share is not None:
        return effect.share, Fraction(0)
    share = chosen_share(sensitivity, question, effect.expected_part)
    squares = sensitivity.squares * sensitivity.factor
    return share, place_part(table.study, smaller, sensitivity, squares, share, question)


def _releases(bounds: LinearEstimate, with_variance: bool) -> tuple[tuple[str, str], ...]:
    effect = ("effect", f"sensitivity {float(bounds.estimate):.6g}")
    variance = ("its variance", f"sensitivity {float(bounds.variance):.6g}")
    return (effect, variance) if with_variance else (effect,)


def release(
    gate: Gate,
    table: Table,
    form: LinearForm,
    variance_form: VarianceForm | None,
    sensitivity: LinearEstimate,
    names: tuple[str, str] = NAMES,
) -> tuple[Released, Released | None]:
    """Return the released weighted sum and, where a form for it is given, its variance."""
    value = form.total(table.outcome) * table.outcome_unit
    effect = gate.release(names[0], value, sensitivity.estimate)
    if variance_form is None:
        return effect, None
    variance = variance_form.value(table.outcome, _STEP_BITS) * sensitivity.width**2
    return effect, gate.release(names[1], variance, sensitivity.variance)


# Free tables about covariates and treatments, for questions that protect outcomes alone.


_BINS = 20


def treatment_shares(table: Table) -> dict[str, Any]:
    """Return how much of the treatment each covariate explains beyond the others; nothing for a trial.

    Omitted confounders are compared with these.
    """
    domains = table.study.covariates
    if table.study.randomised is True or not domains:
        return {}
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    found = partial_shares([table.covariates[name] for name in domains], labels, table.treated)
    if found is None:
        return {}
    rows = [
        {"covariate": name, "partial_r2": float(share)} for name, share in zip(domains, found, strict=True)
    ]
    return {"treatment_r2": rows}


def design_diagnostics(
    features: Features, treated: NDArray[np.bool_], score: Floats, coefficients: Floats
) -> dict[str, Any]:
    """Return JSON-ready tables: balance before and after, overlap of scores, effective sizes of the arms.

    `coefficients` are those of a linear estimate; within each arm their sizes are the weights "after". A
    difference or ratio that does not exist (a column constant in one arm) is None.
    """
    weights = np.abs(coefficients)
    return _tables(features.names, balances(features.values, treated, weights), treated, score, weights)


def covariate_diagnostics(table: Table, raw: Floats, score: Floats, coefficients: Floats) -> dict[str, Any]:
    """Return the same of a table's covariates as they are, `raw` (d, n) holding a line for each."""
    domains, weights = table.study.covariates, np.abs(coefficients)
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    found = column_balances(raw, labels, table.treated, weights)
    return _tables(column_names(table.study), found, table.treated, score, weights)


def _tables(
    names: Sequence[str],
    found: tuple[Balance, Balance],
    treated: NDArray[np.bool_],
    score: Floats,
    weights: Floats,
) -> dict[str, Any]:
    return {
        "balance": _balance(names, *found),
        "overlap": _overlap(treated, score),
        "effective_size": _sizes(treated, weights),
    }


def _balance(names: Sequence[str], before: Balance, after: Balance) -> list[dict[str, Any]]:
    keys = (
        "covariate",
        "difference_before",
        "difference_after",
        "variance_ratio_before",
        "variance_ratio_after",
    )
    columns = (before.difference, after.difference, before.variance_ratio, after.variance_ratio)
    return [dict(zip(keys, row, strict=True)) for row in zip(names, *map(_finite, columns), strict=True)]


def _overlap(treated: NDArray[np.bool_], score: Floats) -> dict[str, list[float]]:
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    in_treated, in_control = overlap_counts(treated, score, edges)
    return {
        "edges": [round(float(edge), 4) for edge in edges],
        "treated": [int(count) for count in in_treated],
        "control": [int(count) for count in in_control],
    }


def _sizes(treated: NDArray[np.bool_], weights: Floats) -> list[dict[str, Any]]:
    sizes, rows = effective_size(treated, weights), int(np.count_nonzero(treated))
    return [
        {"arm": "treated", "rows": rows, "effective": sizes[0]},
        {"arm": "control", "rows": len(treated) - rows, "effective": sizes[1]},
    ]


def _finite(values: Floats) -> list[float | None]:
    found: list[float | None] = values.tolist()
    for place in np.flatnonzero(~np.isfinite(values)):
        found[place] = None
    return found
