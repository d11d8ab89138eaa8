"""Average effects: `ate(...)`, its methods and settings, and what `method="auto"` takes.

It reads the study, the level of protection, the budget and the number of rows; docs/decisions/0009-auto.md says
what it was measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from math import inf, isfinite, sqrt
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from counterveil.bounded_reading import UnreadableError, parse_literal
from counterveil.data import Layout, Range, Study, silence
from counterveil.data.features import feature_map
from counterveil.data.panels import panel_facts
from counterveil.errors import CounterveilError, ParameterError, refusal
from counterveil.numerics.public_choices import LEFT_OF_TREATMENT
from counterveil.privacy import Estimand, Unit
from counterveil.questions.asking import Arguments, Asked, question_of, refuse_range
from counterveil.questions.choices import AteMethod, EstimandName, Mechanism
from counterveil.results.arms import refuse_several_arms
from counterveil.results.measures import NEEDED, OF_MEANS, Measure, check_measure, no_means
from counterveil.results.question import (
    Question,
    refuse_clusters,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_overlap,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
    usual_estimand,
)
from counterveil.results.result import MeasureResult, Result
from counterveil.session import BaseSession
from counterveil.settings import (
    Auto,
    DifferenceInMeans,
    DoublyRobust,
    Folds,
    Matching,
    Stratified,
    Trial,
    Weighting,
)
from counterveil.settings.methods import Settings
from counterveil.statistics.linear.weighting_design import PAGE as TRIMMED_PAGE
from counterveil.statistics.linear.weighting_design import trimmed

if TYPE_CHECKING:
    from counterveil.statistics.moments.orthogonal import Design

AUTO = "auto"
# Numbers of this rule were chosen by `python -m experiments.every_method --tuning` (docs/decisions/0009-auto.md).
# Up to here strata are compared, whatever the number of rows; beyond, where no model is affordable and they hold this
# many rows on average.
_FEW_STRATA, _ROWS_A_STRATUM = 64, 16
# With fewer rows than this for each feature, weights that balance a trial's arms may cost more than they gain.
_ROWS_A_FEATURE = 25
_FOLD_NOISE = 0.05  # the most that an average over folds may have, in parts of the outcome's range
# Doubly robust answers beside folds, with pure noise: what clipping adds at either end, in parts of the score's noise;
# the variance of products of errors in lines beside that of independent coordinates. Set on simulated people of plans
# with 3, 8 and 20 covariates.
_CLIPPING, _PRODUCT_ERRORS = 0.35, 110.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The question with its method named, and why that one."""

    question: Question
    why: str


def choose(session: BaseSession, question: Question) -> Choice:
    """Return the question with its method; rows are counted where the choice depends on their number."""
    study = session.study
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        method = "trial" if study.randomised is True else "doubly_robust"
        return Choice(
            replace(question, method=method, settings=None), "covariates are public, which one score uses"
        )
    if question.estimand is Estimand.ATO:
        return Choice(_adjusting(question), "it estimates the overlap-weighted effect")
    if study.clustered and question.unit is Unit.RECORD:
        return _named(question, "trial", "a trial of clusters: counts and sums by cluster hold its error")
    if study.denominator is not None:
        method = "difference_in_means" if question.unit is Unit.OUTCOME else "trial"
        return _named(question, method, "a ratio of sums is compared without adjustment")
    if study.randomised is True:
        return _for_trial(session, question)
    if study.before is not None and not study.covariates:
        return _for_changes(session, question)
    if question.unit is Unit.OUTCOME:
        return _named(question, "weighting", "covariates are public, so adjusting for them costs no budget")
    if question.measure in OF_MEANS:
        return Choice(_adjusting(question), "covariates are adjusted for, and means of both arms released")
    if _strata(study) <= _FEW_STRATA:
        return _named(question, "stratified", "the covariates form few strata, and no model is needed")
    return _for_records(session, question)


def _for_trial(session: BaseSession, question: Question) -> Choice:
    from counterveil.statistics.moments.trial import chosen

    features = feature_map(session.study, 1).size
    free = features > 0 and question.unit is Unit.OUTCOME
    if free and session.batches.rows >= _ROWS_A_FEATURE * features:
        why = "a trial with public covariates, which shorten the interval if they predict outcomes"
        return _named(question, "weighting", why)
    plain = "a trial: the plain comparison is unconfounded"
    if question.unit is Unit.OUTCOME:
        return _named(question, "difference_in_means", plain)
    if question.measure in OF_MEANS:
        return _named(question, "trial", "a trial: means of both arms are released without adjustment")
    pure = question.in_pure_noise()
    settings = chosen(session, pure, Trial())
    afforded = "a trial with enough rows and budget for a model of its outcomes"
    why = plain if settings.adjustment == "none" else afforded
    return Choice(replace(pure, method="trial", settings=settings), why)


def _for_changes(session: BaseSession, question: Question) -> Choice:
    """Return the plain comparison of changes, for a study that declares nothing to adjust for."""
    from counterveil.statistics.moments.trial import chosen

    why = "changes of both arms are compared under parallel trends, without covariates"
    if question.unit is Unit.OUTCOME:
        return _named(question, "difference_in_means", why)
    pure = question.in_pure_noise()
    return Choice(replace(pure, method="trial", settings=chosen(session, pure, Trial())), why)


def _for_records(session: BaseSession, question: Question) -> Choice:
    """Return the adjusting method of the shortest expected interval."""
    adjusting, widths = _adjusting(question), expected_widths(session, question)
    shortest = min(widths, key=lambda name: widths[name], default=None)
    if shortest == "doubly_robust":
        return Choice(adjusting, "rows and budget suffice to adjust for all covariates")
    if "doubly_robust" not in widths and _strata(session.study) * _ROWS_A_STRATUM <= session.batches.rows:
        return _named(
            question,
            "stratified",
            "the covariates form strata with many rows, and the budget is too small for a model",
        )
    if shortest is not None:
        return _named(question, shortest, "adjusting in separate folds is expected to be the most precise")
    if adjusting.settings.kappa is None:
        return Choice(adjusting, "every other interval for the effect needs a declared bound on confounding")
    plain = replace(question.in_pure_noise(), method="doubly_robust", settings=adjusting.settings)
    return Choice(plain, "rows and budget are too small to adjust, and kappa is declared")


def expected_widths(session: BaseSession, question: Question) -> dict[str, float]:
    """Return the methods that model private records and are affordable, each with its expected width.

    Widths are in those of an interval without privacy, from public numbers alone.
    """
    from counterveil.statistics.folds.aggregation import expected_width as folds_width
    from counterveil.statistics.moments.doubly_robust import arm_design, arms_affordable

    adjusting = _adjusting(question)
    features, design = arm_design(session, adjusting, adjusting.settings)
    # Folds have lines too: richer features, which are taken where they are cheap, do not count against the other.
    lines = replace(design, features=len(features.columns))
    found = {"doubly_robust": _width(lines)} if arms_affordable(design) else {}
    folds = replace(question.in_pure_noise(), method="sample_and_aggregate", settings=None)
    # With Gaussian noise moments by arm are the shorter ones wherever they are affordable.
    if folds.estimand is not Estimand.ATE or folds.mechanism == "gaussian" or (found and not design.pure):
        return found
    try:
        width, noise = folds_width(session.study, session.batches.rows, folds)
    except ParameterError:
        return found
    # A plain comparison with what kappa adds at both ends: half are treated, and an interval is two standard errors.
    kappa = adjusting.settings.kappa
    other = inf if kappa is None else 1 + kappa * sqrt(session.batches.rows) / (2 * LEFT_OF_TREATMENT)
    return found | ({"sample_and_aggregate": width} if noise <= _FOLD_NOISE and width <= other else {})


def _width(design: Design) -> float:
    """Return about how many times wider a doubly robust interval with lines is than one without privacy.

    The product of both models' errors is of second order: noise of variance t^2 in a coordinate of both adds about
    n t^4 + 2 t^2 to the variance of sampling.
    """
    from counterveil.statistics.moments.doubly_robust import SCORE_REACH, ArmDesign

    chain = ArmDesign(design)
    noise, each = SCORE_REACH * chain.score_unit * sqrt(design.rows), chain.index**2 / (4 * design.features)
    lines = _PRODUCT_ERRORS * (design.rows * each**2 + 2 * each)
    return sqrt(1 + noise**2 + lines) + _CLIPPING * noise


def _adjusting(question: Question) -> Question:
    """Return the question for the doubly robust method, with the declared bound on confounding."""
    kappa = question.settings.kappa if isinstance(question.settings, Auto) else None
    settings = DoublyRobust(kappa=kappa)
    return replace(question, method="doubly_robust", settings=settings)


def _named(question: Question, method: str, why: str) -> Choice:
    return Choice(replace(question, method=method, settings=None), why)


def _strata(study: Study) -> float:
    """Return how many strata the covariates as declared make; infinite where one of them makes none."""
    domains = study.covariates.values()
    if any(isinstance(domain, Range) and not domain.cuts for domain in domains):
        return inf
    return Layout.of(study).public


Estimator = Callable[[BaseSession, Question], Result]


@dataclass(frozen=True, slots=True)
class Method:
    """The forms of one method: an estimator for each unit of protection, and the type of their settings.

    Methods `on_aggregates` never read rows: a table in a file or a database is added up where it lies. Methods
    `in_batches`, for the units named, add rows up in passes, wherever the rows lie: they are never all in memory.
    `overlap` names the units for which the overlap-weighted effect (ATO) is estimated. `clustered` are forms of their
    own for people in clusters, `of_means` those that release the means of both arms, for ratios and odds ratios.
    """

    forms: Mapping[Unit, Estimator]
    settings: type | None = None
    on_aggregates: bool = False
    in_batches: tuple[Unit, ...] = ()
    overlap: tuple[Unit, ...] = ()
    clustered: Mapping[Unit, Estimator] = field(default_factory=dict)
    of_means: Mapping[Unit, Estimator] = field(default_factory=dict)


def _later(place: str) -> Estimator:
    """Return the estimator at a place of `counterveil.statistics`, which is loaded when it answers."""
    home, _, name = place.rpartition(".")

    def estimate(session: BaseSession, question: Question) -> Result:
        found: Result = getattr(import_module(f"counterveil.statistics.{home}"), name)(session, question)
        return found

    return estimate


def automatic(session: BaseSession, question: Question) -> Result:
    """Return the answer of the method that public numbers choose, and say which one it is."""
    # A ledger that adds up Gaussian noise counts pure noise dearly: there a delta means Gaussian noise throughout.
    sums = session.account().rule == "sum"
    choice = choose(session, replace(question, open_noise=question.open_noise and sums))
    # Not `answer`: rows that leave no overlap were trimmed before the choice.
    found = _answer(session, choice.question)
    named: dict[str, float | str] = {"chosen_by_auto": f"{choice.question.method}: {choice.why}"}
    return replace(found, details=named | found.details)


_PAIRS = {Unit.TREATMENT_AND_OUTCOME: _later("pairs.effect.pairs")}
_PAIR_MEANS = {Unit.TREATMENT_AND_OUTCOME: _later("pairs.effect.pair_means")}
METHODS: dict[str, Method] = {
    # Whether rows are needed depends on what is chosen.
    AUTO: Method(
        dict.fromkeys(Unit, automatic),
        Auto,
        on_aggregates=True,
        overlap=(Unit.RECORD, Unit.TREATMENT_AND_OUTCOME),
        of_means=dict.fromkeys(Unit, automatic),
    ),
    "difference_in_means": Method(
        {Unit.OUTCOME: _later("linear.difference_in_means.difference_in_means")},
        DifferenceInMeans,
        in_batches=(Unit.OUTCOME,),
        of_means={Unit.OUTCOME: _later("linear.arm_means.plain_means")},
    ),
    "trial": Method(
        {Unit.RECORD: _later("moments.trial.trial")} | _PAIRS,
        Trial,
        in_batches=(Unit.RECORD,),
        overlap=(Unit.TREATMENT_AND_OUTCOME,),
        clustered={Unit.RECORD: _later("strata.exact_matching.clustered_trial")},
        of_means={Unit.RECORD: _later("moments.trial.trial_means")} | _PAIR_MEANS,
    ),
    "matching": Method(
        {Unit.OUTCOME: _later("linear.weighting.matching")},
        Matching,
        of_means={Unit.OUTCOME: _later("linear.arm_means.matched_means")},
    ),
    "doubly_robust": Method(
        {Unit.RECORD: _later("moments.doubly_robust.doubly_robust")} | _PAIRS,
        DoublyRobust,
        in_batches=(Unit.RECORD,),
        overlap=(Unit.RECORD, Unit.TREATMENT_AND_OUTCOME),
        of_means={Unit.RECORD: _later("moments.adjusted_means.measured")} | _PAIR_MEANS,
    ),
    "stratified": Method(
        {
            Unit.OUTCOME: _later("strata.exact_matching.stratified_outcome"),
            Unit.RECORD: _later("strata.exact_matching.stratified"),
        },
        Stratified,
        on_aggregates=True,
        of_means={Unit.OUTCOME: _later("strata.exact_matching.stratified_means")},
    ),
    "weighting": Method(
        {Unit.OUTCOME: _later("linear.weighting.weighting")},
        Weighting,
        of_means={Unit.OUTCOME: _later("linear.arm_means.weighted_means")},
    ),
    "sample_and_aggregate": Method({Unit.RECORD: _later("folds.aggregation.sample_and_aggregate")}, Folds),
}


# The papers' methods, which are asked for elsewhere, and what they are called there.
_PUBLISHED = {"cross_fit": "cross_fit", "ipw": "ipw"}


def _published(got: str, form: str) -> CounterveilError:
    """Return CV-P027, which names the place of a paper's method."""
    return refusal("CV-P027", expected=f"method={' or '.join(map(repr, METHODS))}", got=got, form=form)


def method_names() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return tuple(METHODS)


def _refuse_measure(study: Study, question: Question) -> None:
    """Raise CV-P686 or CV-P687 for a measure that the outcome or the method does not have."""
    refuse_range(study, question.measure)
    if question.measure not in OF_MEANS:
        return
    if question.unit not in METHODS[question.method].of_means or question.estimand is Estimand.ATO:
        raise no_means(question.method, f"protects={question.unit.value!r}")
    if study.cluster is not None:
        raise no_means(question.method, f"cluster={study.cluster.column!r}")
    trial = question.unit is Unit.RECORD and (question.method == "trial" or study.randomised is True)
    if question.unit is not Unit.OUTCOME and not trial and question.estimand is not Estimand.ATE:
        raise no_means(question.method, f"estimand={question.estimand.value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AteArguments(Arguments[Result]):
    """Return the private average treatment effect of a study.

    Args:
        data: a pandas, polars or pyarrow frame, a path to CSV or Parquet, a DuckDB relation, a dictionary of
            arrays, or a `Table`; for methods that need counts and sums only ("stratified") also an Ibis table,
            which is aggregated inside its database. A formula may stand before it: "died ~ rhc | age + sex".
        study: column roles, public bounds and categories; after a formula also what `Study.from_formula` takes.
        protects: "outcome" (only outcomes are private), "treatment and outcome" (covariates and who took part are
            public) or "record" (everything about a person is private).
        epsilon: privacy loss to spend; exact (0.1 is one tenth).
        delta: 0 for pure differential privacy; a small positive number allows Gaussian noise.
        method: "auto", or a method by name; an unknown name lists the methods.
        estimand: "ATE" (everyone), "ATT" (the treated), "ATC" (the untreated), or "ATO" (overlap-weighted, for
            protects="record" with method "doubly_robust" or "auto"). None takes "ATE"; for a study of a cv.Change that
            is not randomised, "ATT".
        level: confidence level of the interval, which includes the privacy noise.
        mechanism: "staircase" or "laplace", or "gaussian" if delta is positive; None takes the smaller noise:
            staircase for delta 0 and for few numbers, Gaussian otherwise.
        trim: with protects="outcome", keep people with propensity scores in [trim, 1 - trim], or in the limits of
            least variance ("optimal", Crump et al. 2009); the effect is then that of these people alone.
        measure: "difference" of mean outcomes; "ratio" of them, "lift" (the ratio less 1) or "odds_ratio", for methods
            that release the means of both arms; "nnt", one over the difference. Intervals of ratios may have no upper
            end, those of numbers needed to treat two parts.
        settings: the method's own settings, such as `cv.settings.Matching(neighbours=5)`.
        ledger: path or URL of an existing ledger, or a `Ledger`; without one, the costs of several calls are not
            added up.
        dataset: account in the ledger; may be omitted if the ledger has only one.
        request_id: name of this request; repeating it returns the stored answer and costs nothing.
        noise: `SeededNoise(seed)` for tests and experiments; the result is then marked as simulated.
    """

    name: ClassVar[str] = "ate"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: AteMethod = "auto"
    estimand: EstimandName | None = None
    mechanism: Mechanism | None = None
    settings: Settings | None = None
    trim: float | str | None = None
    measure: Measure = "difference"

    def checked(self, study: Study) -> Asked[Result]:
        """Return the checked question; nothing here looks at data or budget."""
        question = self.about(study)
        attach = not METHODS[question.method].on_aggregates
        return Asked(question.budget, partial(answer, question=question), attach)

    def about(self, study: Study) -> Question:
        """Return the checked question itself."""
        if isinstance(self.method, str) and self.method in _PUBLISHED:
            raise _published(f"method={self.method!r}", _PUBLISHED[self.method])
        refuse_unknown_method(self.method, method_names())
        refuse_several_arms(study, ratio=True)
        whose = usual_estimand(study, self.estimand).value
        check_measure(self.measure)
        question = self.question(
            self.method,
            self.mechanism,
            self.settings,
            estimand=whose,
            trim=self.trim,
            measure=self.measure,
        )
        refuse_extremes(study, question.budget)
        method = METHODS[question.method]
        if question.method == AUTO and not study.covariates and study.before is None:
            refuse_undeclared_trial(study)
        _form(question)
        refuse_shape(study, question.unit)
        if study.denominator is not None:
            _refuse_other_than_ratios(question)
        if question.unit not in method.overlap:
            refuse_overlap(question)
        pairs_alone = question.unit is Unit.TREATMENT_AND_OUTCOME
        refuse_other_settings(question, None if pairs_alone else method.settings)
        refuse_clusters(study, "ate", question.method, question.unit)
        _refuse_measure(study, question)
        return question


ate = question_of(AteArguments)


def answer(session: BaseSession, question: Question) -> Result:
    """Return the answer of the estimator that the question names, and whose it is if rows were chosen."""
    found, where = _trimmed(session, question), session.study.where
    said = panel_facts(session.study) | ({} if where is None else {"rows_where": where.text})
    return replace(found, details=found.details | said) if said else found


def _trimmed(session: BaseSession, question: Question) -> Result:
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
def _answer(session: BaseSession, question: Question) -> Result:
    """Return the answer of the estimator that the question names."""
    method = METHODS[question.method]
    session.admit(question.uses(session.study))
    if question.method not in (AUTO, "doubly_robust"):
        question = question.in_pure_noise(session.account().rule)
    # Data which do not fit are refused before anything is spent.
    if question.unit in method.in_batches:
        session.attach_batches()
    elif not method.on_aggregates:
        session.attach(f"method={question.method!r}")
    if session.study.cluster is not None and question.method != AUTO:
        # Ratios of means have normal intervals.
        asked = f"measure={question.measure!r}" if question.measure in OF_MEANS else "ate"
        refuse_few_clusters(session.study, asked, question.method, session.batches.rows)
    if session.study.denominator is not None:
        from counterveil.statistics.moments.ratio import compare_ratios

        session.attach_batches()
        return compare_ratios(session, question)
    if question.measure in OF_MEANS:
        return method.of_means[question.unit](session, question)
    form = _form(question)
    if session.study.clustered:
        form = method.clustered.get(question.unit, form)
    found = form(session, question)
    # What was chosen automatically has its measure already.
    plain = question.measure != NEEDED or isinstance(found, MeasureResult)
    return found if plain else MeasureResult.of_difference(found)


# The methods that compare ratios of sums: those that take nothing but the arms into account.
_RATIO_METHODS = {Unit.OUTCOME: "difference_in_means", Unit.RECORD: "trial"}


def _refuse_other_than_ratios(question: Question) -> None:
    """Raise CV-P673 for methods, settings and estimands that have no form for ratios."""
    method = _RATIO_METHODS[question.unit]
    wrong = (
        question.method not in (method, AUTO) or question.settings is not None or question.trim is not None
    )
    if wrong or question.estimand is not Estimand.ATE:
        raise refusal("CV-P673", method=method, given=question.method, estimand=question.estimand.value)


def _form(question: Question) -> Estimator:
    forms = METHODS[question.method].forms
    if question.unit not in forms:
        if question.method == "matching":
            raise _published(f"method='matching', protects={question.unit.value!r}", "record_matching")
        known = sorted(f"protects={unit.value!r}" for unit in forms)
        raise refusal("CV-P018", known=" or ".join(known), method=question.method, unit=question.unit.value)
    return forms[question.unit]


def settings_from_text(method: str, words: list[str]) -> Any:
    """Return the method's settings from words such as "neighbours=5", None where there are none."""
    wanted = METHODS[method].settings if method in METHODS else None
    if not words:
        return None
    kinds = {each.name: str(each.type) for each in fields(wanted)} if wanted is not None else {}
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or wanted is None:
            listed = f"NAME=VALUE with one of {list(kinds)}"
            raise refusal(
                "CV-P020", expected=listed if kinds else f"no settings for method={method!r}", got=word
            )
        values[name] = setting_value(text, kinds.get(name, "").startswith("tuple"))
    return wanted(**values) if wanted is not None else None


def setting_value(text: str, several: bool = False) -> Any:
    """Return what a text means: a literal, names separated by commas where `several` are meant, or itself."""
    try:
        return parse_literal(text)
    except UnreadableError:
        return tuple(part.strip() for part in text.split(",")) if several else text


_MOST = 1000  # entries of a list or a table


def settings_from_values(method: str, values: Mapping[str, Any], wanted: Any = ...) -> Any:
    """Return the method's settings from values by name, None where there are none, or raise CV-P020.

    `wanted` is the class of settings that the method takes, that of `ate` if it is omitted.

    Names must be those of the settings, and values of the types that they declare; lists stand for tuples. Learners
    that are objects cannot be named.
    """
    if not values:
        return None
    if wanted is ...:
        wanted = METHODS[method].settings if method in METHODS else None
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


def _wrong(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P020", expected=expected, got=got)
