"""Strata: counts and sums of outcomes by stratum and arm, and for how many people each stratum speaks.

A stratum has t treated and c control rows, n = t + c. Its weight h says for how many people its effect
speaks: n (ATE), t (ATT), c (ATC); with a limit w no person's outcome counts more than w times, so that

    h = min(n, w t, w c) (ATE),    min(t, w c) (ATT),    min(c, w t) (ATC),

and 0 where an arm is missing. Weights are functions of counts alone, in people; what is summed of outcomes
with them stands in `rows/strata/statistics.py`.

Only correctly rounded operations are used on doubles and sums are exact before their one rounding
(`math.fsum`), so that every platform finds the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum

import numpy as np

from counterveil.numerics.arrays import Floats, Integers

# An outcome lies in [0, RANGE_STEPS].
RANGE_STEPS = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The occupied strata of a public layout, in ascending order of their place in it.

    Outcomes are whole steps. `public` counts all strata of the layout, occupied or not. Sums are exact;
    a square is the double nearest to an exact sum of squares. A prefix is the sum over an arm's first
    (size of the other arm) mod (its own size) rows, in the public order of the rows; 0 where the other arm is
    empty, None where nobody asked for it.
    """

    public: int
    place: Integers
    treated: Integers
    control: Integers
    treated_sum: Integers
    control_sum: Integers
    treated_square: Floats
    control_square: Floats
    treated_prefix: Integers | None = None
    control_prefix: Integers | None = None

    @property
    def rows(self) -> int:
        """The number of rows in all strata together."""
        return int(self.treated.sum() + self.control.sum())

    @property
    def sizes(self) -> StratumSizes:
        """The counts without the sums of outcomes."""
        return StratumSizes(self.public, self.treated, self.control)


@dataclass(frozen=True, slots=True, eq=False)
class StratumSizes:
    """How many rows of each arm the occupied strata hold.

    Attributes
    ----------
    public : int
        All strata of the layout, occupied or not.
    treated, control : ndarray of int
        Rows by stratum.
    """

    public: int
    treated: Integers
    control: Integers

    @property
    def rows(self) -> int:
        """The number of rows in all strata together."""
        return int(self.treated.sum() + self.control.sum())


def stratum_weights(strata: Strata | StratumSizes, estimand: str, limit: Fraction | None = None) -> Floats:
    """Return h for every stratum, 0 where an arm is missing."""
    treated, control = strata.treated.astype(np.float64), strata.control.astype(np.float64)
    weights = {"ATE": treated + control, "ATT": treated, "ATC": control}[estimand]
    if limit is not None:
        most = float(limit)
        if estimand != "ATT":
            weights = np.minimum(weights, most * treated)
        if estimand != "ATC":
            weights = np.minimum(weights, most * control)
    return np.where(is_matched(strata), weights, 0.0)


def weight_sum(strata: Strata | StratumSizes, estimand: str, limit: Fraction | None = None) -> Fraction:
    """Return the sum of h: the number of people for whom the effect speaks."""
    return exact_sum(stratum_weights(strata, estimand, limit))


def unmatched_rows(strata: Strata | StratumSizes, estimand: str) -> int:
    """Return how many of the estimand's people are in strata that lack an arm."""
    rows = {
        "ATE": strata.treated + strata.control,
        "ATT": strata.treated,
        "ATC": strata.control,
    }[estimand]
    return int(rows[~is_matched(strata)].sum())


def is_matched(strata: Strata | StratumSizes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which strata have rows of both arms."""
    return (strata.treated > 0) & (strata.control > 0)


def exact_sum(parts: Floats) -> Fraction:
    """Return the exact sum of doubles, rounded once."""
    return Fraction(fsum(parts.tolist()))
