"""Released sums of public functions of covariates times scores of private pairs, and of squared scores.

    sum_i q_i v_i    and    L sum_i v_i^2,    L = max_i |q_i|,

with public vectors q_i of functions of row i's covariates, and v_i in [-1, 1] the score of its private pair
of treatment and outcome (`rows/pairs/scores.py`; 1 is the clip of scores). They are what a regression of
scores on functions of public covariates needs.

In: private treatments and outcomes; covariates are public, the lines that make scores are public or released.
Out: the sums with noise for their joint Euclidean change, without units.

Why it is right: a replaced pair moves v from one number in [-1, 1] to another, so the first sum moves by
``|q_i|`` ``|v - v'|`` and the second by L ``|v^2 - v'^2|``. Together that is at most 2 L in length, what the
first alone may move by: squares cost nothing.

Proof: `rows/pairs/pair_scores.proof.md` (functions).
"""

# Proof: pair_scores.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers
from counterveil.numerics.products import WholeSum, blocks
from counterveil.rows.pairs.scores import SCORE_BITS, ScoreLines
from counterveil.rows.pairs.vectors import FEATURE_BITS, WeightedVectors
from counterveil.session import Gate, ReleasedVector

# Two scores in [-1, 1] differ by so much at most.
_PAIR = 2


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSums:
    """Sums of functions with scores, and of squared scores.

    Attributes
    ----------
    vectors : WeightedVectors
        q_i: functions of public covariates.
    lines : ScoreLines
        Scores of all rows.
    """

    vectors: WeightedVectors
    lines: ScoreLines

    def release(self, gate: Gate, name: str) -> ReleasedVector:
        """Return the noisy sums: one for every function, then that of squares."""

        def exact() -> list[Fraction]:
            table = gate.rows.table
            return function_sums(self.vectors, self.lines, table.treated, table.outcome)

        return gate.release_vector(name, exact, function_sensitivity(self.vectors))


def function_sums(
    vectors: WeightedVectors, lines: ScoreLines, treated: NDArray[np.bool_], outcome: Integers
) -> list[Fraction]:
    """Return the sums of functions times v, and of v^2 times the longest row's length, as exact numbers."""
    total = WholeSum()
    unit = 1 << SCORE_BITS
    squares = 0
    for span in blocks(len(outcome)):
        v = lines.values(treated, outcome, span)
        total.add(vectors.steps(span).T @ v[:, None])
        squares += int((v * v).sum())
    sums = [Fraction(int(value), unit << FEATURE_BITS) for value in total.whole()[:, 0]]
    return [*sums, vectors.length * Fraction(squares, unit * unit)]


def function_sensitivity(vectors: WeightedVectors) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced pair moves these sums."""
    return _PAIR * vectors.length
