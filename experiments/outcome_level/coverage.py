"""How often the intervals cover the true effect, covariates and treatments being fixed and outcomes redrawn.

For every outcome drawn the coverage is exact over the effect's noise and an average over 64 quantiles of the
variance's noise; half-widths are the library's own, interpolated between 48 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS
from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.kernels.pairing import covariate_pairs, score_pairs
from counterveil.estimators.linear.matching import variance_by_arm
from counterveil.estimators.linear.matching_design import chosen_match
from counterveil.estimators.linear.variance_choice import chosen_residual_variance, expected_part
from counterveil.estimators.linear.weighting import unit_noise
from counterveil.estimators.linear.weighting_design import weighted
from counterveil.inference.uncertainty import Uncertainty
from counterveil.inference.variance_inflation import HEADROOM, inflation
from counterveil.privacy import Estimand, Unit
from counterveil.results.question import Question
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.variance_forms import VarianceForm, WithBias
from counterveil.rows.linear.weighted_outcomes import linear_bounds
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicRows
from counterveil.settings import Matching, Weighting
from experiments import runner
from experiments.outcome_level.designs import (
    Design,
    acic_designs,
    ihdp_designs,
    opposite,
    other_outcomes,
    squares,
    synth_designs,
    uneven_designs,
    unrelated,
)
from experiments.outcome_level.errors import question_of

LEVELS = (np.arange(64) + 0.5) / 64
STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@dataclass(frozen=True)
class Linear:
    """Coefficients of a linear estimate, and the form of its variance."""

    coefficients: np.ndarray
    variance_form: VarianceForm


def by_weighting(variance_by: str) -> Callable[[Design, Question], Linear]:
    def build(design: Design, question: Question) -> Linear:
        settings = Weighting(variance_by=variance_by)
        scores = design.for_weighting
        noise = unit_noise(question, None, scores.arms)
        found = weighted(PublicRows(design.table, Unit.OUTCOME), scores, settings, Estimand.ATE, noise)
        treated = design.table.treated
        if variance_by == "arm":
            form = chosen_residual_variance(found, treated, question)
        else:
            form = paired_variance(found.weights, *covariate_pairs(treated, found.features))
        raised = WithBias(
            form, 1 + Fraction(settings.allowed_bias(False, len(design.table.study.covariates))) ** 2
        )
        return Linear(found.weights, raised)

    return build


def by_matching(variance_by: str) -> Callable[[Design, Question], Linear]:
    def build(design: Design, question: Question) -> Linear:
        unit, scores = effect_plan(question, 0).noise("effect", 1).variance, design.scores
        settings, epsilon = Matching(variance_by=variance_by), float(question.budget.epsilon)
        found = chosen_match(scores, settings, "ATE", epsilon, unit).matching.coefficients
        form = variance_by_arm(PublicRows(design.table, Unit.OUTCOME), scores, settings, found, question)
        return Linear(found, form or paired_variance(found, *score_pairs(design.table.treated, scores.score)))

    return build


ESTIMATORS: dict[str, Callable[[Design, Question], Linear]] = {
    "weighting for balance": by_weighting("arm"),
    "weighting for balance, variance by row": by_weighting("row"),
    "matching": by_matching("auto"),
    "matching, variance by row": by_matching("row"),
}
# Where slopes differ between arms, or outcomes follow squares alone.
LESS_KIND = {
    label: build for label, build in ESTIMATORS.items() if label != "weighting for balance, variance by row"
}


@dataclass(frozen=True)
class Cell:
    """Coverage, mean width over the effect, share of epsilon for the variance, rms error over the effect."""

    covered: float
    width: float
    share: float
    error: float


def measured(design: Design, question: Question, linear: Linear) -> Iterator[Cell]:
    form, variance_form = linear_form(linear.coefficients), linear.variance_form
    sensitivity = linear_bounds(PublicRows(design.table, Unit.OUTCOME), form, variance_form)
    plain = variance_form.form if isinstance(variance_form, WithBias) else variance_form
    part = expected_part(plain, linear.coefficients) if isinstance(plain, ResidualVariance) else 1.0
    share = chosen_share(sensitivity, question, part)
    plan = effect_plan(question, share)
    noise, cap = plan.noise("effect", sensitivity.estimate), float(sensitivity.variance_cap)
    variance_noise = plan.noise("variance", sensitivity.variance) if share else None
    shifts = variance_noise.quantile(LEVELS) if variance_noise else np.zeros(1)
    kappa = inflation(noise, variance_noise, cap, 0.05) if variance_noise else 0.0
    # Half-widths are smooth in the standard deviation that the interval is built on.
    deviations = np.linspace(0.0, sqrt(HEADROOM * cap), 48)
    halves = np.array(
        [Uncertainty(noise, sd**2 - kappa, cap, variance_noise).half_width(0.95) for sd in deviations]
    )
    for y in design.draws:
        error = float(form.total(y) * design.table.outcome_unit) - design.effect
        known = float(variance_form.value(y, STEP_BITS) * sensitivity.width**2) if variance_noise else cap
        half = np.interp(np.sqrt(np.maximum(known + shifts + kappa, 0.0)), deviations, halves)
        covered = float(np.mean(noise.cdf(half - error) - noise.cdf(-half - error)))
        square = (error**2 + noise.variance) / design.effect**2
        yield Cell(covered, 2 * float(half.mean()) / abs(design.effect), float(share), square)


GROUPS = {
    "Synth 30-69": (synth_designs, ESTIMATORS),
    "Synth 30-49, slopes of the arms unrelated": (other_outcomes(unrelated), LESS_KIND),
    "Synth 30-49, slopes of the arms opposite": (other_outcomes(opposite), LESS_KIND),
    "Synth 30-49, outcomes that follow squares": (other_outcomes(squares), LESS_KIND),
    "Synth 30-49, outcomes that vary more where their arm is rare": (
        uneven_designs,
        {label: build for label, build in ESTIMATORS.items() if label.startswith("matching")},
    ),
    "IHDP 16-25": (ihdp_designs, ESTIMATORS),
    # So many covariates that matching goes by row.
    "ACIC 1, 4, 5": (acic_designs, {label: ESTIMATORS[label] for label in list(ESTIMATORS)[:-1]}),
}


def summary(cells: list[list[Cell]]) -> str:
    """Return the text of one cell of the table, from the cells of every design."""
    covered, width, share, square = (
        np.array([np.mean([getattr(cell, field) for cell in one]) for one in cells])
        for field in ("covered", "width", "share", "error")
    )
    doubt = covered.std(ddof=1) / sqrt(len(cells))
    return (
        f"{covered.mean():.3f} ± {doubt:.3f} "
        f"({width.mean():.2f}; {sqrt(square.mean()):.3f}; {share.mean():.2f})"
    )


def row(name: str, epsilons: Sequence[float], *, seeds: range) -> list[runner.Row]:
    """Return a row for every estimator of a group of designs, outcomes being drawn as often as there are seeds."""
    make, estimators = GROUPS[name]
    designs, rows = make(len(seeds)), []
    for label, build in estimators.items():
        cells = []
        for epsilon in epsilons:
            question = question_of(epsilon)
            cells.append(summary([list(measured(d, question, build(d, question))) for d in designs]))
        rows.append([f"{name}: {len(designs)}, outcomes drawn {len(designs[0].draws)} times", label, *cells])
    return rows
