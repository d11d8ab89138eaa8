"""Settings of methods that protect outcomes and weight them with public weights: matching, weighting, several arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Number, exact
from counterveil.settings.ranges import (
    NONE,
    POSITIVE,
    Allowed,
    Settings,
    exactly,
    is_whole,
    one_of,
    out_of_range,
    setting,
    whole,
)

# Limits on reuse in matching.
AUTO, BEST, ADAPTIVE = "auto", "best", "adaptive"
# What the variance of outcomes is estimated from.
BY_ARM, BY_ROW = "arm", "row"
# What weights aim at.
BALANCE, MATCHING = "balance", "matching"
# Set by `python -m experiments.weighting_tuning.tune`, products by `experiments.outcome_level --tuning`, terms and
# bends by `experiments.outcome_level.redrawn --tuning`, leaves by `experiments.outcome_level.leaves --tuning`.
# The blocks of features, and how the supposed variance of the mean outcome is divided among them.
BLOCKS: Final = {
    "covariates": 0.7,
    "squares": 0.3,
    "products": 0.04,
    "score": 0.1,
    "strata": 0.1,
    "terms": 0.15,
    "bends": 0.15,
    "leaves": 0.15,
}
# Beside the terms that treatment follows, each with its part of their share, the share of their sum.
DIRECTION: Final = 0.1
# The correlation supposed of the two arms' mean outcomes, over covariates and over what treatment follows: effects
# may vary with covariates by nine tenths of what outcomes vary by, along the score by less than half.
# How they were set: experiments/causal/RESULTS_OUTCOME.md.
ALIKE: Final = (0.6, 0.9)
# The part of that correlation that intervals count on.
ALLOWED_ALIKE: Final = 0.8
# The bias that intervals of observational studies allow for, in standard errors without it; set like the terms. Of many
# covariates most products are not balanced: it grows with them, up to twice as much, after a look at settings of ACIC
# 2016 that it had not been set on (experiments/causal/RESULTS_OUTCOME.md).
ALLOWED_BIAS: Final = 0.5
MOST_BIAS: Final = 1.0
_FEW_COVARIATES: Final = 25
# What is balanced where nothing is said, by goal.
_USUAL: Final = {
    BALANCE: ("covariates", "squares", "products", "score", "terms", "bends", "leaves"),
    MATCHING: ("covariates", "squares", "products", "score"),
}

# Supposed standard deviations of outcomes, over the covariates and around their mean, as a part of their range. They
# trade noise for balance; they are public and no part of a guarantee.
NUMBERS: Final = 1 / 8
YES_OR_NO: Final = 3 / 8
# The same close to matching, where the imbalance to be left is that of matching.
_CLOSE: Final = 1 / 16
# Parts of these that are supposed where intervals need no more. No imbalance of a trial follows outcomes but by chance,
# and its interval holds what is left: there the first is less. An interval for the largest variance there can be holds
# more than any imbalance that is left: there both are less. Set by `python -m experiments.outcome_level.supposed`.
IN_TRIALS: Final = 1 / 2
FOR_VALUE_ALONE: Final = 1 / 2
# What `variance_share` takes.
_SHARE: Final = exactly("a number of at least 0 and below 1", lambda share: 0 <= share < 1) | NONE


def assumed_sd(outcome_range: tuple[Fraction, Fraction]) -> float:
    """Return the standard deviation assumed of outcomes, over the covariates and around them.

    It is a part of their range. Outcomes declared from 0 to 1 are mostly binary, which vary as much as outcomes can.
    Others fill their range less. Assuming too little leaves imbalance correlated with outcomes that no interval
    covers; assuming too much makes weights, and noise, somewhat larger than they need to be.
    """
    low, high = outcome_range
    return YES_OR_NO if low == 0 and high == 1 else NUMBERS


def allowed_bias(bias: float | None, randomised: bool, covariates: int) -> float:
    """Return what intervals of a study allow for bias, in standard errors from sampling; None is the usual."""
    if bias is not None:
        return float(bias)
    grown = ALLOWED_BIAS * max(covariates / _FEW_COVARIATES, 1.0)
    return 0.0 if randomised else min(grown, MOST_BIAS)


@dataclass(frozen=True, slots=True)
class DifferenceInMeans(Settings):
    """Settings of `method="difference_in_means"` with `protects="outcome"`.

    Attributes:
        variance_share: the share of the budget that buys the variance of the estimate; None chooses it, and 0
            leaves everything to the estimate, with an interval for the largest variance there can be.
    """

    variance_share: Number | None = setting(None, _SHARE)


@dataclass(frozen=True, slots=True)
class Matching(Settings):
    """Settings of `method="matching"` with `protects="outcome"`.

    Attributes:
        neighbours: how many units of the other arm stand in for one unit.
        limit: how often one unit may be used. "best" takes the limit with the least expected error at the
            budget asked for; "adaptive" the published rule (PrivATE, equations 9 and 10), raised until
            everyone can be matched; a whole number k stands for k times `neighbours` uses in the smaller
            arm and in proportion in the other; None sets no limit. "auto" is "best", and "adaptive" in the
            published form.
        penalty: of the propensity model; None is one over the number of rows.
        c: the error coefficient of equation 9.
        variance_by: what the variance is estimated from: "arm", the variance of outcomes around lines in the
            covariates, one for each of up to four parts of an arm by the size of coefficients, or "row", pairs
            of rows next to each other in the score, which allows for variances that differ within these and
            makes intervals longer. "auto" is "arm", and "row" where rows times squared columns of covariates
            exceed eight million.
    """

    neighbours: int = setting(5, whole(1))
    limit: int | str | None = setting(AUTO, one_of(AUTO, BEST, ADAPTIVE, None) | whole(1))
    penalty: float | None = setting(None, POSITIVE | NONE)
    c: float = setting(0.01, POSITIVE)
    variance_by: str = setting(AUTO, one_of(AUTO, BY_ARM, BY_ROW))


def asked_share(settings: Settings | None) -> Fraction | None:
    """Return the share of the budget for the variance that settings name, None where it is to be chosen."""
    share = getattr(settings, "variance_share", None)
    return None if share is None else exact(share, "variance_share")


def _are_features(names: Any) -> bool:
    listed = isinstance(names, tuple | list) and len(names) > 0
    return listed and all(isinstance(name, str) and name in BLOCKS for name in names)


def _are_bounds(value: Any) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    try:
        return exact(value[0], "lowest") < exact(value[1], "highest")
    except CounterveilError:
        return False


@dataclass(frozen=True, slots=True)
class Weighting(Settings):
    """Settings of `method="weighting"`.

    Attributes:
        goal: "balance" weights each arm towards everyone whose effect is asked for, to come close to the true
            effect; "matching" stays close to matching on the propensity score, with less noise.
        features: what is balanced: "covariates", "squares" (of numbers), "products" (of two of the five
            covariates that go with the propensity score most), "score" (its logit), "strata" (ten groups
            of it), "terms" (bends and products of covariates that treatment follows beyond a line, found by
            score tests), "bends" (cosines of the score's rank), "leaves" (groups of rows between jumps that
            treatment follows beyond the score, found by trees; not in trials). None is all but "strata", and
            close to matching the first four.
        signal: supposed standard deviation of the mean outcome over the features, as a part of the outcome's
            range; None is 3/8 for outcomes from 0 to 1 and 1/8 for others, and 1/16 close to matching; half of the
            first two with `variance_share=0`, and half again for the difference of a trial with `variance_by="arm"`.
        residual: the same of outcomes around that mean, but for trials.
        alike: supposed correlation of the mean outcomes of the two arms over the rows: near 1 where effects hardly
            vary, 0 where an arm says nothing about the other. None is 0.6 over covariates and 0.9 over the
            score, the terms and the leaves. Close to matching it has no use.
        variance_by: "arm" estimates one variance of outcomes an arm, around a line in the features where that
            shortens the interval; "row" lets every row have its own and takes differences of similar rows.
        variance_share: the share of the budget that buys the variance of the estimate; None chooses it, and 0
            leaves everything to the estimate, with an interval for the largest variance there can be.
        bias: what the interval allows for bias that balance leaves: so many times the standard error from sampling.
            None is 1/2 with up to 25 covariates, grows with more up to 1 with 50, and is 0 where the study is declared
            randomised.
        neighbours: of the matching that "matching" stays close to.
        penalty: of the propensity model; None is one over the number of rows.
        prediction: a covariate that predicts the outcome and was made without the outcomes of this study;
            it is subtracted from them.
        residual_range: public bounds of outcome minus prediction; what lies outside is clamped.

    `signal`, `residual`, `alike` and `features` steer the weights. They do not enter the guarantee.
    """

    goal: str = setting(BALANCE, one_of(BALANCE, MATCHING))
    features: tuple[str, ...] | None = setting(
        None, Allowed(f"one or more of {', '.join(map(repr, BLOCKS))}", _are_features) | NONE
    )
    signal: float | None = setting(None, POSITIVE | NONE)
    residual: float | None = setting(None, POSITIVE | NONE)
    alike: float | None = setting(
        None,
        exactly("a number of at least 0 and at most 0.99", lambda part: 0 <= part <= Fraction(99, 100))
        | NONE,
    )
    variance_by: str = setting(BY_ARM, one_of(BY_ARM, BY_ROW))
    variance_share: Number | None = setting(None, _SHARE)
    bias: float | None = setting(None, exactly("a number of at least 0", lambda bias: bias >= 0) | NONE)
    neighbours: int = setting(5, whole(1))
    penalty: float | None = setting(None, POSITIVE | NONE)
    prediction: str | None = setting(
        None, Allowed("the name of a covariate", lambda name: isinstance(name, str)) | NONE
    )
    residual_range: tuple[Number, Number] | None = setting(
        None, Allowed("(lowest, highest) with lowest < highest", _are_bounds) | NONE
    )

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return what intervals of a study allow for bias, in standard errors from sampling."""
        return allowed_bias(self.bias, randomised, covariates)

    @property
    def balanced(self) -> tuple[str, ...]:
        """The features that are balanced."""
        return _USUAL[self.goal] if self.features is None else tuple(self.features)

    def assumed_sds(self, outcome_range: tuple[Fraction, Fraction]) -> tuple[float, float]:
        """Return the standard deviations assumed of outcomes: `signal` and `residual`, or the usual ones."""
        usual = _CLOSE if self.goal == MATCHING else assumed_sd(outcome_range)
        return self.signal or usual, self.residual or usual

    def _check_together(self) -> None:
        """Refuse a prediction without the range of its residuals; None is returned."""
        if (self.prediction is None) != (self.residual_range is None):
            raise refusal("CV-P221", prediction=self.prediction, residual_range=self.residual_range)


@dataclass(frozen=True, slots=True)
class Arms(Settings):
    """Settings of `arms(method="weighting")` and `arms(method="matching")`.

    Attributes:
        neighbours: matching: how many units of an arm stand in for one unit of another.
        limit: matching: how often one unit may be used; None takes the limit of least expected error.
        penalty: of the multinomial score; None is one over the number of rows.
        signal: what is supposed, as a part of the outcome's range, of the standard deviation of the mean
            outcome over the covariates. It steers the trade-off of balance against noise and nothing else;
            None is 3/8 for outcomes from 0 to 1 and 1/8 for others, as for weighting.
        residual: the same of outcomes around that mean.
        bias: weighting: what the interval of each arm's mean allows for bias that balance leaves: so many times its
            standard error from sampling. None is 1/2 with up to 25 covariates, grows with more up to 1 with 50, and
            is 0 where the study is declared randomised.
    """

    neighbours: int = setting(5, whole(1))
    limit: int | None = setting(None, whole(1) | NONE)
    penalty: float | None = setting(None, POSITIVE | NONE)
    signal: float | None = setting(None, POSITIVE | NONE)
    residual: float | None = setting(None, POSITIVE | NONE)
    bias: float | None = setting(None, exactly("a number of at least 0", lambda bias: bias >= 0) | NONE)

    def assumed_sds(self, outcome_range: tuple[Fraction, Fraction]) -> tuple[float, float]:
        """Return the standard deviations assumed of outcomes: `signal` and `residual`, or the usual ones."""
        usual = assumed_sd(outcome_range)
        return self.signal or usual, self.residual or usual

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return what intervals of a study allow for bias, in standard errors from sampling."""
        return allowed_bias(self.bias, randomised, covariates)


# Settings of comparisons within strata.


# Where no limit is given: strata with a quarter to three quarters treated count in full.
_USUAL_LIMIT = Fraction(4)
_LEAST_LIMIT = Fraction(2)
_MOST_BINS = 64


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True)
class Stratified(Settings):
    """Settings of `method="stratified"`: how strata are made and weighed; every number is public.

    Attributes:
        strata: the covariates that make strata; None takes all of them.
        cuts: a number of bins for numeric covariates without cut points, bought as private quantiles.
        limit: the most that one person's outcome may count, in persons; None means 4.
    """

    strata: tuple[str, ...] | None = setting(
        None, Allowed("a list of names of covariates", _are_names) | NONE
    )
    cuts: Mapping[str, int] | None = setting(
        None,
        Allowed(
            "a mapping from names of covariates to numbers of bins", lambda cuts: isinstance(cuts, Mapping)
        )
        | NONE,
    )
    limit: Number | None = setting(
        None, exactly("at least 2 (one person and one match)", lambda limit: limit >= _LEAST_LIMIT) | NONE
    )

    def _check_together(self) -> None:
        """Refuse numbers of bins out of range; None is returned."""
        if self.strata is not None:
            self._put("strata", tuple(self.strata))
        for name, bins in (self.cuts or {}).items():
            if not is_whole(bins, 2, _MOST_BINS):
                words = f"a number of bins from 2 to {_MOST_BINS}"
                raise out_of_range(type(self).__name__, f"cuts[{name!r}]", words, bins)

    @property
    def exact_limit(self) -> Fraction:
        """The limit as a rational."""
        return _USUAL_LIMIT if self.limit is None else exact(self.limit, "limit")
