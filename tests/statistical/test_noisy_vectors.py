"""Noise that is drawn all at once for long audits has the mechanism of the gate's own."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.statistical.noisy_vectors import noisy_vectors

from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise

VALUES, SENSITIVITY = [Fraction(3), Fraction(-1), Fraction(1, 2)], Fraction(1, 3)
CASES = [
    (Budget(2, "1e-3"), "gaussian", Kind.VECTOR),
    (Budget(2), "staircase", Kind.VECTOR),
    (Budget(2), "staircase", Kind.CELLS),
    (Budget(2), "staircase", Kind.NUMBER),
]


def released(gate, kind):
    """Return one release through a gate: the numbers, and the variance of the noise of each."""
    if kind is Kind.NUMBER:
        number = gate.release("b", VALUES[0], SENSITIVITY)
        return [float(number)], number.noise.variance
    release = gate.release_cells if kind is Kind.CELLS else gate.release_vector
    vector = release("b", VALUES, SENSITIVITY)
    return vector.floats(), vector.variance


@pytest.mark.parametrize(("budget", "mechanism", "kind"), CASES)
def test_many_copies_have_the_law_of_the_gates_draws(budget, mechanism, kind):
    plan = Plan.split(
        budget, {"a": Fraction(1, 4), "b": Fraction(3, 4)}, mechanism, dict.fromkeys("ab", kind)
    )
    values = VALUES[:1] if kind is Kind.NUMBER else VALUES
    many = noisy_vectors(plan, "b", values, SENSITIVITY, 6000, np.random.default_rng(1))
    source = SeededNoise(2)
    one_by_one, variances = zip(*(released(Gate(plan, source), kind) for _ in range(600)), strict=True)
    single, exact = np.array(one_by_one), np.array(values, dtype=float)
    assert many.var(axis=0) == pytest.approx(variances[0], rel=0.1)
    for view in (lambda rows: rows[:, 0], lambda rows: np.linalg.norm(rows - exact, axis=1)):
        assert stats.ks_2samp(view(many), view(single)).pvalue > 1e-3
