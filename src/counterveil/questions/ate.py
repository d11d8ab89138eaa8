"""Which estimator answers which question: the table behind `method=`, `variant=` and `settings=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from counterveil.bounded_reading import UnreadableError, parse_literal
from counterveil.data import Study, silence
from counterveil.errors import ParameterError, shown
from counterveil.privacy import Unit
from counterveil.published.cross_fit import cross_fit_paper
from counterveil.published.exact_matching import stratified_paper
from counterveil.published.ipw import ipw_paper
from counterveil.published.matching import matching_paper
from counterveil.published.record_matching import record_matching_paper
from counterveil.questions.auto import AUTO, AutoSettings, choose
from counterveil.results.arms_question import refuse_several_arms
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.result import Result
from counterveil.session import Custody
from counterveil.statistics.folds.aggregation import fold_aggregation
from counterveil.statistics.folds.clip import FoldSettings
from counterveil.statistics.linear.difference_in_means import difference_in_means
from counterveil.statistics.linear.matching import matching
from counterveil.statistics.linear.matching_design import MatchingSettings
from counterveil.statistics.linear.weighting import weighting
from counterveil.statistics.linear.weighting_design import WeightingSettings
from counterveil.statistics.moments.cross_fit import cross_fit
from counterveil.statistics.moments.cross_fit_models import CrossFitSettings
from counterveil.statistics.moments.doubly_robust import doubly_robust
from counterveil.statistics.moments.doubly_robust_settings import DoublyRobustSettings
from counterveil.statistics.moments.ipw import ipw
from counterveil.statistics.moments.ipw_nuisances import IPWSettings
from counterveil.statistics.moments.record_matching import RecordMatchingSettings, record_matching
from counterveil.statistics.moments.score_strata import ScoreStrataSettings, score_strata
from counterveil.statistics.moments.trial import TrialSettings, trial
from counterveil.statistics.strata.data import StratifiedSettings
from counterveil.statistics.strata.outcome import stratified_outcome
from counterveil.statistics.strata.stratified import stratified

Estimator = Callable[[Custody, Question], Result]


@dataclass(frozen=True, slots=True)
class Method:
    """The forms of one method: an estimator for each (variant, unit), and the types of their settings.

    `record_settings` is for forms that protect records, where they have settings of their own. Methods
    `on_aggregates` never read rows: a table in a file or a database is added up where it lies. Methods
    `in_batches` add rows up in passes: those of a large file are never all in memory.
    """

    forms: Mapping[tuple[str | None, Unit], Estimator]
    settings: type | None = None
    record_settings: type | None = None
    on_aggregates: bool = False
    in_batches: bool = False

    def settings_for(self, unit: Unit) -> type | None:
        """Return the type of the settings of the forms that protect `unit`."""
        return self.record_settings or self.settings if unit is Unit.RECORD else self.settings


def automatic(custody: Custody, question: Question) -> Result:
    """Return the answer of the method that public numbers choose, and say which one it is."""
    # A ledger that adds up Gaussian noise counts pure noise dearly: there a delta means Gaussian noise throughout.
    sums = custody.account().rule == "sum"
    choice = choose(custody, replace(question, open_law=question.open_law and sums))
    found = answer(custody, choice.question)
    named: dict[str, float | str] = {"chosen_by_auto": f"{choice.question.method}: {choice.why}"}
    return replace(found, details=named | found.details)


METHODS: dict[str, Method] = {
    # Whether rows are needed depends on what is chosen.
    AUTO: Method(dict.fromkeys([(None, unit) for unit in Unit], automatic), AutoSettings, on_aggregates=True),
    "difference_in_means": Method({(None, Unit.OUTCOME): difference_in_means}),
    "trial": Method({(None, Unit.RECORD): trial}, TrialSettings),
    "matching": Method(
        {
            (None, Unit.OUTCOME): matching,
            ("paper", Unit.OUTCOME): matching_paper,
            (None, Unit.RECORD): record_matching,
            ("paper", Unit.RECORD): record_matching_paper,
        },
        MatchingSettings,
        RecordMatchingSettings,
    ),
    "doubly_robust": Method({(None, Unit.RECORD): doubly_robust}, DoublyRobustSettings, in_batches=True),
    "score_strata": Method({(None, Unit.RECORD): score_strata}, ScoreStrataSettings),
    "stratified": Method(
        {
            (None, Unit.OUTCOME): stratified_outcome,
            (None, Unit.RECORD): stratified,
            ("paper", Unit.RECORD): stratified_paper,
        },
        StratifiedSettings,
        on_aggregates=True,
    ),
    "weighting": Method({(None, Unit.OUTCOME): weighting}, WeightingSettings),
    "ipw": Method({(None, Unit.RECORD): ipw, ("paper", Unit.RECORD): ipw_paper}, IPWSettings),
    "cross_fit": Method(
        {(None, Unit.RECORD): cross_fit, ("paper", Unit.RECORD): cross_fit_paper}, CrossFitSettings
    ),
    "fold_aggregation": Method({(None, Unit.RECORD): fold_aggregation}, FoldSettings),
}


def method_names() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return tuple(METHODS)


def ask(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    refuse_unknown_method(method, method_names())
    refuse_several_arms(study)
    question = Question.ask(method=method, **arguments)
    refuse_extremes(study, question.budget)
    if method == AUTO and not study.covariates:
        refuse_undeclared_trial(study)
    _form(question)
    refuse_other_settings(question, METHODS[method].settings_for(question.unit))
    return question


@silence()
def answer(custody: Custody, question: Question) -> Result:
    """Return the answer of the estimator that the question names."""
    method = METHODS[question.method]
    custody.admit(question.uses(custody.study))
    # Data which do not fit are refused before anything is spent.
    if method.in_batches:
        custody.attach_batches()
    elif not method.on_aggregates:
        custody.attach()
    return _form(question)(custody, question)


def _form(question: Question) -> Estimator:
    forms = METHODS[question.method].forms
    named = question.variant is None or isinstance(question.variant, str)
    if not named or (question.variant, question.unit) not in forms:
        known = sorted(f"variant={variant!r} with protects={unit.value!r}" for variant, unit in forms)
        raise ParameterError(
            "CV-P018",
            "this method has no such form",
            expected="; ".join(known),
            got=f"variant={shown(question.variant)} with protects={question.unit.value!r}",
            fix="choose one of these forms, or another method",
        )
    return forms[question.variant, question.unit]


def settings_from_text(method: str, words: list[str], protects: str = "outcome") -> Any:
    """Return the method's settings from words such as "neighbours=5", None where there are none."""
    wanted = METHODS[method].settings_for(Unit.parse(protects)) if method in METHODS else None
    if not words:
        return None
    kinds = {field.name: str(field.type) for field in fields(wanted)} if wanted is not None else {}
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or name not in kinds:
            listed = f"NAME=VALUE with one of {list(kinds)}"
            raise ParameterError(
                "CV-P020",
                "unknown setting",
                expected=listed if kinds else f"no settings for method={method!r}",
                got=shown(word),
                fix="leave it out or correct its name",
            )
        values[name] = _value(text, kinds[name].startswith("tuple"))
    return wanted(**values) if wanted is not None else None


def _value(text: str, several: bool) -> Any:
    """Return what a text means: a literal, names separated by commas where `several` are meant, or itself."""
    try:
        return parse_literal(text)
    except UnreadableError:
        return tuple(part.strip() for part in text.split(",")) if several else text
