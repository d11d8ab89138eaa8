"""Public vectors of whole numbers, made of covariates, that multiply private treatments and outcomes.

    q_i = rint(2^16 w_i s z_i),    length = max_i |q_i| / 2^16, rounded up,

with the features z_i of row i and its weight w_i <= 1, and scales s of the features (products by entry).

In: features of public covariates and scales. Out: q_i, and `length`, to which the noise of sums of q_i times
private numbers is calibrated; neither has units.

Why it is right: a replaced row moves a sum of q_i times private numbers in proportion to ``|q_i|``, so its
noise is in proportion to the longest one. Rows longer than the root mean square that scales stand for get a
smaller weight, which keeps the longest short. The length is that of the whole numbers that are summed, in
exact arithmetic: whatever a processor makes of z, w and s in floating point, the bound holds.

Proof: `rows/pairs/pair_moments.proof.md`. Privacy does not depend on the 16 fractional bits.
"""

# Proof: pair_moments.proof.md

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Protocol

import numpy as np

from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.products import WholeSum, blocks

# Fractional digits of the vectors.
FEATURE_BITS = 16
# Rows of length zero keep the weight one: lengths are divided by no less.
_SHORTEST = 1e-9


class FeatureMatrix(Protocol):
    """The features z (n, p) of all rows, held as an array or made whenever some rows are read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and of features."""
        ...

    def __getitem__(self, part: slice, /) -> Floats:
        """Return the features of some rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class WeightedVectors:
    """The public vectors q_i of all rows.

    Attributes
    ----------
    z : FeatureMatrix, shape (n, p)
        Features.
    scale : ndarray of float, shape (p,)
        s, by which features are multiplied: the noise of a feature's sum is shared in these parts.
    weight : ndarray of float, shape (n,)
        w_i, at most 1.
    length : Fraction
        Length of the longest q_i in parts of 2^16, as `shortened` finds it.
    """

    z: FeatureMatrix
    scale: Floats
    weight: Floats
    length: Fraction

    def steps(self, span: slice) -> Integers:
        """Return q of some rows."""
        return _steps(self.z[span] * self.scale, self.weight[span])


def shortened(z: FeatureMatrix, scale: Floats) -> WeightedVectors:
    """Return the vectors of features at these scales, longer rows with less weight."""
    average = sqrt(float((scale**2).sum()))
    squares = 0
    weight = np.empty(z.shape[0])
    for span in blocks(len(weight)):
        scaled = z[span] * scale
        lengths = np.sqrt((scaled**2).sum(axis=1))
        weight[span] = np.minimum(1.0, average / np.maximum(lengths, _SHORTEST))
        squares = max(squares, _longest(_steps(scaled, weight[span])))
    return WeightedVectors(z, scale, weight, sqrt_up(Fraction(squares, 1 << 2 * FEATURE_BITS)))


def summed(
    vectors: WeightedVectors, columns: Callable[[slice], Integers], units: Sequence[Fraction]
) -> list[Fraction]:
    """Return the exact sums of q_i times columns of whole numbers in these units, column by column."""
    total = WholeSum()
    for span in blocks(len(vectors.weight)):
        total.add(vectors.steps(span).T @ columns(span))
    steps = [unit / (1 << FEATURE_BITS) for unit in units]
    return [
        step * int(value) for step, column in zip(steps, total.whole().T, strict=True) for value in column
    ]


def _steps(scaled: Floats, weight: Floats) -> Integers:
    return np.asarray(np.rint(scaled * weight[:, None] * 2**FEATURE_BITS), np.int64)


def _longest(steps: Integers) -> int:
    return int((steps**2).sum(axis=1).max())
