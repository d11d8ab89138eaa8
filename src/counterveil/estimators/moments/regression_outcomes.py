"""Second moments of public columns with private outcomes, for every regression of the outcome on them.

Covariates, arms and their moments are public, and public columns are made uncorrelated exactly. What is
released are the outcome's mean and mean square, then, twice, counts of residuals by size and moments of the
public columns with the residual of the outcome: around its mean, and around the prediction that the first of
them give.

Numbers of this module that are choices, and not derived, were set on the tuning designs of
`experiments/regressions`; privacy does not depend on them.

With u a public row and y the private outcome in [-1, 1], residuals are clipped and rows weighted, so that a
changed outcome moves the mean of u times residual by a bounded length. Proofs:
`rows/moments/outcome_moments.proof.md`, `rows/moments/record_moments.proof.md` (mean and mean square) and
`rows/moments/orthogonal_score.proof.md` (moments of residuals).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.moments.regression_plan import (
    SHOWN,
    SHOWN_OF_FEW,
    RowPlan,
    cut_shares,
    outcome_plan,
)
from counterveil.estimators.moments.scaling import first_few, is_near_bound
from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.outcome_moments import (
    EDGES,
    OutcomeRows,
    count_public_lengths,
    mean_public_products,
    release_outcome_location,
    release_residual_counts,
    release_weighted_residuals,
)
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.moments.regression_moments import WINDOWS
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.records import Records
from counterveil.session import Gate, Kind

PAGES = (
    "rows/moments/outcome_moments.proof.md",
    "rows/moments/record_moments.proof.md",
    "rows/moments/orthogonal_score.proof.md",
)

# Least variance of a combination of public columns that is stretched to one, and of the outcome.
_LEAST_EIGENVALUE = 1e-6
_LEAST_OUTCOME_VARIANCE = 1e-8
# Moments of uncorrelated public rows are about one; those below this part of the largest are of no variance.
_NO_VARIANCE = 1e-3
# Where outcomes are clipped, about, in standard deviations of their residuals: before it is known.
_USUAL_CLIP = 3.0
# Share of the rows that noise may add to the residuals beyond a clip.
_UNSURE = 0.1


@dataclass(frozen=True, slots=True)
class OutcomeMoments:
    """Public moments of u, and released ones with the residual of the outcome.

    Attributes
    ----------
    public : ndarray of float64, (size, size)
        Exact.
    crossed : ndarray of float64, (size,)
        Of u with the residual.
    square : float
        Of the residual's square.
    sd, square_sd : float
        Standard deviations of the noise of both.
    rows : OutcomeRows
        How u and residuals are made.
    weighted_down : float
        The share of rows that count less.
    """

    public: Floats
    crossed: Floats
    square: float
    sd: float
    square_sd: float
    rows: OutcomeRows
    weighted_down: float

    @property
    def matrix(self) -> Floats:
        """The moments of (u, residual)."""
        return np.block([[self.public, self.crossed[:, None]], [self.crossed, np.array([self.square])]])

    @property
    def noise(self) -> Floats:
        """The standard deviation of the noise of each; none where moments are public."""
        noise = np.zeros((len(self.public) + 1,) * 2)
        noise[-1, :-1] = noise[:-1, -1] = self.sd
        noise[-1, -1] = self.square_sd
        return noise


def release_outcome_moments(gate: Gate, records: Records, design: RowPlan) -> OutcomeMoments:
    """Return the moments of public columns with the outcome, by five releases."""
    rows, public, longer = public_rows(records, design)
    mean, sd = outcome_location(gate, records, design.columns)
    prediction = np.zeros(len(public))
    prediction[0] = mean
    rows = replace(rows, prediction=prediction)
    rows = _clipped_rows(gate, "first reach", records, rows=rows, design=design, sd=sd, mean=mean)
    first = _with_residuals(gate, "first moments", records, rows=rows, public=public, longer=longer)
    step, residual_variance = _better_prediction(first, design)
    sd = sqrt(min(max(residual_variance, first.square_sd, _LEAST_OUTCOME_VARIANCE), 1.0))
    rows = replace(rows, prediction=rows.prediction + step)
    rows = _clipped_rows(gate, "reach", records, rows=rows, design=design, sd=sd, mean=mean)
    return _with_residuals(gate, "moments", records, rows=rows, public=public, longer=longer)


def _better_prediction(first: OutcomeMoments, design: RowPlan) -> tuple[Floats, float]:
    """Return what to add to the prediction of outcomes, and the variance of what is left then, about.

    With A the public moments and m the released ones of u with the residual, A^-1 m is added and leaves
    E[residual^2] - m' A^-1 m; what noise is expected to have of it is added back.
    """
    # Directions without variance, as of columns that depend on each other, predict nothing.
    # What noise alone pretends is cut to what moments can be: outcomes and public columns are bounded.
    most = sqrt(first.rows.length) * first.rows.clip
    crossed = np.clip(first.crossed, -most, most)
    crossed = np.where(np.abs(crossed) > design.least_signal * first.sd, crossed, 0.0)
    inverse = np.linalg.pinv(first.public, rcond=_NO_VARIANCE, hermitian=True)
    step = inverse @ crossed
    noise = first.sd**2 * float(np.trace(inverse))
    # A prediction of which half may be noise makes what is left of outcomes longer, and clips it.
    if crossed @ step <= 2 * noise:
        step = np.zeros_like(step)
        noise = 0.0
    return step, (first.square - crossed @ step) / first.public[0, 0] + noise


def outcome_location(gate: Gate, records: Records, columns: Columns) -> tuple[float, float]:
    """Return the mean and the standard deviation of the outcome in [-1, 1], from its mean and mean square."""
    released, noise_sd = release_outcome_location(gate, records, columns)
    mean = float(np.clip(released[0], -1.0, 1.0))
    variance_noise_sd = noise_sd * float(np.hypot(1 / float(SQUARE_WEIGHT), 2 * mean))
    variance = max(released[1] / float(SQUARE_WEIGHT) - mean**2, variance_noise_sd, _LEAST_OUTCOME_VARIANCE)
    return mean, sqrt(min(variance, 1.0))


def public_rows(records: Records, design: RowPlan) -> tuple[OutcomeRows, Floats, float]:
    """Return uncorrelated rows, their moments, and the share of rows that are weighted down; nothing is private."""
    size = len(design.columns.names)
    n = records.count
    rows = OutcomeRows(design.columns, np.eye(size), length=np.inf, prediction=np.zeros(size), clip=1.0)
    # No row of numbers in [-1, 1] is longer.
    plain = replace(rows, length=float(size))
    matrix = mean_public_products(records, plain)
    means = matrix[0] / matrix[0, 0]
    values, vectors = np.linalg.eigh((matrix / matrix[0, 0] - np.outer(means, means))[1:, 1:])
    root = (vectors / np.sqrt(np.clip(values, _LEAST_EIGENVALUE, None))) @ vectors.T
    mix = np.eye(size)
    mix[1:, 1:] = root
    mix[1:, 0] = -root @ means[1:]
    rows = replace(rows, mix=mix)
    counts = count_public_lengths(records, rows)
    above = np.cumsum(counts[::-1])[::-1][1:]
    share = cut_shares(_relative_noise(design, size)).rows
    # Instruments would not allow weights that depend on what they explain.
    share = 0.0 if any(design.columns.responses[: -1 - len(design.columns.arms)]) else share
    edge = int(np.flatnonzero(above <= share * n)[0]) if above[-1] <= share * n else len(EDGES) - 1
    rows = replace(rows, length=float(EDGES[edge]))
    public = mean_public_products(records, rows)
    return rows, public, float(above[edge]) / n


def _relative_noise(design: RowPlan, size: int) -> float:
    """Return the noise of a moment beside its sampling error, about."""
    amount = float(outcome_plan(design).amount("moments", Kind.VECTOR))
    entries = sqrt(size + 2) if design.pure else 1.0
    return 2 * _USUAL_CLIP * sqrt(2.0 * size) * entries / (amount * sqrt(design.rows))


def _with_residuals(
    gate: Gate, name: str, records: Records, rows: OutcomeRows, public: Floats, longer: float
) -> OutcomeMoments:
    """Return moments of u with what is left of the outcome, and of its square."""
    released = release_weighted_residuals(gate, name, records, rows)
    return OutcomeMoments(
        public,
        crossed=released.products,
        square=released.square,
        sd=released.sd,
        square_sd=released.square_sd,
        rows=rows,
        weighted_down=longer,
    )


def _clipped_rows(
    gate: Gate, name: str, records: Records, rows: OutcomeRows, design: RowPlan, *, sd: float, mean: float
) -> OutcomeRows:
    """Return the rows with what residuals are clipped to, from noisy counts of their sizes.

    Outcomes lie in [-1, 1]. Where residuals would be clipped no lower, or noise may hide many of them, nothing is
    taken off the outcomes: they are in their range as they are, whatever the prediction.
    """
    edges = WINDOWS * sd
    counts = release_residual_counts(gate, name, records, rows=rows, edges=edges, pure=design.pure)
    clipped = cut_shares(_relative_noise(design, len(rows.mix))).responses
    shown = SHOWN_OF_FEW if is_near_bound(mean) else SHOWN
    clip, _ = first_few(
        counts.floats(), counts.variance, clipped * records.count, shown=shown, edges=np.append(edges, np.inf)
    )
    clip = max(clip, design.least_window * sd)
    unsure = sqrt(counts.variance * len(edges))
    if clip < 1.0 and unsure <= _UNSURE * records.count:
        return replace(rows, clip=clip)
    return replace(rows, prediction=np.zeros(len(rows.mix)), clip=1.0)
