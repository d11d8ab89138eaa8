"""Average effects of several arms against a reference arm, all paid for by one epsilon: `arms(...)`.

    effect of arm a:  E[Y(a) - Y(r)],  r the reference arm

In: private rows, a study that declares the arms and the public range of the outcome, and the budget. Out: the
mean of every arm and its difference from the reference, in units of the outcome, with single and simultaneous
intervals.

One epsilon pays for all arms because a person is in one arm only. Where arms are public, a changed outcome
moves the numbers of one arm alone, and each arm is released with the whole budget
(`rows/linear/arm_mean.proof.md`, `session/branches.proof.md`). Where records are private, a replaced record
moves the sums of two arms at most, however many there are (`rows/moments/arms.proof.md`; adjusted for
covariates `rows/moments/group_scores.proof.md`); where treatments and outcomes are, scores of all arms
together have one bound (`rows/pairs/pair_scores.proof.md`). Simultaneous intervals of m contrasts take the
level L^(1/m) for each (Sidak); `inference/simultaneous.proof.md` shows that they hold although all contrasts
share the reference, where errors of arms are independent.

This module checks the arguments and chooses what "auto" stands for; estimators do the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.privacy import Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import ArmsMethod, Mechanism, Protects
from counterveil.results.arms import ArmsResult, refuse_several_outcomes
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource
from counterveil.settings import Arms

# Methods by what they protect: one does not adjust for covariates; where arms are private, one does.
_PLAIN, _ADJUSTED, _PRIVATE = "difference_in_means", ("weighting", "matching"), "doubly_robust"
METHODS = by_unit("arms")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsArguments(Arguments[ArmsResult]):
    """The arguments of `arms` beside data and study, checked."""

    name: ClassVar[str] = "arms"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: ArmsMethod = "auto"
    mechanism: Mechanism | None = None
    settings: Arms | None = None

    def checked(self, study: Study) -> Asked[ArmsResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_unknown_method(self.method, ("auto", *METHODS[self.unit]))
        if self.unit is Unit.TREATMENT_AND_OUTCOME:
            return self._of_pairs(study)
        method = self.method
        if method == "auto" and study.covariates and study.randomised is not True:
            # The first that adjusts for covariates.
            method = next(name for name in METHODS[self.unit] if name != _PLAIN)
        chosen = _PLAIN if method == "auto" else method
        question = self.question(chosen, self.mechanism, self.settings)
        _refuse_other_studies(study, question)
        if method == "auto":
            refuse_undeclared_trial(study)
        if method in (*_ADJUSTED, _PRIVATE):
            require_covariates(study, method)
        if self.settings is not None and not (method in _ADJUSTED and isinstance(self.settings, Arms)):
            raise refusal("CV-P019", kind=type(self.settings).__name__, method=method)
        return Asked(question.budget, partial(_answer, question=question))

    def _of_pairs(self, study: Study) -> Asked[ArmsResult]:
        question = self.question(_PRIVATE, self.mechanism, self.settings)
        _refuse_other_studies(study, question)
        refuse_shape(study, question.unit, self.name)
        refuse_other_settings(question, None)
        if study.randomised is not True:
            require_covariates(study, _PRIVATE)
        return Asked(question.budget, partial(_answer, question=question))


@asks
def arms(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: ArmsMethod = "auto",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: Arms | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> ArmsResult:
    """Estimate the average effects of all arms of a study against its reference arm.

    One epsilon pays for all arms together, as a person is in one arm only
    (``rows/linear/arm_mean.proof.md``, ``rows/moments/arms.proof.md``).

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
        Privacy loss to spend on all arms together, read exactly: 0.1 is one tenth, ``"1/3"`` one third.
        Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : {"auto", "difference_in_means", "weighting", "matching", "doubly_robust"}, default "auto"
        Estimator. "auto" takes "difference_in_means" in a trial and where there are no covariates;
        elsewhere "weighting" with outcomes private and "doubly_robust" with records private. "matching"
        is for private outcomes. With treatments and outcomes private "doubly_robust" is the only one.
    level : float, default 0.95
        Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
        included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    settings : cv.settings.Arms, optional
        For "weighting" and "matching".
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
    ArmsResult
        Mean outcome of every arm, the reference first, and the differences from the reference, in units
        of the outcome, with single and simultaneous intervals.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    ate : Two arms.
    outcomes : Several outcomes, of two arms or of several.

    Notes
    -----
    The estimand of arm a is E[Y(a) - Y(r)] over everyone in the data, where r is the reference.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = {
    ...     "dose": [("placebo", "low", "high")[row % 3] for row in range(600)],
    ...     "relief": [0.2 + 0.2 * (row % 3) + 0.1 * (row % 2) for row in range(600)],
    ... }
    >>> study = cv.Study(
    ...     cv.Treatment("dose", arms=("placebo", "low", "high"), reference="placebo"),
    ...     cv.Outcome("relief", (0, 1)),
    ...     assignment=cv.Trial(),
    ... )
    >>> result = cv.arms(trial, study, protects="outcome", epsilon=5, noise=cv.SeededNoise(1))
    >>> [(effect.name, round(effect.estimate, 1)) for effect in result.table]
    [('low - placebo', 0.2), ('high - placebo', 0.4)]
    >>> low, high = result.interval(simultaneous=True)["high"]
    >>> low < 0.4 < high
    True
    """
    arguments = ArmsArguments(
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


def _refuse_other_studies(study: Study, question: Question) -> None:
    """Raise CV-S141, CV-S064 or CV-P641 for a study of several outcomes or two arms, or numbers out of range."""
    refuse_several_outcomes(study)
    if study.arms is None:
        raise refusal("CV-S064", treated=study.treated, control=study.control)
    refuse_extremes(study, question.budget)


@silence()
def _answer(session: BaseSession, question: Question) -> ArmsResult:
    session.admit(question.uses(session.study, "arms"))
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        session.attach(f"arms with method={question.method!r}")
        return answer_by(ArmsResult, session, "arms", question)
    if question.unit is Unit.RECORD:
        session.attach_batches()
        refuse_few_clusters(session.study, "arms", question.method, PublicData(session, question.unit).rows)
        return answer_by(ArmsResult, session, "arms", question)
    question = question.in_pure_noise(session.account().rule)
    # So that data which do not fit are refused before anything is spent.
    if question.method == _PLAIN:
        session.attach_batches()
    else:
        session.attach(f"arms with method={question.method!r}")
    refuse_few_clusters(session.study, "arms", question.method, PublicData(session, question.unit).rows)
    return answer_by(ArmsResult, session, "arms", question)
