"""Effects on several outcomes where a row's treatment and all of its outcomes are private together.

One vector holds the models of all outcomes beside one propensity, and one release the scores of all: with k outcomes
Gaussian noise of models grows by the root of k, that of scores by k; the propensity costs what it does with one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from counterveil.data import Table
from counterveil.inference.measures import ApartMeans, with_rare_events
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import OutcomeEffect, OutcomesResult
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS, Numbers
from counterveil.results.question import Question
from counterveil.session import BaseSession, Gate
from counterveil.statistics.outcome_place import Outcomes
from counterveil.statistics.pairs.effect import (
    ARM_SCORES,
    WHOLE_SCORES,
    Choice,
    Form,
    Sought,
    Target,
    asked,
    provenance,
    release_models,
    release_scores,
)

# Proof: pair_moments.proof.md, pair_scores.proof.md


def forms(outcomes: Outcomes, one: Form) -> list[Form]:
    """Return what is released of every outcome's scores: as if each were alone, at the noise that it has."""
    total = sum(outcomes.weights, Fraction(0))
    return [(one[0], one[1] * total / weight) for weight in outcomes.weights]


def released_outcomes(
    gate: Gate, table: Table, choice: Choice, outcomes: Outcomes, estimand: Estimand, *, means: bool
) -> list[Numbers]:
    """Return the effect on every outcome, or both arms' means of it."""
    tables = _tables(table, outcomes)
    own, numbers = forms(outcomes, ARM_SCORES if means else WHOLE_SCORES), []
    for part, (models, spread), form in zip(tables, release_models(gate, tables, choice), own, strict=True):
        whole = Target(estimand, models.propensity)
        targets = [whole.of_arm(arm) for arm in (0, 1)] if means else [whole]
        numbers += [Sought(part, spread, slice(None), one, models, form) for one in targets]
    effects, found = release_scores(gate, choice, numbers), list[Numbers]()
    for place, part in enumerate(tables):
        low, high = map(float, part.study.outcome_range)
        sizes = Target(estimand, numbers[place * len(targets)].models.propensity).sizes()
        if means:
            one, other = effects[2 * place : 2 * place + 2]
            values = (low + high) / 2 + one.estimate, (low + high) / 2 - other.estimate
            found.append(ApartMeans(values, (one.uncertainty, other.uncertainty), (low, high), sizes))
        else:
            known = with_rare_events(effects[place].uncertainty, (low, high), sizes)
            found.append(Linear(effects[place].estimate, known, (low - high, high - low)))
    return found


def _tables(table: Table, outcomes: Outcomes) -> list[Table]:
    """Return the rows with each of the outcomes alone."""
    each = zip(outcomes.names, outcomes.ranges, outcomes.numbers(table), strict=True)
    return [
        replace(table, study=table.study.changed(outcome=name, outcome_range=ends, several=None), outcome=y)
        for name, ends, y in each
    ]


def pair_outcomes(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects on all outcomes; covariates and the order of rows are public."""
    table, means = session.table, question.measure in OF_MEANS
    question, choice = asked(session, question, outcomes=_tables(table, outcomes))

    def compute(gate: Gate) -> Facts:
        found = released_outcomes(gate, table, choice, outcomes, question.estimand, means=means)
        return Facts(
            provenance(session, question, choice, {}),
            released=tuple(
                OutcomeEffect(name, None, one) for name, one in zip(outcomes.names, found, strict=True)
            ),
            measure=question.measure,
        )

    said = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return settled(OutcomesResult, session, question, choice.plan, compute, said=said)
