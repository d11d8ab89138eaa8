"""The fields of a released effect function (`CateModel`), from weights fitted to released noisy moments.

The effect at covariates x is a linear combination of public basis functions phi_1 (constant), ..., phi_m,

    effect(x) = w . phi(x),    w = theta * scale * (half the declared range of the outcome).

In: theta, the weights of the features psi = phi / length that moments were released of, in half ranges of the
outcome. Features were divided by a public `length`, and rows still longer than one were shortened to one, to
bound what a row adds. `scale` undoes that: 1 / length for a regression in each arm (T-learner), and for one
regression on both blocks (R-learner) with the factor of its second block too. With theta come two covariance
matrices, of its error from sampling, noise and shrinkage, and of the part of it that is privacy noise.
`passes` are successive releases of products of features and residuals, each around the weights fitted before.
Out: w in units of the outcome, and both matrices in their squares, hence times the square of the same factor.

Fallback: where `auto` chose the method, Wald's test asks whether all weights but the constant's are zero,
with weights w* from generalised least squares, which no prior has shrunk,

    z = w*' V^-1 w*,    p = P(chi^2 > z),    V the covariance of w* (the constant left out),

once for functions of first order and, if there are others, once for all; then p is twice the lesser of both
(Bonferroni). With p > 1 - level the one number mean . w is released in place of the function, `mean` being
the mean of phi over people. Means of features come divided by the mean of the constant feature, so that
phi_1, a known constant, is all that they lack: means of basis functions have no unit of the outcome.

Nothing private is read: all of it is post-processing. That what was released is private is proved in
`rows/moments/arm_statistics.proof.md` (second moments and products by arm),
`rows/moments/orthogonal_score.proof.md` (products of features and clipped residuals, in each pass) and
`rows/histogram.proof.md` (counts of residuals by size, which set clips).
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

# Proofs of privacy of: moments by arm, passes over residuals, counts of residuals by size.
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

    `system` are the released normal equations, `fit` their solution and `passes` what was released of
    residuals, all in half ranges of the outcome. Weights that no prior has shrunk decide between function and
    one number where `auto` chose the method.
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
    # Means of features in parts of the constant one, times the constant function: means of basis functions.
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
