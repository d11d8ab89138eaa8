"""Weighting and matching under the auditor: effect and variance released together, on their worst neighbours.

Every sample runs the release code of the estimator through a real gate; the weakened copy sees a gate
that draws for a third of the sensitivity and must be caught.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import counterveil as cv
from counterveil.audit import Cloud, ExactTester, ThresholdTester, audit
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.linear_form import linear_form
from counterveil.privacy import Budget, Estimand
from counterveil.session import Gate, Plan, SeededNoise
from counterveil.statistics.linear.effect import WithBias, release, sensitivity_of
from counterveil.statistics.linear.kernels.residual_variance import (
    ResidualVariance,
    Spectrum,
    residual_variance,
)
from counterveil.statistics.linear.matching_design import match, scored
from counterveil.statistics.linear.outcome_variance import fitting_shape, left_by_matches
from counterveil.statistics.linear.weighting import weighting_design
from counterveil.statistics.linear.weighting_design import weighted
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)
PLAN = Plan.split(CLAIM, {"effect": Fraction(3, 4), "variance": Fraction(1, 4)}, "staircase")
ROWS = 12
STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1), "z": cv.Range(0, 1)}, control=0)
STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@cache
def attached(outcome):
    rng = np.random.default_rng(3)
    x, z = rng.random((2, ROWS))
    return Table.attach({"t": [0, 1] * (ROWS // 2), "y": outcome, "x": x, "z": z}, STUDY)


@dataclass(frozen=True)
class Remembered:
    """A variance that finds each value once: an audit asks for the same ones many times."""

    variance_form: ResidualVariance | WithBias
    known: dict = field(default_factory=dict)

    def largest_row(self, rows):
        return self.variance_form.largest_row(rows)

    def value(self, outcome, steps_bits):
        key = (outcome.tobytes(), steps_bits)
        if key not in self.known:
            self.known[key] = self.variance_form.value(outcome, steps_bits)
        return self.known[key]


def matched(table):
    """Return the coefficients of two neighbours, each used three times at most."""
    design = scored(table)
    return left_by_matches(table, design, match(design, 2, (3, 3), "ATE").matching.coefficients, Estimand.ATE)


def balanced(table):
    """Return the weights that balance covariates."""
    settings = cv.settings.Weighting()
    return weighted(table, weighting_design(table, settings), settings, Estimand.ATE, 1.0)


def matched_in_groups(table):
    """Return the same coefficients; `groups_of` cuts each arm in two by their size."""
    return matched(table)


def groups_of(table, weights, parts):
    """Yield the rows of each arm, in as many parts by the size of their weights."""
    for arm in (table.treated, ~table.treated):
        rows = np.flatnonzero(arm)
        for part in np.array_split(rows[np.argsort(np.abs(weights[rows]), kind="stable")], parts):
            inside = np.zeros(table.rows, np.bool_)
            inside[part] = True
            yield inside


@cache
def forms(strength, weights):
    """Return what is public: the weighted sum and its variance, the same for all outcomes."""
    table = attached((0.0,) * ROWS)
    found = weights(table)
    shape = fitting_shape(found)
    parts = 2 if weights is matched_in_groups else 1
    spectra = tuple(
        Spectrum.of(found.features, found.weights, inside, shape)
        for inside in groups_of(table, found.weights, parts)
    )
    form = linear_form(found.weights)
    variance = residual_variance(found.features, spectra, strength)
    # Balancing weights release the variance with what is allowed for bias.
    variance_form = Remembered(WithBias(variance, Fraction(5, 4)) if weights is balanced else variance)
    return form, variance_form, sensitivity_of(table, form, variance_form)


@dataclass(frozen=True)
class Weighting:
    strength: float
    gate: type[Gate] = Gate
    weights: Callable = balanced

    def sample(self, dataset, count, rng):
        form, variance_form, sensitivity = forms(self.strength, self.weights)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 2))
        for row in rows:
            released = release(self.gate(PLAN, source), attached(dataset), form, variance_form, sensitivity)
            row[:] = [float(part) for part in released]
        return rows

    def log_density(self, dataset, outputs):
        form, variance_form, sensitivity = forms(self.strength, self.weights)
        table, part = attached(dataset), 3 if self.gate is WeakGate else 1
        effect = float(form.total(table.outcome) * table.outcome_unit)
        variance = float(variance_form.value(table.outcome, STEP_BITS))
        first = PLAN.noise("effect", sensitivity.estimate / part).log_density(outputs[:, 0] - effect)
        second = PLAN.noise("variance", sensitivity.variance / part).log_density(outputs[:, 1] - variance)
        return first + second


def worst_pairs(strength, weights):
    """Return the neighbours that move the effect most, among those that move the variance most."""
    form, _, _ = forms(strength, weights)
    largest = int(np.abs(form.units).argmax())
    low = [0.0] * ROWS
    high = [*low[:largest], 1.0, *low[largest + 1 :]]
    return [(tuple(low), tuple(high))]


@pytest.mark.parametrize("strength", [pytest.param(0.0, marks=pytest.mark.slow), 100.0])
@pytest.mark.parametrize(
    "weights", [balanced, pytest.param(matched, marks=pytest.mark.slow), matched_in_groups]
)
def test_an_effect_keeps_its_claim_and_a_third_of_the_noise_does_not(strength, weights):
    report = audit(
        CLAIM,
        Weighting(strength, weights=weights),
        Weighting(strength, WeakGate, weights),
        worst_pairs(strength, weights),
        # A third of the noise was caught with 600 samples in four runs of four.
        [ExactTester(Cloud(draws=600)), ThresholdTester(samples=800)],
        seed=1,
    )
    assert report.passed, str(report)


@pytest.mark.slow
def test_random_outcomes_keep_the_claim():
    rng = np.random.default_rng(5)
    for row in (0, 5, 11):
        outcome = [float(value) for value in rng.integers(0, 2, ROWS)]
        other = [*outcome[:row], 1.0 - outcome[row], *outcome[row + 1 :]]
        report = audit(
            CLAIM,
            Weighting(100.0),
            Weighting(100.0, WeakGate),
            [(tuple(outcome), tuple(other))],
            [ExactTester(Cloud(draws=10_000))],
            seed=row,
        )
        assert report.verdict.value != "violated", str(report)
