"""Released sums of orthogonal (doubly robust) scores and of their squares, for private treatment and outcome.

    v_i = clip((slope_a y_i + offset_a - middle) / clip, -1, 1),    a = A_i,
    released:  sum_i v_i  and  c sum_i v_i^2,  plus noise,

with A_i the arm and y_i in [-1, 1] the outcome of row i (half of the declared range is 1), and slopes and
offsets of its two lines, `middle` and `clip`, in units of the estimate, made of public and released numbers.
Scores are rounded to whole parts of 2^-18, so that sums are exact.

In: private treatments and outcomes; covariates are public. Out: both sums, in parts of the clip and of its
square; effect and standard error follow from them by public arithmetic, which is post-processing.

Why it is right: a replaced pair moves one score within [-1, 1]. For d = ``|v - v'|`` both sums together
change by at most d (1 + c (2 - d)), which is at most m = 2 for c = 1/2 (one score a row). With a score for
every arm's mean, which is zero in the rows of other arms, two scores may change: m = 5/2 for c = 1/4. Noise
is calibrated to m; scores may be any function of the pair and of released numbers.

Proof: `rows/pairs/pair_scores.proof.md`. Privacy does not depend on `SCORE_BITS` or on where scores are cut.
"""

# Proof: pair_scores.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import blocks
from counterveil.rows.outcome_numbers import outcome_of
from counterveil.session import Gate

# Rows by their places, or all of them.
Places = Integers | slice
# Scores are whole numbers in [-2**18, 2**18].
SCORE_BITS = 18
# Slopes have so many digits more.
_SLOPE_BITS = 8
# An outcome has 23 digits from the middle of its range on.
_MIDDLE = OUTCOME_STEPS // 2
_SHIFT = _SLOPE_BITS + 23
# Largest slope and offset, in clips.
_STEEPEST = 1024.0


@dataclass(frozen=True, slots=True)
class ScoreForm:
    """What is released of scores, and how far a replaced pair moves it.

    Attributes
    ----------
    square_weight : Fraction
        c, what the sum of squares is multiplied by.
    l1 : Fraction
        m, the largest sum of absolute changes.
    """

    square_weight: Fraction
    l1: Fraction


# One score a row; and a score for the mean of every arm.
WHOLE_SCORES = ScoreForm(Fraction(1, 2), Fraction(2))
ARM_SCORES = ScoreForm(Fraction(1, 4), Fraction(5, 2))


def forms_of_outcomes(form: ScoreForm, weights: Sequence[Fraction]) -> list[ScoreForm]:
    """Return the forms of several outcomes' scores, released together: as if each were alone at the noise it has.

    Outcome j of weight w_j moves its sums by w_j m at most, all together by m sum_k w_k. In units in which
    outcome j has the weight one that is m sum_k w_k / w_j.
    """
    total = sum(weights, Fraction(0))
    return [ScoreForm(form.square_weight, form.l1 * total / weight) for weight in weights]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLines:
    """Lines slope y + offset of either arm, treated first, cut to `clip` around `middle`; y is in [-1, 1].

    Attributes
    ----------
    slopes, offsets : tuple of two ndarrays of float, shape (n,)
        Lines of every row if it is treated and if it is not.
    middle, clip : float
        Where scores are cut.
    """

    slopes: tuple[Floats, Floats]
    offsets: tuple[Floats, Floats]
    middle: float
    clip: float

    def sums(
        self, treated: NDArray[np.bool_], outcome: Integers, form: ScoreForm = WHOLE_SCORES
    ) -> list[Fraction]:
        """Return the exact sums of v and of c v^2."""
        unit = 1 << SCORE_BITS
        total = 0
        squares = 0
        for span in blocks(len(outcome)):
            v = self.values(treated, outcome, span)
            total += int(v.sum())
            squares += int((v * v).sum())
        return [Fraction(total, unit), form.square_weight * Fraction(squares, unit * unit)]

    def values(self, treated: NDArray[np.bool_], outcome: Integers, span: slice = slice(None)) -> Integers:
        """Return the scores of some rows in whole numbers, clipped."""
        (slope1, offset1), (slope0, offset0) = self._lines(span)
        moved = outcome[span] - _MIDDLE
        raw = np.where(treated[span], slope1 * moved + offset1, slope0 * moved + offset0)
        unit = 1 << SCORE_BITS
        return np.asarray(np.clip((raw + (1 << (_SHIFT - 1))) >> _SHIFT, -unit, unit))

    def _lines(self, span: slice) -> list[tuple[Integers, Integers]]:
        """Return slopes and offsets of both arms in whole numbers; made of public and released numbers."""
        lines = []
        for slope, offset in zip(self.slopes, self.offsets, strict=True):
            both = ((slope[span], _SLOPE_BITS), (offset[span] - self.middle, _SHIFT))
            steep, high = (
                np.rint(np.clip(values / self.clip, -_STEEPEST, _STEEPEST) * 2.0 ** (SCORE_BITS + bits))
                for values, bits in both
            )
            lines.append((steep.astype(np.int64), high.astype(np.int64)))
        return lines


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """The scores behind one number: of which rows, of which outcome, and who counts as treated.

    Attributes
    ----------
    lines : ScoreLines
        Lines of the chosen rows.
    places : ndarray of int or slice
        Rows that are summed, chosen by what is public.
    form : ScoreForm
        What is released, and how far all numbers of one release move together, in units of this one.
    outcome : int
        Number of the outcome, 0 for the primary one.
    arm : int, optional
        Arm whose rows count as treated, by default all but the reference.
    """

    lines: ScoreLines
    places: Places
    form: ScoreForm = WHOLE_SCORES
    outcome: int = 0
    arm: int | None = None

    def sums(self, table: Table) -> list[Fraction]:
        """Return the exact sums of v and of c v^2."""
        treated = table.treated if self.arm is None else table.arm == self.arm
        outcome = outcome_of(table, self.outcome)
        return self.lines.sums(treated[self.places], outcome[self.places], self.form)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Sums of scores and of their squares behind several numbers, in one release.

    The bound of their forms holds for all together in three cases: no two numbers share a row (groups); every
    number is the mean of another arm, in form `ARM_SCORES`; every number is about another outcome, in forms
    of `forms_of_outcomes`, or the means of both arms of it.

    Attributes
    ----------
    numbers : tuple of RowScores
        Scores of every number.
    """

    numbers: tuple[RowScores, ...]

    @property
    def l1(self) -> Fraction:
        """The largest sum of absolute changes, in units of the number that is released most exactly."""
        return min(number.form.l1 for number in self.numbers)

    def release(self, gate: Gate, name: str) -> list[Floats]:
        """Return for every number the noisy sums of v and of c v^2."""
        factors = [self.l1 / number.form.l1 for number in self.numbers]

        def exact() -> list[Fraction]:
            table = gate.rows.table
            return [
                value * factor
                for factor, number in zip(factors, self.numbers, strict=True)
                for value in number.sums(table)
            ]

        released = gate.release_cells(name, exact, self.l1).floats().reshape(-1, 2)
        return [sums * float(1 / factor) for factor, sums in zip(factors, released, strict=True)]
