"""What a part of a sum adds: a replaced record moves it by no more than its noise is made for."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.thinned import thinned
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.masking import KeySeal, new_key
from counterveil.mechanisms import SummedBall, SummedGaussian, SummedLaplace
from counterveil.privacy import Budget
from counterveil.questions.asking import ask_of
from counterveil.questions.ate import AteArguments
from counterveil.questions.groups import GroupsArguments
from counterveil.questions.moments import MomentsArguments
from counterveil.questions.survival import SurvivalArguments
from counterveil.session import Kind, Plan, SeededNoise
from counterveil.session.session import grid_for
from counterveil.session.summing import NextPart, Summation, SummingGate, SummingSession, rounded_up
from counterveil.settings import Survival, Trial

TREATED = {"treated": 1, "control": 0, "randomised": True, "covariates": {"sex": cv.Binary()}}
STUDY = study_of("t", "y", (0, 1), **TREATED)
TIMES = study_of("t", "y", event="e", horizon=3, grid=3, **TREATED)
BUDGET = {"protects": "record", "epsilon": "10000", "request_id": "one"}
DELTA = {"delta": "1e-6"}
WITH_DELTA, OUTCOME = BUDGET | DELTA, BUDGET | {"protects": "outcome"}
SUMS = Survival(release="sums")
# Each with the least part of its largest bound that some exchange attains.
QUESTIONS = {
    "trial": (STUDY, AteArguments(method="trial", settings=Trial("none"), **BUDGET), 0.9),
    "groups": (STUDY, GroupsArguments(by="sex", method="arms", **BUDGET), 0.9),
    "survival": (TIMES, SurvivalArguments(method="stratified", **BUDGET), 0.9),
    "running sums": (TIMES, SurvivalArguments(method="kaplan_meier", settings=SUMS, **BUDGET), 0.9),
    "moments": (STUDY, MomentsArguments(**BUDGET), 0.9),
    "trial, delta": (STUDY, AteArguments(method="trial", settings=Trial("none"), **WITH_DELTA), 0.9),
    "groups, delta": (STUDY, GroupsArguments(by="sex", method="arms", **WITH_DELTA), 0.9),
    "survival, delta": (TIMES, SurvivalArguments(method="stratified", **WITH_DELTA), 0.9),
    "moments, delta": (STUDY, MomentsArguments(**WITH_DELTA), 0.9),
    "difference": (STUDY, AteArguments(method="difference_in_means", **OUTCOME), 0.9),
    "difference, delta": (STUDY, AteArguments(method="difference_in_means", **OUTCOME | DELTA), 0.9),
    "times": (TIMES, SurvivalArguments(method="kaplan_meier", **OUTCOME), 0.9),
}
# Where outcomes alone are private, treatment and sex stay.
OUTCOMES = [(1, 0, y, e) for y, e in product((0, 0.5, 1), (0, 1))]
RECORDS = [*product((0, 1), (0, 1), (0.5,), (1,)), *product((0, 1), (0,), (0, 1), (0,))]
REST = [(1, 0, 0.5, 1), (0, 1, 1, 0), (1, 1, 0, 0), (0, 0, 0.5, 1)]
PUBLIC = ("arms", "people")
PARTS, SEAL = 4, KeySeal(new_key())


def part(question, rows, totals):
    """Return what one of several parts sends next, None once it has the answer."""
    study, asked, _ = QUESTIONS[question]
    frame = dict(zip(("t", "sex", "y", "e"), map(list, zip(*rows, strict=True)), strict=True))
    known = Summation(PARTS, 1, PARTS * len(rows), totals)
    with SummingSession(frame, study, budget=Budget(10**5, "1e-3"), known=known, seal=SEAL) as session:
        try:
            ask_of(session, asked)
        except NextPart as found:
            return found
    return None


@pytest.mark.parametrize("question", thinned(QUESTIONS, "survival", "moments", "moments, delta"))
def test_no_exchange_of_a_record_moves_a_part_beyond_its_bound(question, monkeypatch):
    norms = []

    def silent(self, values, grid, source):
        norms.append(1 if isinstance(self, SummedLaplace) else 2)
        return [*map(grid.value, map(grid.units, values))]

    for kind in (SummedLaplace, SummedGaussian, SummedBall):
        monkeypatch.setattr(kind, "release_all", silent)
    told, worst = {}, 0.0
    outcome = QUESTIONS[question][1].protects == "outcome"
    records, rest = (OUTCOMES, REST[1:]) if outcome else (RECORDS, REST)
    while True:
        found = [part(question, [record, *rest], told) for record in records]
        if found[0] is None:
            break
        ((name, bound),) = {(one.name, one.bound) for one in found}
        change = max(
            float(np.linalg.norm(np.subtract(one.steps, other.steps).astype(float), (norms or [1])[-1]))
            for one, other in combinations(found, 2)
        )
        if name in PUBLIC:
            # Every part has the same rows, and the zeros of this one's numbers are where the others have theirs.
            assert change == 0
            told[name] = found[0].steps[: len(found[0].steps) // PARTS] * PARTS
            continue
        assert change <= bound, name
        worst = max(worst, change / bound)
        told[name] = tuple(PARTS * step for step in found[0].steps)
    assert worst >= QUESTIONS[question][2]
    assert all(one is None for one in found)


def test_public_numbers_are_those_of_every_part_and_ones_own_stay():
    frame = {"t": [1, 1, 0, 0], "sex": [0] * 4, "y": [0] * 4}

    def sizes(**facts):
        known = Summation(**{"parts": 3, "colluding": 1, "rows": 20, "totals": {}, "place": 1} | facts)
        with SummingSession(frame, STUDY, budget=Budget(1), known=known, seal=SEAL) as session:
            return session.public("arms", (2, 2), 2)

    with pytest.raises(NextPart) as asked:
        sizes()
    assert asked.value.steps == (0, 0, 2, 2, 0, 0)
    assert sizes(totals={"arms": (5, 3, 2, 2, 4, 4)}) == ((5, 3), (2, 2), (4, 4))
    for wrong in ((5, 3, 2, 3, 3, 4), (5, 1, 2, 2, 4, 4), (5, 3, 2, 2, 4, 5), (5, 3, 2, 2)):
        with pytest.raises(CounterveilError, match="CV-F500"):
            sizes(totals={"arms": wrong})


def test_bounds_that_machines_round_differently_are_one():
    bound = cv.Budget("1/3").epsilon
    assert (
        bound < rounded_up(bound) == rounded_up(bound * (1 + cv.Budget("1e-12").epsilon)) < bound * 1.0000001
    )


@pytest.mark.parametrize(("kind", "steps"), [(Kind.VECTOR, 3), (Kind.CELLS, 4)])
def test_bounds_hold_what_rounding_adds(kind, steps):
    """A length has the root of the count and a step more, a sum of sizes the count."""
    plan = Plan.split(Budget(1), {"four": Fraction(1)}, "laplace", {"four": kind})
    gate = SummingGate(plan, SeededNoise(1), lambda name, bounds, draw: draw(), Summation(PARTS, 1, 9, {}))
    release = gate.release_vector if kind is Kind.VECTOR else gate.release_cells
    with pytest.raises(NextPart) as found:
        release("four", [Fraction(0)] * 4, Fraction(1))
    assert found.value.bound == 1 / grid_for(Fraction(1), Fraction(1)).step + steps
    # What was planned as one kind does not pass as another: their amounts differ in meaning.
    gate = SummingGate(plan, SeededNoise(1), lambda name, bounds, draw: draw(), Summation(PARTS, 1, 9, {}))
    other = gate.release_cells if kind is Kind.VECTOR else gate.release_vector
    with pytest.raises(CounterveilError, match="CV-X002"):
        other("four", [Fraction(0)] * 4, Fraction(1))


def test_what_has_no_shares_is_not_summed():
    plan = Plan.split(Budget(1), {"many": Fraction(1)}, "laplace", {"many": Kind.ROWS})
    gate = SummingGate(plan, SeededNoise(1), lambda name, bounds, draw: draw(), Summation(PARTS, 1, 2400, {}))
    with pytest.raises(CounterveilError, match="CV-X006"):
        gate.release_rows("many", np.zeros(3, np.int64), 0, 1, Fraction(1))
