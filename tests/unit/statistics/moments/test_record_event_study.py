"""Effects by period with private records: chains of releases at fixed outputs, and values without noise."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate, largest_changes

import counterveil as cv
from counterveil.numerics.columns import arm_totals
from counterveil.results.question import Question
from counterveil.statistics.moments.trial import periods_plan, release_periods, release_share

STEPS = 2**24
PLACES = (0, 1)


def question(epsilon=1):
    return Question.ask(
        protects="record",
        epsilon=epsilon,
        delta=0,
        estimand="ATT",
        method="difference_in_means",
        level=0.95,
        mechanism=None,
        request_id=None,
    )


def run(data):
    """Release two periods of records (t, first change, second change), changes being halves of the range."""
    plan = periods_plan(question(), len(data), list(PLACES))
    gate = FixedGate(
        plan, {"share": Fraction(1, 3)} | {f"centre {period}": Fraction(1, 4) for period in PLACES}
    )
    treated = np.array([row[0] for row in data], dtype=bool)
    share = None
    for period in PLACES:
        steps = np.array([row[1 + period] for row in data], dtype=np.int64) * STEPS // 2
        arms = arm_totals(treated, steps)
        share = share or release_share(gate, arms, None)
        release_periods(gate, plan, arms, Fraction(1, STEPS), share, period)
    return gate


def test_no_record_moves_a_release_by_more_than_its_sensitivity():
    records = [(t, one, two) for t in (0, 1) for one in (0, 2) for two in (0, 2)]
    found = largest_changes(run, records, 3)
    assert set(found) == {"share"} | {
        f"{what} {period}" for what in ("centre", "contrast", "moment") for period in PLACES
    }
    for name, (change, sensitivity) in found.items():
        assert change <= sensitivity
        if not name.startswith("moment"):
            assert change == sensitivity


def test_amounts_add_up_to_the_budget():
    plan = periods_plan(question(2), 500, [0, 1, 3])
    assert 1.999 < sum(amount for _, amount in plan.amounts) <= 2


def test_effects_are_differences_of_mean_changes():
    rng = np.random.default_rng(0)
    n = 4000
    told = cv.Study("t", "y", (-2, 2), control=0, before=("a", "b"))
    t = rng.integers(0, 2, n)
    data = {"t": t} | {
        name: np.clip(rng.normal(0, 0.5, n) + shift * t, -2, 2)
        for name, shift in (("a", 0), ("b", 0), ("y", 0.5))
    }
    found = cv.event_study(data, told, protects="record", epsilon=1e9, noise=cv.SeededNoise(0))
    for name in ("a", "y"):
        change = data[name] - data["b"]
        effect = found.effect(name)
        assert effect.estimate == pytest.approx(change[t == 1].mean() - change[t == 0].mean(), abs=1e-4)
        sampling = np.sqrt(change[t == 1].var() / (t == 1).sum() + change[t == 0].var() / (t == 0).sum())
        assert effect.std_error.sampling == pytest.approx(sampling, rel=0.02)
