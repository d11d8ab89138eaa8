"""How alike two private arms are: standardised differences of covariates, and counts along a score.

From released sums of both arms (`rows.moments.balance_sums`) come means m_a and variances s_a^2 of every
column, and

    difference = (m_1 - m_0) / s,    s^2 = (s_1^2 + s_0^2) / 2.

The score is the direction between the arms, each column by its own variance, cut into parts of a normal law.
Numbers and truth values are in [-1, 1], flags of labels in [0, 1]; the treated come first.

In: private rows; arms and covariates are private, ranges, labels and n are public. Out: differences without
units and counts of people, with their noise. A replaced row moves the sums by a bounded Euclidean length,
which Gaussian noise covers, and the counts along a score that was released before by two. Proof:
`rows/moments/arm_balance.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from counterveil.data import Study
from counterveil.estimators.method import Prepared
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.privacy.provenance import LengthSensitivity, Quantity, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.overlap import ArmDifference, OverlapSummary, ScoreCell
from counterveil.results.question import Question
from counterveil.rows.moments.balance_sums import CELLS, FLAGS, SQUARES, BalanceColumns, CutScore
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan, ReleasedVector

PAGE = "rows/moments/arm_balance.proof.md"
# The part of the budget for moments, before counts: they make the direction that the score follows.
_MOMENTS = Fraction(3, 5)
# An arm is taken to have at least this many rows.
_LEAST_ROWS = 2.0
# A variance of a column, in squares of half its range, is taken for no smaller.
_LEAST_VARIANCE = 1e-9


def arm_balance(public: PublicData, question: Question) -> Prepared[OverlapSummary]:
    """Return balance and overlap of both arms, prepared for their two releases."""
    study = public.study
    columns = BalanceColumns.of(study)
    pure = question.mechanism != "gaussian"

    def estimate(gate: Gate) -> Facts:
        moments = arm_balance_moments(columns.release(gate), public.rows, columns)
        counts, sd = discriminant(moments).release(gate, columns, pure=pure)
        return Facts(
            rows=public.rows,
            share=float(moments.shares[0]),
            share_sd=moments.share_sd,
            differences=_differences_in_units(study, columns, moments),
            cells=tuple(ScoreCell(float(treated), float(control)) for treated, control in counts.T),
            count_sd=sd,
            heavy=pure,
            releases=(
                (Quantity.BALANCE_MOMENTS, LengthSensitivity(float(columns.sensitivity))),
                (Quantity.SCORE_COUNTS, Sensitivity(2.0)),
            ),
        )

    return Prepared(
        question=question,
        plan=balance_plan(question.budget, question.mechanism),
        estimate=estimate,
        answer=OverlapSummary,
        pages=PAGE,
        mechanisms=("ball", "laplace") if pure else ("gaussian",),
        description={"question": "overlap"},
    )


def balance_plan(budget: Budget, mechanism: str) -> Plan:
    """Return the split of the budget over moments and counts."""
    pure = mechanism != "gaussian"
    kinds = {"moments": Kind.VECTOR, "counts": Kind.CELLS if pure else Kind.VECTOR}
    return Plan.split(budget, {"moments": _MOMENTS, "counts": 1 - _MOMENTS}, mechanism, kinds)


@dataclass(frozen=True, slots=True)
class BalanceMoments:
    """Means and variances of both arms, the treated first, with the standard deviations of their noise.

    Attributes
    ----------
    shares, share_sd : ndarray of shape (2,), float
        Of all rows.
    means, mean_sd : ndarray of shape (2, columns)
    variances, variance_sd : ndarray of shape (2, columns)
    """

    shares: Floats
    share_sd: float
    means: Floats
    variances: Floats
    mean_sd: Floats
    variance_sd: Floats


def arm_balance_moments(released: ReleasedVector, rows: int, columns: BalanceColumns) -> BalanceMoments:
    """Return means and variances from the released sums, with the noise that is left in them.

    Of truth values and flags the mean says the variance, 1 - m^2 and m (1 - m); of numbers it is that of
    squares.
    """
    both_arms = released.floats().reshape(2, -1)
    sd = released.variance**0.5
    numbers = len(columns.numbers)
    flags = len(columns.flags)
    # Both counts add up to the public number of rows, which halves the variance of their noise.
    treated = (both_arms[0, 0] + rows - both_arms[1, 0]) / 2
    least = max(_LEAST_ROWS, sd)
    sizes = np.clip(np.array([treated, rows - treated]), least, max(rows - least, least))[:, None]
    weights = np.ones(both_arms.shape[1] - 1 - numbers)
    weights[len(weights) - flags :] = float(FLAGS)
    low = np.where(np.arange(len(weights)) < len(weights) - flags, -1.0, 0.0)
    sums = both_arms[:, 1 : 1 + len(weights)] / weights
    means = np.clip(sums / sizes, low, 1.0)
    count_sd = sd / 2**0.5
    mean_sd = np.hypot(sd / weights, means * count_sd) / sizes
    variances = np.where(low < 0, 1 - means**2, means * (1 - means))
    variance_sd = np.abs(np.where(low < 0, 2 * means, 1 - 2 * means)) * mean_sd
    if numbers:
        squares = both_arms[:, 1 + len(weights) :] / float(SQUARES) / sizes + 0.5
        variances[:, :numbers] = squares - means[:, :numbers] ** 2
        variance_sd[:, :numbers] = np.hypot(
            sd / float(SQUARES) / sizes, 2 * means[:, :numbers] * mean_sd[:, :numbers]
        )
    return BalanceMoments(
        shares=sizes[:, 0] / rows,
        share_sd=count_sd / rows,
        means=means,
        variances=np.maximum(variances, np.maximum(variance_sd, _LEAST_VARIANCE)),
        mean_sd=mean_sd,
        variance_sd=variance_sd,
    )


def standardised_differences(moments: BalanceMoments) -> tuple[Floats, Floats]:
    """Return standardised differences (columns,), treated minus control, and the standard deviation of their noise."""
    scale = np.sqrt(moments.variances.mean(axis=0))
    differences = (moments.means[0] - moments.means[1]) / scale
    from_means = np.hypot(*moments.mean_sd) / scale
    # The scale is a root of a noisy mean of two variances.
    from_scale = differences * np.hypot(*moments.variance_sd) / 4 / scale**2
    return differences, np.hypot(from_means, from_scale)


def discriminant(moments: BalanceMoments) -> CutScore:
    """Return the direction between the arms, each covariate by its own variance, cut into parts of a normal law.

    A difference counts as far as it exceeds its noise. Covariates that go together make the score wider than
    supposed here: the outer cells then hold more people.
    """
    differences, noise = standardised_differences(moments)
    variance = moments.variances.mean(axis=0)
    signal = differences**2 / (differences**2 + noise**2 + 1e-300)
    weights = signal * differences / np.sqrt(variance)
    centre = float(weights @ (moments.shares @ moments.means))
    spread = max(float(np.sqrt(weights**2 @ variance)), 1e-12)
    return CutScore(weights, centre + spread * np.asarray(ndtri(np.arange(1, CELLS) / CELLS)))


def _differences_in_units(
    study: Study, columns: BalanceColumns, moments: BalanceMoments
) -> tuple[ArmDifference, ...]:
    """Return every column with its means in the units of its declaration."""
    differences, sd = standardised_differences(moments)
    names = [*columns.numbers, *columns.binaries]
    names += [f"{name}={study.covariates[name].labels[code]}" for name, code in columns.flags]  # type: ignore[union-attr]
    rows = []
    for column, name in enumerate(names):
        low = 0.0
        width = 1.0
        if column < len(columns.numbers):
            ends = study.covariates[name].floats()  # type: ignore[union-attr]
            low = ends[0]
            width = ends[1] - ends[0]
        of_unit = moments.means[:, column]
        if column < len(columns.numbers) + len(columns.binaries):
            of_unit = (of_unit + 1) / 2
        treated, control = (low + width * float(mean) for mean in of_unit)
        rows.append(
            ArmDifference(
                covariate=name,
                treated_mean=treated,
                control_mean=control,
                difference=float(differences[column]),
                sd=float(sd[column]),
            )
        )
    return tuple(rows)
