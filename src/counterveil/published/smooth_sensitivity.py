"""Exact matching with smooth sensitivity as it was published (SmoothDPMatching, Koga et al.).

Its privacy claim is refuted. It draws what the paper prints: one-to-one matching in row order; Laplace noise
2 S / epsilon with a bound S that is not smooth; Laplace noise on the sampling variance; Gaussian noise of the
textbook scale on ln S. Each takes a third of epsilon and of delta. What is false in it is on the page.
"""

from __future__ import annotations

# Proof: smooth_sensitivity.proof.md
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, strata_codes, strata_of_table
from counterveil.errors import refusal
from counterveil.inference import Uncertainty
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.strata import RANGE_STEPS, single_effect_sum
from counterveil.privacy import Estimand, Proof, Unit
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import EffectForm, PublishedQuestion, unproved
from counterveil.published.gate import ClassicalPlan, release_classical, release_scaled, textbook_constant
from counterveil.published.strata_sensitivity import StratumCounts, largest_discounted, two_fronts
from counterveil.results.answering import Facts
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Plan, Released
from counterveil.statistics.strata.exact_matching import caveats

PAGE = "published/smooth_sensitivity.proof.md"
REMARK = (
    "the published claim is false: the printed sensitivity is not smooth (its logarithm moves by up to 1.5 beta "
    "between neighbours), so the release of its logarithm loses more than is said, and so does the effect where "
    "epsilon n is below about 5; the textbook Gaussian scale is proved for epsilon below 1 only; and the order of "
    "rows is taken for public wherever they come from. The ledger is charged the claimed epsilon and delta"
)
# How many numbers in the smaller arm are tried at once.
_CHUNK = 32


@dataclass(frozen=True, slots=True)
class PublishedStrata:
    """The three published statistics and their printed bounds, outcomes in [0, 1]."""

    effect: Fraction
    variance: Fraction
    effect_bound: float
    variance_bound: float
    smoothness: float
    rows: int


def _smooth_matching(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by exact matching with smooth sensitivity, as in SmoothDPMatching (Koga et al.); refuted."""
    _check(question)
    question.require_acceptance(Proof.REFUTED, REMARK)
    layout = Layout.of(session.study)
    thirds = dict.fromkeys(("effect", "variance", "scale"), Fraction(1, 3))
    plan = ClassicalPlan.of(Plan.split(question.budget, thirds, "laplace"), "scale")
    found = published(session, layout, float(question.budget.epsilon) / 3, float(question.budget.delta) / 3)

    def compute(gate: Gate) -> Facts:
        effect, variance, scale = release(gate, found)
        study, width = session.study, study_width(session)
        # Unbiased for S, as published: a log-normal's mean is above its median.
        bound = exp(float(scale) - scale.noise.variance / 2)
        known = max(float(variance), 0.0) * width**2
        noise = plan.noise("effect", Fraction(2 * bound * width))
        return Facts(
            estimate=float(effect) * width,
            uncertainty=Uncertainty(noise, known, max(known, width**2)),
            method="exact matching with smooth sensitivity, as published",
            releases=(
                ("matched contrast", "Laplace noise on the printed bound"),
                ("its variance", "Laplace noise on the printed bound"),
                ("logarithm of the bound", "Gaussian noise, textbook scale"),
            ),
            not_covered=caveats(study, Caveat.STRATA_COUNTED_AS_ZERO),
            details={
                "rows": session.table.rows,
                "mechanism": "laplace",
                "beta": found.smoothness,
                "sensitivity_bound": bound,
            },
            interval_target=Target.PUBLISHED_ESTIMATE,
            independent_variance=True,
        )

    claim, drawn = (Proof.REFUTED, REMARK), ("laplace", "gaussian")
    return unproved(session, question, plan, compute, PAGE, claim, drawn)


# What analysts call.
smooth_matching = EffectForm("smooth_matching", Unit.RECORD, None, _smooth_matching)


def published(session: BaseSession, layout: Layout, epsilon: float, delta: float) -> PublishedStrata:
    """Return the statistics of the attached table; private numbers."""
    table, strata = session.table, strata_of_table(session.table, layout, prefix=True)
    rows, beta = table.rows, printed_smoothness(epsilon, delta)
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    partner, uses = match_in_order(strata_codes(table, layout), table.treated)
    total = Fraction(float(published_variance(table.outcome, partner, uses)))
    return PublishedStrata(
        Fraction(single_effect_sum(strata), RANGE_STEPS * rows),
        total / RANGE_STEPS**2 / (2 * rows**2),
        printed_smooth_change(counts, beta) / rows,
        printed_smooth_variance_change(counts, beta) / rows**2,
        beta,
        rows,
    )


def release(gate: Gate, found: PublishedStrata) -> tuple[Fraction, Fraction, Released]:
    """Return the noisy effect, variance and logarithm of the bound, as published."""
    one = Fraction(1, found.rows)
    return (
        release_scaled(gate, "effect", found.effect, 2 * Fraction(found.effect_bound), one),
        release_scaled(gate, "variance", found.variance, 2 * Fraction(found.variance_bound), one**2),
        release_classical(gate, "scale", Fraction(log(found.effect_bound)), Fraction(found.smoothness)),
    )


def study_width(session: BaseSession) -> float:
    """Return the width of the outcome's range."""
    return float(session.study.outcome_bounds.width)


def _check(question: PublishedQuestion) -> None:
    if question.estimand is not Estimand.ATE or question.budget.pure:
        raise refusal("CV-P366", estimand=question.estimand.value, budget=question.budget)


# One-to-one matching within strata, in row order: who is matched with whom, and the published variance of it.


def match_in_order(stratum: Integers, treated: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return every row's partner (-1 where its stratum lacks the other arm) and how often it is a partner.

    The j-th row of an arm is matched with row (j mod size) of the other arm of its stratum.
    """
    _, place = np.unique(stratum, return_inverse=True)
    cell = 2 * place + treated
    sizes = np.bincount(cell, minlength=2 * (int(place.max(initial=-1)) + 1))
    order = np.argsort(cell, kind="stable")
    start = np.cumsum(sizes) - sizes
    rank = np.empty(len(cell), dtype=np.int64)
    rank[order] = np.arange(len(cell)) - start[cell[order]]
    other = cell ^ 1
    there = sizes[other]
    position = start[other] + rank % np.maximum(there, 1)
    partner = np.where(there > 0, order[np.minimum(position, len(cell) - 1)], -1)
    uses = np.bincount(partner[partner >= 0], minlength=len(cell))
    return partner, uses


def published_variance(outcome: Integers | Floats, partner: Integers, uses: Integers) -> Floats:
    """Return the sum of (1 + L)^2 (y - y of the partner)^2 over matched rows, L a row's uses; a double."""
    matched = partner >= 0
    gap = (outcome[matched] - outcome[partner[matched]]).astype(np.float64)
    return np.asarray(((1.0 + uses[matched]) ** 2 * gap**2).sum())


# The printed sensitivities. Changes of the effect are in units of B / N, those of its variance in units of (B / N)^2.


def printed_smoothness(epsilon: float, delta: float) -> float:
    """Return beta = epsilon / (2 ln(2 / delta)); for the Laplace noise below it is safe to epsilon about 10."""
    return epsilon / (2 * log(2 / delta))


def printed_noise_scale(smooth: float, epsilon: float) -> float:
    """Return the scale 2 S / epsilon of the Laplace noise; false wherever the printed S is not smooth."""
    return 2 * smooth / epsilon


def printed_smooth_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) A^(k): its logarithm moves by up to 1.5 beta, not beta."""
    smaller, larger = _smaller_larger(counts)

    def value(k: int, floor: float) -> float:
        del floor
        return 4.0 * (1 + _ratio(smaller, larger, k))

    return largest_discounted(value, 8.0 * (counts.rows + 1), counts.rows, smoothness)


def printed_log_sd(smoothness: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of the Gaussian noise on ln S.

    False: ln S moves by more than beta, and the textbook constant is proved below epsilon 1 only.
    """
    return textbook_constant(delta) * smoothness / epsilon


def printed_smooth_variance_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) times the printed bound within k replacements.

    Insertion and removal take their largest counts each for itself, as the printed maximum over data sets
    leaves open; that only enlarges it.
    """

    def value(k: int, floor: float) -> float:
        del floor
        return printed_variance_within(counts, k)

    return largest_discounted(value, 64.0 * (counts.rows + 2) ** 2, counts.rows, smoothness)


def _smaller_larger(counts: StratumCounts) -> tuple[Integers, Integers]:
    smaller = np.minimum(counts.treated, counts.control)
    larger = np.maximum(counts.treated, counts.control)
    kept = two_fronts(smaller, larger)
    return smaller[kept], larger[kept]


def _ratio(smaller: Integers, larger: Integers, k: int) -> float:
    left = np.maximum(1, smaller - k)
    return float(np.where(k >= smaller, larger + k, -(-(larger + k + 1) // left)).max(initial=0))


def printed_variance_within(counts: StratumCounts, k: int) -> float:
    """Return the printed bound on the local change of the variance within k replacements.

    Each printed form grows in the larger arm while the smaller stands still, so that for every number in the
    smaller arm only the largest number that any stratum can put beside it has to be tried.
    """
    inserted = removed = 0.0
    one, two = np.append(counts.treated, counts.control), np.append(counts.control, counts.treated)
    most, first = int(one.max()) + k, max(0, int(one.min()) - k)
    while first <= min(most, counts.rows) and (
        first == 0 or _most_from(first, most) > min(inserted, removed)
    ):
        smaller = np.arange(first, min(first + _CHUNK, counts.rows + 1))
        moved = smaller - one[:, None]
        beside = np.where(np.abs(moved) <= k, two[:, None] + k - np.maximum(0, moved), -1).max(axis=0)
        within = beside >= 0
        a = smaller[within].astype(np.float64)
        b = np.minimum(beside, counts.rows - smaller)[within].astype(np.float64)
        inserted = max(inserted, float(_inserted(a, b).max(initial=0)))
        removed = max(removed, float(_removed(a, b).max(initial=0)))
        first += _CHUNK
    return (inserted + removed) / 2


def _most_from(smaller: int, larger: int) -> float:
    """Return what no printed form exceeds where the arms have at least `smaller` and at most `larger` people.

    Every form is a sum of terms 2 (a + i) (2 + (b + j) / a)^2, 2 (b + i) (1 + 3)^2 and (2 + (b + j) / a)^2 with i
    and j up to 2; the bound falls in a = `smaller`.
    """
    ratio = (larger + 2) / smaller
    steep = 8 * (1 + 2 / smaller) * (larger + 2) + 2 * (1 + 2 / smaller) * ratio * (larger + 2)
    return 42.0 * (larger + 4) + steep + (2 + ratio) ** 2


def _inserted(treated: Floats, control: Floats) -> Floats:
    """Return LS_g^+ of the appendix, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    both = _either(_one_inserted, np.minimum(treated, control), single)
    return np.where((treated > 0) & (control > 0), both, (1 + single) ** 2 + 4 * single) * (single > 0)


def _one_inserted(t: Floats, c: Floats) -> Floats:
    return 2 * t * _square(c, t) + 2 * c * _square(t + 1, c) + _square(c, t + 1)


def _removed(treated: Floats, control: Floats) -> Floats:
    """Return the appendix's maximum of LS_g^- after one insertion, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    return _either(_one_removed, np.minimum(treated, control), single) * (single > 0)


def _one_removed(t: Floats, c: Floats) -> Floats:
    grown = 2 * (1 + c) * _square(1 + t, c) + 2 * (1 + t) * _square(1 + c, 1 + t) + _square(1 + t, c)
    kept = 2 * (2 + t) * _square(c, 1 + t) + 2 * c * _square(2 + t, c) + _square(c, 1 + t)
    return np.maximum(grown, kept)


def _either(form: Callable[[Floats, Floats], Floats], smaller: Floats, larger: Floats) -> Floats:
    """Return the larger of form(smaller, larger) and form(larger, smaller); the first where an arm is empty."""
    empty = smaller == 0
    first = np.append(smaller, np.where(empty, smaller, larger))
    second = np.append(larger, np.where(empty, larger, smaller))
    found = form(first, second)
    return np.maximum(found[: len(smaller)], found[len(smaller) :])


def _square(above: Floats, below: Floats) -> Floats:
    """Return (1 + ceil(above / below))^2; where nobody is below, the caller does not use it."""
    return (1 + np.ceil(above / np.maximum(below, 1))) ** 2
