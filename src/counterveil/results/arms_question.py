"""Questions about several arms, checked before any data or budget is touched."""

from __future__ import annotations

from typing import Any

from counterveil.data import Study, check_study
from counterveil.data.features import require_covariates
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy import Unit
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.settings import Arms

# Methods that adjust for covariates, and the one that does not.
ADJUSTED = ("weighting", "matching")
METHODS = ("difference_in_means", *ADJUSTED)


def ask_arms(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    refuse_unknown_method(method, ("auto", *METHODS))
    question = Question.ask(
        method="difference_in_means" if method == "auto" else method, estimand="ATE", **arguments
    )
    _refuse_private_arms(question.unit)
    _refuse_two_arms(study)
    refuse_extremes(study, question.budget)
    if method == "auto":
        refuse_undeclared_trial(study)
    if method in ADJUSTED:
        require_covariates(study, method)
    if question.settings is not None and not (method in ADJUSTED and isinstance(question.settings, Arms)):
        raise ParameterError(
            "CV-P019",
            "these settings belong to another method",
            expected="settings.Arms with method='weighting' or 'matching'; none otherwise",
            got=f"settings of type {type(question.settings).__name__} with method={method!r}",
            fix="leave settings out, or pass those of the method",
        )
    return question


def refuse_several_arms(study: Study) -> None:
    """Raise CV-S063 where a question about two arms is asked of a study of several."""
    check_study(study)
    if study.arms is not None:
        raise StudyError(
            "CV-S063",
            "the study has several arms, and this question compares two",
            expected="a study with treated= and control=",
            got=f"arms={study.arms!r}",
            fix="ask for all effects against the reference with counterveil.arms(...), or leave the other "
            "arms out of the data and declare treated= and control=",
        )


def _refuse_two_arms(study: Study) -> None:
    check_study(study)
    if study.arms is None:
        raise StudyError(
            "CV-S064",
            "the study has two arms, and this question compares several",
            expected='a study with arms=("placebo", "low", "high"), reference="placebo"',
            got=f"treated={study.treated!r}, control={study.control!r}",
            fix="use counterveil.ate(...) for two arms: it needs one draw of noise where this would need two",
        )


def _refuse_private_arms(unit: Unit) -> None:
    if unit is not Unit.OUTCOME:
        raise ParameterError(
            "CV-P280",
            "effects of several arms are available at outcome level only",
            expected='protects="outcome": who is in which arm, and the covariates, are public',
            got=f"protects={unit.value!r}",
            fix="protect outcomes if arms are public; else compare two arms at a time with "
            'counterveil.ate(..., protects="record"), each paid for by itself',
        )
