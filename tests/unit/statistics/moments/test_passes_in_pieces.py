"""Answers do not depend on how rows are cut into blocks, on their order, or on how many cores add them up."""

import pickle

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.passes import added
from counterveil.errors import DataError

ROWS = 3000
COVARIATES = {
    "a": cv.Range(0, 1),
    "b": cv.Binary(one="yes", zero="no"),
    "c": cv.Categories(["u", "v", "w"]),
}


def study(randomised):
    return cv.Study("t", "y", (0, 3), COVARIATES, control=0, randomised=randomised)


def people(randomised, rows=ROWS):
    rng = np.random.default_rng(2)
    a, b, c = rng.random(rows), rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    t = rng.random(rows) < (0.5 if randomised else 0.2 + 0.4 * a + 0.2 * b)
    columns = {"t": t.astype(int), "y": 0.5 * t + a + 0.3 * b + rng.normal(0, 0.1, rows), "a": a}
    labels = {"b": np.array(["no", "yes"])[b], "c": np.array(["u", "v", "w"])[c]}
    return Table.attach(columns | labels, study(randomised))


def ate(method, randomised=False, **words):
    def asked(table):
        return cv.ate(table, study(randomised), method=method, **WORDS, **words)

    return randomised, asked


def other(function, randomised=False, **words):
    return randomised, lambda table: function(table, study(randomised), **WORDS, **words)


WORDS = {"protects": "record", "epsilon": 4, "delta": "1e-6"}
RULE = cv.Policy.where(a=(0.3, 0.8), c=["u", "v"])
QUESTIONS = {
    "doubly robust": ate("doubly_robust"),
    "overlap weighted": ate("doubly_robust", estimand="ATO", settings=cv.settings.DoublyRobust(degree=2)),
    "comparison": ate("trial", True, settings=cv.settings.Trial("none")),
    "adjusted trial": ate("trial", True, settings=cv.settings.Trial("covariates")),
    "groups": other(cv.groups, by="c", method="adjusted"),
    "arms of groups": other(cv.groups, True, by="c", method="arms"),
    "policy": other(cv.policy_value, policy=RULE),
    "T-learner": other(cv.cate, method="t_learner"),
    "R-learner": other(cv.cate, method="r_learner"),
    "overlap": other(cv.overlap),
}


def answered(question, table):
    WORDS["noise"] = cv.SeededNoise(3)
    return question(table).to_dict()


def in_pieces(count):
    """Return a `run` that takes rows in another order, in parts of uneven sizes, by copies of the pass."""

    def run(self, passed, in_turn=False):
        rng, total = np.random.default_rng(count), None
        order = rng.permutation(self.rows)
        cuts = np.sort(rng.choice(self.rows - 1, count - 1, replace=False)) + 1
        for part in np.split(order, cuts):
            sent = pickle.loads(pickle.dumps(passed))
            total = added(total, sent(self.take(part)))
        return total

    return run


@pytest.mark.parametrize("name", QUESTIONS)
def test_partitions_and_order_change_no_bit(name, monkeypatch):
    randomised, question = QUESTIONS[name]
    table = people(randomised)
    known = answered(question, table)
    for count in (1, 2, 7):
        monkeypatch.setattr(Table, "run", in_pieces(count))
        assert answered(question, table) == known


@pytest.mark.parametrize("cores", ["2", "7"])
def test_cores_change_no_bit(cores, monkeypatch):
    monkeypatch.setattr("counterveil.data.table.BLOCK_ROWS", 4096)
    table = people(False, 12 * 4096 + 17)
    found = []
    for number in ("1", cores):
        monkeypatch.setenv("COUNTERVEIL_CORES", number)
        found.append(answered(QUESTIONS["doubly robust"][1], table))
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", ["", "0", "two", "-1", "1.5", "99999", "²"])
def test_a_number_of_cores_that_is_none_is_refused(wrong, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_CORES", wrong)
    with pytest.raises(DataError) as caught:
        answered(QUESTIONS["comparison"][1], people(True))
    assert caught.value.code == "CV-D059"
