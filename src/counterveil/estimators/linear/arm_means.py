"""Means of several public arms where only outcomes are private, each with its variance, and their contrasts.

    T_k = sum over arm k of c_i (y_i - low),    effect of arm k = T_k - T_0,

with public coefficients c that add up to one in each arm (1 / n_k for plain means), outcomes y in [low,
high], and arm 0 the reference; means and effects are in units of the outcome. Released are T_k and the
variance V_k of its sampling error, in squared units, each with noise for how far one outcome moves it (high -
low times the largest c_i of the arm, in the case of T_k).

In: public arms, coefficients (`arms_design.py`) and private outcomes, which are read through the gate alone:
it adds noise and lets each release of the plan through once. Out: the released means with their errors.

Why it is right: one outcome moves the two numbers of its own arm and no other, so that the two releases of an
arm form a chain that spends the whole budget, and all chains together cost it once (disjoint releases compose
in parallel, McSherry 2009). Proofs: `rows/linear/arm_mean.proof.md`, `rows/linear/linear_estimate.proof.md`
(weighted means) and `session/branches.proof.md`. The split between mean and variance reads public numbers and
sets lengths of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import TypeAlias

from counterveil.estimators.linear.arms_design import arms_design
from counterveil.estimators.linear.budget_split import TYPICAL_SD, least_share
from counterveil.estimators.linear.linear_estimator import known_error, release_rows
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import with_rare_events
from counterveil.privacy.provenance import Quantity, QuantityOf, ReleaseRow
from counterveil.results.answering import Facts
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.rows.linear.sensitivity import ArmMean, LinearEstimate
from counterveil.rows.public import PublicData
from counterveil.session import Gate
from counterveil.session.session import in_branches
from counterveil.settings.methods import asked_share

PAGES = (
    "rows/linear/arm_mean.proof.md",
    "rows/linear/linear_estimate.proof.md",
    "session/branches.proof.md",
)
# How far one outcome moves the numbers of an arm.
MeanBounds: TypeAlias = ArmMean | LinearEstimate


def arm_means(public: PublicData, question: Question) -> Prepared[ArmsResult]:
    """Return the effects of all arms against the reference, prepared for their releases."""
    study = public.study
    design = arms_design(public, question)
    every = design.means.bounds
    # If an arm is too small to estimate its variance, its whole budget goes to the mean, whatever larger arms do.
    shares = [share_of([bounds], question) for bounds in every]
    branches = [
        {f"mean of arm {k}": 1 - share, f"variance of arm {k}": share} for k, share in enumerate(shares)
    ]
    means_names, variances_names = zip(*branches, strict=True)

    def estimate(gate: Gate) -> Facts:
        released = design.means.release(
            gate, with_variance=[*map(bool, shares)], means=means_names, variances=variances_names
        )
        low, high = (float(end) for end in study.outcome_range)
        means: list[Effect] = []
        releases: list[ReleaseRow] = []
        for label, arm, (mean, variance) in zip(
            study.treatment_labels, design.means.arms, released, strict=True
        ):
            bounds = arm.sensitivity
            plain = known_error(mean, variance, bounds.variance_cap)
            uncertainty = with_rare_events(plain, study.outcome_range, (1 / float(bounds.squares),))
            linear = Linear(low + float(mean), uncertainty, (low, high))
            means.append(Effect(label, linear, question.level, size=arm.size))
            mean_of_arm = QuantityOf(Quantity.MEAN_OF, repr(label))
            variance_of_arm = QuantityOf(Quantity.VARIANCE_OF, repr(label))
            releases += release_rows(bounds, variance is not None, (mean_of_arm, variance_of_arm))
        return Facts(
            means=tuple(means),
            method=design.method,
            releases=tuple(releases),
            not_covered=design.not_covered,
            details=design.details
            | {
                "rows": public.rows,
                "mechanism": question.mechanism,
                "variance_budget_share": "; ".join(f"{float(share):g}" for share in shares),
            },
            diagnostics=design.diagnostics,
        )

    return Prepared(
        question=question,
        plan=in_branches(question.budget, question.mechanism, [(branch, {}) for branch in branches]),
        estimate=estimate,
        answer=ArmsResult,
        pages=PAGES,
        description={"question": "arms"},
    )


def share_of(bounds: Sequence[MeanBounds], question: Question, expected_part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variances: the one asked for, else one for short intervals of contrasts.

    Reads public numbers only; `expected_part` of the outcomes' variance is expected to be left in those
    released.
    """
    share = asked_share(question.settings)
    if share is not None:
        return share

    def over_contrasts(values: list[Fraction]) -> Fraction:
        return values[0] + sum(values[1:], Fraction(0)) / max(len(values) - 1, 1)

    # One number that is as noisy as a typical contrast: noise variances go as sensitivity squared.
    estimate = sqrt(over_contrasts([arm.estimate**2 for arm in bounds]))
    variance = sqrt(over_contrasts([arm.variance**2 for arm in bounds]))
    typical = [
        Fraction(expected_part) * TYPICAL_SD**2 * arm.width**2 * arm.squares * arm.factor for arm in bounds
    ]
    return least_share(
        cap=float(over_contrasts([arm.variance_cap for arm in bounds])),
        typical=float(over_contrasts(typical)),
        per_noise=estimate**2,
        per_variance_noise=variance,
        budget=question.budget,
        mechanism=question.mechanism,
        slack=1.0,
    )
