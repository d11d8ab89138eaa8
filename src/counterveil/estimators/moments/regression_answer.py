"""`moments`: what is released once for every regression, and what the answer says of it.

Where records are private all second moments are released, where outcomes alone are, those with the outcome;
robust errors of named regressions are released at a price of their own.

Proofs: `rows/moments/regression_moments.proof.md` where all columns are private,
`rows/moments/outcome_moments.proof.md` where outcomes alone are, `rows/moments/robust_moments.proof.md` for
robust errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.errors import refusal
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.regression import PAGES, ReleasedMoments, release_regression_moments
from counterveil.estimators.moments.regression_basis import basis_of
from counterveil.estimators.moments.regression_outcomes import PAGES as OUTCOME_PAGES
from counterveil.estimators.moments.regression_outcomes import OutcomeMoments, release_outcome_moments
from counterveil.estimators.moments.regression_plan import MOST_NOISE, RowPlan, outcome_plan
from counterveil.estimators.moments.regression_sandwich import PAGE as ROBUST_PAGE
from counterveil.estimators.moments.regression_sandwich import release_sandwich
from counterveil.inference.moments import NoisyMoments
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat, ClippedOutliers, Downweighted, Fact
from counterveil.privacy.provenance import Bounded, Quantity, ReleaseRow, ResidualClip, SquaredLength
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.regression import CONSTANT, Matrix, Moments, RobustMiddle, parse_formula
from counterveil.rows.moments.outcome_moments import OutcomeRows
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.public import PublicData
from counterveil.rows.records import Records
from counterveil.session import Gate

_SANDWICH: ReleaseRow = (Quantity.SANDWICH, Bounded.FROM_COUNTS)


def regression_moments(
    public: PublicData, question: Question, *, columns: Columns, robust: tuple[str, ...]
) -> Prepared[Moments]:
    """Return the moments of columns; `robust` are the formulas of regressions with robust errors."""
    rows = public.rows
    design = RowPlan(
        rows=rows, columns=columns, budget=question.budget, mechanism=question.mechanism, robust=len(robust)
    )
    private = question.unit is Unit.RECORD
    if private:
        _refuse_noise(design)
    mechanisms = ("gaussian",) if question.mechanism == "gaussian" else ("ball", "laplace")

    def estimate(gate: Gate) -> Facts:
        records = Records.at(gate, columns.features)
        if private:
            released = _of_records(release_regression_moments(gate, records, design))
        else:
            released = _of_outcomes(release_outcome_moments(gate, records, design))
        middles = [
            _middle(gate, number, records, design=design, released=released, text=formula)
            for number, formula in enumerate(robust)
        ]
        return Facts(
            outcome=public.study.outcome,
            columns=columns.names,
            groups=columns.groups,
            basis=_lines(released.basis),
            matrix=_lines(released.matrix),
            noise_sd=_lines(released.noise),
            rows=rows,
            releases=released.releases + (_SANDWICH,) * len(robust),
            robust=tuple(middles),
            not_covered=_caveats(released),
            details={"weighted_down": released.weighted_down, "mechanism": mechanisms[0]},
        )

    description = {
        "question": "moments",
        "terms": [name for name in columns.names if ":" in name or name.startswith("log(")],
        "responses": list(columns.responses),
    } | ({"robust": list(robust)} if robust else {})
    return Prepared(
        question=question,
        plan=design.plan() if private else outcome_plan(design),
        estimate=estimate,
        answer=Moments,
        pages=(PAGES if private else OUTCOME_PAGES) + (ROBUST_PAGE,) * bool(robust),
        mechanisms=mechanisms,
        description=description,
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
class _Released:
    """What both levels of protection release, under the same names.

    Attributes
    ----------
    matrix, noise : ndarray of float64, (size, size)
        Moments of working rows, and standard deviations of their noise.
    basis : ndarray of float64, (size, size)
        The constant and every named column as combinations of working columns.
    releases : tuple of (Quantity, Bounded or SquaredLength or ResidualClip)
        What was released, and how far one row moves it.
    weighted_down : float
        The share of rows that count less.
    clipped : ClippedOutliers
        Responses that were clipped.
    rows : WorkingRows or OutcomeRows
        How rows are made.
    """

    matrix: Floats
    noise: Floats
    basis: Floats
    releases: tuple[ReleaseRow, ...]
    weighted_down: float
    clipped: ClippedOutliers
    rows: WorkingRows | OutcomeRows


def _middle(
    gate: Gate, number: int, records: Records, design: RowPlan, released: _Released, text: str
) -> RobustMiddle:
    """Return the released middle of the sandwich of one regression."""
    columns = design.columns
    formula = parse_formula(text, columns.names, dict(columns.groups))
    names = (*((CONSTANT,) if formula.constant else ()), *formula.regressors, *formula.absorbed)
    places = [(CONSTANT, *columns.names).index(name) for name in names]
    response = released.basis[1 + columns.names.index(formula.response)]
    moments = NoisyMoments(released.matrix, released.noise, records.count)
    turn, matrix, sd = release_sandwich(
        gate,
        number,
        records,
        released.rows,
        moments=moments,
        regressors=released.basis[places],
        response=response,
        design=design,
    )
    return RobustMiddle(text, _lines(turn), _lines(matrix), sd)


def _of_records(moments: ReleasedMoments) -> _Released:
    rows = moments.rows
    noise = np.full(moments.matrix.shape, moments.sd)
    np.fill_diagonal(noise, sqrt(2.0) * moments.sd)
    whole = np.abs(rows.mix) @ rows.largest_sizes
    windows = zip(rows.columns.names, rows.windows[1:], whole[1:], strict=True)
    narrow = {name: float(window) for name, window, most in windows if window < most}
    clipped = ClippedOutliers(tuple(narrow), tuple(narrow.values()), in_sds=True)
    releases = (
        (Quantity.COLUMN_MOMENTS, Bounded.BY_NUMBER_OF_COLUMNS),
        (Quantity.LENGTHS_AND_DISTANCES, Bounded.ONE_CELL_EACH),
        (Quantity.FIRST_ROW_MOMENTS, Bounded.LENGTH_FROM_COUNTS),
        (Quantity.ROW_MOMENTS, SquaredLength(float(rows.squared_max_norm))),
    )
    share = moments.weighted_down if rows.length < rows.longest else 0.0
    return _Released(
        matrix=moments.matrix,
        noise=noise,
        basis=basis_of(rows),
        releases=releases,
        weighted_down=share,
        clipped=clipped,
        rows=rows,
    )


def _of_outcomes(moments: OutcomeMoments) -> _Released:
    rows = moments.rows
    releases = (
        (Quantity.OUTCOME_MOMENTS, Bounded.TWO_HALF_RANGES),
        (Quantity.RESIDUAL_SIZES_TWICE, Bounded.ONE_CELL_EACH),
        (Quantity.FIRST_OUTCOME_MOMENTS, Bounded.RESIDUALS_FROM_COUNTS),
        (Quantity.RESIDUAL_MOMENTS, ResidualClip(rows.clip)),
    )
    place = rows.columns.singles - 1
    clip = rows.clip * rows.columns.ends[place][1]
    clips = rows.clip < 1.0 + float(np.abs(rows.prediction).sum())
    clipped = ClippedOutliers((rows.columns.names[place],) * clips, (float(clip),) * clips, in_sds=False)
    return _Released(
        matrix=moments.matrix,
        noise=moments.noise,
        basis=basis_of(rows),
        releases=releases,
        weighted_down=moments.weighted_down,
        clipped=clipped,
        rows=rows,
    )


def _caveats(released: _Released) -> tuple[Fact, ...]:
    """Return what intervals of regressions do not cover."""
    return (
        Caveat.UNEQUAL_VARIANCES,
        Caveat.OMITTED_VARIABLES,
        *((Downweighted(released.weighted_down),) if released.weighted_down > 0 else ()),
        *((released.clipped,) if released.clipped.columns else ()),
        Caveat.CLAMPING_TO_RANGES,
    )


def _lines(matrix: Floats) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)
