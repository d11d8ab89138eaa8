"""Noisy means of doubly robust scores of private records, clipped to [-1, 1] in units of a clip, and of their
squares.

With lines beta_a that predict the outcome in arm a, weights alpha_a of the arms (lines on u too), and p_a how
much a row of arm a counts in the population asked about, the score for an effect is

    score = p_a (tau'u - effect) +- alpha_a'u (v - beta_a'u),    tau = beta_1 - beta_0,

+ for the treated, - for the others (augmented inverse weighting; Robins, Rotnitzky and Zhao 1994). Its mean
is what the data add to `effect`, and it is doubly robust: right if the lines or the weights are. For the mean
of every arm, the weighted residuals alpha_a'u (v - beta_a'u) alone are summed by arm. u and v are a row in
released units (`ScaledRows`); results are in units of v. All lines, weights and clips are public or were
released before.

Why it is right: r = score / clip, clipped to [-1, 1], depends on one row and released numbers, so that one of
n records moves the means of (r, k r^2), k = 1.665, by 2 / n: squares come free. What is released by arm moves
by `SCORE_TERMS`: by 2 in absolute changes and sqrt(2) in Euclidean length.
Proof: `rows/moments/orthogonal_score.proof.md` (a), by arm `rows/moments/group_scores.proof.md`.
"""

# Proof: orthogonal_score.proof.md
# Proof: group_scores.proof.md

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import projected
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.cell_sums import SCORE_TERMS, cell_sums, three_terms
from counterveil.rows.moments.linear_models import ArmLines, of_own_arm
from counterveil.rows.moments.scaled_rows import ScaledRows, over_scaled
from counterveil.rows.moments.scores import TERM_BITS, Block, Sums, whole_steps
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.records import Records
from counterveil.session import Gate


def orthogonal_score(rows: int) -> Fraction:
    """Return the l2 sensitivity of the means of (r, 1.665 r^2), r in [-1, 1]."""
    return Fraction(2, rows)


@dataclass(frozen=True, slots=True)
class ArmScore:
    """The augmented inversely weighted score of a row (Robins, Rotnitzky and Zhao 1994), less an effect.

    Attributes
    ----------
    lines : ArmLines
        beta_a: predictions of the outcome in each arm, the reference first.
    weights : ndarray of shape (2, m)
        alpha_a: lines on u too.
    people : (float, float)
        p_a: how much a row of each arm counts in the population asked about.
    effect : float
        What the lines alone say of the effect.
    """

    lines: ArmLines
    weights: Floats
    people: tuple[float, float]
    effect: float

    def of(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return the score of every row; its mean plus the effect is the estimate."""
        control, treated = (projected(u, line) for line in self.lines.values)
        for_control, for_treated = (projected(u, line) for line in self.weights)
        weighted_residuals = np.where(t == 1, for_treated * (y - treated), -for_control * (y - control))
        counts = np.where(t == 1, self.people[1], self.people[0])
        return np.asarray(counts * (treated - control - self.effect) + weighted_residuals)


def arm_score_sums(row_blocks: Iterable[Block], score: ArmScore, clip: float) -> Sums:
    """Return the sums of scores over `clip`, clipped to one, and of their squares, in 2**- and 4**-TERM_BITS."""
    total = square = 0
    for u, t, y in row_blocks:
        r = whole_steps(score.of(u, t, y) / clip)
        total = total + int(r.sum())
        square = square + int((r * r).sum())
    return (np.array([total, square], dtype=object),)


@dataclass(frozen=True, slots=True)
class OwnScore:
    """Weighted residuals of a row in its own arm, less a centre and in a unit.

    Attributes
    ----------
    lines : ArmLines
        beta_a: predictions of the outcome in each arm.
    weights : ndarray of shape (arms, m)
        alpha_a: lines on u.
    centres, units : ndarray of shape (arms,)
        What is subtracted from the residuals of an arm, and what they are divided by.
    """

    lines: ArmLines
    weights: Floats
    centres: Floats
    units: Floats

    def of(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return the score of every row."""
        arm = t.astype(np.intp)
        weighted = of_own_arm(u, arm, self.weights) * self.lines.residual(u, t, y)
        return np.asarray((weighted - self.centres[arm]) / self.units[arm])


def own_score_sums(row_blocks: Iterable[Block], score: OwnScore) -> Sums:
    """Return for every arm the number of rows, and the sums of their clipped scores and of squares; see `cell_sums`."""
    rows = ((t.astype(np.int64), score.of(u, t, y), ()) for u, t, y in row_blocks)
    return cell_sums(rows, len(score.units))


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """Released mean of the clipped scores and of their squares, and their noise.

    Attributes
    ----------
    score, square : float
        Means, in units of the rows' outcome and its square.
    sd, square_sd : float
        Their noise.
    """

    score: float
    square: float
    sd: float
    square_sd: float


def release_arm_score(
    gate: Gate, records: Records, rows: ScaledRows, score: ArmScore, clip: float
) -> ScoreMoments:
    """Return the mean score, clipped to [-clip, clip], and the mean of its square."""
    n = records.count
    weight = float(SQUARE_WEIGHT)

    def values() -> list[Fraction]:
        ((total, square),) = records.run(over_scaled, arm_score_sums, rows, score, clip)
        step = Fraction(1, n << TERM_BITS)
        return [total * step, SQUARE_WEIGHT * square * step / 2**TERM_BITS]

    released = gate.release_vector("score", values, orthogonal_score(n))
    mean, mean_square = map(float, released.floats())
    sd = sqrt(released.variance)
    return ScoreMoments(
        score=clip * mean,
        square=clip**2 * mean_square / weight,
        sd=clip * sd,
        square_sd=clip**2 * sd / weight,
    )


def release_own_scores(gate: Gate, records: Records, rows: ScaledRows, score: OwnScore, pure: bool) -> Floats:
    """Return for every arm the sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 over its rows' scores r, (arms, 3)."""

    def values() -> list[Fraction]:
        ((counts, totals, squares),) = records.run(over_scaled, own_score_sums, rows, score)
        step = Fraction(1, 1 << TERM_BITS)
        sums = zip(counts, totals, squares, strict=True)
        return [term for n, s, q in sums for term in three_terms(n, step * s, step * step * q)]

    released = release_sums(
        gate, "score", values, pure=pure, l1=SCORE_TERMS.absolute, l2=SCORE_TERMS.euclidean
    )
    return released.floats().reshape(-1, 3)
