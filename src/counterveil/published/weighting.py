"""Private inverse probability weighting as it was published (PP-IPW, Algorithm 1): kept to be compared with.

Its privacy claim is refuted: the noise of the weighted sum is calibrated for bounds of the true propensity,
while the sum is divided by the noisy fitted one, which nothing bounds. What is drawn is what is printed:
weights of a logistic model without intercept on features of length one at most, the classical Gaussian
constant, no clipping, no centring.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.inference import Uncertainty
from counterveil.numerics.arrays import Floats, Indices
from counterveil.numerics.gaussian_profile import delta_of
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Estimand, Proof, Unit
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import EffectForm, PublishedQuestion, unproved
from counterveil.published.gate import textbook_constant
from counterveil.published.matching import fit_without_intercept
from counterveil.results.answering import Facts
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.session.plan import in_branches

PAGE = "statistics/moments/inverse_weighting.proof.md"
REMARK = (
    "the published claim is false: the weighted sum is divided by the noisy score, which is not clipped, while its "
    "noise is made for bounds of the true propensity. The Gaussian constant is proved for epsilon below 1 only and "
    "fails from about 8. The published effects on the treated and on the untreated are multiplied by the share of "
    "that arm: they estimate another quantity. Details give the delta that this draw lost at its epsilon"
)
_SHRUNK = {
    Estimand.ATT: Target.TREATED_TIMES_SHARE,
    Estimand.ATC: Target.UNTREATED_TIMES_SHARE,
}

# Bounds that the paper assumes for the true propensity, which nothing enforces; the penalty of the propensity model;
# and the part of the rows that it is fitted on.
LOWEST, HIGHEST = 0.1, 0.9
PENALTY = 0.1
_FIT_PART = 0.5
# A standard deviation beyond this says no more, and its square would not be a double.
_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class PublishedSum:
    """A draw of the published form: its value, before and after the last noise, and its two sensitivities.

    `claimed` is the published bound of how far a record moves the sum, `true` the bound at the noisy weights.
    """

    partly: float
    value: float
    claimed: Fraction
    true: float


def _ipw(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by inverse probability weighting, as in PP-IPW (Lee et al.); refuted."""
    require_covariates(session.study, "ipw")
    plan = paper_plan(question)
    question.require_acceptance(Proof.REFUTED, REMARK)

    def compute(gate: Gate) -> Facts:
        parts = two_parts(session.table.rows, fit_rows(session.table.rows))
        published = release(gate, plan, session.table, parts, question.estimand)
        noise = plan.noise("effect", published.claimed * classical(plan, "effect"))
        rows = session.table.rows
        cap = min(published.true / 2, _LARGEST) ** 2 * rows
        target = _SHRUNK.get(question.estimand, Target.UNCLIPPED_CONTRAST)
        return Facts(
            estimate=published.value,
            uncertainty=Uncertainty(noise, cap, cap),
            method="inverse probability weighting, as published",
            releases=(
                ("weights of the propensity model", "Gaussian noise with the classical constant"),
                (
                    "weighted sum",
                    f"sensitivity claimed {float(published.claimed):.4g}, at most {published.true:.4g}",
                ),
            ),
            not_covered=(
                Caveat.ERRORS_OF_NOISY_WEIGHTS,
                Caveat.CONFOUNDING_LEFT_BY_PENALTY,
            ),
            details={
                "rows": rows,
                "mechanism": "gaussian, classical constant",
                "claimed_sensitivity": float(published.claimed),
                "max_sensitivity": published.true,
                "max_delta_loss": lost_delta(question, published),
            },
            interval_target=target,
        )

    pages = (PAGE, "session/branches.proof.md")
    return unproved(session, question, plan, compute, pages, (Proof.REFUTED, REMARK))


# What analysts call.
ipw = EffectForm("ipw", Unit.RECORD, None, _ipw)


def paper_plan(question: PublishedQuestion) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.mechanism != "gaussian":
        raise refusal("CV-P421", budget=question.budget)
    chains = [
        ({"weights": Fraction(1)}, {"weights": Kind.VECTOR}),
        ({"effect": Fraction(1)}, dict[str, Kind]()),
    ]
    return in_branches(question.budget, question.mechanism, chains)


def classical(plan: Plan, name: str) -> Fraction:
    """Return by what a sensitivity is multiplied so that the plan's noise has the classical constant."""
    kind = Kind.VECTOR if name == "weights" else Kind.NUMBER
    epsilon, delta = float(plan.budget.epsilon), float(plan.budget.delta)
    return plan.amount(name, kind) * Fraction(textbook_constant(delta) / epsilon)


def fit_rows(rows: int) -> int:
    """Return how many rows the propensity model is fitted on: at least one, and one is left."""
    return min(max(round(_FIT_PART * rows), 1), rows - 1)


def unit_rows(features: UnitFeatures, table: Table) -> Floats:
    """Return features whose rows are no longer than one, by public numbers."""
    found = features.values(table)
    found /= sqrt(float(features.squared_reach))
    return found


def release(
    gate: Gate,
    plan: Plan,
    table: Table,
    parts: tuple[Indices, Indices],
    estimand: Estimand,
) -> PublishedSum:
    """Return one draw of the published algorithm on the two parts of the rows."""
    first, second = parts
    z = unit_rows(UnitFeatures.of(table.study), table)
    fitted = fit_without_intercept(z[first], table.treated[first], PENALTY)
    claimed = 2 / (len(first) * Fraction(PENALTY)) * classical(plan, "weights")
    weights = gate.release_vector("weights", [Fraction(w) for w in fitted], claimed).floats()
    steps = table.outcome[second].astype(np.float64)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * steps
    partly = weighted_sum(z[second] @ weights, table.treated[second], y, estimand)
    largest = max(abs(bound) for bound in table.study.outcome_range)
    unit = 2 * largest / len(second)
    bound = unit * Fraction(_claimed_weight(estimand))
    value = gate.release("effect", Fraction(partly), bound * classical(plan, "effect")).value
    odds = exp(min(float(np.linalg.norm(weights)), 700.0))
    true = float(unit) * (1 + odds if estimand is Estimand.ATE else odds)
    return PublishedSum(partly, float(value), bound, true)


def weighted_sum(logits: Floats, treated: NDArray[np.bool_], y: Floats, estimand: Estimand) -> float:
    """Return the published mean over rows; each weight is what the unclipped noisy score gives."""
    with np.errstate(over="ignore"):
        odds = np.exp(np.where(treated, -logits, logits))
    if estimand is Estimand.ATE:
        weights = 1 + odds
    else:
        own = treated if estimand is Estimand.ATT else ~treated
        weights = np.where(own, 1.0, odds)
    # Sums of float64 overflow only for logits in the hundreds; a finite number must be released all the same.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(np.where(treated, weights, -weights) @ y) / len(y)
    return total if np.isfinite(total) else 0.0


def _claimed_weight(estimand: Estimand) -> float:
    """Return the largest weight under the bounds that the published form assumes."""
    low, high = LOWEST, HIGHEST
    if estimand is Estimand.ATE:
        return max(1 / low, 1 / (1 - high))
    return max(1.0, high / (1 - high), (1 - low) / low)


def lost_delta(question: PublishedQuestion, published: PublishedSum) -> float:
    """Return the delta that the last step loses at the epsilon of the claim, for this draw of the weights."""
    epsilon, delta = question.budget.epsilon, question.budget.delta
    ratio = published.true / float(published.claimed)
    mu = Fraction(min(ratio * float(epsilon) / textbook_constant(float(delta)), 1e6))
    return float(delta_of(mu, epsilon))
