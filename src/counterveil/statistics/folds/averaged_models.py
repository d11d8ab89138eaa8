"""Doubly robust scores whose models come from the other folds and are averaged (after Lebeda et al.).

Every fold's models are fitted without noise; a row is scored by the average of the models of M other folds, so that
one record moves one of M models of the rows of M folds. The sensitivity is larger than that of averaging
effects; the form is here for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.data import Study, Table, silence
from counterveil.data.features import UnitFeatures
from counterveil.inference import Uncertainty
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import exact
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, Plan, Released
from counterveil.settings import Averaged
from counterveil.statistics.folds.clip import most_folds, numbers_plan, require_folds
from counterveil.statistics.folds.kernels import FoldModels, Predict, logit_lines, outcome_lines, stacks
from counterveil.statistics.folds.learners import (
    is_stacked,
    learner_name,
    learner_remarks,
    models_of_fold,
    quietly,
)
from counterveil.statistics.folds.sensitivity import AveragedModels
from counterveil.statistics.moments.kernels.inverse_weights import GRID_BITS, moments

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# M, or one less than the folds: more models of a row would take longer and hardly change its score.
MOST_MODELS = 64
PAGE = "statistics/folds/averaged_models.proof.md"


@dataclass(frozen=True, slots=True)
class Averaging:
    """What is known before a row is read."""

    models: object
    features: UnitFeatures
    folds: int
    sensitivity: AveragedModels
    plan: Plan


def averaged_models(custody: Custody, question: Question) -> Result:
    """Return the noisy mean of doubly robust scores; everything about a person is private."""
    averaging = averaging_of(custody.study, custody.table.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        effect, square = release(gate, custody.table, averaging)
        return _result(custody, question, averaging, effect, square).stored()

    return Result.from_dict(custody.run(question.request(averaging.plan, custody.study), compute))


def averaging_of(study: Study, rows: int, question: Question) -> Averaging:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings = question.settings or Averaged()
    require_folds(study, question, rows, settings.folds)
    features = UnitFeatures.of(study)
    folds = settings.folds or most_folds(rows, features.columns + 2)
    width, clip = study.outcome_range[1] - study.outcome_range[0], exact(settings.clip, "clip")
    grid = width / clip / (1 << GRID_BITS)
    sizes = rows // folds, -(-rows // folds)
    sensitivity = AveragedModels(width, clip, rows, *sizes, min(folds - 1, MOST_MODELS), grid)
    return Averaging(settings.models, features, folds, sensitivity, numbers_plan(question))


def release(gate: Gate, table: Table, averaging: Averaging) -> tuple[Released, Released]:
    """Return the released mean score and mean square."""
    return release_steps(gate, score_steps(table, averaging), averaging.sensitivity)


def release_steps(gate: Gate, steps: Integers, sensitivity: AveragedModels) -> tuple[Released, Released]:
    """Return the same from scores in whole parts of 2**-GRID_BITS of their largest size."""
    found = moments(steps, steps > 0)
    mean = Fraction(found.total, 1 << GRID_BITS) * sensitivity.bound / found.rows
    square = Fraction(found.squares, 1 << 2 * GRID_BITS) * sensitivity.bound**2 / found.rows
    effect = gate.release("effect", mean, sensitivity.mean)
    return effect, gate.release("squares", square, sensitivity.square)


def score_steps(table: Table, averaging: Averaging) -> Integers:
    """Return every row's score in whole parts of 2**-GRID_BITS of its largest size."""
    sensitivity = averaging.sensitivity
    half, clip = float(sensitivity.width) / 2, float(sensitivity.clip)
    folds = fold_rows(table.rows, averaging.folds)
    # Fold after fold, so that the rows that use a fold's models follow each other.
    order, ends = np.concatenate(folds), np.cumsum([0, *map(len, folds)])
    z, t = averaging.features.values(table)[order], table.treated[order].astype(np.float64)
    y = np.clip(float(table.outcome_unit) * table.outcome[order] - half, -half, half)
    sums = np.zeros((4, table.rows))
    for fold, answers in enumerate(_fold_answers(averaging.models, z, t, y, ends)):
        for first, end in _users(fold, sensitivity.models, averaging.folds):
            rows = slice(ends[first], ends[end])
            sums[:, rows] += answers(z[rows], half, clip)
    first, second, r1, r0 = sums / sensitivity.models
    score = first - second + t * r1 * (y - first) - (1 - t) * r0 * (y - second)
    part: Floats = np.clip(score / float(sensitivity.bound), -1.0, 1.0)
    steps = np.empty(table.rows, np.int64)
    steps[order] = np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)
    return steps


def _users(fold: int, models: int, folds: int) -> list[tuple[int, int]]:
    """Return the folds whose rows use a fold's models, the `models` before it in a circle: (first, end) each."""
    first = fold - models
    return [(first, fold)] if first >= 0 else [(0, fold), (first + folds, folds)]


def _fold_answers(
    models: object, z: Floats, t: Floats, y: Floats, ends: NDArray[np.intp]
) -> Iterator[Callable[[Floats, float, float], Floats]]:
    """Yield each fold's models as a function of covariates, half the outcome's width and the clip.

    Rows lie fold after fold: `ends` (K + 1,) says where.
    """
    folds = [np.arange(first, end) for first, end in pairwise(ends)]
    if isinstance(models, str) and is_stacked(folds):
        for _, rows in stacks(folds, z.shape[1]):
            with silence():
                outcome, logit = outcome_lines(z[rows], t[rows], y[rows]), logit_lines(z[rows], t[rows])
            yield from (partial(line_answers, *lines) for lines in zip(outcome, logit, strict=True))
    else:
        for rows in folds:
            yield partial(model_answers, models_of_fold(models, z[rows], t[rows], y[rows]))


def line_answers(outcome: Floats, logit: Floats, z: Floats, half: float, clip: float) -> Floats:
    """Return the same as `model_answers` of models that are lines: outcomes' (2, d + 1), the logit's (d + 1,)."""
    lines = np.nan_to_num(np.vstack([outcome, logit]))
    values = lines[:, :-1] @ z.T + lines[:, -1:]
    p = np.clip(expit(values[2]), clip, 1 - clip)
    return np.stack([*np.clip(values[:2], -half, half), 1 / p, 1 / (1 - p)])


def model_answers(models: FoldModels | None, z: Floats, half: float, clip: float) -> Floats:
    """Return one fold's m1, m0, 1/p and 1/(1-p) at every row, clipped; (4, rows)."""

    def asked(predict: Predict | None, low: float, high: float) -> Floats:
        values = None if predict is None else quietly(lambda: np.asarray(predict(z), np.float64))
        middle = (low + high) / 2
        if values is None or values.shape != (len(z),):
            return np.full(len(z), middle)
        return np.clip(np.nan_to_num(values, nan=middle), low, high)

    chosen = (models.treated, models.control, models.propensity) if models is not None else (None,) * 3
    first, second = asked(chosen[0], -half, half), asked(chosen[1], -half, half)
    p = asked(chosen[2], clip, 1 - clip)
    return np.stack([first, second, 1 / p, 1 / (1 - p)])


def _result(
    custody: Custody, question: Question, averaging: Averaging, effect: Released, square: Released
) -> Result:
    study, rows, sensitivity = custody.study, custody.table.rows, averaging.sensitivity
    variance = (float(square) - float(effect) ** 2 + effect.noise.variance) / rows
    cap = float(sensitivity.bound) ** 2 / rows
    noise = averaging.plan.noise("squares", sensitivity.square / rows)
    name = learner_name(averaging.models)
    return Result(
        estimate=float(effect),
        uncertainty=Uncertainty(effect.noise, variance, cap, noise),
        guarantee=question.guarantee(custody, PAGE, learner_remarks(averaging.models)),
        method=f"doubly robust scores, models ({name}) averaged over folds",
        **question.effect_terms(study),
        releases=(
            ("mean score", f"sensitivity {float(sensitivity.mean):.6g}"),
            ("its squares", f"sensitivity {float(sensitivity.square):.6g}"),
        ),
        not_covered=(
            f"MODELS: errors of the averaged models, fitted on about {sensitivity.smallest} rows each",
            "CONFOUNDING by anything that is not among the covariates",
            f"scores outside [{float(sensitivity.clip):.3g}, {1 - float(sensitivity.clip):.3g}], which are clipped",
            "clamping of outcomes to the declared range",
        ),
        details={"rows": rows, "law": question.law, "models": name, "folds": averaging.folds},
    )
