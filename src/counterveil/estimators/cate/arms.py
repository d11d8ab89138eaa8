"""Effects as the difference of two regressions, one an arm, from noisy moments and looks at their residuals."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Custody, Gate, Plan
from counterveil.estimators.cate.constant import constant_effect
from counterveil.estimators.cate.design import Design, choose_design, strength
from counterveil.estimators.cate.fitting import (
    Fit,
    Looks,
    System,
    effect_weights,
    first_fit,
    mean_outcome,
    next_clip,
    positive,
    refined,
)
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.model_of_weights import effect_model, half_range
from counterveil.estimators.cate.priors import effect_prior
from counterveil.estimators.cate.question import CateQuestion, vector_plan
from counterveil.estimators.cate.releases import Moments, release_gradient, release_size, release_statistics
from counterveil.estimators.cate.rows import ArmRows
from counterveil.estimators.cate.settings import CateSettings
from counterveil.kernels.bases import Basis
from counterveil.kernels.moment_span import MomentSpan
from counterveil.kernels.public_numbers import public_uniforms

Floats = NDArray[np.float64]

PAGES = (
    "sensitivity/arm_statistics.proof.md",
    "sensitivity/orthogonal_score.proof.md",
    "sensitivity/record_norms.proof.md",
)
# Parts of the budget: the moments, the size of residuals; looks at residuals take the rest, the last one most of it.
_MOMENTS, _SIZE, _LAST = Fraction(20, 100), Fraction(4, 100), Fraction(46, 100)
_PASSES = 3
# Residuals are clipped at this many standard deviations before their size is known; where rows are few for every
# function, noise outweighs what clipping shifts, and they are clipped lower and always.
REACH, _LOW_REACH, _FEW = 3.0, 2.0, 60.0
SIZE = "size of residuals"
# Features up to which noise outside the space of possible moments is taken out.
_SPANNED = 36
_SPAN_SEED = 11


def arms(custody: Custody, question: CateQuestion) -> CateModel:
    """Return the effect as a function, or as one number where the public numbers do not afford more."""
    settings = question.settings or CateSettings()
    design = choose_design(custody.study, custody.table.rows, question.budget, settings)
    if not design.affordable:
        return constant_effect(custody, question)
    passes = _PASSES if settings.passes is None else settings.passes
    looks_at = [f"residuals {place + 1}" for place in range(passes)]
    plan = vector_plan(question, _shares(looks_at))
    rows = ArmRows(custody.table, design.basis, design.length)
    few = strength(rows.count, question.budget, design.basis.size) < _FEW

    def compute(gate: Gate) -> dict[str, object]:
        moments = release_statistics(gate, "moments", rows)
        system = arm_system(design, moments, rows.count)
        fit, looks = first_fit(system, moments, guess(system))
        level = mean_outcome(moments, constant_of(design))
        for place, name in enumerate(looks_at):
            weights = system.weights(fit.theta)
            clip = next_clip(system, fit, _LOW_REACH if few else REACH, level)
            if place == min(1, passes - 1):
                size = release_size(gate, SIZE, rows, weights)
            if place >= min(1, passes - 1):
                clip = min(size, clip) if few else size
            fit, looks = refined(system, fit, looks, release_gradient(gate, name, rows, weights, clip))
        return _model(custody, question, design, plan, system, fit, looks).stored()

    return CateModel.from_dict(custody.run(question.request(plan, custody.study), compute))


def _shares(looks: list[str]) -> dict[str, Fraction]:
    """Return the parts of the budget by name: of several looks the last takes most and the first least."""
    left, before = 1 - _MOMENTS - _SIZE, looks[:-1]
    total = sum(range(1, len(before) + 1))
    found = {"moments": _MOMENTS}
    found |= {name: (left - _LAST) * Fraction(place + 1, total) for place, name in enumerate(before)}
    return found | {looks[-1]: _LAST if before else left, SIZE: _SIZE}


def constant_of(design: Design) -> float:
    """Return the first feature, the same in every row, before rows are shortened."""
    return float(design.basis.scale[0]) / design.length


def guess(system: System) -> float:
    """Return a squared length of an arm's weights before any is seen: a level of half the prior's."""
    return float(system.prior.base[0]) / 2


def arm_system(design: Design, moments: Moments, rows: int) -> System:
    """Return the normal equations of two arms in terms of a common part and an effect."""
    basis, size = design.basis, design.basis.size
    grams, part = list(moments.grams), 1.0
    if 1 < size <= _SPANNED:
        span = _span(basis)
        grams, part = [span.project(matrix) for matrix in grams], span.part
    sd = moments.entry_sd * sqrt(2 * part)
    identity = np.eye(size)
    mixing = np.block([[identity, -identity / 2], [identity, identity / 2]])
    prior = effect_prior(basis, basis, design.length, design.length)
    kept = tuple(positive(matrix, sd / 2) for matrix in grams)
    return System(kept, mixing, prior, size, rows, moments.entry_sd**2 * part)


# Seconds of decomposition for the largest bases, and the same for every question about one study.
@lru_cache(maxsize=1)
def _span(basis: Basis) -> MomentSpan:
    """Return the space of this basis's second moments; nothing in it depends on rows."""
    return MomentSpan.of(_public_features(basis))


def _public_features(basis: Basis) -> Floats:
    """Return features at public points of the domain, more than there are products of two of them."""
    count = 2 * basis.size * (basis.size + 1)
    uniform = public_uniforms(count, len(basis.axes), _SPAN_SEED)
    columns = {
        axis.source: np.floor(uniform[:, place] * axis.size)
        if axis.family == "labels"
        else axis.low + axis.width * uniform[:, place]
        for place, axis in enumerate(basis.axes)
    }
    return basis.features(columns)


def _model(
    custody: Custody,
    question: CateQuestion,
    design: Design,
    plan: Plan,
    system: System,
    fit: Fit,
    looks: Looks,
) -> CateModel:
    return effect_model(
        custody,
        question,
        "difference of regressions by arm",
        design.basis,
        effect_weights(system, fit, looks),
        1.0 / design.length,
        plan,
        PAGES,
        {
            "rows": system.rows,
            "functions": design.basis.size,
            "standard deviation of residuals": sqrt(fit.residual) * half_range(custody),
        },
    )
