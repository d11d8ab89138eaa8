"""The published private interval for the effect (Schroeder, Hartenstein and Feuerriegel 2025), as we read it.

A cross-fitted doubly robust estimate is released with Gaussian noise whose scale is the largest size of the estimated
influence function, times 5 sqrt(2 ln n ln(2/delta)) / (epsilon n); the variance of the scores likewise, and the
interval is widened by the noise. The paper's three steps are those; its exact constants were not available to us and
are taken from the same authors' form for conditional effects, which is after Avella-Medina.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget, Estimand, Proof, Unit
from counterveil.privacy.caveats import Caveat
from counterveil.published.asking import EffectForm, PublishedQuestion, release_scaled, unproved
from counterveil.published.cate import published_factor
from counterveil.results.answering import Facts
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Plan
from counterveil.statistics.folds.aggregation import models_of_fold, quietly
from counterveil.statistics.folds.kernels import FoldNuisances, Predict

PAGE = "published/robust_score.proof.md"
# Fitted propensities are kept this far from 0 and 1.
CLIP = 0.1
REMARK = (
    "the published claim is for large samples: the noise follows the influence function of an average at the fitted "
    "models. Rows that only the models see are not counted, although one of them can move everyone's score; the "
    "scale of the noise is computed from the rows and is itself not protected; constants are our reading of the paper"
)


@dataclass(frozen=True, slots=True)
class Influence:
    """The estimate and the variance of its scores, with the largest sizes of their influence functions."""

    effect: float
    variance: float
    largest: float
    largest_of_variance: float
    rows: int


def _cross_fit(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the cross-fitted effect with noise by its influence function (Schroeder et al. 2025); asymptotic."""
    require_covariates(session.study, "cross_fit")
    plan = paper_plan(question)
    question.require_acceptance(Proof.ASYMPTOTIC, REMARK)

    def compute(gate: Gate) -> Facts:
        (effect, effect_sd), (square, square_sd) = release(
            gate, plan, session.table, influence(session.table, CLIP)
        )
        rows = session.table.rows
        noise = plan.noise("effect", Fraction(effect_sd) * plan.amount("effect"))
        # The published variance is kept from falling below zero, and noise is never taken off it.
        variance = max(square, 0.0) / rows
        return Facts(
            estimate=effect,
            uncertainty=Uncertainty(noise, variance, variance),
            method="doubly robust score, cross-fitted, noise by the influence function, as published",
            releases=(
                ("effect", f"noise of standard deviation {effect_sd:.4g}, made from the rows"),
                ("variance of the scores", f"noise of standard deviation {square_sd:.4g}, likewise"),
            ),
            not_covered=(
                Caveat.PRIVACY_ASYMPTOTIC,
                Caveat.ERRORS_BEYOND_PRODUCT,
                Caveat.CONFOUNDING,
                Caveat.NOISE_OF_VARIANCE,
                Caveat.CLAMPING,
            ),
            details={
                "adjusted": True,
                "rows": rows,
                "mechanism": "gaussian, scaled by the rows",
                "effect_noise_sd": effect_sd,
                "variance_noise_sd": square_sd,
            },
        )

    return unproved(session, question, plan, compute, PAGE, (Proof.ASYMPTOTIC, REMARK))


# What analysts call.
cross_fit = EffectForm("cross_fit", Unit.RECORD, None, _cross_fit)


def paper_plan(question: PublishedQuestion) -> Plan:
    """Return the plan, half of the budget each; a pure budget or another estimand is refused."""
    if question.mechanism != "gaussian":
        raise refusal("CV-P432", budget=question.budget)
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P433", estimand=question.estimand.value)
    half = Fraction(1, 2)
    return Plan.split(question.budget, {"effect": half, "variance": half}, question.mechanism)


def influence(table: Table, clip: float) -> Influence:
    """Return the cross-fitted estimate without noise, and its influence function's largest size.

    That is the largest over the rows' covariates, both arms and both ends of the outcome's range.
    """
    unit = float(table.outcome_unit)
    half = unit * OUTCOME_STEPS / 2
    z, t = UnitFeatures.of(table.study).values(table), table.treated.astype(np.float64)
    y = np.asarray(unit * table.outcome - half, dtype=np.float64)
    parts = two_parts(table.rows, table.rows // 2)
    answers = np.empty((4, table.rows))
    for own, other in (parts, parts[::-1]):
        models = models_of_fold("ridge", z[other], t[other], y[other])
        answers[:, own] = model_answers(models, z[own], half, clip)
    first, second, r1, r0 = answers
    scores = first - second + t * r1 * (y - first) - (1 - t) * r0 * (y - second)
    effect = float(scores.mean())
    ends = [first - second + r1 * (end - first) for end in (-half, half)]
    ends += [first - second - r0 * (end - second) for end in (-half, half)]
    largest = max(float(np.abs(score - effect).max()) for score in ends)
    variance = float(((scores - effect) ** 2).mean())
    return Influence(effect, variance, largest, max(abs(largest**2 - variance), variance), table.rows)


def model_answers(models: FoldNuisances | None, z: Floats, half: float, clip: float) -> Floats:
    """Return one fold's m1, m0, 1/p and 1/(1-p) at every row, clipped; (4, rows)."""

    def asked(predict: Predict | None, low: float, high: float) -> Floats:
        values = None if predict is None else quietly(lambda: np.asarray(predict(z), np.float64))
        middle = (low + high) / 2
        if values is None or values.shape != (len(z),):
            return np.full(len(z), middle)
        return np.clip(np.nan_to_num(values, nan=middle), low, high)

    chosen = (models.treated, models.control, models.propensity) if models is not None else (None,) * 3
    first, second = asked(chosen[0], -half, half), asked(chosen[1], -half, half)
    p = asked(chosen[2], clip, 1 - clip)
    return np.stack([first, second, 1 / p, 1 / (1 - p)])


def release(gate: Gate, plan: Plan, table: Table, found: Influence) -> list[tuple[float, float]]:
    """Return effect and variance with noise that follows their influence functions, and the noise's deviations."""
    half = Budget(plan.budget.epsilon / 2, plan.budget.delta / 2)
    factor, width = published_factor(half, max(found.rows, 2)), table.study.outcome_bounds.width
    numbers = []
    for name, value, largest, least in (
        ("effect", found.effect, found.largest, width),
        ("variance", found.variance, found.largest_of_variance, width**2),
    ):
        bound = Fraction(factor * largest) * plan.amount(name)
        drawn = release_scaled(gate, name, Fraction(value), bound, least / found.rows)
        numbers.append((float(drawn), factor * largest))
    return numbers
