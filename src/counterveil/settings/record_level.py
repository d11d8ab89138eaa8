"""Settings of methods that protect whole records and release moments of them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterveil.errors import refusal
from counterveil.privacy import Number
from counterveil.settings.ranges import (
    NONE,
    POSITIVE,
    Allowed,
    Settings,
    exactly,
    is_number,
    is_one_of,
    one_of,
    setting,
    whole,
    within,
)

LARGEST_KAPPA = 1.0
KAPPA = Allowed(
    f"a number above 0, at most {LARGEST_KAPPA:g}",
    lambda value: is_number(value) and 0 < value <= LARGEST_KAPPA,
)
LEAST_PROPENSITY = within(0.01, 0.4)
# Correlations may be rounded, so that the least eigenvalue of a true matrix comes out a little below zero.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Auto(Settings):
    """Settings of `method="auto"`.

    Attributes:
        kappa: a bound on confounding, yours to declare, for records whose adjustment the public numbers do not
            afford: |comparison - effect| is at most kappa sd(outcome) / (0.75 sd(treatment)), for the comparison
            that the result names. With it such questions get that comparison and an interval that covers if the
            bound holds; without it they are refused and nothing is spent.
    """

    kappa: float | None = setting(None, KAPPA | NONE)


@dataclass(frozen=True, slots=True)
class Trial(Settings):
    """Settings of `method="trial"`; all of them are public.

    Attributes:
        adjustment: "none" compares the arms as they are; "covariates" takes a linear prediction from covariates, made
            of released moments, off everybody's outcome first, which shortens the interval where outcomes follow
            them; "auto" adjusts in a declared trial whose rows and budget are expected to afford it.
        centre: with adjustment="none", what outcomes are centred on: "pooled" (the mean of everyone, which takes any
            noise distribution) or "arms" (the means of both arms, less noise where arms are of unequal size); "auto"
            chooses from rows and budget.
    """

    adjustment: str = setting("auto", one_of("auto", "none", "covariates"))
    centre: str = setting("auto", one_of("auto", "pooled", "arms"))

    def _check_together(self) -> None:
        """Refuse a centre where covariates are adjusted for; None is returned."""
        if self.centre != "auto" and self.adjustment != "none":
            raise self._refusal("centre", "'auto', or another with adjustment='none'")


@dataclass(frozen=True, slots=True)
class DoublyRobust(Settings):
    """Settings of `method="doubly_robust"` with `protects="record"`.

    Attributes:
        degree: 1 for the covariates themselves, 2 with squares and products, "auto" for as many of these as the
            public numbers afford.
        covariance: correlations of the features, if they are public knowledge; no budget is then spent
            on them. With `estimand="ATO"` only. One row and column for each feature of degree 1, in the order of the
            study: numbers and two-label covariates have one, others one for each label but the last.
        means, sds: public means and standard deviations of the same features, in the units of the study
            (flags are 0 and 1). Both or neither, and with `covariance`; they save most where n is small.
        unaffordable: what to do where the public numbers say that adjustment is not affordable:
            "refuse" (an error, nothing spent) or "contrast" (the unadjusted contrast, which needs `kappa`).
        kappa: a bound on confounding, yours to declare: |difference in means - effect| is at most
            kappa sd(outcome) / (0.75 sd(treatment)). An unadjusted answer covers only if it holds.
        bends: how far bends of treatment and outcome that noise hides are supposed to be the same, for the bias that
            intervals allow for them: 1 for one curve; two curves of few bends share 0.6 by chance. 0 allows no bias:
            you declare that lines, and the bends that were seen, are enough. It changes nothing with
            `estimand="ATO"`, which follows no bends.
    """

    degree: int | str = setting("auto", one_of(1, 2, "auto"))
    covariance: tuple[tuple[float, ...], ...] | None = None
    means: tuple[float, ...] | None = None
    sds: tuple[float, ...] | None = None
    unaffordable: str = setting("refuse", one_of("refuse", "contrast"))
    kappa: float | None = setting(None, KAPPA | NONE)
    bends: float = setting(0.5, within(0, 4))

    def _check_together(self) -> None:
        """Refuse values that do not go together; None is returned."""
        if self.unaffordable == "contrast" and self.kappa is None:
            raise self._refusal("kappa", "a declared bound, with unaffordable='contrast'")
        if self.covariance is not None:
            self._put("covariance", _correlations(self.covariance))
            if self.degree == 2:
                raise self._refusal("degree", "1 where the covariance is given")
        if (self.means is None) != (self.sds is None):
            raise self._refusal("means" if self.sds is None else "sds", "means and sds together, or neither")
        if self.means is not None and self.covariance is None:
            raise self._refusal("means", "means and sds with covariance, or neither")
        for name in ("means", "sds"):
            self._check_features(name)

    def _check_features(self, name: str) -> None:
        value = getattr(self, name)
        if value is None:
            return
        numbers = tuple(value) if isinstance(value, list | tuple | np.ndarray) else ()
        fits = self.covariance is not None and len(numbers) == len(self.covariance)
        if not fits or not all(is_number(float(one)) and (name == "means" or one > 0) for one in numbers):
            raise self._refusal(name, "one number a feature, standard deviations above 0")
        self._put(name, tuple(float(one) for one in numbers))


def _correlations(value: Any) -> tuple[tuple[float, ...], ...]:
    """Return the matrix as tuples of floats, or refuse what is no correlation matrix."""
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.size > 0
    if (
        not square
        or not np.isfinite(matrix).all()
        or not np.allclose(matrix, matrix.T, atol=_ROUNDING)
        or not np.allclose(np.diag(matrix), 1.0, atol=_ROUNDING)
        or float(np.linalg.eigvalsh(matrix)[0]) < -_ROUNDING
    ):
        raise refusal("CV-P402", matrix=matrix.shape)
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


@dataclass(frozen=True, slots=True)
class Groups(Settings):
    """Settings of `groups`, `policy_value` and `targeting_curve` with `protects="record"`.

    Attributes:
        clip: a public bound on the size of a person's score, in units of the outcome; larger ones are clipped.
            None buys a histogram of the scores for a small part of the budget and chooses from it.
        least_propensity: propensities are kept this far from 0 and 1, where they are modelled.
        degree: 1 for the covariates themselves in the models, 2 with squares and products.
    """

    clip: float | None = setting(None, POSITIVE | NONE)
    least_propensity: float = setting(0.1, LEAST_PROPENSITY)
    degree: int = setting(1, whole(1, 2))


# Settings of estimates from disjoint folds, and pairs of models to fit in them.


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
