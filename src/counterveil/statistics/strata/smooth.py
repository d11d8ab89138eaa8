"""Exact matching on strata with noise that follows a smooth bound of the local sensitivity.

The noise has the scale that the counts of the strata call for; that scale is private. Released beside the effect
are the logarithm of a bound M on every person's weight, which the interval is made from, and a variance.

Lineage: smooth sensitivity (Nissim, Raskhodnikova and Smith 2007).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import isfinite, log, sqrt
from typing import Any

import numpy as np

from counterveil.inference import Uncertainty, UnsureScale, variance_allowance
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.strata import (
    RANGE_STEPS,
    ROUNDING,
    Strata,
    effect_sum,
    order_free_variance,
    pooled_squares,
    single_effect_sum,
    unmatched_rows,
)
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, StrataLeftOut
from counterveil.results.effect import unsure_noise
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Kind, Plan, Session, SmoothNoise
from counterveil.settings import Stratified
from counterveil.statistics.strata.bounded import caveats
from counterveil.statistics.strata.data import StrataReader, read_strata
from counterveil.statistics.strata.sensitivity import smooth_unmatched_change
from counterveil.statistics.strata.smooth_plan import (
    VARIANCE_PER_WEIGHT,
    PublicNumbers,
    SmoothDesign,
    check_smooth_budget,
    given_smoothness,
    smooth_design,
)
from counterveil.statistics.strata.smooth_sensitivity import smooth_change, smooth_weight
from counterveil.statistics.strata.variance_sensitivity import (
    StratumCounts,
    pooled_change,
    smooth_variance_change,
)

PAGES = (
    "statistics/strata/smooth_sensitivity.proof.md",
    "statistics/strata/stratum_counts.proof.md",
    "statistics/strata/strata_variance.proof.md",
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
    unmatched: float


def smooth_effect(session: Session, question: Question, settings: Stratified) -> Result:
    """Return the effect with noise that follows a smooth bound; n and the layout are public, nothing else is."""
    check_smooth_budget(question.budget, settings.noise)
    reader = read_strata(session, settings)
    numbers = PublicNumbers(
        reader.rows,
        reader.public,
        Budget(reader.left * question.budget.epsilon, question.budget.delta),
        question.estimand,
        settings.noise,
        settings.unmatched,
        given_smoothness(settings.smoothness),
    )
    design = smooth_design(numbers)
    if question.mechanism == "gaussian":
        # A delta pays for Laplace noise on the effect here; single numbers beside it have pure noise.
        question = replace(question, mechanism="staircase")
    plan = Plan.split(
        question.budget,
        reader.shares(dict(design.shares)),
        question.mechanism,
        reader.kinds() | design.kinds(),
    )

    def compute(gate: Gate) -> dict[str, object]:
        strata, cuts = reader.released(gate)
        return {"drawn": asdict(release(gate, strata, design, question.estimand, settings)), "cuts": cuts}

    # What is known of the error takes quantiles of the noise: it is worked out from what was released.
    stored: dict[str, Any] = session.run(question.request(plan, session.study), compute)
    drawn = Drawn(**stored["drawn"])
    return _result(session, question, reader, settings, plan, design, drawn, stored["cuts"])


def release(
    gate: Gate, strata: Strata, design: SmoothDesign, estimand: Estimand, settings: Stratified
) -> Drawn:
    """Return the released numbers of one design."""
    rows, word, single = strata.rows, estimand.value, settings.pairing == "single"
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    smoothness, slack = design.effect.smoothness, 2 * ROUNDING * rows
    total = Fraction(single_effect_sum(strata)) if single else effect_sum(strata, word)
    effect = gate.release_smooth(
        "effect",
        total / RANGE_STEPS / rows,
        smooth_change(counts, smoothness, word, settings.pairing, slack) / rows,
        design.effect,
        Fraction(1, rows),
    )
    weight = float(smooth_weight(counts, smoothness, word, slack))
    # One to one, a person can be matched once more than evenly.
    weight += 1.0 if single else 0.0
    variance, bound = _release_variance(gate, strata, counts, design, word)
    scale = max(weight, sqrt(bound / float(VARIANCE_PER_WEIGHT)))
    known = gate.release_cells("scale", [Fraction(log(scale))], design.scale_sensitivity + 2 * _LOG_ROUNDING)
    share, unmatched = _release_shares(gate, strata, counts, estimand, design)
    return Drawn(float(effect), float(np.exp(known.floats()[0])), variance, share, unmatched)


def _release_variance(
    gate: Gate, strata: Strata, counts: StratumCounts, design: SmoothDesign, word: str
) -> tuple[float, float]:
    """Return the released variance, and the smooth bound of G (0 where pooled squares are released)."""
    rows, square = strata.rows, Fraction(1, RANGE_STEPS**2)
    if design.variance is None:
        pooled = gate.release("variance", pooled_squares(strata) * square, pooled_change(rows))
        return float(pooled), 0.0
    bound = smooth_variance_change(counts, design.variance.smoothness)
    value = order_free_variance(strata, word) * square / rows**2
    found = gate.release_smooth("variance", value, bound / rows**2, design.variance, Fraction(1, rows**2))
    return float(found), float(bound)


def _release_shares(
    gate: Gate, strata: Strata, counts: StratumCounts, estimand: Estimand, design: SmoothDesign
) -> tuple[float, float]:
    """Return the share of the estimand's people, and of those in strata that lack an arm where asked for."""
    rows, planned = strata.rows, dict(design.shares)
    share, unmatched = 1.0, 0.0
    if "share" in planned:
        people = strata.treated if estimand is Estimand.ATT else strata.control
        share = float(gate.release("share", Fraction(int(people.sum()), rows), Fraction(1, rows)))
    if "unmatched" in planned:
        noise = SmoothNoise("lomax", design.effect.smoothness)
        bound = smooth_unmatched_change(counts, noise.smoothness, estimand.value) / rows
        value = Fraction(unmatched_rows(strata, estimand.value), rows)
        unmatched = float(gate.release_smooth("unmatched", value, bound, noise, Fraction(1, rows)))
    return min(max(share, float(LEAST_SHARE)), 1.0), min(max(unmatched, 0.0), 1.0)


def _uncertainty(
    question: Question, plan: Plan, design: SmoothDesign, drawn: Drawn, rows: int, width: float
) -> Uncertainty:
    """Return the uncertainty of the effect of the people it speaks for."""
    log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
    people = max(drawn.share - drawn.unmatched, float(LEAST_SHARE))
    unit = width / people
    noise = unsure_noise(
        plan.smooth_noise("effect", design.effect), 2 * drawn.weight / rows * unit, log_scale
    )
    extra = 0.0
    estimate = drawn.effect * unit
    if "share" in dict(design.shares):
        extra += plan.noise("share", Fraction(1, rows)).variance
    if "unmatched" in dict(design.shares):
        lomax = plan.smooth_noise("unmatched", SmoothNoise("lomax", design.effect.smoothness))
        extra += _as_normal(unsure_noise(lomax, 2 * drawn.weight / rows, log_scale))
    extra *= (estimate / people) ** 2
    if design.variance is None:
        factor = variance_allowance(log_scale, 1 - question.level) * (drawn.weight * unit / rows) ** 2
        squares = plan.noise("variance", pooled_change(rows) * Fraction(factor))
        return Uncertainty(noise, factor * drawn.variance, factor * rows / 2, squares, extra)
    scale = float(VARIANCE_PER_WEIGHT) * (drawn.weight * unit / rows) ** 2
    variance = unsure_noise(plan.smooth_noise("variance", design.variance), scale, 2 * log_scale)
    return Uncertainty(noise, drawn.variance * unit**2, unit**2 / 2, variance, extra)


def _as_normal(mechanism: UnsureScale) -> float:
    """Return the variance of a normal mechanism with the same 95 % range, where the noise has no variance."""
    if isfinite(mechanism.variance):
        return mechanism.variance
    return float(mechanism.quantile(np.array([0.975]))[0] / 1.96) ** 2


def _result(
    session: Session,
    question: Question,
    reader: StrataReader,
    settings: Stratified,
    plan: Plan,
    design: SmoothDesign,
    drawn: Drawn,
    cuts: dict[str, float | str],
) -> Result:
    study, rows = session.study, reader.rows
    width = float(study.outcome_bounds.width)
    people = max(drawn.share - drawn.unmatched, float(LEAST_SHARE))
    pages = (*PAGES, "statistics/strata/unmatched.proof.md") if settings.unmatched else PAGES
    mechanisms = (plan.smooth_noise("effect", design.effect).name, "laplace")
    lacking = (
        StrataLeftOut(question.estimand, None)
        if settings.unmatched
        else Caveat.STRATA_COUNTED_AS_ZERO_SHARE_UNKNOWN
    )
    return Result(
        estimate=drawn.effect * width / people,
        uncertainty=_uncertainty(question, plan, design, drawn, rows, width),
        guarantee=reader.guarantee(question, pages, mechanisms),
        method=f"exact matching on strata ({settings.pairing}), smooth sensitivity",
        **question.effect_terms(study),
        releases=_releases(reader, design),
        not_covered=caveats(study, lacking),
        details=_details(reader, design, drawn, settings) | {"budget": plan.shares} | cuts,
        # A released share of people divides both the estimate and its variance.
        variance_apart=not {"share", "unmatched"} & dict(design.shares).keys(),
    )


def _details(
    reader: StrataReader, design: SmoothDesign, drawn: Drawn, settings: Stratified
) -> dict[str, float | str]:
    found: dict[str, float | str] = {
        "rows": reader.rows,
        "strata": reader.public,
        "smoothness": float(design.effect.smoothness),
        "max_weight": drawn.weight,
        "mechanism": settings.noise,
    }
    if "share" in dict(design.shares):
        found["target_share"] = drawn.share
    if settings.unmatched:
        found["unmatched_share"] = drawn.unmatched
    return found


def _releases(reader: StrataReader, design: SmoothDesign) -> tuple[tuple[str, str], ...]:
    planned = dict(design.shares)
    found = [
        ("sum of stratum effects / n", f"{design.effect.mechanism} noise; the scale follows the data"),
        ("logarithm of a bound on weights", f"sensitivity {float(design.scale_sensitivity):.6g}"),
        (
            "pooled squares within strata" if design.variance is None else "variance of the effect",
            "sensitivity 5/4 squared ranges"
            if design.variance is None
            else f"{design.variance.mechanism} noise; the scale follows the data",
        ),
    ]
    if "share" in planned:
        found.append(("share of the estimand's people", f"sensitivity {1 / reader.rows:.6g}"))
    if "unmatched" in planned:
        found.append(("share in strata that lack an arm", "lomax noise; the scale follows the data"))
    return (*reader.releases(), *found)
