"""T-learner: effects as the difference of two regressions, one in each arm, from noisy moments and residuals.

Lineage: the T-learner (Kuenzel et al. 2019) from noisy second moments.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.public_choices import public_uniforms
from counterveil.numerics.shrinkage import Prior
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import CateQuestion, vector_plan
from counterveil.session import Gate, Plan, Session
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
    half_range,
    mean_outcome,
    next_clip,
    positive,
    refined,
    strength,
    unshrunk,
)
from counterveil.statistics.moments.cate_releases import (
    ArmForm,
    Moments,
    UnitRows,
    release_gradient,
    release_size,
    release_statistics,
)
from counterveil.statistics.moments.kernels.unit_rows import MomentSpan

# How large weights may be before anything is seen: public, in units of half the outcome's range.


# Standard deviation of the mean outcome and of the mean effect, in units of half the range.
_LEVEL = 0.5


def effect_prior(common: Basis, effect: Basis, common_length: float, effect_length: float) -> Prior:
    """Return the prior of the weights of the common part and of the effect.

    A function of order k has standard deviation scale/k; functions of the same covariates share a scale.
    `common_length` and `effect_length` are what the features were divided by.
    """
    first, groups, count = _block(common, common_length, 0)
    second, more, total = _block(effect, effect_length, count)
    blocks = np.concatenate((np.zeros(count, np.intp), np.ones(total - count, np.intp)))
    return Prior(np.concatenate((first, second)), np.concatenate((groups, more)), blocks)


def _block(basis: Basis, length: float, start: int) -> tuple[Floats, NDArray[np.intp], int]:
    orders = np.maximum(basis.orders, 1.0)
    base = (length / basis.scale / orders) ** 2
    base[0] *= _LEVEL**2
    places: dict[tuple[int, ...], int] = {}
    groups = [-1]
    for term, size in zip(basis.terms, basis.sizes[1:], strict=True):
        groups += [places.setdefault(term.axes, start + len(places))] * size
    return base, np.array(groups, dtype=np.intp), start + len(places)


def one_prior(basis: Basis, length: float) -> Prior:
    """Return the prior of the weights of one function, by the same rule as that of the effect."""
    base, groups, count = _block(basis, length, 0)
    return Prior(base, groups, np.zeros(count, np.intp))


PAGES = (
    "statistics/moments/arm_statistics.proof.md",
    "statistics/moments/orthogonal_score.proof.md",
    "statistics/histogram.proof.md",
)
# Parts of the budget: the moments, the size of residuals; passes over residuals take the rest, the last one most of it.
_MOMENTS, _SIZE, _LAST = Fraction(20, 100), Fraction(4, 100), Fraction(46, 100)
_PASSES = 3
# Residuals are clipped at this many standard deviations before their size is known; where rows are few for every
# function, noise outweighs what clipping shifts, and they are clipped lower and always.
REACH, _LOW_REACH, _FEW = 3.0, 2.0, 60.0
SIZE = "size of residuals"
# Features up to which noise outside the space of possible moments is taken out.
_SPANNED = 36
_SPAN_SEED = 11


def t_learner(session: Session, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, by a regression in each arm."""
    settings, design = question.settings or Cate(), design_of(session, question)
    count = _PASSES if settings.passes is None else settings.passes
    pass_names = [f"residuals {place + 1}" for place in range(count)]
    plan = vector_plan(question, _shares(pass_names))
    rows = UnitRows(session.batches, ArmForm(design.basis, design.length))
    few = strength(rows.count, question.budget, design.basis.size) < _FEW

    def compute(gate: Gate) -> dict[str, object]:
        moments = release_statistics(gate, "moments", rows)
        system = arm_system(design, moments, rows.count)
        fit, passes = first_fit(system, moments, guess(system))
        level = mean_outcome(moments, constant_of(design))
        for place, name in enumerate(pass_names):
            weights = system.weights(fit.theta)
            clip = next_clip(system, fit, _LOW_REACH if few else REACH, level)
            if place == min(1, count - 1):
                size = release_size(gate, SIZE, rows, weights)
            if place >= min(1, count - 1):
                clip = min(size, clip) if few else size
            fit, passes = refined(system, fit, passes, release_gradient(gate, name, rows, weights, clip))
        return _model(session, question, design, plan, system, fit, passes).stored()

    return CateModel.from_dict(session.run(question.request(plan, session.study), compute))


def _shares(passes: list[str]) -> dict[str, Fraction]:
    """Return the parts of the budget by name: of several passes the last takes most and the first least."""
    left, before = 1 - _MOMENTS - _SIZE, passes[:-1]
    total = sum(range(1, len(before) + 1))
    found = {"moments": _MOMENTS}
    found |= {name: (left - _LAST) * Fraction(place + 1, total) for place, name in enumerate(before)}
    return found | {passes[-1]: _LAST if before else left, SIZE: _SIZE}


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
    session: Session,
    question: CateQuestion,
    design: Design,
    plan: Plan,
    system: System,
    fit: Fit,
    passes: Passes,
) -> CateModel:
    return effect_model(
        session,
        question,
        "T-learner",
        design.basis,
        effect_weights(system, fit, passes),
        unshrunk(system, fit, design.basis.orders),
        1.0 / design.length,
        plan,
        PAGES,
        {
            "rows": system.rows,
            "functions": design.basis.size,
            "residual_sd": sqrt(fit.residual) * half_range(session),
        },
    )
