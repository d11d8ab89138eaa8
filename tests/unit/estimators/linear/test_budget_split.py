"""The share of the budget for a variance is the least whose expected interval is nearly the shortest."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from counterveil.estimators.linear.budget_split import variance_share
from counterveil.privacy import Budget
from counterveil.session import Plan


@dataclass(frozen=True)
class Moves:
    estimate: Fraction
    variance: Fraction
    variance_cap: Fraction


def shortest(moves, question, typical, slack):
    """Return the share by trying all of them."""
    lengths = []
    for step in range(17):
        share = Fraction(step, 40)
        plan = Plan.split(question.budget, {"effect": 1 - share, "variance": share}, question.mechanism)
        length = float(moves.estimate) ** 2 * plan.noise("effect", Fraction(1)).variance
        if step:
            unit_variance = plan.noise("variance", Fraction(1)).variance
            length += float(typical) + float(moves.variance) * sqrt(unit_variance)
        else:
            length += float(moves.variance_cap)
        lengths.append(length)
    enough = slack * min(lengths)
    return next(Fraction(step, 40) for step, length in enumerate(lengths) if length <= enough)


@pytest.mark.parametrize("mechanism", ["staircase", "laplace", "gaussian"])
def test_the_share_is_the_least_that_is_nearly_best_of_all(mechanism):
    rng, found = np.random.default_rng(3), set()
    for _ in range(60):
        budget = Budget(Fraction(int(rng.integers(50, 4000)), 1000), "1e-6" if mechanism == "gaussian" else 0)
        question = SimpleNamespace(budget=budget, mechanism=mechanism)
        size = 10 ** rng.uniform(-3, 1)
        moves = Moves(
            Fraction(size), Fraction(size * 10 ** rng.uniform(-3, 0.5)), Fraction(10 ** rng.uniform(-1, 3))
        )
        typical, slack = Fraction(10 ** rng.uniform(-6, -1)), float(rng.choice([1.001, 1.01, 1.1]))
        share = variance_share(moves, question, typical, slack)
        assert share == shortest(moves, question, typical, slack)
        found.add(share)
    assert len(found) > 5
