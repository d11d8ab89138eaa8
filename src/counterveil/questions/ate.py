"""Which estimator answers which question: the table behind `method=` and `settings=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Estimand, Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks, refuse_range
from counterveil.questions.auto import AUTO, choose
from counterveil.questions.choices import AteMethod, EstimandName, Measure, Mechanism, Protects
from counterveil.results.arms import refuse_several_arms
from counterveil.results.measure_words import NEEDED
from counterveil.results.measures import OF_MEANS, check_measure, no_means
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
from counterveil.session import BaseSession, BitSource
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
from counterveil.settings.ranges import Settings
from counterveil.statistics.folds.aggregation import sample_and_aggregate
from counterveil.statistics.linear.arm_pair import matched_means, plain_means, weighted_means
from counterveil.statistics.linear.difference_in_means import difference_in_means
from counterveil.statistics.linear.matching import matching
from counterveil.statistics.linear.trimming import PAGE as TRIMMED_PAGE
from counterveil.statistics.linear.trimming import trimmed
from counterveil.statistics.linear.weighting import weighting
from counterveil.statistics.moments.doubly_robust import doubly_robust
from counterveil.statistics.moments.ratio import compare_ratios
from counterveil.statistics.moments.trial import trial, trial_means
from counterveil.statistics.pairs.effect import pair_means, pairs
from counterveil.statistics.strata.cluster_cells import clustered_trial
from counterveil.statistics.strata.exact_matching import stratified, stratified_means, stratified_outcome

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


def automatic(session: BaseSession, question: Question) -> Result:
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
    AUTO: Method(
        dict.fromkeys(Unit, automatic),
        Auto,
        on_aggregates=True,
        overlap=(Unit.RECORD, Unit.TREATMENT_AND_OUTCOME),
        of_means=dict.fromkeys(Unit, automatic),
    ),
    "difference_in_means": Method(
        {Unit.OUTCOME: difference_in_means},
        DifferenceInMeans,
        in_batches=(Unit.OUTCOME,),
        of_means={Unit.OUTCOME: plain_means},
    ),
    "trial": Method(
        {Unit.RECORD: trial, Unit.TREATMENT_AND_OUTCOME: pairs},
        Trial,
        in_batches=(Unit.RECORD,),
        overlap=(Unit.TREATMENT_AND_OUTCOME,),
        clustered={Unit.RECORD: clustered_trial},
        of_means={Unit.RECORD: trial_means, Unit.TREATMENT_AND_OUTCOME: pair_means},
    ),
    "matching": Method(
        {Unit.OUTCOME: matching},
        Matching,
        of_means={Unit.OUTCOME: matched_means},
    ),
    "doubly_robust": Method(
        {Unit.RECORD: doubly_robust, Unit.TREATMENT_AND_OUTCOME: pairs},
        DoublyRobust,
        in_batches=(Unit.RECORD,),
        overlap=(Unit.RECORD, Unit.TREATMENT_AND_OUTCOME),
        of_means={Unit.RECORD: doubly_robust, Unit.TREATMENT_AND_OUTCOME: pair_means},
    ),
    "stratified": Method(
        {Unit.OUTCOME: stratified_outcome, Unit.RECORD: stratified},
        Stratified,
        on_aggregates=True,
        of_means={Unit.OUTCOME: stratified_means},
    ),
    "weighting": Method({Unit.OUTCOME: weighting}, Weighting, of_means={Unit.OUTCOME: weighted_means}),
    "sample_and_aggregate": Method({Unit.RECORD: sample_and_aggregate}, Folds),
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
    """The private average treatment effect; see `counterveil.ate` for the arguments."""

    name: ClassVar[str] = "ate"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    delta: Number = 0
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
            self.delta,
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
        if study.per is not None:
            _refuse_other_than_ratios(question)
        if question.unit not in method.overlap:
            refuse_overlap(question)
        pairs_alone = question.unit is Unit.TREATMENT_AND_OUTCOME
        refuse_other_settings(question, None if pairs_alone else method.settings)
        refuse_clusters(study, "ate", question.method, question.unit)
        _refuse_measure(study, question)
        return question


def answer(session: BaseSession, question: Question) -> Result:
    """Return the answer of the estimator that the question names, and whose it is if rows were chosen."""
    found = _trimmed(session, question)
    where = session.study.where
    return found if where is None else replace(found, details=found.details | {"rows_where": where.text})


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
    if session.study.per is not None:
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


@asks
def ate(
    data: object,
    study: Study,
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: AteMethod = "auto",
    estimand: EstimandName | None = None,
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: Settings | None = None,
    trim: float | str | None = None,
    measure: Measure = "difference",
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
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
            protects="record" with method "doubly_robust" or "auto"). None takes "ATE"; for a study with before= that
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
    asked = AteArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        estimand=estimand,
        level=level,
        mechanism=mechanism,
        settings=settings,
        trim=trim,
        measure=measure,
        request_id=request_id,
    )
    return ask_once(asked, data, study, ledger, dataset, noise)
