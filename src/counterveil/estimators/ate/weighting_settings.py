"""What may be chosen about optimal weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from counterveil.data import Study
from counterveil.errors import CounterveilError, ParameterError, shown
from counterveil.estimators.ate.supposed_spread import supposed_spread
from counterveil.estimators.setting_checks import between, whole
from counterveil.privacy import Number, exact

BALANCE, MATCHING = "balance", "matching"
# The spread that is supposed close to matching, where the imbalance to be left is that of matching.
_CLOSE = 1 / 16
BY_ARM, BY_ROW = "arm", "row"
# The blocks of features, and how the supposed variance of the mean outcome is divided among them.
BLOCKS = {"covariates": 0.7, "squares": 0.3, "products": 0.02, "score": 0.1, "strata": 0.1}


@dataclass(frozen=True, slots=True)
class WeightingSettings:
    """Settings of `method="weighting"`.

    Attributes:
        goal: "balance" weights each arm towards everyone whose effect is asked for, to come close to the true
            effect; "matching" stays close to matching on the propensity score, with less noise.
        features: what is balanced: "covariates", "squares" (of numbers), "products" (of two of the five
            covariates that go with the propensity score most), "score" (its logit), "strata" (ten groups
            of it).
        signal: supposed spread of the mean outcome over the features, as a part of the outcome's range; None is
            `supposed_spread` for balance, and 1/16 close to matching.
        residual: the same of the spread of outcomes around that mean.
        spread: "arm" estimates one spread of outcomes an arm, around a line in the features where that
            shortens the interval; "row" lets every row have its own and takes differences of similar rows.
        variance_share: the share of the budget that buys the variance of the estimate; None chooses it, and 0
            leaves everything to the estimate, with an interval for the largest variance there can be.
        neighbours: of the matching that "matching" stays close to.
        penalty: of the propensity model; None is one over the number of rows.
        prediction: a covariate that predicts the outcome and was made without the outcomes of this study;
            it is subtracted from them.
        residual_range: public bounds of outcome minus prediction; what lies outside is clamped.

    `signal`, `residual` and `features` steer the weights. They do not enter the guarantee.
    """

    goal: str = BALANCE
    features: tuple[str, ...] = ("covariates", "squares", "products", "score")
    signal: float | None = None
    residual: float | None = None
    spread: str = BY_ARM
    variance_share: Number | None = None
    neighbours: int = 5
    penalty: float | None = None
    prediction: str | None = None
    residual_range: tuple[Number, Number] | None = None

    def spreads(self, study: Study) -> tuple[float, float]:
        """Return what is supposed of a study's outcomes: `signal` and `residual`, or what is usual."""
        usual = _CLOSE if self.goal == MATCHING else supposed_spread(study.outcome_range)
        return self.signal or usual, self.residual or usual

    def __post_init__(self) -> None:
        for field in fields(self):
            words, fits = _ALLOWED[field.name]
            if not fits(getattr(self, field.name)):
                raise _refusal(field.name, words, getattr(self, field.name))
        if (self.prediction is None) != (self.residual_range is None):
            raise ParameterError(
                "CV-P221",
                "a prediction and the range of its residuals belong together",
                expected="prediction= with residual_range=(lowest, highest), or neither",
                got=f"prediction={shown(self.prediction)}, residual_range={shown(self.residual_range)}",
                fix="state how far outcomes can be from the prediction, from public knowledge",
            )


def _bounds(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    try:
        return exact(value[0], "lowest") < exact(value[1], "highest")
    except CounterveilError:
        return False


def _share(value: Any) -> bool:
    try:
        return value is None or 0 <= exact(value, "variance_share") < 1
    except CounterveilError:
        return False


_POSITIVE_OR_NONE = (
    "a finite number above 0, or None",
    lambda value: value is None or between(value, 0, math.inf),
)
# For each setting what is allowed, in words and as a test.
_ALLOWED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "goal": (f"{BALANCE!r} or {MATCHING!r}", lambda goal: goal in (BALANCE, MATCHING)),
    "features": (
        f"one or more of {', '.join(map(repr, BLOCKS))}",
        lambda names: (
            isinstance(names, tuple | list)
            and len(names) > 0
            and all(name in tuple(BLOCKS) for name in names)
        ),
    ),
    "signal": _POSITIVE_OR_NONE,
    "residual": _POSITIVE_OR_NONE,
    "spread": (f"{BY_ARM!r} or {BY_ROW!r}", lambda spread: spread in (BY_ARM, BY_ROW)),
    "variance_share": ("a number of at least 0 and below 1, or None", _share),
    "neighbours": (
        "a whole number of at least 1",
        lambda count: whole(count, 1),
    ),
    "penalty": _POSITIVE_OR_NONE,
    "prediction": ("the name of a covariate, or None", lambda name: name is None or isinstance(name, str)),
    "residual_range": ("(lowest, highest) with lowest < highest, or None", _bounds),
}


def _refusal(name: str, expected: str, value: object) -> ParameterError:
    return ParameterError(
        "CV-P220",
        f"the weighting setting {name} is out of range",
        expected=f"{name}: {expected}",
        got=f"{name}={shown(value)}",
        fix="leave the setting out, or pass a value inside the range",
    )
