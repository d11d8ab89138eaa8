"""Moments for regressions under the auditor, on worst neighbours; a third of the noise is caught.

The release code hands over its numbers and their sensitivities at fixed earlier outputs, and the plan's own noise is
added many times at once.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.unit.statistics.moments.fixed_outputs import FixedGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan
from counterveil.statistics.moments.orthogonal import release_products
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.regression import (
    Columns,
    Design,
    PublicRows,
    Rows,
    release_centre,
    release_reach,
    release_residual_moments,
    weighted_rows,
)

STUDY = cv.Study("t", "y", (-1, 1), {"x": cv.Range(-1, 1)}, treated=1, control=0)
COLUMNS = Columns.of(STUDY, [], [])
PURE, GAUSSIAN = Budget(2), Budget(2, "0.01")
# Everything at the ends of its range: columns move furthest, rows are orthogonal, or outcomes change their cell.
PAIRS = {
    "centre": ((1.0, 1, 1.0), (-1.0, 0, -1.0)),
    "reach": ((1.0, 1, 1.0), (0.0, 1, 0.0)),
    "moments": ((1.0, 1, 1.0), (-1.0, 0, 1.0)),
    "outcomes": ((1.0, 1, 1.0), (1.0, 1, -1.0)),
}


def mechanism(claim):
    return "gaussian" if claim.delta else "staircase"


@cache
def released(record, name, claim):
    """Return the gate with one release of a record and of four fixed ones."""
    x, t, y = zip(record, (0.1, 0, 0.2), (0.2, 1, -0.3), (-0.3, 1, 0.1), (0.4, 0, 0.0), strict=True)
    records = Records(Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY), COLUMNS.features)
    design = Design(5, COLUMNS, claim, mechanism(claim))
    gate = FixedGate(design.plan(), {})
    rows = Rows.standardised(COLUMNS, np.zeros(3), np.ones(3))
    if name == "centre":
        release_centre(gate, records, COLUMNS)
    elif name == "reach":
        release_reach(gate, name, records, Rows.standardised(COLUMNS, np.zeros(3), np.full(3, 0.1)), design)
    elif name == "outcomes":
        # Everyone's public row has the largest length, so that an outcome moves the moments as far as it can.
        public = PublicRows(COLUMNS, np.eye(3), 1.0, np.zeros(3), 1.0)
        release_residual_moments(gate, name, records, public, np.eye(3), 0.0)
    else:
        cut = rows.cut(np.full(4, np.inf), 2.0)
        reach = cut.squared_reach
        release_products(gate, name, records, weighted_rows, (cut,), sqrt(float(reach)), reach)
    return gate


@dataclass(frozen=True)
class Noisy:
    """What an attacker sees who knows both data sets: how much nearer a release is to one of them."""

    claim: Budget
    name: str
    weak: int = 1

    def sample(self, dataset, count, rng):
        # The whole claim pays for the release that is audited: a share of it would hide the bound's slack.
        own, first, second = (
            released(record, self.name, self.claim) for record in (dataset, *PAIRS[self.name])
        )
        sensitivity = own.sensitivity[self.name]
        kind = Kind.CELLS if own.norm[self.name] == 1 else Kind.VECTOR
        plan = Plan.split(self.claim, {self.name: Fraction(1)}, mechanism(self.claim), {self.name: kind})
        noisy = noisy_vectors(plan, self.name, own.given[self.name], sensitivity / self.weak, count, rng)
        known, other = (
            np.array([float(value) for value in gate.given[self.name]]) for gate in (second, first)
        )
        return nearer(noisy, known, other, sensitivity, own.norm[self.name], 2 if self.claim.delta else 1)


@pytest.mark.parametrize("claim", [PURE, GAUSSIAN])
@pytest.mark.parametrize("name", ["centre", "reach", "moments", "outcomes"])
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(claim, name):
    tester = ThresholdTester(samples=20_000, projections=(Given(lambda seen: seen[:, 0]),))
    pair = PAIRS[name]
    report = audit(claim, Noisy(claim, name), Noisy(claim, name, 3), [pair], [tester], seed=1)
    assert report.passed, str(report)
