"""The fields of a released model of effects (`CateModel`), from weights fitted to released moments.

In come weights, their error and its part that is noise, in half ranges of the outcome and of shortened
features; out come those of the basis functions in units of the outcome: times `scale` and half the range.
Nothing private is read.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.data import Study
from counterveil.estimators.moments.learner_design import LearnerDesign
from counterveil.estimators.moments.learner_fit import LearnerFit, Passes, System, effect_weights, unshrunk
from counterveil.numerics.bases import Basis
from counterveil.numerics.higher_orders import higher_functions, higher_variances
from counterveil.privacy.caveats import Caveat, Fact, NotExpressed
from counterveil.privacy.provenance import Estimator, Noise
from counterveil.results.answering import Facts
from counterveil.results.functions import CateQuestion, fall_back_to_average
from counterveil.session import Plan

PAGES = (
    "rows/moments/arm_statistics.proof.md",
    "rows/moments/orthogonal_score.proof.md",
    "rows/histogram.proof.md",
)


def noise_used(question: CateQuestion) -> tuple[str, ...]:
    """Return the mechanisms of noise of vectors."""
    return ("ball" if question.budget.pure else "gaussian",)


def effect_model(
    study: Study,
    question: CateQuestion,
    design: LearnerDesign,
    plan: Plan,
    system: System,
    fit: LearnerFit,
    passes: Passes,
    *,
    method: Estimator,
    scale: float,
) -> Facts:
    """Return the fields of the model of weights that belong to basis functions times `scale`, in the outcome's units.

    Weights without a prior decide between function and one number where `auto` chose the method.
    """
    basis = design.basis
    low, high = study.outcome_range
    half_range = float(high - low) / 2
    unit = half_range * scale
    weights, errors, noise = effect_weights(system, fit, passes)
    free = unshrunk(system, fit, basis.orders)
    values = weights * unit
    covariance = errors * unit**2
    further = higher_functions(basis)
    release_noise = Noise.BALL if question.budget.pure else Noise.GAUSSIAN
    facts = Facts(
        study=study,
        method=method,
        basis=basis,
        weights=values,
        covariance=covariance,
        noise_covariance=noise * unit**2,
        releases=tuple((name, release_noise) for name, _ in plan.amounts),
        not_covered=not_covered(basis),
        details={
            "rows": system.rows,
            "functions": basis.size,
            "residual_sd": sqrt(fit.residual) * half_range,
            "budget_split": plan.shares,
        },
        higher=None if further is None else (further, higher_variances(basis, values, covariance)),
    )
    mean = free.mean * float(basis.scale[0])
    scaled = replace(free, weights=free.weights * unit, covariance=free.covariance * unit**2, mean=mean)
    automatic = question.method == "auto" and question.settings is None
    return fall_back_to_average(facts, scaled, level=question.level, automatic=automatic)


def not_covered(basis: Basis) -> tuple[Fact, ...]:
    """Return what intervals do not cover."""
    families = tuple(dict.fromkeys(axis.family for axis in basis.axes))
    return (
        *((Caveat.FLAT_ENDS,) if "cosine" in families else ()),
        Caveat.UNDECLARED_COVARIATES,
        NotExpressed(families),
        Caveat.CLAMPING,
        Caveat.CLIPPED_RESIDUALS,
        Caveat.COVERAGE_MEASURED,
    )
