"""What may be chosen about effects at a finite set of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from counterveil.estimators.ate.fold_learners import ModelPair
from counterveil.estimators.groups.settings import GroupsSettings
from counterveil.estimators.setting_checks import out_of_range, whole
from counterveil.privacy import Number, exact

_refusal = partial(out_of_range, "CV-P549", "effects at queries")


@dataclass(frozen=True, slots=True)
class BinSettings:
    """Settings of `method="bins"`.

    Attributes:
        by: covariates that make the bins, with cut points for numbers: {"age": (40, 65), "site": None}. None
            takes all covariates, with evenly spaced cut points as fine as public numbers afford.
        scores: how scores are made and clipped.
    """

    by: Mapping[str, Sequence[Any] | None] | None = None
    scores: GroupsSettings = field(default_factory=GroupsSettings)

    def __post_init__(self) -> None:
        if not isinstance(self.scores, GroupsSettings):
            raise _refusal("scores", "GroupsSettings", type(self.scores).__name__)


@dataclass(frozen=True, slots=True)
class FoldQuerySettings:
    """Settings of `method="fold_aggregation"` of `cate`; all of them are public.

    Attributes:
        learner: "ridge" or a `ModelPair` of two estimators in scikit-learn's style: the outcome's is fitted
            to each arm of a fold, and the effect is the difference of both predictions.
        second_stage: an estimator with `fit(X, y)` and `predict(X)` that is fitted to doubly robust scores of
            the fold in place of that difference; None takes the difference.
        folds: how many; None chooses from public numbers.
        bound: effects are clipped to plus or minus this; None takes the width of the outcome's range.
        degree: of the public polynomials on which the learned function is projected; None chooses.
    """

    learner: Any = "ridge"
    second_stage: Any = None
    folds: int | None = None
    bound: Number | None = None
    degree: int | None = None

    def __post_init__(self) -> None:
        if self.learner != "ridge" and not isinstance(self.learner, ModelPair):
            raise _refusal("learner", "'ridge' or a ModelPair", type(self.learner).__name__)
        stage = self.second_stage
        if stage is not None and not (hasattr(stage, "fit") and hasattr(stage, "predict")):
            raise _refusal("second_stage", "None or an estimator with fit and predict", type(stage).__name__)
        if self.folds is not None and not whole(self.folds, 3, 10**6):
            raise _refusal("folds", "a whole number of at least 3, or None", self.folds)
        if self.bound is not None and not exact(self.bound, "bound") > 0:
            raise _refusal("bound", "a number above 0, or None", self.bound)
        if self.degree is not None and not whole(self.degree, 1, 6):
            raise _refusal("degree", "a whole number from 1 to 6, or None", self.degree)
