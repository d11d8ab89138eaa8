"""The settings of methods, and what each may be, checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Number, exact

# Beyond it a setting means nothing, and what is computed from it is not finite.
LARGEST = 1e300
_ALLOWED = "allowed"


def is_whole(value: Any, least: int, most: float = inf) -> bool:
    """Return whether a value is a whole number from `least` to `most`; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: Any, least: float = -inf, most: float = inf) -> bool:
    """Return whether a value is a finite number from `least` to `most`; True and False are none."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared rather than converted: a whole number beyond the largest double has no float.
    return real and -LARGEST <= value <= LARGEST and least <= value <= most


def is_one_of(value: Any, *known: object) -> bool:
    """Return whether a value is one of those known, and of its type: an array is equal to nothing as a whole."""
    return any(type(value) is type(each) and value == each for each in known)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a setting may take, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(f"{self.words}, or {other.words}", lambda value: self.fits(value) or other.fits(value))


NONE = Allowed("None", lambda value: value is None)
FLAG = Allowed("True or False", lambda value: isinstance(value, bool))
POSITIVE = Allowed("a number above 0", lambda value: is_number(value) and value > 0)


def one_of(*known: object) -> Allowed:
    """Return the range of a few values."""
    words = [repr(each) for each in known]
    return Allowed(" or ".join([", ".join(words[:-1]), words[-1]]), lambda value: is_one_of(value, *known))


def whole(least: int, most: int | None = None) -> Allowed:
    """Return the range of whole numbers from `least` to `most`."""
    words = f"of at least {least}" if most is None else f"from {least} to {most}"
    return Allowed(
        f"a whole number {words}", lambda value: is_whole(value, least, inf if most is None else most)
    )


def within(low: float, high: float) -> Allowed:
    """Return the range of numbers from `low` to `high`."""
    return Allowed(f"a number from {low:g} to {high:g}", lambda value: is_number(value, low, high))


def between(low: float, high: float) -> Allowed:
    """Return the range of numbers above `low` and below `high`."""
    words = f"a number above {low:g} and below {high:g}"
    return Allowed(words, lambda value: is_number(value) and low < value < high)


def exactly(words: str, fits: Callable[[Any], bool]) -> Allowed:
    """Return the range of numbers that are read exactly, of which `fits` tells whether they are inside."""

    def inside(value: Number | None) -> bool:
        try:
            return value is not None and fits(exact(value, "the setting"))
        except CounterveilError:
            return False

    return Allowed(words, inside)


def setting(default: Any, allowed: Allowed) -> Any:
    """Return the field of a settings class, with its default and its range."""
    return field(default=default, metadata={_ALLOWED: allowed})


def range_of(each: Field[Any]) -> str:
    """Return the range of a setting in words; empty where everything of its type is allowed."""
    allowed = each.metadata.get(_ALLOWED)
    return "" if allowed is None else allowed.words


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a method: every field is compared with its range when an object is made.

    `_published` are names that ask for a paper's method, with what it is called in `cv.published`.
    """

    _published: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *_: object, **named: object) -> Self:
        """Refuse names that are no settings of the method, as CV-P020, or CV-P027 where a paper's method has them."""
        known = [each.name for each in fields(cls)]
        for name in named.keys() - known:
            got, expected = f"{name}={shown(named[name])}", f"settings of {cls.__name__}: {', '.join(known)}"
            if name in cls._published:
                raise refusal("CV-P027", expected=expected, got=got, form=cls._published[name])
            raise refusal("CV-P020", expected=expected, got=got)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for each in fields(self):
            allowed = each.metadata.get(_ALLOWED)
            if allowed is not None and not allowed.fits(getattr(self, each.name)):
                raise self._refusal(each.name, allowed.words)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse values that do not go together; None is returned."""

    def _refusal(self, name: str, expected: str) -> CounterveilError:
        """Return the refusal of one setting."""
        return out_of_range(type(self).__name__, name, expected, getattr(self, name))

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def out_of_range(of: str, name: str, expected: str, value: object) -> CounterveilError:
    """Return the refusal of one setting of `of`."""
    return refusal("CV-P025", name=name, of=of, expected=expected, value=value)


# Settings of methods that protect outcomes and weight them with public weights: matching, weighting, several arms.
#
# Settings of methods that protect whole records and release moments of them.
#
# Settings of questions other than the average effect: effects that differ between people, pooling, survival.


# Limits on reuse in matching.
AUTO, BEST, ADAPTIVE = "auto", "best", "adaptive"
# What the variance of outcomes is estimated from.
BY_ARM, BY_ROW = "arm", "row"
# Set by `python -m experiments.weighting_tuning.tune`, products by `experiments.outcome_level --tuning`, terms and
# bends by `experiments.outcome_level.redrawn --tuning`, leaves by `experiments.outcome_level.leaves --tuning`.
# The blocks of features, and how the supposed variance of the mean outcome is divided among them.
BLOCKS: Final = {
    "covariates": 0.7,
    "squares": 0.3,
    "products": 0.04,
    "score": 0.1,
    "strata": 0.1,
    "selected_terms": 0.15,
    "score_basis": 0.15,
    "tree_leaves": 0.15,
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
# What is balanced where nothing is said.
_USUAL: Final = ("covariates", "squares", "products", "score", "selected_terms", "score_basis", "tree_leaves")

# Supposed standard deviations of outcomes, over the covariates and around their mean, as a part of their range. They
# trade noise for balance; they are public and no part of a guarantee.
NUMBERS: Final = 1 / 8
YES_OR_NO: Final = 3 / 8
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
        variance_share: the share of the budget spent on the variance of the estimate; None chooses it, and 0
            leaves everything to the estimate, with an interval for the largest variance there can be.
        find_range: spend a part of the budget on a shorter range of outcomes, and clamp them to it. The
            interval then assumes that no outcome lies far beyond it.
    """

    variance_share: Number | None = setting(None, _SHARE)
    find_range: bool = setting(False, FLAG)


@dataclass(frozen=True, slots=True)
class Matching(Settings):
    """Settings of `method="matching"` with `protects="outcome"`.

    Attributes:
        neighbours: how many units of the other arm stand in for one unit.
        limit: how often one unit may be used. "best" takes the limit with the least expected error;
            "adaptive" the published rule (PrivATE, equations 9 and 10), raised until everyone can be matched;
            a whole number k allows k times `neighbours` uses in the smaller arm and in proportion in the
            other; None sets no limit. "auto" is "best", and "adaptive" in the
            published form.
        c: the error coefficient of equation 9.
        variance_by: what the variance is estimated from: "arm", outcomes around linear fits in the
            covariates, one for each of up to four parts of an arm by the size of coefficients, or "row",
            pairs of rows next to each other in the score, which allows for unequal variances and makes
            intervals longer. "auto" is "arm", and "row" where rows times squared columns of covariates
            exceed eight million.
    """

    neighbours: int = setting(5, whole(1))
    limit: int | str | None = setting(AUTO, one_of(AUTO, BEST, ADAPTIVE, None) | whole(1))
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
        features: what is balanced: "covariates", "squares" (of numbers), "products" (of two of the five
            covariates most related to the propensity score), "score" (its logit), "strata" (ten groups of
            it), "selected_terms" (nonlinear and interaction terms that predict treatment, found by score tests),
            "score_basis" (cosines of its rank), "tree_leaves" (of boosted propensity trees; not in trials). None
            is all but "strata".
        signal: assumed SD of E[Y|X] as a fraction of the outcome's range; None is 3/8 for outcomes from 0 to
            1 and 1/8 for others; half of that
            with `variance_share=0`, and half again for the difference of a trial with `variance_by="arm"`.
        residual: the same of outcomes around that mean, but for trials.
        arm_correlation: assumed correlation of E[Y(1)|X] and E[Y(0)|X] over the rows; near 1 where effects hardly
            vary. None is 0.6 over covariates and 0.9 over the
            score, the terms and the leaves.
        variance_by: "arm" estimates one variance of outcomes an arm, around a line in the features where that
            shortens the interval; "row" lets every row have its own and takes differences of similar rows.
        variance_share: the share of the budget spent on the variance of the estimate; None chooses it, and 0
            leaves everything to the estimate, with an interval for the largest variance there can be.
        bias: bias allowance of the interval, in sampling standard errors.
            None is 1/2 with up to 25 covariates, grows with more up to 1 with 50, and is 0 where the study is declared
            randomised.
        prediction: a covariate that predicts the outcome and was made without the outcomes of this study;
            it is subtracted from them.
        residual_range: public bounds of outcome minus prediction; what lies outside is clamped.
        find_range: spend a part of the budget on a shorter range of outcomes, and clamp them to it. The
            interval then assumes that no outcome lies far beyond it.

    `signal`, `residual`, `arm_correlation` and `features` steer the weights. They do not enter the guarantee.
    """

    features: tuple[str, ...] | None = setting(
        None, Allowed(f"one or more of {', '.join(map(repr, BLOCKS))}", _are_features) | NONE
    )
    signal: float | None = setting(None, POSITIVE | NONE)
    residual: float | None = setting(None, POSITIVE | NONE)
    arm_correlation: float | None = setting(
        None,
        exactly("a number of at least 0 and at most 0.99", lambda part: 0 <= part <= Fraction(99, 100))
        | NONE,
    )
    variance_by: str = setting(BY_ARM, one_of(BY_ARM, BY_ROW))
    variance_share: Number | None = setting(None, _SHARE)
    bias: float | None = setting(None, exactly("a number of at least 0", lambda bias: bias >= 0) | NONE)
    prediction: str | None = setting(
        None, Allowed("the name of a covariate", lambda name: isinstance(name, str)) | NONE
    )
    residual_range: tuple[Number, Number] | None = setting(
        None, Allowed("(lowest, highest) with lowest < highest", _are_bounds) | NONE
    )
    find_range: bool = setting(False, FLAG)

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return what intervals of a study allow for bias, in standard errors from sampling."""
        return allowed_bias(self.bias, randomised, covariates)

    @property
    def balanced(self) -> tuple[str, ...]:
        """The features that are balanced."""
        return _USUAL if self.features is None else tuple(self.features)

    def assumed_sds(self, outcome_range: tuple[Fraction, Fraction]) -> tuple[float, float]:
        """Return the standard deviations assumed of outcomes: `signal` and `residual`, or the usual ones."""
        usual = assumed_sd(outcome_range)
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
        bias: weighting: bias allowance of each arm's mean, in sampling standard errors. None is 1/2 with up
            to 25 covariates, grows with more up to 1 with 50, and
            is 0 where the study is declared randomised.
    """

    neighbours: int = setting(5, whole(1))
    bias: float | None = setting(None, exactly("a number of at least 0", lambda bias: bias >= 0) | NONE)

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return what intervals of a study allow for bias, in standard errors from sampling."""
        return allowed_bias(self.bias, randomised, covariates)


# Where no limit is given: strata with a quarter to three quarters treated count in full.
_USUAL_LIMIT = Fraction(4)
_LEAST_LIMIT = Fraction(2)
# Beyond it a bound binds nobody, and its noise has no size that a double could hold.
_MOST_LIMIT = Fraction(10**9)
_MOST_BINS = 64


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True)
class Stratified(Settings):
    """Settings of `method="stratified"`: how strata are made and weighed; every number is public.

    Attributes:
        strata: the covariates that make strata; None takes all of them.
        cuts: a number of bins for numeric covariates without cut points, released as private quantiles.
        limit: the most that one person's outcome may count, in persons, from 2 to 1e9; None means 4.
    """

    _published: ClassVar[Mapping[str, str]] = {"sensitivity": "smooth_matching"}
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
        None,
        exactly(
            "at least 2 (one person and one match) and at most 1e9",
            lambda limit: _LEAST_LIMIT <= limit <= _MOST_LIMIT,
        )
        | NONE,
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


LARGEST_KAPPA = 1.0
KAPPA = Allowed(
    f"a number above 0, at most {LARGEST_KAPPA:g}",
    lambda value: is_number(value) and 0 < value <= LARGEST_KAPPA,
)


@dataclass(frozen=True, slots=True)
class Auto(Settings):
    """Settings of `method="auto"`.

    Attributes:
        kappa: your bound on confounding, for records whose adjustment the budget does not support:
            |comparison - effect| is at most kappa sd(outcome) / (0.75 sd(treatment)), for the comparison that
            the result names. The interval covers if the bound holds. Without it such questions are refused
            and nothing is spent.
    """

    kappa: float | None = setting(None, KAPPA | NONE)


@dataclass(frozen=True, slots=True)
class Trial(Settings):
    """Settings of `method="trial"`; all of them are public.

    Attributes:
        adjustment: "none" compares the arms as they are; "covariates" subtracts a linear prediction made of
            released moments, which shortens the interval where covariates predict outcomes; "auto" adjusts in
            a declared trial where rows and budget support it.
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
        degree: 1 for the covariates themselves, 2 with squares and products, "auto" for as many of these as
            rows and budget support.
        kappa: a bound on confounding, yours to declare: |difference in means - effect| is at most
            kappa sd(outcome) / (0.75 sd(treatment)). Where the budget does not support adjustment, the difference in
            means is then the answer, with an interval that covers if the bound holds; without it such questions are
            refused and nothing is spent.
    """

    degree: int | str = setting("auto", one_of(1, 2, "auto"))
    kappa: float | None = setting(None, KAPPA | NONE)


@dataclass(frozen=True, slots=True)
class Groups(Settings):
    """Settings of `groups`, `policy_value` and `targeting_curve` with `protects="record"`.

    Attributes:
        clip: a public bound on the size of a person's score, in units of the outcome; larger ones are clipped.
            None releases a histogram of the scores with a small part of the budget and chooses from it.
    """

    clip: float | None = setting(None, POSITIVE | NONE)


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
BOUND = exactly("a number above 0", lambda bound: bound > 0) | NONE


@dataclass(frozen=True, slots=True)
class Folds(Settings):
    """Settings of `method="sample_and_aggregate"`; all of them are public.

    Attributes:
        learner: "ols", "aipw", a `ModelPair` of two estimators in scikit-learn's style, or a function of
            (X, t, y), arrays of one fold, that returns an effect. It must keep nothing between folds;
            Python's and numpy's global generators start every fold from the same state.
        folds: how many; None chooses from n, the covariates, the budget and, where it is released, the variance
            of outcomes.
        bound: each fold's effect is clipped to plus or minus this. None, with a learner of ours, clips around
            the private comparison of the arms by its released variance; with another learner it takes the
            width of the outcome's range.
    """

    learner: Any = setting("ols", _LEARNER)
    folds: int | None = setting(None, whole(3) | NONE)
    bound: Number | None = setting(None, BOUND)


@dataclass(frozen=True, slots=True)
class Cate(Settings):
    """Settings of the methods "t_learner" and "r_learner".

    Attributes:
        basis: functions of a number: "legendre" polynomials, "cosine" waves (whose slope is zero at the ends
            of the range: intervals do not cover that), or cubic "spline" functions on evenly spaced knots.
        degree: total degree of the functions; None follows public numbers. Splines have `knots` instead.
        products: whether functions of several covariates are multiplied; None does where there are at most three.
        knots: inner knots of the splines of one covariate.
    """

    basis: str = setting("legendre", one_of("legendre", "cosine", "spline"))
    degree: int | None = setting(None, whole(1, 8) | NONE)
    products: bool | None = setting(None, FLAG | NONE)
    knots: int = setting(3, whole(1, 20))


@dataclass(frozen=True, slots=True)
class Series(Settings):
    """Settings of `cate(protects="outcome")`, by the method "series".

    Attributes:
        degree: highest degree of the polynomials; None takes 6 where functions of several covariates are multiplied
            and 3 otherwise, less where rows are few. Which of them are measured follows public and released numbers.
        products: whether functions of several covariates are multiplied; None does where there are at most three.
    """

    degree: int | None = setting(None, whole(1, 8) | NONE)
    products: bool | None = setting(None, FLAG | NONE)


_WEIGHT = Allowed("a number above 0, at most 1", lambda weight: is_number(weight) and 0 < weight <= 1)
_WEIGHTS = Allowed(
    "for each site a number above 0, at most 1",
    lambda own: isinstance(own, Mapping) and all(map(_WEIGHT.fits, own.values())),
)
_VARIANCES = Allowed(
    "finite numbers of at least 0",
    lambda least: isinstance(least, Mapping) and all(is_number(one, 0) for one in least.values()),
)
Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class WeightLimits(Settings):
    """The most weight of each site of `pool`, and the least variance that each is weighed with.

    They keep one site from taking over an average whose sites do not trust each other.

    Attributes:
        max_weight: for sites without a limit in `own`; with few sites it is raised to one over their number.
        own: limits of single sites, by name.
        min_variance: variances that no site goes below, such as that of the least noise it can have.
    """

    max_weight: float = setting(0.5, _WEIGHT)
    own: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _WEIGHTS})
    min_variance: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _VARIANCES})

    def most(self, sites: Named) -> NDArray[np.float64]:
        """Return the most weight (J,) of each site."""
        usual = max(self.max_weight, 1 / len(sites))
        return np.array([max(self.own.get(name, usual), 1 / len(sites)) for name, _ in sites])

    def least(self, sites: Named) -> NDArray[np.float64]:
        """Return the least variance (J,) of each site."""
        return np.array([self.min_variance.get(name, 0.0) for name, _ in sites])


_NAMES = Allowed(
    "a tuple of names of covariates",
    lambda names: isinstance(names, tuple) and bool(names) and all(isinstance(one, str) for one in names),
)


@dataclass(frozen=True, slots=True)
class Survival(Settings):
    """Settings of `survival`; all of them are public.

    Attributes:
        strata: covariates that make the strata of `method="stratified"`; None takes all of them.
        censoring: where in a time cell people are censored: in the "middle" (at risk for the part of the cell that
            they were followed), or at its "end" (times recorded on the grid itself: at risk for all of it).
        release: "flat" releases counts, "sums" their running sums, whose noise grows less with the number of cells;
            "auto" takes the one of least expected noise at this number of cells.
    """

    strata: tuple[str, ...] | None = setting(None, _NAMES | NONE)
    censoring: str = setting("middle", one_of("middle", "end"))
    release: str = setting("auto", one_of("auto", "flat", "sums"))
