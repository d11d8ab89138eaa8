"""Learners run on the rows of one fold, of which nothing gets out but a finite number, or fitted models.

    answer_k = A(x, t, y of fold k) if that is finite, else 0,

with the learner A, which returns an effect in units of the outcome, features x (rows, columns), treatments t
in {0, 1} and outcomes y in their units.

In: private rows of a fold and a learner: a name of ours, a pair of models (outcome and propensity, combined
into the doubly robust effect, each half of a fold scored by models of the other), or a user's function. Out:
private answers, which are clipped, averaged and given noise in `fold_effects.py`.

Why it is right: the guarantee needs that a fold's answer depends on that fold's rows alone, so that a record
moves one answer. Every fold gets a fresh copy of the learner and copies of its rows. What fails counts as 0;
what is printed, logged or warned of is dropped; global generators start every fold from one state. This
holds if the learner keeps no state outside its own object and those generators.

Proof: `rows/folds/fold_average.proof.md`.
"""

# Proof: fold_average.proof.md

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import isfinite
from typing import TypeVar

import numpy as np

from counterveil.data import silence
from counterveil.numerics.arrays import Floats, Indices
from counterveil.numerics.fold_learners import (
    FoldNuisances,
    aipw_effect,
    fitted_models,
    ols_effect,
    ridge_models,
    robust_effect,
)
from counterveil.rows.folds.stacked_models import MOST_ROWS, aipw_effects
from counterveil.session import fixed_ambient_generators
from counterveil.settings import ModelPair

Learner = Callable[[Floats, Floats, Floats], float]
FitModels = Callable[[Floats, Floats, Floats], FoldNuisances]
Answer = TypeVar("Answer")

BUILT_IN: dict[str, Learner] = {"ols": ols_effect, "aipw": aipw_effect}


def pair_effect(pair: ModelPair, x: Floats, t: Floats, y: Floats) -> float:
    """Return the doubly robust effect of a fold, each half scored by models of the other half."""
    fit = fitter(pair)
    first = np.arange(len(x)) % 2 == 0
    totals = []
    for scored in (first, ~first):
        models = fit(x[~scored], t[~scored], y[~scored])
        totals.append(robust_effect(models, x[scored], t[scored], y[scored]) * scored.sum())
    return float(sum(totals) / len(x))


def fitter(pair: ModelPair) -> FitModels:
    """Return the function that fits both models to a fold."""
    return fitted_models(pair.outcome, pair.propensity, deepcopy)


def effects_of_folds(learner: object, x: Floats, t: Floats, y: Floats, folds: list[Indices]) -> Floats:
    """Return the learner's answer for every fold, 0 where it fails; nothing else about the folds gets out.

    Ours draw from no generator and print nothing, so that one quiet block does for all folds.
    """
    if not isinstance(learner, str):
        return np.array([effect_of_fold(learner, x[rows], t[rows], y[rows]) for rows in folds])
    with silence():
        if learner == "aipw" and is_stacked(folds):
            effects = aipw_effects(x, t, y, folds)
        else:
            effects = np.array([_or_zero(BUILT_IN[learner], x[rows], t[rows], y[rows]) for rows in folds])
        return np.where(np.isfinite(effects), effects, 0.0)


def is_stacked(folds: list[Indices]) -> bool:
    """Return whether folds are so small that models of ours are fitted to many of them at once."""
    return max(map(len, folds)) <= MOST_ROWS


def _or_zero(learner: Learner, x: Floats, t: Floats, y: Floats) -> float:
    try:
        return learner(x, t, y)
    except Exception:
        return 0.0


def effect_of_fold(learner: object, x: Floats, t: Floats, y: Floats) -> float:
    """Return the same for one fold."""

    def answer() -> float:
        rows = x.copy(), t.copy(), y.copy()
        if isinstance(learner, ModelPair):
            return pair_effect(deepcopy(learner), *rows)
        run = BUILT_IN[learner] if isinstance(learner, str) else deepcopy(learner)
        return float(run(*rows))  # type: ignore[operator]

    value = quietly(answer)
    return value if value is not None and isfinite(value) else 0.0


def models_of_fold(learner: object, x: Floats, t: Floats, y: Floats) -> FoldNuisances | None:
    """Return the models fitted to one fold, None where that fails."""
    if not isinstance(learner, ModelPair):
        return quietly(lambda: ridge_models(x, t, y))
    return quietly(lambda: fitter(learner)(x.copy(), t.copy(), y.copy()))


def quietly(answer: Callable[[], Answer]) -> Answer | None:
    """Return the answer, or None where it fails; what it prints, logs or warns of is dropped.

    Global generators start every time from the same state, so that nothing goes from one fold to the next.
    """
    with silence(), fixed_ambient_generators():
        try:
            return answer()
        except (Exception, SystemExit):
            return None
