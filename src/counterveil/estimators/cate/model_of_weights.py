"""Released weights as a model, in the outcome's units, with its promise and what it does not cover."""

from __future__ import annotations

from counterveil.curator import Custody, Plan
from counterveil.estimators.cate.fitting import EffectWeights
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.question import CateQuestion
from counterveil.kernels.bases import Basis
from counterveil.kernels.left_out import higher_functions, higher_variances


def half_range(custody: Custody) -> float:
    """Return half the outcome's range, the unit in which everything is computed."""
    low, high = custody.study.outcome_range
    return float(high - low) / 2


def effect_model(
    custody: Custody,
    question: CateQuestion,
    method: str,
    basis: Basis,
    weights: EffectWeights,
    scale: float,
    plan: Plan,
    pages: tuple[str, ...],
    details: dict[str, float | str],
) -> CateModel:
    """Return the model of weights that belong to basis functions times `scale`, in the outcome's units."""
    unit = half_range(custody) * scale
    values, covariance = weights.values * unit, weights.covariance * unit**2
    beyond = higher_functions(basis)
    law = "l2-ball noise" if question.budget.pure else "Gaussian noise"
    laws = ("ball" if question.budget.pure else "gaussian",)
    return CateModel(
        study=custody.study,
        method=method,
        basis=basis,
        weights=values,
        covariance=covariance,
        noise_covariance=weights.noise * unit**2,
        level=question.level,
        guarantee=question.guarantee(custody, pages, laws=laws),
        spent=question.budget,
        releases=tuple((name, law) for name, _ in plan.amounts),
        not_covered=not_covered(basis),
        details=details | {"parts of the budget": plan.shares},
        higher=None if beyond is None else (beyond, higher_variances(basis, values, covariance)),
    )


def not_covered(basis: Basis) -> tuple[str, ...]:
    """Return what intervals do not cover."""
    found = [
        "covariates that were not declared; outcomes or effects that the functions cannot express "
        f"({', '.join(dict.fromkeys(axis.family for axis in basis.axes))})",
        "clamping of outcomes to the declared range, clipping of rare large residuals; intervals are large-sample "
        "ones whose coverage was measured, not proved",
    ]
    if any(axis.family == "cosine" for axis in basis.axes):
        found.insert(0, "THE ENDS OF RANGES: cosines are flat there, whatever the effect is")
    return tuple(found)
