"""Balance and overlap of the arms where whole records are private: one small release with its own price.

In: private rows of two arms, declared ranges and labels of covariates, the budget. Out: by arm, counts,
means, shares and standardised differences of covariates, and counts of people by cells of a released score;
each with an interval for its noise. It is asked with `protects="record"` only: elsewhere covariates are
public, and Table 1 is free.

Right because each record adds a bounded vector to the sums of its arm: counts, numbers clipped to their
ranges, their squares, and flags of labels. Replacing one moves all sums together by at most a public length,
which the noise is made for. Proof: `rows/moments/arm_balance.proof.md`. This module checks the arguments.
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
from counterveil.estimators.method import runs
from counterveil.estimators.moments.arm_balance import arm_balance
from counterveil.privacy import Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import Mechanism, Protects
from counterveil.results.arms import refuse_several_arms
from counterveil.results.overlap import OverlapSummary
from counterveil.results.question import Question, refuse_extremes
from counterveil.session import BaseSession, BitSource


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapArguments(Arguments[OverlapSummary]):
    """The arguments of `overlap` beside data and study, checked."""

    name: ClassVar[str] = "overlap"
    mechanism: Mechanism | None = None

    def checked(self, study: Study) -> Asked[OverlapSummary]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_several_arms(study, ratio=True)
        question = self.question("overlap", self.mechanism)
        if question.unit is not Unit.RECORD:
            raise refusal("CV-P670", unit=question.unit.value)
        refuse_extremes(study, question.budget)
        require_covariates(study, "overlap")
        return Asked(question.budget, partial(answer_overlap, question=question))


@asks
def overlap(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> OverlapSummary:
    """Summarise balance and overlap of the arms where whole records are private.

    Where only outcomes are private this is free: see ``result.diagnostics`` of `cv.ate`.

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
    protects : {"record"}
        What is private. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    level : float, default 0.95
        Confidence level of the intervals, which cover the privacy noise, between 0 and 1; the privacy
        noise is included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
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
    OverlapSummary
        Standardised differences of all covariates, and the share treated along a released score, with
        intervals.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    ate : The effect, adjusted for covariates.

    Notes
    -----
    The standardised difference of a covariate is (m1 - m0) / sqrt((s1^2 + s0^2) / 2), with means m and
    standard deviations s of both arms. The score is the linear discriminant of the released means and
    variances.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=2000, covariates=2)
    >>> summary = cv.overlap(
    ...     data.frame, data.study, protects="record", epsilon=2, noise=cv.SeededNoise(1)
    ... )
    >>> [one.covariate for one in summary.differences]
    ['x1', 'x2']
    """
    arguments = OverlapArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        level=level,
        mechanism=mechanism,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


@silence()
def answer_overlap(session: BaseSession, question: Question) -> OverlapSummary:
    """Return balance and overlap of the arms of an open session."""
    session.admit(question.uses(session.study, "overlap"))
    session.attach_batches()
    return runs(arm_balance)(session, question)
