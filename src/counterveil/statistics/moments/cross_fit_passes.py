"""Passes of cross-fitting over the rows of a half: the fit of its propensity model, and the score of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.products import Standard
from counterveil.numerics.whole_logistic import (
    ROWS_AT_ONCE,
    Block,
    Look,
    fit_in_looks,
    logistic_sums,
    look_of,
)
from counterveil.session import Gate
from counterveil.statistics.moments.cross_fit_models import Propensity
from counterveil.statistics.moments.ipw_nuisances import shrunk
from counterveil.statistics.moments.kernels.scores import ScoreModels, moments, whole_parts
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.sensitivity import LENGTH_SLACK, PenalisedFit


@dataclass(frozen=True, slots=True)
class Fitting:
    """The public side of a half's propensity model: its penalty, whether it is shrunk, a declared propensity."""

    penalty: float
    shrink: bool
    declared: float | None


def release_propensity(
    gate: Gate, name: str, records: Records, standard: Standard, fitting: Fitting
) -> Propensity:
    """Return the released propensity model of a half; none is fitted where it is declared."""
    rows, features, penalty = records.count, records.features.size, fitting.penalty
    if fitting.declared is not None:
        return Propensity(np.zeros(features), 0.0, fitting.declared)
    tolerance = checked_tolerance(rows, features + 1, 2, penalty, None)
    reach = 2 * (1 + LENGTH_SLACK)
    sensitivity = PenalisedFit(rows, reach, Fraction(penalty), Fraction(tolerance)).weights
    fitted = fitted_weights(records, standard, penalty)
    released = gate.release_vector(name, [Fraction(weight) for weight in fitted], sensitivity)
    weights, kept = released.floats(), 1.0
    if fitting.shrink:
        weights, kept = shrunk(weights, sqrt(released.variance), inf)
    return Propensity(weights[:-1] / sqrt(standard.squared_length), float(weights[-1]), None, kept)


def fitted_weights(records: Records, standard: Standard, penalty: float) -> Floats:
    """Return the weights of the propensity model before noise, the intercept last; a pass a step."""

    def look(weights: Floats) -> Look:
        return look_of(records.run(model_sums, standard, weights), records.count, weights, penalty)

    def reach(direction: Floats) -> float:
        # Rows have length 1 at most beside the constant, but for rounding.
        return float(np.linalg.norm(direction[:-1]) + abs(direction[-1])) * (1 + float(LENGTH_SLACK))

    return fit_in_looks(look, reach, records.count, len(standard.centre) + 1, penalty)


def model_sums(records: TableRecords, standard: Standard, weights: Floats) -> Sums:
    """Return the sums of `logistic_sums` over the rows of a block, each divided by the longest length."""
    return logistic_sums(_unit_rows(records, standard), weights)


def _unit_rows(records: TableRecords, standard: Standard) -> Iterator[Block]:
    length = sqrt(standard.squared_length)
    for u, t, _ in records.models(standard):
        for start in range(0, len(u), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            yield u[part, 1:] / length, t[part] == 1


def score_sums(
    records: TableRecords, standard: Standard, models: ScoreModels, estimand: str, clip: float
) -> Sums:
    """Return the sums of scores less the models' effect and of their squares, and the number treated.

    Scores are in whole parts of 2**-GRID_BITS of `clip`.
    """
    parts = [whole_parts(models.centred(estimand, u, t, y), clip) for u, t, y in records.models(standard)]
    found = moments(np.concatenate(parts), records.table.treated)
    return (np.array([found.total, found.squares, found.treated], dtype=object),)
