"""The effect as a function of covariates where records are private, by a regression in each arm (T-learner).

With functions u(x) of the covariates, shortened to length one, and weights w_1 and w_0 of the arms'
regressions,

    effect(x) = u(x) . (w_1 - w_0),

fitted to noisy second moments u u' and products u v by arm, and then to the residuals around these fits
(`learner_fit.py`). The learner is that of Kuenzel et al. (2019) [1]_. In: public ranges of covariates and
what `rows.moments.arm_statistics` releases. Out: a `CateModel` in units of the outcome.

Numbers of this module were set on the designs of `experiments/cate`; privacy does not depend on them.

Private are all rows. Releases are moments by arm, counts of residuals by size, and products of functions with
clipped residuals. Rows of length one and clips bound what a replaced row changes. Proofs:
`rows/moments/arm_statistics.proof.md`, `rows/histogram.proof.md` and
`rows/moments/orthogonal_score.proof.md`.

References
----------
.. [1] Kuenzel, S. R., Sekhon, J. S., Bickel, P. J. and Yu, B. (2019). Metalearners for estimating
   heterogeneous treatment effects using machine learning. PNAS 116, 4156-4165.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.learner_clips import find_sizes
from counterveil.estimators.moments.learner_design import LearnerDesign, design_of, effect_prior, strength
from counterveil.estimators.moments.learner_fit import (
    System,
    first_fit,
    mean_outcome,
    next_clip,
    positive,
    refined,
)
from counterveil.estimators.moments.learner_model import PAGES, effect_model, noise_used
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.moment_span import MomentSpan
from counterveil.numerics.public_choices import public_uniforms
from counterveil.privacy.provenance import Estimator
from counterveil.results.answering import Facts
from counterveil.results.functions import CateModel, CateQuestion, vector_plan
from counterveil.rows.moments.arm_statistics import ArmProducts, ArmStatistics, ResidualGradient
from counterveil.rows.moments.unit_rows import ArmForm
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind

# Parts of the budget: for the moments,
_MOMENTS = Fraction(20, 100)
# for sizes of residuals,
_SIZE = Fraction(4, 100)
# and for the last pass over residuals; the passes before it have the rest.
_LAST = Fraction(46, 100)
_PASSES = 3
# Residuals are clipped at this many standard deviations before their sizes are known.
RESIDUAL_CLIP_SDS = 3.0
# Below this strength rows are few for every function, so that noise outweighs what clipping shifts:
_FEW = 60.0
# residuals are then clipped at this many standard deviations, and in every pass.
_LOW_CLIP_SDS = 2.0
# The name of these sizes in a plan.
SIZE = "size of residuals"
# Features up to which noise outside the space of possible moments is taken out.
_SPANNED = 36
_SPAN_SEED = 11


def t_learner(public: PublicData, question: CateQuestion) -> Prepared[CateModel]:
    """Return the effect as a function of the covariates, prepared for its releases."""
    design = design_of(public, question)
    rows = public.rows
    pass_names = [f"residuals {number + 1}" for number in range(_PASSES)]
    plan = vector_plan(question, _shares(pass_names))
    form = ArmForm(design.basis, design.length)
    few = strength(rows, question.budget, design.basis.size) < _FEW
    clip_sds = _LOW_CLIP_SDS if few else RESIDUAL_CLIP_SDS

    def estimate(gate: Gate) -> Facts:
        moments = ArmStatistics(form).release(gate, "moments")
        system = arm_system(design, moments, rows)
        fit, passes = first_fit(system, moments, guess(system))
        level = mean_outcome(moments, design.constant)
        first, *later = pass_names
        clip = next_clip(system, fit, clip_sds, level)
        gradient = ResidualGradient(form, system.weights(fit.theta), clip).release(gate, first)
        fit, passes = refined(system, fit, passes, gradient=gradient, lost=0.0)
        sizes = find_sizes(gate, SIZE, form, system.weights(fit.theta), rows=rows, level=level)
        passes = replace(passes, lost=(0.0, sizes.lost(clip)))
        unit = sqrt(design.basis.size) * gradient.sd / clip * float(plan.amount(first, Kind.VECTOR))
        for name in later:
            least = min(sizes.most, next_clip(system, fit, clip_sds, level)) if few else sizes.most
            clip = sizes.clip(least, unit / float(plan.amount(name, Kind.VECTOR)))
            gradient = ResidualGradient(form, system.weights(fit.theta), clip).release(gate, name)
            fit, passes = refined(system, fit, passes, gradient=gradient, lost=sizes.lost(clip))
        return effect_model(
            public.study,
            question,
            design,
            plan=plan,
            system=system,
            fit=fit,
            passes=passes,
            method=Estimator.T_LEARNER,
            scale=1.0 / design.length,
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=CateModel,
        pages=PAGES,
        mechanisms=noise_used(question),
    )


def _shares(passes: list[str]) -> dict[str, Fraction]:
    """Return the parts of the budget by name: of several passes the last takes most and the first least."""
    *before, last = passes
    remaining = 1 - _MOMENTS - _SIZE
    total = sum(range(1, len(before) + 1))
    shares = {"moments": _MOMENTS}
    shares |= {name: (remaining - _LAST) * Fraction(number, total) for number, name in enumerate(before, 1)}
    return shares | {last: _LAST if before else remaining, SIZE: _SIZE}


def guess(system: System) -> float:
    """Return a squared length of an arm's weights before any is seen: a level of half the prior's."""
    return float(system.prior.base[0]) / 2


def arm_system(design: LearnerDesign, moments: ArmProducts, rows: int) -> System:
    """Return the normal equations of two arms in terms of a common part and an effect."""
    basis = design.basis
    size = basis.size
    grams = list(moments.grams)
    noise_kept = 1.0
    if 1 < size <= _SPANNED:
        span = _span(basis)
        grams = [span.project(matrix) for matrix in grams]
        noise_kept = span.part
    sd = moments.entry_sd * sqrt(2 * noise_kept)
    identity = np.eye(size)
    mixing = np.block([[identity, -identity / 2], [identity, identity / 2]])
    prior = effect_prior(basis, basis, design.length, design.length)
    return System(
        grams=tuple(positive(matrix, sd / 2) for matrix in grams),
        mixing=mixing,
        prior=prior,
        effects=size,
        rows=rows,
        entry_variance=moments.entry_sd**2 * noise_kept,
    )


@lru_cache(maxsize=1)
def _span(basis: Basis) -> MomentSpan:
    """Return the space of this basis's second moments; nothing in it depends on rows."""
    return MomentSpan.of(_public_features(basis))


def _public_features(basis: Basis) -> Floats:
    """Return features at public points of the domain, more than there are products of two of them."""
    count = 2 * basis.size * (basis.size + 1)
    uniform = public_uniforms(count, len(basis.axes), _SPAN_SEED)
    columns = {
        axis.source: np.floor(uniform[:, column] * axis.size)
        if axis.family == "labels"
        else axis.low + axis.width * uniform[:, column]
        for column, axis in enumerate(basis.axes)
    }
    return basis.features(columns)
