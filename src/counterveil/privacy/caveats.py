"""What an answer says of itself, as values: what its interval is for, depends on, assumes and does not cover.

A value is a member of an enumeration, or a frozen dataclass where it carries numbers or names. Their words are in
`counterveil.report.caveats` and nowhere else. Stored results and messages hold a member by its name, a dataclass as a
table of its name and fields; what has another name or another field is refused.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum, auto
from typing import Any, TypeAlias, Union, dataclass_transform, get_args, get_origin, get_type_hints

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.privacy.guarantee import Estimand

_MOST = 10_000  # values, or texts, in one list
_LONGEST = 2_000  # letters of one text
_LARGEST = 10**12


class Caveat(StrEnum):
    """What intervals do not cover, where nothing more is to be said than which it is.

    Compare members, never words: ``cv.results.Caveat.CONFOUNDING in result.not_covered``. Caveats that carry
    numbers or names are classes of their own, such as ``ResidualImbalance(sds=0.02)``.

    Attributes
    ----------
    NOTHING_ADJUSTED : str
        Confounding: the study is not declared randomised and nothing is adjusted for.
    CONFOUNDING : str
        Confounding by anything that is not among the study's covariates.
    CONFOUNDING_WITHIN_STRATA : str
        Confounding within strata: by anything that is not one of the declared strata.
    CONFOUNDING_WITHIN_MERGED_STRATA : str
        Confounding by covariates within merged strata.
    CONFOUNDING_WITHIN_GROUPS : str
        Confounding within groups: the study is not declared randomised and nothing else is adjusted for.
    CONFOUNDING_BEHIND_NOISY_SCORES : str
        Confounding: scores with this much noise adjust for little of it.
    CONFOUNDING_NOT_LINEAR_IN_LOGIT : str
        Confounding by anything that is not among the covariates, or not linear in the logit.
    CONFOUNDING_LEFT_BY_PENALTY : str
        Confounding that the penalised model without intercept leaves.
    UNDECLARED_COVARIATES : str
        Undeclared covariates.
    OMITTED_VARIABLES : str
        Omitted variables: a coefficient is an effect only if the formula holds what it must.
    OTHER_THAN_FEATURES : str
        Treatment or outcome depending on covariates in ways that the features cannot express.
    NONLINEARITY : str
        Nonlinearity: relations of treatment and outcome with covariates that the features do not capture.
    NOT_POLYNOMIAL : str
        Outcomes or effects that polynomials of the covariates cannot express.
    FLAT_ENDS : str
        The ends of ranges: cosines are flat there, whatever the effect is.
    BEYOND_COVARIATES : str
        People beyond the covariates in the data, to whom effects are carried on flat.
    ERRORS_BEYOND_PRODUCT : str
        Errors of the fitted models: those beyond the product that large samples make small.
    ERRORS_OF_NOISY_WEIGHTS : str
        Errors of the propensity model: noise in the weights enters exponentially and biases the sum.
    SAMPLING_AND_MODELS : str
        Sampling error and bias of the fitted models.
    FAILED_FOLDS : str
        Folds in which the learner fails: they count as an effect of 0, and their number is private.
    EXTREME_PROPENSITIES : str
        Propensities outside the declared limits.
    FITTED_TO_SAME_ROWS : str
        A model fitted to the same rows: its recommendations look better on them than on new people; evaluate
        it on rows it has not seen.
    IMBALANCE : str
        Residual imbalance: see the balance table.
    IMBALANCE_WITHIN_GROUPS : str
        Bias from residual imbalance within a group.
    MATCHING_BIAS : str
        Bias of matching: a misspecified propensity score, inexact matches.
    UNMATCHED : str
        Units without a match, which are dropped.
    STRATA_COUNTED_AS_ZERO : str
        People in strata that lack an arm: their effect is counted as zero.
    FIXED_STRATA : str
        Sampling of people: strata and their sizes are treated as fixed.
    OWN_RATIOS : str
        The average of everyone's own ratio: people count by their denominator.
    NOT_FOR_PEOPLE : str
        How the effect differs between people.
    UNEVEN_VARIANCE : str
        Heteroskedasticity correlated with the weights.
    UNEVEN_VARIANCE_WITHIN_ARM : str
        Variances of outcomes that differ within an arm.
    UNEQUAL_VARIANCES : str
        Unequal variances of errors: standard errors are classical.
    CLUSTERS_DEPEND : str
        Dependence between clusters.
    NOISE_OF_SHARES : str
        Noise in the shares of people, which are as released.
    NOISE_OF_VARIANCE : str
        Noise of the released variance.
    COVERAGE_MEASURED : str
        Large-sample intervals, whose coverage was measured, not proved.
    CENSORING : str
        Censoring that depends on what would have happened: it is taken to be independent.
    CENSORING_WITHIN_STRATA : str
        Censoring that depends on what would have happened within strata: it is taken to be independent.
    CENSORING_IN_WEIGHTED_ARMS : str
        Censoring that depends on what would have happened in the weighted arms: it is taken to be
        independent.
    BETWEEN_ENDS_OF_CELLS : str
        Times between the ends of cells: they are taken to lie at the ends.
    UNEVEN_CENSORING : str
        Hazards that jump within time cells: more than neighbouring cells suggest.
    AFTER_THE_HORIZON : str
        Events after the horizon.
    UNEVEN_WITHIN_CELLS : str
        Outcomes that crowd within a cell too little to stand out: taken to lie evenly in it.
    CLAMPING : str
        Clamping of outcomes to the declared range: this answer does not say how many lie at its ends.
    CLAMPING_OF_PREDICTED : str
        Clamping of outcomes, and of outcomes minus prediction, to the declared range.
    CLAMPING_OF_COVARIATES_TOO : str
        Clamping of outcomes and covariates to the declared ranges.
    CLAMPING_TO_RANGES : str
        Clamping to the declared ranges.
    CLIPPED_RESIDUALS : str
        Clipping of rare large residuals; with private records the interval allows for what is expected to be
        lost.
    CLIPPED_SCORES : str
        Clipping of rare large scores; the interval allows for what is expected to be lost, but functions of
        effects with private outcomes do not.
    CLIPPED_FAR_SCORES : str
        Clipping of scores far beyond their predicted standard deviation.
    PRIVACY_REFUTED : str
        Privacy: the claim of this form is refuted; what a record loses is not known.
    PRIVACY_ASYMPTOTIC : str
        Privacy: the claim is asymptotic, and false for some data of any size; the noise's scale, which is
        shown here, is computed from the rows.

    Notes
    -----
    Where scores or residuals are clipped, intervals allow for what clips are expected to lose, outcomes that
    noise hides included. Functions of effects with private outcomes do not: with 0.2 to 0.5% of outcomes far
    out, intervals for the one effect of everybody covered it in 55 to 93% of simulated studies.

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.results.Caveat.CLAMPING == "clamping"
    True
    """

    # Confounding.
    NOTHING_ADJUSTED = auto()
    CONFOUNDING = auto()
    CONFOUNDING_WITHIN_STRATA = auto()
    CONFOUNDING_WITHIN_MERGED_STRATA = auto()
    CONFOUNDING_WITHIN_GROUPS = auto()
    CONFOUNDING_BEHIND_NOISY_SCORES = auto()
    CONFOUNDING_NOT_LINEAR_IN_LOGIT = auto()
    CONFOUNDING_LEFT_BY_PENALTY = auto()
    UNDECLARED_COVARIATES = auto()
    OMITTED_VARIABLES = auto()
    # Models and functions.
    OTHER_THAN_FEATURES = auto()
    NONLINEARITY = auto()
    NOT_POLYNOMIAL = auto()
    FLAT_ENDS = auto()
    BEYOND_COVARIATES = auto()
    ERRORS_BEYOND_PRODUCT = auto()
    ERRORS_OF_NOISY_WEIGHTS = auto()
    SAMPLING_AND_MODELS = auto()
    FAILED_FOLDS = auto()
    EXTREME_PROPENSITIES = auto()
    FITTED_TO_SAME_ROWS = auto()
    # Balance and matches.
    IMBALANCE = auto()
    IMBALANCE_WITHIN_GROUPS = auto()
    MATCHING_BIAS = auto()
    UNMATCHED = auto()
    STRATA_COUNTED_AS_ZERO = auto()
    # Whom or what it is not about.
    FIXED_STRATA = auto()
    OWN_RATIOS = auto()
    NOT_FOR_PEOPLE = auto()
    # Variances.
    UNEVEN_VARIANCE = auto()
    UNEVEN_VARIANCE_WITHIN_ARM = auto()
    UNEQUAL_VARIANCES = auto()
    CLUSTERS_DEPEND = auto()
    NOISE_OF_SHARES = auto()
    NOISE_OF_VARIANCE = auto()
    COVERAGE_MEASURED = auto()
    # Times to events.
    CENSORING = auto()
    CENSORING_WITHIN_STRATA = auto()
    CENSORING_IN_WEIGHTED_ARMS = auto()
    BETWEEN_ENDS_OF_CELLS = auto()
    UNEVEN_CENSORING = auto()
    AFTER_THE_HORIZON = auto()
    UNEVEN_WITHIN_CELLS = auto()
    # What happened to numbers before they were counted.
    CLAMPING = auto()
    CLAMPING_OF_PREDICTED = auto()
    CLAMPING_OF_COVARIATES_TOO = auto()
    CLAMPING_TO_RANGES = auto()
    CLIPPED_RESIDUALS = auto()
    CLIPPED_SCORES = auto()
    CLIPPED_FAR_SCORES = auto()
    # Published forms.
    PRIVACY_REFUTED = auto()
    PRIVACY_ASYMPTOTIC = auto()


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Detail:
    """A fact with its numbers and names: every class of it is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class ParallelTrends(Detail):
    """Parallel trends are assumed: changes would have been those of the untreated.

    Attributes
    ----------
    outcome : str
        Column of the outcome.
    adjusted : bool
        Whether people with the same covariates are compared.
    of_untreated : bool
        Whether the same is assumed of the untreated with treatment.
    """

    outcome: str
    adjusted: bool
    of_untreated: bool


class ConfoundingBeyond(Detail):
    r"""Confounding stronger than a declared bound.

    Attributes
    ----------
    kappa : float
        The bound: \|unadjusted difference - effect\| <= kappa sd(Y) / (0.75 sd(T)).
    """

    kappa: float


class ErrorsOfPropensity(Detail):
    """Errors of a noisy propensity model with a penalty, which leave residual confounding.

    Attributes
    ----------
    penalty : float
        Weight of the ridge penalty.
    shrunk : bool
        Whether the model is shrunk as well.
    """

    penalty: float
    shrunk: bool


class LearnerBias(Detail):
    """Bias of a learner, and confounding that it does not remove.

    Attributes
    ----------
    learner : str
        Name of the learner.
    rows : int
        Number of rows that it sees, about.
    """

    learner: str
    rows: int


class MisspecifiedModels(Detail):
    """Outcomes that are not linear where the noisy propensity model is wrong as well.

    Attributes
    ----------
    penalty : float
        Weight of the propensity model's ridge penalty.
    """

    penalty: float


class OtherEstimand(Detail):
    """Any difference between the effect asked for and the average over everyone, in a trial.

    Attributes
    ----------
    estimand : Estimand
        The effect that was asked for.
    """

    estimand: Estimand


class SmallArms(Detail):
    """Arms smaller than a share of everyone.

    Attributes
    ----------
    share : float
        The share, in (0, 1).
    """

    share: float


class BiasBeyond(Detail):
    """Bias beyond some standard errors from sampling.

    Attributes
    ----------
    errors : float
        Number of standard errors that the interval allows for.
    of_each_arm : bool
        Whether they are those of each arm's mean; else the allowance is in the variance of the effect.
    """

    errors: float
    of_each_arm: bool


class ResidualImbalance(Detail):
    """A bias of residual imbalance, which the interval covers up to its allowance.

    Attributes
    ----------
    sds : float
        Expected bias in standard deviations of mean outcomes over the covariates.
    """

    sds: float


class OtherFunctions(Detail):
    """Outcomes and treatment that follow other functions of covariates than the balanced ones.

    Attributes
    ----------
    balanced : tuple of str
        Families of functions that are balanced.
    """

    balanced: tuple[str, ...]


class NotExpressed(Detail):
    """Outcomes or effects that the functions cannot express.

    Attributes
    ----------
    families : tuple of str
        Families of functions that are used.
    """

    families: tuple[str, ...]


class StrataLeftOut(Detail):
    """People in strata that lack an arm or, with a limit, count less.

    Attributes
    ----------
    estimand : Estimand
        Whose effect is averaged over the other strata.
    limit : float or None
        How many times its smaller arm a stratum counts at most; None without a limit.
    """

    estimand: Estimand
    limit: float | None


class ClippedPropensities(Detail):
    """Propensity scores near 0 or 1, which are clipped.

    Attributes
    ----------
    clip : float
        Scores are clipped to [clip, 1 - clip].
    """

    clip: float


class ClippedFolds(Detail):
    """Effects of folds far from a centre, which are clipped.

    Attributes
    ----------
    bound : float
        Largest distance that is kept, in units of the outcome.
    centre : float
        The centre, in units of the outcome.
    """

    bound: float
    centre: float


class ClampedOutcomes(Detail):
    """Few outcomes beyond an interval that was found privately, which are clamped to it.

    Attributes
    ----------
    low : float
        Lower end, in units of the outcome.
    high : float
        Upper end, in units of the outcome.
    """

    low: float
    high: float


# Outcomes crowd at an end of their range where the share there exceeds this by twice the half-width of its 95 %
# interval: noise alone says so of about one answer in a thousand.
CROWDED = 0.01


class OutcomesAtEnds(Detail):
    """How many more outcomes lie in the lowest and highest cell of the range than beside it.

    Clamping leaves such a crowd; a density that is smooth there leaves none.

    Attributes
    ----------
    part : float
        Width of a cell, as a part of the range.
    lower, upper : tuple of (float, float, float)
        Excess share of all outcomes at that end with the two ends of its 95% interval, from a released
        histogram.
    """

    part: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def crowded(self) -> tuple[str, ...]:
        """Ends at which outcomes crowd beyond what noise explains: "lower", "upper"."""
        ends = (("lower", self.lower), ("upper", self.upper))
        return tuple(name for name, (share, low, _) in ends if share - 2 * (share - low) > CROWDED)


class ClippedOutliers(Detail):
    """Columns whose values are clipped where they are far from what other columns predict.

    Attributes
    ----------
    columns : tuple of str
        The columns.
    reaches : tuple of float
        Largest distance that is kept, by column.
    in_sds : bool
        Whether distances are in standard deviations; else in units of the column.
    """

    columns: tuple[str, ...]
    reaches: tuple[float, ...]
    in_sds: bool


class Downweighted(Detail):
    """Rows with unusual covariates count less; nonlinear effects then shift what is estimated.

    Attributes
    ----------
    share : float
        Share of rows that count less, in [0, 1].
    """

    share: float


class Shrinkage(Detail):
    """Randomized response mixes the arms, which shrinks the effect.

    Attributes
    ----------
    factor : float
        What the effect is multiplied by, about.
    """

    factor: float


class OneLook(Detail):
    """The p-value is that of one interim analysis alone.

    Attributes
    ----------
    alpha : float
        P-value below which zero is ruled out over all analyses.
    """

    alpha: float


class RowsLeftOut(Detail):
    """People without a value, whose rows are left out.

    Attributes
    ----------
    columns : tuple of str
        Columns in which a value is missing.
    """

    columns: tuple[str, ...]


class ValuesFilled(Detail):
    """Missing values, in place of which a declared constant counts.

    Attributes
    ----------
    columns : tuple of str
        Columns that are filled.
    """

    columns: tuple[str, ...]


class SitesLeftOut(Detail):
    """People of sites whose weight is zero.

    Attributes
    ----------
    sites : tuple of str
        Names of the sites.
    """

    sites: tuple[str, ...]


class SitesWithoutAnswer(Detail):
    """People at sites without a valid answer.

    Attributes
    ----------
    sites : tuple of str
        Names of the sites.
    states : tuple of str
        How each stands.
    """

    sites: tuple[str, ...]
    states: tuple[str, ...]


class Target(StrEnum):
    """What an interval is for where it is not for the effect.

    Attributes
    ----------
    CONFOUNDED_DIFFERENCE : str
        The unadjusted difference between the arms, confounding included.
    UNADJUSTED_CONTRAST : str
        The unadjusted contrast of the arms: no part of the propensity model was distinguishable from noise.
    SHRUNK_CONTRAST : str
        The contrast of randomized treatments, which randomized response shrinks towards zero.
    PUBLISHED_ESTIMATE : str
        The published estimate; that its variance and its scale are noisy themselves is ignored.
    KERNEL_REGRESSION : str
        The fitted kernel regression: its sampling error and its bias are not in them.
    UNCLIPPED_CONTRAST : str
        The contrast weighted by unclipped noisy scores.
    TREATED_TIMES_SHARE : str
        The effect on the treated times the share treated.
    UNTREATED_TIMES_SHARE : str
        The effect on the untreated times their share.
    NO_QUANTITY : str
        No quantity: the scale of the published noise is private, so none can be given.
    OWN_QUANTITY : str
        What a method of one's own estimates, which its author says is not the average effect.
    """

    CONFOUNDED_DIFFERENCE = auto()
    UNADJUSTED_CONTRAST = auto()
    SHRUNK_CONTRAST = auto()
    PUBLISHED_ESTIMATE = auto()
    KERNEL_REGRESSION = auto()
    UNCLIPPED_CONTRAST = auto()
    TREATED_TIMES_SHARE = auto()
    UNTREATED_TIMES_SHARE = auto()
    NO_QUANTITY = auto()
    OWN_QUANTITY = auto()


class WeightedContrast(Detail):
    """The interval is for the contrast weighted by released scores.

    Attributes
    ----------
    low : float
        Lowest score.
    high : float
        Highest score.
    """

    low: float
    high: float


class LearnersAnswer(Detail):
    """The interval is for the expected answer of a learner on some rows.

    Attributes
    ----------
    learner : str
        Name of the learner.
    rows : int
        Number of rows that it sees, about.
    """

    learner: str
    rows: int


class NotAdjusted(Detail):
    r"""The interval covers the effect if confounding is within a declared bound.

    Attributes
    ----------
    kappa : float
        The bound: \|unadjusted difference - effect\| <= kappa sd(Y) / (0.75 sd(T)).
    """

    kappa: float


class FoldModels(StrEnum):
    """What must be linear in the covariates, by the learner of folds or of halves.

    Attributes
    ----------
    OUTCOME : str
        The outcome regression in each arm is linear in the covariates.
    OUTCOME_OR_LOGIT : str
        The outcome regression or the logit of the propensity score is linear in the covariates.
    """

    OUTCOME = auto()
    OUTCOME_OR_LOGIT = auto()


class LinearScores(Detail):
    """The propensity score or the outcome regression must be linear in functions of covariates.

    Attributes
    ----------
    inverse : bool
        Whether the inverse propensity score is meant: with arm-specific moments.
    squares : bool
        Whether squares of covariates are among the functions.
    products : bool
        Whether pairwise products are.
    """

    inverse: bool
    squares: bool
    products: bool


class LinearIn(Detail):
    """The propensity score or the outcome regression must be linear in the balanced features.

    Attributes
    ----------
    features : int
        Number of features.
    """

    features: int


class KnownScore(Detail):
    """A column must hold each person's probability of treatment.

    Attributes
    ----------
    column : str
        The column.
    """

    column: str


class KeptPeople(Detail):
    """People whose propensity score is far enough from 0 and 1.

    Attributes
    ----------
    kept : int
        Number of people kept.
    rows : int
        Number of all people.
    limit : float
        Scores in [limit, 1 - limit] are kept.
    """

    kept: int
    rows: int
    limit: float


class KeptByTrim(Detail):
    """People whom a setting of ``trim`` keeps, where nobody has counted them.

    Attributes
    ----------
    trim : str
        The setting.
    """

    trim: str


class AtSites(Detail):
    """What each of several sites says.

    Attributes
    ----------
    sites : tuple of str
        Names of the sites.
    facts : tuple
        Value of each site, None where it says nothing.
    """

    sites: tuple[str, ...]
    facts: tuple[Any, ...]


Fact: TypeAlias = StrEnum | Detail

# What each field of an answer may say.
FIELDS: dict[str, tuple[type, ...]] = {
    "not_covered": (
        Caveat,
        *(ParallelTrends, ConfoundingBeyond, ErrorsOfPropensity, LearnerBias, MisspecifiedModels),
        *(OtherEstimand, SmallArms, BiasBeyond, ResidualImbalance, OtherFunctions, NotExpressed),
        *(StrataLeftOut, ClippedPropensities, ClippedFolds, ClampedOutcomes, OutcomesAtEnds, ClippedOutliers),
        *(RowsLeftOut, ValuesFilled),
        *(Downweighted, Shrinkage),
        *(OneLook, SitesLeftOut, SitesWithoutAnswer),
    ),
    "interval_target": (Target, WeightedContrast, LearnersAnswer, AtSites),
    "condition": (NotAdjusted, AtSites),
    "assumptions": (FoldModels, LinearScores, LinearIn, KnownScore, AtSites),
    "population": (KeptPeople, KeptByTrim, AtSites),
}
# What is stored only where there is something to say.
OPENING = ("interval_target", "condition", "assumptions", "population")

# What leaves room for omitted confounders.
CONFOUNDED: frozenset[Caveat | type] = frozenset(
    {
        Caveat.NOTHING_ADJUSTED,
        Caveat.CONFOUNDING,
        Caveat.CONFOUNDING_WITHIN_STRATA,
        Caveat.CONFOUNDING_WITHIN_MERGED_STRATA,
        Caveat.CONFOUNDING_WITHIN_GROUPS,
        Caveat.CONFOUNDING_BEHIND_NOISY_SCORES,
        Caveat.CONFOUNDING_NOT_LINEAR_IN_LOGIT,
        Caveat.CONFOUNDING_LEFT_BY_PENALTY,
        Caveat.UNDECLARED_COVARIATES,
        *(ParallelTrends, ConfoundingBeyond, ErrorsOfPropensity, LearnerBias),
    }
)
# What parallel trends stand for where outcomes are changes.
REPLACED_BY_TRENDS = frozenset(
    {
        Caveat.NOTHING_ADJUSTED,
        Caveat.CONFOUNDING,
        Caveat.CONFOUNDING_WITHIN_STRATA,
        Caveat.CONFOUNDING_WITHIN_GROUPS,
        Caveat.CONFOUNDING_NOT_LINEAR_IN_LOGIT,
    }
)


def confounding(facts: Iterable[Fact]) -> list[Fact]:
    """Return those that leave room for omitted confounders."""
    return [one for one in facts if (one if isinstance(one, Caveat) else type(one)) in CONFOUNDED]


def written(fact: Fact | None) -> Any:
    """Return a fact as it is stored and sent: its name, or a table of its name and fields."""
    if fact is None or isinstance(fact, StrEnum):
        return None if fact is None else fact.value
    return {"name": type(fact).__name__} | {one.name: _plain(getattr(fact, one.name)) for one in fields(fact)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return written(value) if isinstance(value, StrEnum | Detail) else value


def read_fact(role: str, value: object) -> Any:
    """Return the fact of a field of an answer, or raise `UnreadableError`; nothing of what was written is repeated."""
    for kind in FIELDS[role]:
        if isinstance(value, str) and issubclass(kind, StrEnum) and value in set(kind):
            return kind(value)
        if isinstance(value, dict) and value.get("name") == kind.__name__ and issubclass(kind, Detail):
            return _detail(kind, role, value)
    raise UnreadableError(f"{role}: a fact that no answer has")


def read_facts(role: str, values: object) -> tuple[Any, ...]:
    """Return the facts in a list."""
    if not isinstance(values, list | tuple) or len(values) > _MOST:
        raise UnreadableError(f"{role}: not a list of facts")
    return tuple(read_fact(role, value) for value in values)


def _detail(kind: type[Detail], role: str, value: dict[str, Any]) -> Detail:
    hints = get_type_hints(kind)
    table = Fields.of(role, value, ("name", *hints))
    if kind is AtSites:
        sites, inner = tuple(table.texts("sites", _MOST, _LONGEST)), table.values["facts"]
        if not isinstance(inner, list) or len(inner) != len(sites) or any(_nested(one) for one in inner):
            raise table.wrong("facts")
        return AtSites(sites, tuple(None if one is None else read_fact(role, one) for one in inner))
    return kind(**{name: _field(table, name, hint) for name, hint in hints.items()})


def _nested(value: object) -> bool:
    return isinstance(value, dict) and value.get("name") == AtSites.__name__


def _field(table: Fields, name: str, hint: Any) -> Any:
    """Return a field of the declared type."""
    if get_origin(hint) in (Union, types.UnionType):
        wanted = next(each for each in get_args(hint) if each is not types.NoneType)
        return None if table.values[name] is None else _field(table, name, wanted)
    if get_origin(hint) is tuple:
        if get_args(hint)[0] is str:
            return tuple(table.texts(name, _MOST, _LONGEST))
        listed = table.values[name]
        if not isinstance(listed, list) or len(listed) > _MOST:
            raise table.wrong(name)
        return tuple(Fields(table.what, {name: each}).number(name) for each in listed)
    if issubclass(hint, StrEnum):
        return hint(table.choice(name, tuple(hint)))
    if hint is bool:
        return table.flag(name)
    if hint is int:
        return table.whole(name, 0, _LARGEST)
    return table.number(name) if hint is float else table.text(name, _LONGEST)
