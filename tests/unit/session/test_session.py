"""The gate and the order reserve, draw, settle; releases that are not single numbers."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.accounting import Uses, open_ledger
from counterveil.data import Outcome, Study, Table, Trial
from counterveil.errors import BudgetError, InternalError, LedgerError, ParameterError
from counterveil.privacy import Budget, GaussianEvent, PureEvent, ResponseEvent, Unit
from counterveil.session import BaseSession, Gate, Kind, Plan, Request, SeededNoise

STUDY = Study(treatment="t", outcome=Outcome("y", (0, 1)), assignment=Trial())
USES = Uses(Unit.OUTCOME, "ate", "mean", "t", "y")
TRIAL = {"t": [0, 0, 1, 1], "y": [0.0, 1.0, 1.0, 1.0]}


def request(name="q", epsilon=1, request_id=None):
    plan = Plan.split(Budget(epsilon), {"x": Fraction(1)}, "laplace")
    return Request(plan, {"question": name, "epsilon": str(epsilon)}, USES, request_id)


def answer(gate):
    return {"value": float(gate.release("x", Fraction(0), Fraction(1)))}


def test_budget_is_reserved_before_anything_is_drawn():
    with BaseSession(TRIAL, STUDY, budget=Budget(1)) as session:

        def compute(gate):
            assert session.account().spent.epsilon == 1
            return answer(gate)

        session.run(request(), compute)


def test_a_failure_while_computing_gives_nothing_back():
    with BaseSession(TRIAL, STUDY, budget=Budget(1)) as session:
        with pytest.raises(KeyboardInterrupt):
            session.run(request(), lambda gate: (_ for _ in ()).throw(KeyboardInterrupt))
        assert session.account().spent.epsilon == 1
        with pytest.raises(BudgetError):
            session.run(request(), answer)


def test_over_budget_draws_nothing():
    def never(gate):
        raise AssertionError("computed without a budget")

    with BaseSession(TRIAL, STUDY, budget=Budget(1)) as session:
        with pytest.raises(BudgetError) as refusal:
            session.run(request(epsilon=2), never)
        assert session.account().spent.epsilon == 0
    assert "2" in refusal.value.text()


def test_the_same_request_gets_the_same_answer_free_of_charge(tmp_path):
    book = tmp_path / "ledger.db"
    with pytest.raises(LedgerError, match="CV-L001"):
        BaseSession(TRIAL, STUDY, budget=Budget(3), ledger=book)
    open_ledger(book, create=True).close()
    with BaseSession(TRIAL, STUDY, budget=Budget(3), ledger=book) as session:
        session.publish(*STUDY.public_columns("outcome"))
        first = session.run(request(request_id="a"), answer)
    with BaseSession(TRIAL, STUDY, ledger=book) as session:
        assert session.run(request(request_id="a"), answer) == first
        assert session.account().spent.epsilon == 1
        with pytest.raises(LedgerError):
            session.run(request(name="another", request_id="a"), answer)


def test_a_ledger_file_refuses_simulated_noise(tmp_path):
    book = tmp_path / "ledger.db"
    open_ledger(book, create=True).close()
    with BaseSession(TRIAL, STUDY, budget=Budget(3), ledger=book, noise=SeededNoise(1)) as session:
        session.publish(*STUDY.public_columns("outcome"))
        with pytest.raises(LedgerError):
            session.run(request(), answer)
        assert session.account().spent.epsilon == 0


def test_accounts_are_found_by_name(tmp_path):
    book = tmp_path / "ledger.db"
    with open_ledger(str(book), create=True) as ledger:
        ledger.register("one", Budget(1))
        ledger.register("two", Budget(2))
        with pytest.raises(ParameterError, match="CV-P013"):
            BaseSession(TRIAL, STUDY, ledger=ledger)
        with pytest.raises(ParameterError, match="CV-P014"):
            BaseSession(TRIAL, STUDY, ledger=ledger, dataset="one", budget=Budget(5))
        with pytest.raises(ParameterError, match="CV-P012"):
            BaseSession(TRIAL, STUDY, ledger=ledger, dataset="three")
        assert BaseSession(TRIAL, STUDY, ledger=ledger, dataset="two").account().budget == Budget(2)


def test_no_budget_no_custody():
    with pytest.raises(ParameterError, match="CV-P012"):
        BaseSession(TRIAL, STUDY)


def test_a_table_keeps_its_study():
    table = Table.attach(TRIAL, STUDY)
    assert BaseSession(table, STUDY, budget=Budget(1)).table is table
    other = Study(treatment="t", outcome=Outcome("y", (0, 2)), assignment=Trial())
    with pytest.raises(ParameterError, match="CV-P017"):
        BaseSession(table, other, budget=Budget(1))


SHARES = {name: Fraction(1, 5) for name in ("number", "vector", "cells", "rows", "response")}
KINDS = {name: Kind(name) for name in ("vector", "cells", "rows", "response")}
ONE, STEP = Fraction(1), Fraction(1, 1024)


def plan(epsilon=5):
    return Plan.split(Budget(epsilon), SHARES, "staircase", KINDS)


def gate(seed=0, epsilon=5):
    return Gate(plan(epsilon), SeededNoise(seed))


def test_every_kind_is_charged_once_for_its_share():
    events = plan().charge.events
    assert events == (*[PureEvent(ONE)] * 4, ResponseEvent(ONE, 2))
    assert sum(event.epsilon for event in events) == 5


def test_a_plan_of_pure_noise_cannot_be_gaussian():
    with pytest.raises(ParameterError, match="CV-P240"):
        Plan.split(Budget(1, 1e-6), SHARES, "gaussian", KINDS)


def test_releases_pass_once_and_only_as_what_they_were_planned():
    asked = gate()
    asked.release_vector("vector", [ONE, ONE], ONE)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_vector("vector", [ONE, ONE], ONE)
    for call in (
        lambda: asked.release("cells", ONE, ONE),
        lambda: asked.release_cells("number", [ONE], ONE),
        lambda: asked.respond("rows", np.array([True])),
        lambda: asked.release_rows("response", np.array([0]), 0, 1, STEP),
        lambda: asked.release_vector("unknown", [ONE], ONE),
    ):
        with pytest.raises(InternalError, match="CV-X002"):
            call()


def test_vectors_and_cells_have_the_spread_they_report():
    zeros = [Fraction(0)] * 400
    vector, cells = gate(1).release_vector("vector", zeros, ONE), gate(2).release_cells("cells", zeros, ONE)
    assert cells.variance == 2.0
    assert vector.variance == 401.0
    for released in (vector, cells):
        assert np.mean(released.floats() ** 2) == pytest.approx(released.variance, rel=0.3)


def test_rows_are_clamped_before_noise_is_added():
    inside, outside = np.array([0, 10, 10]), np.array([-5, 99, 10])
    released = [gate(3).release_rows("rows", steps, 0, 10, STEP) for steps in (inside, outside)]
    assert (released[0] == released[1]).all()


def test_rows_have_laplace_noise_of_their_width():
    steps = np.full(20_000, 512)
    noisy = gate(4).release_rows("rows", steps, 0, 1024, STEP)
    assert np.mean(noisy - 512) == pytest.approx(0, abs=4 * 1024 * 2**0.5 / 20_000**0.5)
    assert np.mean(np.abs(noisy - 512)) == pytest.approx(1024, rel=0.04)


def test_responses_are_true_as_often_as_they_say():
    flags = np.arange(20_000) % 3 == 0
    answers = gate(5).respond("response", flags)
    assert answers.truth == pytest.approx(np.e / (1 + np.e))
    assert np.mean(answers.values == flags) == pytest.approx(answers.truth, abs=0.015)


def test_smooth_releases_are_charged_what_they_claim():
    shares = dict.fromkeys(("a", "b"), Fraction(1, 2))
    made = Plan.split(Budget(2), shares, "staircase", {"b": Kind.SMOOTH})
    assert made.charge.events == (PureEvent(ONE), PureEvent(ONE))
    assert made.shares == "a 50%, b 50%"
    asked = Gate(made, SeededNoise(1))
    with pytest.raises(InternalError, match="CV-X002"):
        asked.release_smooth("a", ONE, ONE, STEP, ONE)
    asked.release_smooth("b", ONE, ONE, STEP, ONE)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_smooth("b", ONE, ONE, STEP, ONE)


def test_gaussian_vectors_are_charged_as_gaussian():
    made = Plan.split(Budget(1, "1e-6"), {"v": ONE}, "gaussian", {"v": Kind.VECTOR})
    (event,) = made.charge.events
    assert isinstance(event, GaussianEvent)
    values = Gate(made, SeededNoise(2)).release_vector("v", [Fraction(0)] * 4000, ONE)
    assert np.std(values.floats()) == pytest.approx(1 / float(event.mu), rel=0.05)
    assert values.variance == pytest.approx(1 / float(event.mu) ** 2)


def test_the_grid_of_a_private_scale_is_public():
    """However large the private bound, answers lie on the same grid: its step would tell the bound."""
    for bound in (ONE, 1000 * ONE, ONE / 1000):
        smooth = Gate(Plan.split(Budget(1), {"x": ONE}, "laplace", {"x": Kind.SMOOTH}), SeededNoise(3))
        value = smooth.release_smooth("x", ONE, bound, Fraction(1, 10), ONE)
        assert (value * 2**24).denominator == 1


def test_normal_vectors_have_gaussian_noise_in_a_plan_of_another_law():
    shares = {"model": Fraction(1, 2), "effect": Fraction(1, 2)}
    mixed = Plan.split(Budget(2, "1e-6"), shares, "staircase", {"model": Kind.NORMAL})
    asked = Gate(mixed, SeededNoise(3))
    found = asked.release_vector("model", [Fraction(0)] * 2000, ONE)
    assert found.variance == pytest.approx(1 / float(mixed.amount("model", Kind.NORMAL)) ** 2, rel=1e-6)
    noise = found.floats() / found.variance**0.5
    assert np.mean(noise**2) == pytest.approx(1, abs=0.1)
    assert np.mean(noise**4) == pytest.approx(3, abs=0.6)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_vector("model", [ONE], ONE)
