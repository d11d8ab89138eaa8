"""What an analyst asks about effects that differ between people, checked before data or budget are touched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.errors import ParameterError, shown
from counterveil.privacy import Number, Unit
from counterveil.results.arms_question import refuse_several_arms
from counterveil.results.cate_queries import Queries, read_queries
from counterveil.results.question import Question, refuse_extremes
from counterveil.session import Kind, Plan, Request

# The delta that is taken where none is given: a tenth of one over the number of rows, and never more than this.
LARGEST_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CateQuestion(Question):
    """The public arguments of one request for effects; `queries` is None where a function is asked for."""

    queries: Queries | None = None

    def request(self, plan: Plan, study: Study, *, question: str = "cate", **said: object) -> Request:
        """Return the request that the ledger sees: the plan and a public description."""
        asked = None if self.queries is None else _digest(self.queries)
        return Question.request(self, plan, study, question=question, queries=asked, **said)


def default_delta(rows: int) -> Fraction:
    """Return the delta of a request that names none, from the public number of rows."""
    return min(LARGEST_DELTA, Fraction(1, 10 * rows))


def ask_cate(
    study: Study,
    *,
    method: str,
    protects: str,
    epsilon: Number,
    delta: Number | None,
    level: float,
    queries: Any = None,
    rows: int | None = None,
    **rest: Any,
) -> CateQuestion:
    """Return the checked question; `rows` is None while the data have not been looked at.

    Without a delta, the default for that many rows is taken.
    """
    refuse_several_arms(study)
    require_covariates(study, "cate")
    if Unit.parse(protects) is not Unit.RECORD:
        raise ParameterError(
            "CV-P520",
            "conditional effects are available at record level only",
            expected='protects="record"',
            got=f"protects={shown(protects)}",
            fix="leave protects out: everything about a person is then private, outcomes included",
        )
    chosen = delta if delta is not None else LARGEST_DELTA if rows is None else default_delta(rows)
    question = CateQuestion.ask(
        method=method,
        protects=protects,
        epsilon=epsilon,
        delta=chosen,
        estimand="ATE",
        level=level,
        mechanism=None,
        **rest,
    )
    assert isinstance(question, CateQuestion)
    refuse_extremes(study, question.budget)
    return question if queries is None else replace(question, queries=read_queries(queries, study))


def require_gaussian(question: Question, method: str) -> None:
    """Raise CV-P521 where a method whose noise is Gaussian was asked for a pure guarantee."""
    if question.budget.pure:
        raise ParameterError(
            "CV-P521",
            f"method={method!r} has Gaussian noise, which cannot give a pure guarantee",
            expected="delta > 0, or delta left out; method='t_learner' also answers with delta=0",
            got=f"{question.budget}",
            fix="leave delta out, which takes the smaller of 1e-6 and 1/(10 n), or use method='t_learner'",
        )


def vector_plan(question: Question, shares: Mapping[str, Fraction]) -> Plan:
    """Return the plan whose releases are all vectors of known joint sensitivity."""
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.VECTOR))


def _digest(queries: Queries) -> str:
    text = json.dumps(queries.rows, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
