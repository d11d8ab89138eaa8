"""Brute force: no exchange moves a release of moments for regressions, at either level, further than claimed."""

from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments.fixed_outputs import FixedGate
from tests.unit.estimators.moments.small_records import REST, STUDY, NotingGate, records

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.moments.regression import (
    ReleasedMoments,
    cut_to,
    mixed,
    release_regression_moments,
)
from counterveil.estimators.moments.regression_basis import basis_of
from counterveil.estimators.moments.regression_columns import columns_of
from counterveil.estimators.moments.regression_outcomes import release_outcome_moments
from counterveil.estimators.moments.regression_plan import RowPlan, outcome_plan
from counterveil.estimators.moments.regression_sandwich import release_sandwich
from counterveil.inference.moments import NoisyMoments
from counterveil.privacy import Budget
from counterveil.rows.moments.regression_columns import logarithm
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.records import Part, Records

COLUMNS = columns_of(STUDY, ["b"], ["t:x", "x:x", "b:t"])
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
    rows = WorkingRows(
        COLUMNS, np.full(7, 0.2), np.full(7, 0.4), mix, np.full(size, np.inf), np.inf, np.ones(size)
    )
    own = np.flatnonzero(~rows.explained & ~rows.joint)
    mix[np.ix_(own[1:], own)] += rng.normal(0, 0.4, (len(own) - 1, len(own)))
    mix[np.flatnonzero(rows.numbers)] += rng.normal(0, 0.3, size)
    windows = np.where(rows.numbers, 1.5, np.inf)
    cut = cut_to(rows, windows, length)
    x = rng.uniform(-1, 1, (4000, 7))
    x[:500] = np.sign(x[:500])
    found = np.sum(cut.weighted(x) ** 2, axis=1)
    assert found.max() <= float(cut.squared_max_norm) * (1 + 1e-12)
    if length < 10:
        assert found.max() > 0.6 * float(cut.squared_max_norm)


def test_basis_gives_back_the_columns_in_their_units():
    rng = np.random.default_rng(1)
    size = 1 + len(COLUMNS.names)
    mix = np.eye(size) + np.tril(rng.normal(0, 0.2, (size, size)), -1)
    centre, scale = rng.uniform(-0.3, 0.3, 7), rng.uniform(0.3, 0.9, 7)
    rows = WorkingRows(COLUMNS, centre, scale, mix, np.full(size, np.inf), 1e9, np.linspace(1, 2, size))
    table = records((0.3, 1, "v", 1, 0.4)).source
    part = Part(table, slice(0, 5), COLUMNS.features)
    u, _ = rows.unweighted(COLUMNS.block(part))
    named = dict(zip(("1", *COLUMNS.names), basis_of(rows) @ (u * rows.factors[:, None]), strict=True))
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
    columns = columns_of(STUDY, [], [])
    n, size = 20_000, 1 + len(columns.names)
    x = rng.normal(0, 0.3, (n, size - 1))
    x[:, 1] = 0.8 * x[:, 0] + 0.2 * x[:, 1]
    x[:, -1] = x[:, 0] - 0.5 * x[:, -2] + 0.1 * rng.normal(size=n)
    x = np.clip(x, -1, 1)
    plain = WorkingRows.standardised(columns, x.mean(axis=0), x.std(axis=0))
    rows = cut_to(plain, np.full(size, np.inf), 1e9)
    u = rows.weighted(x)
    second = mixed(ReleasedMoments(u.T @ u / n, 1e-9, rows, 0.0))
    v, _ = second.unweighted(x)
    own = np.array([*np.flatnonzero(~second.explained)[1:], size - 1])
    assert np.cov(v[own]) == pytest.approx(np.eye(len(own)), abs=0.02)
    assert v.mean(axis=1)[1:] == pytest.approx(np.zeros(size - 1), abs=0.02)


NAMES = ("Intercept", *COLUMNS.names)


@pytest.mark.parametrize(("budget", "mechanism"), [(Budget(2), "staircase"), (Budget(2, "1e-6"), "gaussian")])
def test_no_exchange_moves_counts_and_sandwiches_too_far(budget, mechanism):
    design = RowPlan(5, COLUMNS, budget, mechanism, robust=1)
    size = len(NAMES)
    plain = WorkingRows.standardised(COLUMNS, np.zeros(7), np.full(7, 0.5))
    rows = cut_to(plain, np.full(size, np.inf), 20.0)
    # Moments of people less different than these: rows are long, and some are shortened.
    released = NoisyMoments(np.diag([1.0, *[0.1] * (size - 1)]), np.full((size, size), 1e-9), 5)
    y = NAMES.index("y")
    basis = basis_of(rows)
    own = basis[[NAMES.index(name) for name in ("Intercept", "x", "t")]]

    def gate_of(record):
        gate = FixedGate(design.plan(), {"robust reach 0": [5, *[0] * 13]})
        regression = {"moments": released, "regressors": own, "response": basis[y]}
        release_sandwich(gate, 0, records(record), rows, **regression, design=design)
        return gate

    gates = [gate_of(record) for record in (REST[0], *GRID)]
    assert set(gates[0].given) == {"robust reach 0", "robust 0"}
    for name, sensitivity in gates[0].sensitivity.items():
        assert all(gate.sensitivity[name] == sensitivity for gate in gates)
        values = np.array([[float(value) for value in gate.given[name]] for gate in gates])
        moves = max(np.linalg.norm(values - one, ord=gates[0].norm[name], axis=1).max() for one in values)
        assert 0.4 * float(sensitivity) < moves <= float(sensitivity) * (1 + 1e-12), name


def test_logarithms_fill_their_range():
    x = np.linspace(-1, 1, 101)
    found = logarithm(x, 9.0)
    assert (found.min(), found.max()) == (-1.0, 1.0)
    assert np.log(3) + np.log(3) * found == pytest.approx(np.log(5 + 4 * x), abs=1e-8)


OUTCOMES = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), {"x": cv.Range(-1, 1)})
OUTCOME_COLUMNS = columns_of(OUTCOMES, [], ["t:x"])
ROWS = {"x": [0.9, 0.1, -0.4, 0.5, -0.8, 0.3], "t": [1, 0, 1, 1, 0, 0], "y": [0.0, 0.3, -0.2, 0.1, -0.6, 0.4]}


def outcome_records(outcome):
    columns = ROWS | {"y": [outcome, *ROWS["y"][1:]]}
    return Records(Table.attach(columns, OUTCOMES), OUTCOME_COLUMNS.features)


def outcome_releases(outcome, budget, mechanism, beyond):
    """Return the gate with all that is released of one outcome and five fixed ones, earlier outputs held fixed.

    Counts of residuals say that `beyond` of them are beyond all windows.
    """
    design = RowPlan(6, OUTCOME_COLUMNS, budget, mechanism)
    first = NotingGate()
    release_outcome_moments(first, outcome_records(0.3), design)
    held = dict(first.values)
    for name in ("first reach", "reach"):
        held[name] = [*([0.0] * (len(held[name]) - 1)), beyond]
    gate = FixedGate(outcome_plan(design), held)
    return gate, release_outcome_moments(gate, outcome_records(outcome), design)


@pytest.mark.parametrize("beyond", [-1e6, 1e6])
@pytest.mark.parametrize(("budget", "mechanism"), [(Budget(2), "staircase"), (Budget(2, "1e-6"), "gaussian")])
def test_no_change_of_an_outcome_exceeds_the_claim(budget, mechanism, beyond):
    gates, found = zip(
        *(outcome_releases(outcome, budget, mechanism, beyond) for outcome in np.linspace(-1, 1, 9)),
        strict=True,
    )
    # Residuals are clipped, or outcomes are taken as they are: never beyond their range.
    assert all((one.rows.clip < 1) if beyond < 0 else (one.rows.clip == 1) for one in found)
    assert all(one.rows.prediction.any() == (beyond < 0) for one in found)
    assert set(gates[0].given) == {"centre", "first reach", "first moments", "reach", "moments"}
    for name, sensitivity in gates[0].sensitivity.items():
        assert all(gate.sensitivity[name] == sensitivity for gate in gates)
        values = np.array([[float(value) for value in gate.given[name]] for gate in gates])
        largest = max(np.linalg.norm(values - one, ord=gates[0].norm[name], axis=1).max() for one in values)
        assert 0.4 * float(sensitivity) < largest <= float(sensitivity) * (1 + 1e-12)


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_with_a_large_budget_it_is_the_regression_of_the_rows(delta):
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-1, 1, (2, 3000)), rng.integers(0, 2, 3000)
    y = np.clip(1 + x[0] - 0.5 * x[1] + 0.4 * t + rng.normal(0, 0.5, 3000), -3, 5)
    data = {"a": x[0], "b": x[1] + 0.5 * x[0], "t": t, "y": y}
    study = cv.Study("t", cv.Outcome("y", (-3, 5)), {"a": cv.Range(-1, 1), "b": cv.Range(-2, 2)})
    words = {"protects": "outcome", "epsilon": 10**6, "delta": delta, "terms": ["t:a"]}
    found = cv.moments(data, study, noise=cv.SeededNoise(0), **words)
    fit = found.regress("y ~ t*a + b")
    columns = np.column_stack((np.ones(3000), t, data["a"], t * data["a"], data["b"]))
    exact = np.linalg.lstsq(columns, y, rcond=None)[0]
    assert fit.terms == ("Intercept", "t", "a", "t:a", "b")
    errors = np.array([one.std_error.sampling for one in fit.coefficients])
    assert np.all(np.abs(np.array(list(fit.params)) - exact) < 0.02 * errors)
    # Regressions among public columns have no noise at all.
    assert not found.regress("b ~ a + t").fit.noise.any()
    assert found.guarantee.unit.value == "outcome"


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_rare_and_skewed_outcomes_have_no_more_noise_than_their_range_calls_for(delta):
    rng = np.random.default_rng(2)
    n = 2000
    t, x = rng.integers(0, 2, n), rng.random(n)
    study = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)}, assignment=cv.Trial())
    shapes = {
        "common": rng.random(n) < 0.5,
        "rare": rng.random(n) < 0.01,
        "skewed": np.clip(rng.gamma(1, 0.08, n), 0, 1),
    }
    noise = {
        name: [
            cv.moments(
                {"t": t, "x": x, "y": y.astype(float)},
                study,
                protects="outcome",
                epsilon=1,
                delta=delta,
                noise=cv.SeededNoise(seed),
            )
            .regress("y ~ t + x")
            .coefficient("t")
            .std_error.noise
            for seed in range(8)
        ]
        for name, y in shapes.items()
    }
    # Outcomes at both ends of the range have all the noise that it calls for.
    assert max(map(max, noise.values())) <= max(noise["common"]) * (1 + 1e-9)


def test_no_coefficient_is_beyond_what_outcomes_in_their_range_can_make():
    rng = np.random.default_rng(3)
    n = 200
    t, x = rng.integers(0, 2, n), rng.random(n)
    study = cv.Study("t", cv.Outcome("y", (10, 12)), {"x": cv.Range(0, 1)}, assignment=cv.Trial())
    columns = np.column_stack((np.ones(n), t, x))
    # The outcomes that make each coefficient largest lie at the ends of the range.
    weights = np.linalg.pinv(columns)
    largest = np.abs(weights).sum(axis=1)
    cut = 0
    for seed in range(10):
        noise = cv.SeededNoise(seed)
        data = {"t": t, "x": x, "y": 10.0 + 2 * (weights[1] > 0)}
        found = cv.moments(data, study, protects="outcome", epsilon="1/100", delta="1e-6", noise=noise)
        fit = found.regress("y ~ t + x")
        matrix = np.linalg.inv(columns.T @ columns / n)
        for place, name in ((1, "t"), (2, "x")):
            most = float(np.sqrt(matrix[place, place]))
            assert largest[place] <= most * (1 + 1e-9)
            one = fit.coefficient(name)
            assert max(map(abs, (one.estimate, *one.interval()))) <= most * 1.3
            cut += max(map(abs, one.interval())) < abs(one.estimate) + one.std_error.total
    assert cut > 0
    assert abs(fit.coefficient("Intercept").estimate) > 2
