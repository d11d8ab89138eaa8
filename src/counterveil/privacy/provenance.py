"""Where the numbers of an answer come from, as values: its estimator, each release, and what a guarantee rests on.

Estimators name a value: a member of an enumeration, or a frozen dataclass where it carries numbers or names. Their
words are in `counterveil.report.methods` and `counterveil.report.releases` and nowhere else. An answer holds the
words: `results.answering` takes them when the answer is complete, so stored answers are read without these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import TypeAlias


class Estimator(StrEnum):
    """How an effect was estimated, where nothing more is to be said than which way it was."""

    # Means of arms as they are.
    DIFFERENCE_IN_MEANS = auto()
    CENTRED_DIFFERENCE = auto()
    CENTRED_MEANS = auto()
    COMPARISON_OF_MEANS = auto()
    UNADJUSTED_CONTRAST = auto()
    BOUNDED_CONFOUNDING = auto()
    RATIOS_OF_SUMS = auto()
    MEANS_OF_BOTH_ARMS = auto()
    MEANS_OF_THE_ARMS = auto()
    MEANS_OF_ALL_ARMS = auto()
    MEANS_IN_GROUPS = auto()
    # Weights, matches and strata of public covariates.
    WEIGHTING = auto()
    KNOWN_SCORES = auto()
    WEIGHTING_OF_ARMS = auto()
    MATCHING = auto()
    MULTINOMIAL_MATCHING = auto()
    STRATIFIED = auto()
    MEANS_OVER_STRATA = auto()
    # Models of outcomes and treatment.
    ADJUSTED_CONTRAST = auto()
    UNEXPLAINED_CONTRAST = auto()
    DOUBLY_ROBUST_BY_ARM = auto()
    DOUBLY_ROBUST_ON_PUBLIC = auto()
    SCORES_IN_GROUPS = auto()
    # Effects as functions of covariates.
    T_LEARNER = auto()
    R_LEARNER = auto()
    SERIES = auto()
    SERIES_OF_SCORES = auto()
    # Distributions and times to events.
    KAPLAN_MEIER = auto()
    QUANTILES = auto()
    QUANTILES_BY_PROPENSITY = auto()


@dataclass(frozen=True, slots=True)
class WithinSites:
    """A difference in means that is taken within each of several sites.

    Attributes
    ----------
    sites : int
        Number of sites; with one it is a plain difference in means.
    """

    sites: int


@dataclass(frozen=True, slots=True)
class LessEarlierNumbers:
    """An estimator of outcomes from which a slope times earlier numbers of the same people was subtracted.

    Attributes
    ----------
    estimator : estimator
        Of what is left.
    """

    estimator: AnyEstimator


@dataclass(frozen=True, slots=True)
class Clustered:
    """An estimator whose standard error is clustered.

    Attributes
    ----------
    estimator : estimator
        Of the effect.
    column : str
        Column of the clusters.
    clusters : int
        Number of clusters.
    """

    estimator: AnyEstimator
    column: str
    clusters: int


@dataclass(frozen=True, slots=True)
class ClusteredGroups:
    """An estimator of effects of groups whose standard errors are clustered.

    Attributes
    ----------
    estimator : estimator
        Of the effects.
    column : str
        Column of the clusters.
    """

    estimator: AnyEstimator
    column: str


class WhichGroups(StrEnum):
    """Which groups of people a method is asked in."""

    EVERY_GROUP = auto()
    TREATED_AND_OTHERS = auto()
    PARTS_OF_RANKING = auto()


@dataclass(frozen=True, slots=True)
class InGroups:
    """A method of the question, asked in each of several groups.

    Attributes
    ----------
    method : str
        Its name in `method=`.
    groups : WhichGroups, default EVERY_GROUP
        Which groups they are.
    """

    method: str
    groups: WhichGroups = WhichGroups.EVERY_GROUP


@dataclass(frozen=True, slots=True)
class BalancedArms:
    """An estimator whose arms are weighted for balance, each by itself.

    Attributes
    ----------
    estimator : estimator
        Of the weighted arms.
    """

    estimator: AnyEstimator


@dataclass(frozen=True, slots=True)
class LimitedStrata:
    """Exact matching on private strata, in which a stratum counts a limited number of times.

    Attributes
    ----------
    limit : float
        How many times its smaller arm a stratum counts at most.
    """

    limit: float


@dataclass(frozen=True, slots=True)
class StandardisedSurvival:
    """Kaplan-Meier curves by stratum, averaged over everybody.

    Attributes
    ----------
    strata : str
        The layout of the strata.
    merged : int, optional
        Number of strata after small ones were merged; None where none were.
    """

    strata: str
    merged: int | None = None


@dataclass(frozen=True, slots=True)
class FoldAverage:
    """The average of what a learner answers in each fold.

    Attributes
    ----------
    learner : str
        Name of the learner.
    """

    learner: str


@dataclass(frozen=True, slots=True)
class FunctionAverage:
    """An average effect in the place of an effect as a function of covariates.

    Attributes
    ----------
    estimator : estimator
        Of the function.
    """

    estimator: AnyEstimator


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean score of people whom a rule or a ranking picks.

    Attributes
    ----------
    doubly_robust : bool
        Whether scores are doubly robust; else they compare the arms' outcomes.
    ranked : bool
        Whether people are picked by their rank; else by a rule.
    """

    doubly_robust: bool
    ranked: bool


# A text is the name of a method of somebody's own.
AnyEstimator: TypeAlias = (
    Estimator
    | WithinSites
    | LessEarlierNumbers
    | Clustered
    | ClusteredGroups
    | InGroups
    | BalancedArms
    | LimitedStrata
    | StandardisedSurvival
    | FoldAverage
    | FunctionAverage
    | MeanScore
    | str
)


class Quantity(StrEnum):
    """What was released with noise; those of the last block are said of somebody, in `QuantityOf`."""

    # An effect, its parts and its error.
    EFFECT = auto()
    DIFFERENCE_IN_MEANS = auto()
    ITS_VARIANCE = auto()
    ITS_STANDARD_ERROR = auto()
    MEAN_OUTCOME = auto()
    SHARE_TREATED = auto()
    SUMS_OF_ARMS = auto()
    CENTRED_CONTRAST = auto()
    ITS_SECOND_MOMENT = auto()
    SUMS_OF_RATIOS = auto()
    SQUARED_RESIDUALS_OF_RATIOS = auto()
    ARM_TOTALS = auto()
    EARLIER_MOMENTS = auto()
    GROUP_EFFECTS = auto()
    # Strata and folds.
    STRATUM_AVERAGE = auto()
    STRATUM_EFFECTS = auto()
    STRATUM_WEIGHTS = auto()
    VARIANCE_OF_FORMER = auto()
    COMPARISON_OF_ARMS = auto()
    FOLD_AVERAGE = auto()
    ITS_SQUARES = auto()
    # Counts.
    OUTCOME_HISTOGRAM = auto()
    FULL_CELL_HISTOGRAM = auto()
    OUTCOME_DISTANCES = auto()
    ROW_LENGTHS = auto()
    SCORE_SIZES = auto()
    WEIGHTED_RESIDUAL_SIZES = auto()
    SCORE_HISTOGRAM = auto()
    RANK_HISTOGRAM = auto()
    BALANCE_MOMENTS = auto()
    SCORE_COUNTS = auto()
    LENGTHS_AND_DISTANCES = auto()
    RESIDUAL_SIZES_TWICE = auto()
    # Moments that models are fitted to.
    CENTRES_OF_NUMBERS = auto()
    CENTRES_OF_FEATURES = auto()
    CENTRES_OF_COLUMNS = auto()
    CENTRES_OF_CELLS = auto()
    ARM_GRAMS = auto()
    ARM_RESIDUAL_MOMENTS = auto()
    TREATMENT_GRAM = auto()
    OUTCOME_RESIDUAL_MOMENTS = auto()
    COVARIATE_OUTCOME_MOMENTS = auto()
    ONE_DIRECTION = auto()
    PAIR_MOMENTS = auto()
    COLUMN_MOMENTS = auto()
    FIRST_ROW_MOMENTS = auto()
    ROW_MOMENTS = auto()
    OUTCOME_MOMENTS = auto()
    FIRST_OUTCOME_MOMENTS = auto()
    RESIDUAL_MOMENTS = auto()
    SANDWICH = auto()
    # Scores.
    DOUBLY_ROBUST_SCORE = auto()
    WEIGHTED_RESIDUALS = auto()
    CELL_SCORES = auto()
    PAIR_SCORES = auto()
    FUNCTIONS_OF_SCORES = auto()
    # Effects as functions of covariates.
    ARM_LEVELS = auto()
    RESIDUAL_SIZES = auto()
    RESIDUAL_SQUARES = auto()
    FIRST_MODEL = auto()
    EFFECTS = auto()
    # Counts and sums of cells.
    PEOPLE_BY_CLUSTER = auto()
    OUTCOMES_BY_CLUSTER = auto()
    PEOPLE_BY_GROUP_AND_CLUSTER = auto()
    OUTCOMES_BY_GROUP_AND_CLUSTER = auto()
    # Of an arm, a period or so many outcomes.
    MEAN_OF = auto()
    VARIANCE_OF = auto()
    ITS_VARIANCE_OF = auto()
    MEAN_OVER_STRATA_OF = auto()
    ITS_VARIANCE_OVER_STRATA_OF = auto()
    COMPARISON_AT = auto()
    VARIANCE_OF_CHANGE_AT = auto()
    CONTRAST_AT = auto()
    CENTRES_OF_OUTCOMES = auto()
    CONTRASTS_OF_OUTCOMES = auto()
    MOMENTS_OF_OUTCOMES = auto()


@dataclass(frozen=True, slots=True)
class QuantityOf:
    """A quantity of an arm, a period or so many outcomes.

    Attributes
    ----------
    quantity : Quantity
        What it is.
    whom : object
        Label of the arm or period as it is shown, or the number of outcomes.
    """

    quantity: Quantity
    whom: object


@dataclass(frozen=True, slots=True)
class OutcomeNumbers:
    """One number of each of several outcomes.

    Attributes
    ----------
    outcomes : int
        Number of outcomes.
    group : str
        The arm or comparison that they are of, as it is shown.
    variances : bool, default False
        Whether they are variances; else means or differences.
    """

    outcomes: int
    group: str
    variances: bool = False


# A text is the name in the plan.
AnyQuantity: TypeAlias = Quantity | QuantityOf | OutcomeNumbers | str


class Noise(StrEnum):
    """The noise of a release."""

    GAUSSIAN = auto()
    LAPLACE = auto()
    BALL = auto()


class Bounded(StrEnum):
    """How far one person moves a release, or what it is for, where no number is said."""

    WHOLE_BUDGET_IN_EVERY_GROUP = auto()
    CENTRES_EFFECTS = auto()
    HISTOGRAM = auto()
    ONE_CELL_EACH = auto()
    ONE_RELEASE_EACH = auto()
    OWN_BOUND_EACH = auto()
    ONE_OVER_ROWS = auto()
    ONE_ROW_OVER_ROWS = auto()
    TWO_HALF_RANGES = auto()
    BY_NUMBER_OF_COLUMNS = auto()
    LENGTH_FROM_COUNTS = auto()
    RESIDUALS_FROM_COUNTS = auto()
    FROM_COUNTS = auto()


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one person moves a released number.

    Attributes
    ----------
    bound : float
        The sensitivity, in units of the number.
    """

    bound: float


@dataclass(frozen=True, slots=True)
class CentringSensitivity:
    """How far one person moves a number around which a contrast is centred.

    Attributes
    ----------
    bound : float
        The sensitivity, in units of the outcome.
    several : bool
        Whether the numbers are several.
    """

    bound: float
    several: bool


@dataclass(frozen=True, slots=True)
class LengthSensitivity:
    """How far one person moves released numbers together, as a Euclidean length.

    Attributes
    ----------
    bound : float
        The l2 sensitivity.
    """

    bound: float


@dataclass(frozen=True, slots=True)
class ScaledSensitivity:
    """How far one person moves numbers that are released together, each in a unit of its own.

    Attributes
    ----------
    bound : float
        The sensitivity.
    length : bool
        Whether it is a Euclidean length; else a sum of absolute changes.
    """

    bound: float
    length: bool


@dataclass(frozen=True, slots=True)
class CountChange:
    """How far one person moves released counts together.

    Attributes
    ----------
    bound : float
        The largest change.
    heavy : bool
        Whether it is a sum of absolute changes, for Laplace noise; else a Euclidean length.
    """

    bound: float
    heavy: bool


@dataclass(frozen=True, slots=True)
class ArmTotalChange:
    """How far one person moves number, sum and squares of every arm together.

    Attributes
    ----------
    bound : float
        The largest change.
    length : bool
        Whether it is a Euclidean length; else a sum of absolute changes.
    """

    bound: float
    length: bool


@dataclass(frozen=True, slots=True)
class RangePart:
    """How far one person moves a number of each outcome.

    Attributes
    ----------
    part : float
        Largest change, as a part of the outcome's range.
    squared : bool, default False
        Whether it is a part of the squared range.
    """

    part: float
    squared: bool = False


@dataclass(frozen=True, slots=True)
class SquaredLength:
    """The largest squared length of a row whose products are summed.

    Attributes
    ----------
    bound : float
        The squared length.
    """

    bound: float


@dataclass(frozen=True, slots=True)
class ResidualClip:
    """Where residuals are clipped before they are summed.

    Attributes
    ----------
    half_ranges : float
        Largest residual, in half ranges of the outcome.
    """

    half_ranges: float


@dataclass(frozen=True, slots=True)
class DeclaredBound:
    """The bound that a statistic of somebody's own declares.

    Attributes
    ----------
    bound : float
        How far one person moves it.
    """

    bound: float


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """What a release costs.

    Attributes
    ----------
    part : float
        Part of the budget.
    noise : Noise, optional
        Its noise; None where the answer says it elsewhere.
    """

    part: float
    noise: Noise | None = None


@dataclass(frozen=True, slots=True)
class ScoreBudgetPart:
    """What a release behind scores costs.

    Attributes
    ----------
    part : float
        Part of the budget.
    pure_kind : str, optional
        What kind of numbers the plan releases with pure noise; None where the noise is Gaussian.
    """

    part: float
    pure_kind: str | None


@dataclass(frozen=True, slots=True)
class ShapedNoise:
    """Noise in the shape of the predictions of what is released.

    Attributes
    ----------
    noise : Noise
        Its distribution.
    several : bool
        Whether several numbers predict, each with its own shape.
    """

    noise: Noise
    several: bool


@dataclass(frozen=True, slots=True)
class TwoSearches:
    """Two private searches by noisy counts.

    Attributes
    ----------
    counts : int
        Number of counts of each search.
    """

    counts: int


# A text is the name of a mechanism.
AnyBound: TypeAlias = (
    Noise
    | Bounded
    | Sensitivity
    | CentringSensitivity
    | LengthSensitivity
    | ScaledSensitivity
    | CountChange
    | ArmTotalChange
    | RangePart
    | SquaredLength
    | ResidualClip
    | DeclaredBound
    | BudgetPart
    | ScoreBudgetPart
    | ShapedNoise
    | TwoSearches
    | str
)
# What was released, and how far one person moves it or what it cost.
ReleaseRow: TypeAlias = tuple[AnyQuantity, AnyBound]


class Premise(StrEnum):
    """What a guarantee rests on beside its proofs."""

    LEARNER_SEES_ROWS_ALONE = auto()


@dataclass(frozen=True, slots=True)
class PublicPrediction:
    """A column that is taken as public because a study says so.

    Attributes
    ----------
    column : str
        The column.
    """

    column: str


# A text is what a rule, a model or a published form says of itself.
AnyPremise: TypeAlias = Premise | PublicPrediction | str
