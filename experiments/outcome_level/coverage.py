"""How often the intervals cover the true effect, covariates and treatments being fixed and outcomes redrawn.

For every outcome drawn the coverage is exact over the effect's noise and an average over 64 quantiles of the
variance's noise; half-widths are the library's own, interpolated between 48 of them.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.datasets import acic2016, ihdp, synth
from counterveil.estimators.ate.linear_effect import VarianceForm, chosen_share, sensitivity_of
from counterveil.estimators.ate.matching_design import Scored, chosen_match, scored
from counterveil.estimators.ate.matching_settings import MatchingSettings
from counterveil.estimators.ate.variance_share import effect_plan
from counterveil.estimators.ate.weighting import unit_noise
from counterveil.estimators.ate.weighting_design import weighted
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.estimators.ate.weighting_spread import chosen_spread, expected_part
from counterveil.estimators.question import Question
from counterveil.inference import Uncertainty, inflation
from counterveil.inference.inflation import HEADROOM
from counterveil.kernels.linear_form import linear_form, paired_variance
from counterveil.kernels.pairing import covariate_pairs, score_pairs
from counterveil.kernels.residual_variance import ResidualVariance
from counterveil.privacy import Estimand
from experiments.outcome_level.errors import question_of

LEVELS = (np.arange(64) + 0.5) / 64
STEP_BITS = OUTCOME_STEPS.bit_length() - 1
Linear = tuple[np.ndarray, VarianceForm]


@dataclass(frozen=True)
class Design:
    """A table whose outcomes are drawn anew: covariates, treatments and range stay."""

    table: Table
    scores: Scored
    effect: float
    draws: list[np.ndarray]


def _attached(data, draws: list[np.ndarray]) -> tuple[Table, list[np.ndarray]]:
    """Return the table under the range of all draws, widened by 2 % at each end, and the draws in steps."""
    low, high = min(y.min() for y in draws), max(y.max() for y in draws)
    bounds = (float(low - 0.02 * (high - low)), float(high + 0.02 * (high - low)))
    table = Table.attach(data.frame, replace(data.study, outcome_range=bounds))
    steps = [((y - bounds[0]) / (bounds[1] - bounds[0]) * OUTCOME_STEPS).astype(np.int64) for y in draws]
    return table, steps


@cache
def synth_designs(draws: int) -> list[Design]:
    """Seeds 30-33; slopes and noise of the outcome are fresh in every draw."""
    designs = []
    for seed in range(30, 34):
        data = synth(seed)
        table, steps = _attached(
            data, [np.asarray(synth(seed, outcome_seed=k).frame["y"]) for k in range(draws)]
        )
        designs.append(Design(table, scored(table, None), 0.5, steps))
    return designs


@cache
def ihdp_designs(draws: int) -> list[Design]:
    """Response surfaces of files 16-25; the noise of the outcome, standard normal, is fresh in every draw."""
    designs = []
    for number in range(16, 26):
        data = ihdp(number)
        path = Path(os.environ["COUNTERVEIL_DATA"], "ihdp", f"ihdp_npci_{number}.csv.gz")
        with gzip.open(path, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        mu0, mu1 = (np.array([float(row[name]) for row in rows]) for name in ("mu0", "mu1"))
        mean = np.where(np.asarray(data.frame["treatment"]) == 1, mu1, mu0)
        rng = np.random.default_rng(number)
        table, steps = _attached(data, [mean + rng.normal(size=len(mean)) for _ in range(draws)])
        designs.append(Design(table, scored(table, None), float((mu1 - mu0).mean()), steps))
    return designs


@cache
def acic_designs(draws: int) -> list[Design]:  # noqa: ARG001
    """Settings 1, 4 and 5 with the outcomes of the files: coverage over the noise alone."""
    designs = []
    for setting in (1, 4, 5):
        data = acic2016(setting)
        table, steps = _attached(data, [np.asarray(data.frame["y"])])
        designs.append(Design(table, scored(table, None), data.true_effect, steps))
    return designs


def by_weighting(goal: str, spread: str) -> Callable[[Design, Question], Linear]:
    def build(design: Design, question: Question) -> Linear:
        settings = WeightingSettings(goal=goal, spread=spread)
        noise = unit_noise(question, None, *design.scores.arms)
        found = weighted(design.table, design.scores, settings, Estimand.ATE, noise)
        treated = design.table.treated
        if spread == "arm":
            return found.weights, chosen_spread(found, treated, question)
        return found.weights, paired_variance(found.weights, *covariate_pairs(treated, found.features))

    return build


def by_matching(design: Design, question: Question) -> Linear:
    unit = effect_plan(question, 0).noise("effect", 1).variance
    found = chosen_match(
        design.scores, MatchingSettings(), "ATE", float(question.budget.epsilon), unit
    ).matching.coefficients
    return found, paired_variance(found, *score_pairs(design.table.treated, design.scores.score))


ESTIMATORS: dict[str, Callable[[Design, Question], Linear]] = {
    "weighting for balance": by_weighting("balance", "arm"),
    "weighting for balance, spread by row": by_weighting("balance", "row"),
    "weighting close to matching": by_weighting("matching", "arm"),
    "matching": by_matching,
}


@dataclass(frozen=True)
class Cell:
    """Coverage, mean width over the effect, share of epsilon for the variance, rms error over the effect."""

    covered: float
    width: float
    share: float
    error: float


def measured(design: Design, question: Question, linear: Linear) -> Iterator[Cell]:
    coefficients, spread = linear
    form = linear_form(coefficients)
    sensitivity = sensitivity_of(design.table, form, spread)
    part = expected_part(spread, coefficients) if isinstance(spread, ResidualVariance) else 1.0
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
        known = float(spread.value(y, STEP_BITS) * sensitivity.width**2) if variance_noise else cap
        half = np.interp(np.sqrt(np.maximum(known + shifts + kappa, 0.0)), deviations, halves)
        covered = float(np.mean(noise.cdf(half - error) - noise.cdf(-half - error)))
        square = (error**2 + noise.variance) / design.effect**2
        yield Cell(covered, 2 * float(half.mean()) / abs(design.effect), float(share), square)


def print_coverage(epsilons: Sequence[float], draws: int) -> None:
    made = {"Synth 30-33": synth_designs, "IHDP 16-25": ihdp_designs, "ACIC 1, 4, 5": acic_designs}
    for name, make in made.items():
        designs = make(draws)
        print(
            f"\n**{name}**: {len(designs)} designs, outcomes drawn {len(designs[0].draws)} times for each. ",
            end="",
        )
        print("Coverage (width / effect; rms error / effect; share of epsilon for the variance)\n")
        print("| | " + " | ".join(f"{e:g}" for e in epsilons) + " |\n|---|" + "---|" * len(epsilons))
        for label, build in ESTIMATORS.items():
            cells = []
            for epsilon in epsilons:
                question = question_of(epsilon)
                found = [c for d in designs for c in measured(d, question, build(d, question))]
                covered, width, share, square = (
                    float(np.mean([getattr(c, field) for c in found]))
                    for field in ("covered", "width", "share", "error")
                )
                cells.append(f"{covered:.3f} ({width:.2f}; {square**0.5:.3f}; {share:.2f})")
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
