"""Which bounds belong to the numbers of which method, and of which kind of answer.

A coordinator checks what a site answers against what the method could have answered. Two tables lead from
what was asked to functions that yield bounds: of one difference by unit of privacy and method, and of answers
of several numbers by question (arms, groups, outcomes, survival, moments). In come public numbers
(`SiteQuestion`, `AnswerQuestion`) and a site's answer, out come bounds in the units of the answer (of the
outcome, or of the tables); each names a figure, where it may lie and what kind of breach it would be.

Rows of tables of effects are judged as the only effect: one outcome, or pair, is in one arm and in one group,
which therefore has the whole budget. Of several outcomes all may move together, and their noise is first
taken for that of one number: for box noise (one noise for a vector of outcomes) the staircase noise of the
same sensitivity and epsilon, for Gaussian noise a sensitivity smaller by the root of the number of outcomes.

Why it is right: the bounds follow from the sensitivity and the plan of the method, argued in `averages`,
`pairs`, `records` and `tables`. The checks read released numbers, so that privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.data import Range, Study
from counterveil.estimators.moments.regression_columns import columns_of as moment_columns
from counterveil.estimators.site_bounds import averages, pairs, records, tables
from counterveil.estimators.site_bounds.noise import PlainNoise
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, ReleasedMean, SiteQuestion
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import sqrt_up
from counterveil.privacy import Unit
from counterveil.results.arms import ArmsResult, OutcomesResult
from counterveil.results.effect import Effect, Linear, noise_from_dict, noise_to_dict
from counterveil.results.groups import GroupsResult
from counterveil.results.regression import Moments
from counterveil.results.site_bounds import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    Above,
    Bound,
    Breach,
    Equal,
    OneOf,
    Within,
)
from counterveil.results.survival import SurvivalResult
from counterveil.rows.moments.regression_columns import Columns

DifferenceBounds: TypeAlias = Callable[[SiteQuestion, ReleasedDifference], Iterator[Bound]]

# Methods of averages of private outcomes with public weights.
_WEIGHTED = ("difference_in_means", "weighting", "matching")
# Methods whose answers can be judged, by question.
ESTIMATORS = {
    "arms": _WEIGHTED,
    "groups": (*_WEIGHTED, "adjusted", "arms"),
    "outcomes": (*_WEIGHTED, "trial"),
    "survival": ("kaplan_meier", "stratified", "weighting"),
    "moments": ("moments",),
}
# Differences by unit and method, and those of every other method of the unit.
_DIFFERENCES: dict[tuple[Unit, str], DifferenceBounds] = {
    (Unit.OUTCOME, "difference_in_means"): averages.plain_difference,
    (Unit.RECORD, "trial"): records.contrast,
    (Unit.RECORD, "stratified"): records.strata_difference,
}
_OTHERS: dict[Unit, DifferenceBounds] = {
    Unit.OUTCOME: averages.weighted_difference,
    Unit.TREATMENT_AND_OUTCOME: pairs.pair_difference,
    Unit.RECORD: records.score_difference,
}


def least_noise(question: SiteQuestion) -> float:
    """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        return pairs.least_noise(question)
    return averages.least_noise(question)


def difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Return the bounds of a difference of both arms."""
    # Sites of a sum have arms of their own, of which it is a weighted mean.
    method = "weighting" if question.most_sites > 1 and question.unit is Unit.OUTCOME else question.method
    return _DIFFERENCES.get((question.unit, method), _OTHERS[question.unit])(question, released)


def means(question: SiteQuestion, of_arms: Any, details: Mapping[str, Any]) -> Iterator[Bound]:
    """Yield the bounds of the means of both arms, which ratios are made of."""
    yield Equal(
        "range of the means", None if of_arms is None else of_arms.range, question.ends, breach=Breach.LIMITS
    )
    if isinstance(of_arms, IndependentArmMeans) and question.unit is Unit.OUTCOME:
        if question.method == "difference_in_means":
            counts = Fields("details", details)
            arms = [counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control")]
            yield Equal("sizes of the arms", list(of_arms.sizes), arms)
        by_arm = zip(of_arms.values, of_arms.known, of_arms.sizes, strict=True)
        yield from averages.arm_means(question, [ReleasedMean(*mean) for mean in by_arm], rare=False)
    elif isinstance(of_arms, JointArmMeans) and question.unit is Unit.RECORD:
        yield from records.joint_means(question, of_arms)
    elif isinstance(of_arms, IndependentArmMeans) and question.method == "doubly_robust":
        yield from records.scored_means(question, of_arms)
    else:
        yield OneOf("kind of means", type(of_arms), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """A question about several figures: what was asked of every outcome, of which study, with which arguments.

    `outcomes` has the question by the name of each outcome; of times to events, one by the name of the column.
    `first_outcome` is the first of them: it has the rows of the site.
    """

    study: Study
    outcomes: Mapping[str, SiteQuestion]
    options: Mapping[str, Any]

    @property
    def first_outcome(self) -> SiteQuestion:
        """The question about the first outcome."""
        return next(iter(self.outcomes.values()))


def arms(question: AnswerQuestion, answer: ArmsResult) -> Iterator[Bound]:
    """Return the bounds of the means of all arms."""
    released = []
    for mean in answer.means:
        linear = cast("Linear", mean.known)
        error = cast("Uncertainty", linear.uncertainty)
        released.append(ReleasedMean(linear.estimate, error, cast("float", mean.size)))
    return averages.arm_means(question.first_outcome, released, rare=True)


def groups(question: AnswerQuestion, answer: GroupsResult) -> Iterator[Bound]:
    """Yield the bounds of the effects on groups."""
    of_outcome = question.first_outcome
    if of_outcome.unit is Unit.RECORD:
        for group in answer.groups:
            yield from _ratio_of_group(of_outcome, group)
        return
    covariates = question.study.covariates.items()
    weighs = any(name not in answer.by or isinstance(domain, Range) for name, domain in covariates)
    # Groups whose covariates are all the same are not weighted.
    plain = of_outcome.method in _WEIGHTED and not weighs
    method = "difference_in_means" if plain else of_outcome.method
    for group in answer.groups:
        numbers = cast("Linear", group.known)
        size = int(cast("float", group.size))
        people: dict[str, Any] = {"rows": size}
        if method == "difference_in_means":
            # The smaller arm gives the sensitivity; a group is judged by the arms that it must have.
            noise = cast("Uncertainty", numbers.uncertainty).noise
            smaller = of_outcome.width / PlainNoise.of(noise).sensitivity
            yield Equal("parts of a person in the smaller arm", smaller.denominator, 1)
            yield Within("smaller arm", smaller, high=Fraction(size, 2))
            people |= {"treated": int(smaller), "control": size - int(smaller)}
        yield from difference(
            replace(of_outcome, method=method, rows=size), _row(answer, numbers, answer.details | people)
        )


def outcomes(question: AnswerQuestion, answer: OutcomesResult) -> Iterator[Bound]:
    """Yield the bounds of the effects on several outcomes."""
    for figure in answer._site_figures():
        numbers = cast("Linear", figure.numbers)
        error = cast("Uncertainty", numbers.uncertainty)
        alone = replace(
            error,
            noise=_noise_of_one(error.noise, len(question.outcomes)),
            variance_noise=_noise_of_one(error.variance_noise, len(question.outcomes)),
        )
        row = _row(answer, replace(numbers, uncertainty=alone), answer.details)
        yield from difference(question.outcomes[figure.name], row)


def times(question: AnswerQuestion, answer: SurvivalResult) -> Iterator[Bound]:
    """Return the bounds of tables of times."""
    return tables.times(question.first_outcome, question.study, answer)


def moments(question: AnswerQuestion, answer: Moments) -> Iterator[Bound]:
    """Return the bounds of second moments."""
    return tables.second_moments(question.first_outcome, columns_of(question.study, question.options), answer)


def columns_of(study: Study, options: Mapping[str, Any]) -> Columns:
    """Return the columns of second moments that were asked for."""
    return moment_columns(study, options.get("outcomes", ()), options.get("terms", ()))


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """How the answers to a question are judged: their kind, and the bounds of their numbers."""

    kind: type
    bounds: Callable[[AnswerQuestion, Any], Iterator[Bound]]


ANSWERS: dict[str, AnswerTable] = {
    "arms": AnswerTable(ArmsResult, arms),
    "groups": AnswerTable(GroupsResult, groups),
    "outcomes": AnswerTable(OutcomesResult, outcomes),
    "survival": AnswerTable(SurvivalResult, times),
    "moments": AnswerTable(Moments, moments),
}


def _row(answer: Any, numbers: Linear, details: Mapping[str, Any]) -> ReleasedDifference:
    """Return one row of a table as the answer of one effect."""
    return ReleasedDifference(
        estimate=numbers.estimate,
        error=cast("Uncertainty", numbers.uncertainty),
        details=details,
        level=answer.level,
        conditional=answer.condition is not None,
        independent_variance=True,
    )


def _ratio_of_group(question: SiteQuestion, group: Effect) -> Iterator[Bound]:
    """Yield the bounds of a group of private records: a ratio of sums, or one of each arm."""
    effect = group.known
    ratios: Sequence[Any] = [effect.one, effect.other] if isinstance(effect, RatioDifference) else [effect]
    yield Equal("whether arms have ratios of their own", len(ratios) == 2, question.method == "arms")
    for ratio in ratios:
        yield Equal("whether it is a ratio", isinstance(ratio, NoisyRatio), True, breach=Breach.KIND)
        yield from records.group_ratio(question, ratio, ratios=len(ratios))
    yield OneOf("whether a size is released", group.size is not None, (True,))
    yield Above("noise of a size", group.size_sd)


def _noise_of_one(noise: NoiseDistribution | None, several: int) -> Any:
    """Return the noise that one number would have in place of one of so many, for the same change and budget."""
    facts = noise_to_dict(noise)
    if facts.get("mechanism") == "box" and facts.get("dimension") == str(several):
        named = {name: facts[name] for name in ("sensitivity", "epsilon")}
        return noise_from_dict({"mechanism": "staircase"} | named)
    if facts.get("mechanism") == "gaussian":
        alone = PlainNoise.of(noise).sensitivity / sqrt_up(Fraction(several))
        return noise_from_dict(facts | {"sensitivity": str(alone)})
    if facts:
        raise UnreadableError("a noise that several outcomes do not have")
    return None
