"""Second moments of columns, released once, for any number of regressions: `moments(...)`.

    released:  Z'Z / n + noise,    least squares from its blocks:  b = (X'X)^{-1} X'y

In: private rows with d columns z of declared ranges, moved to [-1, 1]; long rows are weighted down. Out: the
moments, with `regress` and `compliance`; coefficients are in units of the response over those of a regressor.

One epsilon pays for every regression: each is a function of the released moments alone, and so
post-processing. The moments themselves are safe because a row's products are bounded: replacing one moves the
vector of means of products by at most sqrt(2) R / n, R being the largest squared length of a weighted row.
Proofs: `rows/moments/regression_moments.proof.md` (records private), `rows/moments/outcome_moments.proof.md`
(outcomes private). The noise is included in the standard errors (`inference/linear_fit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.errors import refusal
from counterveil.estimators.method import runs
from counterveil.estimators.moments.regression_answer import regression_moments
from counterveil.estimators.moments.regression_columns import columns_of
from counterveil.estimators.moments.regression_plan import MOST_COLUMNS
from counterveil.privacy import Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import Mechanism, Protects
from counterveil.results.question import Question, refuse_extremes, refuse_few_clusters
from counterveil.results.regression import Moments, parse_formula
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsArguments(Arguments[Moments]):
    """The arguments of `moments` beside data and study, checked."""

    name: ClassVar[str] = "moments"
    outcomes: Sequence[str] = ()
    terms: Sequence[str] = ()
    robust: Sequence[str] = ()
    mechanism: Mechanism | None = None

    def checked(self, study: Study) -> Asked[Moments]:
        """Return the checked question; nothing here looks at data or budget."""
        question = self.question("moments", self.mechanism)
        if question.unit is Unit.OUTCOME and study.several is not None:
            raise refusal("CV-S096", names=len(study.several.names), unit=question.unit.value)
        if study.before is not None or study.denominator is not None:
            raise refusal(
                "CV-S095", before=study.before is not None, denominator=study.denominator is not None
            )
        refuse_extremes(study, question.budget)
        outcomes, terms = _names(self.outcomes, "outcomes"), _names(self.terms, "terms")
        columns = columns_of(study, outcomes, terms)
        private = columns.log_outcome or any(columns.singles - 1 in pair for pair in columns.products)
        if question.unit is Unit.OUTCOME and private:
            raise refusal("CV-P788", terms=list(terms), unit=question.unit.value)
        robust = _names(self.robust, "robust")
        for text in robust:
            if parse_formula(text, columns.names, dict(columns.groups)).endogenous:
                raise refusal("CV-P794", formula=text)
        if len(columns.names) > MOST_COLUMNS:
            raise refusal("CV-P789", most_columns=MOST_COLUMNS, names=len(columns.names))
        return Asked(
            question.budget, partial(answer_moments, question=question, columns=columns, robust=robust)
        )


@asks
def moments(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    outcomes: Sequence[str] = (),
    terms: Sequence[str] = (),
    robust: Sequence[str] = (),
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Moments:
    """Release second moments of treatment, outcome and covariates, from which regressions are free.

    One epsilon pays for every linear and instrumental-variable regression among the columns: each is
    computed from the released moments alone (``rows/moments/regression_moments.proof.md``; with outcomes
    private ``rows/moments/outcome_moments.proof.md``).

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
        What is private. "outcome": the outcome alone; covariates and treatment are public, also
        instruments and earlier values. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend, once, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise, which is several times smaller here.
    level : float, default 0.95
        Confidence level of the intervals of regressions, between 0 and 1; the privacy noise is
        included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    outcomes : sequence of str, default ()
        Covariates that are outcomes or received treatments, which regressions may explain; rows are not
        weighted by them.
    terms : sequence of str, default ()
        What formulas may use beside columns, released too: ``["treat:age", "I(age**2)",
        "log(income)"]``.
    robust : sequence of str, default ()
        Regressions that are asked with HC1 errors, ``["y ~ treat + age"]``; a quarter of the budget is
        theirs.
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
    Moments
        The moments, with `regress` and `compliance` to fit regressions at no cost.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    ate : An average effect that needs no linear model.

    Notes
    -----
    With z the columns, rows weighted down where they are long, and Z the matrix of all rows, the
    release is Z'Z / n plus Gaussian or l2-ball noise; least squares is b = (X'X)^{-1} X'y from its
    blocks, with the noise in the standard errors.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> moments = cv.moments(
    ...     data.frame, data.study, protects="record", epsilon=4, delta=1e-6, noise=cv.SeededNoise(1)
    ... )
    >>> [one.name for one in moments.regress("y ~ treated + x").coefficients]
    ['Intercept', 'treated', 'x']
    """
    arguments = MomentsArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        level=level,
        mechanism=mechanism,
        outcomes=outcomes,
        terms=terms,
        robust=robust,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


def _names(given: object, argument: str) -> tuple[str, ...]:
    """Return names as they were given, or raise CV-P780; one text is not taken for its letters."""
    if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
        return tuple(given)
    raise refusal("CV-P780", argument=argument, given=given)


@silence()
def answer_moments(
    session: BaseSession, question: Question, columns: Columns, robust: tuple[str, ...]
) -> Moments:
    """Return the released moments of an open session."""
    session.admit(question.uses(session.study, "moments"))
    session.attach_batches()
    refuse_few_clusters(session.study, "moments", question.method, PublicData(session, question.unit).rows)
    prepare = partial(regression_moments, columns=columns, robust=robust)
    return runs(prepare)(session, question)
