"""Expected errors of every method on one instance, in closed form over the noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.matching_design import chosen_match, match, published_limits
from counterveil.estimators.linear.variance_choice import chosen_residual_variance, expected_part
from counterveil.estimators.linear.weighting import unit_noise
from counterveil.estimators.linear.weighting_design import weighted
from counterveil.privacy import Estimand, Unit
from counterveil.results.question import Question
from counterveil.rows.linear.weighted_outcomes import linear_bounds
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicRows
from counterveil.settings import Matching, Weighting
from experiments.outcome_level.instances import NEIGHBOURS, Instance
from experiments.weighting_tuning.expected_error import (
    staircase_absolute,
    staircase_variance,
    two_laplace_absolute,
)


@dataclass(frozen=True)
class Errors:
    """Mean absolute error against matching without privacy, root mean square error against the truth; relative."""

    to_matching: float
    to_truth: float


def question_of(epsilon: float, method: str = "weighting") -> Question:
    return Question.ask(
        protects="outcome", epsilon=epsilon, delta=0, estimand="ATE", method=method, level=0.95, mechanism=None,
        request_id=None,
    )  # fmt: skip


def errors(instance: Instance, estimate: float, absolute: float, noise_variance: float) -> Errors:
    """`absolute` is E|estimate + noise - matched|; all in units of the range."""
    return Errors(
        absolute / abs(instance.matched),
        math.sqrt((estimate - instance.effect) ** 2 + noise_variance) / abs(instance.effect),
    )


def one_draw(instance: Instance, coefficients: np.ndarray, epsilon: float) -> Errors:
    """One staircase draw at the exact sensitivity."""
    estimate, largest = float(coefficients @ instance.outcome), float(np.abs(coefficients).max())
    absolute = staircase_absolute(estimate - instance.matched, largest, epsilon)
    return errors(instance, estimate, absolute, staircase_variance(epsilon) * largest**2)


def published(instance: Instance, epsilon: float) -> tuple[np.ndarray, tuple[int, int]]:
    """The published adaptive limit (raised until everyone can be matched), and the limits k of both arms."""
    limits = published_limits(instance.design, Matching(neighbours=NEIGHBOURS), epsilon, feasible=True)
    found = match(instance.design, NEIGHBOURS, limits, "ATE")
    return found.matching.coefficients, (limits[0] // NEIGHBOURS, limits[1] // NEIGHBOURS)


def paper(instance: Instance, epsilon: float) -> Errors:
    """Two Laplace draws of scale (k+1)B/(n epsilon), as published."""
    coefficients, limits = published(instance, epsilon)
    one, other = ((k + 1) / (len(coefficients) * epsilon) for k in limits)
    estimate = float(coefficients @ instance.outcome)
    absolute = two_laplace_absolute(estimate - instance.matched, one, other)
    return errors(instance, estimate, absolute, 2 * one**2 + 2 * other**2)


def paper_one_draw(instance: Instance, epsilon: float) -> Errors:
    return one_draw(instance, published(instance, epsilon)[0], epsilon)


def best_matching(instance: Instance, epsilon: float) -> Errors:
    """The library's matching, everything spent on the effect."""
    settings = Matching(neighbours=NEIGHBOURS)
    found = chosen_match(instance.design, settings, "ATE", epsilon, staircase_variance(epsilon))
    return one_draw(instance, found.matching.coefficients, epsilon)


def weighting(share: float | None) -> Callable[[Instance, float], Errors]:
    """Weighting with the usual suppositions and `share` of epsilon for the variance, None: as the library chooses."""

    def found(instance: Instance, epsilon: float) -> Errors:
        question, settings = question_of(epsilon), Weighting(variance_share=share)
        fixed = None if share is None else Fraction(share)
        design = instance.for_weighting
        noise = unit_noise(question, fixed, design.arms)
        chosen = weighted(PublicRows(instance.table, Unit.OUTCOME), design, settings, Estimand.ATE, noise)
        used = fixed
        if used is None:
            form = linear_form(chosen.weights)
            variance_form = chosen_residual_variance(chosen, instance.table.treated, question)
            part = expected_part(variance_form, chosen.weights)
            sensitivity = linear_bounds(PublicRows(instance.table, Unit.OUTCOME), form, variance_form)
            used = chosen_share(sensitivity, question, part)
        left = dict(effect_plan(question, used).amounts)["effect"]
        return one_draw(instance, chosen.weights, float(left))

    return found


def difference_in_means(instance: Instance, epsilon: float) -> Errors:
    treated = instance.table.treated
    return one_draw(instance, np.where(treated, 1 / treated.sum(), -1 / (~treated).sum()), epsilon)


def zero(instance: Instance, epsilon: float) -> Errors:
    return Errors(1.0, 1.0)


def without_privacy(instance: Instance, epsilon: float) -> Errors:
    return Errors(0.0, abs(instance.matched / instance.effect - 1))


METHODS: dict[str, Callable[[Instance, float], Errors]] = {
    "published: limited matching, two Laplace draws": paper,
    "the same matching, one staircase draw": paper_one_draw,
    "matching, limit chosen by expected error": best_matching,
    "weighting for balance": weighting(0.0),
    "weighting for balance, interval bought": weighting(None),
    "difference in means": difference_in_means,
    "zero": zero,
    "matching without privacy": without_privacy,
}
