"""Effects on several outcomes at once: `outcomes(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.errors import ParameterError, refusal
from counterveil.privacy import Estimand, Number, Unit, exact
from counterveil.questions.asking import Arguments, Asked, question_of, refuse_range, with_smaller_noise
from counterveil.questions.choices import EstimandName, Mechanism, OutcomesMethod
from counterveil.results.arms import OutcomesResult
from counterveil.results.measures import OF_MEANS, Measure, check_measure, no_means
from counterveil.results.question import (
    Question,
    refuse_clusters,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.session import BaseSession, Kind, Plan
from counterveil.settings import Arms, DifferenceInMeans, Matching, Weighting
from counterveil.statistics.linear.several_outcomes import outcome_effects
from counterveil.statistics.moments.trial import record_arm_effects, record_effects
from counterveil.statistics.outcome_place import Outcomes
from counterveil.statistics.pairs.effect import pair_outcomes

# Methods by what they protect, with their settings; where there are several arms, those of `settings.Arms`.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": DifferenceInMeans,
        "weighting": Weighting,
        "matching": Matching,
    },
    Unit.TREATMENT_AND_OUTCOME: {"doubly_robust": None},
    Unit.RECORD: {"trial": None},
}
_ADJUSTING = ("weighting", "matching")
# How much less noise an outcome may have than another.
_MOST_IMPORTANCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesArguments(Arguments[OutcomesResult]):
    """Return the private effects on all outcomes of a study, the primary one first.

    Args:
        data: as for `counterveil.ate`.
        study: declared with outcomes=; of two arms or of several.
        protects: "outcome" (all outcomes of a person), "treatment and outcome" (all outcomes and who took part) or
            "record" (everything about a person; trials).
        epsilon: privacy loss to spend on all outcomes together.
        delta: a small positive number allows Gaussian noise, which grows with the root of the number of outcomes; pure
            noise grows with their number, but by less than if each were asked for by itself.
        method: "auto"; with outcomes protected "difference_in_means", "weighting" and "matching" (covariates), one set
            of weights for all outcomes; with records protected "trial"; between the two "doubly_robust", one
            score with public covariates.
        estimand: as for `counterveil.ate`; with several arms "ATE".
        measure: "difference", "ratio", "lift", "odds_ratio" or "nnt", as for `counterveil.ate`.
        importance: noise of each outcome is in proportion to one over this; 1 where nothing is said.
        level: confidence level of the intervals, single or simultaneous.
        settings: those of the method, `cv.settings.Weighting` for weighting; with several arms `cv.settings.Arms`.
        mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "outcomes"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: OutcomesMethod = "auto"
    estimand: EstimandName = "ATE"
    measure: Measure = "difference"
    importance: Mapping[str, Number] | None = None
    mechanism: Mechanism | None = None
    settings: Arms | DifferenceInMeans | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[OutcomesResult]:
        """Return the checked question; nothing here looks at data or budget."""
        check_measure(self.measure)
        listed = _listed(study, self.importance, self.measure)
        _refuse_earlier(study)
        unit, method = self.unit, self.method
        refuse_unknown_method(method, ("auto", *METHODS[unit]), f" with protects={unit.value!r}")
        if method == "auto":
            method = _usual(study, unit)
        question = self.question(
            method, self.mechanism, self.settings, estimand=self.estimand, measure=self.measure
        )
        for name, ends in zip(listed.names, listed.ranges, strict=True):
            one = study.changed(outcome=name, outcome_range=ends)
            refuse_extremes(one, question.budget)
            refuse_range(one, self.measure)
        _refuse_arms(study, question)
        refuse_shape(study, unit, self.name)
        kind = METHODS[unit][method]
        if method in _ADJUSTING:
            require_covariates(study, method)
            kind = kind if study.arms is None else Arms
        elif study.arms is not None:
            kind = None
        if unit is Unit.TREATMENT_AND_OUTCOME and study.randomised is not True:
            require_covariates(study, method)
        refuse_other_settings(question, kind)
        if isinstance(self.settings, Weighting) and self.settings.prediction is not None:
            raise refusal("CV-P689", prediction=self.settings.prediction)
        refuse_clusters(study, "outcomes", method, unit)
        return Asked(question.budget, partial(_answer, question=question, listed=listed))


outcomes = question_of(OutcomesArguments)


def _listed(study: Study, importance: Mapping[str, Number] | None, measure: str) -> Outcomes:
    """Return the outcomes with their weights, or raise CV-S142 or CV-P688."""
    if study.several is None:
        raise refusal("CV-S142", outcome=study.outcome)
    names, ranges = study.several.names, tuple(ends for _, ends in study.several.ranges)
    given = {} if importance is None else importance
    wrong = not isinstance(given, Mapping) or any(name not in names for name in given)
    try:
        weights = () if wrong else tuple(exact(given.get(name, 1), "importance") for name in names)
    except ParameterError:
        weights = ()
    if not weights or not all(Fraction(1, _MOST_IMPORTANCE) <= one <= _MOST_IMPORTANCE for one in weights):
        raise refusal("CV-P688", most_importance=_MOST_IMPORTANCE, importance=importance)
    # Ratios are those of outcomes as they are.
    before = {} if measure in OF_MEANS else dict(study.several.baseline)
    columns = study.several.columns
    places = tuple(columns.index(before[name]) - 1 if name in before else None for name in names)
    return Outcomes(names, ranges, weights, places if before else ())


def _refuse_earlier(study: Study) -> None:
    """Raise CV-S143 where what was measured before would be taken off outcomes of arms that are not comparable."""
    if study.several is not None and study.several.baseline and study.randomised is not True:
        raise refusal("CV-S143", randomised=study.randomised)


def _usual(study: Study, unit: Unit) -> str:
    if unit is Unit.TREATMENT_AND_OUTCOME:
        return "doubly_robust"
    if unit is Unit.RECORD:
        refuse_undeclared_trial(study)
        return "trial"
    if study.covariates:
        return "weighting"
    refuse_undeclared_trial(study)
    return "difference_in_means"


def _refuse_arms(study: Study, question: Question) -> None:
    """Raise CV-P401 for what several arms have no estimate of."""
    known = (Estimand.ATE,) if study.arms is not None else (Estimand.ATE, Estimand.ATT, Estimand.ATC)
    if question.estimand not in known:
        raise refusal(
            "CV-P401b", known=" or ".join(repr(one.value) for one in known), estimand=question.estimand.value
        )
    pairs = question.unit is Unit.TREATMENT_AND_OUTCOME
    if pairs and question.measure in OF_MEANS and question.estimand is not Estimand.ATE:
        raise no_means(question.method, f"estimand={question.estimand.value!r}")


def _answer(session: BaseSession, question: Question, listed: Outcomes) -> OutcomesResult:
    session.admit(question.uses(session.study, "outcomes"))
    # So that data which do not fit are refused before anything is spent.
    pairs = question.unit is Unit.TREATMENT_AND_OUTCOME
    if question.method in ("difference_in_means", "trial") and not pairs:
        session.attach_batches()
    else:
        session.attach(f"outcomes with method={question.method!r}")
    refuse_few_clusters(session.study, "outcomes", question.method, session.batches.rows)
    if pairs:
        return pair_outcomes(session, question, listed)
    if question.unit is Unit.RECORD and session.study.arms is not None:
        return record_arm_effects(session, question, listed)
    question = _with_smaller_noise(session, question, listed)
    if question.unit is Unit.OUTCOME:
        return outcome_effects(session, question, listed)
    return record_effects(session, question, listed)


def _with_smaller_noise(session: BaseSession, question: Question, listed: Outcomes) -> Question:
    ones = [Fraction(1)] * len(listed.names)

    def variance(mechanism: str) -> float:
        plan = Plan.split(question.budget, {"all": Fraction(1)}, mechanism, {"all": Kind.SEVERAL})
        return plan.several_noise("all", ones, listed.weights)[0].variance

    return with_smaller_noise(session, question, variance)
