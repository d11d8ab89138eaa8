"""Effects on several outcomes where a row's treatment and all of its outcomes are private together.

One vector holds the models of all outcomes beside one propensity, and one release the scores of all: with k outcomes
Gaussian noise of models grows by the root of k, that of scores by k; the propensity costs what it does with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np

from counterveil.data import Table
from counterveil.inference.measures import ApartMeans, with_rare_events
from counterveil.numerics.arrays import Integers, sqrt_up
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import OutcomeEffect, OutcomesResult
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS, Numbers
from counterveil.results.question import Question
from counterveil.session import BaseSession, Gate
from counterveil.statistics.outcome_place import OUTCOME_BITS, Outcomes, Spread
from counterveil.statistics.pairs.effect import (
    ARM_SCORES,
    TREATED,
    WHOLE_SCORES,
    Choice,
    Form,
    Models,
    PairEffect,
    PublicRows,
    Sought,
    Sums,
    Target,
    asked,
    best_scores,
    effect_of,
    fit_models,
    known_propensities,
    pair_sensitivity,
    place_of,
    provenance,
    summed,
)

# Proof: pair_moments.proof.md, pair_scores.proof.md


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """One outcome: the rows with it alone, where it lies, and its models."""

    table: Table
    spread: Spread
    models: Models


def outcome_pair_sums(rows: PublicRows, tables: Sequence[Table], spreads: Sequence[Spread]) -> list[Fraction]:
    """Return sums of features times A, unless its chance is known, and times A y and (1 - A) y of every outcome."""

    def pairs(part: slice) -> Integers:
        own = tables[0].treated[part]
        found = [] if known else [own.astype(np.int64)]
        for table, spread in zip(tables, spreads, strict=True):
            y = spread.place.fixed(table.outcome[part])
            found += [np.where(own, y, 0), np.where(own, 0, y)]
        return np.column_stack(found)

    known = known_propensities(tables[0]) is not None
    units = (Fraction(1, 1 << OUTCOME_BITS),) * (2 * len(tables))
    return summed(rows, pairs, units if known else (TREATED * _root(len(tables)), *units))


def _root(outcomes: int) -> Fraction:
    """Return a rational just below the root of the number of outcomes: how much more a change of treatment weighs."""
    return Fraction(isqrt(outcomes << 20), 1 << 10)


def outcomes_sensitivity(rows: PublicRows, outcomes: int) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced row moves the sums."""
    return pair_sensitivity(rows) * sqrt_up(Fraction(outcomes))


def _modelled(gate: Gate, tables: Sequence[Table], choice: Choice) -> list[_Outcome]:
    """Return models of every outcome: places where they are searched, then one vector."""
    rows, count, known = choice.rows, len(tables), known_propensities(tables[0])
    spreads = []
    for place, table in enumerate(tables, 1):
        which = f" {place}" if count > 1 else ""
        spreads.append(place_of(gate, table, choice, which))
    released = gate.release_vector(
        "models", lambda: outcome_pair_sums(rows, tables, spreads), outcomes_sensitivity(rows, count)
    )
    blocks = released.floats().reshape(-1, len(rows.scale))
    found, root = [], float(_root(count))
    for place, (table, spread) in enumerate(zip(tables, spreads, strict=True)):
        if known is None:
            own = blocks[[0, 1 + 2 * place, 2 + 2 * place]] / np.array([[root], [1.0], [1.0]])
            sums = Sums.of(own, released.variance, rows)
            sums = replace(sums, noise=sums.noise / np.array([[root**2], [1.0], [1.0]]))
        else:
            sums = Sums.of(blocks[2 * place : 2 * place + 2], released.variance, rows, known)
        trial = table.study.randomised is True
        models = fit_models(rows, sums, spread, known, trial)
        found.append(_Outcome(table, spread, models))
    return found


def forms(outcomes: Outcomes, one: Form) -> list[Form]:
    """Return what is released of every outcome's scores: as if each were alone, at the noise that it has."""
    total = sum(outcomes.weights, Fraction(0))
    return [(one[0], one[1] * total / weight) for weight in outcomes.weights]


def _released(
    gate: Gate, choice: Choice, parts: Sequence[_Outcome], numbers: Sequence[Sequence[Sought]]
) -> list[list[PairEffect]]:
    """Return every outcome's numbers, all released together; one row moves those of all."""
    form = min(one.form[1] for each in numbers for one in each)
    pairs = [(part, one) for part, each in zip(parts, numbers, strict=True) for one in each]
    scores = [
        best_scores(
            choice.rows,
            one.models,
            part.spread,
            one.target,
            choice.plan.cells_noise("score", one.form[1]).variance,
        )
        for part, one in pairs
    ]

    def sums() -> list[Fraction]:
        return [
            value * form / one.form[1]
            for (part, one), score in zip(pairs, scores, strict=True)
            for value in score.sums(part.table.treated, part.table.outcome, one.form)
        ]

    noisy = gate.release_cells("score", sums, form).floats().reshape(-1, 2)
    found = []
    for (part, one), score, own in zip(pairs, scores, noisy, strict=True):
        low, high = part.table.study.outcome_range
        sizes = one.models.fitted(one.target.arm), float(high - low) / 2
        units = own * float(one.form[1] / form)
        found.append(effect_of(choice.plan, choice.rows, one.models, score, one, units, sizes))
    each = len(numbers[0])
    return [found[start : start + each] for start in range(0, len(found), each)]


def released_outcomes(
    gate: Gate, table: Table, choice: Choice, outcomes: Outcomes, estimand: Estimand, *, means: bool
) -> list[Numbers]:
    """Return the effect on every outcome, or both arms' means of it."""
    tables = _tables(table, outcomes)
    parts, everyone = _modelled(gate, tables, choice), slice(None)
    numbers = []
    for part, form in zip(parts, forms(outcomes, ARM_SCORES if means else WHOLE_SCORES), strict=True):
        whole = Target(estimand, part.models.propensity)
        targets = [whole.of_arm(arm) for arm in (0, 1)] if means else [whole]
        numbers.append([Sought(everyone, target, part.models, form) for target in targets])
    found: list[Numbers] = []
    for part, effects in zip(parts, _released(gate, choice, parts, numbers), strict=True):
        low, high = map(float, part.table.study.outcome_range)
        sizes = Target(estimand, part.models.propensity).sizes()
        if means:
            values = (low + high) / 2 + effects[0].estimate, (low + high) / 2 - effects[1].estimate
            errors = effects[0].uncertainty, effects[1].uncertainty
            found.append(ApartMeans(values, errors, (low, high), sizes))
            continue
        known = with_rare_events(effects[0].uncertainty, (low, high), sizes)
        found.append(Linear(effects[0].estimate, known, (low - high, high - low)))
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
