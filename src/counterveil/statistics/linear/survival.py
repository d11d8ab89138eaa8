"""Survival of both arms with public balancing weights, where only times and events are private.

Each arm is weighted towards everybody's covariates, and its table holds sums of weights in place of numbers of people.
Weights are divided by the largest of their arm, so that a row moves a table by as much as without weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.data.features import covariate_features
from counterveil.data.outcomes import joined_entries
from counterveil.inference.survival import NoisyTables
from counterveil.numerics.products import LinearForm, linear_form
from counterveil.numerics.propensity import fit_multinomial
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.results.question import Question
from counterveil.results.survival import ARMS, QuantilesResult, SurvivalResult
from counterveil.session import BaseSession, Gate
from counterveil.settings import Survival
from counterveil.settings.methods import YES_OR_NO, allowed_bias
from counterveil.statistics.linear.arm_means import arm_balance, balanced_arms
from counterveil.statistics.linear.kernels.balancing import WeightSettings
from counterveil.statistics.time_tables import answer_tables, chosen_release, expected_variance

Answer = TypeVar("Answer", SurvivalResult, QuantilesResult)


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """The rows of one arm and their public weights."""

    rows: NDArray[np.intp]
    form: LinearForm

    @property
    def total(self) -> Fraction:
        """Sum of the weights, the largest being 1."""
        return Fraction(int(self.form.units.sum()), int(self.form.units.max()))

    @property
    def design(self) -> float:
        """Sum of squared weights over the sum of weights, the largest being 1."""
        return float(self.form.squares / self.form.largest**2 / self.total)

    def table(self, entry: NDArray[np.int64], entries: int) -> list[Fraction]:
        """Return the sums of weights by entry, exactly."""
        sums = np.zeros(entries, dtype=np.int64)
        np.add.at(sums, entry[self.rows], self.form.units)
        largest = int(self.form.units.max())
        return [Fraction(int(one), largest) for one in sums]


def weighted_rows(table: Table, noise_variance: float) -> tuple[tuple[WeightedRows, ...], dict[str, Any]]:
    """Return the weights of both arms, control first, of least supposed error, and their balance.

    `noise_variance` is that of a curve where the largest weight is 1. The share that is free of the event at a time is
    a binary outcome.
    """
    features = covariate_features(table)
    known = table.score
    scores = (
        fit_multinomial(features.values, table.arm, len(ARMS), 1 / table.rows).scores
        if known is None
        else np.column_stack([1 - known, known])
    )
    supposed = WeightSettings(YES_OR_NO, YES_OR_NO)
    made = balanced_arms(table, scores, noise_variance, supposed)
    found = tuple(WeightedRows(rows, linear_form(np.maximum(weights, 0.0))) for rows, weights, _ in made)
    return found, arm_balance(features, scores, found, ARMS)


def said_of_weights(found: Answer, what: str, bias: float, diagnostics: dict[str, Any]) -> Answer:
    """Return an answer with what weights add to it."""
    beyond: tuple[Fact, ...] = (BiasBeyond(bias, of_each_arm=False),) if bias else ()
    return replace(
        found,
        method=f"{what} with balancing weights in each arm",
        not_covered=(*found.not_covered, Caveat.IMBALANCE, *beyond),
        details=found.details | {"bias_allowed_standard_errors": bias},
        diagnostics=diagnostics,
    )


def survival_by_weights(session: BaseSession, question: Question) -> SurvivalResult:
    """Return the survival of both arms, weighted towards everybody; times and events are private."""
    settings, study = question.settings or Survival(), session.study
    assert study.event is not None
    session.attach("survival with method='weighting'")
    release = chosen_release(session, question, settings, session.table.rows)
    arms, diagnostics = weighted_rows(session.table, expected_variance(release))
    bias = allowed_bias(None, study.randomised is True, len(study.covariates))
    known = {
        "totals": tuple(float(one.total) for one in arms),
        "convention": settings.censoring,
        "shares": (1.0,),
        "design": tuple(one.design for one in arms),
        "inflation": 1 + bias**2,
    }

    def tables(gate: Gate) -> NoisyTables:
        event, entries = study.event, release.form.entries
        assert event is not None
        entry = joined_entries(event.cells, release.parts, event.kinds)[session.table.outcome]
        return release.tables(gate, [one.table(entry, entries) for one in arms], event, **known)

    def finish(found: SurvivalResult) -> SurvivalResult:
        return said_of_weights(found, "Kaplan-Meier", bias, diagnostics)

    return answer_tables(session, question, release, tables, finish)
