"""Effects on several outcomes at once, all paid for by one epsilon: `outcomes(...)`.

    effect on outcome k:  tau_k = E[Y_k(1) - Y_k(0)],  or a ratio or another `measure` of both arm means

In: private rows, a study that declares every outcome with its public range [l_k, u_k], and the budget. Out:
for every outcome (and arm, where there are several) the estimate, in units of that outcome where the measure
is a difference, with its standard error, an interval and a p-value; noise is included in all of them.

One epsilon pays for all outcomes together because they are released as one vector, whose noise is made for
what one person can do to all of its entries at once. A row moves the k-th entry by at most a public bound D
(u_k - l_k), with D the largest weight of a row. In these units, with m outcomes of equal importance, Gaussian
noise grows by sqrt(m) and pure noise (box noise, `mechanisms/box.proof.md`) by sqrt((m + 1)(m + 2)/6), where
m separate requests would pay m times. `importance` moves noise from one outcome to another. Proofs:
`rows/linear/several_outcomes.proof.md` (outcomes private), `rows/moments/several_outcomes.proof.md` (records
private, two arms), `rows/moments/arms.proof.md` (records private, several arms),
`rows/pairs/pair_scores.proof.md` (treatments and outcomes private).

Simultaneous intervals of m effects are the single ones at the level L^(1/m) each, so that all cover together
with probability L. For normal errors, however correlated, that is Sidak's inequality (1967); for arms with a
shared reference and noise that is not normal see `inference/simultaneous.proof.md`. They are arithmetic on
released numbers: privacy does not depend on them.

This module checks the arguments before data or budget are touched, chooses the method that "auto" stands for
and the noise of least variance from public numbers, and hands the question to the estimator that is
registered for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import ParameterError, refusal
from counterveil.estimators.method import runs
from counterveil.estimators.moments.record_arms import record_arm_effects
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.privacy import Estimand, Number, Unit, exact
from counterveil.questions.asking import Arguments, Asked, ask_once, asks, refuse_range, with_smaller_noise
from counterveil.questions.choices import EstimandName, Mechanism, OutcomesMethod, Protects
from counterveil.results.arms import OutcomesResult
from counterveil.results.measures import OF_MEANS, Measure, check_measure, no_means
from counterveil.results.question import (
    Question,
    refuse_clusters,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource, Kind, Plan
from counterveil.settings import Arms, DifferenceInMeans, Matching, Weighting

# Methods by what they protect, with their settings; where there are several arms, those of `settings.Arms`.
METHODS = by_unit("outcomes")
_ADJUSTING = ("weighting", "matching")
# How much less noise an outcome may have than another.
_MOST_IMPORTANCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesArguments(Arguments[OutcomesResult]):
    """The arguments of `outcomes` beside data and study, checked."""

    name: ClassVar[str] = "outcomes"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: OutcomesMethod = "auto"
    estimand: EstimandName = "ATE"
    measure: Measure = "difference"
    importance: Mapping[str, Number] | None = None
    mechanism: Mechanism | None = None
    settings: Arms | DifferenceInMeans | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[OutcomesResult]:
        """Return the checked question; nothing here looks at data or budget."""
        check_measure(self.measure)
        listed = _listed(study, self.importance, self.measure)
        _refuse_earlier(study)
        unit, method = self.unit, self.method
        refuse_unknown_method(method, ("auto", *METHODS[unit]), f" with protects={unit.value!r}")
        if method == "auto":
            method = _usual(study, unit)
        question = self.question(
            method, self.mechanism, self.settings, estimand=self.estimand, measure=self.measure
        )
        for name, ends in zip(listed.names, listed.ranges, strict=True):
            one = study._changed(outcome=name, outcome_range=ends)
            refuse_extremes(one, question.budget)
            refuse_range(one, self.measure)
        _refuse_arms(study, question)
        refuse_shape(study, unit, self.name)
        kind = METHODS[unit][method]
        if method in _ADJUSTING:
            require_covariates(study, method)
            kind = kind if study.arms is None else Arms
        elif study.arms is not None:
            kind = None
        if unit is Unit.TREATMENT_AND_OUTCOME and study.randomised is not True:
            require_covariates(study, method)
        refuse_other_settings(question, kind)
        if isinstance(self.settings, Weighting) and self.settings.prediction is not None:
            raise refusal("CV-P689", prediction=self.settings.prediction)
        refuse_clusters(study, "outcomes", method, unit)
        return Asked(question.budget, partial(_answer, question=question, listed=listed))


@asks
def outcomes(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: OutcomesMethod = "auto",
    estimand: EstimandName = "ATE",
    measure: Measure = "difference",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    importance: Mapping[str, Number] | None = None,
    settings: Arms | DifferenceInMeans | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> OutcomesResult:
    """Estimate the effects on all outcomes of a study, the primary one first.

    One epsilon pays for all outcomes together: they are released as one vector, with noise for what one
    person can change in all of its entries at once (``rows/linear/several_outcomes.proof.md``). The study
    declares several outcomes, and two arms or several.

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
        What is private. "outcome": all outcomes of a person; covariates and treatments are public.
        "treatment and outcome": treatments and all outcomes; covariates are public. "record":
        everything about a person (trials).
    epsilon : number or str
        Privacy loss to spend on all outcomes together, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise, which grows with the root of the number of outcomes; pure noise
        grows with their number, but by less than if each were asked for by itself.
    method : str, default "auto"
        Estimator. With outcomes private: "difference_in_means", "weighting" or "matching", with one set
        of weights for all outcomes; "auto" takes "weighting" where there are covariates. With records
        private "trial", with treatments and outcomes private "doubly_robust".
    estimand : {"ATE", "ATT", "ATC"}, default "ATE"
        Whose average effect: everyone's, that of the treated or of the untreated. With several arms
        "ATE".
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}, default "difference"
        Scale of the effect, from the mean outcomes m1 with treatment and m0 without: m1 - m0, m1 / m0,
        m1 / m0 - 1, the ratio of the odds m / (1 - m), or the number needed to treat, 1 / (m1 - m0).
        Ratios, lifts and odds ratios need a method that releases both means. Intervals of ratios may
        have no upper end, those of numbers needed to treat two parts.
    level : float, default 0.95
        Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
        included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    importance : mapping, optional
        How much less noise an outcome gets: noise is in proportion to one over its number, from 1/1000
        to 1000; 1 for outcomes that are not named.
    settings : settings of the method, optional
        With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`; with several
        arms `cv.settings.Arms`.
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
    OutcomesResult
        The effect on every outcome with its standard error, and single and simultaneous intervals, in
        units of that outcome where `measure` is "difference". Each of m simultaneous intervals has the
        level ``level ** (1 / m)`` (Šidák).

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    ate : One outcome.
    arms : Several arms.

    Notes
    -----
    The estimand of outcome k is E[Y_k(1) - Y_k(0)], or its `measure`, over the people that `estimand`
    names.

    Examples
    --------
    >>> import counterveil as cv
    >>> visits = {
    ...     "new": [row % 2 for row in range(400)],
    ...     "visits": [3 + row % 2 + row % 5 for row in range(400)],
    ...     "spend": [100 + 50 * (row % 2) + row % 7 for row in range(400)],
    ... }
    >>> outcomes = cv.Outcomes({"visits": (0, 30), "spend": (0, 500)})
    >>> study = cv.Study("new", outcomes, assignment=cv.Trial())
    >>> result = cv.outcomes(visits, study, protects="outcome", epsilon=5, noise=cv.SeededNoise(1))
    >>> [effect.name for effect in result.table]
    ['visits', 'spend']
    >>> low, high = result.interval(simultaneous=True)["spend"]
    >>> low < 50 < high
    True
    """
    arguments = OutcomesArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        estimand=estimand,
        measure=measure,
        level=level,
        mechanism=mechanism,
        importance=importance,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


def _listed(study: Study, importance: Mapping[str, Number] | None, measure: str) -> Outcomes:
    """Return the outcomes with their weights, or raise CV-S142 or CV-P688."""
    if study.several is None:
        raise refusal("CV-S142", outcome=study.outcome)
    names, ranges = study.several.names, tuple(ends for _, ends in study.several.ranges)
    given = {} if importance is None else importance
    wrong = not isinstance(given, Mapping) or any(name not in names for name in given)
    try:
        weights = () if wrong else tuple(exact(given.get(name, 1), "importance") for name in names)
    except ParameterError:
        weights = ()
    if not weights or not all(Fraction(1, _MOST_IMPORTANCE) <= one <= _MOST_IMPORTANCE for one in weights):
        raise refusal("CV-P688", most_importance=_MOST_IMPORTANCE, importance=importance)
    # Ratios are those of outcomes as they are.
    before = {} if measure in OF_MEANS else dict(study.several.baseline)
    columns = study.several.columns
    places = tuple(columns.index(before[name]) - 1 if name in before else None for name in names)
    return Outcomes(names, ranges, weights, places if before else ())


def _refuse_earlier(study: Study) -> None:
    """Raise CV-S143 where what was measured before would be taken off outcomes of arms that are not comparable."""
    if study.several is not None and study.several.baseline and study.randomised is not True:
        raise refusal("CV-S143", randomised=study.randomised)


def _usual(study: Study, unit: Unit) -> str:
    if unit is Unit.TREATMENT_AND_OUTCOME:
        return "doubly_robust"
    if unit is Unit.RECORD:
        refuse_undeclared_trial(study)
        return "trial"
    if study.covariates:
        return "weighting"
    refuse_undeclared_trial(study)
    return "difference_in_means"


def _refuse_arms(study: Study, question: Question) -> None:
    """Raise CV-P401 for what several arms have no estimate of."""
    known = (Estimand.ATE,) if study.arms is not None else (Estimand.ATE, Estimand.ATT, Estimand.ATC)
    if question.estimand not in known:
        raise refusal(
            "CV-P401b", known=" or ".join(repr(one.value) for one in known), estimand=question.estimand.value
        )
    pairs = question.unit is Unit.TREATMENT_AND_OUTCOME
    if pairs and question.measure in OF_MEANS and question.estimand is not Estimand.ATE:
        raise no_means(question.method, f"estimand={question.estimand.value!r}")


@silence()
def _answer(session: BaseSession, question: Question, listed: Outcomes) -> OutcomesResult:
    session.admit(question.uses(session.study, "outcomes"))
    # So that data which do not fit are refused before anything is spent.
    pairs = question.unit is Unit.TREATMENT_AND_OUTCOME
    if question.method in ("difference_in_means", "trial") and not pairs:
        session.attach_batches()
    else:
        session.attach(f"outcomes with method={question.method!r}")
    refuse_few_clusters(session.study, "outcomes", question.method, PublicData(session, question.unit).rows)
    if question.unit is Unit.RECORD and session.study.arms is not None:
        return runs(partial(record_arm_effects, outcomes=listed))(session, question)
    if not pairs:
        question = _with_smaller_noise(session, question, listed)
    return answer_by(OutcomesResult, session, "outcomes", question, outcomes=listed)


def _with_smaller_noise(session: BaseSession, question: Question, listed: Outcomes) -> Question:
    ones = [Fraction(1)] * len(listed.names)

    def variance(mechanism: str) -> float:
        plan = Plan.split(question.budget, {"all": Fraction(1)}, mechanism, {"all": Kind.SEVERAL})
        return plan.several_noise("all", ones, listed.weights)[0].variance

    return with_smaller_noise(session, question, variance)
