"""Exact matching with smooth sensitivity as it was published (SmoothDPMatching): kept to be compared with.

Its privacy claim is refuted. It draws what the paper prints: one-to-one matching in row order; Laplace noise
2 S / epsilon with a bound S that is not smooth; Laplace noise on the sampling variance; Gaussian noise of the
textbook scale on ln S. Each takes a third of epsilon and of delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log

from counterveil.data import Layout, strata_codes
from counterveil.errors import ParameterError
from counterveil.inference import Uncertainty
from counterveil.numerics.strata import RANGE_STEPS, match_in_order, published_variance, single_effect_sum
from counterveil.privacy import Estimand, Proof
from counterveil.published.exact_matching_sensitivity import (
    printed_smooth_change,
    printed_smooth_variance_change,
    printed_smoothness,
)
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, Kind, Plan, Released
from counterveil.statistics.strata.bounded import caveats
from counterveil.statistics.strata.data import StratifiedSettings
from counterveil.statistics.strata.variance_sensitivity import StratumCounts

PAGE = "published/exact_matching_sensitivity.proof.md"
REMARK = (
    "the published claim is false: the printed sensitivity is not smooth (its logarithm moves by up to 1.5 beta "
    "between neighbours), so the release of its logarithm loses more than is said, and so does the effect where "
    "epsilon n is below about 5; the textbook Gaussian scale is proved for epsilon below 1 only. The ledger is "
    "charged the claimed epsilon and delta"
)
_THIRD = Fraction(1, 3)


@dataclass(frozen=True, slots=True)
class Published:
    """The three published statistics and their printed bounds, outcomes in [0, 1]."""

    effect: Fraction
    variance: Fraction
    effect_bound: float
    variance_bound: float
    smoothness: float
    rows: int


def stratified_paper(custody: Custody, question: Question) -> Result:
    """Return the published form, marked as refuted."""
    settings = question.settings or StratifiedSettings(sensitivity="smooth", pairing="single")
    _check(question)
    question.require_acceptance(Proof.REFUTED, REMARK)
    custody.attach()
    layout = Layout.of(custody.study, settings.strata)
    plan = Plan.split(
        question.budget,
        dict.fromkeys(("effect", "variance", "scale"), _THIRD),
        "laplace",
        {"scale": Kind.CLASSICAL},
    )
    found = published(custody, layout, float(question.budget.epsilon) / 3, float(question.budget.delta) / 3)

    def compute(gate: Gate) -> dict[str, object]:
        effect, variance, scale = release(gate, found)
        return _result(custody, question, plan, found, effect, variance, scale).stored()

    return Result.from_dict(custody.run(question.request(plan, custody.study), compute))


def published(custody: Custody, layout: Layout, epsilon: float, delta: float) -> Published:
    """Return the statistics of the attached table; private numbers."""
    table, strata = custody.table, custody.strata(layout, prefix=True)
    rows, beta = table.rows, printed_smoothness(epsilon, delta)
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    partner, uses = match_in_order(strata_codes(table, layout), table.treated)
    total = Fraction(float(published_variance(table.outcome, partner, uses)))
    return Published(
        Fraction(single_effect_sum(strata), RANGE_STEPS * rows),
        total / RANGE_STEPS**2 / (2 * rows**2),
        printed_smooth_change(counts, beta) / rows,
        printed_smooth_variance_change(counts, beta) / rows**2,
        beta,
        rows,
    )


def release(gate: Gate, found: Published) -> tuple[Fraction, Fraction, Released]:
    """Return the noisy effect, variance and logarithm of the bound, as published."""
    one = Fraction(1, found.rows)
    return (
        gate.release_scaled("effect", found.effect, 2 * Fraction(found.effect_bound), one),
        gate.release_scaled("variance", found.variance, 2 * Fraction(found.variance_bound), one**2),
        gate.release_classical("scale", Fraction(log(found.effect_bound)), Fraction(found.smoothness)),
    )


def _result(
    custody: Custody,
    question: Question,
    plan: Plan,
    found: Published,
    effect: Fraction,
    variance: Fraction,
    scale: Released,
) -> Result:
    study, width = custody.study, study_width(custody)
    # Unbiased for S, as published: a log-normal's mean is above its median.
    bound = exp(float(scale) - scale.noise.variance / 2)
    known = max(float(variance), 0.0) * width**2
    noise = plan.noise("effect", Fraction(2 * bound * width))
    return Result(
        estimate=float(effect) * width,
        uncertainty=Uncertainty(noise, known, max(known, width**2)),
        guarantee=question.guarantee(custody, PAGE, (REMARK,), Proof.REFUTED, laws=("laplace", "gaussian")),
        method="exact matching with smooth sensitivity, as published",
        **question.effect_terms(study),
        releases=(
            ("matched contrast", "Laplace noise on the printed bound"),
            ("its variance", "Laplace noise on the printed bound"),
            ("logarithm of the bound", "Gaussian noise, textbook scale"),
        ),
        not_covered=caveats(study, "people in strata that lack an arm: their effect is counted as zero"),
        details={
            "rows": custody.table.rows,
            "law": "laplace",
            "beta": found.smoothness,
            "sensitivity_bound": bound,
        },
        interval_of="the published estimate; that its variance and its scale are noisy themselves is ignored",
        variance_apart=True,
    )


def study_width(custody: Custody) -> float:
    """Return the width of the outcome's range."""
    return float(custody.study.outcome_bounds.width)


def _check(question: Question) -> None:
    if question.estimand is not Estimand.ATE or question.budget.pure:
        raise ParameterError(
            "CV-P366",
            "the published form is for the ATE and needs a delta",
            expected='estimand="ATE" and delta > 0',
            got=f"estimand={question.estimand.value!r}, {question.budget}",
            fix="pass delta=1e-5 as published, or leave variant out",
        )
