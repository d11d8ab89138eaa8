"""Means of several arms where a row's arm and outcome are private together, covariates being public.

A row is in one arm: a replaced pair moves the sums of two arms at most, however many there are.
"""

# Proof: pair_moments.proof.md, pair_scores.proof.md

from __future__ import annotations

import numpy as np

from counterveil.data import Table
from counterveil.inference import with_rare_events
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.session import BaseSession, Gate
from counterveil.statistics.outcome_place import Spread
from counterveil.statistics.pairs.effect import (
    Choice,
    Sought,
    asked,
    place_of,
    provenance,
    release_scores,
)
from counterveil.statistics.pairs.models import Sums, fit_models
from counterveil.statistics.pairs.rows import arm_sums, pair_sensitivity
from counterveil.statistics.pairs.scores import ARM_SCORES, Target


def pair_arms(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private means of all arms; covariates and the order of rows are public."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        return Facts(
            provenance(session, question, choice, {}),
            means=released_arms(gate, table, choice, question.level),
        )

    return settled(ArmsResult, session, question, choice.plan, compute, said={"question": "arms"})


def released_arms(gate: Gate, table: Table, choice: Choice, level: float) -> tuple[Effect, ...]:
    """Return what everybody's mean outcome would be in each arm: place, models and scores, each released once."""
    study, spread = table.study, place_of(gate, table)
    numbers = arm_numbers(gate, table, choice, spread)
    found, means = release_scores(gate, table, choice, numbers, spread), []
    low, high = map(float, study.outcome_range)
    for label, one, number in zip(study.treatment_labels, found, numbers, strict=True):
        size, _ = Target.of(Estimand.ATE, number.models.propensity).sizes(number.models.propensity)
        known = with_rare_events(one.uncertainty, study.outcome_range, (size,))
        means.append(Effect(label, Linear((low + high) / 2 + one.estimate, known, (low, high)), level))
    return tuple(means)


def arm_numbers(gate: Gate, table: Table, choice: Choice, spread: Spread) -> list[Sought]:
    """Return what scores tell of every arm beside all others together, from one vector for all of them."""
    rows, arms, study = choice.rows, len(table.study.treatment_labels), table.study
    released = gate.release_vector(
        "models",
        lambda: arm_sums(rows, table.arm, arms, table.outcome, spread.place),
        pair_sensitivity(rows),
    )
    inside, outcomes = released.floats().reshape(2, arms, -1) / rows.scale
    noise, everyone, found = released.variance / rows.scale**2, np.arange(table.rows), []
    for arm in range(arms):
        values = np.stack([inside[arm], outcomes[arm], outcomes.sum(axis=0) - outcomes[arm]])
        sums = Sums(values, np.outer((1.0, 1.0, arms - 1.0), noise))
        models = fit_models(
            rows, sums, spread.centre, spread.reach, spread.sd, None, study.randomised is True
        )
        target = Target.of(Estimand.ATE, models.propensity).of_arm(0)
        found.append(Sought(everyone, target, models, ARM_SCORES, arm))
    return found
