"""Effects by period: `event_study(...)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

from counterveil.data import Study, silence
from counterveil.data.domains import Label
from counterveil.data.features import require_covariates
from counterveil.data.panels import complete_sizes, panel_facts
from counterveil.errors import refusal
from counterveil.privacy import Estimand, Unit
from counterveil.questions.asking import Arguments, Asked, question_of, with_smaller_noise
from counterveil.questions.choices import ArmsMethod, EstimandName, Mechanism
from counterveil.results.arms import EventStudyResult, refuse_several_arms
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_unknown_method,
    usual_estimand,
)
from counterveil.session import BaseSession, Plan
from counterveil.settings import DifferenceInMeans, Matching, Weighting
from counterveil.settings.methods import Settings
from counterveil.statistics.linear.several_outcomes import outcome_event_study
from counterveil.statistics.moments.trial import record_event_study

# Methods by what they protect, with their settings.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": DifferenceInMeans,
        "weighting": Weighting,
        "matching": Matching,
    },
    Unit.RECORD: {"difference_in_means": None},
}
_FEWEST = 3  # measurements: with two there is one effect, which `ate` estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStudyArguments(Arguments[EventStudyResult]):
    """Return the private effects of all periods of a study of a cv.Change, relative to a reference period.

    Everyone treated is so from the end of the periods before on. Effects of periods before treatment show whether
    trends were parallel then.

    Args:
        data: as for `counterveil.ate`.
        study: declared with a cv.Change, in periods or in columns.
        protects: "outcome" (all measurements of a person) or "record" (everything about a person).
        epsilon: privacy loss to spend on all periods together.
        delta: a small positive number allows Gaussian noise, which grows with the root of the number of periods; pure
            noise grows with their number.
        reference: a period before treatment, or its column; None takes the last.
        method: "auto", "difference_in_means"; with outcomes protected also "weighting" and "matching" (covariates).
        level: confidence level of the intervals, single or simultaneous.
        settings: those of the method, such as `cv.settings.Weighting()`.
        estimand, mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "event_study"
    reference: Label | None = None
    method: ArmsMethod = "auto"
    estimand: EstimandName | None = None
    mechanism: Mechanism | None = None
    settings: DifferenceInMeans | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[EventStudyResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_several_arms(study)
        place = _place(study, self.reference)
        unit, method = self.unit, self.method
        known = METHODS[unit]
        refuse_unknown_method(method, ("auto", *known), f" with protects={unit.value!r}")
        if method == "auto":
            free = unit is Unit.OUTCOME and study.covariates and study.randomised is not True
            method = "weighting" if free else "difference_in_means"
        whose = usual_estimand(study, self.estimand)
        question = self.question(method, self.mechanism, self.settings, estimand=whose.value)
        refuse_extremes(study, question.budget)
        if method != "difference_in_means":
            require_covariates(study, method)
        refuse_other_settings(question, known[method])
        _refuse_prediction(question.settings)
        if whose is Estimand.ATO:
            raise refusal("CV-P401")
        return Asked(question.budget, partial(answer_event_study, question=question, place=place))


event_study = question_of(EventStudyArguments)


@silence()
def answer_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the effects by period of an open session."""
    session.admit(question.uses(session.study, "event_study"))
    if question.method == "difference_in_means":
        session.attach_batches()
    else:
        session.attach(f"event_study with method={question.method!r}")
    rows, _ = complete_sizes(session.batches)
    if session.study.cluster is not None:
        refuse_few_clusters(session.study, "event_study", question.method, rows)
    question = _with_smaller_noise(session, question)
    form = outcome_event_study if question.unit is Unit.OUTCOME else record_event_study
    found, where = form(session, question, place), session.study.where
    said = panel_facts(session.study, (rows, session.batches.rows))
    said |= {} if where is None else {"rows_where": where.text}
    return replace(found, details=found.details | said)


def _with_smaller_noise(session: BaseSession, question: Question) -> Question:
    count = session.study.measured
    shares = {str(place): Fraction(1, count) for place in range(count)}

    def variance(mechanism: str) -> float:
        return Plan.split(question.budget, shares, mechanism).noise("0", Fraction(1)).variance

    return with_smaller_noise(session, question, variance)


def _place(study: Study, reference: Label | None) -> int:
    """Return the place of the reference among the periods, or raise CV-S021 or CV-P671."""
    before = study.before
    if before is None or len(before.labels(study.outcome)) < _FEWEST:
        raise refusal("CV-S021", fewest=_FEWEST, got="no change" if before is None else "two measurements")
    labels = before.labels(study.outcome)
    earlier = labels[: before.earlier]
    if reference is None:
        return len(earlier) - 1
    if reference not in earlier:
        raise refusal("CV-P671", earlier=list(earlier), reference=reference)
    return earlier.index(reference)


def _refuse_prediction(settings: Settings | None) -> None:
    """Raise CV-P672 where changes would be replaced by what a prediction leaves of them."""
    if isinstance(settings, Weighting) and settings.prediction is not None:
        raise refusal("CV-P672", prediction=settings.prediction)
