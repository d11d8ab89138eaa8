"""Released difference of two arms' mean outcomes, and its variance; who is in which arm is public.

    effect = w (mean_1 - mean_0),    variance = w^2 (s_1^2 / n_1 + s_0^2 / n_0),

with n_a the rows of arm a (1 the treated), means and unbiased variances s_a^2 of outcomes that are clamped to
a window, and w the part of all sites' rows that this site has (1 for a single site).

In: private outcomes in whole steps of their range (2^24 of them), added up exactly by arm: number, sum, sum
of squares. Out: effect in units of the outcome and variance in squared ones, each with noise; the variance
is that of sampling, without the noise.

Why it is right: one outcome in a window of width B moves one arm's mean, so the effect moves by at most
w B / min(n_1, n_0), and the variance by at most the square of that. Noise is calibrated to these bounds.

Proof: `rows/linear/difference_in_means.proof.md`.
"""

# Proof: difference_in_means.proof.md

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from counterveil.data import Sums, Table
from counterveil.data.domains import outcome_unit
from counterveil.numerics.arm_totals import TwoArms, arm_totals
from counterveil.rows.linear.sensitivity import MeanContrast, SitesContrast
from counterveil.rows.outcome_window import WHOLE_RANGE, OutcomeWindow
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True)
class ArmContrast:
    """Mean outcome of the treated less that of the others, and its variance.

    Attributes
    ----------
    bounds : SitesContrast
        How far one outcome moves the effect, w |y - y'| / n_a at most, and its variance; for the whole range.
    window : OutcomeWindow
        Where outcomes are clamped; bounds shrink with it.
    weight : Fraction
        w, the part of all sites' rows that these are; 1 where there is one site.
    names : tuple of str
        What the effect and its variance are called in the plan.
    """

    bounds: SitesContrast
    window: OutcomeWindow = WHOLE_RANGE
    weight: Fraction = Fraction(1)
    names: tuple[str, str] = ("effect", "variance")

    @property
    def window_bounds(self) -> SitesContrast:
        """The bounds of clamped outcomes."""
        return replace(self.bounds, width=self.bounds.width * self.window.part)

    def release(self, gate: Gate, *, with_variance: bool) -> tuple[Released, Released | None]:
        """Return the released effect and, where the plan pays for it, its variance."""
        source = gate.rows.batches
        (sums,) = source.run(partial(arm_sums, window=self.window))
        step = outcome_unit(source.study.outcome_bounds) * self.window.part * self.weight
        return release_contrast(
            gate, TwoArms.of(sums), step, self.window_bounds, with_variance=with_variance, names=self.names
        )


def release_contrast(
    gate: Gate,
    arms: TwoArms,
    step: Fraction,
    bounds: MeanContrast | SitesContrast,
    *,
    with_variance: bool,
    names: tuple[str, str],
) -> tuple[Released, Released | None]:
    """Return the released difference of means of exact totals, outcomes in steps of this length, and its variance."""
    difference = (arms.treated.mean() - arms.control.mean()) * step
    effect = gate.release(names[0], difference, bounds.estimate)
    if not with_variance:
        return effect, None
    variance = arms.treated.variance() / arms.treated.count + arms.control.variance() / arms.control.count
    return effect, gate.release(names[1], variance * step**2, bounds.variance)


def arm_sums(table: Table, window: OutcomeWindow = WHOLE_RANGE) -> Sums:
    """Return number, sum and sum of squares of clamped outcomes of both arms, in whole steps."""
    return (arm_totals(table.treated, window.clamped(table.outcome)).sums,)
