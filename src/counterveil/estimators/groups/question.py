"""Questions about groups, policies and curves, checked before any data or budget is touched."""

from __future__ import annotations

from typing import Any

from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.estimators.arms.question import refuse_several_arms
from counterveil.estimators.ate.covariates import require_covariates
from counterveil.estimators.ate.matching_settings import MatchingSettings
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.estimators.groups.scoring import FORMS
from counterveil.estimators.groups.settings import GroupsSettings
from counterveil.estimators.question import (
    LARGEST_OUTCOME,
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_unknown_method,
)
from counterveil.privacy import Number, Unit, exact, show

# By what is protected, the methods and the type of their settings.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": None,
        "weighting": WeightingSettings,
        "matching": MatchingSettings,
    },
    Unit.RECORD: dict.fromkeys(FORMS, GroupsSettings),
}


def ask_groups(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    refuse_several_arms(study)
    question = Question.ask(method=method, estimand="ATE", **arguments)
    refuse_extremes(study, question.budget)
    known = METHODS[question.unit]
    refuse_unknown_method(method, ("auto", *known), f" with protects={question.unit.value!r}")
    if method in ("weighting", "matching", "adjusted"):
        require_covariates(study, method)
    refuse_other_settings(
        question, known.get(method, GroupsSettings if question.unit is Unit.RECORD else None)
    )
    return question


def ask_records(study: Study, what: str, method: str, **arguments: Any) -> Question:
    """Return the checked question of a policy or a curve, which protect records only."""
    question = ask_groups(study, method, law=None, **arguments)
    if question.unit is not Unit.RECORD:
        raise ParameterError(
            "CV-P543",
            f"{what} protects records only",
            expected='protects="record", which protects outcomes as well',
            got=f"protects={question.unit.value!r}",
            fix="leave protects out",
        )
    if question.method == "arms":
        raise ParameterError(
            "CV-P543",
            f"{what} needs one score a person",
            expected="method='auto', 'scores' or 'adjusted'",
            got="method='arms'",
            fix="leave method out",
        )
    return question


def checked_cost(cost: Number) -> float:
    """Return the cost of one treatment, in units of the outcome, or raise CV-P663 for one beyond every outcome."""
    found = exact(cost, "cost")
    if abs(found) > LARGEST_OUTCOME:
        raise ParameterError(
            "CV-P663",
            "no outcome is worth this cost",
            expected=f"a cost of at most {float(LARGEST_OUTCOME):g} units of the outcome",
            got=f"cost={show(found)}",
            fix="state the cost of one treatment in units of the outcome",
        )
    return float(found)
