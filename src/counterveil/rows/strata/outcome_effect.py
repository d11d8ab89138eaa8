"""Released stratified effect, or the means of both arms, where counts are public and outcomes alone private.

    effect = (1/H) sum h (mean_1 - mean_0),    variance = (1/H^2) sum h^2 (v_1/t + v_0/c),    H = sum h,

over strata with t treated and c control rows, mean_a and v_a the mean and unbiased variance of outcomes in
arm a (1 the treated), and public weights h, in people.

In: private outcomes added up by stratum and arm. Out: effect (or each arm's mean less the lower end of the
range) in units of the outcome, and variance in squared ones, each with noise.

Why it is right: one outcome is in one arm of one stratum, with m rows, and has the coefficient h / (m H): it
moves the effect by at most the width of the range times the largest of these, and the variance by at most the
square of that (`outcome_sensitivity.py`). It is in one arm, so both means are released for the price of one
(`session/parallel.proof.md`).

Proof: `rows/strata/strata_outcome.proof.md`.
"""

# Proof: strata_outcome.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.strata import RANGE_STEPS
from counterveil.rows.strata.counted import StratifiedRows
from counterveil.rows.strata.outcome_sensitivity import StrataOutcome
from counterveil.rows.strata.statistics import arm_variances, bounded_variance, effect_sum, mean_sums
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True)
class StratifiedEffect:
    """Average of strata's effects with public weights h, and its variance.

        effect = (1/H) sum h (mean_1 - mean_0),    variance = (1/H^2) sum h^2 (v_1/t + v_0/c),    H = sum h.

    Attributes
    ----------
    bounds : StrataOutcome
        How far one outcome moves both; has H and the width of the outcome's range.
    estimand : {"ATE", "ATT", "ATC"}
        Whom the weights stand for.
    limit : Fraction
        How often an outcome counts at most.
    """

    bounds: StrataOutcome
    estimand: str
    limit: Fraction

    def release(self, gate: Gate, counted: StratifiedRows) -> tuple[Released, Released]:
        """Return the effect and its variance, in units of the outcome and in squared ones."""
        strata = counted.in_layout(gate, counted.layout)
        step = self.bounds.width / RANGE_STEPS
        total = self.bounds.total
        effect = effect_sum(strata, self.estimand, self.limit) * step / total
        variance = bounded_variance(strata, self.estimand, self.limit) * step**2 / total**2
        return (
            gate.release("effect", effect, self.bounds.effect),
            gate.release("variance", variance, self.bounds.variance),
        )


@dataclass(frozen=True, slots=True)
class StratifiedMeans:
    """Mean of each arm over strata with public weights h, and its variance, of the treated first.

        mean_a = (1/H) sum h (mean of arm a),    variance_a = (1/H^2) sum h^2 v_a / n_a.

    One outcome is in one arm, so that both means are released for the price of one
    (`session/parallel.proof.md`).

    Attributes
    ----------
    bounds : tuple of StrataOutcome
        How far one outcome moves each arm's mean and variance.
    estimand, limit
        Those of `StratifiedEffect`.
    names : tuple of (str, str)
        What each arm's mean and variance are called in the plan.
    """

    bounds: tuple[StrataOutcome, StrataOutcome]
    estimand: str
    limit: Fraction
    names: tuple[tuple[str, str], tuple[str, str]]

    def release(self, gate: Gate, counted: StratifiedRows) -> list[tuple[Released, Released]]:
        """Return mean less the lower end of the range, and variance, of each arm."""
        strata = counted.in_layout(gate, counted.layout)
        means = mean_sums(strata, self.estimand, self.limit)
        variances = arm_variances(strata, self.estimand, self.limit)
        released = []
        for bounds, names, mean, variance in zip(self.bounds, self.names, means, variances, strict=True):
            step = bounds.width / RANGE_STEPS
            released.append(
                (
                    gate.release(names[0], mean * step / bounds.total, bounds.effect),
                    gate.release(names[1], variance * step**2 / bounds.total**2, bounds.variance),
                )
            )
        return released
