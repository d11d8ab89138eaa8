"""Brute force: no exchange of a record moves sums and counts of both arms further than claimed."""

from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments.small_records import NotingGate, largest_change

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.moments.arm_balance import (
    arm_balance_moments,
    discriminant,
    standardised_differences,
)
from counterveil.rows.moments.balance_sums import (
    CELLS,
    SQUARES,
    BalanceColumns,
    CutScore,
    balance_sums,
    exact_sums,
)

NUMBERS, BINARY, LABELS = {"x": cv.Range(-1, 1)}, {"b": cv.Binary()}, {"c": cv.Categories(["u", "v", "w"])}
REST = [(0.1, 0, "u", 0, 0.0), (0.2, 1, "v", 1, 0.5), (-0.3, 0, "w", 0, 0.1), (0.4, 1, "u", 1, -0.2)]
POINTS = (-1.0, -0.7, 0.0, 0.3, 1.0)


def study(*kinds, numbers=1):
    covariates = {}
    for kind in kinds:
        covariates |= kind
    covariates |= {f"x{k}": cv.Range(-1, 1) for k in range(1, numbers)}
    return cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), covariates)


def table(first, declared):
    x, b, c, t, y = zip(first, *REST, strict=True)
    columns = {"x": x, "b": b, "c": c, "t": t, "y": y} | {
        name: x for name in declared.covariates if name.startswith("x")
    }
    return Table.attach({name: list(columns[name]) for name in declared.columns}, declared)


@pytest.mark.parametrize(
    "declared",
    [study(NUMBERS), study(BINARY), study(LABELS), study(NUMBERS, BINARY, LABELS), study(NUMBERS, numbers=6)],
    ids=["number", "binary", "labels", "all", "six numbers"],
)
def test_no_exchange_exceeds_the_claim_and_one_attains_it(declared):
    columns = BalanceColumns.of(declared)
    values = [
        exact_sums(table(record, declared), columns)
        for record in product(POINTS, (0, 1), ("u", "v", "w"), (0, 1), (0.0,))
    ]
    worst, claim = largest_change(values), float(columns.sensitivity)
    assert worst <= claim * (1 + 1e-9)
    assert worst == pytest.approx(claim, rel=1e-5)


def test_both_terms_of_the_bound_can_be_the_larger_one():
    assert float(balance_sums(1, 0, 0)) ** 2 == pytest.approx(2 + 2 + float(SQUARES) ** 2 / 2)
    assert float(balance_sums(6, 0, 0)) ** 2 == pytest.approx(24)
    assert float(balance_sums(0, 1, 0)) ** 2 == pytest.approx(4)
    assert float(balance_sums(0, 0, 2)) ** 2 == pytest.approx(18)


def test_counts_move_by_one_in_each_of_two_cells():
    declared = study(NUMBERS, BINARY, LABELS)
    columns = BalanceColumns.of(declared)
    score = CutScore(np.array([1.0, 0.3, 0.5, -0.2, 0.1]), np.linspace(-0.8, 0.8, CELLS - 1))
    values = []
    for record in product(POINTS, (0, 1), ("u", "v", "w"), (0, 1), (0.0,)):
        gate = NotingGate(table(record, declared))
        score.release(gate, columns, pure=False)
        values.append(gate.values["counts"])
        assert sum(gate.values["counts"]) == 5
    assert largest_change(values) == pytest.approx(float(gate.sensitivity["counts"]), rel=1e-6)


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(0.4 * rng.standard_normal(n), -1, 1)
    c = rng.choice(["u", "v", "w"], n, p=(0.5, 0.3, 0.2))
    t = (rng.random(n) < 1 / (1 + np.exp(-2 * x - 0.8 * (c == "w")))).astype(int)
    return {"x": x, "b": rng.integers(0, 2, n), "c": c, "t": t, "y": np.zeros(n)}


def test_without_noise_differences_are_those_of_the_data():
    declared = study(NUMBERS, BINARY, LABELS)
    data = people()
    columns = BalanceColumns.of(declared)
    released = columns.release(NotingGate(Table.attach(data, declared)))
    found = arm_balance_moments(released, len(data["t"]), columns)
    gap, _ = standardised_differences(found)
    flags = [data["x"], data["b"], *(data["c"] == label for label in "uvw")]
    expected = []
    for values in (np.asarray(flag, float) for flag in flags):
        one, other = values[data["t"] == 1], values[data["t"] == 0]
        expected.append((one.mean() - other.mean()) / np.sqrt((one.var() + other.var()) / 2))
    assert gap == pytest.approx(expected, abs=1e-4)
    assert found.shares[0] == pytest.approx(data["t"].mean())
    (cells,) = discriminant(found).cells(columns, Table.attach(data, declared))
    assert cells.sum() == 3000
    shares = cells[0] / cells.sum(axis=0)
    assert shares[-1] > shares[0] + 0.3
