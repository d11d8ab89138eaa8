"""R-learner: one regression of the outcome on functions of covariates and on their products with a - p(x).

If the propensity p is right, the second block is orthogonal to every function of covariates, so that the effect is
right even where the functions cannot express the outcome; if they can, p may be wrong.

Lineage: the R-learner (Nie and Wager 2021), after Robinson (1988).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from counterveil.data import Study
from counterveil.numerics.shrinkage import Normal, shrink
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import CateQuestion, require_gaussian, vector_plan
from counterveil.session import Gate, Session
from counterveil.settings import Cate
from counterveil.statistics.moments.cate_fitting import (
    Design,
    Fit,
    Passes,
    System,
    design_of,
    effect_model,
    effect_weights,
    first_fit,
    fitted,
    half_range,
    mean_outcome,
    next_clip,
    positive,
    refined,
    unshrunk,
)
from counterveil.statistics.moments.cate_releases import (
    ArmForm,
    InteractedForm,
    Moments,
    Propensity,
    UnitRows,
    release_gradient,
    release_size,
    release_statistics,
)
from counterveil.statistics.moments.t_learner import (
    PAGES,
    REACH,
    SIZE,
    arm_system,
    constant_of,
    effect_prior,
    guess,
    one_prior,
)

# Parts of the budget: moments by arm, moments of the interacted rows, the size of residuals; steps take the rest,
# the last one half of it.
_MOMENTS, _INTERACTED, _SIZE = 15, 20, 3
_PASSES = 2
# Length to which rows are shortened, beside that of the features alone: both blocks are about as long.
_BOTH = sqrt(2.0)


def r_learner(session: Session, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, by one regression of both arms."""
    require_gaussian(question, "r_learner")
    settings, design = question.settings or Cate(), design_of(session, question)
    steps = [f"step {place + 1}" for place in range(_PASSES if settings.passes is None else settings.passes)]
    plan = vector_plan(question, _shares(steps))

    def compute(gate: Gate) -> dict[str, object]:
        system, fit, passes = _fit(gate, session, design, settings, steps)
        model = effect_model(
            session,
            question,
            "R-learner",
            design.basis,
            effect_weights(system, fit, passes),
            unshrunk(system, fit, design.basis.orders),
            2.0 / (design.length * _BOTH),
            plan,
            PAGES,
            {
                "rows": system.rows,
                "functions": design.basis.size,
                "residual_sd": sqrt(fit.residual) * half_range(session),
            },
        )
        return model.stored()

    return CateModel.from_dict(session.run(question.request(plan, session.study), compute))


def _shares(steps: list[str]) -> dict[str, Fraction]:
    left = 100 - _MOMENTS - _INTERACTED - _SIZE
    parts = {"moments": _MOMENTS, "interacted moments": _INTERACTED, SIZE: _SIZE}
    found = {name: Fraction(part, 100) for name, part in parts.items()}
    for place, name in enumerate(steps):
        last = place == len(steps) - 1
        weight = Fraction(7, 10) if last else Fraction(3, 10) / (len(steps) - 1)
        found[name] = Fraction(left, 100) * (weight if len(steps) > 1 else 1)
    return found


def _fit(
    gate: Gate, session: Session, design: Design, settings: Cate, steps: list[str]
) -> tuple[System, Fit, Passes]:
    """Return the normal equations of the interacted rows and what all passes say."""
    source, size = session.batches, design.basis.size
    moments = release_statistics(gate, "moments", UnitRows(source, ArmForm(design.basis, design.length)))
    by_arm = arm_system(design, moments, source.rows)
    start, _ = first_fit(by_arm, moments, guess(by_arm))
    propensity = propensity_of(session.study, design, by_arm, moments, settings.least_propensity)
    length = design.length * _BOTH
    weights = by_arm.weights(start.theta)
    effect = (weights[1] - weights[0]) / design.length
    theta = np.concatenate((weights[0] / design.length, effect / 2)) * length
    clip = next_clip(by_arm, start, REACH, mean_outcome(moments, constant_of(design)))
    form = InteractedForm(design.basis, length, propensity, effect, theta, clip)
    found = release_statistics(gate, "interacted moments", UnitRows(source, form))
    gram = positive(found.grams[0], found.entry_sd * sqrt(2.0))
    prior = effect_prior(design.basis, design.basis, length, length / 2)
    system = System((gram,), np.eye(2 * size), prior, size, source.rows, found.entry_sd**2)
    error = start.shrunken.posterior * 2
    products = found.products[0] * clip + gram @ theta
    passes = Passes(
        (products,), (found.product_sd**2 * clip**2,), (found.entry_sd**2 * float(np.trace(error)),)
    )
    residual = min(max(found.square * clip**2 / 2, 1e-4), 1.0)
    fit = fitted(system, passes, residual)
    plain = UnitRows(source, replace(form, clip=inf))
    clip = release_size(gate, SIZE, plain, system.weights(fit.theta))
    for name in steps:
        gradient = release_gradient(gate, name, plain, system.weights(fit.theta), clip)
        fit, passes = refined(system, fit, passes, gradient)
    return system, fit, passes


def propensity_of(study: Study, design: Design, by_arm: System, moments: Moments, least: float) -> Propensity:
    """Return the propensity as a function: the declared share of a trial, or a regression off the moments by arm.

    The first feature is constant, so that the first columns of the arms' matrices hold the products of
    the features with treatment.
    """
    basis = design.basis
    if study.treated_share is not None:
        weights = np.zeros(basis.size)
        weights[0] = (2 * float(study.treated_share) - 1) / basis.scale[0]
        return Propensity(weights, least)
    gram = by_arm.grams[0] + by_arm.grams[1]
    constant = constant_of(design)
    products = (moments.grams[1] - moments.grams[0])[:, 0] / constant
    noise = 2 * by_arm.entry_variance * 2 / constant**2
    normal = Normal.of(gram, products, noise * np.eye(basis.size) + gram / by_arm.rows)
    found = shrink(normal, one_prior(basis, design.length))
    return Propensity(found.weights / design.length, least)
