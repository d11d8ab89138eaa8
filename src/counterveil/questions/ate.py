"""Which estimator answers which question: the table behind `method=` and `settings=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from counterveil.accounting import Ledger
from counterveil.bounded_reading import UnreadableError, parse_literal
from counterveil.data import Study, silence
from counterveil.errors import ParameterError, shown
from counterveil.privacy import Estimand, Number, Unit
from counterveil.questions.asking import Asked, ask_once
from counterveil.questions.auto import AUTO, choose
from counterveil.results.arms import refuse_several_arms
from counterveil.results.question import (
    Question,
    refuse_clusters,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_overlap,
    refuse_undeclared_trial,
    refuse_unknown_method,
    usual_estimand,
)
from counterveil.results.result import Result
from counterveil.session import BitSource, Session
from counterveil.settings import (
    IPW,
    Auto,
    CrossFit,
    DoublyRobust,
    Folds,
    Matching,
    RecordMatching,
    ScoreStrata,
    Stratified,
    Trial,
    Weighting,
)
from counterveil.settings.ranges import Settings
from counterveil.statistics.folds.aggregation import fold_aggregation
from counterveil.statistics.linear.difference_in_means import difference_in_means
from counterveil.statistics.linear.matching import matching
from counterveil.statistics.linear.trimming import PAGE as TRIMMED_PAGE
from counterveil.statistics.linear.trimming import trimmed
from counterveil.statistics.linear.weighting import weighting
from counterveil.statistics.moments.cross_fit import cross_fit
from counterveil.statistics.moments.doubly_robust import doubly_robust
from counterveil.statistics.moments.ipw import ipw
from counterveil.statistics.moments.ratio import compare_ratios
from counterveil.statistics.moments.record_matching import record_matching
from counterveil.statistics.moments.score_strata import score_strata
from counterveil.statistics.moments.trial import trial
from counterveil.statistics.strata.cluster_cells import clustered_trial
from counterveil.statistics.strata.outcome import stratified_outcome
from counterveil.statistics.strata.stratified import stratified

Estimator = Callable[[Session, Question], Result]


@dataclass(frozen=True, slots=True)
class Method:
    """The forms of one method: an estimator for each unit of protection, and the types of their settings.

    `record_settings` is for forms that protect records, where they have settings of their own. Methods
    `on_aggregates` never read rows: a table in a file or a database is added up where it lies. Methods
    `in_batches` add rows up in passes, wherever the rows lie: they are never all in memory. `overlap` names the units
    for which the overlap-weighted effect (ATO) is estimated. `clustered` are forms of their own for people in clusters.
    """

    forms: Mapping[Unit, Estimator]
    settings: type | None = None
    record_settings: type | None = None
    on_aggregates: bool = False
    in_batches: bool = False
    overlap: tuple[Unit, ...] = ()
    clustered: Mapping[Unit, Estimator] = field(default_factory=dict)

    def settings_for(self, unit: Unit) -> type | None:
        """Return the type of the settings of the forms that protect `unit`."""
        return self.record_settings or self.settings if unit is Unit.RECORD else self.settings


def automatic(session: Session, question: Question) -> Result:
    """Return the answer of the method that public numbers choose, and say which one it is."""
    # A ledger that adds up Gaussian noise counts pure noise dearly: there a delta means Gaussian noise throughout.
    sums = session.account().rule == "sum"
    choice = choose(session, replace(question, open_noise=question.open_noise and sums))
    # Not `answer`: rows that leave no overlap were trimmed before the choice.
    found = _answer(session, choice.question)
    named: dict[str, float | str] = {"chosen_by_auto": f"{choice.question.method}: {choice.why}"}
    return replace(found, details=named | found.details)


METHODS: dict[str, Method] = {
    # Whether rows are needed depends on what is chosen.
    AUTO: Method(dict.fromkeys(Unit, automatic), Auto, on_aggregates=True, overlap=(Unit.RECORD,)),
    "difference_in_means": Method({Unit.OUTCOME: difference_in_means}, in_batches=True),
    "trial": Method({Unit.RECORD: trial}, Trial, in_batches=True, clustered={Unit.RECORD: clustered_trial}),
    "matching": Method({Unit.OUTCOME: matching, Unit.RECORD: record_matching}, Matching, RecordMatching),
    "doubly_robust": Method(
        {Unit.RECORD: doubly_robust}, DoublyRobust, in_batches=True, overlap=(Unit.RECORD,)
    ),
    "score_strata": Method({Unit.RECORD: score_strata}, ScoreStrata),
    "stratified": Method(
        {Unit.OUTCOME: stratified_outcome, Unit.RECORD: stratified},
        Stratified,
        on_aggregates=True,
    ),
    "weighting": Method({Unit.OUTCOME: weighting}, Weighting),
    "ipw": Method({Unit.RECORD: ipw}, IPW),
    "cross_fit": Method({Unit.RECORD: cross_fit}, CrossFit),
    "fold_aggregation": Method({Unit.RECORD: fold_aggregation}, Folds),
}


def method_names() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return tuple(METHODS)


def ask(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    refuse_unknown_method(method, method_names())
    refuse_several_arms(study, ratio=True)
    arguments["estimand"] = usual_estimand(study, arguments["estimand"]).value
    question = Question.ask(method=method, **arguments)
    refuse_extremes(study, question.budget)
    if method == AUTO and not study.covariates and study.before is None:
        refuse_undeclared_trial(study)
    _form(question)
    if study.per is not None:
        _refuse_other_than_ratios(question)
    if question.unit not in METHODS[method].overlap:
        refuse_overlap(question)
    refuse_other_settings(question, METHODS[method].settings_for(question.unit))
    refuse_clusters(study, "ate", method, question.unit)
    return question


def asked_ate(study: Study, **arguments: Any) -> Asked[Result]:
    """Return the checked question about one effect."""
    question = ask(study, **arguments)
    attach = not METHODS[question.method].on_aggregates
    return Asked(question.budget, partial(answer, question=question), attach)


def answer(session: Session, question: Question) -> Result:
    """Return the answer of the estimator that the question names, and whose it is if rows were chosen."""
    found = _trimmed(session, question)
    where = session.study.where
    return found if where is None else replace(found, details=found.details | {"rows_where": where.text})


def _trimmed(session: Session, question: Question) -> Result:
    """Return the same for those whose scores leave overlap if trimmed."""
    if question.trim is None:
        return _answer(session, question)
    session.admit(question.uses(session.study))
    with silence():
        part = trimmed(session.table, question.trim)
    found = _answer(session.restricted(part.table), question)
    details: dict[str, float | str] = {"rows_before_trimming": part.rows, "least_score_kept": part.limit}
    guarantee = replace(found.guarantee, pages=(*found.guarantee.pages, TRIMMED_PAGE))
    return replace(found, details=found.details | details, population=part.population, guarantee=guarantee)


@silence()
def _answer(session: Session, question: Question) -> Result:
    """Return the answer of the estimator that the question names."""
    method = METHODS[question.method]
    session.admit(question.uses(session.study))
    # Data which do not fit are refused before anything is spent.
    if method.in_batches:
        session.attach_batches()
    elif not method.on_aggregates:
        session.attach(f"method={question.method!r}")
    if session.study.cluster is not None and question.method != AUTO:
        refuse_few_clusters(session.study, "ate", question.method, session.batches.rows)
    if session.study.per is not None:
        session.attach("a ratio of two columns")
        return compare_ratios(session, question)
    form = _form(question)
    if session.study.clustered:
        form = method.clustered.get(question.unit, form)
    return form(session, question)


# The methods that compare ratios of sums: those that take nothing but the arms into account.
_RATIO_METHODS = {Unit.OUTCOME: "difference_in_means", Unit.RECORD: "trial"}


def _refuse_other_than_ratios(question: Question) -> None:
    """Raise CV-P673 for methods, settings and estimands that have no form for ratios."""
    method = _RATIO_METHODS[question.unit]
    wrong = (
        question.method not in (method, AUTO) or question.settings is not None or question.trim is not None
    )
    if wrong or question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P673",
            "a ratio is compared between the arms of a trial, without adjustment",
            expected=f"method={method!r} or 'auto' without settings, for the ATE",
            got=f"method={question.method!r}, estimand={question.estimand.value!r}",
            fix="leave settings and estimand out; to adjust, declare an outcome that is one number a person",
        )


def _form(question: Question) -> Estimator:
    forms = METHODS[question.method].forms
    if question.unit not in forms:
        known = sorted(f"protects={unit.value!r}" for unit in forms)
        raise ParameterError(
            "CV-P018",
            "this method is not available at this level of protection",
            expected=f"{' or '.join(known)} with method={question.method!r}",
            got=f"protects={question.unit.value!r}",
            fix="choose another method, or another level of protection if that is what you need",
        )
    return forms[question.unit]


def settings_from_text(method: str, words: list[str], protects: str = "outcome") -> Any:
    """Return the method's settings from words such as "neighbours=5", None where there are none."""
    wanted = METHODS[method].settings_for(Unit.parse(protects)) if method in METHODS else None
    if not words:
        return None
    kinds = {each.name: str(each.type) for each in fields(wanted)} if wanted is not None else {}
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


def ate(
    data: object,
    study: Study,
    *,
    protects: str,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    estimand: str | None = None,
    level: float = 0.95,
    mechanism: str | None = None,
    settings: Settings | None = None,
    trim: float | str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Return the private average treatment effect of a study.

    Args:
        data: a pandas, polars or pyarrow frame, a path to CSV or Parquet, a DuckDB relation, a dictionary of
            arrays, or a `Table`; for methods that need counts and sums only ("stratified") also an Ibis table,
            which is aggregated inside its database.
        study: column roles, public bounds and categories.
        protects: "outcome" (only outcomes are private) or "record" (everything about a person is).
        epsilon: privacy loss to spend; exact (0.1 is one tenth).
        delta: 0 for pure differential privacy; a small positive number allows Gaussian noise.
        method: "auto", or a method by name; an unknown name lists the methods.
        estimand: "ATE" (everyone), "ATT" (the treated), "ATC" (the untreated), or "ATO" (overlap-weighted, for
            protects="record" with method "doubly_robust" or "auto"). None takes "ATE"; for a study with before= that
            is not randomised, "ATT".
        level: confidence level of the interval, which includes the privacy noise.
        mechanism: "staircase" or "laplace", or "gaussian" if delta is positive; None takes staircase for delta 0
            and Gaussian otherwise.
        trim: with protects="outcome", keep people with propensity scores in [trim, 1 - trim], or in the limits of
            least variance ("optimal", Crump et al. 2009); the effect is then that of these people alone.
        settings: the method's own settings, such as `cv.settings.Matching(neighbours=5)`.
        ledger: path or URL of an existing ledger, or a `Ledger`; without one, the costs of several calls are not
            added up.
        dataset: account in the ledger; may be omitted if the ledger has only one.
        request_id: name of this request; repeating it returns the stored answer and costs nothing.
        noise: `SeededNoise(seed)` for tests and experiments; the result is then marked as simulated.
    """
    return ask_once(asked_ate, locals())


# Settings of a method from typed values, as messages carry them: no text is parsed.


_MOST = 1000  # entries of a list or a table


def settings_from_values(method: str, values: Mapping[str, Any], protects: str) -> Any:
    """Return the method's settings from values by name, None where there are none, or raise CV-P020.

    Names must be those of the settings, and values of the types that they declare; lists stand for tuples. Learners
    that are objects cannot be named.
    """
    if not values:
        return None
    wanted = METHODS[method].settings_for(Unit.parse(protects)) if method in METHODS else None
    kinds = get_type_hints(wanted) if wanted is not None else {}
    names = [] if wanted is None else [each.name for each in fields(wanted)]
    known = {name: kinds[name] for name in names}
    if wanted is None or any(name not in known for name in values):
        raise _wrong(
            f"one of {list(known)}" if known else f"no settings for method={method!r}", "another name"
        )
    return wanted(**{name: _typed(name, value, known[name]) for name, value in values.items()})


def _typed(name: str, value: Any, kind: Any) -> Any:
    """Return the value as the type that is declared for it."""
    for option in _options(kind):
        found = _as(value, option)
        if found is not _NOTHING:
            return found
    raise _wrong(f"{name}: a value of the type that the method declares", f"a {type(value).__name__}")


_NOTHING = object()


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _as(value: Any, kind: Any) -> Any:
    """Return the value as one type without alternatives, or `_NOTHING`."""
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, list | tuple) and len(value) <= _MOST:
        return _tuple(value, get_args(kind))
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return _table(value, get_args(kind))
    if kind in (None, NoneType):
        return None if value is None else _NOTHING
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else _NOTHING
    if kind is float and isinstance(value, int | float) and isfinite(value):
        return float(value) if isinstance(value, float) else value
    # Objects cannot travel, so where anything is allowed a name is meant.
    if (kind in (str, Any) and isinstance(value, str)) or (kind is int and isinstance(value, int)):
        return value
    return _NOTHING


def _tuple(values: Any, kinds: tuple[Any, ...]) -> Any:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(values)
    if len(kinds) != len(values):
        return _NOTHING
    found = []
    for value, kind in zip(values, kinds, strict=True):
        each = next(
            (got for option in _options(kind) if (got := _as(value, option)) is not _NOTHING), _NOTHING
        )
        if each is _NOTHING:
            return _NOTHING
        found.append(each)
    return tuple(found)


def _table(values: Mapping[Any, Any], kinds: tuple[Any, ...]) -> Any:
    pairs = [(_as(name, kinds[0]), _as(value, kinds[1])) for name, value in values.items()]
    wrong = len(pairs) > _MOST or any(_NOTHING in pair for pair in pairs)
    return _NOTHING if wrong else dict(pairs)


def _wrong(expected: str, got: str) -> ParameterError:
    return ParameterError(
        "CV-P020",
        "unknown setting",
        expected=expected,
        got=got,
        fix="leave it out, or correct its name or its value",
    )
