"""Answers do not depend on how rows are cut into blocks, on their order, or on how many cores add them up."""

import os
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.thinned import ALL, thinned
from tests.unit.estimators.moments.pass_questions import QUESTIONS, answered, people, study

import counterveil as cv
from counterveil.accounting import open_ledger
from counterveil.data import Table
from counterveil.data.passes import added
from counterveil.data.progress import Progress
from counterveil.errors import DataError

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="lists processes by /proc")


def children():
    """Return the processes that this one started and has not waited for; other tests may keep a server."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def in_pieces(count):
    """Return a `run` that takes rows in another order, in parts of uneven sizes, by copies of the pass."""

    def run(self, passed, sequential=False):
        rng, total = np.random.default_rng(count), None
        order = rng.permutation(self.rows)
        cuts = np.sort(rng.choice(self.rows - 1, count - 1, replace=False)) + 1
        for part in np.split(order, cuts):
            sent = pickle.loads(pickle.dumps(passed))
            total = added(total, sent(self.take(part)))
        return total

    return run


@pytest.mark.parametrize("name", thinned(QUESTIONS, *list(QUESTIONS)[::2]))
def test_partitions_and_order_change_no_bit(name, monkeypatch):
    randomised, question = QUESTIONS[name]
    table = Table.attach(people(randomised), study(randomised))
    known = answered(question, table)
    for count in (1, 2, 7) if ALL else (7,):
        monkeypatch.setattr(Table, "run", in_pieces(count))
        assert answered(question, table) == known


@pytest.mark.parametrize("cores", thinned(["2", "7"], "7"))
def test_cores_change_no_bit(cores, monkeypatch):
    monkeypatch.setattr("counterveil.data.table.TABLE_ROWS", 1024)
    table = Table.attach(people(False, 12 * 1024 + 17), study(False))
    found = []
    for number in ("1", cores):
        monkeypatch.setenv("COUNTERVEIL_CORES", number)
        found.append(answered(QUESTIONS["doubly robust"][1], table))
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", ["", "0", "two", "-1", "1.5", "99999", "²"])
def test_a_number_of_cores_that_is_none_is_refused(wrong, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_CORES", wrong)
    with pytest.raises(DataError, match="CV-D059"):
        answered(QUESTIONS["comparison"][1], Table.attach(people(True), study(True)))


def fails_in_a_copy(table, parent):
    if os.getpid() != parent:
        raise RuntimeError
    return (np.array([table.rows]),)


def counts_processes(table):
    return np.array([table.rows]), np.array([os.getpid()])


def test_a_copy_that_fails_or_is_killed_costs_time_and_no_row(monkeypatch):
    monkeypatch.setattr("counterveil.data.table.TABLE_ROWS", 100)
    monkeypatch.setenv("COUNTERVEIL_CORES", "3")
    table = Table.attach(people(True), study(True))
    assert table.run(partial(fails_in_a_copy, parent=os.getpid()))[0] == [table.rows]


@needs_proc
def test_copies_end_with_their_pass_also_after_an_error(monkeypatch):
    before = children()
    monkeypatch.setattr("counterveil.data.table.TABLE_ROWS", 100)
    monkeypatch.setenv("COUNTERVEIL_CORES", "3")
    table = Table.attach(people(True), study(True))
    rows, _ = table.run(counts_processes)
    assert rows == [table.rows]
    with pytest.raises(ZeroDivisionError):
        table.run(lambda block: 1 / 0)
    assert children() == before


@needs_proc
@pytest.mark.parametrize("cores", ["1", "3"])
def test_ctrl_c_in_a_pass_leaves_the_ledger_intact(cores, monkeypatch, tmp_path):
    before = children()
    monkeypatch.setattr("counterveil.data.table.TABLE_ROWS", 100)
    monkeypatch.setenv("COUNTERVEIL_CORES", cores)
    table, path = Table.attach(people(True), study(True)), tmp_path / "ledger.db"
    with open_ledger(path, create=True) as ledger:
        ledger.register("data", cv.Budget(3))
    words = {"protects": "record", "epsilon": 1, "settings": cv.settings.Trial("none")}
    with cv.Session(table, study(True), ledger=path) as session:
        with monkeypatch.context() as broken:
            broken.setattr(Progress, "add", interrupted)
            # The copies may be so fast that they leave nothing to do.
            broken.setattr("counterveil.data.passes._Forks.sums", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.ate(method="trial", **words)
        assert session.ate(method="trial", **words).estimate == pytest.approx(0.5, abs=0.3)
    with open_ledger(path) as ledger:
        assert ledger.verify().ok
        assert ledger.account("data").spent.epsilon == 2
    assert children() == before


def interrupted(self, rows=0):
    raise KeyboardInterrupt
