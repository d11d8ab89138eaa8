"""Coverage on redrawn outcomes: `python -m experiments.outcome_level.redrawn [--tuning] [--draws N] [--only NAME]`.

Covariates and treatments stay, outcomes are drawn anew around known means. Prints for every design, estimand and
epsilon coverage / root mean square error / mean width of the 95 % intervals of weighting (which is what `auto` takes),
matching and the difference in means with private outcomes, and coverage / error / width of doubly robust estimates
without privacy; the error of zero is the effect itself. Errors and coverages of private answers are expectations over
the noise in closed form. Needs COUNTERVEIL_DATA. `--tuning` prints the designs that settings were chosen on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.kernels.pairing import consecutive_pairs
from counterveil.estimators.linear.linear_estimator import LinearEffect
from counterveil.estimators.linear.matching import matched_effect
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.inference.uncertainty import Uncertainty
from counterveil.inference.variance_inflation import HEADROOM, inflation
from counterveil.privacy import Unit
from counterveil.results.question import Question
from counterveil.rows.linear.weighted_outcomes import linear_bounds
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicRows
from experiments.causal.designs import Design, bent, births, correlated, varying
from experiments.causal.plain import aipw
from experiments.causal.real import acic, fitted, ihdp_file
from experiments.outcome_level.surfaces import BENDS, bent_kind, drawn

EPSILONS = (0.5, 1.0, 2.0, 4.0)
STEP_BITS = OUTCOME_STEPS.bit_length() - 1
# Levels at which the noise of the variance is read.
LEVELS = (np.arange(32) + 0.5) / 32


def tuning() -> list[Callable[[], Design]]:
    """Return makers of the designs that settings were chosen on."""
    return [
        *(partial(acic, setting) for setting in (1, 3, 5)),
        *(partial(drawn, seed) for seed in range(12)),
        *(partial(bent_kind, bend, 2000, 1) for bend in BENDS),
        partial(bent_kind, "wave", 1000, 2),
        partial(bent_kind, "peak", 10_000, 3),
        partial(bent_kind, "hinge", 2000, 4, 1.0),
        *(partial(bent, n) for n in (1000, 2000, 10_000, 50_000)),
        *(partial(bent, n, 1) for n in (1000, 2000)),
    ]


def judging() -> list[Callable[[], Design]]:
    """Return makers of designs of the same families, and of others, that no setting was chosen on."""
    from counterveil.datasets import lalonde, nhefs, pension401k

    return [
        *(partial(acic, setting) for setting in (2, 4)),
        *(partial(drawn, seed) for seed in range(20, 28)),
        *(partial(bent_kind, bend, 2000, 11) for bend in BENDS),
        partial(bent_kind, "wave", 1000, 12),
        partial(bent_kind, "square", 10_000, 13),
        *(partial(bent, n, 7) for n in (1000, 2000, 10_000)),
        *(partial(ihdp_file, number) for number in (6, 11, 20)),
        lambda: fitted(nhefs(), estimands=("ATE", "ATT", "ATC")),
        lambda: fitted(pension401k()),
        lambda: fitted(lalonde()),
        lambda: varying(0.6, 5000),
        lambda: varying(0.6, 5000).widened(5),
        *(partial(correlated, 4000, aligned) for aligned in (False, True)),
        births,
    ]


@dataclass(frozen=True)
class Cell:
    """Coverage, root mean square error and mean width."""

    covered: float
    error: float
    width: float

    def __str__(self) -> str:
        return f"{self.covered:.3f} / {self.error:.3g} / {self.width:.3g}"


def question_of(epsilon: float, method: str, estimand: str, settings: object = None) -> Question:
    return Question.ask(
        protects="outcome", epsilon=epsilon, delta=0, estimand=estimand, method=method, level=0.95,
        mechanism=None, request_id=None, settings=settings,
    )  # fmt: skip


def in_means(table: PublicRows, question: Question) -> LinearEffect:
    """Return the difference in means as a weighted sum."""
    treated = table.treated
    weights = np.where(treated, 1 / treated.sum(), -1 / (~treated).sum())
    pairs = consecutive_pairs(np.flatnonzero(treated == arm) for arm in (False, True))
    return LinearEffect("difference in means", weights, pairs, ())


METHODS: dict[str, Callable[[PublicRows, Question], LinearEffect]] = {
    "weighting": weighted_effect,
    "matching": matched_effect,
    "difference_in_means": in_means,
}


class Answers:
    """A method on a design: coverage and width over the noise, in closed form, for any outcomes of its rows."""

    def __init__(
        self, table: Table, method: str, epsilon: float, estimand: str, settings: object = None
    ) -> None:
        question = question_of(epsilon, method, estimand, settings)
        rows = PublicRows(table, Unit.OUTCOME)
        effect = METHODS[method](rows, question)
        self.order = np.argsort(~table.treated, kind="stable") if effect.rows else np.arange(table.rows)
        self.form, self.variance_form = linear_form(effect.coefficients), effect.variance_form()
        self.sensitivity = linear_bounds(rows, self.form, self.variance_form)
        share = chosen_share(self.sensitivity, question, effect.expected_part)
        plan, self.cap = effect_plan(question, share), float(self.sensitivity.variance_cap)
        self.noise = plan.noise("effect", self.sensitivity.estimate)
        self.other = plan.noise("variance", self.sensitivity.variance) if share else None
        self.shifts = self.other.quantile(LEVELS) if self.other else np.zeros(1)
        self.kappa = inflation(self.noise, self.other, self.cap, 0.05) if self.other else 0.0
        # Half-widths are smooth in the standard deviation that the interval is built on.
        self.deviations = np.linspace(0.0, sqrt(HEADROOM * self.cap), 48)
        self.halves = np.array([self._half(sd**2) for sd in self.deviations])

    def _half(self, variance: float) -> float:
        known = Uncertainty(self.noise, variance - self.kappa, self.cap, self.other)
        return known.half_width(0.95)

    def of(self, steps: np.ndarray, unit: float, truth: float) -> tuple[float, float, float]:
        """Return coverage, expected squared error and mean width for outcomes in steps of the range."""
        y = steps[self.order]
        error = float(self.form.total(y)) * unit - truth
        known = self.cap
        if self.other is not None:
            known = float(self.variance_form.value(y, STEP_BITS) * self.sensitivity.width**2)
        half = np.interp(
            np.sqrt(np.maximum(known + self.shifts + self.kappa, 0.0)), self.deviations, self.halves
        )
        covered = float(np.mean(self.noise.cdf(half - error) - self.noise.cdf(-half - error)))
        return covered, error**2 + self.noise.variance, 2 * float(half.mean())


def attached(design: Design, draw: int) -> Table:
    return Table.attach(design.columns | {design.study.outcome: design.outcomes(draw)}, design.study)


def private(
    design: Design,
    tables: list[Table],
    method: str,
    epsilon: float,
    estimand: str,
    settings: object = None,
) -> Cell:
    answers, truth = Answers(tables[0], method, epsilon, estimand, settings), design.truth(estimand)
    unit = float(tables[0].outcome_unit)
    covered, squares, widths = np.mean([answers.of(t.outcome, unit, truth) for t in tables], axis=0)
    return Cell(covered, sqrt(squares), widths)


def without_privacy(design: Design, tables: list[Table], estimand: str) -> Cell:
    truth = design.truth(estimand)
    found = np.array([aipw(table, estimand) for table in tables])
    errors, halves = found[:, 0] - truth, 1.96 * found[:, 1]
    return Cell(
        float(np.mean(abs(errors) <= halves)), sqrt(float(np.mean(errors**2))), float(2 * halves.mean())
    )


def print_design(design: Design, draws: int) -> list[str]:
    """Print the tables of a design; return the cells in which weighting covers less than 93 %."""
    tables, below = [attached(design, draw) for draw in range(draws)], []
    for estimand in design.estimands:
        truth = design.truth(estimand)
        print(f"\n**{design.name}**, {estimand}, effect {truth:.3g} (the error of zero)\n")
        print("| | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
        for method in METHODS:
            if method == "difference_in_means" and estimand != "ATE":
                continue
            cells = [private(design, tables, method, epsilon, estimand) for epsilon in EPSILONS]
            print(f"| {method} | " + " | ".join(map(str, cells)) + " |", flush=True)
            if method == "weighting":
                below += [
                    f"{design.name}, {estimand}, epsilon {epsilon:g}: {cell.covered:.3f}"
                    for epsilon, cell in zip(EPSILONS, cells, strict=True)
                    if cell.covered < 0.93
                ]
        print(f"| doubly robust (not private) | {without_privacy(design, tables, estimand)} | | | |")
    return below


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.outcome_level.redrawn")
    parser.add_argument("--tuning", action="store_true", help="the designs that settings were chosen on")
    parser.add_argument("--draws", type=int, default=50, help="outcomes drawn for each design")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="designs whose names hold one of these")
    chosen = parser.parse_args()
    below = []
    for make in tuning() if chosen.tuning else judging():
        design = make()
        if not chosen.only or any(word.lower() in design.name.lower() for word in chosen.only):
            below += print_design(design, chosen.draws)
    print("\nCells in which weighting covers less than 93 %: " + ("; ".join(below) or "none"))


if __name__ == "__main__":
    main()
