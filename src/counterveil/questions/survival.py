"""Survival curves of both arms and what follows from them, from one release of tables: `survival(...)`.

    S_a(t) = P(T(a) > t),  T(a) the time to the event in arm a

In: private times and event flags, a public horizon or grid of J time cells, the budget. Out: S_1 and S_0 at
the edges of cells and their difference (probabilities), restricted mean times and quantiles (unit of the
times), log-rank test and hazard ratio, each with an interval that includes the noise.

One epsilon pays for all of it because what is released are tables of events and censorings by cell and arm. A
person has a weight of 1 in one table, so that the sum of absolute changes of the counts is at most 2
(`rows/time_tables.proof.md`). Curves, tests and ratios are arithmetic on the released tables. This module
checks the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.data.follow_up import refuse_censored
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.estimators.survival import SurvivalRequest as AskedByStrata
from counterveil.privacy import Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import Mechanism, Protects, SurvivalMethod
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.survival import SurvivalResult
from counterveil.session import BaseSession, BitSource
from counterveil.settings import Survival

# Methods by what they protect.
METHODS = by_unit("survival")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalArguments(Arguments[SurvivalResult]):
    """The arguments of `survival` beside data and study, checked."""

    name: ClassVar[str] = "survival"
    method: SurvivalMethod = "auto"
    mechanism: Mechanism | None = None
    settings: Survival | None = None

    def checked(self, study: Study) -> Asked[SurvivalResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_censored(study.event, "survival")
        unit, method = self.unit, self.method
        refuse_unknown_method(method, ("auto", *METHODS[unit]), f" with protects={unit.value!r}")
        if method == "auto":
            adjusted = study.randomised is not True and bool(study.covariates)
            if not adjusted:
                refuse_undeclared_trial(study)
            free = "weighting" if unit is Unit.OUTCOME else "stratified"
            method = free if adjusted else "kaplan_meier"
        question = self.question(method, self.mechanism, self.settings)
        refuse_extremes(study, question.budget)
        refuse_other_settings(question, Survival)
        if method != "kaplan_meier":
            require_covariates(study, method)
        AskedByStrata.of(study, question)
        return Asked(question.budget, partial(answer_survival, question=question))


@asks
def survival(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: SurvivalMethod = "auto",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: Survival | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> SurvivalResult:
    """Estimate survival curves of both arms, with everything that follows from them.

    The outcome of the study is the time of follow-up; it declares the event, and a horizon or a grid of
    times.

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
        What is private. "outcome": times and events; covariates and treatments are public. "record":
        everything about a person.
    epsilon : number or str
        Privacy loss to spend on everything together, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise, which is taken where it is the smaller one.
    method : {"auto", "kaplan_meier", "stratified", "weighting"}, default "auto"
        Estimator. "kaplan_meier" (trials), "stratified" (by covariates with labels or cut points) or,
        with outcomes private, "weighting" (balances all covariates). "auto" takes "kaplan_meier" in a
        trial, else "weighting" with outcomes private and "stratified" with records private.
    level : float, default 0.95
        Confidence level of intervals and bands, between 0 and 1; the privacy noise is included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    settings : cv.settings.Survival, optional
        Which cells of time are counted, and how strata are made.
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
    SurvivalResult
        Survival of both arms on the grid and its difference (probabilities), restricted mean times and
        quantiles (in the unit of the times), the log-rank test and hazard ratio, with intervals and
        bands.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    quantiles : Outcomes that are not censored.

    Notes
    -----
    With T the time to the event, S_a(t) = P(T(a) > t); the difference is S_1(t) - S_0(t), the
    restricted mean the integral of S_a up to the horizon. Censoring is supposed to be independent of
    the time given the arm, and given the covariates where they are adjusted for.

    Examples
    --------
    >>> import counterveil as cv
    >>> people = {
    ...     "arm": [row % 2 for row in range(600)],
    ...     "days": [10 + 7919 * row % 350 for row in range(600)],
    ...     "died": [int(row % 5 != 0) for row in range(600)],
    ... }
    >>> study = cv.Study("arm", cv.TimeToEvent("days", "died", horizon=360), assignment=cv.Trial())
    >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
    >>> [effect.name for effect in result.table]
    ['difference in survival at 360', 'difference in mean time to 360']
    >>> low, high = result.hazard_ratio().interval()
    >>> 0 < low < 1 < high
    True
    """
    arguments = SurvivalArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
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
def answer_survival(session: BaseSession, question: Question) -> SurvivalResult:
    """Return the survival of both arms of an open session."""
    session.admit(question.uses(session.study, "survival"))
    if question.method == "weighting":
        session.attach("survival with method='weighting'")
    else:
        session.attach_batches()
    return answer_by(SurvivalResult, session, "survival", question)
