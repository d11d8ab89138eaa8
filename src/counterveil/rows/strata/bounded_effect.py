"""Released sums over strata of mean differences with bounded weights; all of a person's record is private.

    effect = (1/N) sum h (mean_1 - mean_0),    weight = (1/N) sum h,
    variance = (1/N^2) sum h^2 (v_1/t + v_0/c),

over strata with t treated and c control rows, N the number of all rows, mean_a and v_a the mean and unbiased
variance of outcomes in arm a (1 the treated), and h the people that a stratum speaks for:
h = min(t + c, w t, w c) (ATE), min(t, w c) (ATT), min(c, w t) (ATC), with a public limit w.

In: private rows counted by stratum and arm. Out: effect in units of the outcome, weight in parts of all rows,
variance in squared units, each with noise. The estimate is effect / weight, which is post-processing.

Why it is right: by the limit no outcome counts more than w times, however few rows an arm of a stratum has.
So a replaced row moves the three sums by constants of w, B (width of the outcome's range) and N alone:
2 w B / N for the effect, w / N for the weight, plus rounding.

Proof: `rows/strata/bounded_strata.proof.md`.
"""

# Proof: bounded_strata.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.data import Layout
from counterveil.numerics.strata import RANGE_STEPS, weight_sum
from counterveil.rows.strata.counted import StratifiedRows
from counterveil.rows.strata.sensitivity import BoundedStrata
from counterveil.rows.strata.statistics import bounded_variance, effect_sum
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True)
class BoundedEffect:
    """Means over all n rows of what strata with rows of both arms add.

        effect = (1/n) sum h (mean_1 - mean_0),    weight = (1/n) sum h,
        variance = (1/n^2) sum h^2 (v_1/t + v_0/c),

    with v the unbiased variance of an arm. The effect of whom strata speak for is effect / weight.

    Attributes
    ----------
    bounds : BoundedStrata
        How far one replaced row moves the three sums, for outcomes in [0, 1]; has n, w and the estimand.
    width : Fraction
        B, width of the outcome's range.
    """

    bounds: BoundedStrata
    width: Fraction

    @property
    def effect_bound(self) -> Fraction:
        """Largest change of the effect, in units of the outcome."""
        return self.bounds.effect * self.width / self.bounds.rows

    @property
    def weight_bound(self) -> Fraction:
        """Largest change of the weight."""
        return self.bounds.weight / self.bounds.rows

    @property
    def variance_bound(self) -> Fraction:
        """Largest change of the variance, in squared units of the outcome."""
        return self.bounds.variance * self.width**2 / self.bounds.rows**2

    def release(self, gate: Gate, counted: StratifiedRows, layout: Layout) -> ReleasedBoundedEffect:
        """Return the three numbers, of the strata of a public or released layout."""
        strata = counted.in_layout(gate, layout)
        rows = self.bounds.rows
        limit = self.bounds.limit
        estimand = self.bounds.estimand.value
        step = self.width / RANGE_STEPS
        effect = effect_sum(strata, estimand, limit) * step / rows
        weight = weight_sum(strata, estimand, limit) / rows
        variance = bounded_variance(strata, estimand, limit) * step**2 / rows**2
        return ReleasedBoundedEffect(
            gate.release("effect", effect, self.effect_bound),
            gate.release("weight", weight, self.weight_bound),
            gate.release("variance", variance, self.variance_bound),
        )


@dataclass(frozen=True, slots=True)
class ReleasedBoundedEffect:
    """The three means with their noise: of effects, of weights, and the variance of the former."""

    effect: Released
    weight: Released
    variance: Released
