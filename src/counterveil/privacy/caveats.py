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
    """What intervals do not cover, where nothing more is to be said than which it is."""

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
    """That changes of `outcome` would have been those of the untreated, alike in covariates if it is `adjusted`.

    `of_untreated` says that the same is supposed of the untreated with treatment.
    """

    outcome: str
    adjusted: bool
    of_untreated: bool


class ConfoundingBeyond(Detail):
    """Confounding stronger than a declared bound."""

    kappa: float


class ErrorsOfPropensity(Detail):
    """Errors of a noisy propensity model with a penalty, shrunk or not, which leave confounding."""

    penalty: float
    shrunk: bool


class LearnerBias(Detail):
    """Bias of a learner on so many rows, and confounding that it does not remove."""

    learner: str
    rows: int


class MisspecifiedModels(Detail):
    """Outcomes that are not linear where the noisy propensity model with this penalty is wrong as well."""

    penalty: float


class OtherEstimand(Detail):
    """The difference between what was asked for and the average over everyone, in a trial."""

    estimand: Estimand


class SmallArms(Detail):
    """Arms smaller than a share of everyone."""

    share: float


class BiasBeyond(Detail):
    """Bias beyond so many standard errors from sampling, of each arm's mean, or of curves whose variance holds it."""

    errors: float
    of_each_arm: bool


class ResidualImbalance(Detail):
    """A bias of so many standard deviations of what covariates predict, within the allowance for bias."""

    sds: float


class OtherFunctions(Detail):
    """Outcomes and treatment that follow other functions of covariates than the balanced ones."""

    balanced: tuple[str, ...]


class NotExpressed(Detail):
    """Outcomes or effects that functions of these families cannot express."""

    families: tuple[str, ...]


class StrataLeftOut(Detail):
    """People in strata that lack an arm; with a limit, strata that count at most so often their smaller arm."""

    estimand: Estimand
    limit: float | None


class ClippedPropensities(Detail):
    """Propensities nearer to 0 or 1 than this, which are clipped."""

    clip: float


class ClippedFolds(Detail):
    """Effects of folds farther than a bound from a centre, which are clipped."""

    bound: float
    centre: float


class ClampedOutcomes(Detail):
    """Few outcomes that noise hides, farther off than those of the ends of an interval that was found privately."""

    low: float
    high: float


# Outcomes crowd at an end of their range where the share there exceeds this by twice the half-width of its 95 %
# interval: noise alone says so of about one answer in a thousand.
CROWDED = 0.01


class OutcomesAtEnds(Detail):
    """How many more outcomes lie in the lowest and the highest cell of the range than in the cell beside it.

    A cell is the `part` of the range. `lower` and `upper` are shares of all outcomes, each with the two ends of its
    95 % interval, from a released histogram: clamping leaves such a crowd, a density that is smooth there leaves none.
    """

    part: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def crowded(self) -> tuple[str, ...]:
        """The ends at which outcomes crowd beyond what noise explains: "lower", "upper"."""
        ends = (("lower", self.lower), ("upper", self.upper))
        return tuple(name for name, (share, low, _) in ends if share - 2 * (share - low) > CROWDED)


class ClippedOutliers(Detail):
    """Columns whose numbers are clipped farther than a reach, or so many SDs, from what other columns predict."""

    columns: tuple[str, ...]
    reaches: tuple[float, ...]
    in_sds: bool


class Downweighted(Detail):
    """The share of rows that count less for unusual covariates."""

    share: float


class Shrinkage(Detail):
    """By what randomized response multiplies the effect, about."""

    factor: float


class OneLook(Detail):
    """That a p-value is of one look: over all of them zero is ruled out only below `alpha`."""

    alpha: float


class RowsLeftOut(Detail):
    """The people without a value of one of these columns, whose rows a rule of the study leaves out."""

    columns: tuple[str, ...]


class ValuesFilled(Detail):
    """Missing values of these columns, in place of which a constant of the study counts."""

    columns: tuple[str, ...]


class SitesLeftOut(Detail):
    """The people of sites whose weight is zero."""

    sites: tuple[str, ...]


class SitesWithoutAnswer(Detail):
    """The people of sites without a valid answer, each with how it stands."""

    sites: tuple[str, ...]
    states: tuple[str, ...]


class Target(StrEnum):
    """What an interval is for where it is not for the effect."""

    CONFOUNDED_DIFFERENCE = auto()
    UNADJUSTED_CONTRAST = auto()
    SHRUNK_CONTRAST = auto()
    PUBLISHED_ESTIMATE = auto()
    KERNEL_REGRESSION = auto()
    UNCLIPPED_CONTRAST = auto()
    TREATED_TIMES_SHARE = auto()
    UNTREATED_TIMES_SHARE = auto()
    NO_QUANTITY = auto()


class WeightedContrast(Detail):
    """The contrast weighted by released scores, which lie in a range."""

    low: float
    high: float


class LearnersAnswer(Detail):
    """The expected answer of a learner on so many rows."""

    learner: str
    rows: int


class NotAdjusted(Detail):
    """That an unadjusted interval covers up to a declared bound on confounding."""

    kappa: float


class FoldModels(StrEnum):
    """What must be linear in the covariates, by the learner of folds or of halves."""

    OUTCOME = auto()
    OUTCOME_OR_LOGIT = auto()


class LinearScores(Detail):
    """That the propensity score or the outcome regression is linear in covariates, their squares, pairwise products.

    With moments by arm the `inverse` score is meant.
    """

    inverse: bool
    squares: bool
    products: bool


class LinearIn(Detail):
    """That the propensity score or the outcome regression is linear in so many features that weights balance."""

    features: int


class KnownScore(Detail):
    """That a column holds each person's probability of treatment."""

    column: str


class KeptPeople(Detail):
    """So many of all people, whose propensity scores are at least `limit` away from 0 and 1."""

    kept: int
    rows: int
    limit: float


class KeptByTrim(Detail):
    """The people whom a setting of `trim` keeps, where nobody has counted them."""

    trim: str


class AtSites(Detail):
    """What each of several sites says, None where one says nothing."""

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
