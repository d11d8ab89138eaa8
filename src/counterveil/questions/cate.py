"""Conditional average treatment effects: `cate(...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.privacy import Unit
from counterveil.questions.asking import Arguments, Asked, question_of
from counterveil.questions.ate import answer as average_effect
from counterveil.questions.choices import CateMethod
from counterveil.results.arms import refuse_several_arms
from counterveil.results.functions import (
    CateAnswers,
    CateModel,
    CateQuestion,
    one_effect_model,
    read_queries,
)
from counterveil.results.question import (
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_unknown_method,
)
from counterveil.session import BaseSession
from counterveil.settings import Cate, Series
from counterveil.settings.methods import Settings
from counterveil.statistics.linear.functions import function_pays, series
from counterveil.statistics.moments.functions import choose_design, r_learner, strength, t_learner
from counterveil.statistics.pairs.effect import function_pays as pair_function_pays
from counterveil.statistics.pairs.effect import pair_series

# Rows times mu a function from which the R-learner is as accurate as the T-learner.
_STRONG = 150.0


def automatic(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the T-learner where rows or budget are few, the R-learner where there are many, else one number.

    Settings ask for a function. Without them it is one number where a function is not expected to be closer to the
    effects, and where noise and sampling explain how a released function differs.
    """
    rows, budget = session.batches.rows, question.budget
    design = choose_design(session.study, rows, budget, question.settings or Cate())
    if question.settings is None and not design.is_worthwhile:
        return one_number(session, question)
    strong = not budget.pure and strength(rows, budget, design.basis.size) >= _STRONG
    return (r_learner if strong else t_learner)(session, question)


def automatic_series(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the series where covariates are public, or one number, as for records."""
    pair = question.unit is Unit.TREATMENT_AND_OUTCOME
    if question.settings is None and not (pair_function_pays if pair else function_pays)(session, question):
        return one_number(session, question)
    return (pair_series if pair else series)(session, question)


def one_number(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the average effect that `ate` answers with for the whole budget, the same for everybody."""
    return one_effect_model(session.study, question.level, average_effect(session, question))


Form = Callable[[BaseSession, CateQuestion], CateModel]


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of one method by unit of protection, each with the type of its settings.

    Those of the units `in_batches` add rows up in passes, wherever the rows lie.
    """

    by_unit: Mapping[Unit, tuple[Form, type]]
    in_batches: tuple[Unit, ...] = ()


FORMS: dict[str, Forms] = {
    "auto": Forms(
        {
            Unit.RECORD: (automatic, Cate),
            Unit.OUTCOME: (automatic_series, Series),
            Unit.TREATMENT_AND_OUTCOME: (automatic_series, Series),
        },
        in_batches=(Unit.RECORD,),
    ),
    "t_learner": Forms({Unit.RECORD: (t_learner, Cate)}, in_batches=(Unit.RECORD,)),
    "r_learner": Forms({Unit.RECORD: (r_learner, Cate)}, in_batches=(Unit.RECORD,)),
    "series": Forms({Unit.OUTCOME: (series, Series), Unit.TREATMENT_AND_OUTCOME: (pair_series, Series)}),
}


def cate_methods(unit: Unit | None = None) -> tuple[str, ...]:
    """Return the names that `method=` takes, of all methods or of those that protect a unit."""
    return tuple(name for name, forms in FORMS.items() if unit is None or unit in forms.by_unit)


def check_form(question: CateQuestion) -> None:
    """Raise where there is no such method at that level, or where settings are another's."""
    refuse_unknown_method(question.method, cate_methods())
    forms = FORMS[question.method]
    if question.unit not in forms.by_unit:
        known = " or ".join(f"protects={unit.value!r}" for unit in forms.by_unit)
        raise refusal("CV-P018b", known=known, method=question.method, unit=question.unit.value)
    refuse_other_settings(question, forms.by_unit[question.unit][1])


@silence()
def answer_cate(session: BaseSession, question: CateQuestion) -> CateModel | CateAnswers:
    """Return the answer of an admitted question's form; a function is read off at queries for nothing."""
    forms = FORMS[question.method]
    form, _ = forms.by_unit[question.unit]
    if question.unit in forms.in_batches:
        session.attach_batches()
    else:
        session.attach(f"cate with method={question.method!r}")
    if session.study.cluster is not None:
        refuse_few_clusters(session.study, "cate", question.method, session.batches.rows)
    found = form(session, question)
    return found if question.queries is None else found.answers(question.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CateArguments(Arguments[CateModel | CateAnswers]):
    """Return the private effect as a function of the covariates, or its values at given queries.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories; at least one covariate.
        protects: "record", everything about a person; "outcome", where covariates and treatment are public; or
            "treatment and outcome", where covariates are.
        epsilon: privacy loss to spend on the whole function; evaluating it costs nothing.
        delta: 0 for pure differential privacy; a small positive number, as 1e-6, allows Gaussian noise.
        method: "auto", "t_learner" or "r_learner"; for public covariates "auto" or "series".
        level: confidence level of intervals and bands, which include the privacy noise.
        queries: people to ask about, as a table of covariates; None for a model, evaluated as often as you like.
        settings: the method's own settings.
        ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "cate"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: CateMethod = "auto"
    queries: Any = None
    settings: Settings | None = None

    def checked(self, study: Study) -> Asked[CateModel | CateAnswers]:
        """Return the checked question; nothing here looks at data or budget."""
        checked = self.about(study)
        check_form(checked)

        def answer(session: BaseSession) -> CateModel | CateAnswers:
            session.admit(checked.uses(study, "cate"))
            return answer_cate(session, checked)

        return Asked(checked.budget, answer)

    def about(self, study: Study) -> CateQuestion:
        """Return the checked question, for any method; nothing here looks at data."""
        refuse_shape(study, self.unit)
        refuse_several_arms(study)
        require_covariates(study, "cate")
        question = CateQuestion.ask(
            protects=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            estimand="ATE",
            method=self.method,
            level=self.level,
            mechanism=None,
            request_id=self.request_id,
            settings=self.settings,
        )
        refuse_extremes(study, question.budget)
        return (
            question if self.queries is None else replace(question, queries=read_queries(self.queries, study))
        )


cate = question_of(CateArguments)
