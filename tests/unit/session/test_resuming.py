"""A request that stops half way goes on with what it released, under one charge."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from counterveil.accounting import Uses, open_ledger
from counterveil.data import Outcome, Study, Trial
from counterveil.errors import LedgerError
from counterveil.mechanisms import Laplace
from counterveil.privacy import Budget, Unit
from counterveil.session import BaseSession, Kind, Plan, Request
from counterveil.session.any_noise import release_with
from counterveil.session.session import in_branches, in_parallel

STUDY = Study(treatment="t", outcome=Outcome("y", (0, 1)), assignment=Trial())
USES = Uses(Unit.RECORD, "ate", "mean", "t", "y")
TRIAL = {"t": [0, 0, 1, 1], "y": [0.0, 1.0, 1.0, 1.0]}
ONE, HALF = Fraction(1), Fraction(1, 2)
TWO, SMOOTH = [ONE, HALF], Fraction(1, 100)


class StopError(BaseException):
    """Ends a computation as a killed process would, but for the ledger that stays open."""


# One release of every kind that is stored, in a plan that has them all.
RELEASES = {
    "number": lambda gate: [gate.release("number", ONE, HALF).value],
    "smooth": lambda gate: [gate.release_smooth("smooth", ONE, HALF, SMOOTH, HALF)],
    "vector": lambda gate: gate.release_vector("vector", lambda: TWO, HALF).values,
    "cells": lambda gate: gate.release_cells("cells", lambda: TWO, HALF).values,
    "several": lambda gate: [one.value for one in gate.release_several("several", TWO, TWO, [ONE, ONE])],
    "own": lambda gate: release_with(gate, "own", TWO, lambda _, amount: Laplace(ONE, amount), least=ONE)[0],
}
KINDS = {"smooth": Kind.SMOOTH, "vector": Kind.VECTOR, "cells": Kind.CELLS, "several": Kind.SEVERAL}
PLAN = Plan.split(Budget(1), dict.fromkeys(RELEASES, ONE), "staircase", KINDS)


def request(plan=PLAN):
    return Request(plan, {"question": "q"}, USES, "a")


def released(session):
    """Return what the ledger holds, by name."""
    return {
        entry.facts["name"]: entry.facts["values"]
        for entry in session.ledger.entries()
        if entry.kind == "release"
    }


@pytest.fixture
def session(tmp_path):
    open_ledger(tmp_path / "ledger.db", create=True).close()
    with BaseSession(TRIAL, STUDY, budget=Budget(1), ledger=tmp_path / "ledger.db") as opened:
        yield opened


@pytest.mark.parametrize("last", range(len(RELEASES) + 1))
def test_it_goes_on_after_the_last_release(session, last):
    seen = {}

    def compute(gate, stop=None):
        for place, (name, release) in enumerate(RELEASES.items()):
            if place == stop:
                raise StopError
            seen.setdefault(name, []).append(list(release(gate)))
        if stop is not None:
            raise StopError
        return {name: [str(value) for value in values[-1]] for name, values in seen.items()}

    with pytest.raises(StopError):
        session.run(request(), lambda gate: compute(gate, last))
    before = released(session)
    assert list(before) == list(RELEASES)[:last]
    answer = session.run(request(), compute)
    # What was released before is what is released now, to the last digit.
    assert all(values == [values[0]] * 2 for name, values in seen.items() if name in before)
    assert released(session) | before == released(session)
    assert [Fraction(value) for value in answer["vector"]] == seen["vector"][-1]
    assert session.account().spent.epsilon == 1
    assert session.account().requests == 1
    assert session.ledger.verify().ok


def test_what_was_released_is_not_computed_again(session):
    passes = []

    def compute(gate, stop):
        for name in ("vector", "cells"):
            release = gate.release_vector if name == "vector" else gate.release_cells
            release(name, lambda name=name: passes.append(name) or TWO, HALF)
            if name == stop:
                raise StopError
        return {}

    with pytest.raises(StopError):
        session.run(request(), lambda gate: compute(gate, "vector"))
    session.run(request(), lambda gate: compute(gate, None))
    assert passes == ["vector", "cells"]


def test_numbers_of_any_length_come_back(session):
    """Decimal digits beyond some thousands are refused by Python."""
    huge, tiny = Fraction(2) ** 40_000, Fraction(1, 2**40_000)

    def compute(gate):
        found = [gate.release("number", value=huge, sensitivity=tiny).value]
        return {"equal": found[0].denominator > 2**30_000}

    assert session.run(request(), compute) == {"equal": True}


def test_another_split_of_the_budget_is_not_gone_on_with(session):
    """Else the first release of one plan and the second of another could cost more than either."""
    shares = {"number": Fraction(7, 10), "own": Fraction(3, 10)}
    plan = Plan.split(Budget(1), shares, "staircase")
    turned = Plan.split(Budget(1), dict(zip(shares, reversed(shares.values()), strict=True)), "staircase")

    def stop(gate):
        RELEASES["number"](gate)
        raise StopError

    with pytest.raises(StopError):
        session.run(request(plan), stop)
    for other in (turned, replace(plan, amounts=tuple(reversed(plan.amounts)))):
        with pytest.raises(LedgerError, match=r"CV-L006|CV-L007"):
            session.run(request(other), lambda gate: {"own": len(RELEASES["own"](gate))})
    assert session.run(request(plan), lambda gate: {"own": len(RELEASES["own"](gate))}) == {"own": 2}


def test_other_public_bounds_are_not_gone_on_with(session):
    """The noise of a stored number is that of the bound it was drawn for."""

    def mean(gate, rows):
        gate.release("number", HALF, Fraction(1, rows))
        raise StopError

    with pytest.raises(StopError):
        session.run(request(), lambda gate: mean(gate, 4))
    with pytest.raises(LedgerError, match="CV-L006"):
        session.run(request(), lambda gate: mean(gate, 5))


SPLIT = Plan.split(Budget(1), {"a": ONE}, "staircase")
AT_ONCE = {
    "parallel": in_parallel(SPLIT, {"a": ("b", "c")}),
    "branches": in_branches(Budget(1), "staircase", (({"b": ONE}, {}), ({"c": ONE}, {}))),
    "rows": Plan.split(Budget(1), {"b": ONE, "c": ONE}, "staircase", {"c": Kind.ROWS}),
    "labels": Plan.split(Budget(1), {"b": ONE, "c": ONE}, "staircase", {"c": Kind.LABELS}),
    "responses": Plan.split(Budget(1), {"b": ONE, "c": ONE}, "staircase", {"c": Kind.RESPONSE}),
}


@pytest.mark.parametrize("plan", AT_ONCE.values(), ids=AT_ONCE)
def test_what_shares_a_price_or_is_a_number_a_row_is_drawn_anew_as_a_whole(session, plan):
    """A person who was in one part of the rows at first and in another later would pay one price twice."""
    seen = []

    def compute(gate, stop=False):
        seen.append(gate.release("b", ONE, ONE).value)
        if stop:
            raise StopError
        return {"b": str(seen[-1])}

    with pytest.raises(StopError):
        session.run(request(plan), lambda gate: compute(gate, True))
    assert released(session) == {}
    answer = session.run(request(plan), compute)
    assert Fraction(answer["b"]) == seen[1] != seen[0]
    assert session.account().spent.epsilon == 1
    assert session.ledger.verify().ok


@pytest.mark.parametrize("drawn", [False, True])
def test_a_failure_that_may_tell_of_a_draw_is_not_followed_by_another_draw(session, drawn):
    """Where nothing is stored, drawing until a computation succeeds would tell about each draw for nothing."""

    def fails(gate):
        if drawn:
            gate.release("b", ONE, ONE)
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        session.run(request(AT_ONCE["parallel"]), fails)
    if drawn:
        with pytest.raises(LedgerError, match="CV-L006"):
            session.run(request(AT_ONCE["parallel"]), lambda gate: {})
    else:
        assert session.run(request(AT_ONCE["parallel"]), lambda gate: {}) == {}


def test_of_two_sessions_that_answer_at_once_both_return_the_first_answer(session, tmp_path):
    draws = np.arange(3).tolist()
    with BaseSession(TRIAL, STUDY, ledger=tmp_path / "ledger.db") as other:

        def slow(gate):
            own = RELEASES["number"](gate)[0]
            draws[0] = other.run(request(), lambda gate: {"number": str(RELEASES["number"](gate)[0])})
            return {"number": str(own), "slow": True}

        draws[1] = session.run(request(), slow)
    assert draws[0] == draws[1]
    assert [entry.kind for entry in session.ledger.entries()][1:] == ["reserve", "release", "settle"]
