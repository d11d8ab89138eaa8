"""Releases sum c_i Y_i for coefficients that are functions of public covariates and treatments alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Custody, Gate, Released
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.ate.variance_share import TYPICAL_SD, effect_plan, variance_share
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result
from counterveil.inference import Uncertainty
from counterveil.kernels.linear_form import LinearForm, PairedVariance, linear_form, paired_variance
from counterveil.sensitivity import LinearEstimate

PAGE = "sensitivity/linear_estimate.proof.md"
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class LinearEffect:
    """A public linear estimator: its coefficients, the pairs for its variance, and what to say about it."""

    method: str
    coefficients: NDArray[np.float64]
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)


def sensitivity_of(table: Table, form: LinearForm, paired: PairedVariance) -> LinearEstimate:
    """Return the sensitivities of the form and of its paired variance."""
    lo, hi = table.study.outcome_range
    return LinearEstimate(hi - lo, form.largest, form.squares, paired.largest_row(table.rows))


def linear_effect(custody: Custody, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private."""
    table = custody.table
    form = linear_form(effect.coefficients)
    paired = paired_variance(effect.coefficients, *effect.pairs)
    sensitivity = sensitivity_of(table, form, paired)
    typical = TYPICAL_SD**2 * sensitivity.width**2 * sensitivity.squares
    share = variance_share(sensitivity, question, typical)

    def compute(gate: Gate) -> dict[str, object]:
        released, variance = release(gate, table, form, paired if share > 0 else None, sensitivity)
        cap = float(sensitivity.variance_cap)
        known = (cap, None) if variance is None else (float(variance), variance.noise)
        releases = [("effect", f"sensitivity {float(sensitivity.estimate):.6g}")]
        if variance is not None:
            releases.append(("its variance", f"sensitivity {float(sensitivity.variance):.6g}"))
        return Result(
            estimate=float(released),
            uncertainty=Uncertainty(released.noise, known[0], cap, known[1]),
            guarantee=question.guarantee(custody, PAGE),
            spent=question.budget,
            estimand=question.estimand,
            method=effect.method,
            treatment=table.study.treatment,
            outcome=table.study.outcome,
            level=question.level,
            releases=tuple(releases),
            not_covered=effect.not_covered,
            details=effect.details | {"law": question.law, "share of budget for the variance": float(share)},
            diagnostics=effect.diagnostics,
        ).to_dict()

    return Result.from_dict(custody.run(question.request(effect_plan(question, share), table.study), compute))


def release(
    gate: Gate, table: Table, form: LinearForm, paired: PairedVariance | None, sensitivity: LinearEstimate
) -> tuple[Released, Released | None]:
    """Return the released weighted sum and, where pairs are given, its variance."""
    value = form.total(table.outcome) * table.outcome_unit
    effect = gate.release("effect", value, sensitivity.estimate)
    if paired is None:
        return effect, None
    variance = paired.value(table.outcome, _STEP_BITS) * sensitivity.width**2
    return effect, gate.release("variance", variance, sensitivity.variance)
