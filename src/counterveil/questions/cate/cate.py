"""Conditional average treatment effects: `cate(...)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.errors import ParameterError
from counterveil.privacy import Number
from counterveil.questions.asking import Asked, ask_once
from counterveil.questions.cate.bins import bins
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_queries import refuse_long_answers
from counterveil.results.cate_question import CateQuestion, ask_cate
from counterveil.results.question import refuse_other_settings, refuse_unknown_method
from counterveil.session import BitSource, Session
from counterveil.settings import Bins, Cate, FoldQueries, RandomFeatures
from counterveil.settings.ranges import Settings
from counterveil.statistics.folds.queries import fold_queries
from counterveil.statistics.moments.cate_design import choose_design, strength
from counterveil.statistics.moments.cate_random_features import random_features
from counterveil.statistics.moments.r_learner import r_learner
from counterveil.statistics.moments.t_learner import t_learner

# The choice of a method for effects as functions, from public numbers alone.


# Rows times mu a function from which the R-learner is as accurate as the T-learner.
_STRONG = 150.0


def automatic(session: Session, question: CateQuestion) -> CateModel:
    """Return the T-learner where rows or budget are few, the R-learner where there are many.

    Either says so where the budget is too small for effects that differ, and then gives one number.
    """
    settings = question.settings or Cate()
    rows, budget = session.table.rows, question.budget
    design = choose_design(session.study, rows, budget, settings)
    strong = not budget.pure and strength(rows, budget, design.basis.size) >= _STRONG
    return (r_learner if strong and design.affordable else t_learner)(session, question)


# Which form answers which question about effects: the table behind `method=` and `settings=`.


Form = Callable[[Session, CateQuestion], CateModel | CateAnswers]

# By method. Forms for finite queries only are named in NEEDS_QUERIES.
FORMS: dict[str, Form] = {
    "auto": automatic,
    "t_learner": t_learner,
    "r_learner": r_learner,
    "random_features": random_features,
    "bins": bins,
    "fold_aggregation": fold_queries,
}
SETTINGS: dict[str, type] = {
    "auto": Cate,
    "t_learner": Cate,
    "r_learner": Cate,
    "random_features": RandomFeatures,
    "bins": Bins,
    "fold_aggregation": FoldQueries,
}
NEEDS_QUERIES: frozenset[str] = frozenset({"bins", "fold_aggregation"})


def cate_methods() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return tuple(FORMS)


def check_form(question: CateQuestion) -> None:
    """Raise where there is no such method, where its settings are another's, or where it needs queries."""
    refuse_unknown_method(question.method, cate_methods())
    refuse_other_settings(question, SETTINGS.get(question.method))
    if question.method in NEEDS_QUERIES and question.queries is None:
        raise ParameterError(
            "CV-P523",
            f"method={question.method!r} answers at given points only",
            expected="queries= with the people to ask about",
            got="no queries",
            fix="pass queries=, or leave method out to get a function",
        )
    if question.method in NEEDS_QUERIES and question.queries is not None:
        refuse_long_answers(question.queries)


@silence()
def answer_cate(session: Session, question: CateQuestion) -> CateModel | CateAnswers:
    """Return the answer of the form that the question names; a function is read off at queries for nothing."""
    session.admit(question.uses(session.study, "cate"))
    found = FORMS[question.method](session, question)
    if question.queries is None or isinstance(found, CateAnswers):
        return found
    return found.answers(question.queries)


def cate(
    data: object,
    study: Study,
    *,
    protects: str = "record",
    epsilon: Number,
    delta: Number | None = None,
    method: str = "auto",
    level: float = 0.95,
    queries: Any = None,
    settings: Settings | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> CateModel | CateAnswers:
    """Return the private effect as a function of the covariates, or its values at given queries.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories; at least one covariate.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend on the whole function; evaluating it costs nothing.
        delta: None takes the smaller of 1e-6 and 1/(10 n); 0 for pure differential privacy.
        method: "auto", "t_learner", "r_learner", "random_features", or with queries "bins" or "fold_aggregation".
        level: confidence level of intervals and bands, which include the privacy noise.
        queries: people to ask about, as a table of covariates; None for a model, evaluated as often as you like.
        settings: the method's own settings.
        ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    return ask_once(asked_cate, locals())


def asked_cate(study: Study, **arguments: Any) -> Asked[CateModel | CateAnswers]:
    """Return the checked question about effects; without a delta it takes the one for the number of rows."""
    checked = ask_cate(study, **arguments)
    check_form(checked)

    def answer(session: Session) -> CateModel | CateAnswers:
        return answer_cate(session, ask_cate(study, rows=session.table.rows, **arguments))

    return Asked(checked.budget, answer)
