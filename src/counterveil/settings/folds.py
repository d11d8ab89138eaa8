"""Settings of estimates from disjoint folds, and pairs of models to fit in them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from counterveil.privacy import Number
from counterveil.settings.ranges import NONE, Allowed, Settings, exactly, is_one_of, setting, whole


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A learner made of two estimators in scikit-learn's style, for `learner=`.

    Attributes:
        outcome: has `fit(X, y)` and `predict(X)`; fitted to each arm.
        propensity: has `fit(X, t)` and `predict_proba(X)`.
    """

    outcome: Any
    propensity: Any


def _is_learner(value: object) -> bool:
    """Return whether folds can learn with it: a known name, or something that can be run and copied."""
    if is_one_of(value, "ols", "aipw"):
        return True
    if not callable(value) and not isinstance(value, ModelPair):
        return False
    try:
        deepcopy(value)
    except Exception:  # whatever a foreign object does when it is copied, folds would share it
        return False
    return True


_LEARNER = Allowed(
    "'ols', 'aipw', a ModelPair, or a function of (X, t, y) that returns an effect and can be copied",
    _is_learner,
)
LEARNED_BY_RIDGE = Allowed(
    "'ridge' or a ModelPair", lambda value: is_one_of(value, "ridge") or isinstance(value, ModelPair)
)
BOUND = exactly("a number above 0", lambda bound: bound > 0) | NONE


@dataclass(frozen=True, slots=True)
class Folds(Settings):
    """Settings of `method="fold_aggregation"`; all of them are public.

    Attributes:
        learner: "ols", "aipw", a `ModelPair` of two estimators in scikit-learn's style, or a function of
            (X, t, y), arrays of one fold, that returns an effect. It must keep nothing between folds;
            Python's and numpy's global generators start every fold from the same state.
        folds: how many; None chooses from n, the covariates, the budget and, where it is released, the variance
            of outcomes.
        bound: each fold's effect is clipped to plus or minus this. None, with a learner of ours, clips around
            the private comparison of the arms, as far off as its released variance says; with another learner
            it takes the width of the outcome's range, which no effect exceeds.
    """

    learner: Any = setting("ols", _LEARNER)
    folds: int | None = setting(None, whole(3) | NONE)
    bound: Number | None = setting(None, BOUND)
