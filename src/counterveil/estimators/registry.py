"""The table of all methods: question, name, and for each level of protection how it is prepared.

In: a question, the name of a method and the level at which rows are protected (an
outcome, treatment and outcome together, or the whole record). Out: the function that prepares the method,
that is, looks at public numbers and plans what is released. No formula and no row is here; proofs are those
of the methods.

A row of the table is all that a new method needs beside its module, its proof and its test: questions, plans,
sites, the reference of sources, contracts and growth read it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from counterveil.estimators.distribution import quantiles_by_scores, quantiles_by_weights, quantiles_of_arms
from counterveil.estimators.folds.aggregation import sample_and_aggregate
from counterveil.estimators.linear.arm_means import arm_means
from counterveil.estimators.linear.both_means import matched_means, plain_means, weighted_means
from counterveil.estimators.linear.difference_in_means import difference_in_means
from counterveil.estimators.linear.event_study import outcome_event_study
from counterveil.estimators.linear.matching import matching
from counterveil.estimators.linear.series import series
from counterveil.estimators.linear.several_outcomes import outcome_effects
from counterveil.estimators.linear.weighting import weighting
from counterveil.estimators.method import AdaptiveMethod, Prepared, runs
from counterveil.estimators.moments.adjusted_means import adjusted_arms, measured
from counterveil.estimators.moments.arm_balance import arm_balance
from counterveil.estimators.moments.doubly_robust import doubly_robust
from counterveil.estimators.moments.r_learner import r_learner
from counterveil.estimators.moments.record_arms import record_arms
from counterveil.estimators.moments.record_event_study import record_event_study
from counterveil.estimators.moments.record_groups import record_groups
from counterveil.estimators.moments.record_outcomes import record_effects
from counterveil.estimators.moments.record_policy import record_curve, record_policy
from counterveil.estimators.moments.regression_answer import regression_moments
from counterveil.estimators.moments.t_learner import t_learner
from counterveil.estimators.moments.trial import trial
from counterveil.estimators.moments.trial_means import trial_means
from counterveil.estimators.outcome_groups import outcome_groups
from counterveil.estimators.pairs.arms import pair_arms
from counterveil.estimators.pairs.effect import pair_means, pairs
from counterveil.estimators.pairs.groups import pair_groups
from counterveil.estimators.pairs.outcomes import pair_outcomes
from counterveil.estimators.pairs.series import pair_series
from counterveil.estimators.strata.arm_means import stratified_means
from counterveil.estimators.strata.bounded_effect import stratified
from counterveil.estimators.strata.clustered_trial import clustered_trial
from counterveil.estimators.strata.outcome_effect import stratified_outcome
from counterveil.estimators.survival import survival_by_strata, survival_by_weights
from counterveil.privacy import Unit
from counterveil.results.measures import OF_MEANS
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession
from counterveil.settings import (
    Arms,
    Cate,
    DifferenceInMeans,
    DoublyRobust,
    Folds,
    Groups,
    Matching,
    Series,
    Stratified,
    Survival,
    Trial,
    Weighting,
)

Answer = TypeVar("Answer")
# From public numbers, a question and the question's own options to `Prepared`.
AnyPrepare = Callable[..., Prepared[Any]]


class Reading(StrEnum):
    """What a method does with rows that lie in a file, a database or Spark."""

    STREAMED = "streaming"  # added up block by block
    PUSHED_DOWN = "pushed down"  # grouped and added up by the engine that holds them
    IN_MEMORY = "in memory"  # read into this process, in a public order


STREAMED, PUSHED_DOWN, IN_MEMORY = Reading


@dataclass(frozen=True, slots=True)
class Form:
    """A method at one level of protection.

    Attributes
    ----------
    prepare : callable
        From public numbers and a question to `Prepared`.
    reading : Reading
        What it does with rows that are not in memory.
    settings : type, optional
        Class that `settings=` must be.
    of_means : callable, optional
        The same for ratios and odds ratios, which need the means of both arms.
    clustered : callable, optional
        The same for studies with clusters, where that is another one.
    overlap : bool
        Whether it estimates the effect of the overlap-weighted population, "ATO".
    """

    prepare: AnyPrepare
    reading: Reading = IN_MEMORY
    settings: type | None = None
    of_means: AnyPrepare | None = None
    clustered: AnyPrepare | None = None
    overlap: bool = False


@dataclass(frozen=True, slots=True)
class PackageMethod(AdaptiveMethod):
    """A method of the package: one value of `method=` of one question."""

    question: str
    name: str
    forms: Mapping[Unit, Form]

    @property
    def protects(self) -> tuple[str, ...]:  # type: ignore[override]
        """Levels of protection that it has a form for."""
        return tuple(unit.value for unit in self.forms)

    def prepare(self, public: PublicData, question: Any, **options: Any) -> Prepared[Any]:
        """Return the form of the question's level, measure and study, prepared; `options` are those of the question."""
        form = self.forms[public.unit]
        chosen = form.prepare
        if question.measure in OF_MEANS and form.of_means is not None:
            chosen = form.of_means
        elif public.study.clustered and form.clustered is not None:
            chosen = form.clustered
        return chosen(public, question, **options)


_OUTCOME, _PAIR, _RECORD = Unit.OUTCOME, Unit.TREATMENT_AND_OUTCOME, Unit.RECORD
_PAIRS = Form(pairs, of_means=pair_means, overlap=True)
_SURVIVAL = dict.fromkeys((_OUTCOME, _RECORD), Form(survival_by_strata, STREAMED, Survival))

METHODS = (
    PackageMethod(
        "ate",
        "difference_in_means",
        {_OUTCOME: Form(difference_in_means, STREAMED, DifferenceInMeans, of_means=plain_means)},
    ),
    PackageMethod(
        "ate",
        "trial",
        {
            _RECORD: Form(trial, STREAMED, Trial, of_means=trial_means, clustered=clustered_trial),
            _PAIR: _PAIRS,
        },
    ),
    PackageMethod("ate", "matching", {_OUTCOME: Form(matching, settings=Matching, of_means=matched_means)}),
    PackageMethod(
        "ate",
        "doubly_robust",
        {
            _RECORD: Form(doubly_robust, STREAMED, DoublyRobust, of_means=measured, overlap=True),
            _PAIR: _PAIRS,
        },
    ),
    PackageMethod(
        "ate",
        "stratified",
        {
            _OUTCOME: Form(stratified_outcome, PUSHED_DOWN, Stratified, of_means=stratified_means),
            _RECORD: Form(stratified, PUSHED_DOWN, Stratified),
        },
    ),
    PackageMethod(
        "ate", "weighting", {_OUTCOME: Form(weighting, settings=Weighting, of_means=weighted_means)}
    ),
    PackageMethod("ate", "sample_and_aggregate", {_RECORD: Form(sample_and_aggregate, settings=Folds)}),
    PackageMethod(
        "arms",
        "difference_in_means",
        {_OUTCOME: Form(arm_means, STREAMED), _RECORD: Form(record_arms, STREAMED)},
    ),
    PackageMethod("arms", "weighting", {_OUTCOME: Form(arm_means, settings=Arms)}),
    PackageMethod("arms", "matching", {_OUTCOME: Form(arm_means, settings=Arms)}),
    PackageMethod("arms", "doubly_robust", {_PAIR: Form(pair_arms), _RECORD: Form(adjusted_arms, STREAMED)}),
    PackageMethod(
        "outcomes", "difference_in_means", {_OUTCOME: Form(outcome_effects, STREAMED, DifferenceInMeans)}
    ),
    PackageMethod("outcomes", "weighting", {_OUTCOME: Form(outcome_effects, settings=Weighting)}),
    PackageMethod("outcomes", "matching", {_OUTCOME: Form(outcome_effects, settings=Matching)}),
    PackageMethod("outcomes", "doubly_robust", {_PAIR: Form(pair_outcomes)}),
    PackageMethod("outcomes", "trial", {_RECORD: Form(record_effects, STREAMED)}),
    PackageMethod(
        "groups", "difference_in_means", {_OUTCOME: Form(outcome_groups, STREAMED, DifferenceInMeans)}
    ),
    PackageMethod("groups", "weighting", {_OUTCOME: Form(outcome_groups, settings=Weighting)}),
    PackageMethod("groups", "matching", {_OUTCOME: Form(outcome_groups, settings=Matching)}),
    PackageMethod("groups", "arms", {_RECORD: Form(record_groups, STREAMED, Groups)}),
    PackageMethod(
        "groups", "adjusted", {_PAIR: Form(pair_groups), _RECORD: Form(record_groups, STREAMED, Groups)}
    ),
    PackageMethod(
        "event_study",
        "difference_in_means",
        {
            _OUTCOME: Form(outcome_event_study, STREAMED, DifferenceInMeans),
            _RECORD: Form(record_event_study, STREAMED),
        },
    ),
    PackageMethod("event_study", "weighting", {_OUTCOME: Form(outcome_event_study, settings=Weighting)}),
    PackageMethod("event_study", "matching", {_OUTCOME: Form(outcome_event_study, settings=Matching)}),
    PackageMethod("cate", "t_learner", {_RECORD: Form(t_learner, STREAMED, Cate)}),
    PackageMethod("cate", "r_learner", {_RECORD: Form(r_learner, STREAMED, Cate)}),
    PackageMethod(
        "cate", "series", {_OUTCOME: Form(series, settings=Series), _PAIR: Form(pair_series, settings=Series)}
    ),
    PackageMethod("survival", "kaplan_meier", _SURVIVAL),
    PackageMethod("survival", "stratified", _SURVIVAL),
    PackageMethod("survival", "weighting", {_OUTCOME: Form(survival_by_weights, settings=Survival)}),
    PackageMethod(
        "quantiles", "trial", {unit: Form(quantiles_of_arms, STREAMED) for unit in (_RECORD, _OUTCOME, _PAIR)}
    ),
    PackageMethod(
        "quantiles", "weighting", {_OUTCOME: Form(quantiles_by_weights), _PAIR: Form(quantiles_by_scores)}
    ),
    PackageMethod("policy_value", "scores", {_RECORD: Form(record_policy, STREAMED, Groups)}),
    PackageMethod("policy_value", "adjusted", {_RECORD: Form(record_policy, STREAMED, Groups)}),
    PackageMethod("targeting_curve", "scores", {_RECORD: Form(record_curve, STREAMED, Groups)}),
    PackageMethod("targeting_curve", "adjusted", {_RECORD: Form(record_curve, STREAMED, Groups)}),
    PackageMethod(
        "moments",
        "auto",
        {_OUTCOME: Form(regression_moments, STREAMED), _RECORD: Form(regression_moments, STREAMED)},
    ),
    PackageMethod("overlap", "auto", {_RECORD: Form(arm_balance, STREAMED)}),
)


def methods_of(question: str) -> dict[str, PackageMethod]:
    """Return the methods of a question by name."""
    return {method.name: method for method in METHODS if method.question == question}


def answer_by(kind: type[Answer], session: BaseSession, asked: str, question: Any, **options: Any) -> Answer:
    """Return the answer of the method that a question names; `asked` is its name, `options` are its own arguments."""
    prepare = partial(methods_of(asked)[question.method].prepare, **options)
    answer: Answer = runs(prepare)(session, question)
    assert isinstance(answer, kind)
    return answer


def by_unit(question: str) -> dict[Unit, dict[str, type | None]]:
    """Return, for each level of protection that a question has, its methods with the class of their settings."""
    methods = methods_of(question).values()
    units = [unit for unit in Unit if any(unit in method.forms for method in methods)]
    return {
        unit: {method.name: method.forms[unit].settings for method in methods if unit in method.forms}
        for unit in units
    }


def forms() -> Iterator[tuple[str, str, Unit, Form]]:
    """Yield every form: question, method, level of protection, and the form itself."""
    for method in METHODS:
        for unit, form in method.forms.items():
            yield method.question, method.name, unit, form
