"""The settings of methods, and what each may be, checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Number, exact

# Beyond it a setting means nothing, and what is computed from it is not finite.
LARGEST = 1e300


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


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a method: each field is compared with the values that it may have when an object is made.

    `_allowed` holds these values by field; a field that is not there takes everything of its type.
    `_published` are names that ask for a paper's method, with what it is called in `cv.published`.
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {}
    _published: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *_: object, **named: object) -> Self:
        """Refuse names that are no settings of the method, as CV-P020, or CV-P027 where a paper's method has them."""
        settings = [field.name for field in fields(cls)]
        for name in named.keys() - settings:
            got = f"{name}={shown(named[name])}"
            expected = f"settings of {cls.__name__}: {', '.join(settings)}"
            if name in cls._published:
                raise refusal("CV-P027", expected=expected, got=got, form=cls._published[name])
            raise refusal("CV-P020", expected=expected, got=got)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name, allowed in self._allowed.items():
            if not allowed.fits(getattr(self, name)):
                raise self._refusal(name, allowed.words)
        self._check_together()

    @classmethod
    def range_of(cls, name: str) -> str:
        """Return the values that a field may have, in words.

        Parameters
        ----------
        name : str
            Name of the field.

        Returns
        -------
        str
            The values; empty where everything of the field's type is allowed.
        """
        allowed = cls._allowed.get(name)
        return "" if allowed is None else allowed.words

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


# Values of `Matching.limit` that are no numbers.
AUTO, BEST, ADAPTIVE = "auto", "best", "adaptive"
# What the variance of outcomes is estimated from.
BY_ARM, BY_ROW = "arm", "row"
# Shares of the assumed variance of E[Y|X] among the blocks of features. Set by `python -m
# experiments.weighting_tuning.tune`, products by `experiments.outcome_level --tuning`, selected terms and score basis
# by `experiments.outcome_level.redrawn --tuning`, leaves by `experiments.outcome_level.leaves --tuning`.
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
# Share of the sum of the selected terms, beside the terms themselves.
DIRECTION: Final = 0.1
# Assumed correlation of E[Y(1)|X] and E[Y(0)|X], over the covariates and over the functions of the propensity score.
# With correlation r and equal variances, sd(effect) = sqrt(2 (1 - r)) sd(outcome): 0.89 and 0.45.
# How they were set: experiments/causal/RESULTS_OUTCOME.md.
ALIKE: Final = (0.6, 0.9)
# Intervals assume this fraction of that correlation.
ALLOWED_ALIKE: Final = 0.8
# Bias that intervals of observational studies allow for, in sampling standard errors. With many covariates most
# products are not balanced, so it grows from ALLOWED_BIAS at 25 covariates to MOST_BIAS at 50. How they were set:
# experiments/causal/RESULTS_OUTCOME.md; the growth after looking at settings of ACIC 2016.
ALLOWED_BIAS: Final = 0.5
MOST_BIAS: Final = 1.0
_FEW_COVARIATES: Final = 25
# What is balanced by default.
_DEFAULT_FEATURES: Final = (
    "covariates",
    "squares",
    "products",
    "score",
    "selected_terms",
    "score_basis",
    "tree_leaves",
)

# Assumed standard deviations of E[Y|X] and of Y around it, as fractions of the outcome's range. They trade noise for
# balance; they are public and the privacy guarantee does not depend on them.
NUMBERS: Final = 1 / 8
YES_OR_NO: Final = 3 / 8
# Factors on these. In a trial imbalance is by chance and within the interval, so E[Y|X] is assumed to vary less. An
# interval for the largest possible variance covers any imbalance, so both are assumed to vary less. Set by
# `python -m experiments.outcome_level.supposed`.
IN_TRIALS: Final = 1 / 2
FOR_VALUE_ALONE: Final = 1 / 2
# What `variance_share` takes.
_SHARE: Final = exactly("a number of at least 0 and below 1", lambda share: 0 <= share < 1) | NONE


def assumed_sd(outcome_range: tuple[Fraction, Fraction]) -> float:
    """Return the standard deviation assumed of outcomes, over the covariates and around them.

    It is a fraction of their range. Outcomes declared from 0 to 1 are mostly binary, which vary as much as outcomes
    can. Others fill their range less. Assuming too little leaves imbalance correlated with outcomes that no interval
    covers; assuming too much makes weights, and noise, somewhat larger than they need to be.
    """
    low, high = outcome_range
    return YES_OR_NO if low == 0 and high == 1 else NUMBERS


def allowed_bias(bias: float | None, randomised: bool, covariates: int) -> float:
    """Return the bias that intervals of a study allow for, in sampling standard errors; None takes the default."""
    if bias is not None:
        return float(bias)
    grown = ALLOWED_BIAS * max(covariates / _FEW_COVARIATES, 1.0)
    return 0.0 if randomised else min(grown, MOST_BIAS)


@dataclass(frozen=True, slots=True)
class DifferenceInMeans(Settings):
    """Settings of ``cv.ate(method="difference_in_means", protects="outcome")``.

    Attributes
    ----------
    variance_share : number, optional
        Share of epsilon spent on the variance of the estimate, from 0 to below 1. 0 spends everything on the
        estimate; its interval then assumes the largest variance that outcomes within their range can have.
        Default:
        the share with the shortest expected interval.
    find_range : bool, default False
        Spend a part of epsilon on finding a shorter range of outcomes, and clamp outcomes to it. The interval
        then assumes that no outcome lies far beyond that range.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=400, effect=0.3)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="outcome", epsilon=1, method="difference_in_means",
    ...     settings=cv.settings.DifferenceInMeans(variance_share=0), noise=cv.SeededNoise(1),
    ... )
    >>> low, high = result.interval()
    >>> low < result.estimate < high
    True
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "variance_share": _SHARE,
        "find_range": FLAG,
    }
    variance_share: Number | None = None
    find_range: bool = False


@dataclass(frozen=True, slots=True)
class Matching(Settings):
    """Settings of ``cv.ate(method="matching", protects="outcome")`` and of ``cv.published.outcome_matching``.

    Attributes
    ----------
    neighbours : int, default 5
        M, the number of people of the other arm whose mean outcome is imputed for one person; at least 1.
    limit : {"auto", "best", "adaptive"} or int or None, default "auto"
        How often one person may be used as a match. Noise grows with the largest number of uses.
        "best": the limit of the smallest expected squared error;
        "adaptive": equations 9 and 10 of [1]_, raised until everyone can be matched;
        a whole number k of at least 1: k M uses in the smaller arm, and in proportion to the arms' sizes in
        the larger;
        None: no limit;
        "auto": "best" in `cv.ate`, "adaptive" in the published form.
    c : float, default 0.01
        Error coefficient c of equation 9 of [1]_, above 0; used by ``limit="adaptive"`` alone.
    variance_by : {"auto", "arm", "row"}, default "auto"
        What the sampling variance is estimated from.
        "arm": residuals of linear regressions on the covariates, one in each of up to four parts of an arm,
        by the size of the matching weights;
        "row": differences of neighbours in the propensity score, which allows a variance for each row and
        makes intervals longer;
        "auto": "arm", or "row" where rows times squared columns of covariates exceed eight million.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    References
    ----------
    .. [1] Yuan et al., PrivATE: differentially private average treatment effect estimation for observational
       data.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="outcome", epsilon=2, method="matching",
    ...     settings=cv.settings.Matching(neighbours=1, limit=2), noise=cv.SeededNoise(1),
    ... )
    >>> result.details["neighbours"]
    1
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "neighbours": whole(1),
        "limit": one_of(AUTO, BEST, ADAPTIVE, None) | whole(1),
        "c": POSITIVE,
        "variance_by": one_of(AUTO, BY_ARM, BY_ROW),
    }
    neighbours: int = 5
    limit: int | str | None = "auto"
    c: float = 0.01
    variance_by: str = "auto"


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
    """Settings of ``cv.ate(method="weighting", protects="outcome")``.

    Weights minimise noise plus an assumed squared imbalance. `features`, `signal`, `residual` and
    `arm_correlation` say what is assumed; they steer the weights and do not enter the privacy guarantee.

    Attributes
    ----------
    features : tuple of str, optional
        What is balanced between the arms, one or more of
        "covariates": the covariates themselves;
        "squares": squares of numeric covariates;
        "products": products of two of the five covariates most related to the propensity score;
        "score": the logit of the propensity score;
        "strata": ten groups by the propensity score;
        "selected_terms": nonlinear and interaction terms that predict treatment, found by score tests;
        "score_basis": cosines of the rank of the propensity score;
        "tree_leaves": leaves of boosted trees for the treatment (not in trials).
        Default: all but "strata".
    signal : float, optional
        Assumed standard deviation of E[Y|X], as a fraction of the outcome's range; above 0. Default: 3/8 for
        outcomes declared from 0 to 1 and 1/8 for others; half of that with ``variance_share=0``, and half
        again for a trial with ``variance_by="arm"``.
    residual : float, optional
        Assumed standard deviation of Y around E[Y|X], as a fraction of the outcome's range; above 0. Default:
        3/8 for outcomes declared from 0 to 1 and 1/8 for others; half of that with ``variance_share=0``.
    arm_correlation : float, optional
        Assumed correlation of E[Y(1)|X] and E[Y(0)|X], from 0 to 0.99. 1: constant effects. Default: 0.6 over
        the covariates, and 0.9 over the propensity score, the selected terms and the tree leaves.
    variance_by : {"arm", "row"}, default "arm"
        What the sampling variance is estimated from.
        "arm": one variance of outcomes in each arm, around a linear fit where that shortens the interval;
        "row": a variance for each row, from differences of similar rows.
    variance_share : number, optional
        Share of epsilon spent on the variance of the estimate, from 0 to below 1. 0 spends everything on the
        estimate; its interval then assumes the largest variance that outcomes within their range can have.
        Default:
        the share with the shortest expected interval.
    bias : float, optional
        Bias that the interval allows for, in sampling standard errors; at least 0. Default: 0 in a declared
        trial, otherwise 1/2 with up to 25 covariates, growing in proportion to their number up to 1 with 50.
    prediction : str, optional
        Name of a covariate that predicts the outcome and was made without the outcomes of this study. It is
        subtracted from them, so that noise follows `residual_range`, which must be given too. Default:
        nothing is subtracted.
    residual_range : (number, number), optional
        Public lowest and highest value of outcome minus prediction, in units of the outcome; differences
        outside are clamped. Goes with `prediction`.
    find_range : bool, default False
        Spend a part of epsilon on finding a shorter range of outcomes, and clamp outcomes to it. The interval
        then assumes that no outcome lies far beyond that range.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), a name that is no field (CV-P020), or one of `prediction` and
        `residual_range` without the other (CV-P221).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="outcome", epsilon=2, method="weighting",
    ...     settings=cv.settings.Weighting(features=("covariates", "score"), bias=0), noise=cv.SeededNoise(1),
    ... )
    >>> low, high = result.interval()
    >>> low < result.estimate < high
    True
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "features": Allowed(f"one or more of {', '.join(map(repr, BLOCKS))}", _are_features) | NONE,
        "signal": POSITIVE | NONE,
        "residual": POSITIVE | NONE,
        "arm_correlation": exactly(
            "a number of at least 0 and at most 0.99", lambda part: 0 <= part <= Fraction(99, 100)
        )
        | NONE,
        "variance_by": one_of(BY_ARM, BY_ROW),
        "variance_share": _SHARE,
        "bias": exactly("a number of at least 0", lambda bias: bias >= 0) | NONE,
        "prediction": Allowed("the name of a covariate", lambda name: isinstance(name, str)) | NONE,
        "residual_range": Allowed("(lowest, highest) with lowest < highest", _are_bounds) | NONE,
        "find_range": FLAG,
    }
    features: tuple[str, ...] | None = None
    signal: float | None = None
    residual: float | None = None
    arm_correlation: float | None = None
    variance_by: str = "arm"
    variance_share: Number | None = None
    bias: float | None = None
    prediction: str | None = None
    residual_range: tuple[Number, Number] | None = None
    find_range: bool = False

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return the bias that intervals of a study allow for.

        Parameters
        ----------
        randomised : bool
            Whether the study is a declared trial.
        covariates : int
            Number of covariates.

        Returns
        -------
        float
            `bias`, or its default for such a study, in sampling standard errors.
        """
        return allowed_bias(self.bias, randomised, covariates)

    @property
    def balanced(self) -> tuple[str, ...]:
        """The features that are balanced, the default ones where `features` is None."""
        return _DEFAULT_FEATURES if self.features is None else tuple(self.features)

    def assumed_sds(self, outcome_range: tuple[Fraction, Fraction]) -> tuple[float, float]:
        """Return the standard deviations assumed of E[Y|X] and of Y around it.

        Parameters
        ----------
        outcome_range : (Fraction, Fraction)
            Declared range of the outcome.

        Returns
        -------
        (float, float)
            `signal` and `residual`, or their defaults, as fractions of the outcome's range.
        """
        default = assumed_sd(outcome_range)
        return self.signal or default, self.residual or default

    def _check_together(self) -> None:
        """Refuse a prediction without the range of its residuals; None is returned."""
        if (self.prediction is None) != (self.residual_range is None):
            raise refusal("CV-P221", prediction=self.prediction, residual_range=self.residual_range)


@dataclass(frozen=True, slots=True)
class Arms(Settings):
    """Settings of ``cv.arms(method="weighting")`` and ``cv.arms(method="matching")``.

    Attributes
    ----------
    neighbours : int, default 5
        Matching: the number of people of an arm whose mean outcome is imputed for one person of another; at
        least 1.
    bias : float, optional
        Weighting: bias that the interval of each arm's mean allows for, in sampling standard errors; at least
        0. Default: 0 in a declared trial, otherwise 1/2 with up to 25 covariates, growing in proportion to
        their number up to 1 with 50.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Arms(neighbours=3)
    Arms(neighbours=3, bias=None)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "neighbours": whole(1),
        "bias": exactly("a number of at least 0", lambda bias: bias >= 0) | NONE,
    }
    neighbours: int = 5
    bias: float | None = None

    def allowed_bias(self, randomised: bool, covariates: int) -> float:
        """Return the bias that intervals of a study allow for.

        Parameters
        ----------
        randomised : bool
            Whether the study is a declared trial.
        covariates : int
            Number of covariates.

        Returns
        -------
        float
            `bias`, or its default for such a study, in sampling standard errors.
        """
        return allowed_bias(self.bias, randomised, covariates)


# Default limit: strata with a quarter to three quarters treated count in full.
_DEFAULT_LIMIT = Fraction(4)
_LEAST_LIMIT = Fraction(2)
# Beyond it a bound binds nobody, and its noise has no size that a double could hold.
_MOST_LIMIT = Fraction(10**9)
_MOST_BINS = 64


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True)
class Stratified(Settings):
    """Settings of ``cv.ate(method="stratified")``: how strata are made and weighted.

    Attributes
    ----------
    strata : sequence of str, optional
        Names of the covariates whose combinations of values are the strata. Default: all covariates.
    cuts : mapping of str to int, optional
        For numeric covariates without declared cut points: number of bins, from 2 to 64. The bins are private
        quantiles, which take a part of epsilon. Default: none.
    limit : number, optional
        The most that the outcome of one person may count in the sum of matched differences, in persons,
        from 2 (the person and one match) to 1e9. In a stratum with n1 treated and n0 controls a treated person
        counts 1 + n0 / n1. Larger values keep such strata in full and need more noise. Default: 4, which
        keeps strata with a quarter to three quarters treated.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), a name that is no field (CV-P020), or ``sensitivity=``, which the
        published form `cv.published.smooth_matching` replaces (CV-P027).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth_strata(n=2000, levels=5)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="record", epsilon=2, method="stratified",
    ...     settings=cv.settings.Stratified(strata=["x"], limit=3), noise=cv.SeededNoise(1),
    ... )
    >>> low, high = result.interval()
    >>> low < result.estimate < high
    True
    """

    _published: ClassVar[Mapping[str, str]] = {"sensitivity": "smooth_matching"}
    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "strata": Allowed("a list of names of covariates", _are_names) | NONE,
        "cuts": Allowed(
            "a mapping from names of covariates to numbers of bins", lambda cuts: isinstance(cuts, Mapping)
        )
        | NONE,
        "limit": exactly(
            "at least 2 (one person and one match) and at most 1e9",
            lambda limit: _LEAST_LIMIT <= limit <= _MOST_LIMIT,
        )
        | NONE,
    }
    strata: tuple[str, ...] | None = None
    cuts: Mapping[str, int] | None = None
    limit: Number | None = None

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
        """`limit` as an exact rational, 4 where it is None."""
        return _DEFAULT_LIMIT if self.limit is None else exact(self.limit, "limit")


LARGEST_KAPPA = 1.0
KAPPA = Allowed(
    f"a number above 0, at most {LARGEST_KAPPA:g}",
    lambda value: is_number(value) and 0 < value <= LARGEST_KAPPA,
)


@dataclass(frozen=True, slots=True)
class Auto(Settings):
    """Settings of ``cv.ate(method="auto")``.

    Attributes
    ----------
    kappa : float, optional
        A bound on confounding that you declare, above 0 and at most 1. Where whole records are protected and
        the budget does not support adjustment, the answer is an unadjusted comparison, which the result
        names, with an interval that covers the effect if

            abs(comparison - effect) <= kappa sd(Y) / (0.75 sd(T)).

        Default: none is assumed; such questions are refused, and nothing is spent.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Auto(kappa=0.1)
    Auto(kappa=0.1)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "kappa": KAPPA | NONE,
    }
    kappa: float | None = None


@dataclass(frozen=True, slots=True)
class Trial(Settings):
    """Settings of ``cv.ate(method="trial", protects="record")``.

    Attributes
    ----------
    adjustment : {"auto", "none", "covariates"}, default "auto"
        "none": the difference in means;
        "covariates": a linear prediction from released second moments is subtracted, which shortens the
        interval where covariates predict outcomes;
        "auto": adjust in a declared trial whose rows and budget support it.
    centre : {"auto", "pooled", "arms"}, default "auto"
        With ``adjustment="none"``: what outcomes are centred on before their means are released.
        "pooled": the released mean of everyone, which works with any noise distribution;
        "arms": the released mean of each arm, with less noise where arms are of unequal size;
        "auto": the choice of least expected noise at these rows and this budget.

    Raises
    ------
    CounterveilError
        A value outside its range, or a `centre` together with another `adjustment` than "none" (CV-P025); a
        name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="record", epsilon=1, method="trial",
    ...     settings=cv.settings.Trial(adjustment="none"), noise=cv.SeededNoise(1),
    ... )
    >>> low, high = result.interval()
    >>> low < result.estimate < high
    True
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "adjustment": one_of("auto", "none", "covariates"),
        "centre": one_of("auto", "pooled", "arms"),
    }
    adjustment: str = "auto"
    centre: str = "auto"

    def _check_together(self) -> None:
        """Refuse a centre where covariates are adjusted for; None is returned."""
        if self.centre != "auto" and self.adjustment != "none":
            raise self._refusal("centre", "'auto', or another with adjustment='none'")


@dataclass(frozen=True, slots=True)
class DoublyRobust(Settings):
    """Settings of ``cv.ate(method="doubly_robust", protects="record")``.

    Attributes
    ----------
    degree : {"auto", 1, 2}, default "auto"
        Degree of the outcome and propensity models in the covariates.
        1: linear;
        2: with all squares and products;
        "auto": linear, with as many squares and products as rows and budget support.
    kappa : float, optional
        A bound on confounding that you declare, above 0 and at most 1. Where the budget does not support
        adjustment, the answer is the difference in means, with an interval that covers the effect if

            abs(difference in means - effect) <= kappa sd(Y) / (0.75 sd(T)).

        Default: none is assumed; such questions are refused, and nothing is spent.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.DoublyRobust(degree=1)
    DoublyRobust(degree=1, kappa=None)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "degree": one_of(1, 2, "auto"),
        "kappa": KAPPA | NONE,
    }
    degree: int | str = "auto"
    kappa: float | None = None


@dataclass(frozen=True, slots=True)
class Groups(Settings):
    """Settings of `cv.groups`, `cv.policy_value` and `cv.targeting_curve` with ``protects="record"``.

    Attributes
    ----------
    clip : float, optional
        Public bound on the size of one person's doubly robust score, in units of the outcome; above 0. Larger
        scores are clipped to plus or minus `clip`, and noise is in proportion to it. Default: chosen from a
        private histogram of the scores, which takes a small part of epsilon.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Groups(clip=20)
    Groups(clip=20)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "clip": POSITIVE | NONE,
    }
    clip: float | None = None


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two estimators in scikit-learn's style from which an effect is learned, for ``Folds(learner=...)``.

    Attributes
    ----------
    outcome : object
        Regression with ``fit(X, y)`` and ``predict(X)``; a fresh copy is fitted to each arm of a fold.
    propensity : object
        Classifier with ``fit(X, t)`` and ``predict_proba(X)``; a fresh copy is fitted to each fold.

    Examples
    --------
    >>> import counterveil as cv
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> learner = cv.settings.ModelPair(LinearRegression(), LogisticRegression())
    >>> cv.settings.Folds(learner=learner, folds=30).folds
    30
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
_LEARNER_NAME = Allowed(
    "a text of 1 to 100 printable characters that names no learner of the package",
    lambda name: (
        isinstance(name, str)
        and 0 < len(name) <= 100
        and name.isprintable()
        and not is_one_of(name, "ols", "aipw")
    ),
)
BOUND = exactly("a number above 0", lambda bound: bound > 0) | NONE


@dataclass(frozen=True, slots=True)
class Folds(Settings):
    """Settings of ``cv.ate(method="sample_and_aggregate", protects="record")``.

    The rows are divided into folds, an effect is estimated in each, clipped, and the mean of the folds is
    released.

    Attributes
    ----------
    learner : {"ols", "aipw"} or ModelPair or callable, default "ols"
        How the effect of one fold is estimated.
        "ols": coefficient of the treatment in a linear regression on treatment and covariates;
        "aipw": augmented inverse-probability weighting with linear and logistic models;
        a `ModelPair`: augmented inverse-probability weighting with two estimators of scikit-learn's style;
        a function of ``(X, t, y)``, the arrays of one fold, that returns the effect as a number. It must keep
        nothing between folds; the global generators of Python and numpy start each fold from the same state.
    folds : int, optional
        Number of folds, at least 3. More folds mean less noise and smaller samples to learn from. Default:
        chosen from the rows, the number of covariates, the budget and, where it is released, the variance of
        outcomes.
    bound : number, optional
        B > 0: each fold's effect is clipped to [-B, B], in units of the outcome. Default: with "ols" and
        "aipw" a range around the private comparison of the arms, as wide as its released variance suggests;
        with other learners the width of the outcome's range.
    name : str, optional
        Name of a learner of your own, of 1 to 100 characters; needed with a request id. Answers show it, and in
        the ledger it stands for the learner: give a learner that you changed another name.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Folds(learner="aipw", folds=50)
    Folds(learner='aipw', folds=50, bound=None, name=None)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "learner": _LEARNER,
        "folds": whole(3) | NONE,
        "bound": BOUND,
        "name": _LEARNER_NAME | NONE,
    }
    learner: Any = "ols"
    folds: int | None = None
    bound: Number | None = None
    name: str | None = None

    def _check_together(self) -> None:
        if self.name is not None and isinstance(self.learner, str):
            raise self._refusal("name", f"None: {self.learner!r} is the learner's name")


@dataclass(frozen=True, slots=True)
class Cate(Settings):
    """Settings of ``cv.cate(protects="record")`` with ``method="t_learner"`` or ``method="r_learner"``.

    Attributes
    ----------
    basis : {"legendre", "cosine", "spline"}, default "legendre"
        Functions of a numeric covariate.
        "legendre": Legendre polynomials on the covariate's range;
        "cosine": cosine waves, whose slope is zero at the ends of the range, which intervals do not cover;
        "spline": cubic splines on evenly spaced knots.
    degree : int, optional
        Total degree of polynomials or waves, from 1 to 8. Default: chosen from the rows, the covariates and
        the budget. Splines have `knots` instead.
    products : bool, optional
        Whether functions of several covariates are multiplied. Default: with at most three covariates.
    knots : int, default 3
        Inner knots of the spline of each covariate, from 1 to 20; used by ``basis="spline"`` alone.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Cate(basis="spline", knots=5)
    Cate(basis='spline', degree=None, products=None, knots=5)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "basis": one_of("legendre", "cosine", "spline"),
        "degree": whole(1, 8) | NONE,
        "products": FLAG | NONE,
        "knots": whole(1, 20),
    }
    basis: str = "legendre"
    degree: int | None = None
    products: bool | None = None
    knots: int = 3


@dataclass(frozen=True, slots=True)
class Series(Settings):
    """Settings of ``cv.cate(protects="outcome")``, whose method is "series".

    Attributes
    ----------
    degree : int, optional
        Highest degree of the polynomials, from 1 to 8. Default: 6 where functions of several covariates are
        multiplied and 3 otherwise, less where rows are few. Which polynomials are measured follows from
        public and released numbers.
    products : bool, optional
        Whether functions of several covariates are multiplied. Default: with at most three covariates.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Series(degree=2, products=False)
    Series(degree=2, products=False)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "degree": whole(1, 8) | NONE,
        "products": FLAG | NONE,
    }
    degree: int | None = None
    products: bool | None = None


_WEIGHT = Allowed("a number above 0, at most 1", lambda weight: is_number(weight) and 0 < weight <= 1)
_WEIGHTS = Allowed(
    "for each site a number above 0, at most 1",
    lambda weights: isinstance(weights, Mapping) and all(map(_WEIGHT.fits, weights.values())),
)
_VARIANCES = Allowed(
    "finite numbers of at least 0",
    lambda variances: (
        isinstance(variances, Mapping) and all(is_number(variance, 0) for variance in variances.values())
    ),
)
Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class WeightLimits(Settings):
    """Largest weight of each site in `cv.pool`, and the least variance that its weight is computed with.

    The limits keep one site from dominating an average whose sites do not trust each other.

    Attributes
    ----------
    max_weight : float, default 0.5
        Largest weight of a site that `own` does not name, above 0 and at most 1. With J sites it is at least
        1/J.
    own : mapping of str to float, optional
        Largest weight of single sites by name, above 0 and at most 1. Default: none.
    min_variance : mapping of str to float, optional
        By name of a site, the least variance that its weight is computed with, at least 0, in squared units
        of the estimate: for instance that of the least noise which the site can have drawn. Default: none.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.WeightLimits(max_weight=0.4, own={"Utrecht": 0.2}).max_weight
    0.4
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "max_weight": _WEIGHT,
        "own": _WEIGHTS,
        "min_variance": _VARIANCES,
    }
    max_weight: float = 0.5
    own: Mapping[str, float] = field(default_factory=dict)
    min_variance: Mapping[str, float] = field(default_factory=dict)

    def most(self, sites: Named) -> NDArray[np.float64]:
        """Return the largest weight of each site.

        Parameters
        ----------
        sites : sequence of (str, object)
            Names of the J sites with their results.

        Returns
        -------
        ndarray of shape (J,)
            Largest weights, none below 1/J.
        """
        default = max(self.max_weight, 1 / len(sites))
        return np.array([max(self.own.get(name, default), 1 / len(sites)) for name, _ in sites])

    def least(self, sites: Named) -> NDArray[np.float64]:
        """Return the least variance that the weight of each site is computed with.

        Parameters
        ----------
        sites : sequence of (str, object)
            Names of the J sites with their results.

        Returns
        -------
        ndarray of shape (J,)
            Least variances; 0 where none is given.
        """
        return np.array([self.min_variance.get(name, 0.0) for name, _ in sites])


_NAMES = Allowed(
    "a tuple of names of covariates",
    lambda names: isinstance(names, tuple) and bool(names) and all(isinstance(name, str) for name in names),
)


@dataclass(frozen=True, slots=True)
class Survival(Settings):
    """Settings of `cv.survival`.

    Attributes
    ----------
    strata : tuple of str, optional
        With ``method="stratified"``: names of the covariates whose combinations of values are the strata.
        Default: all covariates.
    censoring : {"middle", "end"}, default "middle"
        When within a time cell people are taken to be censored.
        "middle": halfway, so that a censored person is at risk for half of the cell;
        "end": at its end, at risk for all of it, as with times recorded on the grid itself.
    release : {"auto", "flat", "sums"}, default "auto"
        What is released of the counts in time cells.
        "flat": each count;
        "sums": running sums, whose noise grows more slowly with the number of cells;
        "auto": the one of least expected noise with this number of cells.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.settings.Survival(censoring="end").release
    'auto'
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "strata": _NAMES | NONE,
        "censoring": one_of("middle", "end"),
        "release": one_of("auto", "flat", "sums"),
    }
    strata: tuple[str, ...] | None = None
    censoring: str = "middle"
    release: str = "auto"
