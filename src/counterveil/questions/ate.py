"""The average effect of a treatment, E[Y(1) - Y(0)]: the arguments of `cv.ate`, and how they are answered.

In: the call's arguments, of which all are checked here before data or budget are touched. Out: a result whose
estimate is in units of the outcome (or of the `measure`), with an interval that includes the privacy noise.
Which numbers are released, with which bounds, is decided by the method that is registered for what is
protected; the answer names its proof pages (`rows/**/*.proof.md`). Nothing here adds noise or reads a private
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.panels import panel_facts
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.linear.trimming import PAGE as TRIMMED_PAGE
from counterveil.estimators.linear.trimming import trimmed
from counterveil.estimators.method import AdaptiveMethod, check_own_method, runs, supports
from counterveil.estimators.moments.ratio import compare_ratios
from counterveil.estimators.registry import IN_MEMORY, PUSHED_DOWN, STREAMED, Form, answer_by, methods_of
from counterveil.inference.quotient import NEEDED
from counterveil.privacy import Estimand, Number, Unit
from counterveil.questions import settings_values
from counterveil.questions.asking import Arguments, Asked, ask_once, asks, refuse_range
from counterveil.questions.auto import choose
from counterveil.questions.choices import AteMethod, EstimandName, Mechanism, Protects
from counterveil.results.arms import refuse_several_arms
from counterveil.results.measures import OF_MEANS, Measure, check_measure, no_means
from counterveil.results.question import (
    Question,
    default_estimand,
    refuse_clusters,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_overlap,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.result import MeasureResult, Result
from counterveil.rows.linear.moved_rows import session_of
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource
from counterveil.settings import Auto
from counterveil.settings.methods import Settings

AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class AteArguments(Arguments[Result]):
    """The arguments of `ate` beside data and study, checked."""

    name: ClassVar[str] = "ate"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: AteMethod | AdaptiveMethod = "auto"
    estimand: EstimandName | None = None
    mechanism: Mechanism | None = None
    settings: Settings | None = None
    trim: float | str | None = None
    measure: Measure = "difference"

    def checked(self, study: Study) -> Asked[Result]:
        """Return the checked question with its budget; reads neither data nor ledger."""
        if isinstance(self.method, AdaptiveMethod):
            question = self.about_own_method(study, self.method)
            return Asked(question.budget, compute=partial(answer_own_method, question=question))
        question = self.about(study)
        return Asked(
            question.budget,
            compute=partial(answer, question=question),
            attach=not _aggregates(question),
        )

    def about_own_method(self, study: Study, method: AdaptiveMethod) -> Question:
        """Return the question of a method of the analyst's own, or raise what it does not fit: CV-P846 and others."""
        check_own_method(method, method_names())
        if not supports(method, self.unit):
            raise refusal("CV-P018e", method=method.name, protects=method.protects, unit=self.unit.value)
        if self.settings is not None or self.trim is not None or self.measure != "difference":
            raise refusal("CV-P847", method=method.name)
        refuse_several_arms(study, ratio=True)
        estimand = default_estimand(study, self.estimand)
        if estimand.value not in method.estimands:
            raise refusal("CV-P848", method=method.name, known=method.estimands, estimand=estimand.value)
        question = self.question(method.name, self.mechanism, estimand=estimand.value)
        refuse_extremes(study, question.budget)
        refuse_shape(study, question.unit)
        if study.denominator is not None or study.clustered:
            raise refusal("CV-P849", method=method.name)
        return replace(question, own_method=method)

    def about(self, study: Study) -> Question:
        """Return the question, or raise the error of the first argument that does not fit the study."""
        if isinstance(self.method, str) and self.method in _MOVED_TO_PUBLISHED:
            raise _use_published(f"method={self.method!r}", self.method)
        name = cast("str", self.method)
        refuse_unknown_method(name, method_names())
        refuse_several_arms(study, ratio=True)
        estimand = default_estimand(study, self.estimand).value
        check_measure(self.measure)
        question = self.question(
            name,
            self.mechanism,
            self.settings,
            estimand=estimand,
            trim=self.trim,
            measure=self.measure,
        )
        refuse_extremes(study, question.budget)
        if question.method == AUTO and not study.covariates and study.before is None:
            refuse_undeclared_trial(study)
        form = None if question.method == AUTO else _form(question)
        refuse_shape(study, question.unit)
        if study.denominator is not None:
            _refuse_other_than_ratios(question)
        if not (question.unit in _AUTO_OVERLAP if form is None else form.overlap):
            refuse_overlap(question)
        takes_settings = question.unit is not Unit.TREATMENT_AND_OUTCOME
        settings = Auto if form is None else form.settings
        refuse_other_settings(question, settings if takes_settings else None)
        refuse_clusters(study, "ate", question.method, question.unit)
        _refuse_measure(study, question)
        return question


@asks
def ate(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: AteMethod | AdaptiveMethod = "auto",
    estimand: EstimandName | None = None,
    measure: Measure = "difference",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    trim: float | str | None = None,
    settings: Settings | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate an average treatment effect with differential privacy.

    Parameters
    ----------
    data : frame, mapping, path or relation
        The rows: a pandas, polars or pyarrow data frame, a mapping of names to arrays, the path of a
        CSV or Parquet file (or a pattern that names several), a DuckDB relation or a Spark data frame.
        An Ibis table is aggregated inside its database, for methods that need counts and sums alone. A
        formula such as ``"died ~ rhc | age + sex"`` may stand here; rows and declarations follow it.
    study : Study
        Roles, public ranges and categories of the columns. After a formula: the rows.
    declared : mapping, Study or path, optional
        After a formula only: what declares its columns, as a mapping of names to ranges and labels
        (``{"age": (18, 90)}``), a codebook or study file, or a `Study`.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : str or Method, default "auto"
        Estimator. "auto" chooses from public numbers alone and names its choice in the result. With
        outcomes private: "difference_in_means" (trials), "weighting", "matching" and "stratified". With
        records private: "trial", "doubly_robust", "stratified" and "sample_and_aggregate". With
        treatments and outcomes private: "trial" and "doubly_robust". Or a method of your own, an object
        of a subclass of `cv.methods.Method`; its guarantee rests on the bounds that it declares.
    estimand : {"ATE", "ATT", "ATC", "ATO"}, optional
        Whose average effect: everyone's, that of the treated, of the untreated, or of the
        overlap-weighted population. By default "ATE"; "ATT" where a study compares changes and is not
        randomised. "ATO" needs ``protects="record"`` or ``"treatment and outcome"`` and method "auto"
        or "doubly_robust".
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}, default "difference"
        Scale of the effect, from the mean outcomes m1 with treatment and m0 without: m1 - m0, m1 / m0,
        m1 / m0 - 1, the ratio of the odds m / (1 - m), or the number needed to treat, 1 / (m1 - m0).
        Ratios, lifts and odds ratios need a method that releases both means. Intervals of ratios may
        have no upper end, those of numbers needed to treat two parts.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1; the privacy noise is included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    trim : float or "optimal", optional
        With ``protects="outcome"``: keep people whose propensity score is in [trim, 1 - trim], or
        inside the limits of least variance [1]_. The effect is then that of the people kept.
    settings : settings of the method, optional
        `cv.settings.Auto`, `DifferenceInMeans`, `Trial`, `Matching`, `Weighting`, `Stratified`,
        `DoublyRobust` or `Folds` (of "sample_and_aggregate"), as
        ``cv.settings.Matching(neighbours=5)``.
    ledger : path, URL or Ledger, optional
        Existing ledger to charge. Without one, the costs of several calls are not added up.
    dataset : str, optional
        Account in the ledger; needed if it has more than one.
    request_id : str, optional
        Name of this request. Repeating a named request returns the stored answer and costs nothing.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: the result is marked as simulated and
        protects nobody. By default the operating system's random bits.

    Returns
    -------
    Result
        Estimate, standard error, confidence interval, guarantee and what was spent; a `MeasureResult`
        with other measures than "difference".

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    groups, cate : Effects of groups, and as a function of covariates.
    plan : Lengths of intervals, before anything is spent.

    Notes
    -----
    The estimand of ``"ATE"`` is E[Y(1) - Y(0)] over the people in the data, of ``"ATT"`` that over the
    treated, of ``"ATC"`` over the untreated, and of ``"ATO"`` the mean with weights p(x) (1 - p(x)),
    where p is the propensity score.

    The interval is ``{e : |estimate - e| <= h}`` with ``P(|N(0, v) + X| > h) = 1 - level``, where v
    is the sampling variance and X the privacy noise, whose distribution is public. It is cut to what
    the range of outcomes allows.

    References
    ----------
    .. [1] Crump, R. K., Hotz, V. J., Imbens, G. W. and Mitnik, O. A. (2009). Dealing with limited overlap
       in estimation of average treatment effects. Biometrika 96, 187-199.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> result = cv.ate(data.frame, data.study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1))
    >>> round(result.estimate, 1)
    0.3
    >>> low, high = result.interval()
    >>> low < 0.3 < high
    True

    The same with a formula and public ranges:

    >>> cv.ate(
    ...     "y ~ treated | x", data.frame, {"y": (0, 1), "x": (0, 1)}, protects="outcome", epsilon=1
    ... ).outcome
    'y'
    """
    arguments = AteArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        estimand=estimand,
        measure=measure,
        level=level,
        mechanism=mechanism,
        trim=trim,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


def automatic(session: BaseSession, question: Question) -> Result:
    """Return the answer of the method that `choose` names, and record the choice in its details."""
    # Under the Gaussian rule pure noise costs the account dearly, so a delta means Gaussian noise throughout.
    pure_is_cheap = session.account().rule == "sum"
    choice = choose(session, replace(question, open_noise=question.open_noise and pure_is_cheap))
    result = estimate(session, choice.question)
    details: dict[str, float | str] = {"chosen_by_auto": f"{choice.question.method}: {choice.why}"}
    return replace(result, details=details | result.details)


METHODS = methods_of("ate")
# Levels at which `auto` estimates the effect of the overlap-weighted population.
_AUTO_OVERLAP = (Unit.RECORD, Unit.TREATMENT_AND_OUTCOME)
_MOVED_TO_PUBLISHED = ("cross_fit", "ipw")  # methods of papers, now `cv.published.<name>`
# Methods that compare ratios of sums: those without adjustment.
_RATIO_METHODS = {Unit.OUTCOME: "difference_in_means", Unit.RECORD: "trial"}


def method_names() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return (AUTO, *METHODS)


def settings_from_text(method: str, words: list[str]) -> Any:
    """Return the method's settings from words such as "neighbours=5", None if there are none."""
    return settings_values.from_text(settings_class(method), method, words)


def settings_from_values(method: str, values: Mapping[str, Any], wanted: Any = ...) -> Any:
    """Return the method's settings from JSON values, None if there are none.

    `wanted` is the settings class; by default that of the method of `ate`.
    """
    expected = settings_class(method) if wanted is ... else wanted
    return settings_values.from_values(expected, method, values)


def settings_class(method: str) -> type | None:
    """Return the class that `settings=` must be with a method, None where it takes none or there is no such method."""
    if method == AUTO:
        return Auto
    forms = METHODS[method].forms.values() if method in METHODS else ()
    return next((form.settings for form in forms if form.settings is not None), None)


def answer(session: BaseSession, question: Question) -> Result:
    """Return the answer to a checked question, after trimming if that was asked."""
    result = estimate(session, question) if question.trim is None else _estimate_trimmed(session, question)
    details = panel_facts(session.study)
    if session.study.where is not None:
        details |= {"rows_where": session.study.where.text}
    return replace(result, details=result.details | details) if details else result


def _estimate_trimmed(session: BaseSession, question: Question) -> Result:
    """Return the effect on the people whose propensity scores leave overlap."""
    assert question.trim is not None
    session.admit(question.uses(session.study))
    with silence():
        trim = trimmed(PublicData(session, question.unit).columns, question.trim)
    result = estimate(session_of(session, trim.kept), question)
    details: dict[str, float | str] = {"rows_before_trimming": trim.people, "least_score_kept": trim.limit}
    guarantee = replace(result.guarantee, pages=(*result.guarantee.pages, TRIMMED_PAGE))
    return replace(result, details=result.details | details, population=trim.population, guarantee=guarantee)


@silence()
def answer_own_method(session: BaseSession, question: Question) -> Result:
    """Return the answer of a method of the analyst's own."""
    session.admit(question.uses(session.study))
    session.attach(f"method={question.method!r}")
    pure = question.in_pure_noise(session.account().rule)
    result: Result = runs(question.own_method.prepare)(session, pure)
    return replace(result, details=result.details | panel_facts(session.study))


@silence()
def estimate(session: BaseSession, question: Question) -> Result:
    """Return the answer of the method that the question names; data that do not fit are refused first."""
    session.admit(question.uses(session.study))
    if session.study.denominator is not None:
        return _compare_ratios(session, question)
    result = automatic(session, question) if question.method == AUTO else _by_method(session, question)
    if question.measure == NEEDED and not isinstance(result, MeasureResult):
        return MeasureResult.of_difference(result)
    return result


def _by_method(session: BaseSession, question: Question) -> Result:
    """Return the answer of one of the package's methods: rows are attached as it reads them, then it is prepared."""
    form = _form(question)
    if question.method != "doubly_robust":
        question = question.in_pure_noise(session.account().rule)
    if form.reading is STREAMED:
        session.attach_batches()
    elif form.reading is IN_MEMORY:
        session.attach(f"method={question.method!r}")
    _refuse_few_clusters(session, question)
    return answer_by(Result, session, "ate", question)


def _compare_ratios(session: BaseSession, question: Question) -> Result:
    """Return the difference of both arms' ratios of sums, which needs no adjustment."""
    session.attach_batches()
    if question.method != AUTO:
        question = question.in_pure_noise(session.account().rule)
        _refuse_few_clusters(session, question)
    result: Result = runs(compare_ratios)(session, question)
    return result


def _refuse_few_clusters(session: BaseSession, question: Question) -> None:
    study = session.study
    if study.cluster is not None:
        asked = f"measure={question.measure!r}" if question.measure in OF_MEANS else "ate"
        refuse_few_clusters(study, asked, question.method, PublicData(session, question.unit).rows)


def _aggregates(question: Question) -> bool:
    """Whether rows may stay where they are: the engine that holds them may add them up, as far as is known yet."""
    return question.method == AUTO or _form(question).reading is PUSHED_DOWN


def _form(question: Question) -> Form:
    """Return the form of the question's method at its level, or raise CV-P018 or CV-P027."""
    forms = METHODS[question.method].forms
    if question.unit in forms:
        return forms[question.unit]
    unit = question.unit.value
    if question.method == "matching":
        raise _use_published(f"method='matching', protects={unit!r}", "record_matching")
    known = sorted(f"protects={each.value!r}" for each in forms)
    raise refusal("CV-P018", known=" or ".join(known), method=question.method, unit=unit)


def _use_published(got: str, form: str) -> CounterveilError:
    """Return CV-P027, which says where the method of a paper is."""
    return refusal("CV-P027", expected=f"method={' or '.join(map(repr, method_names()))}", got=got, form=form)


def _refuse_other_than_ratios(question: Question) -> None:
    """Raise CV-P673 for methods, settings and estimands that have no form for ratios of sums."""
    method = _RATIO_METHODS[question.unit]
    other_method = question.method not in (method, AUTO)
    options = question.settings is not None or question.trim is not None
    if other_method or options or question.estimand is not Estimand.ATE:
        raise refusal("CV-P673", method=method, given=question.method, estimand=question.estimand.value)


def _refuse_measure(study: Study, question: Question) -> None:
    """Raise CV-P686 or CV-P687 for a measure that the outcome or the method does not have."""
    refuse_range(study, question.measure)
    if question.measure not in OF_MEANS:
        return
    without_means = question.method != AUTO and _form(question).of_means is None
    if without_means or question.estimand is Estimand.ATO:
        raise no_means(question.method, f"protects={question.unit.value!r}")
    if study.cluster is not None:
        raise no_means(question.method, f"clusters={study.cluster.column!r}")
    private_trial = question.unit is Unit.RECORD and (question.method == "trial" or study.randomised is True)
    any_estimand = question.unit is Unit.OUTCOME or private_trial
    if not any_estimand and question.estimand is not Estimand.ATE:
        raise no_means(question.method, f"estimand={question.estimand.value!r}")
