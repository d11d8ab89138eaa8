"""Effects by period of a panel, relative to a reference period: `event_study(...)`.

    effect in period t:  E[Y_t(1) - Y_t(0)] = (change of the treated since period r) - (that of the controls)

with r the reference period; the second form is right under parallel trends. In: private measurements of
everyone in every period, their public range, the budget. Out: one effect for each period but r, in units of
the outcome, with single and simultaneous intervals and a test that effects before treatment are zero.

One epsilon pays for all periods: a person's measurements may all change at once, each period's comparison has
a part of the budget, and the parts add up to it. Proofs: `rows/linear/event_study.proof.md` (outcomes
private), `rows/moments/event_study.proof.md` (records private). This module checks the arguments; estimators
do the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.domains import Label
from counterveil.data.features import require_covariates
from counterveil.data.panels import panel_facts
from counterveil.errors import refusal
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.privacy import Estimand, Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks, with_smaller_noise
from counterveil.questions.choices import EstimandName, EventStudyMethod, Mechanism, Protects
from counterveil.results.arms import EventStudyResult, refuse_several_arms
from counterveil.results.question import (
    Question,
    default_estimand,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_unknown_method,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource, Plan
from counterveil.settings import DifferenceInMeans, Matching, Weighting
from counterveil.settings.methods import Settings

# Methods by what they protect, with their settings.
METHODS = by_unit("event_study")
_FEWEST = 3  # measurements: with two there is one effect, which `ate` estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStudyArguments(Arguments[EventStudyResult]):
    """The arguments of `event_study` beside data and study, checked."""

    name: ClassVar[str] = "event_study"
    reference: Label | None = None
    method: EventStudyMethod = "auto"
    estimand: EstimandName | None = None
    mechanism: Mechanism | None = None
    settings: DifferenceInMeans | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[EventStudyResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_several_arms(study)
        place = _place(study, self.reference)
        unit, method = self.unit, self.method
        known = METHODS[unit]
        refuse_unknown_method(method, ("auto", *known), f" with protects={unit.value!r}")
        if method == "auto":
            free = unit is Unit.OUTCOME and study.covariates and study.randomised is not True
            method = "weighting" if free else "difference_in_means"
        whose = default_estimand(study, self.estimand)
        question = self.question(method, self.mechanism, self.settings, estimand=whose.value)
        refuse_extremes(study, question.budget)
        if method != "difference_in_means":
            require_covariates(study, method)
        refuse_other_settings(question, known[method])
        _refuse_prediction(question.settings)
        if whose is Estimand.ATO:
            raise refusal("CV-P401")
        return Asked(question.budget, partial(answer_event_study, question=question, place=place))


@asks
def event_study(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    reference: Label | None = None,
    method: EventStudyMethod = "auto",
    estimand: EstimandName | None = None,
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: DifferenceInMeans | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> EventStudyResult:
    """Estimate the effects of all periods of a panel, relative to a reference period.

    Everyone treated is so from the end of the periods before on. Effects of periods before treatment
    show whether trends were parallel then. One epsilon pays for all periods:
    each has a part of it (``rows/linear/event_study.proof.md``, ``rows/moments/event_study.proof.md``).

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
    protects : {"outcome", "record"}
        What is private. "outcome": all measurements of a person; covariates and treatments are public.
        "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend on all periods together, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise, which grows with the root of the number of periods; pure noise
        grows with their number.
    reference : label, optional
        A period before treatment, or its column, that the others are compared with. By default the last
        one before treatment.
    method : {"auto", "difference_in_means", "weighting", "matching"}, default "auto"
        Estimator. "auto" takes "weighting" with outcomes private, covariates and no trial, else
        "difference_in_means". "weighting" and "matching" need private outcomes.
    estimand : {"ATE", "ATT", "ATC"}, optional
        Whose average effect: everyone's, that of the treated or of the untreated. By default "ATT", in
        a trial "ATE".
    level : float, default 0.95
        Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
        included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    settings : settings of the method, optional
        With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
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
    EventStudyResult
        The effect of every period but the reference, in units of the outcome, with single and
        simultaneous intervals and a test of the periods before treatment.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    ate : The effect after treatment as one number.

    Notes
    -----
    With Y_t the outcome of period t and r the reference, the estimand is E[Y_t(1) - Y_t(0)] over the
    people that `estimand` names. It is identified by parallel trends: E[Y_t(0) - Y_r(0)] does not
    depend on the arm, given covariates if they are adjusted for.

    Examples
    --------
    >>> import counterveil as cv
    >>> workers = {
    ...     "programme": [row % 2 for row in range(400)],
    ...     "y2015": [10 + row % 3 for row in range(400)],
    ...     "y2016": [11 + row % 3 for row in range(400)],
    ...     "y2017": [12 + row % 3 + 4 * (row % 2) for row in range(400)],
    ... }
    >>> change = cv.Change("y2017", (0, 30), before=["y2015", "y2016"])
    >>> study = cv.Study("programme", change, assignment=cv.Observational())
    >>> result = cv.event_study(workers, study, protects="outcome", epsilon=8, noise=cv.SeededNoise(1))
    >>> result.reference, [effect.name for effect in result.periods]
    ('y2016', ['y2015', 'y2017'])
    >>> low, high = result.interval()["y2017"]
    >>> low < 4 < high
    True
    """
    arguments = EventStudyArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        reference=reference,
        method=method,
        estimand=estimand,
        level=level,
        mechanism=mechanism,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


@silence()
def answer_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the effects by period of an open session."""
    session.admit(question.uses(session.study, "event_study"))
    if question.method == "difference_in_means":
        session.attach_batches()
    else:
        session.attach(f"event_study with method={question.method!r}")
    public = PublicData(session, question.unit)
    rows = public.people_in_every_period
    if session.study.cluster is not None:
        refuse_few_clusters(session.study, "event_study", question.method, rows)
    question = _with_smaller_noise(session, question)
    result = answer_by(EventStudyResult, session, "event_study", question, base_period=place)
    details = panel_facts(session.study, (rows, public.rows))
    if session.study.where is not None:
        details |= {"rows_where": session.study.where.text}
    return replace(result, details=result.details | details)


def _with_smaller_noise(session: BaseSession, question: Question) -> Question:
    count = session.study.measured
    shares = {str(place): Fraction(1, count) for place in range(count)}

    def variance(mechanism: str) -> float:
        return Plan.split(question.budget, shares, mechanism).noise("0", Fraction(1)).variance

    return with_smaller_noise(session, question, variance)


def _place(study: Study, reference: Label | None) -> int:
    """Return the place of the reference among the periods, or raise CV-S021 or CV-P671."""
    before = study.before
    if before is None or len(before.labels(study.outcome)) < _FEWEST:
        raise refusal("CV-S021", fewest=_FEWEST, got="no change" if before is None else "two measurements")
    labels = before.labels(study.outcome)
    earlier = labels[: before.earlier]
    if reference is None:
        return len(earlier) - 1
    if reference not in earlier:
        raise refusal("CV-P671", earlier=list(earlier), reference=reference)
    return earlier.index(reference)


def _refuse_prediction(settings: Settings | None) -> None:
    """Raise CV-P672 where changes would be replaced by what a prediction leaves of them."""
    if isinstance(settings, Weighting) and settings.prediction is not None:
        raise refusal("CV-P672", prediction=settings.prediction)
