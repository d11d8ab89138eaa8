"""What may be chosen about estimates from separate folds, and how many folds there are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from counterveil.curator import Plan
from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.estimators.ate.covariates import require_covariates
from counterveil.estimators.ate.fold_learners import ModelPair, checked_learner
from counterveil.estimators.question import Question
from counterveil.estimators.setting_checks import between, out_of_range, whole
from counterveil.privacy import Estimand, Number, exact

# A fold has at least this many rows, and this many for every column of the covariates.
_FEWEST_ROWS, _ROWS_A_COLUMN = 20, 2
FEWEST_FOLDS = 5
# Of the budget of a mean and its squares, the mean's part.
FOR_EFFECT = Fraction(17, 20)

_refusal = partial(out_of_range, "CV-P423", "estimates from folds")


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """Settings of `method="fold_aggregation"`; all of them are public.

    Attributes:
        learner: "ols", "aipw", a `ModelPair` of two estimators in scikit-learn's style, or a function of
            (X, t, y), arrays of one fold, that returns an effect. It must keep nothing between folds;
            Python's and numpy's global generators start every fold from the same state.
        folds: how many; None chooses from n, the covariates, the budget and, where it is released, the spread
            of outcomes.
        bound: each fold's effect is clipped to plus or minus this. None, with a learner of ours, clips around
            the private comparison of the arms, as far off as its released spread says; with another learner
            it takes the width of the outcome's range, which no effect exceeds.
    """

    learner: Any = "ols"
    folds: int | None = None
    bound: Number | None = None

    def __post_init__(self) -> None:
        checked_learner(self.learner)
        _check_folds(self.folds)
        if self.bound is not None and not exact(self.bound, "bound") > 0:
            raise _refusal("bound", "a number above 0, or None", self.bound)


@dataclass(frozen=True, slots=True)
class AveragedSettings:
    """Settings of `method="averaged_models"`; all of them are public.

    Attributes:
        models: "ridge" (penalised linear outcome models and a logistic propensity) or a `ModelPair`.
        folds: how many; None takes as many as leave each fold enough rows.
        clip: each model's propensity is clipped to [clip, 1 - clip].
    """

    models: Any = "ridge"
    folds: int | None = None
    clip: float = 0.1

    def __post_init__(self) -> None:
        if self.models != "ridge" and not isinstance(self.models, ModelPair):
            raise _refusal("models", "'ridge' or a ModelPair", type(self.models).__name__)
        _check_folds(self.folds)
        if not between(self.clip, 0, 0.5):
            raise _refusal("clip", "a number above 0 and below 1/2", self.clip)


def require_folds(study: Study, question: Question, rows: int, folds: int | None) -> None:
    """Refuse what cannot be done in folds, from public numbers alone."""
    require_covariates(study, question.method)
    if question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P427",
            "folds estimate the average effect on everyone only",
            expected="estimand='ATE'",
            got=f"estimand={question.estimand.value!r}",
            fix="leave estimand out, or use method='ipw' for effects on the treated or the untreated",
        )
    wanted = FEWEST_FOLDS if folds is None else folds
    if rows // wanted < 2:
        raise ParameterError(
            "CV-P424",
            "there are too few rows for that many folds",
            expected=f"at least {2 * wanted} rows for {wanted} folds",
            got=f"{rows} rows",
            fix="ask for fewer folds, or use a method for small data, such as 'contrast'",
        )


def most_folds(rows: int, columns: int) -> int:
    """Return as many folds as leave each of them enough rows for models of this many coefficients."""
    return max(FEWEST_FOLDS, rows // max(_FEWEST_ROWS, _ROWS_A_COLUMN * columns))


def numbers_plan(question: Question) -> Plan:
    """Return the plan of a mean and its squares as two releases."""
    shares = {"effect": FOR_EFFECT, "squares": 1 - FOR_EFFECT}
    return Plan.split(question.budget, shares, question.law)


def _check_folds(folds: object) -> None:
    if folds is not None and not whole(folds, 3):
        raise _refusal("folds", "a whole number of at least 3, or None", folds)
