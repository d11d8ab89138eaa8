"""Settings of methods that protect whole records and release moments of them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from counterveil.errors import ParameterError
from counterveil.privacy import Number, exact
from counterveil.settings.ranges import (
    FLAG,
    NONE,
    POSITIVE,
    Allowed,
    Settings,
    between,
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
_PARTS = ("weights", "scores", "treatments", "effect")


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
        raise ParameterError(
            "CV-P402",
            "the covariance is not a matrix of correlations",
            expected="a square symmetric matrix with ones on its diagonal and no negative eigenvalue",
            got=f"shape {matrix.shape}",
            fix="pass correlations of the standardised features, from public knowledge and not from these data",
        )
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


@dataclass(frozen=True, slots=True)
class IPW(Settings):
    """Settings of `method="ipw"`; all of them are public.

    Attributes:
        form: "hajek" compares weighted means, "ht" (Horvitz-Thompson) weighted sums. Outcomes are centred
            at released means of the arms by the first and at the middle of their range by the second. None
            takes the first unless n and the budget are so small that those means would be noise.
        clip: scores below this are raised to it, and scores above one minus it lowered; None takes 0.2, or
            0.1 where n and the budget are large.
        penalty: of the propensity model; None chooses it from n, the covariates and the budget.
        fit_share: the share of the budget for the propensity model and the arms' means: of epsilon, or of mu squared
            for Gaussian noise.
        shrink: pull the released weights of the model towards zero by what is known of their noise.
    """

    form: str | None = setting(None, one_of("hajek", "ht", None))
    clip: float | None = setting(None, between(0, 0.5) | NONE)
    penalty: float | None = setting(None, POSITIVE | NONE)
    fit_share: float = setting(0.5, between(0, 1))
    shrink: bool = setting(True, FLAG)

    @property
    def centred(self) -> bool:
        """Whether outcomes are centred at released means."""
        return self.form == "hajek"


@dataclass(frozen=True, slots=True)
class CrossFit(Settings):
    """Settings of `method="cross_fit"`; all of them are public.

    Attributes:
        clip: fitted propensities are kept this far from 0 and 1.
        penalty: of the propensity model; None chooses it from n, the covariates and the budget.
        reach: scores are clipped at this many of their predicted standard deviations; None chooses from n and
            the budget. "bound" clips where no score can be, about width/clip, or the width over the smaller arm's
            share where that is declared: nothing is cut off, for more noise.
        shrink: pull the released slopes of the propensity model towards zero by what is known of their noise.
    """

    clip: float = setting(0.1, between(0, 0.5))
    penalty: float | None = setting(None, POSITIVE | NONE)
    reach: float | str | None = setting(
        None, Allowed("a number of at least 1", lambda value: is_number(value, 1)) | one_of("bound", None)
    )
    shrink: bool = setting(True, FLAG)


@dataclass(frozen=True, slots=True)
class ScoreStrata(Settings):
    """Settings of `method="score_strata"`.

    Attributes:
        strata: how many strata the score is cut into.
        kappa: a bound on the confounding that the strata leave, yours to declare: |comparison within strata -
            effect| is at most kappa sd(outcome) / (0.75 sd(treatment)). The interval is widened by it and covers
            the effect only if it holds; without one the interval is not for the effect.
    """

    strata: int = setting(3, whole(2, 20))
    kappa: float | None = setting(None, KAPPA | NONE)


@dataclass(frozen=True, slots=True)
class RecordMatching(Settings):
    """Settings of `method="matching"` with `protects="record"`; the defaults are the published ones.

    Attributes:
        neighbours: how many units of the other arm stand in for one unit.
        penalty: of the propensity model; not published, 0.1 is customary.
        h: the error coefficient of the limit on reuse (PrivATE, equation 11).
        weights: part of the budget for the weights of the propensity model.
        scores: part of the budget for everyone's score.
        treatments: part of the budget for everyone's treatment, through randomized response.
        effect: part of the budget for the matched sum.
        debias: divide the estimate by the factor by which randomized response shrinks it. The standard
            error grows by the same factor, and there is still no valid interval for the effect.
    """

    neighbours: int = setting(5, whole(1))
    penalty: float = setting(0.1, POSITIVE)
    h: float = setting(0.001, POSITIVE)
    weights: float = setting(0.05, POSITIVE)
    scores: float = setting(0.05, POSITIVE)
    treatments: float = setting(0.7, POSITIVE)
    effect: float = setting(0.2, POSITIVE)
    debias: bool = setting(False, FLAG)

    def shares(self) -> dict[str, Fraction]:
        """Return the parts of the budget; only their proportions count."""
        return {name: exact(getattr(self, name), name) for name in _PARTS}


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
