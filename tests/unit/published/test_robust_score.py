"""Brute force: sizes of doubly robust scores, and what one record moves in the chain of cross-fitting."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.published.cross_fit_chain import RECORDS, handed_over, known_outputs, own_half, question

from counterveil.published.doubly_robust import ScoreModels, cross_fit_plan, largest_score, whole_parts
from counterveil.session import Kind

XI = 0.2
ENDS = (-1.0, -0.3, 1.0)


def one_score(estimand, y, line, effect, logit, t):
    """Return the score of a row under models that predict line -+ effect/2 and this logit."""
    models = ScoreModels(0.0, 0.5, np.array([line, 0.0]), effect, np.array([1.0]), 0.0, None, XI)
    u = np.array([[1.0, logit]])
    return float(models.score(estimand, u, np.array([float(t)]), np.array([y]))[0])


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_no_score_is_larger_than_claimed_and_the_bound_is_attained(estimand):
    # Lines and effects far outside the range: predictions are clipped, each on its own.
    cases = product(
        ENDS, (-5.0, -1.0, 0.2, 1.0, 5.0), (-8.0, -1.0, 0.0, 2.0, 8.0), (-9.0, -1.0, 0.5, 9.0), (0, 1)
    )
    sizes = [abs(one_score(estimand, *case)) for case in cases]
    claim = float(largest_score(Fraction(2), Fraction(1, 5), estimand))
    assert claim == pytest.approx(10.0 if estimand == "ATE" else 8.0)
    assert max(sizes) == pytest.approx(claim, rel=1e-12)


def test_parts_stay_inside_their_bound_whatever_is_divided():
    values = np.array([-np.inf, -1e300, -1.0, -0.5, 0.0, 1 / 3, 1.0, 1e9])
    parts = whole_parts(values, 0.5)
    assert abs(parts).max() == 1 << 24
    assert parts[5] == int(2 / 3 * (1 << 24))


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_no_replacement_moves_a_release_further_than_claimed_and_the_other_half_not_at_all(estimand):
    fixed, own = known_outputs(estimand), own_half()
    gates = [handed_over(record, estimand, fixed) for record in RECORDS]
    assert len(gates[0].values) == (9 if estimand == "ATT" else 8)
    largest = {}
    for name, sensitivity in gates[0].sensitivity.items():
        values = np.array([gate.values[name] for gate in gates])
        moved = max(
            np.linalg.norm(values - value, 1 if name == "norms" else 2, axis=1).max() for value in values
        )
        assert moved <= sensitivity * (1 + 1e-12), name
        largest[name] = moved / sensitivity
    other = 3 - own
    assert largest[f"weights {other}"] == largest[f"gram {other}"] == 0
    assert min(largest[f"weights {own}"], largest[f"gram {own}"]) > 0.1
    assert largest["effect"] > 0.5


def test_both_halves_are_charged_once():
    plan = cross_fit_plan(question("ATE"), False)
    assert sum(amount for _, amount in plan.amounts) == plan.budget.epsilon
    assert plan.amount("gram 1", Kind.VECTOR) == plan.amount("gram 2", Kind.VECTOR)
    names = [name for name, _ in plan.amounts]
    assert names.count("gram") == names.count("weights") == 1
    assert "gram 1" not in names
