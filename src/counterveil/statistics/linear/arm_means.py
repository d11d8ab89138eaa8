"""Means of several arms, released in parallel: one outcome moves the mean of its own arm and no other.

Lineage: disjoint releases compose in parallel (McSherry 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from counterveil.data import silence
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.session import BaseSession, Gate, Released
from counterveil.session.plan import ParallelPlan, in_parallel
from counterveil.settings.methods import asked_share
from counterveil.statistics.linear.arm_design import design_of, exact_values
from counterveil.statistics.linear.budget import TYPICAL_SD, effect_plan, variance_share
from counterveil.statistics.linear.sensitivity import ArmMean, LinearEstimate

PAGES = (
    "statistics/linear/arm_mean.proof.md",
    "statistics/linear/linear_estimate.proof.md",
    "session/parallel.proof.md",
)
Bounds = ArmMean | LinearEstimate


@silence()
def arm_means(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private effects of all arms against the reference; only outcomes are private."""
    session.admit(question.uses(session.study, "arms"))
    source = session.batches
    design = design_of(source, question)
    share = share_of([one.sensitivity for one in design.statistics], question)
    plan = arms_plan(question, share, len(design.statistics))

    def compute(gate: Gate) -> Facts:
        every = [one.sensitivity for one in design.statistics]
        released = release(gate, every, exact_values(source, design), share > 0)
        study = session.study
        low, high = (float(end) for end in study.outcome_range)
        means, releases = [], []
        for label, statistic, (mean, variance) in zip(
            study.treatment_labels, design.statistics, released, strict=True
        ):
            bounds = statistic.sensitivity
            cap = float(bounds.variance_cap)
            known = (cap, None) if variance is None else (float(variance), variance.noise)
            plain = Uncertainty(mean.noise, known[0], cap, known[1])
            uncertainty = with_rare_events(plain, study.outcome_range, (1 / float(bounds.squares),))
            means.append(
                Effect(
                    label,
                    Linear(low + float(mean), uncertainty, (low, high)),
                    question.level,
                    size=statistic.size,
                )
            )
            releases.append((f"mean of {label!r}", f"sensitivity {float(bounds.estimate):.6g}"))
            if variance is not None:
                releases.append((f"variance of {label!r}", f"sensitivity {float(bounds.variance):.6g}"))
        return Facts(
            means=tuple(means),
            method=design.method,
            releases=tuple(releases),
            not_covered=design.not_covered,
            details=design.details
            | {
                "rows": session.batches.rows,
                "mechanism": question.mechanism,
                "variance_budget_share": float(share),
            },
            diagnostics=design.diagnostics,
        )

    return settled(ArmsResult, session, question, plan, compute, pages=PAGES, said={"question": "arms"})


def arms_plan(question: Question, share: Fraction, arms: int) -> ParallelPlan:
    """Return the plan of two groups in parallel: the means, and their variances for `share` of the budget."""
    groups = {"effect": _names("mean", arms), "variance": _names("variance", arms)}
    return in_parallel(effect_plan(question, share), groups)


def release(
    gate: Gate,
    bounds: Sequence[Bounds],
    values: Sequence[tuple[Fraction, Fraction]],
    with_variance: bool,
) -> list[tuple[Released, Released | None]]:
    """Return the released mean of every arm and, where it is paid for, its variance, from the exact ones."""
    released: list[tuple[Released, Released | None]] = []
    names = zip(_names("mean", len(bounds)), _names("variance", len(bounds)), strict=True)
    for own, (mean, variance), (for_mean, for_variance) in zip(bounds, values, names, strict=True):
        noisy = gate.release(for_mean, mean, own.estimate)
        spread = gate.release(for_variance, variance, own.variance) if with_variance else None
        released.append((noisy, spread))
    return released


def _names(what: str, arms: int) -> list[str]:
    return [f"{what} of arm {code}" for code in range(arms)]


@dataclass(frozen=True, slots=True)
class _Contrast:
    """The sensitivities that one number would have to have to be as noisy as a typical contrast."""

    estimate: Fraction
    variance: Fraction
    variance_cap: Fraction


def share_of(bounds: Sequence[Bounds], question: Question, part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variances: the one asked for, else one for short intervals of contrasts.

    Reads public numbers only; `part` of the outcomes' variance is expected to be left in those released.
    """
    asked = asked_share(question.settings)
    if asked is not None:
        return asked

    def over_contrasts(values: list[Fraction]) -> Fraction:
        return values[0] + sum(values[1:], Fraction(0)) / (len(values) - 1)

    # What stands for all contrasts: noise variances go as sensitivity squared.
    contrast = _Contrast(
        Fraction(sqrt(over_contrasts([one.estimate**2 for one in bounds]))),
        Fraction(sqrt(over_contrasts([one.variance**2 for one in bounds]))),
        over_contrasts([one.variance_cap for one in bounds]),
    )
    typical = [Fraction(part) * TYPICAL_SD**2 * one.width**2 * one.squares * one.factor for one in bounds]
    return variance_share(contrast, question, over_contrasts(typical))
