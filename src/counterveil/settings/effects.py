"""Settings of questions other than the average effect: effects that differ between people, pooling, survival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.privacy import Number
from counterveil.settings.ranges import (
    FLAG,
    NONE,
    Allowed,
    Settings,
    is_number,
    one_of,
    setting,
    whole,
)
from counterveil.settings.record_level import BOUND, LEARNED_BY_RIDGE, LEAST_PROPENSITY, Groups


@dataclass(frozen=True, slots=True)
class Cate(Settings):
    """Settings of the methods "t_learner" and "r_learner".

    Attributes:
        basis: functions of a number: "legendre" polynomials, "cosine" waves (whose slope is zero at the ends
            of the range: intervals do not cover that), or cubic "spline" functions on evenly spaced knots.
        degree: total degree of the functions; None follows public numbers. Splines have `knots` instead.
        products: whether functions of several covariates are multiplied; None does where there are at most three.
        knots: inner knots of the splines of one covariate.
        passes: passes over the residuals after the first fit; None follows the method.
        least_propensity: propensities are kept this far from 0 and 1 ("r_learner" alone).
    """

    basis: str = setting("legendre", one_of("legendre", "cosine", "spline"))
    degree: int | None = setting(None, whole(1, 8) | NONE)
    products: bool | None = setting(None, FLAG | NONE)
    knots: int = setting(3, whole(1, 20))
    passes: int | None = setting(None, whole(1, 8) | NONE)
    least_propensity: float = setting(0.05, LEAST_PROPENSITY)


@dataclass(frozen=True, slots=True)
class Series(Settings):
    """Settings of `cate(protects="outcome")`, by the method "series".

    Attributes:
        degree: highest degree of the polynomials; None takes 6 where functions of several covariates are multiplied
            and 3 otherwise, less where rows are few. Which of them are measured follows public and released numbers.
        products: whether functions of several covariates are multiplied; None does where there are at most three.
        least_propensity: propensities are kept this far from 0 and 1.
    """

    degree: int | None = setting(None, whole(1, 8) | NONE)
    products: bool | None = setting(None, FLAG | NONE)
    least_propensity: float = setting(0.05, LEAST_PROPENSITY)


@dataclass(frozen=True, slots=True)
class Bins(Settings):
    """Settings of `cate(method="bins")`.

    Attributes:
        by: covariates that make the bins, with cut points for numbers: {"age": (40, 65), "site": None}. None
            takes all covariates, with evenly spaced cut points as fine as public numbers afford.
        scores: how scores are made and clipped.
    """

    by: Mapping[str, Sequence[Any] | None] | None = None
    scores: Groups = field(
        default_factory=Groups,
        metadata={"allowed": Allowed("a settings.Groups", lambda scores: isinstance(scores, Groups))},
    )


@dataclass(frozen=True, slots=True)
class FoldQueries(Settings):
    """Settings of `cate(method="fold_aggregation")`; all of them are public.

    Attributes:
        learner: "ridge" or a `ModelPair` of two estimators in scikit-learn's style: the outcome's is fitted
            to each arm of a fold, and the effect is the difference of both predictions.
        second_stage: an estimator with `fit(X, y)` and `predict(X)` that is fitted to doubly robust scores of
            the fold in place of that difference; None takes the difference.
        folds: how many; None chooses from public numbers.
        bound: effects are clipped to plus or minus this; None takes the width of the outcome's range.
        degree: of the public polynomials on which the learned function is projected; None chooses.
    """

    learner: Any = setting("ridge", LEARNED_BY_RIDGE)
    second_stage: Any = setting(
        None,
        Allowed(
            "an estimator with fit and predict",
            lambda stage: hasattr(stage, "fit") and hasattr(stage, "predict"),
        )
        | NONE,
    )
    folds: int | None = setting(None, whole(3, 10**6) | NONE)
    bound: Number | None = setting(None, BOUND)
    degree: int | None = setting(None, whole(1, 6) | NONE)


# Limits on the weights of sites in a pooled average.


_WEIGHT = Allowed("a number above 0, at most 1", lambda weight: is_number(weight) and 0 < weight <= 1)
_WEIGHTS = Allowed(
    "for each site a number above 0, at most 1", lambda own: all(map(_WEIGHT.fits, own.values()))
)
_VARIANCES = Allowed(
    "finite numbers of at least 0", lambda least: all(isfinite(one) and one >= 0 for one in least.values())
)
Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class WeightLimits(Settings):
    """The most weight of each site of `pool`, and the least variance that each is weighed with.

    They keep one site from taking over an average whose sites do not trust each other.

    Attributes:
        most_weight: for sites without a limit in `own`; with few sites it is raised to one over their number.
        own: limits of single sites, by name.
        least_variance: variances that no site goes below, such as that of the least noise it can have.
    """

    most_weight: float = setting(0.5, _WEIGHT)
    own: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _WEIGHTS})
    least_variance: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _VARIANCES})

    def most(self, sites: Named) -> NDArray[np.float64]:
        """Return the most weight (J,) of each site."""
        usual = max(self.most_weight, 1 / len(sites))
        return np.array([max(self.own.get(name, usual), 1 / len(sites)) for name, _ in sites])

    def least(self, sites: Named) -> NDArray[np.float64]:
        """Return the least variance (J,) of each site."""
        return np.array([self.least_variance.get(name, 0.0) for name, _ in sites])

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as JSON-ready facts."""
        return {
            "most_weight": self.most_weight,
            "own": dict(self.own),
            "least_variance": dict(self.least_variance),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> WeightLimits:
        """Return the limits written by `to_dict`."""
        return cls(facts["most_weight"], dict(facts["own"]), dict(facts["least_variance"]))


_NAMES = Allowed(
    "a tuple of names of covariates",
    lambda names: isinstance(names, tuple) and bool(names) and all(isinstance(one, str) for one in names),
)


@dataclass(frozen=True, slots=True)
class Survival(Settings):
    """Settings of `survival`; all of them are public.

    Attributes:
        strata: covariates that make the strata of `method="stratified"`; None takes all of them.
        censoring: where in its time cell somebody is censored: in the "middle" (the actuarial convention: at risk for
            half of the cell, and curves fall evenly between the ends of cells), or at its "end" (as where times are
            recorded on the grid itself: at risk for all of it, and curves fall at the ends).
        release: "flat" releases counts, "sums" their running sums, whose noise grows less with the number of cells;
            "auto" takes the one of least expected noise at this number of cells.
    """

    strata: tuple[str, ...] | None = setting(None, _NAMES | NONE)
    censoring: str = setting("middle", one_of("middle", "end"))
    release: str = setting("auto", one_of("auto", "flat", "sums"))
