"""Times to an event: `survival(...)`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.data.follow_up import refuse_censored
from counterveil.privacy import Unit
from counterveil.questions.asking import Arguments, Asked, question_of
from counterveil.questions.choices import Mechanism, SurvivalMethod
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.survival import SurvivalResult
from counterveil.session import BaseSession
from counterveil.settings import Survival
from counterveil.statistics.time_tables import SurvivalRequest as AskedByStrata
from counterveil.statistics.time_tables import survival_by_strata, survival_by_weights

# Methods by what they protect.
METHODS = {
    Unit.OUTCOME: ("kaplan_meier", "stratified", "weighting"),
    Unit.RECORD: ("kaplan_meier", "stratified"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalArguments(Arguments[SurvivalResult]):
    """Return private survival curves of both arms, their differences, restricted means and the log-rank test.

    Args:
        data: as for `counterveil.ate`.
        study: declared with a cv.TimeToEvent; its outcome is the time of follow-up.
        protects: "outcome" (times and events) or "record" (everything about a person).
        epsilon: privacy loss to spend on everything together.
        delta: a small positive number allows Gaussian noise, which is taken where it is the smaller one.
        method: "auto", "kaplan_meier" (trials), "stratified" (by covariates with labels or cut points) or, where
            outcomes are protected, "weighting" (balances all covariates).
        level: confidence level of intervals and bands.
        settings: `cv.settings.Survival`.
        mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "survival"
    method: SurvivalMethod = "auto"
    mechanism: Mechanism | None = None
    settings: Survival | None = None

    def checked(self, study: Study) -> Asked[SurvivalResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_censored(study.event, "survival")
        unit, method = self.unit, self.method
        refuse_unknown_method(method, ("auto", *METHODS[unit]), f" with protects={unit.value!r}")
        if method == "auto":
            adjusted = study.randomised is not True and bool(study.covariates)
            if not adjusted:
                refuse_undeclared_trial(study)
            free = "weighting" if unit is Unit.OUTCOME else "stratified"
            method = free if adjusted else "kaplan_meier"
        question = self.question(method, self.mechanism, self.settings)
        refuse_extremes(study, question.budget)
        refuse_other_settings(question, Survival)
        if method != "kaplan_meier":
            require_covariates(study, method)
        AskedByStrata.of(study, question)
        return Asked(question.budget, partial(answer_survival, question=question))


survival = question_of(SurvivalArguments)


@silence()
def answer_survival(session: BaseSession, question: Question) -> SurvivalResult:
    """Return the survival of both arms of an open session."""
    session.admit(question.uses(session.study, "survival"))
    answer = survival_by_weights if question.method == "weighting" else survival_by_strata
    return answer(session, question)
