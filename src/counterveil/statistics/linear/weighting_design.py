"""What covariates and treatments alone decide about weighting: features, weights, remaining imbalance.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Range, Study, Table
from counterveil.errors import CounterveilError, ParameterError, shown
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand, Number, exact
from counterveil.results.settings import between, supposed_spread, whole
from counterveil.statistics.linear.kernels.balancing_weights import (
    ArmPair,
    Target,
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.statistics.linear.kernels.weight_features import ColumnKind, FeatureShares, weight_features
from counterveil.statistics.linear.matching_design import Scored, match

# What may be chosen about optimal weights.


BALANCE, MATCHING = "balance", "matching"
# The spread that is supposed close to matching, where the imbalance to be left is that of matching.
_CLOSE = 1 / 16
BY_ARM, BY_ROW = "arm", "row"
# Set by `python -m experiments.weighting_tuning.tune`, products by `experiments.outcome_level --tuning`.
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


_TARGETS: Mapping[Estimand, Target] = {Estimand.ATE: "ATE", Estimand.ATT: "ATT", Estimand.ATC: "ATC"}
# The equations of the weights hold to this, in standard deviations of a feature: far below what is left of any
# imbalance, and of the noise.
_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """For every row its arm and its propensity score."""

    treated: NDArray[np.bool_]
    score: Floats

    @property
    def arms(self) -> tuple[int, int]:
        """Number of treated and of control rows."""
        treated = int(np.count_nonzero(self.treated))
        return treated, len(self.treated) - treated


@dataclass(frozen=True, slots=True)
class Weighted:
    """Features (n, p) of total variance one, the weights (n,) of an effect, and how far they are from balance.

    `imbalance`: root mean square bias of the estimate when the mean outcome is linear in the features in a
    random direction and varies by one standard deviation over the rows. `gaps` (p,): squared bias when it has
    slope one on one of the features. `arms` holds the treated and the control rows with the sums over them.
    """

    features: NDArray[np.floating]
    arms: ArmPair
    weights: Floats
    imbalance: float
    gaps: Floats

    @classmethod
    def of(
        cls,
        features: NDArray[np.floating],
        arms: ArmPair,
        weights: Floats,
        totals: Floats,
        estimand: Estimand,
    ) -> Weighted:
        """Return weights whose sizes give the arms these feature totals (2, p), and the imbalance that they leave."""
        apart, together = squared_gaps(arms, totals, estimand)
        left = sqrt(max(float(apart.sum()), float(together.sum())))
        return cls(features, arms, weights, left, np.maximum(apart, together))


def covariate_lines(table: Table, order: NDArray[np.intp] | None = None) -> Floats:
    """Return a line (n,) of values or codes for each covariate, (d, n), rows in this order if one is given."""
    domains = table.study.covariates
    lines = np.empty((len(domains), table.rows))
    for line, name in zip(lines, domains, strict=True):
        line[...] = table.covariates[name] if order is None else np.take(table.covariates[name], order)
    lines.setflags(write=False)
    return lines


def features_of(
    table: Table, score: Floats, settings: WeightingSettings, lines: Floats | None = None
) -> NDArray[np.floating]:
    """Return the centred features (n, p) that are balanced, scaled to a total variance of one."""
    shares = {name: BLOCKS[name] if name in settings.features else 0.0 for name in BLOCKS}
    return shared_features(
        table,
        score,
        FeatureShares(
            shares["covariates"],
            shares["squares"],
            shares["score"],
            shares["strata"],
            products=shares["products"],
        ),
        lines,
    )


def shared_features(
    table: Table, score: Floats, shares: FeatureShares, lines: Floats | None = None
) -> NDArray[np.floating]:
    """Return centred features (n, p) with these shares of a total variance of one."""
    domains = table.study.covariates.values()
    kinds: list[ColumnKind] = [
        "number" if isinstance(domain, Range) else "binary" if isinstance(domain, Binary) else "label"
        for domain in domains
    ]
    lines = covariate_lines(table) if lines is None else lines
    return weight_features(lines.T, kinds, score, shares, total=1.0)


def weighted(
    table: Table,
    design: Scored | ScoredRows,
    settings: WeightingSettings,
    estimand: Estimand,
    noise_variance: float,
    lines: Floats | None = None,
) -> Weighted:
    """Return the weights of least supposed error; `noise_variance` is that of the noise at sensitivity one.

    `lines` are the covariates of the table, where they are at hand.
    """
    features = features_of(table, design.score, settings, lines)
    target = _TARGETS[estimand]
    reference = None
    if settings.goal == MATCHING:
        assert isinstance(design, Scored)  # as `weighting_design` makes it
        reference = match(design, settings.neighbours, (None, None), target).matching.coefficients
    supposed = WeightSettings(*settings.spreads(table.study), _TOLERANCE)
    arms = arm_rows(features, design.treated, precision(supposed, len(design.treated)))
    found = balance_weights(
        features,
        design.treated,
        noise_variance=noise_variance,
        target=target,
        reference=reference,
        settings=supposed,
        rows=arms,
    )
    return Weighted.of(features, arms, found.values, found.totals, estimand)


def squared_gaps(arms: ArmPair, totals: Floats, estimand: Estimand) -> tuple[Floats, Floats]:
    """Return each feature's squared gap between an arm's totals (2, p) and the mean of those whose effect is asked for.

    The slopes of the two arms' mean outcomes may have nothing to do with each other, or be the same: (p,)
    squared biases for both.
    """
    whose = {Estimand.ATE: arms, Estimand.ATT: arms[:1], Estimand.ATC: arms[1:]}[estimand]
    gaps = totals - sum(arm.totals for arm in whose) / sum(arm.size for arm in whose)
    return gaps[0] ** 2 + gaps[1] ** 2, (gaps[0] - gaps[1]) ** 2
