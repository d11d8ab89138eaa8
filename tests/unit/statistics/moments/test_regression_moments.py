"""Brute force: no exchange of a record moves a release of moments for regressions further than claimed."""

from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate
from tests.unit.statistics.moments.small_records import REST, STUDY, NotingGate, records

from counterveil.privacy import Budget
from counterveil.statistics.moments.records import Part
from counterveil.statistics.moments.regression import (
    Columns,
    ReleasedMoments,
    RowPlan,
    Rows,
    mixed,
    release_regression_moments,
)

COLUMNS = Columns.of(STUDY, ["b"], ["t:x", "x:x", "b:t"])
GRID = list(product((-1.0, 1.0), (0, 1), ("u", "z"), (0, 1), (-1.0, 0.2, 1.0)))


def releases(record, budget, mechanism):
    """Return the gate with all that is released of one record and four others, earlier outputs held fixed."""
    design = RowPlan(5, COLUMNS, budget, mechanism)
    first = NotingGate()
    release_regression_moments(first, records(REST[0]), design)
    gate = FixedGate(design.plan(), first.values)
    release_regression_moments(gate, records(record), design)
    return gate


def changes(budget, mechanism):
    """Return for every release its largest change over all exchanges of one record, and its sensitivity."""
    gates = [releases(record, budget, mechanism) for record in (REST[0], *GRID)]
    found = {}
    for name, sensitivity in gates[0].sensitivity.items():
        assert all(gate.sensitivity[name] == sensitivity for gate in gates)
        values = np.array([[float(value) for value in gate.given[name]] for gate in gates])
        moves = [np.linalg.norm(values - one, ord=gates[0].norm[name], axis=1).max() for one in values]
        found[name] = (max(moves), float(sensitivity))
    return found


@pytest.mark.parametrize(("budget", "mechanism"), [(Budget(2), "staircase"), (Budget(2, "1e-6"), "gaussian")])
def test_no_exchange_exceeds_the_claim(budget, mechanism):
    found = changes(budget, mechanism)
    assert set(found) == {"centre", "first reach", "first moments", "reach", "moments"}
    for name, (change, sensitivity) in found.items():
        assert change <= sensitivity * (1 + 1e-12), name
        assert change > 0.4 * sensitivity, name
    assert found["centre"][0] == pytest.approx(found["centre"][1], rel=0.15)


@pytest.mark.parametrize("length", [2.0, 6.0, 1e9])
def test_no_row_is_longer_than_its_bound(length):
    rng = np.random.default_rng(0)
    size = 1 + len(COLUMNS.names)
    mix = np.eye(size)
    rows = Rows(COLUMNS, np.full(7, 0.2), np.full(7, 0.4), mix, np.full(size, np.inf), np.inf, np.ones(size))
    own = np.flatnonzero(~rows.explained & ~rows.joint)
    mix[np.ix_(own[1:], own)] += rng.normal(0, 0.4, (len(own) - 1, len(own)))
    mix[np.flatnonzero(rows.numbers)] += rng.normal(0, 0.3, size)
    windows = np.where(rows.numbers, 1.5, np.inf)
    cut = rows.cut(windows, length)
    x = rng.uniform(-1, 1, (4000, 7))
    x[:500] = np.sign(x[:500])
    found = np.sum(cut.weighted(x) ** 2, axis=1)
    assert found.max() <= float(cut.squared_reach) * (1 + 1e-12)
    if length < 10:
        assert found.max() > 0.6 * float(cut.squared_reach)


def test_basis_gives_back_the_columns_in_their_units():
    rng = np.random.default_rng(1)
    size = 1 + len(COLUMNS.names)
    mix = np.eye(size) + np.tril(rng.normal(0, 0.2, (size, size)), -1)
    centre, scale = rng.uniform(-0.3, 0.3, 7), rng.uniform(0.3, 0.9, 7)
    rows = Rows(COLUMNS, centre, scale, mix, np.full(size, np.inf), 1e9, np.linspace(1, 2, size))
    table = records((0.3, 1, "v", 1, 0.4)).source
    part = Part(table, slice(0, 5), COLUMNS.features)
    u, _ = rows.unweighted(COLUMNS.block(part))
    named = dict(zip(("1", *COLUMNS.names), rows.basis @ (u * rows.factors[:, None]), strict=True))
    assert named["1"] == pytest.approx(np.ones(5))
    x, b, c, t, y = zip((0.3, 1, "v", 1, 0.4), *REST, strict=True)
    assert named["x"] == pytest.approx(x)
    assert named["b"] == pytest.approx(b)
    assert named["c=v"] == pytest.approx([float(label == "v") for label in c])
    assert named["t"] == pytest.approx(t)
    assert named["y"] == pytest.approx(y, abs=1e-6)
    assert named["t:x"] == pytest.approx(np.array(t) * x)
    assert named["x:x"] == pytest.approx(np.array(x) ** 2)
    assert named["b:t"] == pytest.approx(np.array(b) * t)


def test_second_rows_are_uncorrelated_and_responses_are_what_is_left():
    rng = np.random.default_rng(2)
    columns = Columns.of(STUDY, [], [])
    n, size = 20_000, 1 + len(columns.names)
    x = rng.normal(0, 0.3, (n, size - 1))
    x[:, 1] = 0.8 * x[:, 0] + 0.2 * x[:, 1]
    x[:, -1] = x[:, 0] - 0.5 * x[:, -2] + 0.1 * rng.normal(size=n)
    x = np.clip(x, -1, 1)
    rows = Rows.standardised(columns, x.mean(axis=0), x.std(axis=0)).cut(np.full(size, np.inf), 1e9)
    u = rows.weighted(x)
    second = mixed(ReleasedMoments(u.T @ u / n, 1e-9, rows, 0.0))
    v, _ = second.unweighted(x)
    own = np.array([*np.flatnonzero(~second.explained)[1:], size - 1])
    assert np.cov(v[own]) == pytest.approx(np.eye(len(own)), abs=0.02)
    assert v.mean(axis=1)[1:] == pytest.approx(np.zeros(size - 1), abs=0.02)
