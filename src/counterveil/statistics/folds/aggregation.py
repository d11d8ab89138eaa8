"""Any learner, made private: estimate the effect in separate folds, clip, average, add noise.

Nothing about the learner has to be known. One record lies in one fold, so it moves the average of K effects clipped
to within c of a released centre by at most 2c/K.

Lineage: sample and aggregate (Nissim, Raskhodnikova and Smith 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from counterveil.data import Study, Table
from counterveil.data.features import UnitFeatures
from counterveil.inference import Uncertainty
from counterveil.numerics.arrays import Integers
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import exact
from counterveil.privacy.caveats import Caveat, ClippedFolds, FoldModels, LearnerBias, LearnersAnswer
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Session
from counterveil.settings import Folds
from counterveil.statistics.folds.clip import (
    Clip,
    average_noise,
    chosen_clip,
    declared_clip,
    details,
    folds_plan,
    released_around,
    require_folds,
    typical_around,
)
from counterveil.statistics.folds.learners import BUILT_IN, effects_of_folds, learner_name, learner_remarks
from counterveil.statistics.moments.kernels.scores import GRID_BITS, moments
from counterveil.statistics.moments.weighted_sums import Weighted, release_moments

PAGES = (
    "statistics/folds/fold_average.proof.md",
    "statistics/moments/inverse_weighting.proof.md",
    "statistics/moments/centred_contrast.proof.md",
)


@dataclass(frozen=True, slots=True)
class Folding:
    """What is known before a row is read; `centred` where effects are clipped around a released comparison."""

    learner: object
    features: UnitFeatures
    width: Fraction
    plan: Plan
    centred: bool
    folds: int | None
    bound: Fraction

    @property
    def columns(self) -> int:
        """Coefficients of a fold's model: a line for each arm."""
        return 2 * (self.features.columns + 1)


def fold_aggregation(session: Session, question: Question) -> Result:
    """Return the noisy average of a learner's effects in separate folds; everything about a person is private."""
    folding = folding_of(session.study, session.table.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        clip, weighted = release(gate, session.table, folding)
        return _result(session, question, folding, clip, weighted).stored()

    return Result.from_dict(session.run(question.request(folding.plan, session.study), compute))


def folding_of(study: Study, rows: int, question: Question) -> Folding:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings = question.settings or Folds()
    require_folds(study, question, rows, settings.folds)
    width = study.outcome_range[1] - study.outcome_range[0]
    bound = width if settings.bound is None else min(exact(settings.bound, "bound"), width)
    # What another learner answers need not lie near the comparison of the arms.
    centred = settings.bound is None and isinstance(settings.learner, str)
    plan = folds_plan(question, centred)
    return Folding(settings.learner, UnitFeatures.of(study), width, plan, centred, settings.folds, bound)


def expected_noise(study: Study, rows: int, question: Question) -> float:
    """Return about how large the noise of the average is, in widths of the outcome's range; public numbers only."""
    folding = folding_of(study, rows, question)
    around = typical_around(folding.plan, rows)
    clip = chosen_clip(around, folding.plan, rows, folding.columns, Fraction(1), folding.folds)
    return sqrt(average_noise(folding.plan, clip.sensitivity.mean).variance)


def release(gate: Gate, table: Table, folding: Folding) -> tuple[Clip, Weighted]:
    """Return where effects were clipped, and the released moments of the folds' effects."""
    clip = released_clip(gate, table, folding)
    steps = fold_effects(table, folding, clip)
    found = moments(steps, np.zeros(len(steps), np.bool_))
    return clip, release_moments(gate, folding.plan, found, clip.bound, 1.0)


def released_clip(gate: Gate, table: Table, folding: Folding) -> Clip:
    """Return where effects are clipped: declared, or around the released comparison of the arms."""
    rest = folding.plan, table.rows, folding.columns, folding.width, folding.folds
    if not folding.centred:
        return declared_clip(folding.bound, *rest)
    return chosen_clip(released_around(gate, folding.plan, table, folding.width), *rest)


def fold_effects(table: Table, folding: Folding, clip: Clip) -> Integers:
    """Return every fold's effect less the centre, in whole parts of 2**-GRID_BITS of the bound, at most one bound."""
    z = folding.features.values(table)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome.astype(np.float64)
    t = table.treated.astype(np.float64)
    effects = effects_of_folds(folding.learner, z, t, y, fold_rows(table.rows, clip.folds))
    part = np.clip((effects - float(clip.centre)) / float(clip.bound), -1.0, 1.0)
    return np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)


def uncertainty_of(clip: Clip, weighted: Weighted, level: float) -> Uncertainty:
    """Return the uncertainty of the average from the variance between folds, with K - 1 degrees of freedom."""
    bound, folds = float(clip.bound), clip.folds
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / bound**2
    between = bound**2 * (weighted.square - mean_square) / (folds - 1)
    # Normal quantiles are used later on; the variance is raised so that at this level they are Student's.
    tail = (1 - level) / 2
    student = float((stdtrit(folds - 1, tail) / ndtri(tail)) ** 2)
    cap = bound**2 / (folds - 1)
    lost = clip.lost(weighted.mean, weighted.square) if clip.chosen else 0.0
    return Uncertainty(
        weighted.effect_noise, student * between, student * cap, weighted.variance_noise, bias=lost
    )


# What must be linear in the covariates for the learner to be right.
_LINEAR = {"ols": FoldModels.OUTCOME, "aipw": FoldModels.OUTCOME_OR_LOGIT}


def _result(session: Session, question: Question, folding: Folding, clip: Clip, weighted: Weighted) -> Result:
    study, name = session.study, learner_name(folding.learner)
    bound, size = float(clip.bound), session.table.rows // clip.folds
    own = not isinstance(folding.learner, str) or folding.learner not in BUILT_IN
    return Result(
        estimate=float(clip.centre) + bound * weighted.mean,
        uncertainty=uncertainty_of(clip, weighted, question.level),
        guarantee=question.guarantee(session, PAGES, learner_remarks(folding.learner)),
        method=f"average over folds of {name}",
        **question.effect_terms(study),
        releases=(
            *((("comparison of the arms", "it centres and bounds the effects"),) if folding.centred else ()),
            ("average of the folds' effects", f"sensitivity {float(clip.sensitivity.mean):.6g}"),
            ("its squares", f"sensitivity {float(clip.sensitivity.square):.6g}"),
        ),
        not_covered=(
            LearnerBias(name, size),
            Caveat.FAILED_FOLDS,
            ClippedFolds(bound, float(clip.centre)),
            Caveat.CLAMPING,
        ),
        details={
            "rows": session.table.rows,
            "mechanism": question.mechanism,
            "learner": name,
            "rows_per_fold": size,
            **details(clip),
        },
        interval_of=LearnersAnswer(name, size) if own else None,
        assumes=None if study.randomised is True else _LINEAR.get(name),
    )
