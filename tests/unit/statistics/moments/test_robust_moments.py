"""Brute force: no exchange of a record moves counts or the middle of a sandwich further than claimed."""

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate
from tests.unit.statistics.moments.small_records import REST, records
from tests.unit.statistics.moments.test_regression_moments import COLUMNS, GRID

from counterveil.inference.moments import NoisyMoments
from counterveil.privacy import Budget
from counterveil.statistics.moments.regression import RowPlan, Rows, logarithm, release_sandwich

NAMES = ("Intercept", *COLUMNS.names)


@pytest.mark.parametrize(("budget", "mechanism"), [(Budget(2), "staircase"), (Budget(2, "1e-6"), "gaussian")])
def test_no_exchange_exceeds_the_claim(budget, mechanism):
    design = RowPlan(5, COLUMNS, budget, mechanism, robust=1)
    size = len(NAMES)
    rows = Rows.standardised(COLUMNS, np.zeros(7), np.full(7, 0.5)).cut(np.full(size, np.inf), 20.0)
    # Moments of people less different than these: rows are long, and some are shortened.
    released = NoisyMoments(np.diag([1.0, *[0.1] * (size - 1)]), np.full((size, size), 1e-9), 5)
    y = NAMES.index("y")
    own = rows.basis[[NAMES.index(name) for name in ("Intercept", "x", "t")]]

    def gate_of(record):
        gate = FixedGate(design.plan(), {"robust reach 0": [5, *[0] * 13]})
        release_sandwich(gate, 0, records(record), rows, released, own, rows.basis[y], design)
        return gate

    gates = [gate_of(record) for record in (REST[0], *GRID)]
    assert set(gates[0].given) == {"robust reach 0", "robust 0"}
    for name, sensitivity in gates[0].sensitivity.items():
        assert all(gate.sensitivity[name] == sensitivity for gate in gates)
        values = np.array([[float(value) for value in gate.given[name]] for gate in gates])
        moves = max(np.linalg.norm(values - one, ord=gates[0].norm[name], axis=1).max() for one in values)
        assert 0.4 * float(sensitivity) < moves <= float(sensitivity) * (1 + 1e-12), name


def test_logarithms_fill_their_range():
    x = np.linspace(-1, 1, 101)
    found = logarithm(x, 9.0)
    assert (found.min(), found.max()) == (-1.0, 1.0)
    assert np.log(3) + np.log(3) * found == pytest.approx(np.log(5 + 4 * x), abs=1e-8)
