"""The effect as a function of covariates where records are private, by one regression (R-learner).

With functions psi(x) of the covariates, treatment a and a released propensity p(x), outcomes are regressed on

    (psi(x), 2 (a - p(x)) psi(x)).

If p is right, the second block is orthogonal to every function of covariates, so that the effect is right
even where the functions cannot express the outcome; if they can, p may be wrong (Nie and Wager 2021 [1]_,
after Robinson 1988 [2]_). The propensity is the declared share of a trial, or a regression off the moments by
arm that the T-learner releases, whose fit is also where this one starts. In: public ranges of covariates and
what `rows.moments.arm_statistics` releases. Out: a `CateModel` in units of the outcome.

Numbers of this module were set on the designs of `experiments/cate`; privacy does not depend on them.

Private are all rows. Releases are moments by arm and products of functions with clipped residuals; shortened
rows and clips bound what a replaced row changes. Proofs: `rows/moments/arm_statistics.proof.md`,
`rows/moments/orthogonal_score.proof.md` and `rows/histogram.proof.md`.

References
----------
.. [1] Nie, X. and Wager, S. (2021). Quasi-oracle estimation of heterogeneous treatment effects. Biometrika
   108, 299-319.
.. [2] Robinson, P. M. (1988). Root-n-consistent semiparametric regression. Econometrica 56, 931-954.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from counterveil.data import Study
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.learner_clips import find_sizes
from counterveil.estimators.moments.learner_design import (
    LearnerDesign,
    design_of,
    effect_prior,
    prior_block,
)
from counterveil.estimators.moments.learner_fit import (
    LARGEST_RESIDUAL,
    LEAST_RESIDUAL,
    LearnerFit,
    Passes,
    System,
    first_fit,
    fitted,
    mean_outcome,
    next_clip,
    positive,
    refined,
)
from counterveil.estimators.moments.learner_model import PAGES, effect_model, noise_used
from counterveil.estimators.moments.t_learner import RESIDUAL_CLIP_SDS, SIZE, arm_system, guess
from counterveil.numerics.arrays import Floats
from counterveil.numerics.shrinkage import Normal, Prior, shrink
from counterveil.privacy.provenance import Estimator
from counterveil.results.answering import Facts
from counterveil.results.functions import CateModel, CateQuestion, require_gaussian, vector_plan
from counterveil.rows.moments.arm_statistics import ArmProducts, ArmStatistics, ResidualGradient
from counterveil.rows.moments.unit_rows import ArmForm, InteractedForm, LinearPropensity
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan

# Percents of the budget: for moments by arm,
_MOMENTS = 15
# moments of the interacted rows,
_INTERACTED = 20
# and sizes of residuals.
_SIZE = 3
# So many steps over residuals have the rest,
_STEPS = 2
# of which the last one has this part.
_LAST = Fraction(7, 10)
# Length to which rows are shortened, beside that of the features alone: both blocks are about as long.
_BOTH = sqrt(2.0)
# Propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.05


@dataclass(frozen=True, slots=True)
class Start:
    """The fit by arm that the regression of both arms starts from, and the propensity, from moments by arm.

    Attributes
    ----------
    weights : ndarray of float, shape (2, m)
        Weights of the arms' regressions on functions of the covariates.
    propensity : LinearPropensity
        Chances of treatment.
    error : ndarray of float, shape (2m, 2m)
        Covariance of the fit's parameters.
    clip : float
        Where residuals around it are clipped, in halves of the outcome's range.
    level : float
        Mean outcome.
    """

    weights: Floats
    propensity: LinearPropensity
    error: Floats
    clip: float
    level: float


def r_learner(public: PublicData, question: CateQuestion) -> Prepared[CateModel]:
    """Return the effect as a function of the covariates, prepared for its releases."""
    require_gaussian(question, "r_learner", public.rows)
    design = design_of(public, question)
    rows = public.rows
    steps = [f"step {number + 1}" for number in range(_STEPS)]
    plan = vector_plan(question, _shares(steps))

    def estimate(gate: Gate) -> Facts:
        start = _start(gate, public.study, design, rows)
        system, fit, passes = _fit(gate, design, plan, steps=steps, start=start, rows=rows)
        return effect_model(
            public.study,
            question,
            design,
            plan=plan,
            system=system,
            fit=fit,
            passes=passes,
            method=Estimator.R_LEARNER,
            scale=2.0 / (design.length * _BOTH),
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=CateModel,
        pages=PAGES,
        mechanisms=noise_used(question),
    )


def _shares(steps: list[str]) -> dict[str, Fraction]:
    """Return the parts of the budget by name."""
    *before, last = steps
    remaining = Fraction(100 - _MOMENTS - _INTERACTED - _SIZE, 100)
    percents = {"moments": _MOMENTS, "interacted moments": _INTERACTED, SIZE: _SIZE}
    shares = {name: Fraction(percent, 100) for name, percent in percents.items()}
    shares |= {name: remaining * (1 - _LAST) / len(before) for name in before}
    return shares | {last: remaining * (_LAST if before else 1)}


def _start(gate: Gate, study: Study, design: LearnerDesign, rows: int) -> Start:
    """Return where the regression of both arms starts, from released moments by arm."""
    moments = ArmStatistics(ArmForm(design.basis, design.length)).release(gate, "moments")
    by_arm = arm_system(design, moments, rows)
    fit, _ = first_fit(by_arm, moments, guess(by_arm))
    propensity = propensity_of(study, design, by_arm, moments)
    level = mean_outcome(moments, design.constant)
    return Start(
        weights=by_arm.weights(fit.theta),
        propensity=propensity,
        error=fit.shrunken.posterior,
        clip=next_clip(by_arm, fit, RESIDUAL_CLIP_SDS, level),
        level=level,
    )


def _fit(
    gate: Gate, design: LearnerDesign, plan: Plan, steps: list[str], start: Start, rows: int
) -> tuple[System, LearnerFit, Passes]:
    """Return the normal equations of the interacted rows and what all passes say."""
    size = design.basis.size
    length = design.length * _BOTH
    effect = (start.weights[1] - start.weights[0]) / design.length
    theta = np.concatenate((start.weights[0] / design.length, effect / 2)) * length
    clip = start.clip
    form = InteractedForm(
        basis=design.basis, length=length, propensity=start.propensity, offset=effect, start=theta, clip=clip
    )
    moments = ArmStatistics(form).release(gate, "interacted moments")
    gram = positive(moments.grams[0], moments.entry_sd * sqrt(2.0))
    system = System(
        grams=(gram,),
        mixing=np.eye(2 * size),
        prior=effect_prior(design.basis, design.basis, length, length / 2),
        effects=size,
        rows=rows,
        entry_variance=moments.entry_sd**2,
    )
    products = moments.products[0] * clip + gram @ theta
    noise = moments.product_sd**2 * clip**2
    extra = moments.entry_sd**2 * float(np.trace(start.error * 2))
    passes = Passes((products,), (noise,), (extra,), (0.0,))
    residual = min(max(moments.square * clip**2 / 2, LEAST_RESIDUAL), LARGEST_RESIDUAL)
    fit = fitted(system, passes, residual)
    plain = replace(form, clip=inf)
    sizes = find_sizes(gate, SIZE, plain, system.weights(fit.theta), rows=rows, level=start.level)
    passes = replace(passes, lost=(sizes.lost(clip),))
    unit = sqrt(size) * moments.product_sd * float(plan.amount("interacted moments", Kind.VECTOR))
    for name in steps:
        clip = sizes.clip(sizes.most, unit / float(plan.amount(name, Kind.VECTOR)))
        gradient = ResidualGradient(plain, system.weights(fit.theta), clip).release(gate, name)
        fit, passes = refined(system, fit, passes, gradient=gradient, lost=sizes.lost(clip))
    return system, fit, passes


def propensity_of(
    study: Study, design: LearnerDesign, by_arm: System, moments: ArmProducts
) -> LinearPropensity:
    """Return the propensity as a function: the declared share of a trial, or a regression off the moments by arm.

    The first feature is constant, so that the first columns of the arms' matrices hold the products of
    the features with treatment.
    """
    basis = design.basis
    if study.treated_share is not None:
        weights = np.zeros(basis.size)
        weights[0] = (2 * float(study.treated_share) - 1) / basis.scale[0]
        return LinearPropensity(weights, _LEAST_PROPENSITY)
    gram = by_arm.grams[0] + by_arm.grams[1]
    constant = design.constant
    products = (moments.grams[1] - moments.grams[0])[:, 0] / constant
    noise = 2 * by_arm.entry_variance * 2 / constant**2
    normal = Normal.of(gram, products, noise * np.eye(basis.size) + gram / by_arm.rows)
    base, groups, count = prior_block(basis, design.length, 0)
    shrunken = shrink(normal, Prior(base, groups, np.zeros(count, np.intp)))
    return LinearPropensity(shrunken.weights / design.length, _LEAST_PROPENSITY)
