"""Exact matching on strata with noise that follows a smooth bound: `published.smooth_matching` as it can be proved.

The noise has the scale that the counts of the strata call for; that scale is private. Released beside the effect
are the logarithm of a bound M on every person's weight, which the interval is made from, and a variance.

Lineage: smooth sensitivity (Nissim, Raskhodnikova and Smith 2007).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np

from counterveil.data import Layout
from counterveil.errors import CounterveilError, ParameterError, refusal
from counterveil.inference import Uncertainty, tail_point, variance_allowance
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.strata import (
    RANGE_STEPS,
    ROUNDING,
    Strata,
    effect_sum,
    order_free_variance,
    pooled_squares,
)
from counterveil.privacy import Budget, Estimand, Unit
from counterveil.privacy.caveats import Caveat
from counterveil.published.asking import EffectForm
from counterveil.published.strata_sensitivity import (
    StratumCounts,
    pooled_change,
    smooth_change,
    smooth_variance_change,
    smooth_weight,
)
from counterveil.results.answering import Facts, built
from counterveil.results.codec import unsure_noise
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.statistics.strata.exact_matching import caveats

PAGES = (
    "published/smooth_strata.proof.md",
    "published/stratum_counts.proof.md",
    "published/strata_variance.proof.md",
)
# A logarithm taken in doubles is off by less than this.
_LOG_ROUNDING = Fraction(1, 2**44)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The released numbers, in units of the outcome's width where they are effects; shares are of all rows."""

    effect: float
    weight: float  # the released bound on a person's weight
    variance: float  # G / N^2, or Q where that was released instead
    share: float  # of the estimand's people; 1 for ATE


def _smooth_matching(session: BaseSession, question: Question) -> Result:
    """Return the effect by exact matching on all covariates with noise that follows a smooth bound, as proved."""
    if not question.budget.pure:
        raise refusal("CV-P363", budget=question.budget)
    strata = session.strata(Layout.of(session.study))
    design = smooth_design(PublicNumbers(strata.rows, strata.public, question.budget, question.estimand))
    plan = Plan.split(question.budget, dict(design.shares), question.mechanism, design.kinds())

    def compute(gate: Gate) -> dict[str, object]:
        return asdict(release(gate, strata, design, question.estimand))

    # What is known of the error takes quantiles of the noise: it is worked out from what was released.
    stored: dict[str, Any] = session.run(question.request(plan, session.study), compute)
    drawn, rows, width = Drawn(**stored), strata.rows, float(session.study.outcome_bounds.width)
    # A released share of people divides both the estimate and its variance.
    shared = "share" in dict(design.shares)
    found = Facts(
        estimate=drawn.effect * width / drawn.share,
        uncertainty=_uncertainty(question, plan, design, drawn, rows, width),
        guarantee=question.guarantee(session, PAGES, mechanisms=(question.mechanism, "lomax", "laplace")),
        method="exact matching on strata, smooth sensitivity",
        releases=_releases(rows, design),
        not_covered=caveats(session.study, Caveat.STRATA_COUNTED_AS_ZERO),
        details={
            "rows": rows,
            "strata": strata.public,
            "smoothness": float(design.effect),
            "max_weight": drawn.weight,
            "mechanism": "lomax",
            "budget": plan.shares,
            **({"target_share": drawn.share} if shared else {}),
        },
        independent_variance=not shared,
    )
    return built(Result, session, question, found)


# What analysts call.
smooth_matching_proved = EffectForm(
    "smooth_matching_proved", Unit.RECORD, None, _smooth_matching, printed=False
)


def release(gate: Gate, strata: Strata, design: SmoothDesign, estimand: Estimand) -> Drawn:
    """Return the released numbers of one design."""
    rows, word = strata.rows, estimand.value
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    smoothness, slack = design.effect, 2 * ROUNDING * rows
    effect = gate.release_smooth(
        "effect",
        effect_sum(strata, word) / RANGE_STEPS / rows,
        smooth_change(counts, smoothness, word, "all", slack) / rows,
        smoothness,
        Fraction(1, rows),
    )
    weight = float(smooth_weight(counts, smoothness, word, slack))
    variance, bound = _release_variance(gate, strata, counts, design, word)
    scale = max(weight, sqrt(bound / float(VARIANCE_PER_WEIGHT)))
    known = gate.release_cells("scale", [Fraction(log(scale))], design.scale_sensitivity + 2 * _LOG_ROUNDING)
    share = _release_share(gate, strata, estimand)
    return Drawn(float(effect), float(np.exp(known.floats()[0])), variance, share)


def _release_variance(
    gate: Gate, strata: Strata, counts: StratumCounts, design: SmoothDesign, word: str
) -> tuple[float, float]:
    """Return the released variance, and the smooth bound of G (0 where pooled squares are released)."""
    rows, square = strata.rows, Fraction(1, RANGE_STEPS**2)
    if design.variance is None:
        pooled = gate.release("variance", pooled_squares(strata) * square, pooled_change(rows))
        return float(pooled), 0.0
    bound = smooth_variance_change(counts, design.variance)
    value = order_free_variance(strata, word) * square / rows**2
    found = gate.release_smooth("variance", value, bound / rows**2, design.variance, Fraction(1, rows**2))
    return float(found), float(bound)


def _release_share(gate: Gate, strata: Strata, estimand: Estimand) -> float:
    """Return the share of the estimand's people; nothing is released where they are everyone."""
    if estimand is Estimand.ATE:
        return 1.0
    people = strata.treated if estimand is Estimand.ATT else strata.control
    share = gate.release("share", Fraction(int(people.sum()), strata.rows), Fraction(1, strata.rows))
    return min(max(float(share), float(LEAST_SHARE)), 1.0)


def _uncertainty(
    question: Question, plan: Plan, design: SmoothDesign, drawn: Drawn, rows: int, width: float
) -> Uncertainty:
    """Return the uncertainty of the effect of the people it speaks for."""
    log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
    unit = width / drawn.share
    noise = unsure_noise(
        plan.smooth_noise("effect", design.effect), 2 * drawn.weight / rows * unit, log_scale
    )
    extra = 0.0
    if "share" in dict(design.shares):
        extra = plan.noise("share", Fraction(1, rows)).variance * (drawn.effect * unit / drawn.share) ** 2
    if design.variance is None:
        factor = variance_allowance(log_scale, 1 - question.level) * (drawn.weight * unit / rows) ** 2
        squares = plan.noise("variance", pooled_change(rows) * Fraction(factor))
        return Uncertainty(noise, factor * drawn.variance, factor * rows / 2, squares, extra)
    scale = float(VARIANCE_PER_WEIGHT) * (drawn.weight * unit / rows) ** 2
    variance = unsure_noise(plan.smooth_noise("variance", design.variance), scale, 2 * log_scale)
    return Uncertainty(noise, drawn.variance * unit**2, unit**2 / 2, variance, extra)


def _releases(rows: int, design: SmoothDesign) -> tuple[tuple[str, str], ...]:
    found = [
        ("sum of stratum effects / n", "lomax noise; the scale follows the data"),
        ("logarithm of a bound on weights", f"sensitivity {float(design.scale_sensitivity):.6g}"),
        ("pooled squares within strata", "sensitivity 5/4 squared ranges")
        if design.variance is None
        else ("variance of the effect", "lomax noise; the scale follows the data"),
    ]
    if "share" in dict(design.shares):
        found.append(("share of the estimand's people", f"sensitivity {1 / rows:.6g}"))
    return tuple(found)


# How the budget is spent, chosen from public numbers only.

# A bound of G that is this many times what equal strata have at least is too loose to be useful.
_LOOSE = 2.0
_FOR_SCALE = [Fraction(k, 20) for k in (1, 2, 4, 6)]
_SMOOTHNESS = [Fraction(1, k) for k in (4, 6, 10, 20, 40)]
# A steeper bound would hardly be lower: at this rate one replacement counts for a seventh.
_STEEPEST = Fraction(2)
# Parts of the budget for the variance and for the share of the estimand's people.
_FOR_VARIANCE = Fraction(3, 20)
_FOR_SHARE = Fraction(1, 10)
# The bound of G against the squared weight, for strata in balance: 6 against 2 squared.
VARIANCE_PER_WEIGHT = Fraction(3, 2)


@dataclass(frozen=True, slots=True)
class SmoothDesign:
    """The split of the budget and the rates of the smooth bounds.

    `variance` is that of G, None where pooled squares are released instead.
    """

    shares: tuple[tuple[str, Fraction], ...]
    effect: Fraction
    variance: Fraction | None

    @property
    def scale_sensitivity(self) -> Fraction:
        """How far the logarithm of the released scale can move."""
        return self.effect if self.variance is None else max(self.effect, self.variance / 2)

    def kinds(self) -> dict[str, Kind]:
        """Return what the releases are planned as."""
        smooth = ("effect",) if self.variance is None else ("effect", "variance")
        return dict.fromkeys(smooth, Kind.SMOOTH) | {"scale": Kind.CELLS}


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """What the design may look at."""

    rows: int
    strata: int
    budget: Budget
    estimand: Estimand


@lru_cache(maxsize=64)
def smooth_design(numbers: PublicNumbers) -> SmoothDesign:
    """Return the design with the narrowest interval for equal strata with half of everyone treated."""
    reference = _reference(numbers)
    fixed = _fixed_shares(numbers)
    left = 1 - sum(fixed.values(), Fraction(0))
    best: tuple[float, SmoothDesign] | None = None
    for part, rate in product(_FOR_SCALE, _SMOOTHNESS):
        shares = {"effect": left * (1 - part), "scale": left * part} | fixed
        amount = numbers.budget.epsilon * shares["effect"]
        design = SmoothDesign(tuple(shares.items()), min(amount * rate, _STEEPEST), None)
        try:
            width = _half_width(numbers, design, reference)
        except ParameterError:
            continue  # this rate allows no noise
        if best is None or width < best[0]:
            best = width, design
    if best is None:
        raise _no_noise_possible(numbers)
    return _with_variance(numbers, best[1], reference)


def _fixed_shares(numbers: PublicNumbers) -> dict[str, Fraction]:
    shares = {"variance": _FOR_VARIANCE}
    if numbers.estimand is not Estimand.ATE:
        shares["share"] = _FOR_SHARE
    return shares


def _reference(numbers: PublicNumbers) -> StratumCounts:
    """Return equal strata in balance, as many as public numbers allow."""
    arm = max(1, numbers.rows // (2 * numbers.strata))
    strata = max(1, numbers.rows // (2 * arm))
    counts = np.array([arm], dtype=np.int64)
    found = StratumCounts.of(counts, counts, 1)
    return StratumCounts(found.treated, found.control, np.array([strata]), 2 * arm * strata)


def _half_width(numbers: PublicNumbers, design: SmoothDesign, reference: StratumCounts) -> float:
    """Return a number proportional to the 95 % half-width of an interval for the noise alone."""
    plan = Plan.split(numbers.budget, dict(design.shares), "laplace", design.kinds())
    noise = plan.smooth_noise("effect", design.effect)
    weight = smooth_weight(reference, design.effect, numbers.estimand.value)
    log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
    return float(weight) * tail_point(noise.distribution(Fraction(1)), log_scale, 0.05)


def _with_variance(numbers: PublicNumbers, design: SmoothDesign, reference: StratumCounts) -> SmoothDesign:
    """Return the design with a smooth release of G, where its bound is not too loose for that."""
    amount = numbers.budget.epsilon * dict(design.shares)["variance"]
    smoothness = min(amount / 6, 2 * design.effect, _STEEPEST)
    weight = smooth_weight(reference, design.effect, numbers.estimand.value)
    if smooth_variance_change(reference, smoothness) > _LOOSE * VARIANCE_PER_WEIGHT * weight**2:
        return design
    return SmoothDesign(design.shares, design.effect, smoothness)


def _no_noise_possible(numbers: PublicNumbers) -> CounterveilError:
    return refusal("CV-P364", budget=numbers.budget)
