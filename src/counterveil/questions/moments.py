"""Second moments released once, for regressions that cost nothing: `moments(...)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from typing import ClassVar

import numpy as np

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.errors import refusal
from counterveil.estimators.moments.regression import (
    MOST_COLUMNS,
    MOST_NOISE,
    PAGES,
    Columns,
    OutcomeMoments,
    OutcomeRows,
    ReleasedMoments,
    RowPlan,
    Rows,
    outcome_plan,
    release_outcome_moments,
    release_regression_moments,
    release_sandwich,
)
from counterveil.estimators.moments.regression import PAGE as ROBUST_PAGE
from counterveil.estimators.moments.regression import PAGES as OUTCOME_PAGES
from counterveil.inference.moments import NoisyMoments
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Number, Unit
from counterveil.privacy.caveats import Caveat, ClippedOutliers, Downweighted, Fact
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import Mechanism, Protects
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question, refuse_extremes, refuse_few_clusters
from counterveil.results.regression import CONSTANT, Matrix, Moments, RobustMiddle, parse_formula
from counterveil.rows.records import Records
from counterveil.session import BaseSession, BitSource, Gate


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
        columns = Columns.of(study, outcomes, terms)
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

    One epsilon pays for every linear and instrumental-variable regression among the columns.

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


_SANDWICH = ("middle of a sandwich for HC1 errors: counts of lengths, then second moments", "from counts")


@silence()
def answer_moments(
    session: BaseSession, question: Question, columns: Columns, robust: tuple[str, ...]
) -> Moments:
    """Return the released moments of an open session."""
    session.admit(question.uses(session.study, "moments"))
    session.attach_batches()
    refuse_few_clusters(session.study, "moments", question.method, session.batches.rows)
    records = Records(session.batches, columns.features)
    design = RowPlan(records.count, columns, question.budget, question.mechanism, len(robust))
    private = question.unit is Unit.RECORD
    if private:
        _refuse_noise(design)
    plan = design.plan() if private else outcome_plan(design)

    drawn = ("gaussian",) if question.mechanism == "gaussian" else ("ball", "laplace")

    def compute(gate: Gate) -> Facts:
        if private:
            found = _of_records(release_regression_moments(gate, records, design))
        else:
            found = _of_outcomes(release_outcome_moments(gate, records, design))
        middles = [_middle(gate, number, records, design, found, one) for number, one in enumerate(robust)]
        return Facts(
            outcome=session.study.outcome,
            columns=columns.names,
            groups=columns.groups,
            basis=_rows(found.basis),
            matrix=_rows(found.matrix),
            noise_sd=_rows(found.noise),
            rows=records.count,
            releases=found.releases + (_SANDWICH,) * len(robust),
            robust=tuple(middles),
            not_covered=_caveats(found),
            details={"weighted_down": found.weighted_down, "mechanism": drawn[0]},
        )

    said = {
        "question": "moments",
        "terms": [name for name in columns.names if ":" in name or name.startswith("log(")],
        "responses": list(columns.responses),
    } | ({"robust": list(robust)} if robust else {})
    return answer_request(
        Moments,
        session,
        question,
        plan,
        compute,
        pages=(PAGES if private else OUTCOME_PAGES) + (ROBUST_PAGE,) * bool(robust),
        mechanisms=drawn,
        said=said,
    )


def _refuse_noise(design: RowPlan) -> None:
    """Raise CV-P790 where the noise would hide the moments; from public numbers alone, before anything is spent."""
    if design.noise > MOST_NOISE:
        raise refusal(
            "CV-P790",
            fewest_rows=design.fewest_rows,
            names=len(design.columns.names),
            rows=design.rows,
            budget=design.budget,
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """What both levels of protection release, in the same words."""

    matrix: Floats
    noise: Floats
    basis: Floats
    releases: tuple[tuple[str, str], ...]
    weighted_down: float
    clipped: ClippedOutliers
    rows: Rows | OutcomeRows


def _middle(
    gate: Gate, number: int, records: Records, design: RowPlan, found: _Found, text: str
) -> RobustMiddle:
    """Return the released middle of the sandwich of one regression."""
    columns = design.columns
    formula = parse_formula(text, columns.names, dict(columns.groups))
    names = (*((CONSTANT,) if formula.constant else ()), *formula.regressors, *formula.absorbed)
    places = [(CONSTANT, *columns.names).index(name) for name in names]
    response = found.basis[1 + columns.names.index(formula.response)]
    moments = NoisyMoments(found.matrix, found.noise, records.count)
    turn, matrix, sd = release_sandwich(
        gate, number, records, found.rows, moments, found.basis[places], response, design
    )
    return RobustMiddle(text, _rows(turn), _rows(matrix), sd)


def _of_records(found: ReleasedMoments) -> _Found:
    rows = found.rows
    noise = np.full(found.matrix.shape, found.sd)
    np.fill_diagonal(noise, sqrt(2.0) * found.sd)
    whole = np.abs(rows.mix) @ rows.largest_sizes
    windows = zip(rows.columns.names, rows.windows[1:], whole[1:], strict=True)
    narrow = {name: float(window) for name, window, most in windows if window < most}
    clipped = ClippedOutliers(tuple(narrow), tuple(narrow.values()), in_sds=True)
    releases = (
        ("means and squares of all columns", "l2 sensitivity by their number"),
        ("counts of rows by length and of outcomes by distance, twice", "one cell each"),
        ("second moments of weighted rows, a first time", "squared length from counts"),
        ("second moments of weighted rows", f"squared length at most {float(rows.squared_max_norm):.4g}"),
    )
    share = found.weighted_down if rows.length < rows.longest else 0.0
    return _Found(found.matrix, noise, rows.basis, releases, share, clipped, rows)


def _of_outcomes(found: OutcomeMoments) -> _Found:
    rows = found.rows
    releases = (
        ("mean and mean square of the outcome", "l2 sensitivity 2 half ranges over the rows"),
        ("counts of residuals by size, twice", "one cell each"),
        ("moments of public columns with the outcome, a first time", "residuals from counts"),
        (
            "moments of public columns with residuals of the outcome",
            f"residuals in +-{rows.clip:.4g} half ranges",
        ),
    )
    place = rows.columns.singles - 1
    reach = rows.clip * rows.columns.ends[place][1]
    clips = rows.clip < 1.0 + float(np.abs(rows.prediction).sum())
    said = ClippedOutliers((rows.columns.names[place],) * clips, (float(reach),) * clips, in_sds=False)
    return _Found(found.matrix, found.noise, rows.basis(), releases, found.weighted_down, said, rows)


def _caveats(found: _Found) -> tuple[Fact, ...]:
    """Return what intervals of regressions do not cover."""
    return (
        Caveat.UNEQUAL_VARIANCES,
        Caveat.OMITTED_VARIABLES,
        *((Downweighted(found.weighted_down),) if found.weighted_down > 0 else ()),
        *((found.clipped,) if found.clipped.columns else ()),
        Caveat.CLAMPING_TO_RANGES,
    )


def _rows(matrix: Floats) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)
