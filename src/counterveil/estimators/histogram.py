"""Noisy counts of rows in public cells: the noise that they have under a plan, and what they say of outcomes.

Released counts have the noise of sensitivity 2 (one row leaves a cell and enters another; sqrt 2 as a length). From
them follow how many outcomes crowd at the ends of their range,

    crowd = (count of the outermost cell - count of the one beside it) / rows,

with a 95 % interval for the noise, and how much of some sizes lies beyond a clip. In: counts, the standard deviation
of their noise, public numbers. Out: shares of rows, sums in the unit of the sizes, plans.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.results.question import Question
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.public import PublicData
from counterveil.session import Kind, Plan

# What noise may hide of sizes beyond a clip counts this many times, as a standard deviation.
HELD = 0.7


# Half-width of a 95 % interval for the difference of two counts with normal noise, in standard deviations of the
# noise of one: 1.96 sqrt(2).
_NORMAL_HALF = 2.772
# The same with Laplace noise, from P(|X - X'| > t b) = (1 + t / 2) exp(-t).
_LAPLACE_HALF = 2.909


def outcomes_at_ends(counts: Floats, sd: float, rows: int, pure: bool) -> OutcomesAtEnds:
    """Return how many outcomes crowd at the ends of their range, from noisy counts in its equal cells.

    Clamped outcomes all lie in the outermost cell. What this cell holds more than the one beside it estimates them
    where the density is about even in both; it may be natural at an end that outcomes cannot pass.
    """
    half = (_LAPLACE_HALF if pure else _NORMAL_HALF) * sd / rows

    def crowd(end: float, beside: float) -> tuple[float, ...]:
        excess = (float(end) - float(beside)) / rows
        return tuple(float(np.clip(value, -1.0, 1.0)) for value in (excess, excess - half, excess + half))

    return OutcomesAtEnds(1 / len(counts), crowd(*counts[:2]), crowd(*counts[:-3:-1]))


def beyond(counts: Floats, sd: float, sizes: Floats, clips: Floats) -> Floats:
    """Return what clips take off all sizes together: what noisy counts say of it, or the noise in that."""
    over = np.maximum(sizes - clips[:, None], 0.0)
    return np.asarray(np.maximum(over @ counts, sd * np.linalg.norm(over, axis=1)))


def count_mechanisms(public: PublicData, question: Question) -> list[str]:
    """Return the noise of counts: the one asked for, and Laplace's too where the mechanism was left open."""
    kinds = ["laplace" if question.mechanism == "staircase" else question.mechanism]
    # A ledger that adds up Gaussian noise counts pure noise dearly.
    free = question.mechanism == "gaussian" and question.open_noise and public.account_rule == "sum"
    return kinds + ["laplace"] * free


def counts_plan(budget: Budget, name: str, mechanism: str) -> Plan:
    """Return the plan that pays for counts alone."""
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    return Plan.split(budget, {name: Fraction(1)}, mechanism, {name: kind})


def counts_noise(plan: Plan, name: str, l1: Fraction = COUNTS_L1, l2: Fraction = COUNTS_L2) -> float:
    """Return the standard deviation of the noise of each number, of these sensitivities."""
    if plan.mechanism == "gaussian":
        return float(l2 / plan.amount(name, Kind.VECTOR))
    return float(l1 / plan.amount(name, Kind.CELLS)) * sqrt(2)
