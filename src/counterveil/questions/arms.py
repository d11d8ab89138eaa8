"""Effects of several arms: `arms(...)`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.privacy import Unit
from counterveil.questions.asking import Arguments, Asked, question_of
from counterveil.questions.choices import ArmsMethod, Mechanism
from counterveil.results.arms import ArmsResult, refuse_several_outcomes
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.session import BaseSession
from counterveil.settings import Arms
from counterveil.statistics.linear.arm_means import arm_means
from counterveil.statistics.moments.adjusted_means import adjusted_arms
from counterveil.statistics.moments.trial import record_arms
from counterveil.statistics.pairs.effect import pair_arms

# Methods by what they protect: one does not adjust for covariates; where arms are private, one does.
_PLAIN, _ADJUSTED, _PRIVATE = "difference_in_means", ("weighting", "matching"), "doubly_robust"
METHODS = {
    Unit.OUTCOME: (_PLAIN, *_ADJUSTED),
    Unit.TREATMENT_AND_OUTCOME: (_PRIVATE,),
    Unit.RECORD: (_PLAIN, _PRIVATE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsArguments(Arguments[ArmsResult]):
    """Return the private average effects of all arms of a study against its reference.

    Args:
        data: as for `counterveil.ate`.
        study: declared with the arms and the reference of a cv.Treatment.
        protects: "outcome" (who is in which arm, and covariates, are public), "treatment and outcome" (covariates
            and who took part are public) or "record" (nothing is).
        epsilon: privacy loss to spend on all arms together.
        method: "difference_in_means" (trials), "weighting" or "matching" (covariates); "auto" takes the first in a
            trial and weighting elsewhere. Where records are private "doubly_robust" stands for both that adjust; where
            treatment and outcome are, it is the only one.
        level: confidence level of the intervals, single or simultaneous.
        settings: `cv.settings.Arms` for weighting and matching.
        delta, mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "arms"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: ArmsMethod = "auto"
    mechanism: Mechanism | None = None
    settings: Arms | None = None

    def checked(self, study: Study) -> Asked[ArmsResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_unknown_method(self.method, ("auto", *METHODS[self.unit]))
        if self.unit is Unit.TREATMENT_AND_OUTCOME:
            return self._of_pairs(study)
        method = self.method
        if method == "auto" and study.covariates and study.randomised is not True:
            method = METHODS[self.unit][1]
        chosen = _PLAIN if method == "auto" else method
        question = self.question(chosen, self.mechanism, self.settings)
        _refuse_other_studies(study, question)
        if method == "auto":
            refuse_undeclared_trial(study)
        if method in (*_ADJUSTED, _PRIVATE):
            require_covariates(study, method)
        if self.settings is not None and not (method in _ADJUSTED and isinstance(self.settings, Arms)):
            raise refusal("CV-P019", kind=type(self.settings).__name__, method=method)
        return Asked(question.budget, partial(_answer, question=question))

    def _of_pairs(self, study: Study) -> Asked[ArmsResult]:
        question = self.question(_PRIVATE, self.mechanism, self.settings)
        _refuse_other_studies(study, question)
        refuse_shape(study, question.unit, self.name)
        refuse_other_settings(question, None)
        if study.randomised is not True:
            require_covariates(study, _PRIVATE)
        return Asked(question.budget, partial(_answer, question=question))


arms = question_of(ArmsArguments)


def _refuse_other_studies(study: Study, question: Question) -> None:
    """Raise CV-S141, CV-S064 or CV-P641 for a study of several outcomes or two arms, or numbers out of range."""
    refuse_several_outcomes(study)
    if study.arms is None:
        raise refusal("CV-S064", treated=study.treated, control=study.control)
    refuse_extremes(study, question.budget)


def _answer(session: BaseSession, question: Question) -> ArmsResult:
    session.admit(question.uses(session.study, "arms"))
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        session.attach(f"arms with method={question.method!r}")
        return pair_arms(session, question)
    if question.unit is Unit.RECORD:
        session.attach_batches()
        refuse_few_clusters(session.study, "arms", question.method, session.batches.rows)
        return (adjusted_arms if question.method == _PRIVATE else record_arms)(session, question)
    question = question.in_pure_noise(session.account().rule)
    # So that data which do not fit are refused before anything is spent.
    if question.method == _PLAIN:
        session.attach_batches()
    else:
        session.attach(f"arms with method={question.method!r}")
    refuse_few_clusters(session.study, "arms", question.method, session.batches.rows)
    return arm_means(session, question)
