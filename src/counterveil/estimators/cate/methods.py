"""Which form answers which question about effects: the table behind `method=`, `variant=` and `settings=`."""

from __future__ import annotations

import json
from collections.abc import Callable

from counterveil.curator import Custody
from counterveil.data import silence
from counterveil.errors import ParameterError
from counterveil.estimators.cate.answers import CateAnswers
from counterveil.estimators.cate.arms import arms
from counterveil.estimators.cate.automatic import automatic
from counterveil.estimators.cate.bins import bins
from counterveil.estimators.cate.fold_queries import fold_queries
from counterveil.estimators.cate.interacted import interacted
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.paper.finite_queries import finite_queries
from counterveil.estimators.cate.paper.functional import functional
from counterveil.estimators.cate.paper.settings import InfluenceSettings, KernelSettings
from counterveil.estimators.cate.query_settings import BinSettings, FoldQuerySettings
from counterveil.estimators.cate.question import CateQuestion
from counterveil.estimators.cate.random_features import random_features
from counterveil.estimators.cate.reading import Queries
from counterveil.estimators.cate.settings import CateSettings, RandomFeatureSettings
from counterveil.estimators.question import refuse_other_settings, refuse_unknown_method

Form = Callable[[Custody, CateQuestion], CateModel | CateAnswers]

# By (method, variant). Forms for finite queries only are named in NEEDS_QUERIES.
FORMS: dict[tuple[str, str | None], Form] = {
    ("auto", None): automatic,
    ("arms", None): arms,
    ("interacted", None): interacted,
    ("random_features", None): random_features,
    ("bins", None): bins,
    ("fold_aggregation", None): fold_queries,
    ("influence", "paper"): finite_queries,
    ("kernel", "paper"): functional,
}
SETTINGS: dict[tuple[str, str | None], type] = {
    ("auto", None): CateSettings,
    ("arms", None): CateSettings,
    ("interacted", None): CateSettings,
    ("random_features", None): RandomFeatureSettings,
    ("bins", None): BinSettings,
    ("fold_aggregation", None): FoldQuerySettings,
    ("influence", "paper"): InfluenceSettings,
    ("kernel", "paper"): KernelSettings,
}
# Characters of one answer beside its query, at most, and those of all that one request may have.
ANSWER_LENGTH, LONGEST_ANSWERS = 100, 16 * 2**20
NEEDS_QUERIES: frozenset[str] = frozenset({"bins", "fold_aggregation"})


def cate_methods() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return tuple(dict.fromkeys(method for method, _ in FORMS))


def check_form(question: CateQuestion) -> None:
    """Raise where there is no such form, where its settings are another's, or where it needs queries."""
    key = (question.method, question.variant)
    refuse_unknown_method(question.method, cate_methods())
    if key not in FORMS:
        known = [repr(variant) for method, variant in FORMS if method == question.method]
        raise ParameterError(
            "CV-P018",
            "this method has no such form",
            expected=f"variant={' or '.join(known)} with method={question.method!r}",
            got=f"variant={question.variant!r}",
            fix="choose one of these forms, or another method",
        )
    refuse_other_settings(question, SETTINGS.get(key))
    if question.method in NEEDS_QUERIES and question.queries is None:
        raise ParameterError(
            "CV-P523",
            f"method={question.method!r} answers at given points only",
            expected="queries= with the people to ask about",
            got="no queries",
            fix="pass queries=, or leave method out to get a function",
        )
    kept = question.method in NEEDS_QUERIES or question.variant is not None
    if kept and question.queries is not None:
        _refuse_long_answers(question.queries)


def _refuse_long_answers(queries: Queries) -> None:
    """Raise CV-P643 where the answers would be longer than a ledger keeps; a released function keeps no queries."""
    length = len(json.dumps(queries.rows, default=str)) + ANSWER_LENGTH * len(queries.rows)
    if length > LONGEST_ANSWERS:
        raise ParameterError(
            "CV-P643",
            "there are too many queries for one request",
            expected=f"queries whose answers take at most {LONGEST_ANSWERS // 2**20} MiB in the ledger",
            got=f"{len(queries.rows)} queries, about {length // 2**20} MiB",
            fix="ask about fewer people, or leave method out: a released function answers any number of queries",
        )


@silence()
def answer_cate(custody: Custody, question: CateQuestion) -> CateModel | CateAnswers:
    """Return the answer of the form that the question names; a function is read off at queries for nothing."""
    custody.admit(question.uses(custody.study, "cate"))
    found = FORMS[question.method, question.variant](custody, question)
    if question.queries is None or isinstance(found, CateAnswers):
        return found
    return found.answers(question.queries)
