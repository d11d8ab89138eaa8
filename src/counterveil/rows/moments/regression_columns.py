"""The columns of a row that regressions are made of, each in [-1, 1].

In: one row (covariates, arm, outcome, further outcomes) and declared ranges, which are public. Out: a number
in [-1, 1] for every column, in half ranges around the middle of its range,

    features of covariates, logarithms of some, a flag (-1 or 1) for every arm but the reference, the outcome,
    further outcomes, the logarithm of the outcome where it is asked for.

Later, with a released centre c and scale s, they become z = (x - c) / s, and interactions are products of two
of these (`products`). `Columns` holds the public description, with the middle and half width of every column
in its own units; `counted` is the number of columns in the bound of how far one record moves their means.

Why it is right: every column is a function of one row and of public declarations and stays in [-1, 1], which
is all that the bounds need. Flags of one covariate, or of the arms, count as two columns at most, since at
most one of them is 1. Proof: `rows/moments/regression_moments.proof.md`.
"""

# Proof: regression_moments.proof.md

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Label
from counterveil.data.features import counted_features
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap
from counterveil.rows.records import MIDDLE, Part

# Logarithms are rounded to this grid: what the last digits of a library's are does not matter.
_LOG_STEPS = 2.0**30


@dataclass(frozen=True, slots=True)
class Columns:
    """What a row holds: covariates' features, flags of arms, outcomes; and products of two of these. All public.

    Attributes
    ----------
    names : tuple of str
        Of the columns, then of the products.
    features : FeatureMap
        Of covariates.
    arms : tuple of label
        All but the reference.
    responses : tuple of bool
        Of every column but the products, whether it is one that regressions may explain (outcomes, arms): no row is
        given less weight for its value.
    products : tuple of (int, int)
        Places of the columns that are multiplied.
    ends : tuple of (float, float)
        Middle and half width of every column in its own units.
    groups : tuple of (str, tuple of str)
        Covariates or treatments of several columns.
    measures : int
        Further outcomes, and what was measured of outcomes before.
    logs : tuple of (int, float)
        Places of features whose logarithms are columns, and the ratio of the ends of their ranges.
    log_outcome : tuple of float
        That ratio of the outcome, if its logarithm is a column.
    """

    names: tuple[str, ...]
    features: FeatureMap
    arms: tuple[Label, ...]
    responses: tuple[bool, ...]
    products: tuple[tuple[int, int], ...]
    ends: tuple[tuple[float, float], ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    measures: int = 0
    logs: tuple[tuple[int, float], ...] = ()
    log_outcome: tuple[float, ...] = ()

    @property
    def singles(self) -> int:
        """Number of columns that are no products."""
        return len(self.responses)

    @property
    def counted(self) -> int:
        """The number of columns in the bound of what one record moves; flags of one column count as two at most."""
        numbers = len(self.logs) + 1 + self.measures + len(self.log_outcome)
        return counted_features(self.features) + min(2, len(self.arms)) + numbers

    @property
    def two_valued(self) -> NDArray[np.bool_]:
        """Which single columns hold -1 and 1 alone, so that their squares are known."""
        rest = [False] * len(self.logs) + [True] * len(self.arms)
        rest += [False] * (1 + self.measures + len(self.log_outcome))
        return np.append(self.features.two_valued, rest)

    def block(self, block: Part) -> Floats:
        """Return the (rows, singles) columns of a block of rows, each in [-1, 1]."""
        arms = block.batch.arm[block.rows]
        flags = [np.where(arms == arm, 1.0, -1.0) for arm in range(1, len(self.arms) + 1)]
        covariates = block.x.T if self.features.columns else np.empty((0, len(arms)))
        further = [(steps[block.rows] - MIDDLE) / MIDDLE for steps in block.batch.measures[: self.measures]]
        logs = [logarithm(covariates[feature], ratio) for feature, ratio in self.logs]
        further += [logarithm(block.y, ratio) for ratio in self.log_outcome]
        return np.vstack((covariates, *logs, *flags, block.y, *further)).T


def logarithm(x: Floats, ratio: float) -> Floats:
    """Return the logarithm of numbers given in [-1, 1], in [-1, 1] itself; `ratio` is that of the ends of its range."""
    logs = 2.0 * np.log1p((ratio - 1.0) * (x + 1.0) / 2.0) / log(ratio) - 1.0
    return np.asarray(np.clip(np.rint(logs * _LOG_STEPS) / _LOG_STEPS, -1.0, 1.0))


def combined(f: Floats, weights: Floats, out: Floats | None = None) -> Floats:
    """Return weights f, added up in order: to the bit the same wherever a row stands in a block."""
    total = np.empty(f.shape[1]) if out is None else out
    term = np.empty(f.shape[1])
    total.fill(0.0)
    for column in np.flatnonzero(weights):
        total += np.multiply(f[column], weights[column], out=term)
    return total


def squared(w: Floats) -> Floats:
    """Return the squared lengths of the columns of w, added up in order."""
    squared_lengths = np.zeros(w.shape[1])
    for column in w:
        squared_lengths += column * column
    return squared_lengths
