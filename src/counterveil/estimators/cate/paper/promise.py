"""What the published forms share around their numbers: queries, plan, request, and answers that say what is false."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Custody, Kind, Plan, Request
from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.estimators.cate.answers import CateAnswers
from counterveil.estimators.cate.paper.settings import StageSettings
from counterveil.estimators.cate.question import CateQuestion
from counterveil.estimators.cate.reading import Queries
from counterveil.privacy import Proof

Floats = NDArray[np.float64]

NOT_COVERED = (
    "PRIVACY: the claim of this form is refuted; what a record loses is not known",
    "CONFOUNDING by what is not among the covariates",
    "sampling error and bias of the fitted models",
    "clamping of outcomes and covariates to the declared ranges",
)


def asked_queries(question: CateQuestion) -> Queries:
    """Return the queries, or refuse: the published forms answer at given points only."""
    if question.queries is None or not len(question.queries):
        raise ParameterError(
            "CV-P563",
            "the published forms answer at given points only",
            expected="queries= with the people to ask about",
            got="no queries",
            fix="pass queries=, or leave variant out: the proved form is a function that answers for ever",
        )
    return question.queries


def paper_plan(question: CateQuestion) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.budget.pure:
        raise ParameterError(
            "CV-P564",
            "the published forms have Gaussian noise",
            expected="delta > 0, or delta left out",
            got=f"{question.budget}",
            fix="leave delta out, or leave variant out",
        )
    return Plan.split(question.budget, {"answers": Fraction(1)}, "gaussian", {"answers": Kind.VECTOR})


def paper_request(question: CateQuestion, plan: Plan, study: Study, settings: StageSettings) -> Request:
    """Return the request, with the settings that hold where none were given."""
    return replace(question, settings=settings).request(plan, study)


def paper_answers(
    custody: Custody,
    question: CateQuestion,
    answers: Floats,
    *,
    noise: float,
    remark: str,
    method: str,
    release: str,
    interval_of: str,
) -> CateAnswers:
    """Return the answers with a promise that says that it is refuted."""
    queries = asked_queries(question)
    return CateAnswers(
        queries=queries.rows,
        estimates=tuple(float(answer) for answer in answers),
        sampling=(0.0,) * len(queries),
        noise=(noise,) * len(queries),
        guarantee=question.guarantee(custody, (), (remark,), Proof.REFUTED),
        method=method,
        **question.terms(custody.study),
        releases=(("effects at the queries", release),),
        not_covered=NOT_COVERED,
        distinct=len(queries),
        rank=len(queries),
        details={"rows": custody.table.rows, "law": "gaussian, as published"},
        interval_of=interval_of,
    )
