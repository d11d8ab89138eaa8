"""Releases sum c_i Y_i for coefficients that are functions of public covariates and treatments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt
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
from counterveil.privacy import Budget, exact
from counterveil.privacy.caveats import Fact
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Released, Session
from counterveil.statistics.linear.sensitivity import LinearEstimate

# How much of a budget to spend on the variance, decided from public numbers.


# Shares of the budget that may go to the variance; 0 means that the worst case is used instead.
_SHARES = [Fraction(k, 40) for k in range(0, 17)]
_PARTS = [float(share) for share in _SHARES]
# A public guess of an outcome's standard deviation, as a part of its range; it only steers choices.
TYPICAL_SD = Fraction(1, 6)
# The two releases of an effect and its variance.
NAMES = ("effect", "variance")


class Sensitivities(Protocol):
    """What one outcome can move: the estimate and its variance, and the largest possible variance."""

    @property
    def estimate(self) -> Fraction:
        """Sensitivity of the estimate."""
        ...

    @property
    def variance(self) -> Fraction:
        """Sensitivity of the variance."""
        ...

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible variance."""
        ...


def variance_share(
    sensitivity: Sensitivities, question: Question, typical: Fraction, slack: float = 1.0
) -> Fraction:
    """Return the least share of the budget for the variance that makes the expected interval short.

    Reads public numbers only. Short means a small sum of the typical sampling variance, the inflation
    that its noise will call for (about one standard deviation of it) and the variance of the estimate's
    own noise. Around its minimum the sum is flat: with a `slack` above 1 the least share is taken whose sum
    is within that factor of the smallest, which leaves the estimate more of the budget.
    """
    cap, least = float(sensitivity.variance_cap), float(typical)
    parts = (float(sensitivity.estimate) ** 2, float(sensitivity.variance))
    return _least_share(cap, least, *parts, question.budget, question.mechanism, slack)


@lru_cache(maxsize=1024)
def _least_share(
    cap: float,
    least: float,
    per_noise: float,
    per_variance_noise: float,
    budget: Budget,
    mechanism: str,
    slack: float,
) -> Fraction:
    """Return that share, from the numbers that it depends on."""

    def expected(place: int) -> float:
        own, other = _unit_variances(budget, mechanism, place)
        return per_noise * own + least + per_variance_noise * sqrt(other)

    last = len(_SHARES) - 1
    # What the sum would be if noise fell as one over what is paid for it, as it nearly does: where to look first.
    whole = _unit_variances(budget, mechanism, 0)[0]
    alike = [
        per_noise * whole / (1 - part) ** 2 + per_variance_noise * sqrt(whole) / part for part in _PARTS[1:]
    ]
    # The sum is convex in the share, so that its minimum is where it first does not fall.
    guess = alike.index(min(alike)) + 1
    best = _first(lambda place: expected(place) <= expected(place + 1), 1, last, guess)
    without = per_noise * whole + cap
    enough = slack * min(expected(best), without)
    # A share whose variance would be taken at its cap costs more than none, so the cap matters at none only.
    if without <= enough:
        return _SHARES[0]
    allowed = enough + alike[best - 1] - expected(best)
    guess = sum(value > allowed for value in alike[: best - 1]) + 1
    return _SHARES[_first(lambda place: expected(place) <= enough, 1, best, guess)]


def _first(holds: Callable[[int], bool], low: int, high: int, guess: int) -> int:
    """Return the first place from `low` on where a condition holds that then stays true, `high` at the latest."""
    place = min(max(guess, low), high)
    if place < high and not holds(place):
        while place < high and not holds(place):
            place += 1
        return place
    while place > low and holds(place - 1):
        place -= 1
    return place


@lru_cache(maxsize=4096)
def _unit_variances(budget: Budget, mechanism: str, place: int) -> tuple[float, float]:
    """Return the variances of the two releases' noise at sensitivity one, for one of the shares."""
    plan = _two_releases(budget, mechanism, _SHARES[place])
    own = plan.noise("effect", Fraction(1)).variance
    return own, plan.noise("variance", Fraction(1)).variance if place else inf


def effect_plan(question: Question, share: Fraction) -> Plan:
    """Return the plan of two releases: the effect, and its variance for `share` of the budget."""
    return _two_releases(question.budget, question.mechanism, share)


@lru_cache(maxsize=1024)
def _two_releases(budget: Budget, mechanism: str, share: Fraction) -> Plan:
    return Plan.split(budget, dict(zip(NAMES, (1 - share, share), strict=True)), mechanism)


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
    `bias` is what the interval allows for bias, in standard errors from sampling.
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


def linear_effect(session: Session, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private."""
    table = effect.table or session.table
    form = linear_form(effect.coefficients)
    variance_form = effect.variance_form()
    sensitivity = sensitivity_of(table, form, variance_form)
    share = effect.share
    if share is None:
        share = chosen_share(sensitivity, question, effect.expected_part)

    shares = treatment_shares(session.table)
    sizes = effective_size(session.table.treated, np.abs(effect.coefficients))

    def compute(gate: Gate) -> dict[str, object]:
        released, variance = release(gate, table, form, variance_form if share > 0 else None, sensitivity)
        cap = float(sensitivity.variance_cap)
        own = (cap, None) if variance is None else (float(variance), variance.noise)
        known = Uncertainty(released.noise, own[0], cap, own[1])
        releases = [("effect", f"sensitivity {float(sensitivity.estimate):.6g}")]
        if variance is not None:
            releases.append(("its variance", f"sensitivity {float(sensitivity.variance):.6g}"))
        return Result(
            estimate=float(released),
            uncertainty=with_rare_events(known, session.study.outcome_range, sizes),
            guarantee=question.guarantee(session, effect.pages, effect.remarks),
            method=effect.method,
            # Not those of the table, whose outcomes may be residuals of a prediction.
            **question.effect_terms(session.study),
            releases=tuple(releases),
            not_covered=effect.not_covered,
            details=effect.details
            | effect.with_bias(known.sampling_sd)
            | {"mechanism": question.mechanism, "variance_budget_share": float(share)},
            diagnostics=effect.diagnostics | shares,
            variance_apart=True,
        ).stored()

    return Result.from_dict(
        session.run(question.request(effect_plan(question, share), session.study), compute)
    )


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
