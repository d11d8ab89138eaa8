"""The gate and the order reserve, draw, settle."""

from fractions import Fraction

import pytest

from counterveil.accounting import Uses, open_ledger
from counterveil.data import Study, Table
from counterveil.errors import BudgetError, InternalError, LedgerError, ParameterError
from counterveil.mechanisms import SystemNoise
from counterveil.privacy import Budget, Unit
from counterveil.session import BaseSession, Gate, Plan, Request, SeededNoise

STUDY = Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
USES = Uses(Unit.OUTCOME, "ate", "mean", "t", "y")
TRIAL = {"t": [0, 0, 1, 1], "y": [0.0, 1.0, 1.0, 1.0]}


def request(name="q", epsilon=1, request_id=None):
    plan = Plan.split(Budget(epsilon), {"x": Fraction(1)}, "laplace")
    return Request(plan, {"question": name, "epsilon": str(epsilon)}, USES, request_id)


def answer(gate):
    return {"value": float(gate.release("x", Fraction(0), Fraction(1)))}


def test_each_release_passes_once():
    gate = Gate(Plan.split(Budget(1), {"x": Fraction(1)}, "laplace"), SystemNoise())
    gate.release("x", Fraction(0), Fraction(1))
    with pytest.raises(InternalError, match="CV-X003"):
        gate.release("x", Fraction(0), Fraction(1))
    with pytest.raises(InternalError, match="CV-X002"):
        gate.release("y", Fraction(0), Fraction(1))


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
    other = Study(treatment="t", outcome="y", outcome_range=(0, 2), randomised=True)
    with pytest.raises(ParameterError, match="CV-P017"):
        BaseSession(table, other, budget=Budget(1))
